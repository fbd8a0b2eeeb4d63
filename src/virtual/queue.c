/* Order: which command waits for which. Links new commands after their predecessors. Removes commands that
 * are done, which makes others ready. engine.c runs ready commands.
 *
 * Each step is O(1) plus one edge for each rule that orders the command; nothing iterates over a queue.
 * The invariant easiest to break: releasing a command runs the model's code, which may close a stream and
 * submit nothing else; so a work is out of every list before it is destroyed, and nothing of it or of its
 * queue is touched after. */
#include <stdlib.h>

#include "model/observer.h"
#include "tensor/tensor.h"
#include "virtual/state.h"

/* ---- ready */

static void push_ready(vgpu *gpu, work *w) {
    w->state = WORK_READY;
    w->next_ready = NULL;
    if (gpu->ready_last) gpu->ready_last->next_ready = w;
    else gpu->ready_first = w;
    gpu->ready_last = w;
}

/* When `w` may start, as far as `from` goes, which is done at `now`. Engines tell each other by
 * semaphores, and so do streams; that takes time, but only where there was something to wait for at the
 * call. What had ended by then counts as gone, carried out or not: whether the device has caught up must
 * not show. */
static uint64_t start_after(const vgpu *gpu, const work *from, work *w, uint64_t now) {
    const device_model *model = &gpu->model;
    if (now <= w->called || !gpu->chooser->timed) return now;
    uint64_t start = from->queue == w->queue ? now : now + (uint64_t)model->wait_latency_ns;
    if (!is_launch(w->command)) { /* a marker hands on what it came behind */
        if (w->ended < from->ended) {
            w->ended = from->ended;
            w->engine = from->engine;
        }
    } else if (w->engine && from->engine && w->engine != from->engine && from->ended > w->called) {
        uint64_t handed = from->ended + (uint64_t)model->handover_ns;
        if (start < handed) start = handed;
    }
    return start;
}

static bool is_peer_barrier(const mr_command *command) {
    return command->kind == MR_COMMAND_COPY && command->u.copy.direction == MR_COPY_PEER &&
           command->u.copy.synchronous;
}

static bool is_marker(const work *w) {
    return mr_command_is(w->command, MR_TRAIT_MARKER);
}

/* Which rule made `w` wait for `from`, of another stream. */
static mr_cause rule_between(const work *from, const work *w) {
    const mr_command *command = w->command;
    if (command->kind == MR_COMMAND_WAIT && command->u.event.record_seq == from->command->seq)
        return MR_CAUSE_EVENT;
    if (from->queue->device == w->queue->device && from->queue->blocking && w->queue->blocking &&
        (from->queue->legacy || w->queue->legacy))
        return MR_CAUSE_DEFAULT_STREAM;
    if (is_peer_barrier(from->command) || is_peer_barrier(command)) return MR_CAUSE_PEER_COPY;
    return MR_CAUSE_MEMORY;
}

/* `w` could not begin before the end of `from`. Report what a marker waited for, never the marker. */
static void note_holder(const work *from, work *w) {
    w->holder = from->command->seq;
    if (from->queue != w->queue) {
        w->held_by = (uint8_t)rule_between(from, w);
        if (w->held_by != MR_CAUSE_EVENT && is_marker(from) && from->holder)
            w->holder = from->holder;
    } else if (!is_marker(from)) {
        bool function = from->command->kind == MR_COMMAND_HOST_FUNCTION;
        w->held_by = function ? MR_CAUSE_HOST_FUNCTION : MR_CAUSE_STREAM;
    } else {
        w->held_by = from->held_by;
        bool waited = from->command->kind == MR_COMMAND_WAIT && from->held_by == MR_CAUSE_EVENT;
        bool handed_on = waited && from->holder != from->command->u.event.record_seq;
        if (!waited || handed_on) w->holder = from->holder;
    }
}

static void predecessor_done(vgpu *gpu, const work *from, work *w, uint64_t now) {
    uint64_t start = start_after(gpu, from, w, now);
    if (w->time < start) {
        w->time = start;
        note_holder(from, w);
    }
    if (--w->unfinished) return;
    mr_virtual_free_edges_in(gpu, w);
    push_ready(gpu, w);
}

/* ---- the legacy barrier: R3-R6 */

static void dirty_insert(queue *q) {
    vdevice *device = q->device;
    q->dirty = true;
    q->dirty_previous = NULL;
    q->dirty_next = device->dirty;
    if (device->dirty) device->dirty->dirty_previous = q;
    device->dirty = q;
}

static void dirty_remove(queue *q) {
    if (q->dirty_previous) q->dirty_previous->dirty_next = q->dirty_next;
    else q->device->dirty = q->dirty_next;
    if (q->dirty_next) q->dirty_next->dirty_previous = q->dirty_previous;
    q->dirty = false;
}

