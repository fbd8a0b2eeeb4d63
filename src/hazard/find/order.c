/* The order of commands: keeps the clocks of order.h up to date.
 *
 * Two shortcuts keep waits cheap. Both use transitivity: a clock that knows a command also knows
 * everything that the command's clock knew. If the waiter already knows the record, the wait changes
 * nothing. If the record knows the waiter's last wait, it knows everything that the waiter knows, so its
 * clock can be shared. A clock that is not transitive would make both wrong, so only this file writes
 * clocks.
 *
 * The legacy barrier (R3) needs no work for each stream. `gathered` collects the clocks of blocking
 * streams. A legacy command turns it into `released`. Every blocking stream compares with `released` by
 * itself, also a stream that is created later. */
#include "hazard/state.h"

#include <stdlib.h>
#include <string.h>

/* ---- slots */

static bool grow_slots(checker *c) {
    uint32_t capacity = c->order.slot_capacity ? c->order.slot_capacity * 2 : 16;
    if (!mr_hazard_hosts_grow(c, capacity)) return false;
    c->order.slot_capacity = capacity;
    return true;
}

static bool take_slot(checker *c, uint32_t *out_slot) {
    if (c->order.free_slots.count) {
        *out_slot = mr_vec_pop(&c->order.free_slots);
        return true;
    }
    if (c->order.slots == c->order.slot_capacity && !grow_slots(c)) return false;
    *out_slot = c->order.slots++;
    return true;
}

/* A slot may be reused when no query about the old stream can go wrong: no entry names it any more, or its commands are
 * ordered for good. New commands have greater seqs than all old ones, so old clock values never count as knowledge of
 * the new stream. */
static void give_slot(checker *c, actor *a) {
    if (a->slot_given) return;
    a->slot_given = true;
    c->order.zombies--;
    if (!mr_vec_push(&c->order.free_slots, a->slot))
        a->slot_given = true; /* lost: costs 8 bytes a clock */
}

static void sweep_zombies(checker *c) {
    for (actor *a = c->order.actors; a; a = a->next)
        if (!a->stream && !a->slot_given &&
            (MR_BROKEN(SLOT_REUSE) || mr_hazard_all_know(c, a, a->last)))
            give_slot(c, a);
    c->order.zombies_swept = c->order.zombies;
}

/* ---- the default stream's barrier (R3)
 *
 * MR_PLACE_GATHERED and MR_PLACE_RELEASED hold two things: a number in a group's slot for the commands themselves, and
 * a clock for the work that those commands had waited for. */

static bool is_gathered(const actor *a) {
    return mr_order_gives(&a->lane, MR_PLACE_GATHERED);
}
static bool gathers(const actor *a) {
    return mr_order_takes(&a->lane, MR_PLACE_GATHERED);
}
static bool releases(const actor *a) {
    return mr_order_gives(&a->lane, MR_PLACE_RELEASED);
}
static bool is_released(const actor *a) {
    return mr_order_takes(&a->lane, MR_PLACE_RELEASED);
}

bool mr_hazard_gathers_from(const actor *t, const actor *a) {
    return gathers(t) && is_gathered(a) && a->device == t->device;
}

/* ---- actors */

static actor *actor_new(checker *c, mr_stream *stream) {
    uint32_t slot;
    if (MR_BROKEN(SLOT_REUSE) || c->order.zombies >= 32 + 2 * c->order.zombies_swept)
        sweep_zombies(c);
    actor *a = calloc(1, sizeof *a);
    if (!a || !take_slot(c, &slot)) {
        free(a);
        c->out_of_memory = true;
        return NULL;
    }
    *a = (actor){.stream = stream,
                 .slot = slot,
                 .refs = 1,
                 .id = stream->id,
                 .device = stream->device->index,
                 .kind = stream->kind,
                 .legacy = stream->kind == MR_STREAM_LEGACY,
                 .name = mr_name_retain(stream->name),
                 .next = c->order.actors};
    mr_order_lane_init(&a->lane, stream->kind, stream->blocking || MR_BROKEN(NONBLOCKING),
                       MR_GUARANTEED);
    a->grouped = is_gathered(a) || gathers(a) || is_released(a) || releases(a);
    if (c->order.actors) c->order.actors->previous = a;
    c->order.actors = a;
    stream->observed = a;
    return a;
}

