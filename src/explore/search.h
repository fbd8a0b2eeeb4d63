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

/* The tree of choices, as far as it is known (share.h). */
typedef struct {
    uint32_t choices[SHARE_DEPTHS]; /* by depth: so many were made there */
    uint64_t from;                  /* schedules that had been counted when it began */
    uint64_t runs, quiet_from; /* runs of the function, and the schedules when they last grew */
    double began;
} search_shape;

typedef struct search search;
struct search {
    explorer *e;
    branch *b;
    search *outer; /* of the branch that this one comes from */
    order *o;
    cursor at;
    plan plan;
    MR_VEC(polled) polls;
    MR_VEC(frame) frames;
    MR_VEC(segment) segments;
    unsigned depth;
    bool random; /* a sample: each choice is drawn, and none is kept */
    search_shape shape;
    double looked; /* when it was asked whether other processes should take a part */
};

typedef enum { GOES_ON, IS_OVER } progress;

static inline const order_node *search_node(const search *s, uint32_t n) {
    return &s->o->nodes.items[n];
}

/* Its player is taken back, with all marks. Before it goes on, it is made again. */
void search_let_go(search *s);
void search_forget_mark(search *s); /* only that of the newest segment */
/* The player stands where the commands of the newest segment have been submitted, without its mark. */
mr_status search_remake(search *s);
/* The search is stopped: notes the choices that it has not taken. */
void search_note_untried(const search *s);

/* The nodes of the item at hand enter, before any decision: those of an item that order_has_nodes. */
void search_place_nodes(search *s);

/* ---- decide.c */

/* Takes the first choice, and keeps a frame for the other one; or, in a sample, draws one. The cursor goes on behind
 * it. */
mr_status search_decide(search *s, decision kind);
/* Takes the first choice of the pair at hand, and there is no other one. */
void search_keep_submitted(search *s);
uint64_t search_draw(explorer *e); /* a number at random */
/* branch_takes_part of a node of the item at hand. */
bool search_takes_part(const search *s, uint32_t node);
/* The node of a query or an allocation; and all of the scratch set, which it asks for, comes before it. */
uint32_t search_look_node(const search *s);
void search_answer_yes(search *s, uint32_t look);
/* The scratch set then has the nodes that come before the allocation there. False: this is no
 * choice, or the same as place 0. */
bool search_place_goal(search *s, uint32_t place);
/* As place 0, and the allocation does not look for what other streams have freed. */
static inline uint32_t search_place_missed(const search *s) {
    return s->at.item + 2;
}
/* The place at the cursor is taken: its free is over when the allocation is made. */
void search_take_place(search *s);
/* The last frame that has another choice takes it, and all that followed it is taken back. */
progress search_back(search *s);
void search_drop_segment(search *s);

/* ---- polls.c */

/* Whether the query at hand may be told no, where the order permits both answers. */
bool polls_may_say_no(search *s);
bool polls_note(search *s, bool yes); /* what it was told; false: no memory */

/* ---- place.c */

/* An allocation finds memory: what the pool gives it depends on which frees are over. Chooses among them. */
mr_status search_place(search *s);

/* ---- carry.c */

/* The player returns to where the segment's commands had been submitted, or a mark is made there if it will have to.
 * That is because of a frame, or because the caller says so. */
mr_status search_go_back(search *s, bool returns);
/* What must have been carried out when the host does what the item asks: into the scratch set. */
void search_find_needed(search *s);
/* Plans all that the scratch set needs; and the item's own nodes, where the host waits for them in the call. */
mr_status search_plan_needed(search *s);
mr_status search_plan_own(search *s);
/* Lets the device do the first `before` of what is planned, then the host what the item asks. *out_asked: it got to
 * that. */
mr_status search_carry_out(search *s, size_t before, mr_difference *d, bool *out_asked);
/* The player's chooser is to take the first `count` of e->wanted. */
void search_give(search *s, size_t count);
bool search_is_interrupted(mr_status status);
/* The plan's answer to what is left open at this item; false: it has none. */
bool search_answer_for(const plan *p, uint32_t at, bool *out_yes);

#endif
