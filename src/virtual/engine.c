/* Engines: SMs with a block scheduler, and copy engines. Under the timed chooser they determine how long
 * work takes and what runs at the same time. Under the other choosers, one piece of work runs at a time.
 *
 * The SMs of a device are one pool of threads. The blocks of a kernel start as soon as enough threads are free, by
 * priority, then in the order in which the kernels became ready. Running blocks are never interrupted, and no kernel
 * overtakes one whose blocks have not all started (R8, R54). Blocks that start together are one chunk.
 *
 * Invariant: device->free_threads + the threads of the running chunks == capacity. */

#include "ops/op.h"
#include "virtual/state.h"

/* a * b / c without overflow. */
static uint64_t scale(uint64_t a, uint64_t b, uint64_t c) {
    return (uint64_t)((unsigned __int128)a * b / c);
}

static void offer(work *w, uint64_t time, void *part) {
    vgpu *gpu = w->queue->device->gpu;
    mr_device_step step = {time, w->command, w, part};
    if (!gpu->chooser->offer(gpu->chooser, &step)) gpu->out_of_memory = true;
}

/* ---- kernels with blocks still to start: a heap */

static bool goes_before(const work *a, const work *b) {
    if (a->queue->priority != b->queue->priority) return a->queue->priority < b->queue->priority;
    return a->body->turn < b->body->turn;
}

static bool waiting_push(vdevice *device, work *w) {
    size_t i = device->waiting_count;
    if (i == device->waiting_bytes / sizeof w &&
        !mr_region_double(&device->gpu->region, &device->waiting, &device->waiting_bytes,
                          8 * sizeof w))
        return false;
    work **items = device->waiting;
    device->waiting_count++;
    for (; i && goes_before(w, items[(i - 1) / 2]); i = (i - 1) / 2) items[i] = items[(i - 1) / 2];
    items[i] = w;
    return true;
}

static void waiting_pop(vdevice *device) {
    work **items = device->waiting;
    size_t count = --device->waiting_count, i = 0;
    work *last = items[count];
    if (!count) return;
    for (size_t child; (child = 2 * i + 1) < count; i = child) {
        if (child + 1 < count && goes_before(items[child + 1], items[child])) child++;
        if (!goes_before(items[child], last)) break;
        items[i] = items[child];
    }
    items[i] = last;
}

/* ---- chunks */

static chunk *chunk_new(vgpu *gpu, work *w) {
    body *b = w->body;
    chunk *c = b->first_chunk_used ? mr_slab_alloc(&gpu->chunks) : &b->first_chunk;
    if (!c) return NULL;
    if (c == &b->first_chunk) b->first_chunk_used = true;
    *c = (chunk){.work = w, .next = b->chunks};
    if (b->chunks) b->chunks->previous = c;
    b->chunks = c;
    return c;
}

static void chunk_free(vgpu *gpu, chunk *c) {
    body *b = c->work->body;
    if (c->previous) c->previous->next = c->next;
    else b->chunks = c->next;
    if (c->next) c->next->previous = c->previous;
    if (c == &b->first_chunk) b->first_chunk_used = false;
    else mr_slab_free(&gpu->chunks, c);
}

static void offer_slice(chunk *c) {
    offer(c->work, c->start + scale(c->duration, c->slices_done + 1, c->slices), c);
}

/* The next `count` blocks begin to run, on the threads that the command `holder` had before. */
static bool start_blocks(vgpu *gpu, work *w, uint32_t count, uint64_t now, uint64_t holder) {
    body *b = w->body;
    chunk *c = chunk_new(gpu, w);
    if (!c) return false;
    uint64_t items = (uint64_t)b->items, first = scale(items, b->blocks_given, b->blocks);
    b->blocks_given += count;
    c->blocks = count;
    c->start = now;
    c->duration = b->block_ns + (b->blocks_given == b->blocks ? b->rounding : 0);
    c->first = c->next_item = (int64_t)first;
    c->items = (int64_t)(scale(items, b->blocks_given, b->blocks) - first);
    c->slices = b->slices;
    c->holder = holder;
    if (count != b->blocks) { /* its share of the slices, at least one */
        c->slices = (uint32_t)scale(b->slices, count, b->blocks);
        if (!c->slices) c->slices = 1;
    }
    w->state = WORK_STARTED;
    if (!w->command->meeting) offer_slice(c);
    return true;
}