actor *mr_hazard_actor_of(checker *c, mr_stream *stream) {
    actor *a = stream->observed;
    return a ? a : actor_new(c, stream);
}

void mr_hazard_actor_retain(actor *a) {
    a->refs++;
}

void mr_hazard_actor_release(checker *c, actor *a) {
    if (--a->refs || a == &c->order.host_actor) return;
    give_slot(c, a);
    mr_hazard_clock_release(c, a->clock);
    mr_hazard_clock_release(c, a->released);
    if (a->previous) a->previous->next = a->next;
    else c->order.actors = a->next;
    if (a->next) a->next->previous = a->previous;
    mr_name_release(a->name);
    free(a);
}

void mr_hazard_actor_lose(checker *c, actor *a) {
    a->stream->observed = NULL;
    a->stream = NULL;
    c->order.zombies++;
    mr_hazard_actor_release(c, a);
}

/* ---- who knows what */

uint64_t mr_hazard_clock_reach(const checker *c, const vclock *clock, const actor *a) {
    if (!clock || a->device < 0) return 0;
    const barrier *b = &c->order.barriers[a->device];
    uint64_t own = mr_hazard_clock_get(clock, a->slot);
    uint64_t group = a->grouped ? mr_hazard_clock_get(clock, b->group_slot) : 0;
    uint64_t all = c->order.barrier_count > 1 ? mr_hazard_clock_get(clock, b->all_slot) : 0;
    if (group > own) own = group;
    return all > own ? all : own;
}

bool mr_hazard_clock_knows(const checker *c, const vclock *clock, const actor *a, uint64_t seq) {
    if (!clock) return false;
    if (mr_hazard_clock_get(clock, a->slot) >= seq) return true;
    if (a->device < 0) return false;
    const barrier *b = &c->order.barriers[a->device];
    return (a->grouped && mr_hazard_clock_get(clock, b->group_slot) >= seq) ||
           (c->order.barrier_count > 1 && mr_hazard_clock_get(clock, b->all_slot) >= seq);
}

static bool knows(const checker *c, const uint64_t *host, const actor *a, uint64_t seq) {
    if (a->device < 0 || seq <= c->order.floor || host[a->slot] >= seq) return true;
    const barrier *b = &c->order.barriers[a->device];
    return host[b->all_slot] >= seq || (a->grouped && host[b->group_slot] >= seq);
}

bool mr_hazard_host_knows(const checker *c, const actor *a, uint64_t seq) {
    return knows(c, c->hosts.now, a, seq);
}

bool mr_hazard_all_know(const checker *c, const actor *a, uint64_t seq) {
    return knows(c, c->hosts.of[0], a, seq);
}

bool mr_hazard_knows_slowly(const checker *c, const actor *t, const actor *a, uint64_t seq) {
    if (mr_hazard_host_knows(c, a, seq)) return true;
    if (t == &c->order.host_actor) return false;
    if (!gathers(t) && !is_released(t)) return mr_hazard_clock_knows(c, t->clock, a, seq);
    const barrier *b = &c->order.barriers[t->device];
    bool same_device = a->device == t->device;
    if (gathers(t)) {
        if (mr_hazard_gathers_from(t, a) && !MR_BROKEN(LEGACY_ACQUIRES)) return true;
        return mr_hazard_clock_knows(c, b->gathered, a, seq);
    }
    if (same_device && a->grouped && seq <= b->legacy_last && !MR_BROKEN(LEGACY_RELEASES))
        return true;
    return mr_hazard_clock_knows(c, t->clock, a, seq) ||
           mr_hazard_clock_knows(c, b->released, a, seq);
}

