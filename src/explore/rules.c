/* What orders the items of a program: carries out the rows of order/order.h over sets of bits. Also tells the class of
 * an item for the search. See order.h. */
#include "explore/order.h"

#include "explore/explore.h"
#include "model/backend.h"

/* ---- what an item is */

static int64_t setting(const order *o, const char *name) {
    mr_machine *machine = mr_player_machine(o->player);
    int64_t value = 0;
    mr_error_destroy(machine->backend->simulator->get_setting(machine, name, &value));
    return value;
}

static mr_memory_kind memory_of(const mr_program_item *it, uint32_t operand) {
    return it->operands[operand].tensor->storage->kind;
}

static mr_order_facts facts_of(const mr_program_item *it) {
    bool of_host = it->command && mr_command_frees_at_once(it->command);
    mr_order_facts stream =
        it->stream_object && !of_host
            ? mr_order_facts_of_stream(it->stream_object->kind, it->stream_object->blocking)
            : 0;
    mr_order_facts facts = mr_order_facts_of_kind(it->kind, stream);
    return it->kind == MR_COMMAND_COPY && mr_order_walls(it->command) ? facts | MR_FACT_WALL
                                                                      : facts;
}

/* Whether a command that may write pageable memory is submitted but not carried out. */
static bool has_pageable_writer(const order *o) {
    for (uint32_t n = 0; n < o->placed; n++) {
        if (order_has(o, order_done(o), n) || !order_is_operation(&o->nodes.items[n])) continue;
        const mr_program_item *it = &o->items[o->nodes.items[n].item];
        mr_memory_kind to = it->kind == MR_COMMAND_COPY ? memory_of(it, 0) : MR_MEMORY_DEVICE;
        if (mr_order_writes_pageable(it->kind, to)) return true;
    }
    return false;
}

/* Whether an asynchronous copy of pageable memory returns early: `asked` is the choice of the search where it
 * branches. */
mr_order_copy_rules order_copy_of(const order *o, size_t i, bool asked) {
    const mr_program_item *it = &o->items[i];
    mr_order_copy copy = mr_order_copy_asked(it->command);
    bool may_stage = copy.from == MR_MEMORY_PAGEABLE;
    copy.fits_staging =
        may_stage && it->command->u.copy.bytes <= (uint64_t)setting(o, "staging_bytes");
    copy.pageable_writer = may_stage && has_pageable_writer(o);
    copy.early = asked;
    return mr_order_copy_of(&copy);
}

/* Without `default`, so that a new kind does not compile until it has a class. */
item_class order_class(const order *o, size_t i) {
    const mr_program_item *it = &o->items[i];
    if (it->failed && it->kind != MR_COMMAND_ELAPSED) return ITEM_LOOK;
    switch (it->kind) {
    case MR_COMMAND_COPY: return mr_order_copy_takes_host(it->command) ? ITEM_COPY : ITEM_WORK;
    case MR_COMMAND_OP:
        if (mr_command_waits_for_others(it->command)) return ITEM_PLAIN;
        return it->has_error ? ITEM_COPY : ITEM_WORK;
    case MR_COMMAND_HOST_FUNCTION:
    case MR_COMMAND_FAULT: return it->has_error ? ITEM_COPY : ITEM_WORK;
    case MR_COMMAND_HOST_ACCESS: return ITEM_HOST;
    case MR_COMMAND_STREAM_SYNC:
    case MR_COMMAND_EVENT_SYNC:
    case MR_COMMAND_DEVICE_SYNC:
    case MR_COMMAND_DRAIN: return ITEM_WAIT;
    case MR_COMMAND_STREAM_QUERY:
    case MR_COMMAND_EVENT_QUERY:
    case MR_COMMAND_ELAPSED: return ITEM_QUERY;
    case MR_COMMAND_ALLOC: return ITEM_ALLOC;
    case MR_COMMAND_FREE_WAIT:
    case MR_COMMAND_TRIM:
    case MR_COMMAND_HOST_READ:
    case MR_COMMAND_DEVICE_TIME:
    case MR_COMMAND_MEMORY_LOOK: return ITEM_LOOK;
    case MR_COMMAND_STEP:
    case MR_COMMAND_BACK:
    case MR_COMMAND_PASS:
    case MR_COMMAND_HISTORY:
    case MR_COMMAND_RESET:
    case MR_COMMAND_CHOOSER:
    case MR_COMMAND_MODEL:
    case MR_COMMAND_LAUNCH_BLOCKING:
    case MR_COMMAND_SETTING: return ITEM_REFUSED; /* mr_explore_refusal says why */
    case MR_COMMAND_RECORD:
    case MR_COMMAND_WAIT:
    case MR_COMMAND_FREE:
    case MR_COMMAND_STREAM_CREATE:
    case MR_COMMAND_STREAM_CLOSE:
    case MR_COMMAND_STREAM_DROP:
    case MR_COMMAND_EVENT_CREATE:
    case MR_COMMAND_EVENT_CLOSE:
    case MR_COMMAND_HOST_ALLOC:
    case MR_COMMAND_HOST_FREE:
    case MR_COMMAND_RECORD_STREAM:
    case MR_COMMAND_HOST_WORK:
    case MR_COMMAND_ENABLE_PEER:
    case MR_COMMAND_HOST_TIME:
    case MR_COMMAND_LOOK: break;
    }
    return ITEM_PLAIN;
}

