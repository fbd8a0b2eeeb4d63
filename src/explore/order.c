/* The order of a program's nodes: sets of bits, and the rules that make them. See order.h. */
#include "explore/order.h"

#include <stdlib.h>
#include <string.h>

#include "explore/explore.h"
#include "model/backend.h"
#include "ops/op.h"

#define NONE UINT32_MAX

/* ---- sets */

static uint32_t set_at(const order *o, size_t index) {
    return (uint32_t)(index * o->words_in_set);
}

uint32_t order_before(const order *o, uint32_t node) {
    return set_at(o, node);
}
uint32_t order_lane(const order *o, uint32_t stream_slot) {
    return set_at(o, o->nodes.count + stream_slot);
}
uint32_t order_record(const order *o, uint32_t event_slot) {
    return set_at(o, o->nodes.count + o->lanes + event_slot);
}
uint32_t order_free(const order *o, uint32_t storage_slot) {
    return set_at(o, o->nodes.count + o->lanes + o->events + storage_slot);
}
static uint32_t of_device(const order *o, int device, uint32_t which) {
    return set_at(o, o->nodes.count + o->lanes + o->events + o->storages + 2 * (uint32_t)device +
                         which);
}
uint32_t order_released(const order *o, int device) {
    return of_device(o, device, 0);
}
uint32_t order_barrier(const order *o, int device) {
    return of_device(o, device, 1);
}
static uint32_t of_all(const order *o, uint32_t which) {
    return of_device(o, (int)o->devices, which);
}
uint32_t order_host(const order *o) {
    return of_all(o, 0);
}
uint32_t order_done(const order *o) {
    return of_all(o, 1);
}
uint32_t order_scratch(const order *o) {
    return of_all(o, 2);
}

static void put(order *o, uint32_t at, uint64_t word) {
    if (o->words[at] == word) return;
    if (!mr_vec_push(&o->changes, ((order_change){at, o->words[at]}))) o->failed = true;
    o->words[at] = word;
}

void order_add(order *o, uint32_t set, uint32_t node) {
    put(o, set + node / 64, o->words[set + node / 64] | (uint64_t)1 << node % 64);
}

void order_join(order *o, uint32_t set, uint32_t other) {
    for (uint32_t i = 0; i < o->words_in_set; i++)
        put(o, set + i, o->words[set + i] | o->words[other + i]);
}

void order_clear(order *o, uint32_t set) {
    for (uint32_t i = 0; i < o->words_in_set; i++) put(o, set + i, 0);
}

static void assign(order *o, uint32_t set, uint32_t other) {
    for (uint32_t i = 0; i < o->words_in_set; i++) put(o, set + i, o->words[other + i]);
}

bool order_within(const order *o, uint32_t set, uint32_t other) {
    for (uint32_t i = 0; i < o->words_in_set; i++)
        if (o->words[set + i] & ~o->words[other + i]) return false;
    return true;
}

/* The scratch set is nobody's, so its words need not be kept. */
static void scratch_join(order *o, uint32_t other) {
    uint64_t *scratch = o->words + order_scratch(o);
    for (uint32_t i = 0; i < o->words_in_set; i++) scratch[i] |= o->words[other + i];
}

static void scratch_clear(order *o) {
    memset(o->words + order_scratch(o), 0, o->words_in_set * sizeof *o->words);
}

/* The sets of the members are closed, so one round is enough. */
void order_close_scratch(order *o) {
    uint64_t *scratch = o->words + order_scratch(o);
    for (uint32_t i = 0; i < o->words_in_set; i++)
        for (uint64_t rest = scratch[i]; rest; rest &= rest - 1)
            scratch_join(o, order_before(o, i * 64 + (uint32_t)__builtin_ctzll(rest)));
}

/* ---- nodes */

void order_place(order *o, uint32_t node, uint32_t set) {
    if (set != order_scratch(o)) {
        scratch_clear(o);
        scratch_join(o, set);
    }
    order_close_scratch(o);
    assign(o, order_before(o, node), order_scratch(o));
    o->placed = node + 1;
}

