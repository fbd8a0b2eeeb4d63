/* The rows of order.h, and the facts of a command. */
#include "order/order.h"

#include "tensor/tensor.h"

enum {
    NONE = 0,
    ADDS = false,
    REPLACES = true,
#define X(id) id = MR_FACT_##id,
    MR_FACT_LIST(X)
#undef X
};

#ifndef MR_ORDER_MUTATE
const
#endif
    mr_order_row mr_order_rows[MR_ORDER_ROWS] = {
#define X(id, when, to, from, how, strength, rule, needs, allocator_for)                           \
    {MR_AT_##when, MR_PLACE_##to, MR_PLACE_##from, MR_##strength, how, rule, needs, allocator_for},
        MR_ORDER_LIST(X)
#undef X
};

/* The rows of a moment: those of the others are not looked at. */
#define X(id, when, ...) | (mr_order_set)(MR_AT_##when == at) << MR_ORDER_##id
#define ROWS_OF(moment)                                                                            \
    static mr_order_set rows_of_##moment(void) {                                                   \
        const mr_order_when at = MR_AT_##moment;                                                   \
        return 0 MR_ORDER_LIST(X);                                                                 \
    }
ROWS_OF(ENTER)
ROWS_OF(LEAVE)
ROWS_OF(CALL)
ROWS_OF(RETURN)
#undef X

static mr_order_set rows_of(mr_order_when when) {
    switch (when) {
    case MR_AT_ENTER: return rows_of_ENTER();
    case MR_AT_LEAVE: return rows_of_LEAVE();
    case MR_AT_CALL: return rows_of_CALL();
    case MR_AT_RETURN: return rows_of_RETURN();
    }
    return 0;
}

mr_order_set mr_order_find(mr_order_facts facts, mr_order_when when, mr_strength strength) {
    mr_order_set set = 0;
    for (mr_order_set rows = rows_of(when); rows; rows &= rows - 1) {
        const mr_order_row *row = mr_order_first(rows);
        if ((row->needs & ~facts) || row->strength > strength) continue;
        if (strength < MR_ALLOCATOR && (row->allocator_for & facts)) continue;
        set |= rows & -rows;
    }
    return set;
}

/* The rows that the fact adds to those of a command of a stream. */
static mr_order_set since_it_is(mr_order_facts fact, mr_order_when when, mr_strength strength) {
    return mr_order_find(SUBMITTED | fact, when, strength) &
           ~mr_order_find(SUBMITTED, when, strength);
}

mr_order_set mr_order_of_meeting(mr_strength strength) {
    return since_it_is(MEETS, MR_AT_ENTER, strength);
}

mr_order_set mr_order_of_wall(mr_order_when when, mr_strength strength) {
    return since_it_is(WALL, when, strength);
}

/* The places that these rows, all of that moment, name. */
static mr_place_set places_in(mr_order_set rows, mr_order_when when) {
    mr_place_set set = 0;
    for (; rows; rows &= rows - 1)
        set |= 1u << (when == MR_AT_LEAVE ? mr_order_first(rows)->to : mr_order_first(rows)->from);
    return set;
}

static mr_place_set places(mr_order_facts facts, mr_order_when when, mr_strength strength) {
    return places_in(mr_order_find(facts, when, strength), when);
}

mr_place_set mr_order_taken(mr_order_facts facts, mr_strength strength) {
    return places(facts, MR_AT_ENTER, strength);
}
mr_place_set mr_order_given(mr_order_facts facts, mr_strength strength) {
    return places(facts, MR_AT_LEAVE, strength);
}
mr_place_set mr_order_put(mr_order_facts facts, mr_place to, mr_strength strength) {
    mr_place_set set = 0;
    for (mr_order_set rows = mr_order_find(facts, MR_AT_LEAVE, strength); rows; rows &= rows - 1)
        if (mr_order_first(rows)->to == to) set |= 1u << mr_order_first(rows)->from;
    return set;
}
mr_place_set mr_order_called(mr_order_facts facts, mr_strength strength) {
    return places(facts, MR_AT_CALL, strength);
}
mr_place_set mr_order_returned(mr_order_facts facts, mr_strength strength) {
    return places(facts, MR_AT_RETURN, strength);
}