bool order_has_nodes(item_class class) {
    switch (class) {
    case ITEM_WORK:
    case ITEM_HOST:
    case ITEM_QUERY:
    case ITEM_ALLOC:
    case ITEM_COPY: return true;
    case ITEM_PLAIN: /* a marker's node is placed when it leaves */
    case ITEM_WAIT:
    case ITEM_LOOK:
    case ITEM_REFUSED: break;
    }
    return false;
}

/* By kind: all that order_class calls ITEM_REFUSED. */
static const char *const refusals[] = {
    [MR_COMMAND_STEP] = "mr.machine.step(): the exploration takes the steps",
    [MR_COMMAND_BACK] = "mr.machine.back(): the exploration takes the steps",
    [MR_COMMAND_PASS] = "mr.machine.pass(ms): the exploration says when the device goes on",
    [MR_COMMAND_HISTORY] = "mr.machine.history{...}: the exploration takes the steps",
    [MR_COMMAND_RESET] = "mr.reset(): what was before it is gone",
    [MR_COMMAND_CHOOSER] = "mr.machine.chooser(name): the exploration chooses",
    [MR_COMMAND_MODEL] = "mr.machine.model(name): all schedules are those of one model",
    [MR_COMMAND_LAUNCH_BLOCKING] = "mr.launch_blocking(true): there is one schedule only with it",
    [MR_COMMAND_SETTING] = "mr.machine.settings{...}: all schedules are those of the same settings",
};

const char *mr_explore_refusal(mr_command_id kind) {
    return (size_t)kind < sizeof refusals / sizeof *refusals ? refusals[kind] : NULL;
}

/* The item does no work itself: the last member of its meeting does the work of all (R61). */
static bool waits_for_others(const mr_program_item *it) {
    return it->command && mr_command_waits_for_others(it->command);
}

bool order_is_marker(const mr_program_item *it) {
    if (it->failed) return false;
    if (waits_for_others(it)) return true;
    if (it->kind == MR_COMMAND_FREE) return !it->command->u.at_once;
    return mr_kind_is_of_event(it->kind);
}

/* ---- places */

/* The first item from *io_k on, before free i, that makes a stream one of the place's; false: there is none. */
static bool next_user(const order *o, size_t i, mr_place place, size_t *io_k) {
    const mr_stream *own = o->items[i].command->u.storage->stream;
    for (; *io_k < i; ++*io_k) {
        const mr_program_item *it = &o->items[*io_k];
        bool names = it->kind == MR_COMMAND_RECORD_STREAM && it->storage == o->items[i].storage;
        bool closes = it->kind == MR_COMMAND_STREAM_CLOSE && !it->failed;
        if (place == MR_PLACE_USERS ? names : closes && it->stream_object == own) return true;
    }
    return false;
}

/* Whether reuse of the memory needs more than the free itself. */
static bool is_guarded(const order *o, size_t i) {
    for (mr_order_set rows = o->rows[i].leave; rows; rows &= rows - 1) {
        const mr_order_row *row = mr_order_first(rows);
        size_t k = 0;
        if (row->to != MR_PLACE_FREED || row->from == MR_PLACE_NODE) continue;
        if (next_user(o, i, (mr_place)row->from, &k)) return true;
    }
    return false;
}