/* A legacy command waits for each blocking stream that got work since the legacy command before: older
 * work is behind that one already. */
static bool join_blocking_streams(vgpu *gpu, vdevice *device, work *w) {
    for (queue *q = device->dirty; q; q = q->dirty_next)
        if (q->tail && !mr_virtual_add_edge(gpu, q->tail, w)) return false;
    return true;
}

/* And the other way round: only the first command after a legacy one needs an edge. */
static bool join_legacy(vgpu *gpu, queue *q, work *w) {
    queue *legacy = q->device->legacy;
    if (!legacy || q->legacy_seen == legacy->submitted) return true;
    return !legacy->tail || mr_virtual_add_edge(gpu, legacy->tail, w);
}

/* ---- R60: the synchronous peer copy */

static bool join_device(vgpu *gpu, const vdevice *device, work *w) {
    for (queue *q = device->first; q; q = q->next)
        if (q->tail && q != w->queue && !mr_virtual_add_edge(gpu, q->tail, w)) return false;
    return true;
}

static void peer_devices(const mr_command *command, vdevice *out[2]) {
    vgpu *gpu = vgpu_of(command->machine);
    for (int i = 0; i < 2; i++)
        out[i] = &gpu->devices[command->operands[i].tensor->storage->device->index];
}

static void raise_barrier(work *w) {
    vdevice *devices[2];
    peer_devices(w->command, devices);
    w->barrier = true;
    for (int i = 0; i < 2; i++) {
        devices[i]->barrier = w;
        devices[i]->barrier_count++;
    }
}

static void lower_barrier(vgpu *gpu, const work *w) {
    for (int i = 0; i < gpu->device_count; i++)
        if (gpu->devices[i].barrier == w) gpu->devices[i].barrier = NULL;
}

/* ---- enqueueing */

static bool join_predecessors(vgpu *gpu, const mr_command *command, work *w) {
    queue *q = w->queue;
    vdevice *device = q->device;
    if (q->tail) w->unfinished++;
    if (q->legacy ? device->dirty && !join_blocking_streams(gpu, device, w)
                  : q->blocking && !join_legacy(gpu, q, w))
        return false;
    if (q->device_barrier_seen != device->barrier_count && device->barrier &&
        !mr_virtual_add_edge(gpu, device->barrier, w))
        return false;
    if (command->kind == MR_COMMAND_WAIT) {
        mark *m = command->u.event.event->impl;
        if (m && m->record && m->record->queue != q && !mr_virtual_add_edge(gpu, m->record, w))
            return false;
    } else if (command->kind == MR_COMMAND_ALLOC) {
        block *b = command->u.storage->impl;
        work *freeing = b->reuse_after;
        b->reuse_after = NULL;
        if (freeing && !mr_virtual_add_edge(gpu, freeing, w)) return false;
    } else if (is_peer_barrier(command)) {
        vdevice *devices[2];
        peer_devices(command, devices);
        if (!join_device(gpu, devices[0], w) || !join_device(gpu, devices[1], w)) return false;
    }
    return true;
}

static bool make_mark(vgpu *gpu, const mr_command *command, work *w) {
    mr_event *event = command->u.event.event;
    mark *m = mr_slab_alloc(&gpu->marks), *old = event->impl;
    if (!m) return false;
    *m = (mark){.record = w, .queue = w->queue, .held = true};
    w->u.mark = m;
    event->impl = m;
    if (old) mr_virtual_mark_drop(gpu, old); /* R12: overwritten, but waits that found it keep it */
    return true;
}

/* Copies to it; and host functions, which do as they like. */
static bool writes_pageable(const mr_command *command) {
    if (command->kind == MR_COMMAND_HOST_FUNCTION) return true;
    return command->kind == MR_COMMAND_COPY &&
           command->operands[0].tensor->storage->kind == MR_MEMORY_PAGEABLE;
}

static void link_tail(vgpu *gpu, work *w) {
    queue *q = w->queue;
    w->before = q->tail;
    if (q->tail) {
        q->tail->after = w;
    } else {
        q->head = w;
        if (q->blocking && !q->legacy) q->device->busy_blocking++;
    }
    q->tail = w;
    w->index = ++q->submitted;
    w->prior_join = q->last_join;
    w->prior_join_index = q->last_join_index;
    if (w->in) {
        q->last_join = w;
        q->last_join_index = w->index;
    }
    w->older = gpu->newest;
    if (gpu->newest) gpu->newest->newer = w;
    else gpu->oldest = w;
    gpu->newest = w;
    gpu->pending++;
    q->device->pending++;
    if (writes_pageable(w->command)) gpu->pageable_writers++;
}