/* A member of a meeting has all its multiprocessors. The meeting ends when the last member's work does. */
static void member_begins(work *w, uint64_t now) {
    work *last = mr_virtual_meet_begin(w, now);
    if (!last) return;
    last->body->duration = mr_virtual_meeting_ns(last->queue->device, last->command->meeting);
    last->body->items = last->command->u.op.row->items(last->command);
    /* If ranks take turns, a meeting that began earlier may be carried out later than others. */
    uint64_t begin = last->u.member.meet->newest;
    offer(last, begin + last->body->duration, last->body->chunks);
}

/* ---- hardware queues: a kernel begins after those that were submitted before it to the same queue (R55). Only the
 * beginning counts, and only kernels; members of meetings are left out, since they begin together. */

static bool is_queued(const work *w) {
    return w->command->kind == MR_COMMAND_OP && !w->command->meeting;
}

/* The next older kernel of another stream in the same hardware queue that has not begun; NULL: there is none. */
static const work *in_front(const work *w) {
    uint32_t queues = (uint32_t)w->queue->device->gpu->set.connections;
    if (!queues || !is_queued(w)) return NULL;
    for (const work *o = w->older; o; o = o->older) {
        bool shares = o->queue->device == w->queue->device && o->queue != w->queue &&
                      o->queue->stream_id % queues == w->queue->stream_id % queues;
        if (shares && is_queued(o) && o->state != WORK_STARTED) return o;
    }
    return NULL;
}

static void open_gate(work *w) {
    w->gated = false;
    w->queue->device->gated--;
}

/* ---- the block scheduler */

static void start_waiting(vdevice *device, uint64_t now) {
    vgpu *gpu = device->gpu;
    device->dispatch = false;
    while (device->waiting_count) {
        work *w = device->waiting[0];
        body *b = w->body;
        bool fresh = !b->blocks_given;
        if (fresh && device->resident >= (uint32_t)gpu->model.max_resident_grids) return;
        uint64_t fit = device->free_threads / b->unit;
        uint32_t left = b->blocks - b->blocks_given;
        if (!fit) return;
        uint32_t count = fit < left ? (uint32_t)fit : left;
        if (!start_blocks(gpu, w, count, now, device->last_seq)) {
            gpu->out_of_memory = true;
            return;
        }
        device->free_threads -= (uint64_t)count * b->unit;
        if (fresh) device->resident++;
        if (count == left) waiting_pop(device);
        if (count == left && w->command->meeting) member_begins(w, now);
    }
}

static bool waiting_admit(work *w) {
    vdevice *device = w->queue->device;
    w->body->turn = device->gpu->turns++;
    device->dispatch = true;
    return waiting_push(device, w);
}

/* Works whose turn it is in their hardware queue. */
static void open_gates(vdevice *device, uint64_t now) {
    for (work *w = device->gpu->oldest; w && device->gated; w = w->newer) {
        if (!w->gated || w->queue->device != device || in_front(w)) continue;
        open_gate(w);
        w->time = now;
        if (!waiting_admit(w)) device->gpu->out_of_memory = true;
    }
}

static void dispatch(vgpu *gpu, uint64_t now) {
    for (int i = 0; i < gpu->device_count; i++) {
        vdevice *device = &gpu->devices[i];
        if (device->gated) open_gates(device, now);
        while (device->dispatch) {
            start_waiting(device, now);
            if (device->gated) open_gates(device, now);
        }
    }
}

/* ---- copy engines: each first come, first served (R25). A peer copy needs two at once. It takes its place in both
 * lines at the same moment, so two of them never wait for each other */

static work **next_in_line(work *w, const copy_engine *engine) {
    return &w->body->next_in_engine[w->body->copy_engine[0] != engine];
}

static void line_up(work *w, copy_engine *engine) {
    if (engine->last) *next_in_line(engine->last, engine) = w;
    else engine->first = w;
    engine->last = w;
}

static bool at_the_front(const work *w) {
    for (uint32_t i = 0; i < w->body->engines; i++) {
        const copy_engine *engine = w->body->copy_engine[i];
        if (engine->busy || engine->first != w) return false;
    }
    return true;
}

static void start_copy(vgpu *gpu, copy_engine *engine, uint64_t now) {
    work *w = engine->first;
    if (!w || !at_the_front(w)) return;
    for (uint32_t i = 0; i < w->body->engines; i++) {
        copy_engine *needed = w->body->copy_engine[i];
        needed->busy = true;
        needed->first = *next_in_line(w, needed);
        if (!needed->first) needed->last = NULL;
    }
    if (!start_blocks(gpu, w, 1, now, engine->last_seq)) gpu->out_of_memory = true;
}