void order_find_rows(order *o, size_t count) {
    o->host_enter = mr_order_find(MR_FACT_BY_HOST, MR_AT_ENTER, MR_ALLOCATOR);
    for (uint32_t lane = 0; lane < o->lanes; lane++) {
        const mr_stream *s = mr_player_stream(o->player, lane);
        mr_order_facts facts = s ? mr_order_facts_of_stream(s->kind, s->blocking) : 0;
        o->gathered[lane] = mr_order_is_gathered(facts);
    }
    for (size_t i = 0; i < count; i++) {
        const mr_program_item *it = &o->items[i];
        mr_order_facts facts = facts_of(it), itself = facts | MR_FACT_FOR_ITSELF;
        bool copy = it->kind == MR_COMMAND_COPY;
        o->rows[i] = (order_rows){
            .in_stream = (facts & MR_FACT_SUBMITTED) != 0,
            .enter = mr_order_find(facts, MR_AT_ENTER, MR_ALLOCATOR),
            .leave = mr_order_find(facts, MR_AT_LEAVE, MR_ALLOCATOR),
            .waits = copy ? mr_order_find(facts | MR_FACT_FOR_EARLIER, MR_AT_CALL, MR_ALLOCATOR)
                          : mr_order_find(facts, MR_AT_RETURN, MR_ALLOCATOR),
            .known_done = mr_place_in(mr_order_returned(itself, MR_ALLOCATOR), MR_PLACE_NODE)};
        o->frees[i] = it->kind == MR_COMMAND_FREE && !it->failed && !it->command->u.at_once;
        o->guarded[i] = o->frees[i] && is_guarded(o, i);
    }
}

static void join_gathered(order *o, const mr_device *device) {
    for (uint32_t lane = 0; lane < o->lanes; lane++)
        if (o->gathered[lane] && mr_player_stream(o->player, lane)->device == device)
            order_scratch_join(o, order_lane(o, lane));
}

static void join_device(order *o, int device) {
    for (uint32_t lane = 0; lane < o->lanes; lane++) {
        const mr_stream *s = mr_player_stream(o->player, lane);
        if (s && s->device->index == device) order_scratch_join(o, order_lane(o, lane));
    }
}

static void join_walls(order *o, const mr_program_item *it, const mr_order_row *row) {
    bool of_all = row->needs & MR_FACT_WALL;
    uint64_t own = (uint64_t)1 << it->stream_object->device->index;
    for (uint64_t walls = of_all ? mr_order_walls(it->command) : own; walls; walls &= walls - 1)
        order_scratch_join(o, order_barrier(o, __builtin_ctzll(walls)));
}

/* Adds to the scratch set what the row's `from` holds for item `it`. */
static void take(order *o, const mr_program_item *it, const mr_order_row *row) {
    switch ((mr_place)row->from) {
    case MR_PLACE_HOST: order_scratch_join(o, order_host(o)); break;
    case MR_PLACE_LANE: order_scratch_join(o, order_lane(o, it->stream)); break;
    case MR_PLACE_GATHERED: join_gathered(o, it->stream_object->device); break;
    case MR_PLACE_RELEASED:
        order_scratch_join(o, order_released(o, it->stream_object->device->index));
        break;
    case MR_PLACE_WALL: join_walls(o, it, row); break;
    case MR_PLACE_DEVICE: {
        uint64_t walls = it->command ? mr_order_walls(it->command) : 0;
        if (!walls) join_device(o, (int)it->device);
        for (; walls; walls &= walls - 1) join_device(o, __builtin_ctzll(walls));
        break;
    }
    case MR_PLACE_RECORD:
        order_scratch_join(o, order_record(o, it->event));
        if (it->kind == MR_COMMAND_ELAPSED) order_scratch_join(o, order_record(o, it->other_event));
        break;
    case MR_PLACE_FREED:   /* the search decides which memory it gets: order_free_for */
    case MR_PLACE_SOURCES: /* the virtual GPU does more: MEETING */
    case MR_PLACE_MEETING: /* join_members */
    case MR_PLACE_USERS:   /* give_freed */
    case MR_PLACE_OWNER:
    case MR_PLACE_NODE: break;
    }
}