void order_decide(order *o, uint32_t first, uint32_t second) {
    uint32_t before = order_before(o, first);
    for (uint32_t n = 0; n < o->placed; n++) {
        uint32_t set = order_before(o, n);
        if (n != second && !order_has(o, set, second)) continue;
        order_join(o, set, before);
        order_add(o, set, first);
    }
}

size_t order_changes(const order *o) {
    return o->changes.count;
}

void order_undo(order *o, size_t changes, uint32_t placed) {
    while (o->changes.count > changes) {
        order_change c = mr_vec_pop(&o->changes);
        o->words[c.at] = c.was;
    }
    o->placed = placed;
}

static void copy_set(order *o, uint32_t to, const order *from, uint32_t at) {
    uint32_t n = o->words_in_set < from->words_in_set ? o->words_in_set : from->words_in_set;
    memcpy(o->words + to, from->words + at, n * sizeof *o->words);
}

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

void order_copy(order *o, const order *from) {
    memset(o->words, 0, o->word_count * sizeof *o->words);
    o->changes.count = 0;
    o->placed = from->placed;
    for (uint32_t n = 0; n < from->placed; n++)
        copy_set(o, order_before(o, n), from, order_before(from, n));
    for (uint32_t i = 0; i < least(o->lanes, from->lanes); i++)
        copy_set(o, order_lane(o, i), from, order_lane(from, i));
    for (uint32_t i = 0; i < least(o->events, from->events); i++)
        copy_set(o, order_record(o, i), from, order_record(from, i));
    for (uint32_t i = 0; i < least(o->storages, from->storages); i++)
        copy_set(o, order_free(o, i), from, order_free(from, i));
    for (int d = 0; d < (int)o->devices; d++) {
        copy_set(o, order_released(o, d), from, order_released(from, d));
        copy_set(o, order_barrier(o, d), from, order_barrier(from, d));
    }
    copy_set(o, order_host(o), from, order_host(from));
    copy_set(o, order_done(o), from, order_done(from));
}

/* ---- what an item is */

static int64_t setting(const order *o, const char *name) {
    mr_machine *machine = mr_player_machine(o->player);
    int64_t value = 0;
    mr_error_destroy(machine->backend->simulator->get_setting(machine, name, &value));
    return value;
}

static mr_memory_kind memory_of(const mr_player_item *it, uint32_t operand) {
    return it->operands[operand].tensor->storage->kind;
}

/* A command that may write pageable memory has been submitted and not been carried out. */
static bool has_pageable_writer(const order *o) {
    for (uint32_t n = 0; n < o->placed; n++) {
        if (order_has(o, order_done(o), n) || !order_is_operation(&o->nodes.items[n])) continue;
        const mr_player_item *it = &o->items[o->nodes.items[n].item];
        if (it->kind == MR_COMMAND_HOST_FUNCTION ||
            (it->kind == MR_COMMAND_COPY && memory_of(it, 0) == MR_MEMORY_PAGEABLE))
            return true;
    }
    return false;
}

/* Whether an asynchronous copy of pageable memory returns early: `asked` is what the search wants where it branches over
 * that. */
order_copy_rules order_copy_of(const order *o, size_t i, bool asked) {
    const mr_player_item *it = &o->items[i];
    order_copy_rules r = {0};
    bool synchronous = it->command->u.copy.synchronous;
    switch (it->command->u.copy.direction) {
    case MR_COPY_D2D:
    case MR_COPY_PEER: return r;
    case MR_COPY_H2H: r.until_done = true; return r;
    case MR_COPY_D2H:
        r.is_open = !synchronous && memory_of(it, 0) == MR_MEMORY_PAGEABLE;
        r.until_done = synchronous || (r.is_open && !asked);
        return r;
    case MR_COPY_H2D: break;
    }
    if (memory_of(it, 1) == MR_MEMORY_PINNED) {
        r.until_done = synchronous;
        return r;
    }
    bool fits = it->command->u.copy.bytes <= (uint64_t)setting(o, "staging_bytes");
    r.is_open = fits && !synchronous;
    r.until_done = !fits || (!synchronous && !asked);
    r.reads_source = !r.until_done;
    r.after_stream = r.reads_source && (synchronous || has_pageable_writer(o));
    return r;
}