void mr_order_lane_init(mr_order_lane *lane, mr_stream_kind kind, bool blocking,
                        mr_strength strength) {
    mr_order_facts facts = mr_order_facts_of_stream(kind, blocking);
    lane->facts = facts;
    for (int k = 0; k < MR_ORDER_KINDS; k++) {
        mr_order_facts of_kind = mr_order_facts_of_kind((mr_command_id)k, facts);
        lane->enter[k] = mr_order_find(of_kind, MR_AT_ENTER, strength);
        lane->leave[k] = mr_order_find(of_kind, MR_AT_LEAVE, strength);
        lane->takes[k] = places_in(lane->enter[k], MR_AT_ENTER);
        lane->gives[k] = places_in(lane->leave[k], MR_AT_LEAVE);
    }
}

/* ---- facts */

mr_order_facts mr_order_facts_of_stream(mr_stream_kind kind, bool blocking) {
    if (kind == MR_STREAM_LEGACY) return SUBMITTED | LEGACY;
    return kind == MR_STREAM_PER_THREAD || blocking ? SUBMITTED | BLOCKING : SUBMITTED;
}

static mr_order_facts facts_of_wait(mr_command_after after, mr_order_facts stream) {
    switch (after) {
    case MR_AFTER_STREAM: return FOR_STREAM | (stream & (LEGACY | BLOCKING));
    case MR_AFTER_RECORD: return FOR_RECORD;
    case MR_AFTER_DEVICE: return FOR_DEVICE;
    case MR_AFTER_NOTHING: break;
    }
    return NONE;
}

bool mr_order_is_gathered(mr_order_facts stream) {
    return mr_place_in(mr_order_given(stream, MR_ALLOCATOR), MR_PLACE_GATHERED);
}

bool mr_order_sync_gathers(mr_order_facts stream) {
    mr_order_facts facts = mr_order_facts_of_kind(MR_COMMAND_STREAM_SYNC, stream);
    return mr_place_in(mr_order_returned(facts, MR_SEEN), MR_PLACE_GATHERED);
}

/* Without `default`, so that a new kind does not compile until its order is defined. */
mr_order_facts mr_order_facts_of_kind(mr_command_id kind, mr_order_facts stream) {
    switch (kind) {
    case MR_COMMAND_OP:
    case MR_COMMAND_COPY:
    case MR_COMMAND_HOST_FUNCTION:
    case MR_COMMAND_FAULT: return stream;
    case MR_COMMAND_RECORD: return stream | RECORD;
    case MR_COMMAND_WAIT: return stream | WAIT;
    case MR_COMMAND_ALLOC: return stream | ALLOC;
    case MR_COMMAND_FREE: return (stream ? stream : BY_HOST) | FREE;
    case MR_COMMAND_STREAM_SYNC:
    case MR_COMMAND_STREAM_QUERY:
    case MR_COMMAND_EVENT_SYNC:
    case MR_COMMAND_EVENT_QUERY:
    case MR_COMMAND_DEVICE_SYNC:
        return BY_HOST | facts_of_wait(mr_command_kinds[kind].after, stream);
    case MR_COMMAND_ELAPSED: return BY_HOST | FOR_RECORD;
    case MR_COMMAND_DRAIN:
    case MR_COMMAND_FREE_WAIT: return BY_HOST | FOR_MEMORY;
    case MR_COMMAND_HOST_ACCESS:
    case MR_COMMAND_HOST_READ: return BY_HOST;
    case MR_COMMAND_STREAM_CREATE:
    case MR_COMMAND_STREAM_CLOSE:
    case MR_COMMAND_RESET:
    case MR_COMMAND_STREAM_DROP:
    case MR_COMMAND_EVENT_CREATE:
    case MR_COMMAND_EVENT_CLOSE:
    case MR_COMMAND_HOST_ALLOC:
    case MR_COMMAND_HOST_FREE:
    case MR_COMMAND_RECORD_STREAM:
    case MR_COMMAND_HOST_WORK: MR_MACHINE_LIST(MR_COMMAND_CASE) break; /* these order nothing */
    }
    return NONE;
}