static void take_all(order *o, const mr_program_item *it, mr_order_set rows) {
    for (; rows; rows &= rows - 1) take(o, it, mr_order_first(rows));
}

static void give_freed(order *o, size_t i, mr_place from) {
    uint32_t freed = order_free(o, o->items[i].storage);
    for (size_t k = 0; next_user(o, i, from, &k); k++)
        order_join(o, freed, order_lane(o, o->items[k].stream));
}

/* The row's `to`, this set, gets the scratch set. */
static void put_scratch(order *o, const mr_order_row *row, uint32_t to) {
    if (row->replaces) order_assign(o, to, order_scratch(o));
    else order_join(o, to, order_scratch(o));
}

/* Places that are the union of lanes need no update. */
static void give(order *o, size_t i, const mr_order_row *row) {
    const mr_program_item *it = &o->items[i];
    switch ((mr_place)row->to) {
    case MR_PLACE_HOST:
        if (o->first_node[i] < o->first_node[i + 1]) order_add(o, order_host(o), o->first_node[i]);
        break;
    case MR_PLACE_LANE: put_scratch(o, row, order_lane(o, it->stream)); break;
    case MR_PLACE_RELEASED:
        put_scratch(o, row, order_released(o, it->stream_object->device->index));
        break;
    case MR_PLACE_WALL:
        for (uint64_t walls = mr_order_walls(it->command); walls; walls &= walls - 1)
            put_scratch(o, row, order_barrier(o, __builtin_ctzll(walls)));
        break;
    case MR_PLACE_RECORD: put_scratch(o, row, order_record(o, it->event)); break;
    case MR_PLACE_FREED:
        if (row->from == MR_PLACE_NODE) put_scratch(o, row, order_free(o, it->storage));
        else give_freed(o, i, (mr_place)row->from);
        break;
    case MR_PLACE_GATHERED:
    case MR_PLACE_DEVICE:
    case MR_PLACE_SOURCES:
    case MR_PLACE_MEETING:
    case MR_PLACE_USERS:
    case MR_PLACE_OWNER:
    case MR_PLACE_NODE: break;
    }
}

static void give_all(order *o, size_t i) {
    for (mr_order_set rows = o->rows[i].leave; rows; rows &= rows - 1)
        give(o, i, mr_order_first(rows));
}

/* ---- items */

/* R61: finds the other members of a meeting, which were submitted before its last member, item i; *io_k begins as i.
 * The virtual GPU ends all members together, in whichever direction the data move. */
static bool next_member(const order *o, size_t i, size_t *io_k) {
    const mr_meeting *meeting = o->items[i].command->meeting;
    while (meeting && o->items[i].command->member == mr_meeting_last(meeting) && *io_k > 0) {
        const mr_program_item *it = &o->items[--*io_k];
        if (it->command && it->command->meeting == meeting) return true;
        if (it->command && o->items[i].command->seq - it->command->seq > meeting->size) break;
    }
    return false;
}

/* When the last member enters, the others have entered. */
static void join_members(order *o, size_t i) {
    for (mr_order_set rows = mr_order_of_meeting(MR_ALLOCATOR); rows; rows &= rows - 1) {
        if (mr_order_first(rows)->from != MR_PLACE_MEETING) continue;
        for (size_t k = i; next_member(o, i, &k);)
            order_scratch_join(o, order_lane(o, o->items[k].stream));
    }
}

/* Records, waits and frees have their places in order_leave. An allocation's node is the host's look for memory. */
static void enter(order *o, size_t i) {
    const mr_program_item *it = &o->items[i];
    bool of_host = it->kind == MR_COMMAND_ALLOC;
    order_scratch_clear(o);
    take_all(o, it, of_host ? o->host_enter : o->rows[i].enter);
    if (it->command && it->command->meeting) join_members(o, i);
}

static void add_to_scratch(order *o, uint32_t node) {
    o->words[order_scratch(o) + node / 64] |= (uint64_t)1 << node % 64;
}

/* Makes the scratch set that of the node alone. The nodes behind it come after it, and so after all before it. */
static void only(order *o, uint32_t node) {
    order_scratch_clear(o);
    add_to_scratch(o, node);
}