static item_class class_of_copy(const mr_player_item *it) {
    mr_copy_direction direction = it->command->u.copy.direction;
    if (direction == MR_COPY_D2D || direction == MR_COPY_PEER) return ITEM_WORK;
    bool synchronous = it->command->u.copy.synchronous;
    bool pinned = memory_of(it, 0) != MR_MEMORY_PAGEABLE && memory_of(it, 1) != MR_MEMORY_PAGEABLE;
    return synchronous || !pinned || direction == MR_COPY_H2H ? ITEM_COPY : ITEM_WORK;
}

item_class order_class(const order *o, size_t i) {
    const mr_player_item *it = &o->items[i];
    if (it->failed && it->kind != MR_COMMAND_ELAPSED) return ITEM_LOOK;
    switch (it->kind) {
    case MR_COMMAND_COPY: return class_of_copy(it);
    case MR_COMMAND_OP:
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
    default: return mr_explore_refusal(it->kind) ? ITEM_REFUSED : ITEM_PLAIN;
    }
}

const char *mr_explore_refusal(mr_command_id kind) {
    switch (kind) {
    case MR_COMMAND_STEP: return "mr.machine.step(): the exploration takes the steps";
    case MR_COMMAND_BACK: return "mr.machine.back(): the exploration takes the steps";
    case MR_COMMAND_PASS:
        return "mr.machine.pass(ms): the exploration says when the device goes on";
    case MR_COMMAND_HISTORY: return "mr.machine.history{...}: the exploration takes the steps";
    case MR_COMMAND_RESET: return "mr.reset(): what was before it is gone";
    case MR_COMMAND_CHOOSER: return "mr.machine.chooser(name): the exploration chooses";
    case MR_COMMAND_MODEL: return "mr.machine.model(name): all schedules are those of one model";
    case MR_COMMAND_LAUNCH_BLOCKING:
        return "mr.launch_blocking(on): there is one schedule only with it";
    case MR_COMMAND_SETTING:
        return "mr.machine.settings{...}: all schedules are those of the same settings";
    default: return NULL;
    }
}

/* ---- making it */

static uint32_t parts_of(const mr_player_item *it, uint32_t grain) {
    int64_t items;
    if (grain < 2 || it->kind == MR_COMMAND_HOST_FUNCTION || it->kind == MR_COMMAND_FAULT) return 1;
    if (it->kind == MR_COMMAND_OP) items = it->command->u.op.row->items(it->command);
    else items = (int64_t)it->command->u.copy.bytes;
    if (items < 1) return 1;
    return items < (int64_t)grain ? (uint32_t)items : grain;
}

static bool add_nodes(order *o, uint32_t item, uint32_t lane, uint32_t parts) {
    for (uint32_t part = 0; part < (parts ? parts : 1); part++)
        if (!mr_vec_push(&o->nodes, ((order_node){item, part, parts, lane, false}))) return false;
    return true;
}

static bool is_marker(const mr_player_item *it) {
    if (it->failed) return false;
    if (it->kind == MR_COMMAND_FREE) return !it->command->u.at_once;
    return it->kind == MR_COMMAND_RECORD || it->kind == MR_COMMAND_WAIT;
}

