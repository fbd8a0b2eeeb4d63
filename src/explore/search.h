/* The inside of a search, private to search.c and to the files that it calls. decide.c takes decisions and takes them
 * back. place.c finds the memory that an allocation may get. carry.c carries out what has been decided. */
#ifndef MR_EXPLORE_SEARCH_H
#define MR_EXPLORE_SEARCH_H

#include "explore/state.h"

typedef enum {
    DECIDE_PAIR,  /* other before node, or node before other */
    DECIDE_QUERY, /* it says yes, or no */
    DECIDE_PLACE, /* an allocation finds memory after this free; or it finds other memory */
    DECIDE_TURN,  /* of several hosts the first one goes on; or another one */
    DECIDE_OPEN,  /* a copy returns early, or waits; or the other way round */
} decision;

typedef struct {
    decision kind;
    bool second; /* the second choice has been taken, and there is no third */
    cursor at;   /* where to go on, before the choice */
    size_t changes, steps, answers, turns, polls;
    uint32_t placed, segment;
} frame;

typedef struct {
    uint32_t begin, end; /* items; `end` is the one that looks, or the count */
    mr_player_mark *mark;
    bool dirty; /* the player has gone on since */
    uint32_t frames;
} segment;

#define SHARE_DEPTHS 64

/* Counts of the tree of choices so far (share.h). */
typedef struct {
    uint32_t choices[SHARE_DEPTHS]; /* by depth: the number of choices made there */
    uint64_t from;                  /* schedules that had been counted when it began */
    uint64_t runs, quiet_from; /* runs of the function, and the schedules when they last grew */
    double began;
} search_shape;

typedef struct search search;
struct search {
    explorer *e;
    branch *b;
    search *outer; /* the search of the parent's branch */
    order *o;
    cursor at;
    plan plan;
    MR_VEC(polled) polls;
    MR_VEC(frame) frames;
    MR_VEC(segment) segments;
    unsigned depth;
    bool random; /* a sample: each choice is drawn, and none is kept */
    search_shape shape;
    double looked; /* when sharing with other processes was last considered */
};

typedef enum { GOES_ON, IS_OVER } progress;

static inline const order_node *search_node(const search *s, uint32_t n) {
    return &s->o->nodes.items[n];
}

/* Frees its player with all marks. The player is made again before the search goes on. */
void search_let_go(search *s);
void search_forget_mark(search *s); /* only that of the newest segment */
/* Brings the player to the state in which the newest segment's commands are submitted, without a mark. */
mr_status search_remake(search *s);
/* The search is stopped: notes the choices that it has not taken. */
void search_note_untried(const search *s);

/* The nodes of the item at hand enter, before any decision: those of an item that order_has_nodes. */
void search_place_nodes(search *s);

/* ---- decide.c */

/* Takes the first choice, and keeps a frame for the other one; or, in a sample, draws one. The cursor goes on behind
 * it. */
mr_status search_decide(search *s, decision kind);
/* Takes the first choice of the pair at hand, and keeps no frame for the other one. */
void search_keep_submitted(search *s);
uint64_t search_draw(explorer *e); /* a number at random */
/* branch_takes_part of a node of the item at hand. */
bool search_takes_part(const search *s, uint32_t node);
/* The node of a query or an allocation; search_answer_yes puts the whole scratch set, which it asks for, before it. */
uint32_t search_look_node(const search *s);
void search_answer_yes(search *s, uint32_t look);
/* Fills the scratch set with the nodes that come before the allocation at this place. False: this is no choice, or the
 * same as place 0. */
bool search_place_goal(search *s, uint32_t place);
/* Like place 0, but the allocation does not see memory that other streams have freed. */
static inline uint32_t search_place_missed(const search *s) {
    return s->at.item + 2;
}
/* Takes the place at the cursor: its free completes before the allocation. */
void search_take_place(search *s);
/* The last frame that has another choice takes it, and all that followed it is taken back. */
progress search_back(search *s);
void search_drop_segment(search *s);

/* ---- polls.c */

/* Whether the query at hand may be told no, where the order permits both answers. */
bool polls_may_say_no(search *s);
bool polls_note(search *s, bool yes); /* notes the answer; false: no memory */

/* ---- place.c */

/* Chooses the memory of an allocation: the pool's answer depends on which frees are complete. */
mr_status search_place(search *s);

/* ---- carry.c */

/* Returns the player to the state in which the segment's commands are submitted. Makes a mark there if the player will
 * have to return: for a frame, or because `returns` says so. */
mr_status search_go_back(search *s, bool returns);
/* Fills the scratch set with the nodes that must be carried out before the host carries out the item. */
void search_find_needed(search *s);
/* Plans all that the scratch set needs; and the item's own nodes, where the host waits for them in the call. */
mr_status search_plan_needed(search *s);
mr_status search_plan_own(search *s);
/* Lets the device carry out the first `before` planned steps, then the host carries out the item. *out_asked: the host
 * got to the item. */
mr_status search_carry_out(search *s, size_t before, mr_difference *d, bool *out_asked);
/* The player's chooser is to take the first `count` of e->wanted. */
void search_give(search *s, size_t count);
bool search_is_interrupted(mr_status status);
/* The plan's answer to what is left open at this item; false: it has none. */
bool search_answer_for(const plan *p, uint32_t at, bool *out_yes);

#endif
