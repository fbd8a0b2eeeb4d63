/* The row `kernel` on the CPU: the items of a launch are its blocks, and src/ptx runs them on the operands' bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "base/parallel.h"
#include "model/backend.h"
#include "model/observer.h"
#include "ops/kernel/findings.h"
#include "ops/kernel_memory.h"
#include "ops/kernel_profile.h"
#include "ops/kernel_time.h"
#include "ptx/run/profile.h"

int64_t mr_kernel_items(const mr_command *command) {
    return (int64_t)mr_kernel_blocks(mr_kernel_arguments_of(command));
}

/* Bytes are those that it may read and those that it may write, each counted once. Most instructions of ordinary
 * kernels are not floating-point ones, but they take the same issue slots. */
void mr_kernel_cost(const mr_command *command, mr_cost *out_cost) {
    const mr_kernel_arguments *a = mr_kernel_arguments_of(command);
    uint64_t blocks = mr_kernel_blocks(a);
    *out_cost = (mr_cost){.flops = a->instructions,
                          .bytes = a->bytes,
                          .least_ns = mr_kernel_least_ns(command->stream->device, a),
                          .blocks = blocks > UINT32_MAX ? UINT32_MAX : (uint32_t)blocks,
                          .threads = a->block[0] * a->block[1] * a->block[2]};
}

static int64_t setting(mr_machine *machine, const char *name) {
    int64_t value = 0;
    const mr_simulator *simulator = machine->backend->simulator;
    if (simulator) mr_error_destroy(simulator->get_setting(machine, name, &value));
    return value;
}

/* ---- counts */

static bool is_counting(mr_machine *machine) {
    return !machine->bodies.replayed && setting(machine, "kernel_profile");
}

static mr_kernel_counting *counting_of(mr_kernel_count *count, const mr_command *command) {
    for (size_t i = 0; i < count->running.count; i++)
        if (count->running.items[i].command == command) return &count->running.items[i];
    return NULL;
}

static void end_count(mr_kernel_count *count, const mr_command *command) {
    mr_kernel_counting *counting = counting_of(count, command);
    if (counting) *counting = count->running.items[--count->running.count];
}

static void begin_count(const mr_command *command) {
    const mr_kernel_arguments *a = mr_kernel_arguments_of(command);
    mr_kernel_count *count = mr_kernel_code_count(a->code, a->kernel);
    if (!is_counting(command->machine)) return;
    end_count(count, command); /* of a run that was given up */
    if (!count->profile) count->profile = mr_ptx_profile_create(a->code->ptx); /* or not at all */
    mr_kernel_counting counting = {command, count->launched};
    if (!count->profile || !mr_vec_push(&count->running, counting)) return;
    count->launched += mr_kernel_blocks(a);
    count->launches++;
    count->bytes += a->bytes;
    count->threads = a->block[0] * a->block[1] * a->block[2];
    count->shared = a->shared;
}

static void attach_count(const mr_command *command, mr_ptx_launch *launch) {
    const mr_kernel_arguments *a = mr_kernel_arguments_of(command);
    mr_kernel_count *count = mr_kernel_code_count(a->code, a->kernel);
    const mr_kernel_counting *counting =
        is_counting(command->machine) ? counting_of(count, command) : NULL;
    if (!counting) return;
    launch->profile = count->profile;
    launch->count_from = counting->count_from;
}

/* ---- the row */

/* Not all blocks of larger grids run at once on any device, so a later one is not waited for. */
#define MOST_WAITING_BLOCKS 65536

int64_t mr_kernel_state_bytes(const mr_command *command) {
    uint64_t blocks = mr_kernel_blocks(mr_kernel_arguments_of(command));
    return blocks <= MOST_WAITING_BLOCKS ? (int64_t)mr_ptx_progress_bytes(blocks) : 0;
}

void mr_kernel_begin(const mr_command *command, void *state) {
    if (state) memset(state, 0, (size_t)mr_kernel_state_bytes(command));
    mr_machine *machine = command->machine;
    begin_count(command);
    mr_kernel_findings_begin(command, setting(machine, "kernel_checks") >= 2);
}

/* ---- running */

static void print(void *context, const char *text, size_t size) {
    (void)context;
    flockfile(stdout); /* blocks on other threads print, too */
    mr_output_write(stdout, text, size);
    funlockfile(stdout);
}

static bool interrupted(void *context) {
    const mr_machine *machine = ((const mr_command *)context)->machine;
    return machine->hooks.interrupted && machine->hooks.interrupted(machine->hooks.context);
}

bool mr_kernel_runs_alone(const mr_command *command) {
    return command->machine->steps.watches_writes || mr_kernel_time_samples(command);
}

