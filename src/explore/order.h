/* The order of a program's commands: the order by the rules, and the decisions of a search, which can be undone.
 *
 * The nodes are commands of devices (several nodes for a command that is cut into parts), and actions of the host
 * (accesses, waits, queries). Records, waits and frees are nodes that touch nothing and need no step: a query may come
 * before one of them, and so say no, although all operations are done. A set of nodes is a row of bits. For each node
 * there is the set of all that comes before it, closed transitively. For each stream, record and the host, there is the
 * set of what a next node of theirs comes after.
 *
 * Easiest to break: each change by a decision must go through put(), which keeps the old words. Otherwise undoing is
 * not exact. */
#ifndef MR_EXPLORE_ORDER_H
#define MR_EXPLORE_ORDER_H

#include <string.h>

#include "base/vec.h"
#include "order/order.h"
#include "program/program.h"

typedef struct {
    uint32_t item;
    uint32_t part;  /* of `parts` of the command */
    uint32_t parts; /* 0: the host's */
    uint32_t lane;  /* slot of the stream; UINT32_MAX: the host */
    /* a record, a wait, a free: of the device, and over as soon as what it comes behind is */
    bool marker;
} order_node;

typedef struct {
    uint32_t at;
    uint64_t was;
} order_change;

/* The rows of an item (order/order.h). */
typedef struct {
    bool in_stream;
    mr_order_set enter, leave;
    /* what the host waits for; for a copy: before it reads the source, if it waits there */
    mr_order_set waits;
    bool known_done; /* once the host has waited for the item itself, it comes after that */
} order_rows;

/* Sets are offsets into `words`. */
typedef struct {
    const mr_player *player;
    uint32_t words_in_set;
    uint32_t lanes, events, storages, devices;
    MR_VEC(order_node) nodes; /* of the whole program, in the order of submission */
    mr_program_item *items;   /* as the player has them */
    order_rows *rows;         /* by item */
    mr_order_set host_enter;  /* of the host's own part of an item */
    bool *gathered;           /* by lane: the default stream of its device comes after it */
    bool *frees;              /* by item: it gives memory back to the pool, in its stream */
    /* by item that frees: reuse of the memory needs more than the free itself */
    bool *guarded;
    uint32_t *first_node; /* by item; [count of items]: all nodes */
    uint32_t placed;      /* nodes that are in the order by now: the first ones */
    uint64_t *words;
    size_t word_count;
    MR_VEC(order_change) changes;
    bool failed;  /* memory was out */
    bool aliases; /* memory is freed in the program, so storages may share addresses */
} order;

/* The nodes and what they are; no set yet. */
mr_status order_open(order *o, const mr_player *player, uint32_t grain);
mr_status order_begin(order *o); /* the sets, empty: with the square of the nodes in memory */
/* The items as another player of the same program has them. */
void order_find_items(order *o, const mr_player *player);
void order_close(order *o);

/* The sets, one behind the other. */
static inline uint32_t order_set_at(const order *o, size_t index) {
    return (uint32_t)(index * o->words_in_set);
}
static inline uint32_t order_before(const order *o, uint32_t node) { /* all that comes before it */
    return order_set_at(o, node);
}
static inline uint32_t order_lane(const order *o, uint32_t stream_slot) {
    return order_set_at(o, o->nodes.count + stream_slot);
}
static inline uint32_t order_record(const order *o, uint32_t event_slot) {
    return order_set_at(o, o->nodes.count + o->lanes + event_slot);
}
static inline uint32_t order_free(const order *o, uint32_t storage_slot) {
    return order_set_at(o, o->nodes.count + o->lanes + o->events + storage_slot);
}
static inline uint32_t order_of_device(const order *o, int device, uint32_t which) {
    return order_set_at(o, o->nodes.count + o->lanes + o->events + o->storages +
                               2 * (uint32_t)device + which);
}
static inline uint32_t order_released(const order *o, int device) { /* by the legacy stream, R3 */
    return order_of_device(o, device, 0);
}
static inline uint32_t order_barrier(const order *o, int device) { /* R60 */
    return order_of_device(o, device, 1);
}
static inline uint32_t order_host(const order *o) {
    return order_of_device(o, (int)o->devices, 0);
}
static inline uint32_t order_done(const order *o) { /* carried out */
    return order_of_device(o, (int)o->devices, 1);
}
static inline uint32_t order_scratch(const order *o) { /* for the caller; not kept */
    return order_of_device(o, (int)o->devices, 2);
}

