/* Submission: the host's cost of a call, and the calls that block: a full launch queue (R56), and copies by the table
 * of R20-R24.
 *
 * A command that was enqueued must not be reported as failed, unless it can be removed again. A copy that
 * the host waits for stays gpu->keep until it is done. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ops/op.h"
#include "virtual/state.h"

#define ADVANCE_EVERY 64 /* submissions after which the device is brought to the host's present */

/* Lets the device catch up, so that finished work is removed. A later call reports a failure (R49). A free may come
 * from the collector, so it makes no choice and does not wait for long work. */
static void advance_sometimes(vgpu *gpu, mr_command_id submitted) {
    bool collected = submitted == MR_COMMAND_FREE;
    bool decides = gpu->chooser->every_submission && !collected;
    if (++gpu->since_advance < ADVANCE_EVERY && !decides) return;
    mr_error_destroy(mr_virtual_advance(gpu, collected ? MR_CHOICE_LOOK : MR_CHOICE_SUBMIT, NULL));
}

/* The cost of a kernel's launch beyond that of others: a library that chooses among kernels of its own. */
static uint64_t library_ns(const device_model *model, const mr_command *command) {
    const mr_op_family *family = command->u.op.row->family;
    if (!family->by_library || !family->by_library(command)) return 0;
    double beyond = model->product_ns - model->launch_ns;
    return beyond > 0 ? (uint64_t)beyond : 0;
}

/* The driver copies inside a device by a kernel, so the call costs what a launch does. */
static uint64_t copy_ns(const device_model *model, const mr_command *command) {
    bool by_kernel = command->u.copy.direction == MR_COPY_D2D;
    return (uint64_t)(by_kernel ? model->launch_ns : model->copy_call_ns);
}

/* When the device may start it, and the host's clock after the call. A kernel starts `launch_latency` after its call
 * began (a library's: after the library got to its launch). A marker starts after its call ended. So there is no gap
 * between an event and the kernel launched right after it, and events around a kernel show its duration. */
static uint64_t charge_call(vgpu *gpu, const mr_command *command) {
    const device_model *model = &gpu->model;
    uint64_t begin = gpu->host_ns, latency = (uint64_t)model->launch_latency_ns;
    double cost = 0;
    if (command->launch == MR_LAUNCH_REST) return begin + latency; /* the launch was charged for */
    switch (command->kind) {
    case MR_COMMAND_OP: begin = gpu->host_ns += library_ns(model, command); /* fall through */
    case MR_COMMAND_HOST_FUNCTION:
    case MR_COMMAND_FAULT: gpu->host_ns += (uint64_t)model->launch_ns; return begin + latency;
    case MR_COMMAND_COPY: gpu->host_ns += copy_ns(model, command); return begin + latency;
    case MR_COMMAND_RECORD:
        cost = command->u.event.event->timing ? model->record_timed_ns : model->record_ns;
        break;
    case MR_COMMAND_WAIT: cost = model->wait_event_ns; break;
    case MR_COMMAND_ALLOC: cost = model->alloc_ns; break;
    case MR_COMMAND_FREE:
        cost = model->free_ns;
        break;
        MR_HOST_LIST(MR_COMMAND_CASE)
        MR_ACCOUNT_LIST(MR_COMMAND_CASE) break;
    }
    gpu->host_ns += (uint64_t)cost;
    return gpu->host_ns + latency;
}

static mr_status enqueue(vgpu *gpu, work *w) {
    MR_TRY(mr_virtual_enqueue(w, charge_call(gpu, w->command)));
    mr_virtual_start_ready(gpu, gpu->device_ns);
    return MR_OK;
}

/* ---- copies: R20-R24 */

/* Decides the open choices of R23, if they matter. */
static mr_order_copy_rules copy_rules(const vgpu *gpu, const mr_command *command) {
    mr_order_copy copy = mr_order_copy_asked(command);
    copy.fits_staging = command->u.copy.bytes <= (uint64_t)gpu->set.staging_bytes;
    copy.pageable_writer = gpu->pageable_writers > 0;
    mr_order_copy_rules rules = mr_order_copy_of(&copy);
    if (!rules.is_open) return rules;
    bool to_host = copy.direction == MR_COPY_D2H;
    copy.early =
        mr_virtual_decide(gpu, to_host ? MR_OPEN_D2H_ASYNC : MR_OPEN_H2D_ASYNC, command,
                          to_host ? gpu->set.pageable_d2h_async : gpu->set.pageable_h2d_async);
    return mr_order_copy_of(&copy);
}