static uint64_t resident_blocks(const mr_command *command) {
    const mr_kernel_arguments *a = mr_kernel_arguments_of(command);
    const mr_device *device = command->stream->device;
    mr_kernel_occupancy o = mr_kernel_occupancy_of(
        device, a->kernel, a->block[0] * a->block[1] * a->block[2], a->shared);
    return (uint64_t)o.blocks_per_sm * (uint64_t)device->properties.sm_count;
}

/* The bytes that a thread of the host may take for the local memory of the blocks that it runs. */
static uint64_t local_limit(const mr_command *command) {
    const mr_machine *machine = command->machine;
    if (!machine->memory.limit) return 0;
    uint64_t live = mr_machine_live_bytes(machine), limit = machine->memory.limit;
    uint64_t threads = (uint64_t)mr_parallel_threads(), blocks = (uint64_t)mr_kernel_items(command);
    uint64_t share = (live < limit ? limit - live : 0) / (threads < blocks ? threads : blocks);
    return share ? share : 1;
}

/* Without params, variables and progress. */
static mr_ptx_launch launch_of(const mr_command *command) {
    const mr_kernel_arguments *a = mr_kernel_arguments_of(command);
    const mr_device_properties *p = &command->stream->device->properties;
    mr_machine *machine = command->machine;
    return (mr_ptx_launch){
        .kernel = a->kernel,
        .name = command->name,
        .grid = {a->grid[0], a->grid[1], a->grid[2]},
        .block = {a->block[0], a->block[1], a->block[2]},
        .dynamic_shared = a->shared,
        .memory = mr_kernel_memory_of(command),
        .device = {.sm_count = (uint32_t)p->sm_count,
                   .max_shared = (uint32_t)p->shared_per_block,
                   .local_limit = local_limit(command),
                   .resident_blocks = resident_blocks(command),
                   .instruction_limit = (uint64_t)setting(machine, "kernel_instructions"),
                   .clock_hz = 1000000000},
        .check = setting(machine, "kernel_checks") > 0,
        .check_sources = setting(machine, "kernel_checks") > 0,
        .may_stray = setting(machine, "packed_memory") > 0,
        .print = machine->bodies.replayed || machine->bodies.quiet ? NULL : print,
        .count_every = (uint32_t)setting(machine, "kernel_profile_every"),
        .interrupted = interrupted,
        .context = (void *)(uintptr_t)command,
    };
}

static void end(const mr_command *command, bool is_done) {
    const mr_kernel_arguments *a = mr_kernel_arguments_of(command);
    mr_ptx_launch launch = launch_of(command);
    mr_kernel_findings_tell(command, &launch, is_done);
    if (is_counting(command->machine)) end_count(mr_kernel_code_count(a->code, a->kernel), command);
}

void mr_kernel_finish(const mr_command *command, void *state) {
    (void)state;
    end(command, true);
}

void mr_kernel_fail(const mr_command *command, void *state) {
    (void)state;
    end(command, false);
}

/* A sample of the first blocks of some launches is counted for their time, whether or not k:profile() wants it, too. */
static mr_status run_blocks(const mr_command *command, const mr_ptx_launch *launch, int64_t first,
                            int64_t end) {
    mr_ptx_launch timed = *launch;
    int64_t counted = end;
    timed.profile = mr_kernel_time_begin(command, first, &counted);
    timed.count_from = 0;
    if (timed.profile) {
        mr_status status = mr_ptx_run(&timed, (uint64_t)first, (uint64_t)counted);
        mr_kernel_time_end(command, timed.profile, launch->profile);
        first = counted;
        if (status || first == end) return status;
    }
    return mr_ptx_run(launch, (uint64_t)first, (uint64_t)end);
}

mr_status mr_kernel_run(const mr_command *command, void *state, int64_t first, int64_t end) {
    const mr_kernel_arguments *a = mr_kernel_arguments_of(command);
    uint32_t variables = mr_ptx_module_tree(a->code->ptx)->variable_count;
    uint64_t *space = calloc((a->kernel->param_bytes + 7) / 8 + variables + 1, sizeof *space);
    if (!space) return mr_no_memory("for %s", command->name);
    mr_ptx_launch launch = launch_of(command);
    mr_kernel_fill_variables(command, space);
    mr_kernel_fill_params(command, space + variables);
    launch.variables = space;
    launch.params = space + variables;
    launch.progress = state;
    if (a->cooperative) launch.workspace = ((mr_ptx_progress *)state)->workspace;
    attach_count(command, &launch);
    mr_kernel_findings_attach(command, &launch);
    mr_status status = run_blocks(command, &launch, first, end);
    free(space);
    if (status && status->code == MR_CODE_INTERRUPTED) { /* half of a block cannot be taken back */
        mr_error_destroy(status);
        status = mr_fail(MR_CODE_STOPPED, "%s was stopped in the middle of a block", command->name);
    }
    if (status) mr_command_blame(command, status);
    return status;
}