bool mr_hazard_knew(const checker *c, const actor *t, const actor *a, uint64_t seq) {
    if (a == t && mr_order_takes(&t->lane, MR_PLACE_LANE)) return true;
    if (mr_hazard_host_knows(c, a, seq)) return true;
    if (!gathers(t) && !is_released(t)) return mr_hazard_clock_knows(c, t->clock, a, seq);
    const barrier *b = &c->order.barriers[t->device];
    uint64_t group = gathers(t) ? b->legacy_last : t->legacy_seen;
    if (a->grouped && a->device == t->device && seq <= group) return true;
    return mr_hazard_clock_knows(c, t->clock, a, seq) ||
           mr_hazard_clock_knows(c, gathers(t) ? b->released : t->released, a, seq);
}

bool mr_hazard_is_ordered(mr_hazard *c, mr_stream *first, uint64_t first_seq, mr_stream *second) {
    const actor *a = first->observed;
    const actor *t = second ? mr_hazard_actor_of(c, second) : &c->order.host_actor;
    if (!a || !t) return true; /* it has done nothing */
    return mr_hazard_knows(c, t, a, first_seq < a->last ? first_seq : a->last);
}

/* ---- streams */

static void replace(checker *c, vclock **clock, vclock *with) {
    vclock *before = *clock;
    *clock = mr_hazard_clock_retain(with);
    mr_hazard_clock_release(c, before);
}

/* R60: the first command after a device barrier is ordered after everything before the barrier. */
static void meet_wall(checker *c, actor *t, uint64_t seq) {
    barrier *b = &c->order.barriers[t->device];
    t->device_barrier_seen = b->device_barrier_seq;
    t->acquired = seq;
    replace(c, &t->clock, b->device_barrier); /* it includes what t had waited for */
    if (is_gathered(t) || gathers(t)) mr_hazard_clock_merge(c, &b->gathered, b->device_barrier);
}

/* R3: a legacy command passes on what blocking streams had waited for before it. */
static bool order_submitted(checker *c, actor *t, uint64_t seq) {
    barrier *b = &c->order.barriers[t->device];
    bool meets =
        mr_order_takes(&t->lane, MR_PLACE_WALL) && t->device_barrier_seen != b->device_barrier_seq;
    t->last = seq;
    if (meets) meet_wall(c, t, seq);
    if (releases(t)) {
        b->legacy_last = seq;
        if (b->released != b->gathered && !MR_BROKEN(LEGACY_CARRIES))
            replace(c, &b->released, b->gathered);
        return true;
    }
    if (!is_released(t)) return meets;
    if (t->legacy_seen == b->legacy_last && t->released == b->released) return meets;
    t->legacy_seen = b->legacy_last;
    replace(c, &t->released, b->released);
    return true;
}

/* Blocking streams may use memory that the legacy stream allocates (R3). So they come after the allocation, but not
 * therefore after its predecessors. */
void mr_hazard_order_alloc(checker *c, actor *t, uint64_t seq) {
    t->last = seq;
    if (MR_BROKEN(ALLOC_IS_BARRIER)) order_submitted(c, t, seq);
    else if (mr_place_in(t->lane.gives[MR_COMMAND_ALLOC], MR_PLACE_RELEASED))
        mr_hazard_clock_raise(c, &c->order.barriers[t->device].released, t->slot, seq);
}

void mr_hazard_order_free(checker *c, actor *t, uint64_t seq) {
    t->last = seq;
    if (MR_BROKEN(FREE_IS_BARRIER)) order_submitted(c, t, seq);
}

bool mr_hazard_order_before_free(const checker *c, const actor *t, const actor *a, uint64_t seq) {
    if (t == &c->order.host_actor) return mr_hazard_host_knows(c, a, seq);
    const barrier *b = &c->order.barriers[t->device];
    return mr_hazard_knows(c, t, a, seq) || (mr_order_takes(&t->lane, MR_PLACE_WALL) &&
                                             t->device_barrier_seen != b->device_barrier_seq &&
                                             mr_hazard_clock_knows(c, b->device_barrier, a, seq));
}

static void snapshot_clear(checker *c, snapshot *s) {
    mr_hazard_clock_release(c, s->clock);
    mr_hazard_clock_release(c, s->barrier);
    mr_hazard_actor_release(c, s->actor);
}

