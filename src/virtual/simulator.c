/* The slots that a simulated device has beyond a real one: see model/simulator.h. */
#include <stdio.h>
#include <string.h>

#include "virtual/chooser.h"

/* ---- choosers */

static mr_status refuse_in_host_function(const mr_machine *machine, const char *what) {
    if (!machine->host_function.running) return MR_OK;
    return mr_fail(MR_CODE_NOT_PERMITTED, "%s: not permitted inside a host function", what);
}

/* Ready steps go to the new chooser, oldest first; steps that have begun are finished first, so no chooser gets work
 * that another one has cut into parts. */
static mr_status hand_over(vgpu *gpu, mr_chooser *chooser) {
    mr_virtual_checkpoints_void(gpu);
    mr_status status = mr_virtual_finish_started(gpu);
    gpu->chooser->clear(gpu->chooser);
    gpu->chooser->destroy(gpu->chooser);
    gpu->chooser = chooser;
    for (work *w = gpu->oldest; w; w = w->newer)
        if (!w->unfinished) mr_virtual_offer_ready(w);
    return status;
}

static mr_status use_chooser(mr_machine *machine, mr_chooser *chooser) {
    vgpu *gpu = vgpu_of(machine);
    mr_error_destroy(mr_virtual_advance(gpu, MR_CHOICE_LOOK, NULL)); /* R49: for a later call */
    return hand_over(gpu, chooser);
}

static mr_status set_chooser(mr_machine *machine, const char *name) {
    vgpu *gpu = vgpu_of(machine);
    mr_chooser *chooser;
    MR_TRY(refuse_in_host_function(machine, "chooser"));
    MR_TRY(mr_virtual_chooser_create(gpu, name, &chooser));
    return use_chooser(machine, chooser);
}

static const char *chooser(mr_machine *machine) {
    return vgpu_of(machine)->chooser->name;
}

/* ---- stepping */

static void describe(const vgpu *gpu, const mr_device_step *step, char *text, size_t size) {
    const work *w = step->work;
    mr_command_describe(step->command, text, size);
    const body *b = w->body;
    size_t used = strlen(text);
    if (!b || gpu->chooser->whole) return;
    const chunk *c = step->part;
    uint32_t done = c ? c->slices_done : b->slices_done, all = c ? c->slices : b->slices;
    if (all > 1 && done < all) snprintf(text + used, size - used, ", part %u of %u", done + 1, all);
}

/* The user has waited for it, so the host's clock follows. */
static mr_status carry_out(vgpu *gpu, const mr_device_step *step, char *text, size_t size) {
    work *w = step->work;
    if (!gpu->chooser->timed && is_body(step->command) && !w->body) mr_virtual_prepare(w);
    describe(gpu, step, text, size);
    mr_status status = mr_virtual_carry_out(gpu, step);
    mr_virtual_follow(gpu);
    return status;
}

/* Under the timed chooser time passes for all streams until this one has moved. */
static mr_status step_timed(vgpu *gpu, const mr_stream *stream, bool *out_moved, char *text,
                            size_t size) {
    mr_moment moment = {.point = MR_CHOICE_STEP, .until = UINT64_MAX};
    const queue *q = stream ? stream->impl : NULL;
    mr_device_step step;
    if (q && !q->head) return MR_OK;
    while (gpu->chooser->take(gpu->chooser, &moment, &step)) {
        *out_moved = !q || ((work *)step.work)->queue == q;
        MR_TRY(carry_out(gpu, &step, text, size));
        if (*out_moved || (q && !q->head)) return MR_OK;
        moment.taken++;
    }
    return MR_OK;
}

static mr_status step(mr_machine *machine, mr_stream *stream, bool *out_moved, char *out_text,
                      size_t text_size) {
    vgpu *gpu = vgpu_of(machine);
    *out_moved = false;
    *out_text = 0;
    if (gpu->chooser->timed) return step_timed(gpu, stream, out_moved, out_text, text_size);
    mr_moment moment = {.point = MR_CHOICE_STEP, .until = UINT64_MAX};
    mr_device_step next;
    if (stream) {
        const queue *q = stream->impl;
        if (!q->head || q->head->unfinished) return MR_OK;
        next = (mr_device_step){.command = q->head->command, .work = q->head};
        gpu->chooser->withdraw(gpu->chooser, q->head);
    } else if (!gpu->chooser->take(gpu->chooser, &moment, &next)) {
        return MR_OK;
    }
    *out_moved = true;
    return carry_out(gpu, &next, out_text, text_size);
}

