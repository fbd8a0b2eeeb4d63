/* The row `kernel` on the CPU: the items of a launch are its blocks, and src/ptx runs them on the operands' bytes. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "model/backend.h"
#include "model/observer.h"
#include "ops/kernel.h"
#include "ptx/profile.h"
#include "ptx/watch.h"

int64_t mr_kernel_items(const mr_command *command) {
    const mr_kernel_arguments *a = mr_kernel_arguments_of(command);
    return (int64_t)a->grid[0] * a->grid[1] * a->grid[2];
}

/* Bytes are those that it may touch, each counted once. Most instructions of ordinary kernels are not floating-point ones,
 * but they take the same issue slots. */
void mr_kernel_cost(const mr_command *command, mr_cost *out_cost) {
    const mr_kernel_arguments *a = mr_kernel_arguments_of(command);
    uint64_t blocks = (uint64_t)mr_kernel_items(command);
    *out_cost = (mr_cost){.flops = a->instructions,
                          .bytes = a->bytes,
                          .blocks = blocks > UINT32_MAX ? UINT32_MAX : (uint32_t)blocks,
                          .threads = a->block[0] * a->block[1] * a->block[2]};
}

static uint64_t address_of(const mr_command *command, const mr_kernel_address *a) {
    return command->operands[a->operand].tensor->storage->address + a->offset;
}

void mr_kernel_fill_params(const mr_command *command, void *out) {
    const mr_kernel_arguments *a = mr_kernel_arguments_of(command);
    if (a->kernel->param_bytes) memcpy(out, mr_kernel_params_of(a), a->kernel->param_bytes);
    for (uint32_t i = 0; i < a->pointer_count; i++) {
        uint64_t address = address_of(command, &a->addresses[i]);
        memcpy((char *)out + a->addresses[i].at, &address, sizeof address);
    }
}

/* ---- the memory that it sees */

/* The storage of an operand in which the address lies; NULL: none. */
static mr_storage *storage_at(const mr_command *command, uint64_t address) {
    for (uint32_t i = 0; i < command->operand_count; i++) {
        mr_storage *s = command->operands[i].tensor->storage;
        if (address - s->address < s->bytes) return s;
    }
    return NULL;
}

static mr_ptx_range range_of(mr_storage *storage) {
    return (mr_ptx_range){.first = storage->address,
                          .end = storage->address + storage->bytes,
                          .host = storage->host,
                          .owner = storage};
}

/* An operand's storage, which is nearly always right; else whatever the device has there: a pointer that lay in memory. */
static bool find_range(void *context, uint64_t address, mr_ptx_range *out_range) {
    const mr_command *command = context;
    mr_storage *storage = storage_at(command, address);
    if (storage) {
        *out_range = range_of(storage);
        return true;
    }
    const mr_simulator *simulator = command->machine->backend->simulator;
    mr_memory_block block;
    if (!simulator || !simulator->memory_at(command->machine, address, &block)) return false;
    *out_range = (mr_ptx_range){.first = block.first, .end = block.end, .host = block.host};
    return true;
}

/* For checkpoints the backend has kept the bytes of the operands. A kernel may write elsewhere: what its code does not tell
 * counts as the tensor that was passed. So all of each range is kept, by one thread. */
static void will_write(void *context, const mr_ptx_range *range) {
    const mr_command *command = context;
    const mr_simulator *simulator = command->machine->backend->simulator;
    if (simulator && command->machine->watches_writes)
        simulator->will_write(command->machine,
                              &(mr_memory_block){range->first, range->end, range->host});
}

static void describe_storage(const mr_storage *storage, char *out, size_t size) {
    char made[120] = "";
    if (storage->made.file)
        snprintf(made, sizeof made, ", made at %s:%d", storage->made.file, storage->made.line);
    snprintf(out, size, "%s (%" PRIu64 " bytes%s)",
             storage->name ? mr_name_text(storage->name) : "a tensor", storage->bytes, made);
}

/* What is there or near: "y (...)", "4 bytes past the end of y (...)", "8 bytes before y (...)". */
#define NEAR ((uint64_t)1 << 20) /* bytes: farther away, a tensor has nothing to do with it */

static void describe(void *context, uint64_t address, char *out, size_t size) {
    const mr_command *command = context;
    const mr_storage *nearest = NULL;
    uint64_t distance = UINT64_MAX;
    bool after = false;
    for (uint32_t i = 0; i < command->operand_count; i++) {
        const mr_storage *s = command->operands[i].tensor->storage;
        if (s->name && s->name->text[0] == '$') continue; /* a string of the compiler's */
        bool past = address >= s->address;
        uint64_t d = !past                             ? s->address - address
                     : address - s->address < s->bytes ? 0
                                                       : address - s->address - s->bytes;
        if (d >= distance) continue;
        nearest = s;
        distance = d;
        after = past;
    }
    char text[200];
    if (!nearest || distance > NEAR) {
        snprintf(out, size, "where no tensor is");
        return;
    }
    describe_storage(nearest, text, sizeof text);
    uint64_t inside = address - nearest->address;
    if (inside < nearest->bytes) snprintf(out, size, "%s", text);
    else if (after && !distance) snprintf(out, size, "just past the end of %s", text);
    else if (after) snprintf(out, size, "%" PRIu64 " bytes past the end of %s", distance, text);
    else snprintf(out, size, "%" PRIu64 " bytes before %s", distance, text);
}