void mr_hazard_snapshot_free(checker *c, snapshot *s) {
    snapshot_clear(c, s);
    if (s->previous) s->previous->next = s->next;
    else c->order.snapshots = s->next;
    if (s->next) s->next->previous = s->previous;
    s->event->observed = NULL;
    free(s);
}

static snapshot *snapshot_new(checker *c, mr_event *event) {
    snapshot *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->next = c->order.snapshots;
    if (s->next) s->next->previous = s;
    c->order.snapshots = s;
    s->event = event;
    event->observed = s;
    return s;
}

/* Fills the empty `s`: the actor's commands up to `seq`, and what they came after. */
static void stand_for(checker *c, snapshot *s, actor *t, uint64_t seq) {
    const barrier *b = &c->order.barriers[t->device];
    s->actor = t;
    s->seq = seq;
    s->clock = s->barrier = NULL;
    s->group = 0;
    mr_hazard_actor_retain(t);
    if (gathers(t)) {
        s->clock = mr_hazard_clock_retain(b->gathered);
        s->group = MR_BROKEN(LEGACY_RECORD) ? 0 : seq; /* R16 */
    } else {
        s->clock = mr_hazard_clock_retain(t->clock);
        if (is_released(t)) {
            s->barrier = mr_hazard_clock_retain(t->released);
            s->group = t->legacy_seen;
        }
    }
    mr_hazard_hosts_pass(c, &s->clock); /* the waiter may be another rank's */
}

/* R11, R12: the record replaces the event's earlier record. */
void mr_hazard_order_record(checker *c, actor *t, const mr_command *command, bool carries) {
    if (!mr_place_in(t->lane.gives[MR_COMMAND_RECORD], MR_PLACE_RECORD)) return;
    mr_event *event = command->u.event.event;
    snapshot *s = event->observed;
    if (s && MR_BROKEN(RERECORD_KEPT)) {
        s->seq = command->seq;
        return;
    }
    if (s) {
        snapshot_clear(c, s);
    } else if (!(s = snapshot_new(c, event))) {
        c->out_of_memory = true;
        return;
    }
    stand_for(c, s, t, command->seq);
    s->known_as = 0;
    s->where = command->where;
    s->used = false;
    s->carries = carries;
    s->timed = event->timing;
    s->worked = t->worked;
}

/* Adds everything in `s` to *clock, which belongs to `t` (NULL: to no actor). */
static void acquire(checker *c, vclock **clock, const actor *t, const snapshot *s) {
    const barrier *b = &c->order.barriers[s->actor->device];
    bool dominated = MR_BROKEN(WAIT_DOMINATED) || MR_BROKEN(WAIT_FORGETS) || !*clock;
    if (!dominated && t) {
        bool in_group = t->grouped && t->device == s->actor->device && s->group >= t->acquired;
        dominated = in_group || mr_hazard_all_know(c, t, t->acquired) ||
                    mr_hazard_clock_knows(c, s->clock, t, t->acquired) ||
                    mr_hazard_clock_knows(c, s->barrier, t, t->acquired);
    }
    if (dominated) {
        replace(c, clock, MR_BROKEN(WAIT_DIRECT_ONLY) ? NULL : s->clock);
    } else if (!MR_BROKEN(WAIT_DIRECT_ONLY)) {
        mr_hazard_clock_merge(c, clock, s->clock);
    }
    mr_hazard_clock_merge(c, clock, s->barrier);
    uint64_t seq = MR_BROKEN(WAIT_LATEST) ? s->actor->last : s->seq;
    mr_hazard_clock_raise(c, clock, s->actor->slot, seq);
    if (s->group > c->hosts.of[0][b->group_slot])
        mr_hazard_clock_raise(c, clock, b->group_slot, s->group);
}

bool mr_hazard_order_wait(checker *c, actor *t, uint64_t seq, const snapshot *s) {
    if (!mr_place_in(t->lane.takes[MR_COMMAND_WAIT], MR_PLACE_RECORD)) return true;
    if (MR_BROKEN(REDUNDANT_TOO_SOON) && t->acquired) return true;
    if (mr_hazard_knows(c, t, s->actor, MR_BROKEN(WAIT_LATEST) ? s->actor->last : s->seq))
        return false;
    if (!gathers(t)) {
        acquire(c, &t->clock, t, s);
        t->acquired = seq;
    }
    if (!is_gathered(t) && !gathers(t)) return true;
    barrier *b = &c->order.barriers[t->device];
    acquire(c, &b->gathered, NULL, s);
    if (releases(t)) order_submitted(c, t, seq); /* sets `released` to what is gathered now */
    return true;
}