static mr_status pass(mr_machine *machine, uint64_t nanoseconds) {
    vgpu *gpu = vgpu_of(machine);
    gpu->host_ns += nanoseconds;
    mr_status status = mr_virtual_advance(gpu, MR_CHOICE_LOOK, NULL);
    /* Also where it had nothing to do, so that mr.machine.time() goes on with the clock. */
    if (gpu->chooser->timed && gpu->device_ns < gpu->host_ns) gpu->device_ns = gpu->host_ns;
    return status;
}

/* ---- looking in */

static void find_predecessor(const work *w, mr_pending *out) {
    for (const edge *e = w->in; e; e = e->u.next_in) {
        if (!e->from || e->from->queue == w->queue) continue;
        out->waits_for = e->from->command;
        out->held_by = (mr_cause)e->cause;
        return;
    }
    out->held_by = MR_CAUSE_STREAM;
}

/* Finds the command that has the engine for which `w` is ready. */
static void find_holder(const vgpu *gpu, const work *w, mr_pending *out) {
    const body *b = w->body;
    if (b->engine == ENGINE_NONE) return;
    if (w->gated) {
        out->held_by = MR_CAUSE_CONNECTION;
        return;
    }
    for (const work *other = gpu->oldest; other; other = other->newer) {
        const body *running = other->state == WORK_STARTED ? other->body : NULL;
        if (!running || running->engine != b->engine) continue;
        if (other->queue->device != w->queue->device) continue;
        if (b->engine == ENGINE_COPY && running->copy_engine[0] != b->copy_engine[0]) continue;
        out->held_by = b->engine == ENGINE_SM ? MR_CAUSE_MULTIPROCESSORS : MR_CAUSE_COPY_ENGINE;
        out->waits_for = other->command;
        return;
    }
}

static void count_parts(const vgpu *gpu, const work *w, mr_pending *out) {
    const body *b = w->body;
    out->parts = 1;
    if (!b || gpu->chooser->whole) return;
    if (!gpu->chooser->timed) {
        out->part = b->slices_done;
        out->parts = b->slices;
        return;
    }
    out->part = b->blocks_done;
    out->parts = b->blocks;
}

static mr_pending look_at(const vgpu *gpu, const work *w) {
    mr_pending one = {.command = w->command,
                      .running = w->state == WORK_STARTED,
                      .ready = !w->unfinished,
                      .start = w->time};
    count_parts(gpu, w, &one);
    if (w->unfinished) find_predecessor(w, &one);
    else if (gpu->chooser->timed && !one.running && w->body) find_holder(gpu, w, &one);
    else if (gpu->chooser->timed && !one.running && w->time > gpu->host_ns)
        one.held_by = MR_CAUSE_HOST;
    return one;
}

static void pending(mr_machine *machine, void (*see)(void *context, const mr_pending *pending),
                    void *context) {
    vgpu *gpu = vgpu_of(machine);
    if (!machine->host_function.running && !machine->lost) /* what is done by now is not pending */
        mr_error_destroy(mr_virtual_advance(gpu, MR_CHOICE_LOOK, NULL));
    for (int i = 0; i < gpu->device_count; i++)
        for (const queue *q = gpu->devices[i].first; q; q = q->next)
            for (work *w = q->head; w; w = w->after) {
                mr_pending one = look_at(gpu, w);
                see(context, &one);
            }
}

static void clocks(const mr_machine *machine, uint64_t out_clocks[2]) {
    const vgpu *gpu = machine->backend_state;
    out_clocks[0] = gpu->host_ns;
    out_clocks[1] = gpu->device_ns;
}

static void set_clocks(mr_machine *machine, const uint64_t given[2]) {
    vgpu *gpu = vgpu_of(machine);
    gpu->host_ns = given[0];
    gpu->device_ns = given[1];
}

static mr_status begin_member(mr_machine *machine, const mr_command *member, uint64_t *out_time) {
    vgpu *gpu = vgpu_of(machine);
    uint64_t kept[2];
    clocks(machine, kept);
    mr_status status = mr_virtual_wait_member(gpu, member, out_time);
    if (gpu->chooser->timed) set_clocks(machine, kept);
    return status;
}

static uint64_t device_time(mr_machine *machine) {
    return vgpu_of(machine)->device_ns;
}

/* ---- setting */