mr_status mr_virtual_work_create(vgpu *gpu, const mr_command *command, work **out_work) {
    work *w = *out_work = mr_slab_alloc(&gpu->works);
    if (!w)
        return mr_fail(MR_CODE_OUT_OF_MEMORY, "%s: no memory for another pending operation",
                       command->name);
    *w = (work){.command = command, .queue = command->stream->impl, .held_by = MR_CAUSE_HOST};
    mr_command_retain(command);
    return MR_OK;
}

void mr_virtual_staged_release(staged *s) {
    if (s && --s->refs == 0) free(s);
}

/* Releasing the command may run the model's code, so it comes last. */
void mr_virtual_work_destroy(work *w) {
    vgpu *gpu = vgpu_of(w->command->machine);
    const mr_command *command = w->command;
    mr_virtual_staged_release(w->staged);
    mr_slab_free(&gpu->works, w);
    mr_command_release(command);
}

mr_status mr_virtual_enqueue(work *w, uint64_t earliest) {
    const mr_command *command = w->command;
    vgpu *gpu = vgpu_of(command->machine);
    queue *q = w->queue;
    vdevice *device = q->device;
    w->time = earliest;
    w->called = gpu->host_ns;
    w->engine = (uint8_t)mr_virtual_engine_of(command);
    if (!join_predecessors(gpu, command, w) ||
        (command->kind == MR_COMMAND_RECORD && !make_mark(gpu, command, w))) {
        mr_virtual_free_edges_in(gpu, w);
        return mr_fail(MR_CODE_OUT_OF_MEMORY, "%s: no memory for another pending operation",
                       command->name);
    }
    if (q->legacy) {
        while (device->dirty) dirty_remove(device->dirty);
    } else if (q->blocking) {
        q->legacy_seen = device->legacy ? device->legacy->submitted : 0;
        if (!q->dirty) dirty_insert(q);
    }
    q->device_barrier_seen = device->barrier_count;
    if (is_peer_barrier(command)) raise_barrier(w);
    link_tail(gpu, w);
    if (takes_place(command)) q->launches++;
    if (command->kind == MR_COMMAND_FREE) mr_pool_free(w, command->u.storage);
    if (!w->unfinished) {
        mr_virtual_free_edges_in(gpu, w);
        push_ready(gpu, w);
    }
    return MR_OK;
}

/* ---- done */

static void unlink_work(vgpu *gpu, work *w) {
    if (w->older) w->older->newer = w->newer;
    else gpu->oldest = w->newer;
    if (w->newer) w->newer->older = w->older;
    else gpu->newest = w->older;
    gpu->pending--;
    w->queue->device->pending--;
    if (writes_pageable(w->command)) gpu->pageable_writers--;
    if (takes_place(w->command)) w->queue->launches--;
    if (w->barrier) lower_barrier(gpu, w);
}

void mr_virtual_mark_release(vgpu *gpu, mark *m) {
    m->record = NULL;
    if (!m->held) mr_slab_free(&gpu->marks, m);
}

void mr_virtual_mark_drop(vgpu *gpu, mark *m) {
    m->held = false;
    if (!m->record) mr_slab_free(&gpu->marks, m);
}

static void mark_done(vgpu *gpu, mark *m, uint64_t now) {
    m->done = true;
    m->time = now;
    mr_virtual_mark_release(gpu, m);
}

static void release_successors(vgpu *gpu, work *w, uint64_t now) {
    for (edge *e = w->out, *next; e; e = next) {
        next = e->next_out;
        if (e->to) {
            e->from = NULL;
            predecessor_done(gpu, w, e->to, now);
        } else {
            if (e->u.guarded) mr_pool_guard_done(e->u.guarded);
            mr_slab_free(&gpu->edges, e);
        }
    }
}

void mr_virtual_complete(work *w, uint64_t now) {
    queue *q = w->queue;
    vdevice *device = q->device;
    vgpu *gpu = device->gpu;
    const mr_command *command = w->command;
    if (command->kind == MR_COMMAND_RECORD) mark_done(gpu, w->u.mark, now);
    else if (command->kind == MR_COMMAND_FREE) mr_pool_free_done(w);
    unlink_work(gpu, w);
    if (is_body(command)) w->ended = now;
    q->completed++;
    q->last_end = now;
    if (device->last_end < now) device->last_end = now;
    if (q->blocking && device->blocking_end < now) device->blocking_end = now;
    q->head = w->after;
    if (q->head) {
        q->head->before = NULL;
        predecessor_done(gpu, w, q->head, now);
    } else {
        q->tail = NULL;
        if (q->blocking && !q->legacy) device->busy_blocking--;
    }
    release_successors(gpu, w, now);
    if (w->body) mr_virtual_body_free(w);
    if (gpu->keep == w) gpu->keep = NULL;
    if (q->closed && !q->head) mr_virtual_queue_destroy(q);
    mr_virtual_work_destroy(w);
}