static bool add_nodes_of(order *o, size_t i, uint32_t grain) {
    const mr_player_item *it = &o->items[i];
    uint32_t item = (uint32_t)i;
    if (it->kind == MR_COMMAND_FREE) o->aliases = true;
    if (is_marker(it))
        return mr_vec_push(&o->nodes, ((order_node){item, 0, 1, it->stream_slot, true}));
    switch (order_class(o, i)) {
    case ITEM_COPY: /* the host's reading of the source, where it does */
        return (it->kind != MR_COMMAND_COPY || add_nodes(o, item, NONE, 0)) &&
               add_nodes(o, item, it->stream_slot, parts_of(it, grain));
    case ITEM_WORK: return add_nodes(o, item, it->stream_slot, parts_of(it, grain));
    case ITEM_HOST:
    case ITEM_QUERY:
    case ITEM_ALLOC: return add_nodes(o, item, NONE, 0);
    default: return true;
    }
}

mr_status order_open(order *o, const mr_player *player, uint32_t grain) {
    size_t count = mr_player_item_count(player);
    *o = (order){.player = player,
                 .lanes = (uint32_t)mr_player_stream_count(player),
                 .events = (uint32_t)mr_player_event_count(player),
                 .storages = (uint32_t)mr_player_storage_count(player),
                 .devices = (uint32_t)mr_player_machine(player)->device_count};
    o->first_node = calloc(count + 1, sizeof *o->first_node);
    o->items = calloc(count + 1, sizeof *o->items);
    bool fine = o->first_node && o->items;
    for (size_t i = 0; i < count && fine; i++) {
        o->items[i] = mr_player_item_at(player, i);
        o->first_node[i] = (uint32_t)o->nodes.count;
        fine = add_nodes_of(o, i, grain);
    }
    if (fine) {
        o->first_node[count] = (uint32_t)o->nodes.count;
        o->words_in_set = (uint32_t)(o->nodes.count / 64 + 1);
        o->word_count = o->words_in_set * (o->nodes.count + o->lanes + o->events + o->storages +
                                           2 * (size_t)o->devices + 3);
        fine = o->word_count < UINT32_MAX;
        o->words = fine ? calloc(o->word_count, sizeof *o->words) : NULL;
    }
    if (fine && o->words) return MR_OK;
    order_close(o);
    return mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory for the order of a program");
}

void order_close(order *o) {
    mr_vec_free(&o->nodes);
    mr_vec_free(&o->changes);
    free(o->first_node);
    free(o->items);
    free(o->words);
    *o = (order){0};
}

/* ---- the rules */

static bool in_group(const order *o, uint32_t lane, const mr_device *device) {
    const mr_stream *s = mr_player_stream(o->player, lane);
    return s && s->device == device && (s->blocking || s->kind == MR_STREAM_LEGACY);
}

/* What the legacy stream comes after: the blocking streams of its device (R3). */
static void join_group(order *o, const mr_device *device) {
    for (uint32_t lane = 0; lane < o->lanes; lane++)
        if (in_group(o, lane, device)) scratch_join(o, order_lane(o, lane));
}

static void join_device(order *o, const mr_device *device) {
    for (uint32_t lane = 0; lane < o->lanes; lane++) {
        const mr_stream *s = mr_player_stream(o->player, lane);
        if (s && s->device == device) scratch_join(o, order_lane(o, lane));
    }
}

static bool is_peer_barrier(const mr_player_item *it) {
    return it->kind == MR_COMMAND_COPY && it->command->u.copy.direction == MR_COPY_PEER &&
           it->command->u.copy.synchronous;
}

static const mr_device *device_of_operand(const mr_player_item *it, uint32_t i) {
    return it->operands[i].tensor->storage->device;
}

/* What anything comes after that is submitted to this stream. */
static void join_stream(order *o, const mr_player_item *it) {
    const mr_device *device = it->stream->device;
    scratch_join(o, order_lane(o, it->stream_slot));
    scratch_join(o, order_barrier(o, device->index));
    if (it->stream->kind == MR_STREAM_LEGACY) join_group(o, device);
    else if (it->stream->blocking) scratch_join(o, order_released(o, device->index));
    for (uint32_t k = 0; k < 2 && is_peer_barrier(it); k++)
        join_device(o, device_of_operand(it, k));
}