static inline bool order_has(const order *o, uint32_t set, uint32_t node) {
    return o->words[set + node / 64] >> node % 64 & 1;
}
void order_add(order *o, uint32_t set, uint32_t node);
void order_join(order *o, uint32_t set, uint32_t other);   /* set |= other */
void order_assign(order *o, uint32_t set, uint32_t other); /* set = other */
/* The scratch set belongs to no frame: changes to it are not undone. */
static inline void order_scratch_join(order *o, uint32_t other) {
    uint64_t *scratch = o->words + order_scratch(o);
    for (uint32_t i = 0; i < o->words_in_set; i++) scratch[i] |= o->words[other + i];
}
static inline void order_scratch_clear(order *o) {
    memset(o->words + order_scratch(o), 0, o->words_in_set * sizeof *o->words);
}
/* Whether the node is an operation of the device, which a step carries out. */
static inline bool order_is_operation(const order_node *node) {
    return node->parts && !node->marker;
}
bool order_within(const order *o, uint32_t set, uint32_t other); /* set is a part of other */
/* Adds all that comes before the members of the scratch set. */
void order_close_scratch(order *o);

/* The next node enters, after all of this set (and what comes before that). */
void order_place(order *o, uint32_t node, uint32_t set);
/* `first` comes before `second`; both are placed, and `second` does not come before `first`. */
void order_decide(order *o, uint32_t first, uint32_t second);

/* Places item i's nodes after their predecessors by the rules, one part after the other, and then updates the sets that
 * come after them. `asked`: a query said yes; a copy that may return early does; a free that may wait does. */
void order_place_nodes(order *o, size_t i, bool asked);
void order_leave(order *o, size_t i, bool asked);
/* Puts the nodes that a query, or an event's time, asks for into the scratch set. */
void order_goal(order *o, size_t i);
/* Whether all that item `item` does comes after `earlier`, once both are placed. The host's read of a copy's source is
 * no part of it. */
bool order_comes_after(const order *o, uint32_t item, uint32_t earlier);
/* Whether query i also asks for an allocation that the host does not know to be complete. Allocations have no nodes in
 * their streams: only such an answer can depend on when they complete. */
bool order_allocates(order *o, size_t i);
/* Whether ALLOC item i may get the memory that item k frees, once the free is complete. The scratch set then has the
 * conditions. `k` = i: of all frees, which together may make a place that is large enough. */
bool order_free_for(order *o, size_t i, size_t k);

/* Whether ALLOC item i may miss memory that other streams have freed, because neither the host nor its stream knows
 * that the frees are complete (R30). False if its stream's order also offers it a free block (policy 1). */
/* all items before i have left, and there are no decisions */
bool order_may_miss(order *o, size_t i);
void order_forget(order *o); /* back to the state in which no item has entered */

size_t order_changes(const order *o);
void order_undo(order *o, size_t changes, uint32_t placed);
/* The state of another program that begins with the same nodes. */
void order_copy(order *o, const order *from);

/* A record, a wait or a free in a stream: see order_node. */
bool order_is_marker(const mr_program_item *it);

/* ---- rules.c: what an item is */

/* Sets `rows` and `gathered`. */
void order_find_rows(order *o, size_t count);

typedef enum {
    ITEM_PLAIN,   /* neither works nor looks at the device; it may order */
    ITEM_WORK,    /* nodes of a device, and the host goes on */
    ITEM_HOST,    /* the host touches memory: one node */
    ITEM_WAIT,    /* the host waits */
    ITEM_QUERY,   /* the answer depends on how far a device has got */
    ITEM_ALLOC,   /* the memory that it gets may depend on how far a device is */
    ITEM_COPY,    /* work that the host waits for, or that reads host memory at the call */
    ITEM_LOOK,    /* something else that is compared with what was recorded */
    ITEM_REFUSED, /* cannot be explored */
} item_class;
item_class order_class(const order *o, size_t i);
/* Whether items of the class have nodes. The search places these before it looks at the item. */
bool order_has_nodes(item_class class);
/* How a copy behaves towards the host (R20-R24). `asked`: that it returns early, where it may. */
mr_order_copy_rules order_copy_of(const order *o, size_t i, bool asked);
/* Whether item i depends on an open choice of CUDA other than the order; *out_usual: the choice by the settings. */
bool order_is_open(const order *o, size_t i, bool *out_usual);

#endif