void mr_virtual_unlink(work *w) {
    queue *q = w->queue;
    vdevice *device = q->device;
    vgpu *gpu = device->gpu;
    unlink_work(gpu, w);
    mr_virtual_free_edges_in(gpu, w);
    q->submitted--;
    q->tail = w->before;
    if (q->tail) {
        q->tail->after = NULL;
    } else {
        q->head = NULL;
        if (q->blocking && !q->legacy) device->busy_blocking--;
    }
    if (q->last_join == w) {
        q->last_join = w->prior_join;
        q->last_join_index = w->prior_join_index;
    }
    /* Nobody may rely on having been ordered behind it: the next command joins afresh. */
    q->legacy_seen = q->device_barrier_seen = UINT64_MAX;
    if (q->legacy)
        for (queue *other = device->first; other; other = other->next)
            if (other->blocking && !other->legacy && other->tail && !other->dirty)
                dirty_insert(other);
    if (gpu->ready_first) { /* it may be there: the list is short, and this is rare */
        work *rest = gpu->ready_first;
        gpu->ready_first = gpu->ready_last = NULL;
        for (work *next; rest; rest = next) {
            next = rest->next_ready;
            if (rest != w) push_ready(gpu, rest);
        }
    }
    gpu->chooser->withdraw(gpu->chooser, w);
    if (w->body) mr_virtual_body_free(w);
}

/* ---- dropping: R50 and mr.reset
 *
 * Memory and events are left as if the works had been carried out: a machine that is revived goes on with them. */

static void empty_queues(vdevice *device) {
    while (device->dirty) dirty_remove(device->dirty);
    for (queue *q = device->first; q; q = q->next) {
        q->head = q->tail = NULL;
        q->completed = q->submitted;
        q->launches = 0;
    }
    device->busy_blocking = device->pending = 0;
    device->barrier = NULL;
}

static void destroy_closed_queues(vdevice *device) {
    for (queue *q = device->first, *next; q; q = next) {
        next = q->next;
        if (q->closed) mr_virtual_queue_destroy(q);
    }
}

static void drop(vgpu *gpu, work *w) {
    const mr_command *command = w->command;
    for (edge *e = w->in, *next; e; e = next) {
        next = e->u.next_in;
        mr_slab_free(&gpu->edges, e);
    }
    w->in = w->out = NULL;
    if (command->kind == MR_COMMAND_RECORD) mark_done(gpu, w->u.mark, gpu->device_ns);
    else if (command->kind == MR_COMMAND_FREE) mr_pool_free_done(w);
    if (w->body) mr_virtual_body_free(w);
    if (gpu->keep == w) gpu->keep = NULL;
    mr_virtual_work_destroy(w);
}

void mr_virtual_drop_works(vgpu *gpu) {
    work *list = gpu->oldest;
    gpu->oldest = gpu->newest = gpu->ready_first = gpu->ready_last = NULL;
    gpu->pending = gpu->pageable_writers = 0;
    gpu->chooser->clear(gpu->chooser);
    for (int i = 0; i < gpu->device_count; i++) empty_queues(&gpu->devices[i]);
    /* Each edge is freed once: here those that nobody waits on, with their `to` the others. */
    for (work *w = list; w; w = w->newer)
        for (edge *e = w->out, *next; e; e = next) {
            next = e->next_out;
            if (e->to) continue;
            if (e->u.guarded) mr_pool_guard_done(e->u.guarded);
            mr_slab_free(&gpu->edges, e);
        }
    for (work *w = list, *next; w; w = next) {
        next = w->newer;
        drop(gpu, w);
    }
    for (int i = 0; i < gpu->device_count; i++) destroy_closed_queues(&gpu->devices[i]);
}

/* ---- the end of a stream */

void mr_virtual_queue_destroy(queue *q) {
    vdevice *device = q->device;
    mr_pool_queue_gone(q);
    if (q->dirty) dirty_remove(q);
    if (device->legacy == q) device->legacy = NULL;
    if (q->previous) q->previous->next = q->next;
    else device->first = q->next;
    if (q->next) q->next->previous = q->previous;
    else device->last = q->previous;
    mr_slab_free(&device->gpu->queues, q);
}

void mr_virtual_queue_close(queue *q) {
    q->closed = true;
    if (!q->head) mr_virtual_queue_destroy(q);
}