void order_enter(order *o, size_t i) {
    const mr_player_item *it = &o->items[i];
    scratch_clear(o);
    scratch_join(o, order_host(o));
    if (it->command && mr_command_is(it->command, MR_TRAIT_LAUNCH)) join_stream(o, it);
}

/* The stream, and through it others, come after the scratch set from now on. */
static void leave_stream(order *o, const mr_player_item *it) {
    const mr_device *device = it->stream->device;
    assign(o, order_lane(o, it->stream_slot), order_scratch(o));
    if (it->stream->kind == MR_STREAM_LEGACY)
        assign(o, order_released(o, device->index), order_scratch(o));
    for (uint32_t k = 0; k < 2 && is_peer_barrier(it); k++)
        order_join(o, order_barrier(o, device_of_operand(it, k)->index), order_scratch(o));
}

/* R33: a free comes after what the streams that use the memory have so far. */
static void leave_free(order *o, size_t i, const mr_player_item *free_) {
    assign(o, order_free(o, free_->storage_slot), order_scratch(o));
    for (size_t k = 0; k < i; k++) {
        const mr_player_item *it = &o->items[k];
        if (it->kind == MR_COMMAND_RECORD_STREAM && it->storage_slot == free_->storage_slot)
            order_join(o, order_free(o, free_->storage_slot), order_lane(o, it->stream_slot));
    }
}

/* It comes after the scratch set and the host, and what is behind it comes after it alone. */
static void place_marker(order *o, uint32_t node) {
    scratch_join(o, order_host(o));
    order_place(o, node, order_scratch(o));
    scratch_clear(o);
    o->words[order_scratch(o) + node / 64] |= (uint64_t)1 << node % 64;
}

static void leave_marker(order *o, size_t i, const mr_player_item *it) {
    scratch_clear(o);
    join_stream(o, it);
    if (it->kind == MR_COMMAND_WAIT) scratch_join(o, order_record(o, it->event_slot));
    if (is_marker(it)) place_marker(o, o->first_node[i]);
    leave_stream(o, it);
    if (it->kind == MR_COMMAND_RECORD) assign(o, order_record(o, it->event_slot), order_scratch(o));
    if (it->kind == MR_COMMAND_FREE && !it->command->u.at_once) leave_free(o, i, it);
}

static void leave_work(order *o, size_t i, const mr_player_item *it, bool asked) {
    uint32_t last = o->first_node[i + 1] - 1;
    scratch_clear(o);
    o->words[order_scratch(o) + last / 64] |= (uint64_t)1 << last % 64;
    leave_stream(o, it);
    if (!o->nodes.items[o->first_node[i]].parts) order_add(o, order_host(o), o->first_node[i]);
    bool waits = it->kind == MR_COMMAND_COPY && order_copy_of(o, i, asked).until_done;
    if (waits) order_add(o, order_host(o), last);
}

static uint64_t blocks_of(uint64_t bytes) {
    return (bytes + 511) / 512; /* as the pool rounds */
}

static bool has_users(const order *o, uint32_t storage_slot, size_t until) {
    for (size_t k = 0; k < until; k++)
        if (o->items[k].kind == MR_COMMAND_RECORD_STREAM &&
            o->items[k].storage_slot == storage_slot)
            return true;
    return false;
}

/* Its own stream has it at once (R29), unless record_stream named another one (R33); others when the free is over (R30). */
static bool frees_for(const order *o, const mr_player_item *alloc, size_t k) {
    const mr_player_item *it = &o->items[k];
    return it->kind == MR_COMMAND_FREE && !it->failed && !it->command->u.at_once &&
           it->device == alloc->device &&
           (it->stream_slot != alloc->stream_slot || has_users(o, it->storage_slot, k));
}

bool order_free_for(order *o, size_t i, size_t k) {
    const mr_player_item *alloc = &o->items[i];
    scratch_clear(o);
    if (k < i) {
        if (!frees_for(o, alloc, k) || blocks_of(o->items[k].command->u.storage->bytes) <
                                           blocks_of(alloc->command->u.storage->bytes))
            return false;
        scratch_join(o, order_free(o, o->items[k].storage_slot));
    } else {
        for (k = 0; k < i; k++)
            if (frees_for(o, alloc, k)) scratch_join(o, order_free(o, o->items[k].storage_slot));
    }
    order_close_scratch(o);
    return true;
}