static void unadmit(work *w) {
    for (uint32_t i = 0; w->body && i < w->body->engines; i++) {
        copy_engine *engine = w->body->copy_engine[i];
        work *before = NULL;
        for (work *at = engine->first; at != w; at = *next_in_line(at, engine)) before = at;
        work *after = *next_in_line(w, engine);
        if (before) *next_in_line(before, engine) = after;
        else engine->first = after;
        if (engine->last == w) engine->last = before;
    }
}

static void release_engines(vgpu *gpu, const work *w, uint64_t now) {
    const body *b = w->body;
    for (uint32_t i = 0; i < b->engines; i++) {
        b->copy_engine[i]->busy = false;
        b->copy_engine[i]->last_seq = w->command->seq;
    }
    for (uint32_t i = 0; i < b->engines; i++) start_copy(gpu, b->copy_engine[i], now);
}

/* ---- dropping */

void mr_virtual_engines_reset(vdevice *device) {
    device->free_threads = device->capacity;
    device->resident = 0;
    device->waiting_count = 0;
    device->gated = 0;
    device->dispatch = false;
    for (int i = 0; i < COPY_ENGINES; i++) device->copy_engine[i] = (copy_engine){0};
}

void mr_virtual_drop_pending(vgpu *gpu) {
    for (int i = 0; i < gpu->device_count; i++) mr_virtual_engines_reset(&gpu->devices[i]);
    mr_virtual_drop_works(gpu);
}

void mr_virtual_cancel(work *w) {
    unadmit(w);
    if (w->gated) open_gate(w);
    mr_virtual_unlink(w);
}

/* The text that every later call will show, too: the failure, and how to end it. */
static mr_status with_remedy(mr_status error) {
    mr_status full = mr_fail(error->code, "%s (%s): every call fails until mr.reset()",
                             error->message, mr_code_text(error->code));
    mr_error_destroy(error);
    return full;
}

/* Takes `error` and fills in the failed command. A sticky one (R50) loses the device: drops all pending work, `w` too,
 * and returns what to raise. Any other one is deferred: returns OK, and `w` is to be completed. */
static mr_status fail(work *w, mr_status error) {
    vgpu *gpu = w->queue->device->gpu;
    if (!mr_code_sticky(error->code)) {
        mr_machine_defer_error(gpu->machine, w->command, error);
        return MR_OK;
    }
    error = with_remedy(error);
    mr_command_blame(w->command, error);
    error = mr_machine_lose(gpu->machine, error);
    mr_virtual_drop_pending(gpu);
    return error;
}

static bool is_interruption(mr_status status) {
    return status && status->code == MR_CODE_INTERRUPTED;
}

static mr_status run_body(work *w, int64_t *io_first, int64_t end) {
    mr_status status = mr_virtual_body_run(w, io_first, end);
    return !status || is_interruption(status) ? status : fail(w, status);
}

/* ---- timed */

static void admit(work *w, uint64_t now) {
    vdevice *device = w->queue->device;
    vgpu *gpu = device->gpu;
    if (!w->body && !mr_virtual_prepare(w)) {
        gpu->out_of_memory = true;
        return;
    }
    body *b = w->body;
    const work *front = b->engine == ENGINE_SM ? in_front(w) : NULL;
    if (front) {
        w->gated = true;
        w->held_by = MR_CAUSE_CONNECTION;
        w->holder = front->command->seq;
        device->gated++;
        return;
    }
    b->turn = gpu->turns++;
    switch (b->engine) {
    case ENGINE_SM:
        if (!waiting_push(device, w)) gpu->out_of_memory = true;
        device->dispatch = true;
        return;
    case ENGINE_COPY:
        for (uint32_t i = 0; i < b->engines; i++) line_up(w, b->copy_engine[i]);
        start_copy(gpu, b->copy_engine[0], now);
        return;
    case ENGINE_NONE:
        if (!start_blocks(gpu, w, 1, now, 0)) gpu->out_of_memory = true;
        return;
    }
}

static void finish(work *w, uint64_t now) {
    mr_virtual_body_finish(w);
    mr_virtual_complete(w, now);
}

static void chunk_done(vgpu *gpu, chunk *c, uint64_t now) {
    work *w = c->work;
    vdevice *device = w->queue->device;
    body *b = w->body;
    b->blocks_done += c->blocks;
    mr_virtual_ran(w, c->start, now, b->blocks_done - c->blocks, b->blocks,
                   b->blocks_done == b->blocks, c->holder);
    if (b->engine == ENGINE_SM) {
        device->last_seq = w->command->seq;
        device->free_threads += (uint64_t)c->blocks * b->unit;
        device->dispatch = true;
    }
    chunk_free(gpu, c);
    if (b->blocks_done < b->blocks) return;
    if (b->engine == ENGINE_SM) device->resident--;
    else release_engines(gpu, w, now);
    finish(w, now);
}