/* The host reads the source of a copy after its own earlier actions, and after the stream if the rules say so, but not
 * after the copy's other predecessors. */
static void place_reading(order *o, size_t i, bool asked) {
    bool after_stream = order_copy_of(o, i, asked).after_stream;
    order_goal(o, i);
    if (!after_stream) order_scratch_clear(o);
    order_scratch_join(o, order_host(o));
    order_place(o, o->first_node[i], order_scratch(o));
}

bool order_comes_after(const order *o, uint32_t item, uint32_t earlier) {
    bool copies = o->items[item].kind == MR_COMMAND_COPY;
    uint32_t end = o->first_node[earlier + 1] - 1;
    for (uint32_t n = o->first_node[item]; n < o->first_node[item + 1]; n++) {
        if (copies && !o->nodes.items[n].parts) continue;
        if (!order_has(o, order_before(o, n), end)) return false;
    }
    return true;
}

void order_place_nodes(order *o, size_t i, bool asked) {
    uint32_t first = o->first_node[i], end = o->first_node[i + 1], n = first;
    bool reads = o->items[i].kind == MR_COMMAND_COPY && !o->nodes.items[first].parts;
    if (reads) place_reading(o, i, asked);
    enter(o, i);
    if (reads) add_to_scratch(o, n++);
    for (; n < end; n++) {
        order_place(o, n, order_scratch(o)); /* closed then, and it stays there */
        add_to_scratch(o, n);
    }
}

static void leave_marker(order *o, size_t i) {
    const mr_program_item *it = &o->items[i];
    order_scratch_clear(o);
    take_all(o, it, o->rows[i].enter);
    if (order_is_marker(it)) {
        order_place(o, o->first_node[i], order_scratch(o));
        only(o, o->first_node[i]);
    }
    give_all(o, i);
}

static void leave_work(order *o, size_t i, bool asked) {
    uint32_t first = o->first_node[i], last = o->first_node[i + 1] - 1;
    only(o, last);
    give_all(o, i);
    for (size_t k = i; next_member(o, i, &k);) give_all(o, k);
    if (!o->nodes.items[first].parts) order_add(o, order_host(o), first); /* it read the source */
    if (o->items[i].kind != MR_COMMAND_COPY || !order_copy_of(o, i, asked).until_done) return;
    if (o->rows[i].known_done) order_add(o, order_host(o), last);
}

static uint64_t blocks_of(uint64_t bytes) {
    return (bytes + 511) / 512; /* as the pool rounds */
}

/* The stream that frees memory can reuse it at once (R29), unless the memory is guarded. Other streams can reuse it
 * when the free is complete (R30). */
static bool frees_for(const order *o, const mr_program_item *alloc, size_t k) {
    const mr_program_item *it = &o->items[k];
    return o->frees[k] && it->device == alloc->device &&
           (it->stream != alloc->stream || o->guarded[k]);
}

bool order_free_for(order *o, size_t i, size_t k) {
    const mr_program_item *alloc = &o->items[i];
    order_scratch_clear(o);
    if (k < i) {
        if (!frees_for(o, alloc, k) || blocks_of(o->items[k].command->u.storage->bytes) <
                                           blocks_of(alloc->command->u.storage->bytes))
            return false;
        order_scratch_join(o, order_free(o, o->items[k].storage));
    } else {
        for (k = 0; k < i; k++)
            if (frees_for(o, alloc, k)) order_scratch_join(o, order_free(o, o->items[k].storage));
    }
    order_close_scratch(o);
    return true;
}

bool order_may_miss(order *o, size_t i) {
    const mr_program_item *alloc = &o->items[i];
    bool may_miss = false;
    order_scratch_clear(o);
    take_all(o, alloc, o->rows[i].enter);
    order_close_scratch(o);
    for (size_t k = 0; k < i; k++) {
        if (o->items[k].stream == alloc->stream || !frees_for(o, alloc, k)) continue;
        uint32_t node = o->first_node[k];
        bool is_ordered = order_has(o, order_scratch(o), node);
        if (is_ordered && !order_has(o, order_host(o), node)) return false;
        may_miss |= !is_ordered;
    }
    return may_miss;
}