bool order_may_miss(order *o, size_t i) {
    const mr_player_item *alloc = &o->items[i];
    bool may_miss = false;
    scratch_clear(o);
    scratch_join(o, order_host(o));
    join_stream(o, alloc);
    order_close_scratch(o);
    for (size_t k = 0; k < i; k++) {
        if (o->items[k].stream_slot == alloc->stream_slot || !frees_for(o, alloc, k)) continue;
        uint32_t node = o->first_node[k];
        bool is_ordered = order_has(o, order_scratch(o), node);
        if (is_ordered && !order_has(o, order_host(o), node)) return false;
        may_miss |= !is_ordered;
    }
    return may_miss;
}

void order_forget(order *o) {
    memset(o->words, 0, o->word_count * sizeof *o->words);
    o->changes.count = 0;
    o->placed = 0;
}

bool order_is_open(const order *o, size_t i, bool *out_usual) {
    const mr_player_item *it = &o->items[i];
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

/* What a wait waits for, or a query asks for. */
void order_goal(order *o, size_t i) {
    const mr_player_item *it = &o->items[i];
    scratch_clear(o);
    switch (it->kind) {
    case MR_COMMAND_DEVICE_SYNC:
    case MR_COMMAND_DRAIN: join_device(o, it->device); break;
    case MR_COMMAND_FREE_WAIT: join_device(o, it->device); break;
    case MR_COMMAND_ELAPSED:
        scratch_join(o, order_record(o, it->other_event_slot)); /* fall through */
    case MR_COMMAND_EVENT_SYNC:
    case MR_COMMAND_EVENT_QUERY: scratch_join(o, order_record(o, it->event_slot)); break;
    case MR_COMMAND_COPY:
    case MR_COMMAND_STREAM_SYNC:
    case MR_COMMAND_STREAM_QUERY:
        scratch_join(o, order_lane(o, it->stream_slot));
        if (it->stream->kind == MR_STREAM_LEGACY && it->kind != MR_COMMAND_COPY)
            join_group(o, it->stream->device);
        break;
    default: break;
    }
}

void order_leave(order *o, size_t i, bool asked) {
    const mr_player_item *it = &o->items[i];
    if (it->failed && it->kind != MR_COMMAND_ELAPSED) return;
    switch (it->kind) {
    case MR_COMMAND_RECORD:
    case MR_COMMAND_WAIT:
    case MR_COMMAND_ALLOC:
    case MR_COMMAND_FREE:
        if (it->kind == MR_COMMAND_ALLOC) order_add(o, order_host(o), o->first_node[i]);
        if (it->kind != MR_COMMAND_FREE || !it->command->u.at_once) leave_marker(o, i, it);
        return;
    case MR_COMMAND_OP:
    case MR_COMMAND_HOST_FUNCTION:
    case MR_COMMAND_FAULT:
    case MR_COMMAND_COPY: leave_work(o, i, it, asked); return;
    case MR_COMMAND_HOST_ACCESS: order_add(o, order_host(o), o->first_node[i]); return;
    case MR_COMMAND_STREAM_QUERY:
    case MR_COMMAND_EVENT_QUERY:
    case MR_COMMAND_ELAPSED: order_add(o, order_host(o), o->first_node[i]); /* fall through */
    case MR_COMMAND_FREE_WAIT:
        if (!asked) return; /* fall through */
    case MR_COMMAND_STREAM_SYNC:
    case MR_COMMAND_EVENT_SYNC:
    case MR_COMMAND_DEVICE_SYNC:
    case MR_COMMAND_DRAIN:
        order_goal(o, i);
        order_join(o, order_host(o), order_scratch(o));
        return;
    default: return;
    }
}