static void chunks_done(work *w, uint64_t now) {
    vgpu *gpu = w->queue->device->gpu;
    for (chunk *c = w->body->chunks, *next; c; c = next) {
        next = c->next;
        chunk_done(gpu, c, now); /* the last one completes the work */
    }
}

static mr_status run_slice(chunk *c) {
    uint64_t items = (uint64_t)c->items;
    int64_t end = c->first + (int64_t)scale(items, c->slices_done + 1, c->slices);
    MR_TRY(run_body(c->work, &c->next_item, end));
    c->slices_done++;
    return MR_OK;
}

/* Its slices have run, so its end is known now. */
static bool stretch(chunk *c) {
    uint64_t more = mr_virtual_stretch(c->work, c->duration);
    if (!more) return false;
    c->stretched = true;
    c->duration += more;
    offer(c->work, c->start + c->duration, c);
    return true;
}

static mr_status step_chunk(vgpu *gpu, chunk *c, uint64_t now) {
    if (c->stretched) {
        chunk_done(gpu, c, now);
        return MR_OK;
    }
    mr_status status = run_slice(c);
    if (is_interruption(status)) offer_slice(c); /* it goes on when the device next moves */
    if (status) return status;
    if (c->slices_done < c->slices) offer_slice(c);
    else if (!stretch(c)) chunk_done(gpu, c, now);
    return MR_OK;
}

/* ---- untimed: a serial machine */

static uint64_t move_clock(vgpu *gpu, const work *w, uint64_t duration) {
    if (gpu->device_ns < w->time) gpu->device_ns = w->time;
    return gpu->device_ns += duration;
}

static mr_status step_body(vgpu *gpu, work *w) {
    if (!w->body && !mr_virtual_prepare(w)) {
        gpu->out_of_memory = true;
        return MR_OK;
    }
    body *b = w->body;
    int64_t end = (int64_t)scale((uint64_t)b->items, b->slices_done + 1, b->slices);
    uint64_t share = scale(b->duration, b->slices_done + 1, b->slices) -
                     scale(b->duration, b->slices_done, b->slices);
    mr_status status = run_body(w, &b->items_done, end);
    if (is_interruption(status)) offer(w, gpu->device_ns, NULL);
    if (status) return status;
    uint64_t now = move_clock(gpu, w, share);
    mr_virtual_ran(w, now - share, now, b->slices_done, b->slices, b->slices_done + 1 == b->slices,
                   0);
    if (++b->slices_done < b->slices) offer(w, now, NULL);
    else finish(w, now);
    return MR_OK;
}

/* ---- meetings */

static void complete_member(work *w, uint64_t begin, uint64_t now) {
    if (w->body && w->body->chunks) {
        chunks_done(w, now);
        return;
    }
    mr_virtual_ran(w, begin, now, 0, 1, true, 0);
    if (w->body) mr_virtual_body_finish(w);
    mr_virtual_complete(w, now);
}

/* All of it in one step, by the work of the member that was submitted last. */
static mr_status step_meeting(vgpu *gpu, work *w, const mr_device_step *step) {
    bool timed = gpu->chooser->timed;
    if (!w->body && !mr_virtual_prepare(w)) {
        gpu->out_of_memory = true;
        return MR_OK;
    }
    body *b = w->body;
    if (!timed) {
        b->items = w->command->u.op.row->items(w->command);
        b->duration = mr_virtual_meeting_ns(w->queue->device, w->command->meeting);
    }
    mr_status status = run_body(w, &b->items_done, b->items);
    if (is_interruption(status)) offer(w, step->time, step->part);
    if (status) return status;
    uint64_t now = timed ? step->time : move_clock(gpu, w, b->duration);
    uint64_t begin = now - b->duration;
    for (work *member = mr_virtual_meet_end(gpu, w), *next; member; member = next) {
        next = member->u.member.next;
        complete_member(member, begin, now);
    }
    return MR_OK;
}

/* ---- either way */

/* A work without a body. */
static void complete_at(work *w, uint64_t begin, uint64_t now) {
    mr_virtual_ran(w, begin, now, 0, 1, true, 0);
    mr_virtual_complete(w, now);
}

static void step_host_function(vgpu *gpu, work *w, uint64_t time) {
    if (gpu->host_ns < time) gpu->host_ns = time;
    uint64_t start = gpu->host_ns;
    mr_machine_run_host_function(gpu->machine, w->command);
    complete_at(w, time, time + (gpu->host_ns - start));
}

