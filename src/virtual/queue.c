/* Order: which command waits for which. Links new commands after their predecessors. Removes commands that
 * are done, which makes others ready. engine.c runs ready commands.
 *
 * Each step is O(1) plus one edge for each rule that orders the command; nothing iterates over a queue. Easiest to
 * break: releasing a command runs the model's code, which may close a stream and submit nothing else. So a work is
 * removed from every list before it is destroyed, and neither it nor its queue is used afterwards. */
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

/* The earliest start of `w` after `from`, which is done at `now`. Engines and streams signal each other by semaphores.
 * That takes time, but only if work was pending at the call. Work whose end was before the call counts as done, even if
 * the simulation has not caught up with it. */
static uint64_t start_after(const vgpu *gpu, const work *from, work *w, uint64_t now) {
    const device_model *model = &gpu->model;
    if (now <= w->called || !gpu->chooser->timed) return now;
    uint64_t start = from->queue == w->queue ? now : now + (uint64_t)model->wait_latency_ns;
    if (!is_launch(w->command)) { /* a marker passes on its own predecessors */
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

static bool is_marker(const work *w) {
    return mr_command_is(w->command, MR_TRAIT_MARKER);
}

/* The rule that made `w` wait for `from`; `cause`: that of the edge. */
static mr_cause rule_between(const work *from, const work *w, mr_cause cause) {
    const mr_command *command = w->command;
    bool is_record =
        command->kind == MR_COMMAND_WAIT && command->u.event.record_seq == from->command->seq;
    return is_record ? MR_CAUSE_EVENT : cause;
}

/* `w` could not begin before the end of `from`. Report what a marker waited for, never the marker. */
static void note_holder(const work *from, work *w, mr_cause cause) {
    w->holder = from->command->seq;
    if (from->queue != w->queue) {
        w->held_by = (uint8_t)rule_between(from, w, cause);
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

static void predecessor_done(vgpu *gpu, const work *from, work *w, mr_cause cause, uint64_t now) {
    uint64_t start = start_after(gpu, from, w, now);
    if (w->time < start) {
        w->time = start;
        note_holder(from, w, cause);
    }
    if (--w->unfinished) return;
    mr_virtual_free_edges_in(gpu, w);
    push_ready(gpu, w);
}

/* ---- places (order/order.h)
 *
 * LANE: the queue itself. GATHERED: device->dirty. RELEASED: the last command of device->legacy. WALL:
 * device->barrier. */

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

static void gather_none(vdevice *device) {
    while (device->dirty) dirty_remove(device->dirty);
}

/* Each blocking stream that got work since the legacy command before: older work is already ordered after that
 * command. */
static bool join_gathered(vgpu *gpu, const vdevice *device, work *w) {
    for (queue *q = device->dirty; q; q = q->dirty_next)
        if (q->tail && !mr_virtual_add_edge(gpu, q->tail, w, MR_CAUSE_DEFAULT_STREAM)) return false;
    return true;
}

/* Only the first command after a legacy one needs an edge. */
static bool join_released(vgpu *gpu, const queue *q, work *w) {
    const queue *legacy = q->device->legacy;
    if (!legacy || !legacy->tail || q->released_seen == legacy->submitted) return true;
    return mr_virtual_add_edge(gpu, legacy->tail, w, MR_CAUSE_DEFAULT_STREAM);
}

/* Likewise. */
static bool join_wall(vgpu *gpu, const queue *q, work *w) {
    const vdevice *device = q->device;
    if (!device->barrier || q->device_barrier_seen == device->barrier_count) return true;
    return mr_virtual_add_edge(gpu, device->barrier, w, MR_CAUSE_PEER_COPY);
}

static bool join_device(vgpu *gpu, const vdevice *device, work *w) {
    for (queue *q = device->first; q; q = q->next)
        if (q->tail && q != w->queue && !mr_virtual_add_edge(gpu, q->tail, w, MR_CAUSE_PEER_COPY))
            return false;
    return true;
}

static bool join_record(vgpu *gpu, const queue *q, work *w) {
    const mark *m = w->command->u.event.event->impl;
    if (!m || !m->record || m->record->queue == q) return true;
    return mr_virtual_add_edge(gpu, m->record, w, MR_CAUSE_EVENT);
}

static bool join_freed(vgpu *gpu, work *w) {
    block *b = w->command->u.storage->impl;
    work *freeing = b->reuse_after;
    b->reuse_after = NULL;
    return !freeing || mr_virtual_add_edge(gpu, freeing, w, MR_CAUSE_MEMORY);
}

static bool join_walled_devices(vgpu *gpu, work *w) {
    for (uint64_t walls = mr_order_walls(w->command); walls; walls &= walls - 1)
        if (!join_device(gpu, &gpu->devices[__builtin_ctzll(walls)], w)) return false;
    return true;
}

/* join_wall took that of its own device, join_device the tails of these devices' queues. */
static bool join_walls(vgpu *gpu, work *w) {
    uint64_t walls = mr_order_walls(w->command);
    for (uint64_t rest = walls; rest; rest &= rest - 1) {
        const vdevice *device = &gpu->devices[__builtin_ctzll(rest)];
        if (!device->barrier || device == w->queue->device) continue;
        bool is_met = walls >> (device->barrier->queue->device - gpu->devices) & 1;
        if (!is_met && !mr_virtual_add_edge(gpu, device->barrier, w, MR_CAUSE_PEER_COPY))
            return false;
    }
    return true;
}

static void raise_wall(vgpu *gpu, work *w) {
    w->barrier = true;
    for (uint64_t walls = mr_order_walls(w->command); walls; walls &= walls - 1) {
        vdevice *device = &gpu->devices[__builtin_ctzll(walls)];
        device->barrier = w;
        device->barrier_count++;
    }
}

static void lower_barrier(vgpu *gpu, const work *w) {
    for (int i = 0; i < gpu->device_count; i++)
        if (gpu->devices[i].barrier == w) gpu->devices[i].barrier = NULL;
}

/* ---- enqueueing */

/* False: memory is out. */
static bool enter(vgpu *gpu, work *w, const mr_order_row *row) {
    queue *q = w->queue;
    switch ((mr_place)row->from) {
    case MR_PLACE_GATHERED: return join_gathered(gpu, q->device, w);
    case MR_PLACE_RELEASED: return join_released(gpu, q, w);
    case MR_PLACE_WALL:
        return row->needs & MR_FACT_WALL ? join_walls(gpu, w) : join_wall(gpu, q, w);
    case MR_PLACE_RECORD: return join_record(gpu, q, w);
    case MR_PLACE_FREED: return join_freed(gpu, w);
    case MR_PLACE_DEVICE: return join_walled_devices(gpu, w);
    case MR_PLACE_LANE:    /* the queue is a list: mr_virtual_enqueue */
    case MR_PLACE_HOST:    /* it is submitted now */
    case MR_PLACE_SOURCES: /* the works of a meeting end together: meet.c */
    case MR_PLACE_MEETING:
    case MR_PLACE_USERS: /* the pool waits for them, no work does */
    case MR_PLACE_OWNER:
    case MR_PLACE_NODE: break;
    }
    return true;
}

/* Cannot fail after `enter`. */
static void leave(vgpu *gpu, work *w, const mr_order_row *row) {
    queue *q = w->queue;
    switch ((mr_place)row->to) {
    case MR_PLACE_GATHERED:
        if (row->replaces) gather_none(q->device);
        if (!q->dirty) dirty_insert(q);
        break;
    case MR_PLACE_RELEASED: gather_none(q->device); break; /* the place is the queue's tail */
    case MR_PLACE_WALL: raise_wall(gpu, w); break;
    case MR_PLACE_FREED: /* the free itself: mr_pool_free, once it is linked */
        mr_pool_guard(w->command->u.storage, q, (mr_place)row->from);
        break;
    case MR_PLACE_LANE:   /* link_tail */
    case MR_PLACE_RECORD: /* make_mark, which may fail */
    case MR_PLACE_DEVICE: /* all its queues */
    case MR_PLACE_SOURCES:
    case MR_PLACE_MEETING:
    case MR_PLACE_USERS:
    case MR_PLACE_OWNER:
    case MR_PLACE_HOST:
    case MR_PLACE_NODE: break;
    }
}

/* Finds the rows that need `enter` or `leave`, so that the others are skipped at each command. */
void mr_virtual_queue_rows(queue *q) {
    mr_order_set idle = 0;
    for (unsigned i = 0; i < MR_ORDER_ROWS; i++) {
        const mr_order_row *row = &mr_order_rows[i];
        bool enters = row->when == MR_AT_ENTER;
        bool is_idle = enters ? row->from == MR_PLACE_HOST || row->from == MR_PLACE_LANE
                              : row->to == MR_PLACE_LANE || row->to == MR_PLACE_RECORD ||
                                    row->to == MR_PLACE_DEVICE ||
                                    (row->to == MR_PLACE_FREED && row->from == MR_PLACE_NODE);
        idle |= (mr_order_set)is_idle << i;
    }
    for (int kind = 0; kind < MR_ORDER_KINDS; kind++) {
        q->lane.enter[kind] &= ~idle;
        q->lane.leave[kind] &= ~idle;
    }
}

static bool make_mark(vgpu *gpu, const mr_command *command, work *w) {
    mr_event *event = command->u.event.event;
    mark *m = mr_slab_alloc(&gpu->marks), *old = event->impl;
    if (!m) return false;
    *m = (mark){.record = w, .queue = w->queue, .held = true};
    w->u.mark = m;
    event->impl = m;
    if (old) mr_virtual_mark_drop(gpu, old); /* R12: replaced, but waits that found it keep it */
    return true;
}

static bool writes_pageable(const mr_command *command) {
    bool copy = command->kind == MR_COMMAND_COPY;
    return mr_order_writes_pageable(command->kind, copy ? command->operands[0].tensor->storage->kind
                                                        : MR_MEMORY_DEVICE);
}

/* A queue whose work the default stream gathers (R3). */
static bool is_gathered(const queue *q) {
    return mr_order_gives(&q->lane, MR_PLACE_GATHERED);
}

static void link_tail(vgpu *gpu, work *w) {
    queue *q = w->queue;
    w->before = q->tail;
    if (q->tail) {
        q->tail->after = w;
    } else {
        q->head = w;
        if (is_gathered(q)) q->device->busy_blocking++;
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
    if (!w) return mr_no_memory("for %s", command->name);
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

/* The work before `w` may be over, and by this host's clock in the future (mr_virtual_is_past). Then `w` begins as if
 * that work were still pending, as in start_after. */
static uint64_t after_the_past(work *w, uint64_t earliest) {
    const mr_command *command = w->command;
    const vgpu *gpu = vgpu_of(command->machine);
    const queue *q = w->queue;
    if (!mr_virtual_is_past(gpu, q->last_end)) {
        bool hands_over = w->engine && q->last_engine && w->engine != q->last_engine;
        uint64_t start = q->last_end;
        if (!is_launch(command)) {
            w->ended = q->last_ended;
            w->engine = q->last_engine;
        } else if (hands_over && !mr_virtual_is_past(gpu, q->last_ended)) {
            uint64_t handed = q->last_ended + (uint64_t)gpu->model.handover_ns;
            if (start < handed) start = handed;
        }
        if (earliest < start) earliest = start;
    }
    if (command->kind != MR_COMMAND_WAIT) return earliest;
    const mark *m = command->u.event.event->impl;
    if (!m || !m->done || mr_virtual_is_past(gpu, m->time)) return earliest;
    uint64_t latency = m->queue == q ? 0 : (uint64_t)gpu->model.wait_latency_ns;
    return earliest < m->time + latency ? m->time + latency : earliest;
}

mr_status mr_virtual_enqueue(work *w, uint64_t earliest) {
    const mr_command *command = w->command;
    vgpu *gpu = vgpu_of(command->machine);
    queue *q = w->queue;
    vdevice *device = q->device;
    w->engine = (uint8_t)mr_virtual_engine_of(command);
    const mr_meeting *meeting = command->meeting;
    bool is_far = meeting && meeting->members[command->member].far;
    w->time = after_the_past(w, is_far ? meeting->members[command->member].begins : earliest);
    w->called = gpu->host_ns;
    mr_order_set enters = q->lane.enter[command->kind], leaves = q->lane.leave[command->kind];
    if (mr_order_walls(command)) {
        enters |= mr_order_find(q->lane.facts | MR_FACT_WALL, MR_AT_ENTER, MR_ALLOCATOR);
        leaves |= mr_order_find(q->lane.facts | MR_FACT_WALL, MR_AT_LEAVE, MR_ALLOCATOR);
    }
    bool fine = true;
    w->unfinished = q->tail != NULL;
    for (; enters && fine; enters &= enters - 1) fine = enter(gpu, w, mr_order_first(enters));
    if (fine && command->meeting) fine = mr_virtual_meet_join(gpu, w);
    if (!fine || (command->kind == MR_COMMAND_RECORD && !make_mark(gpu, command, w))) {
        mr_virtual_free_edges_in(gpu, w);
        return mr_no_memory("for %s", command->name);
    }
    for (; leaves; leaves &= leaves - 1) leave(gpu, w, mr_order_first(leaves));
    q->released_seen = device->legacy ? device->legacy->submitted : 0;
    q->device_barrier_seen = device->barrier_count;
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

/* no longer pending */
static void mark_release(vgpu *gpu, mark *m) {
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
    mark_release(gpu, m);
}

/* The effect of a work that has no body. */
static void come_true(vgpu *gpu, work *w, uint64_t now) {
    switch (w->command->kind) {
    case MR_COMMAND_RECORD: mark_done(gpu, w->u.mark, now); break;
    case MR_COMMAND_FREE: mr_pool_free_done(w); break;
    case MR_COMMAND_OP:
    case MR_COMMAND_COPY:
    case MR_COMMAND_WAIT:
    case MR_COMMAND_HOST_FUNCTION:
    case MR_COMMAND_ALLOC:
    case MR_COMMAND_FAULT: MR_HOST_LIST(MR_COMMAND_CASE) MR_ACCOUNT_LIST(MR_COMMAND_CASE) break;
    }
}

static void release_successors(vgpu *gpu, work *w, uint64_t now) {
    for (edge *e = w->out, *next; e; e = next) {
        next = e->next_out;
        if (e->to) {
            e->from = NULL;
            predecessor_done(gpu, w, e->to, (mr_cause)e->cause, now);
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
    come_true(gpu, w, now);
    unlink_work(gpu, w);
    if (is_body(command)) w->ended = now;
    q->completed++;
    q->last_end = now;
    q->last_ended = w->ended;
    q->last_engine = w->engine;
    if (device->last_end < now) device->last_end = now;
    if ((is_gathered(q) || mr_order_takes(&q->lane, MR_PLACE_GATHERED)) &&
        device->blocking_end < now)
        device->blocking_end = now;
    q->head = w->after;
    if (q->head) {
        q->head->before = NULL;
        predecessor_done(gpu, w, q->head, MR_CAUSE_STREAM, now);
    } else {
        q->tail = NULL;
        if (is_gathered(q)) device->busy_blocking--;
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
        if (is_gathered(q)) device->busy_blocking--;
    }
    if (q->last_join == w) {
        q->last_join = w->prior_join;
        q->last_join_index = w->prior_join_index;
    }
    /* No order after it may be assumed: the next command joins again. */
    q->released_seen = q->device_barrier_seen = UINT64_MAX;
    if (mr_order_gives(&q->lane, MR_PLACE_RELEASED))
        for (queue *other = device->first; other; other = other->next)
            if (is_gathered(other) && other->tail && !other->dirty) dirty_insert(other);
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
    gather_none(device);
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
    for (edge *e = w->in, *next; e; e = next) {
        next = e->u.next_in;
        mr_slab_free(&gpu->edges, e);
    }
    w->in = w->out = NULL;
    come_true(gpu, w, gpu->device_ns);
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
    /* Each edge is freed once: here those without a waiting work, the others with their `to`. */
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
    mr_virtual_meets_drop(gpu);
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