/* ---- races: what was seen of one launch, from its first block to its last */

typedef struct {
    const ptx_instruction *instruction;
    char *text;
} unset_read;

typedef struct {
    mr_ptx_watch *watch;
    pthread_mutex_t lock; /* guards the list: blocks run on several threads */
    MR_VEC(unset_read) unset_reads;
} findings;

static void destroy_findings(void *data) {
    findings *f = data;
    mr_ptx_watch_destroy(f->watch);
    for (size_t i = 0; i < f->unset_reads.count; i++) free(f->unset_reads.items[i].text);
    mr_vec_free(&f->unset_reads);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

static findings *make_findings(const mr_command *command) {
    const mr_kernel_arguments *a = mr_kernel_arguments_of(command);
    findings *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    pthread_mutex_init(&f->lock, NULL);
    f->watch = mr_ptx_watch_create(a->code->ptx, (uint64_t)mr_kernel_items(command),
                                   a->block[0] * a->block[1] * a->block[2]);
    if (f->watch) return f;
    destroy_findings(f);
    return NULL;
}

static mr_body_note *note_of(const mr_command *command) {
    mr_machine *machine = command->machine;
    for (size_t i = 0; i < machine->body_notes.count; i++)
        if (machine->body_notes.items[i].command == command) return &machine->body_notes.items[i];
    return NULL;
}

static void drop_note(const mr_command *command) {
    mr_machine *machine = command->machine;
    mr_body_note *note = note_of(command);
    if (!note) return;
    note->destroy(note->data);
    *note = machine->body_notes.items[--machine->body_notes.count];
}

static int64_t setting(mr_machine *machine, const char *name) {
    int64_t value = 0;
    const mr_simulator *simulator = machine->backend->simulator;
    if (simulator) mr_error_destroy(simulator->get_setting(machine, name, &value));
    return value;
}

/* ---- counts */

#define ENOUGH_THREADS ((uint64_t)1 << 21)

static bool is_counting(mr_machine *machine) {
    return !machine->replays && setting(machine, "kernel_profile");
}

static void begin_count(mr_machine *machine, const mr_kernel_arguments *a, int64_t blocks) {
    mr_kernel_count *count = mr_kernel_code_count(a->code, a->kernel);
    if (!is_counting(machine)) return;
    count->launched += (uint64_t)blocks;
    if (!count->profile) count->profile = mr_ptx_profile_create(a->code->ptx); /* or not at all */
}

static mr_ptx_profile *count_of(mr_machine *machine, const mr_kernel_arguments *a) {
    mr_ptx_profile *profile = mr_kernel_code_count(a->code, a->kernel)->profile;
    if (!profile || !is_counting(machine)) return NULL;
    uint64_t threads = a->block[0] * a->block[1] * a->block[2];
    return mr_ptx_profile_blocks(profile) * threads < ENOUGH_THREADS ? profile : NULL;
}

/* ---- the row */

/* A simulator that goes back to a checkpoint drops the notes: such a launch runs on without a watch, since blocks that the
 * watch has seen run again. */
void mr_kernel_begin(const mr_command *command, void *state) {
    (void)state;
    mr_machine *machine = command->machine;
    const mr_kernel_arguments *a = mr_kernel_arguments_of(command);
    drop_note(command); /* of a run that was given up */
    begin_count(machine, a, mr_kernel_items(command));
    if (!mr_observers_want_races(machine) || setting(machine, "kernel_checks") < 2) return;
    mr_body_note note = {command, make_findings(command), destroy_findings};
    /* Without memory for it, nothing is looked for. */
    if (note.data && !mr_vec_push(&machine->body_notes, note)) destroy_findings(note.data);
}

/* Of one line, the first is kept. */
static void note_unset_read(void *context, const ptx_instruction *instruction, const char *text) {
    const mr_body_note *note = note_of(context);
    if (!note) return;
    findings *f = note->data;
    pthread_mutex_lock(&f->lock);
    size_t i = 0;
    while (i < f->unset_reads.count &&
           f->unset_reads.items[i].instruction->place.outer_line != instruction->place.outer_line)
        i++;
    unset_read read = {instruction, i == f->unset_reads.count ? strdup(text) : NULL};
    if (read.text && !mr_vec_push(&f->unset_reads, read)) free(read.text);
    pthread_mutex_unlock(&f->lock);
}

static mr_site site_of(mr_machine *machine, const ptx_tree *tree, const ptx_instruction *i) {
    const char *file = tree->files[i->place.outer_file];
    return (mr_site){mr_intern(&machine->files, file, strlen(file), "kernel"),
                     (int)i->place.outer_line};
}

static void tell_race(const mr_command *command, const mr_ptx_watch *watch, const ptx_race *race,
                      const mr_ptx_launch *launch) {
    const ptx_tree *tree = mr_ptx_module_tree(mr_kernel_arguments_of(command)->code->ptx);
    char why[400];
    mr_kernel_race r = {
        .storage = race->space == PTX_GLOBAL ? storage_at(command, race->address) : NULL,
        .first_byte = race->address,
        .first_access = race->first.access,
        .second_access = race->second.access,
        .first_where = site_of(command->machine, tree, race->first.instruction),
        .second_where = site_of(command->machine, tree, race->second.instruction),
        .count = race->count,
        .why = mr_ptx_race_text(watch, race, launch, why, sizeof why),
        .advice = race->advice,
    };
    if (r.storage) r.first_byte -= r.storage->address;
    r.last_byte = r.first_byte;
    mr_observers_raced(command->machine, command, &r);
}

static mr_ptx_launch launch_of(const mr_command *command);

static void tell_unset_read(const mr_command *command, const unset_read *read) {
    const ptx_tree *tree = mr_ptx_module_tree(mr_kernel_arguments_of(command)->code->ptx);
    mr_kernel_race r = {
        .is_unset_read = true,
        .second_access = MR_READ,
        .first_where = command->where,
        .second_where = site_of(command->machine, tree, read->instruction),
        .why = read->text,
        .advice = "write the bytes before they are read, or do not use what was read",
    };
    mr_observers_raced(command->machine, command, &r);
}

void mr_kernel_finish(const mr_command *command, void *state) {
    (void)state;
    const mr_body_note *note = note_of(command);
    if (!note) return;
    const findings *f = note->data;
    const mr_ptx_watch *watch = f->watch;
    mr_ptx_launch launch = launch_of(command);
    for (uint32_t i = 0; i < mr_ptx_watch_race_count(watch); i++)
        tell_race(command, watch, mr_ptx_watch_race(watch, i), &launch);
    for (size_t i = 0; i < f->unset_reads.count; i++)
        tell_unset_read(command, &f->unset_reads.items[i]);
    drop_note(command);
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
    return machine->interrupted && machine->interrupted(machine->hook_context);
}

bool mr_kernel_runs_alone(const mr_command *command) {
    return command->machine->watches_writes;
}

static void fill_variables(const mr_command *command, const mr_kernel_arguments *a, uint64_t *out) {
    for (uint32_t i = 0; i < a->variable_count; i++) {
        const mr_kernel_address *v = &a->addresses[a->pointer_count + i];
        out[v->at] = address_of(command, v);
    }
}

/* Without params and variables. */
static mr_ptx_launch launch_of(const mr_command *command) {
    const mr_kernel_arguments *a = mr_kernel_arguments_of(command);
    const mr_device_properties *p = &command->stream->device->properties;
    mr_machine *machine = command->machine;
    void *context = (void *)(uintptr_t)command;
    return (mr_ptx_launch){
        .kernel = a->kernel,
        .name = command->name,
        .grid = {a->grid[0], a->grid[1], a->grid[2]},
        .block = {a->block[0], a->block[1], a->block[2]},
        .dynamic_shared = a->shared,
        .memory = {context, find_range, will_write, describe},
        .device = {.sm_count = (uint32_t)p->sm_count,
                   .max_shared = (uint32_t)p->shared_per_block,
                   .instruction_limit = (uint64_t)setting(machine, "kernel_instructions"),
                   .clock_hz = 1000000000},
        .check = setting(machine, "kernel_checks") > 0,
        .print = machine->replays ? NULL : print,
        .interrupted = interrupted,
        .context = context,
    };
}

mr_status mr_kernel_run(const mr_command *command, void *state, int64_t first, int64_t end) {
    (void)state;
    const mr_kernel_arguments *a = mr_kernel_arguments_of(command);
    uint32_t variables = mr_ptx_module_tree(a->code->ptx)->variable_count;
    uint64_t *space = calloc((a->kernel->param_bytes + 7) / 8 + variables + 1, sizeof *space);
    if (!space) return mr_fail(MR_CODE_OUT_OF_MEMORY, "%s: host memory is out", command->name);
    mr_ptx_launch launch = launch_of(command);
    fill_variables(command, a, space);
    mr_kernel_fill_params(command, space + variables);
    launch.variables = space;
    launch.params = space + variables;
    launch.profile = count_of(command->machine, a);
    const mr_body_note *note = note_of(command);
    if (note) {
        launch.watch = ((const findings *)note->data)->watch;
        launch.unset_read = note_unset_read;
    }
    mr_status status = mr_ptx_run(&launch, (uint64_t)first, (uint64_t)end);
    free(space);
    if (status && status->code == MR_CODE_INTERRUPTED) { /* half of a block cannot be taken back */
        mr_error_destroy(status);
        status = mr_fail(MR_CODE_LAUNCH_TIMEOUT,
                         "%s was stopped by Ctrl-C in the middle of a block", command->name);
    }
    if (status) mr_command_blame(command, status);
    return status;
}