/* ---- the host */

static void host_raise(checker *c, uint32_t slot, uint64_t seq) {
    if (seq > c->hosts.now[slot]) c->hosts.now[slot] = seq;
}

void mr_hazard_order_stream_sync(checker *c, actor *t, uint64_t seq) {
    if (MR_BROKEN(HOST_SYNC)) return;
    barrier *b = &c->order.barriers[t->device];
    /* Up to its last command: devices also cover later work of blocking streams, but that is not guaranteed (R5). */
    if (gathers(t)) {
        uint64_t covered = MR_BROKEN(HOST_SYNC_GROUP) ? seq : b->legacy_last;
        if (!MR_BROKEN(HOST_SYNC_LEGACY)) host_raise(c, b->group_slot, covered);
        mr_hazard_clock_to_host(c, b->released);
    } else if (!MR_BROKEN(HOST_SYNC_CARRIES)) {
        if (t->clock && !mr_hazard_host_knows(c, t, t->acquired))
            mr_hazard_clock_to_host(c, t->clock);
        if (is_released(t)) {
            host_raise(c, b->group_slot, t->legacy_seen); /* not what came after its last command */
            mr_hazard_clock_to_host(c, t->released);
        }
    }
    host_raise(c, t->slot, seq);
}

/* Whether it is the only member of this process; the others stand for members in other processes. */
static bool is_first_member(const mr_command *command) {
    const mr_meeting *meeting = command->meeting;
    uint32_t first = 0;
    while (first + 1 < meeting->size && meeting->members[first].far) first++;
    return command->member == first;
}

/* A member of another process has no actor, like a member whose meeting was left in the middle. */
static void drop_entered(checker *c) {
    for (uint32_t k = 0; k < c->order.entered_size; k++)
        if (c->order.entered[k].actor) snapshot_clear(c, &c->order.entered[k]);
    free(c->order.entered);
    c->order.entered = NULL;
    c->order.entered_size = 0;
}

/* As if each member had been recorded right before it, and each waited for the records of those whose data it gets. */
void mr_hazard_order_meet(checker *c, actor *t, const mr_command *command) {
    const mr_meeting *meeting = command->meeting;
    if (is_first_member(command)) {
        drop_entered(c);
        c->order.entered = calloc(meeting->size, sizeof *c->order.entered);
        if (c->order.entered) c->order.entered_size = meeting->size;
        else c->out_of_memory = true;
    }
    if (!c->order.entered) return;
    stand_for(c, &c->order.entered[command->member], t, command->seq - 1);
    if (mr_command_waits_for_others(command)) return;
    if (c->machine->rank && !mr_meeting_orders_all(meeting)) c->order.ends_together = command->seq;
    for (uint32_t k = 0; k < meeting->size; k++)
        for (uint64_t from = meeting->members[k].from; from; from &= from - 1)
            mr_hazard_order_wait(c, c->order.entered[k].actor, command->seq,
                                 &c->order.entered[__builtin_ctzll(from)]);
    drop_entered(c);
}

void mr_hazard_order_event_sync(checker *c, const snapshot *s) {
    uint64_t seq = MR_BROKEN(EVENT_SYNC_LATEST) ? s->actor->last : s->seq;
    if (MR_BROKEN(EVENT_SYNC) || mr_hazard_host_knows(c, s->actor, seq)) return;
    mr_hazard_clock_to_host(c, s->clock);
    mr_hazard_clock_to_host(c, s->barrier);
    host_raise(c, c->order.barriers[s->actor->device].group_slot, s->group);
    host_raise(c, s->actor->slot, seq);
}