bool order_is_open(const order *o, size_t i, bool *out_usual) {
    const mr_program_item *it = &o->items[i];
    *out_usual = true;
    if (it->kind == MR_COMMAND_FREE_WAIT) {
        *out_usual = setting(o, "free_waits") != 0;
        return true;
    }
    if (it->kind != MR_COMMAND_COPY || order_class(o, i) != ITEM_COPY) return false;
    bool to_host = it->command->u.copy.direction == MR_COPY_D2H;
    *out_usual = setting(o, to_host ? "pageable_d2h_async" : "pageable_h2d_async") != 0;
    return order_copy_of(o, i, *out_usual).is_open;
}

/* Gathers the nodes that a wait waits for or a query asks for. For a copy: those that the host waits for before it
 * reads the source, if it does. */
void order_goal(order *o, size_t i) {
    order_scratch_clear(o);
    take_all(o, &o->items[i], o->rows[i].waits);
}

/* The stream that query i asks for, up to item *out_until; UINT32_MAX: none. */
static uint32_t lane_asked(const order *o, size_t i, size_t *out_until) {
    const mr_program_item *it = &o->items[i];
    *out_until = i;
    if (mr_command_kinds[it->kind].after == MR_AFTER_STREAM) return it->stream;
    if (mr_command_kinds[it->kind].after != MR_AFTER_RECORD || !it->bound) return UINT32_MAX;
    while (*out_until > 0) {
        const mr_program_item *record = &o->items[--*out_until];
        if (record->kind == MR_COMMAND_RECORD && record->bound == it->bound) return record->stream;
    }
    return UINT32_MAX;
}

/* Whether what the query asks for depends on the other stream. */
static bool is_asked(const order *o, uint32_t lane, uint32_t other) {
    if (lane == other) return true;
    const mr_stream *s = mr_player_stream(o->player, lane),
                    *t = other == UINT32_MAX ? NULL : mr_player_stream(o->player, other);
    return s && t && mr_order_sync_gathers(mr_order_facts_of_stream(s->kind, s->blocking)) &&
           o->gathered[other] && s->device == t->device;
}

/* Whether the host waited for all of the stream. Its other knowledge is of nodes: records, and work. */
static bool is_wait_for(const order *o, const mr_program_item *it, uint32_t lane) {
    const mr_stream *s = mr_player_stream(o->player, lane);
    if (!it->came_true) return false;
    switch (mr_command_kinds[it->kind].after) {
    case MR_AFTER_STREAM: return it->stream == lane;
    case MR_AFTER_DEVICE: return s && s->device->index == (int)it->device;
    case MR_AFTER_RECORD:
    case MR_AFTER_NOTHING: break;
    }
    return false;
}

bool order_allocates(order *o, size_t i) {
    size_t until;
    uint32_t lane = lane_asked(o, i, &until);
    order_scratch_clear(o);
    order_scratch_join(o, order_host(o));
    order_close_scratch(o);
    for (size_t k = until; lane != UINT32_MAX && k-- > 0;) {
        const mr_program_item *it = &o->items[k];
        if (is_wait_for(o, it, lane)) return false;
        if (!is_asked(o, lane, it->stream)) continue;
        if (it->kind == MR_COMMAND_ALLOC && !it->failed) return true;
        uint32_t end = o->first_node[k + 1];
        if (it->stream == lane && o->first_node[k] < end && order_has(o, order_scratch(o), end - 1))
            return false;
    }
    return false;
}

void order_leave(order *o, size_t i, bool asked) {
    const mr_program_item *it = &o->items[i];
    if (it->failed && it->kind != MR_COMMAND_ELAPSED) return;
    if (o->rows[i].in_stream) {
        if (it->kind == MR_COMMAND_ALLOC) order_add(o, order_host(o), o->first_node[i]);
        if (mr_command_is(it->command, MR_TRAIT_LAUNCH) && !waits_for_others(it))
            leave_work(o, i, asked);
        else leave_marker(o, i);
        return;
    }
    give_all(o, i);
    bool may_be_no = order_class(o, i) == ITEM_QUERY || it->kind == MR_COMMAND_FREE_WAIT;
    if (may_be_no && !asked) return;
    order_goal(o, i);
    order_join(o, order_host(o), order_scratch(o));
}
