/* Engines: SMs with a block scheduler, and copy engines. Under the timed chooser they say how long
 * things take and what runs beside what; under the others there is one thing at a time.
 *
 * SMs are one room of threads. A kernel's blocks start as soon as there is room, by priority, then in
 * the order in which the kernels became ready; running blocks are never interrupted, and no kernel
 * overtakes one that is still short of room (R8, R54). Blocks that start together are one chunk.
 *
 * Invariant: device->room + what the running chunks hold == capacity. */
#include <stdlib.h>

#include "ops/op.h"
#include "virtual/state.h"

/* a * b / c without overflow. */
static uint64_t scale(uint64_t a, uint64_t b, uint64_t c) {
    return (uint64_t)((unsigned __int128)a * b / c);
}

void mr_virtual_offer(work *w, uint64_t time, void *part) {
    vgpu *gpu = w->queue->device->gpu;
    mr_step step = {time, action_of(w), part};
    if (!gpu->chooser->offer(gpu->chooser, &step)) gpu->out_of_memory = true;
}

/* ---- kernels with blocks still to start: a heap */

static bool goes_before(const work *a, const work *b) {
    if (a->queue->priority != b->queue->priority) return a->queue->priority < b->queue->priority;
    return a->body->turn < b->body->turn;
}

static bool waiting_push(vdevice *device, work *w) {
    if (!mr_vec_push(&device->waiting, w)) return false;
    work **items = device->waiting.items;
    size_t i = device->waiting.count - 1;
    for (; i && goes_before(w, items[(i - 1) / 2]); i = (i - 1) / 2) items[i] = items[(i - 1) / 2];
    items[i] = w;
    return true;
}

static void waiting_pop(vdevice *device) {
    work **items = device->waiting.items;
    work *last = mr_vec_pop(&device->waiting);
    size_t count = device->waiting.count, i = 0;
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
    mr_virtual_offer(c->work, c->start + scale(c->duration, c->slices_done + 1, c->slices), c);
}

/* The next `count` blocks begin to run. */
static bool start_blocks(vgpu *gpu, work *w, uint32_t count, uint64_t now) {
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
    if (count != b->blocks) { /* its share of the slices, at least one */
        c->slices = (uint32_t)scale(b->slices, count, b->blocks);
        if (!c->slices) c->slices = 1;
    }
    w->state = WORK_STARTED;
    offer_slice(c);
    return true;
}

/* ---- the block scheduler */

static void start_waiting(vdevice *device, uint64_t now) {
    vgpu *gpu = device->gpu;
    device->dispatch = false;
    while (device->waiting.count) {
        work *w = device->waiting.items[0];
        body *b = w->body;
        bool fresh = !b->blocks_given;
        if (fresh && device->resident >= (uint32_t)gpu->model.max_resident_grids) return;
        uint64_t fit = device->room / b->unit;
        uint32_t left = b->blocks - b->blocks_given;
        if (!fit) return;
        uint32_t count = fit < left ? (uint32_t)fit : left;
        if (!start_blocks(gpu, w, count, now)) {
            gpu->out_of_memory = true;
            return;
        }
        device->room -= (uint64_t)count * b->unit;
        if (fresh) device->resident++;
        if (count == left) waiting_pop(device);
    }
}

void mr_virtual_dispatch(vgpu *gpu, uint64_t now) {
    for (int i = 0; i < gpu->device_count; i++)
        if (gpu->devices[i].dispatch) start_waiting(&gpu->devices[i], now);
}

/* ---- copy engines: each first come, first served (R25); a peer copy needs two at once, and takes
 * its place in both lines at the same moment, so that two of them never wait for each other */

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
    if (!start_blocks(gpu, w, 1, now)) gpu->out_of_memory = true;
}