/* R10: covers only this device, and what its streams have waited for on others. */
void mr_hazard_order_device_sync(checker *c, mr_device *device, uint64_t seq) {
    if (c->machine->device_count == 1) {
        c->order.floor = seq;
        return;
    }
    for (int i = 0; i < c->machine->device_count; i++)
        if (i == device->index || MR_BROKEN(DEVICE_SYNC_ALL))
            host_raise(c, c->order.barriers[i].all_slot, seq);
    if (MR_BROKEN(DEVICE_SYNC_CARRIES)) return;
    for (actor *a = c->order.actors; a; a = a->next)
        if (a->device == device->index) mr_hazard_clock_to_host(c, a->clock);
    mr_hazard_clock_to_host(c, c->order.barriers[device->index].gathered);
}

/* R60: a synchronous copy between devices comes after all work of its devices and before all later work of theirs. It
 * gathers what every stream knows; the streams learn of it when they are next used. */
static void gather_device(checker *c, int device, uint64_t seq, vclock **clock) {
    const barrier *b = &c->order.barriers[device];
    for (actor *a = c->order.actors; a; a = a->next)
        if (a->device == device) mr_hazard_clock_merge(c, clock, a->clock);
    mr_hazard_clock_merge(c, clock, b->gathered);
    mr_hazard_clock_raise(c, clock, b->all_slot, seq);
}

static void gather_place(checker *c, mr_place place, int device, uint64_t seq, vclock **clock) {
    if (place == MR_PLACE_DEVICE) gather_device(c, device, seq, clock);
    else if (place == MR_PLACE_WALL)
        mr_hazard_clock_merge(c, clock, c->order.barriers[device].device_barrier);
}

static void raise_wall(checker *c, const mr_command *command, uint64_t walls) {
    actor *t = command->stream->observed;
    mr_order_facts facts = t->lane.facts | MR_FACT_WALL;
    bool gives = mr_place_in(mr_order_given(facts, MR_GUARANTEED), MR_PLACE_WALL);
    vclock *wall = NULL;
    for (mr_order_set rows = mr_order_of_wall(MR_AT_ENTER, MR_GUARANTEED); rows; rows &= rows - 1)
        for (uint64_t rest = walls; rest; rest &= rest - 1)
            gather_place(c, (mr_place)mr_order_first(rows)->from, __builtin_ctzll(rest),
                         command->seq, &wall);
    for (uint64_t rest = walls; rest && gives; rest &= rest - 1) {
        barrier *b = &c->order.barriers[__builtin_ctzll(rest)];
        replace(c, &b->device_barrier, wall);
        b->device_barrier_seq = command->seq;
    }
    mr_hazard_clock_release(c, wall);
    order_submitted(c, t, command->seq);
}

bool mr_hazard_order_before(checker *c, actor *t, const mr_command *command) {
    bool carries = order_submitted(c, t, command->seq);
    uint64_t walls = mr_order_walls(command);
    if (__builtin_expect(walls != 0, 0)) raise_wall(c, command, walls);
    return carries;
}

static void save_barrier(order_before *before, barrier *b) {
    mr_hazard_clock_retain(b->gathered);
    mr_hazard_clock_retain(b->released);
    mr_hazard_clock_retain(b->device_barrier);
    before->barrier[before->barriers].at = b;
    before->barrier[before->barriers++].was = *b;
}

void mr_hazard_order_save(const checker *c, actor *t, const mr_command *command,
                          order_before *out_before) {
    out_before->actor = t;
    out_before->was = *t;
    out_before->barriers = 0;
    mr_hazard_clock_retain(t->clock);
    mr_hazard_clock_retain(t->released);
    save_barrier(out_before, &c->order.barriers[t->device]);
    for (uint64_t walls = mr_order_walls(command); walls; walls &= walls - 1)
        save_barrier(out_before, &c->order.barriers[__builtin_ctzll(walls)]);
}

static void put_back(checker *c, vclock **clock, vclock *was) {
    mr_hazard_clock_release(c, *clock);
    *clock = was;
}