mr_status mr_virtual_carry_out(vgpu *gpu, const mr_device_step *step) {
    work *w = step->work;
    bool timed = gpu->chooser->timed;
    uint64_t now;
    if (timed) {
        if (gpu->device_ns < step->time) gpu->device_ns = step->time;
        now = step->time;
    } else {
        now = is_body(step->command) ? gpu->device_ns : move_clock(gpu, w, 0);
    }
    switch (step->command->kind) {
    case MR_COMMAND_FAULT:
        MR_TRY(fail(w, mr_fail(step->command->u.fault,
                               "%s: this failure was requested by mr.machine.fault",
                               w->command->name)));
        complete_at(w, now, now);
        break;
    case MR_COMMAND_HOST_FUNCTION: step_host_function(gpu, w, now); break;
    case MR_COMMAND_OP:
    case MR_COMMAND_COPY:
        if (w->command->meeting && (!timed || step->part)) MR_TRY(step_meeting(gpu, w, step));
        else if (!timed) MR_TRY(step_body(gpu, w));
        else if (step->part) MR_TRY(step_chunk(gpu, step->part, now));
        else admit(w, now);
        break;
    case MR_COMMAND_RECORD:
    case MR_COMMAND_WAIT:
    case MR_COMMAND_ALLOC:
    case MR_COMMAND_FREE:
        MR_HOST_LIST(MR_COMMAND_CASE)
        MR_ACCOUNT_LIST(MR_COMMAND_CASE) complete_at(w, now, now);
    }
    mr_virtual_start_ready(gpu, gpu->device_ns);
    return MR_OK;
}

void mr_virtual_offer_ready(work *w) {
    bool begins = w->command->meeting && !w->queue->device->gpu->chooser->timed;
    work *runs = begins ? mr_virtual_meet_begin(w, w->time) : w;
    if (runs) offer(runs, runs->time, NULL);
}

/* A marker is no choice. If markers were offered, a schedule would depend on the time of the collector's frees. */
void mr_virtual_start_ready(vgpu *gpu, uint64_t now) {
    bool timed = gpu->chooser->timed;
    for (work *w; (w = gpu->ready_first);) {
        gpu->ready_first = w->next_ready;
        if (!gpu->ready_first) gpu->ready_last = NULL;
        const mr_command *command = w->command;
        if (mr_command_is(command, MR_TRAIT_MARKER)) {
            if (timed && w->time > now) {
                offer(w, w->time, NULL);
                continue;
            }
            uint64_t at = timed ? now : move_clock(gpu, w, 0);
            complete_at(w, at, at);
        } else if (!timed || w->time > now || !is_body(command)) {
            mr_virtual_offer_ready(w); /* choice points differ in who may run a host function */
        } else {
            admit(w, now);
        }
    }
    if (timed) dispatch(gpu, now);
}

/* ---- between choosers: nothing is left half done, and the engines are empty */

static mr_status run_rest(work *w) {
    body *b = w->body;
    for (chunk *c = b->chunks; c; c = c->next)
        while (c->slices_done < c->slices) MR_TRY(run_slice(c));
    int64_t first = b->blocks_given ? (int64_t)scale((uint64_t)b->items, b->blocks_given, b->blocks)
                                    : b->items_done;
    return run_body(w, &first, b->items);
}

/* Members that wait for others begin anew under the next chooser. */
static mr_status finish_meeting(vgpu *gpu, work *w) {
    if (!mr_virtual_meet_interrupt(w)) {
        if (mr_command_waits_for_others(w->command)) return MR_OK; /* the last one ends it */
        return step_meeting(gpu, w, &(mr_device_step){gpu->device_ns, w->command, w, NULL});
    }
    if (w->body) mr_virtual_body_free(w);
    return MR_OK;
}

mr_status mr_virtual_finish_started(vgpu *gpu) {
    gpu->interruptible = false;
    for (work *w = gpu->oldest, *next; w; w = next) {
        next = w->newer;
        w->gated = false;
        if (w->command->meeting && w->state == WORK_STARTED) {
            MR_TRY(finish_meeting(gpu, w));
        } else if (w->state == WORK_STARTED) {
            MR_TRY(run_rest(w));
            mr_virtual_ran(w, w->time, gpu->device_ns, 0, 1, true, 0);
            finish(w, gpu->device_ns);
        } else if (w->body) {
            mr_virtual_body_free(w); /* how it is cut depends on the chooser */
        }
    }
    gpu->ready_first = gpu->ready_last = NULL; /* the caller offers all that are ready anew */
    for (int i = 0; i < gpu->device_count; i++) mr_virtual_engines_reset(&gpu->devices[i]);
    return MR_OK;
}
