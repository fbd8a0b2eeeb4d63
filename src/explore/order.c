/* The nodes of a program's order: see order.h. */
#include "explore/order.h"

#include <stdlib.h>

#include "ops/op.h"

#define NONE UINT32_MAX

/* The number of parts into which the device's work can be cut; 1: it cannot be cut. */
static int64_t pieces_of(const mr_program_item *it) {
    switch (it->kind) {
    case MR_COMMAND_OP: return it->command->u.op.row->items(it->command);
    case MR_COMMAND_COPY: return (int64_t)it->command->u.copy.bytes;
    case MR_COMMAND_HOST_FUNCTION:
    case MR_COMMAND_FAULT:
    case MR_COMMAND_RECORD: /* no work of the device */
    case MR_COMMAND_WAIT:
    case MR_COMMAND_ALLOC:
    case MR_COMMAND_FREE: MR_HOST_LIST(MR_COMMAND_CASE) MR_ACCOUNT_LIST(MR_COMMAND_CASE) break;
    }
    return 1;
}

static uint32_t parts_of(const mr_program_item *it, uint32_t grain) {
    int64_t pieces = grain < 2 ? 1 : pieces_of(it);
    if (pieces < 1) return 1;
    return pieces < (int64_t)grain ? (uint32_t)pieces : grain;
}

static bool add_nodes(order *o, uint32_t item, uint32_t lane, uint32_t parts) {
    for (uint32_t part = 0; part < (parts ? parts : 1); part++)
        if (!mr_vec_push(&o->nodes, ((order_node){item, part, parts, lane, false}))) return false;
    return true;
}

static bool add_nodes_of(order *o, size_t i, uint32_t grain) {
    const mr_program_item *it = &o->items[i];
    uint32_t item = (uint32_t)i;
    if (it->kind == MR_COMMAND_FREE) o->aliases = true;
    if (order_is_marker(it))
        return mr_vec_push(&o->nodes, ((order_node){item, 0, 1, it->stream, true}));
    switch (order_class(o, i)) {
    case ITEM_COPY: /* the host's reading of the source, where it does */
        return (it->kind != MR_COMMAND_COPY || add_nodes(o, item, NONE, 0)) &&
               add_nodes(o, item, it->stream, parts_of(it, grain));
    case ITEM_WORK: return add_nodes(o, item, it->stream, parts_of(it, grain));
    case ITEM_HOST:
    case ITEM_QUERY:
    case ITEM_ALLOC: return add_nodes(o, item, NONE, 0);
    case ITEM_PLAIN:
    case ITEM_WAIT:
    case ITEM_LOOK:
    case ITEM_REFUSED: break;
    }
    return true;
}

void order_find_items(order *o, const mr_player *player) {
    o->player = player;
    for (size_t i = 0; i < mr_player_item_count(player); i++)
        o->items[i] = mr_player_item_at(player, i);
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
    o->rows = calloc(count + 1, sizeof *o->rows);
    o->gathered = calloc(o->lanes + 1u, sizeof *o->gathered);
    o->frees = calloc(count + 1, sizeof *o->frees);
    o->guarded = calloc(count + 1, sizeof *o->guarded);
    bool fine = o->first_node && o->items && o->rows && o->gathered && o->frees && o->guarded;
    if (fine) order_find_items(o, player);
    for (size_t i = 0; i < count && fine; i++) {
        o->first_node[i] = (uint32_t)o->nodes.count;
        fine = add_nodes_of(o, i, grain);
    }
    if (fine) {
        order_find_rows(o, count);
        o->first_node[count] = (uint32_t)o->nodes.count;
        return MR_OK;
    }
    order_close(o);
    return mr_no_memory("for the order of a program");
}

mr_status order_begin(order *o) {
    o->words_in_set = (uint32_t)(o->nodes.count / 64 + 1);
    o->word_count = o->words_in_set * (o->nodes.count + o->lanes + o->events + o->storages +
                                       2 * (size_t)o->devices + 5);
    if (o->word_count < UINT32_MAX) o->words = calloc(o->word_count, sizeof *o->words);
    return o->words ? MR_OK : mr_no_memory("for the order of a program");
}

void order_close(order *o) {
    mr_vec_free(&o->nodes);
    mr_vec_free(&o->changes);
    free(o->first_node);
    free(o->items);
    free(o->rows);
    free(o->gathered);
    free(o->frees);
    free(o->guarded);
    free(o->words);
    *o = (order){0};
}

/* ---- the rules */