uint64_t mr_order_walls(const mr_command *command) {
    if (command->kind != MR_COMMAND_COPY || !command->u.copy.synchronous ||
        command->u.copy.direction != MR_COPY_PEER) {
        return 0;
    }
    uint64_t walls = (uint64_t)1 << command->u.copy.current;
    for (uint32_t i = 0; i < 2; i++)
        walls |= (uint64_t)1 << command->operands[i].tensor->storage->device->index;
    return walls;
}

/* ---- copies and the host */

/* The driver copies the source to its own buffer during the call. That copy may not overtake the stream's earlier work
 * (R1). */
static mr_order_copy_rules staged(const mr_order_copy *copy) {
    return (mr_order_copy_rules){.after_stream = copy->synchronous || copy->pageable_writer,
                                 .reads_source = true};
}

static mr_order_copy_rules rules_of_copy(const mr_order_copy *copy) {
    const mr_order_copy_rules at_once = {0}, done = {.until_done = true};
    if (copy->of_graph) return at_once;
    switch (copy->direction) {
    case MR_COPY_D2D:
    case MR_COPY_PEER: return at_once; /* R21, R60: not even the synchronous forms wait */
    case MR_COPY_H2H: return done;
    case MR_COPY_D2H:
        if (copy->synchronous) return done;
        if (copy->to != MR_MEMORY_PAGEABLE) return at_once;                        /* R22 */
        return (mr_order_copy_rules){.until_done = !copy->early, .is_open = true}; /* R23 */
    case MR_COPY_H2D: break;
    }
    if (copy->from != MR_MEMORY_PAGEABLE) return copy->synchronous ? done : at_once; /* R22 */
    if (!copy->fits_staging) return done;                          /* piece by piece */
    if (copy->synchronous) return staged(copy);                    /* R20 */
    mr_order_copy_rules rules = copy->early ? staged(copy) : done; /* R23 */
    rules.is_open = true;
    return rules;
}

#ifdef MR_ORDER_MUTATE /* as above */
static mr_order_copy_rules order_break_copy(const mr_order_copy *copy, mr_order_copy_rules rules);
#else
#define order_break_copy(copy, rules) (rules)
#endif

mr_order_copy_rules mr_order_copy_of(const mr_order_copy *copy) {
    return order_break_copy(copy, rules_of_copy(copy));
}

mr_order_copy mr_order_copy_asked(const mr_command *command) {
    return (mr_order_copy){.direction = command->u.copy.direction,
                           .to = command->operands[0].tensor->storage->kind,
                           .from = command->operands[1].tensor->storage->kind,
                           .synchronous = command->u.copy.synchronous,
                           .of_graph = command->launch != MR_LAUNCH_NONE};
}

bool mr_order_copy_is_open(const mr_command *command) {
    if (command->kind != MR_COMMAND_COPY) return false;
    mr_order_copy copy = mr_order_copy_asked(command);
    copy.fits_staging = true;
    copy.of_graph = false; /* the copy is asked about, not its launch */
    return mr_order_copy_of(&copy).is_open;
}

bool mr_order_copy_takes_host(const mr_command *command) {
    mr_order_copy copy = mr_order_copy_asked(command);
    copy.of_graph = false; /* as above */
    for (int answers = 0; answers < 4; answers++) {
        copy.fits_staging = answers & 1;
        copy.early = answers & 2;
        mr_order_copy_rules rules = mr_order_copy_of(&copy);
        if (rules.after_stream || rules.reads_source || rules.until_done) return true;
    }
    return false;
}

mr_order_copy_rules mr_order_copy_guaranteed(const mr_command *command) {
    mr_order_copy copy = mr_order_copy_asked(command);
    copy.fits_staging = copy.early = true;
    mr_order_copy_rules nothing = {0}, rules = mr_order_copy_of(&copy);
    return rules.is_open ? nothing : rules;
}