void mr_hazard_order_restore(checker *c, order_before *before) {
    actor *t = before->actor;
    put_back(c, &t->clock, before->was.clock);
    put_back(c, &t->released, before->was.released);
    t->acquired = before->was.acquired;
    t->last = before->was.last;
    t->legacy_seen = before->was.legacy_seen;
    t->device_barrier_seen = before->was.device_barrier_seen;
    for (uint32_t i = 0; i < before->barriers; i++) {
        barrier *b = before->barrier[i].at;
        const barrier *was = &before->barrier[i].was;
        put_back(c, &b->gathered, was->gathered);
        put_back(c, &b->released, was->released);
        put_back(c, &b->device_barrier, was->device_barrier);
        b->legacy_last = was->legacy_last;
        b->device_barrier_seq = was->device_barrier_seq;
    }
}

vclock *mr_hazard_order_clock_of(checker *c, actor *t) {
    barrier *b = &c->order.barriers[t->device];
    vclock *clock = mr_hazard_clock_retain(gathers(t) ? b->gathered : t->clock);
    if (!gathers(t) && !is_released(t)) return clock;
    if (is_released(t)) mr_hazard_clock_merge(c, &clock, b->released);
    mr_hazard_clock_raise(c, &clock, b->group_slot, b->legacy_last);
    return clock;
}

/* ---- opening and closing */

/* Slot 0 is the host's, two a device stand for groups; streams follow. */
void mr_hazard_order_open(checker *c) {
    c->order.host_actor = (actor){.refs = 1, .device = -1};
    if (mr_place_in(mr_order_taken(MR_FACT_BY_HOST, MR_GUARANTEED), MR_PLACE_HOST))
        c->order.host_actor.lane.takes[MR_COMMAND_OP] = 1u
                                                        << MR_PLACE_LANE; /* its calls, in turn */
    if (!take_slot(c, &c->order.host_actor.slot)) c->out_of_memory = true;
    c->order.floor = c->order.opened = c->machine->counts.next_seq - 1;
    for (int i = 0; i < c->order.barrier_count; i++) {
        barrier *b = &c->order.barriers[i];
        *b = (barrier){0};
        if (!take_slot(c, &b->group_slot) || !take_slot(c, &b->all_slot)) c->out_of_memory = true;
    }
}

void mr_hazard_order_close(checker *c) {
    mr_hazard_functions_drop(c, true);
    while (c->order.snapshots) mr_hazard_snapshot_free(c, c->order.snapshots);
    drop_entered(c); /* a look at waits may end between two members */
    c->order.ends_together = 0;
    for (int i = 0; i < c->order.barrier_count; i++) {
        barrier *b = &c->order.barriers[i];
        mr_hazard_clock_release(c, b->gathered);
        mr_hazard_clock_release(c, b->released);
        mr_hazard_clock_release(c, b->device_barrier);
        mr_hazard_past_release(b->watch.before);
        *b = (barrier){0};
    }
    for (actor *a = c->order.actors, *next; a; a = next) {
        next = a->next;
        if (a->stream) mr_hazard_actor_lose(c, a);
    }
    for (size_t i = 0; i < c->order.in_flight.count; i++)
        mr_hazard_actor_release(c, c->order.in_flight.items[i].actor);
    mr_vec_free(&c->order.in_flight);
    mr_hazard_hosts_close(c);
    c->order.slots = c->order.slot_capacity = c->order.zombies = c->order.zombies_swept = 0;
    c->order.free_slots.count = 0;
}

void mr_hazard_order_restart(checker *c) {
    c->order.floor = c->machine->counts.next_seq - 1;
    mr_hazard_functions_waited(c);
}

void mr_hazard_order_drained(checker *c, int device) {
    for (actor *a = c->order.actors; a; a = a->next)
        if (a->device == device) a->launched = 0;
}

bool mr_hazard_order_create(checker *c) {
    c->order.barriers = calloc((size_t)c->machine->device_count, sizeof *c->order.barriers);
    if (!c->order.barriers) return false;
    c->order.barrier_count = c->machine->device_count;
    mr_slab_init(&c->clocks, sizeof(vclock), 64);
    return true;
}

void mr_hazard_order_destroy(checker *c) {
    mr_vec_free(&c->order.free_slots);
    mr_slab_destroy(&c->clocks);
    free(c->order.barriers);
}