static mr_status stage(vgpu *gpu, work *w) {
    const mr_command *command = w->command;
    uint64_t bytes = command->u.copy.bytes;
    w->staged = malloc(sizeof *w->staged + bytes);
    if (!w->staged) return mr_no_memory("to stage %" PRIu64 " bytes of %s", bytes, command->name);
    w->staged->refs = 1;
    memcpy(w->staged->bytes, mr_tensor_data(command->operands[1].tensor), bytes);
    uint64_t begin = gpu->host_ns;
    gpu->host_ns += mr_virtual_bytes_ns(bytes, gpu->model.staging_gbs);
    mr_machine_host_worked(gpu->machine, begin, gpu->host_ns);
    return MR_OK;
}

/* Pageable memory is reached through a buffer of the driver, so the call takes the host longer than the bus is busy.
 * Data from the device is copied out of the buffer afterwards. A copy that is too large to be staged goes through it in
 * pieces, while earlier pieces are on the bus. */
static uint64_t buffer_ns(const device_model *model, const mr_command *command) {
    uint64_t bytes = command->u.copy.bytes, in, bus;
    bool to_device = command->u.copy.direction == MR_COPY_H2D;
    if (!to_device && command->u.copy.direction != MR_COPY_D2H) return 0;
    if (command->operands[to_device].tensor->storage->kind != MR_MEMORY_PAGEABLE) return 0;
    if (!to_device) return mr_virtual_bytes_ns(bytes, model->unstaging_gbs);
    in = mr_virtual_bytes_ns(bytes, model->staging_gbs);
    bus = mr_virtual_bytes_ns(bytes, model->h2d_gbs);
    return in > bus ? in - bus : 0;
}

/* A copy that the host waits for. */
static mr_status finish_copy(vgpu *gpu, work *w, uint64_t in_buffer) {
    MR_TRY(mr_virtual_wait_kept(w));
    uint64_t begin = gpu->host_ns;
    gpu->host_ns += in_buffer;
    if (in_buffer) mr_machine_host_stood(gpu->machine, begin, gpu->host_ns);
    return MR_OK;
}

/* Before the copy is enqueued. */
static mr_status prepare_copy(vgpu *gpu, work *w, mr_order_copy_rules rules) {
    if (rules.after_stream) MR_TRY(mr_virtual_wait_stream(w->queue));
    return rules.reads_source ? stage(gpu, w) : MR_OK;
}

/* R27: not work of a stream, so it ignores pending work, except for the guards of the memory. */
static void free_at_once(vgpu *gpu, const mr_command *command) {
    mr_order_facts facts = mr_order_facts_of_kind(MR_COMMAND_FREE, 0);
    mr_order_set leaves = mr_order_find(facts, MR_AT_LEAVE, MR_ALLOCATOR);
    gpu->host_ns += (uint64_t)gpu->model.free_ns;
    for (; leaves; leaves &= leaves - 1) {
        const mr_order_row *row = mr_order_first(leaves);
        if (row->to == MR_PLACE_FREED) mr_pool_guard(command->u.storage, NULL, (mr_place)row->from);
    }
    mr_pool_free_now(command->u.storage);
}

mr_status mr_virtual_submit(const mr_command *command, bool *out_taken) {
    vgpu *gpu = vgpu_of(command->machine);
    queue *q = command->stream->impl;
    bool is_copy = command->kind == MR_COMMAND_COPY;
    mr_order_copy_rules rules = {0};
    if (is_copy) rules = copy_rules(gpu, command);
    work *w;
    if (command->machine->lost) return mr_error_copy(command->machine->lost); /* by an observer */
    if (mr_command_frees_at_once(command)) {
        free_at_once(gpu, command);
        *out_taken = true;
        return MR_OK;
    }
    if (takes_place(command) && q->launches >= (uint64_t)gpu->set.launch_queue_depth)
        MR_TRY(mr_virtual_wait_launch(q));
    MR_TRY(mr_virtual_work_create(gpu, command, &w));
    mr_status status = is_copy ? prepare_copy(gpu, w, rules) : MR_OK;
    if (rules.until_done) gpu->keep = w;
    if (!status) status = enqueue(gpu, w);
    if (status) {
        gpu->keep = NULL;
        mr_virtual_work_destroy(w);
        return status;
    }
    if (rules.until_done) MR_TRY(finish_copy(gpu, w, buffer_ns(&gpu->model, command)));
    *out_taken = true;
    if (!command->launch) advance_sometimes(gpu, command->kind); /* at the end of the launch */
    return MR_OK;
}