static mr_status check_idle(const vgpu *gpu, const char *what) {
    MR_TRY(refuse_in_host_function(gpu->machine, what));
    if (gpu->pending)
        return mr_fail(MR_CODE_NOT_PERMITTED,
                       "%s: %zu operation%s pending: call mr.synchronize() on each device first",
                       what, (size_t)gpu->pending, gpu->pending == 1 ? " is" : "s are");
    for (int i = 0; i < gpu->device_count; i++) {
        const mr_memory_stats *memory = &gpu->devices[i].device->memory;
        if (memory->allocations)
            return mr_fail(MR_CODE_NOT_PERMITTED,
                           "%s: %llu tensor%s in the memory of device %d: free them first", what,
                           (unsigned long long)memory->allocations,
                           memory->allocations == 1 ? " is" : "s are", i);
    }
    return MR_OK;
}

static mr_status set_up_devices(vgpu *gpu) {
    mr_virtual_checkpoints_void(gpu);
    for (int i = 0; i < gpu->device_count; i++) {
        mr_pool_reset(&gpu->devices[i]);
        mr_virtual_device_setup(&gpu->devices[i]);
        MR_TRY(mr_virtual_pool_setup(&gpu->devices[i]));
    }
    return MR_OK;
}

static mr_status set_model(mr_machine *machine, const char *name) {
    vgpu *gpu = vgpu_of(machine);
    mr_error_destroy(mr_virtual_advance(gpu, MR_CHOICE_LOOK, NULL));
    device_model wanted = gpu->model;
    MR_TRY(mr_device_model_load(name, &wanted)); /* a wrong name is the first error */
    MR_TRY(check_idle(gpu, "model"));
    gpu->model = wanted;
    return set_up_devices(gpu);
}

static const char *model(mr_machine *machine) {
    return vgpu_of(machine)->model.known;
}

static mr_status get_setting(mr_machine *machine, const char *name, int64_t *out_value) {
    return mr_settings_get(&vgpu_of(machine)->set, name, out_value);
}

static mr_status set_setting(mr_machine *machine, const char *name, int64_t value) {
    vgpu *gpu = vgpu_of(machine);
    int64_t before;
    MR_TRY(mr_settings_get(&gpu->set, name, &before));
    if (value == before) return MR_OK; /* writing back what settings() returned is always fine */
    bool is_layout = strcmp(name, "memory_bytes") == 0 || strcmp(name, "packed_memory") == 0;
    if (is_layout) {
        char what[64];
        snprintf(what, sizeof what, "setting `%s`", name);
        MR_TRY(check_idle(gpu, what));
    }
    MR_TRY(mr_settings_set(&gpu->set, name, value));
    return is_layout ? set_up_devices(gpu) : MR_OK;
}

/* Pending work was dropped with the loss. */
static void revive(mr_machine *machine) {
    vgpu_of(machine)->out_of_memory = false;
}

static void lags(mr_machine *machine, mr_lags *out) {
    const device_model *model = &vgpu_of(machine)->model;
    *out = (mr_lags){.latency = (uint64_t)model->launch_latency_ns,
                     .launch = (uint64_t)model->launch_ns,
                     .copy_call = (uint64_t)model->copy_call_ns,
                     .wait = (uint64_t)model->wait_latency_ns,
                     .handover = (uint64_t)model->handover_ns};
}

const mr_simulator mr_virtual_simulator = {
    .set_chooser = set_chooser,
    .use_chooser = use_chooser,
    .chooser = chooser,
    .step = step,
    .pass = pass,
    .pending = pending,
    .device_time = device_time,
    .clocks = clocks,
    .set_clocks = set_clocks,
    .begin_member = begin_member,
    .set_model = set_model,
    .model = model,
    .settings = mr_settings_list,
    .get_setting = get_setting,
    .set_setting = set_setting,
    .revive = revive,
    .memory_at = mr_virtual_memory_at,
    .will_write = mr_virtual_will_write,
    .checkpoint = mr_virtual_checkpoint,
    .checkpoint_step = mr_virtual_checkpoint_step,
    .restore = mr_virtual_restore,
    .checkpoint_drop = mr_virtual_checkpoint_drop,
    .checkpoint_forget = mr_virtual_checkpoint_forget,
    .is_new = mr_virtual_is_new,
    .lags = lags,
    .checkpoint_bytes = mr_virtual_checkpoint_bytes,
    .spare_bytes = mr_virtual_spare_bytes,
    .drop_spares = mr_virtual_drop_spares,
};