void mr_virtual_unadmit(work *w) {
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

static void release_engines(vgpu *gpu, const body *b, uint64_t now) {
    for (uint32_t i = 0; i < b->engines; i++) b->copy_engine[i]->busy = false;
    for (uint32_t i = 0; i < b->engines; i++) start_copy(gpu, b->copy_engine[i], now);
}

/* ---- timed */

void mr_virtual_admit(work *w, uint64_t now) {
    vdevice *device = w->queue->device;
    vgpu *gpu = device->gpu;
    if (!w->body && !mr_virtual_prepare(w)) {
        gpu->out_of_memory = true;
        return;
    }
    body *b = w->body;
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
        if (!start_blocks(gpu, w, 1, now)) gpu->out_of_memory = true;
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
    if (b->engine == ENGINE_SM) {
        device->room += (uint64_t)c->blocks * b->unit;
        device->dispatch = true;
    }
    chunk_free(gpu, c);
    if (b->blocks_done < b->blocks) return;
    if (b->engine == ENGINE_SM) device->resident--;
    else release_engines(gpu, b, now);
    finish(w, now);
}

static mr_status run_slice(chunk *c) {
    uint64_t items = (uint64_t)c->items;
    int64_t end = c->first + (int64_t)scale(items, c->slices_done + 1, c->slices);
    MR_TRY(mr_virtual_body_run(c->work, &c->next_item, end));
    c->slices_done++;
    return MR_OK;
}

static bool is_interruption(mr_status status) {
    return status && status->code == MR_CODE_INTERRUPTED;
}

static mr_status step_chunk(vgpu *gpu, chunk *c, uint64_t now) {
    mr_status status = run_slice(c);
    if (is_interruption(status)) { /* the slice goes on when the device next moves */
        offer_slice(c);
        return status;
    }
    if (status) return mr_virtual_fail(c->work, status);
    if (c->slices_done < c->slices) offer_slice(c);
    else chunk_done(gpu, c, now);
    return MR_OK;
}

/* ---- untimed: a serial machine */

static uint64_t move_clock(vgpu *gpu, const work *w, uint64_t duration) {
    if (gpu->device_ns < w->time) gpu->device_ns = w->time;
    return gpu->device_ns += duration;
}

static mr_status step_body(vgpu *gpu, work *w) {
    if (!w->body && !mr_virtual_prepare(w))
        return mr_virtual_fail(
            w, mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory to run %s", action_of(w)->name));
    body *b = w->body;
    int64_t end = (int64_t)scale((uint64_t)b->items, b->slices_done + 1, b->slices);
    uint64_t share = scale(b->duration, b->slices_done + 1, b->slices) -
                     scale(b->duration, b->slices_done, b->slices);
    mr_status status = mr_virtual_body_run(w, &b->items_done, end);
    if (is_interruption(status)) {
        mr_virtual_offer(w, gpu->device_ns, NULL);
        return status;
    }
    if (status) return mr_virtual_fail(w, status);
    uint64_t now = move_clock(gpu, w, share);
    if (++b->slices_done < b->slices) mr_virtual_offer(w, now, NULL);
    else finish(w, now);
    return MR_OK;
}

/* ---- either way */

static void step_host_function(vgpu *gpu, work *w, uint64_t time) {
    if (gpu->host_ns < time) gpu->host_ns = time;
    uint64_t start = gpu->host_ns;
    mr_machine_run_host_function(gpu->machine, action_of(w));
    mr_virtual_complete(w, time + (gpu->host_ns - start));
}

mr_status mr_virtual_carry_out(vgpu *gpu, const mr_step *step) {
    work *w = work_of(step->action);
    bool timed = gpu->chooser->timed;
    uint64_t now;
    if (timed) {
        if (gpu->device_ns < step->time) gpu->device_ns = step->time;
        now = step->time;
    } else {
        now = is_body(step->action) ? gpu->device_ns : move_clock(gpu, w, 0);
    }
    switch (step->action->kind) {
    case MR_ACTION_FAULT:
        return mr_virtual_fail(w, mr_fail(step->action->u.fault, "%s: the device failed on purpose",
                                          step->action->name));
    case MR_ACTION_HOST_FUNCTION: step_host_function(gpu, w, now); break;
    case MR_ACTION_OP:
    case MR_ACTION_COPY:
        if (!timed) MR_TRY(step_body(gpu, w));
        else if (step->part) MR_TRY(step_chunk(gpu, step->part, now));
        else mr_virtual_admit(w, now);
        break;
    default: mr_virtual_complete(w, now);
    }
    mr_virtual_settle(gpu, gpu->device_ns);
    return MR_OK;
}

/* Records, waits, allocations and frees have no effect but on what is ordered behind them: there is
 * nothing to choose. Offering them would make a schedule depend on when the collector frees. */
static bool is_marker(const mr_action *action) {
    switch (action->kind) {
    case MR_ACTION_RECORD:
    case MR_ACTION_WAIT:
    case MR_ACTION_ALLOC:
    case MR_ACTION_FREE: return true;
    default: return false;
    }
}

void mr_virtual_settle(vgpu *gpu, uint64_t now) {
    bool timed = gpu->chooser->timed;
    for (work *w; (w = gpu->ready_first);) {
        gpu->ready_first = w->next_ready;
        if (!gpu->ready_first) gpu->ready_last = NULL;
        const mr_action *action = action_of(w);
        if (is_marker(action)) {
            if (!timed) mr_virtual_complete(w, move_clock(gpu, w, 0));
            else if (w->time <= now) mr_virtual_complete(w, now);
            else mr_virtual_offer(w, w->time, NULL);
        } else if (!timed || w->time > now || !is_body(action)) {
            mr_virtual_offer(w, w->time,
                             NULL); /* choice points differ in who may run a host function */
        } else {
            mr_virtual_admit(w, now);
        }
    }
    if (timed) mr_virtual_dispatch(gpu, now);
}

void mr_virtual_engines_reset(vdevice *device) {
    device->room = device->capacity;
    device->resident = 0;
    device->waiting.count = 0;
    device->dispatch = false;
    for (int i = 0; i < COPY_ENGINES; i++) device->copy_engine[i] = (copy_engine){0};
}

/* ---- between choosers: nothing is left half done, and the engines are empty */

static mr_status run_rest(work *w) {
    body *b = w->body;
    for (chunk *c = b->chunks; c; c = c->next)
        while (c->slices_done < c->slices) MR_TRY(run_slice(c));
    int64_t first = b->blocks_given ? (int64_t)scale((uint64_t)b->items, b->blocks_given, b->blocks)
                                    : b->items_done;
    return mr_virtual_body_run(w, &first, b->items);
}

mr_status mr_virtual_finish_started(vgpu *gpu) {
    gpu->interruptible = false;
    for (work *w = gpu->oldest, *next; w; w = next) {
        next = w->newer;
        if (w->state == WORK_STARTED) {
            mr_status status = run_rest(w);
            if (status) return mr_virtual_fail(w, status);
            finish(w, gpu->device_ns);
        } else if (w->body) {
            mr_virtual_body_free(w); /* how it is cut depends on the chooser */
        }
    }
    gpu->ready_first = gpu->ready_last = NULL; /* the caller offers all that are ready anew */
    for (int i = 0; i < gpu->device_count; i++) mr_virtual_engines_reset(&gpu->devices[i]);
    return MR_OK;
}
