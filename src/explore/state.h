/* The inside of an exploration, private to this folder.
 *
 * A branch is one program that the function came to, with the player that carries it out and the order of its nodes.
 * The branches are a tree: a child is what the function does if an item comes out in another way than in its parent. A
 * search goes through the schedules of one branch that begin in a given way.
 *
 *     mr.explore(fn)
 *        |  bind/explore/explore.c        calls the function protected; makes bytes of what it returns
 *        v
 *     explore/branch.c            a run of the function: its program, a player, the order of its commands, its value
 *        |  explore/steer.c       the chooser of that run, which follows a plan as far as there is one
 *        v
 *     explore/apart.c             groups of races that are free of each other: each alone, where that is proved
 *        v
 *     explore/search.c            decides one pair after the other, in the order in which the commands were submitted
 *        |  explore/order.c       who comes before whom, closed transitively; decisions are taken back by a log of
 *           words
 *        |  player                the commands, in an order that agrees; marks return to where decisions were made
 *        v
 *     explore/outcome.c           the bytes of the value: which outcome, how often, the simplest schedule
 *
 * No dead ends. A new node is compared with the earlier ones that touch the same bytes and that nothing orders. Each
 * pair that the transitive closure does not decide is a decision with two choices, and every choice can be completed.
 * So each leaf of the search is a class, no class is met twice, and as many schedules are carried out as there are
 * classes.
 *
 * Looks. Up to the next point at which the host looks at the device (a wait, an access, a query) all decisions are made
 * on bits. Then exactly that is carried out which comes before the look. If the host finds another value than was
 * recorded, what follows in the program is not what the function would do. Then the function is called again, forced
 * into the schedule so far, and its new program is a child of the old one; children are told apart by the value. So the
 * function runs once for each history of values.
 *
 * Ordinals. A plan says which command is carried out while the host is at which item. Items are counted without those
 * that come when the last reference to an object goes, because pending commands hold references, and so that depends on
 * the schedule.
 *
 * What an allocation misses. Whether it may miss complete frees depends on the rules alone, not on the schedule. So
 * `branch.c` goes through the order once without a decision, and notes it for each allocation. The search then has one
 * more place for it (`place.c`), and an answer in the plan tells the pool not to look.
 *
 * Two judges. `tests/c/test_explore_differential.c` goes through every interleaving of random programs. It compares
 * the number of classes and of outcomes, and checks that there is a hazard exactly where there is more than one
 * class. Who comes before whom is said there by the simple checker of the hazard tests. */
#ifndef MR_EXPLORE_STATE_H
#define MR_EXPLORE_STATE_H

#include "base/map.h"
#include "explore/explore.h"
#include "explore/order.h"
#include "explore/steer.h"

/* ---- addresses: address.c */

/* Whether two outcomes first differ in the address of a Lua value; then the type of that value: "table". */
bool mr_explore_address_kind(const mr_buffer *a, const mr_buffer *b, char *out_kind, size_t size);

/* ---- branches: branch.c */

/* A tensor of the value. */
typedef struct {
    uint32_t slot; /* of its storage; UINT32_MAX: the program knows nothing of it, and it is */
    char *bytes;   /* always these; owned */
    size_t size;
    mr_tensor view; /* without storage */
} value_part;

/* Host functions may change variables, and so the value. So it is known only for the order in which they ran, and the
 * places between the host's calls at which they did. */
typedef MR_VEC(plan_step) function_order;
typedef struct {
    function_order order;
    mr_buffer text;
} variant;

/* Where and how a child goes another way than its parent. */
typedef struct {
    uint32_t item;
    mr_difference_kind kind;
    uint64_t value;
    /* a hash of the set of host functions that have run by then: the child has what these have
     * read */
    uint64_t functions;
    /* Another host goes on: which choice of hosts it is, from 1, and who does; 0: no choice of hosts */
    uint32_t turn, who;
} branch_key;

/* A schedule that a run of the function took by itself, and the bytes of its value. */
typedef struct {
    plan plan;
    mr_buffer value;
    size_t text_size;
} own_schedule;

/* Texts of an item, each NULL as long as nobody has asked; owned. */
typedef struct {
    char *command, *timed; /* "`sum` (a.lua:7)", and which of several it is */
    char *step;            /* a line of `steps` */
} told_item;

typedef struct branch branch;
#define MOST_DEVICES 64

struct branch {
    mr_program *program;
    uint64_t in_use[MOST_DEVICES]; /* bytes, when its run began (room.c) */
    mr_player *player;             /* NULL: taken back, see budget.c */
    steer_player *steer;           /* the player's machine owns it */
    mr_player_mark *start;
    order order;
    uint8_t *classes; /* item_class, by item */
    bool *may_miss;   /* by item: as order_may_miss says, by the rules alone */
    /* by item: the first one from there on at which the host looks; count: none */
    uint32_t *breaks_at;
    uint64_t *conflicts; /* by node: the earlier nodes that touch the same bytes */
    bool *known;         /* by node: that row is filled in */
    told_item *told;     /* by item (tell.c); NULL: none is kept */
    uint32_t count;      /* items */
    /* For priority.c; NULL before it has asked. By node: what comes before it by the rules; when it goes in a run. */
    uint64_t *ruled;
    uint32_t *moments;
    MR_VEC(variant) variants; /* of the text of the value; the first one is that of the own run */
    MR_VEC(value_part) parts;
    bool has_functions;
    bool functions_write; /* memory; the program has what they wrote in its own run */
    bool strayed;         /* of its run */
    bool stages;          /* as in the result */
    bool without_marks;   /* going back is beginning anew: marks would take too much memory */
    bool clean;           /* no value depends on which memory an allocation gets: proof.c */
    size_t fixed_bytes,
        host_bytes; /* what it takes beside its player, and the player's host memory */
    /* items of the pair whose two orders are to be shown; UINT32_MAX: not known */
    uint32_t sides[2];

    host_turns turns;     /* where several hosts could go on, in the order of the run */
    task_queries queries; /* of tasks, likewise */
    branch_key key;       /* how its parent's items come out here */
    MR_VEC(branch *) children;

    /* It is a leaf: behind item key.item nothing depends on the order, so its own run is all that can come of it. It
     * has neither player nor order. */
    bool leaf;
    /* It is a leaf, and the host reads more behind that item, which another schedule with the same key may have
     * changed. So it stands for one schedule only. */
    bool reads_more;
    own_schedule own;
    size_t forced; /* steps of `own` that were its parent's */
    enum { NOT_COMPARED, LIKE_ROOT, UNLIKE_ROOT } likeness; /* for apart.c */
    const branch *before; /* the parent, which has the order of what was decided */
};

typedef struct explorer explorer;

/* Runs the function, forced into the plan. It is recorded and cannot be searched yet. `out_own` may be NULL. */
mr_status branch_record(explorer *e, const plan *forced, own_schedule *out_own,
                        branch **out_branch);
/* Makes the player that carries the program out, and the facts about its items. Then branch_order, before it is
 * searched. */
mr_status branch_open(explorer *e, branch *b);
mr_status branch_order(explorer *e, branch *b);
mr_status branch_prepare(explorer *e, branch *b); /* both */
/* Its player is taken back, or there again, at the beginning of the program. */
void branch_close_player(branch *b);
mr_status branch_open_player(explorer *e, branch *b);
mr_status branch_go_to_start(explorer *e, branch *b); /* also where there is no player yet */
/* Only runs it. *out_followed: it asked for all that the plan carries out. */
mr_status branch_follow(const mr_explore_subject *subject, const plan *forced,
                        mr_explore_value *out_value, bool *out_followed);
void branch_destroy(explorer *e, branch *b); /* and its children; accepts NULL */
/* Where a byte of device memory lies. Addresses do not tell it: gaps between them move as blocks are split. */
static inline uintptr_t branch_place(const mr_storage *storage, uint64_t byte) {
    return (uintptr_t)storage->host + byte;
}
/* Whether both lie in the same memory, one after the other. */
static inline bool branch_share_memory(const mr_storage *a, const mr_storage *b) {
    return a->device == b->device && branch_place(a, 0) < branch_place(b, b->bytes) &&
           branch_place(b, 0) < branch_place(a, a->bytes);
}
/* The rows of all nodes of items [first, last], whose storages are there by now. */
void branch_find_conflicts(branch *b, size_t first, size_t last);
/* Whether two nodes, the earlier one first, touch the same bytes, one of them writing. Their storages are there. */
bool branch_conflict(const branch *b, uint32_t early, uint32_t late);
/* Whether the parts of two conflicting nodes could be mixed, with another result. That is so if they share more than
 * one element, or if one of them updates memory that the other one writes. */
bool branch_may_mix(const branch *b, uint32_t early, uint32_t late);
/* Whether a node touches memory; then it can be in pairs. The host's own node of a copy stands for its reading of the
 * source, where it does that; `asked`: as for order_copy_of. */
bool branch_takes_part(const branch *b, uint32_t node, bool asked);
/* The bytes of the value as they are now, into `out`, after this schedule. Runs the function where its host functions
 * ran in another order than ever before. */
mr_status branch_value(explorer *e, branch *b, const plan *schedule, mr_buffer *out,
                       size_t *out_text_size);

/* ---- whether memory is short: room.c */

void room_begin(const mr_machine *machine, branch *b); /* its run begins */
/* The result is not complete where the order may decide whether an allocation of the run fails. */
void room_judge(explorer *e, const branch *b);

/* ---- what needs no search: proof.c */

/* Whether one schedule of the program stands for all: the hazard checker finds nothing in it, everything in it was
 * followed, and nothing looks at what depends on the order. Asks only the program: the branch needs no player. */
mr_status proof_of_one(const explorer *e, const branch *b, bool *out_proved);
/* Whether no item depends on the order by anything but the bytes that it touches. */
bool proof_of_items(const explorer *e, const branch *b);
/* Whether it is known what each command touches. */
mr_status proof_of_accesses(const branch *b, bool *out_known);
/* Whether all memory is written as a whole by the first command that was submitted to touch it. */
mr_status proof_of_first_writes(const branch *b, bool *out_all);
/* Whether the hazard checker, to which each rank is a host of its own, finds nothing in the last run. Nothing in it
 * looks at what depends on the order, either: all orders of the work come to the same values, in any order of the
 * ranks. */
bool proof_of_ranks(const explorer *e);
/* Whether nothing behind item `last` depends on the order, if all before it is over and the host has waited for it:
 * there is one way to go on. */
bool proof_of_rest(const explorer *e, const branch *b, uint32_t last);
/* The host reads memory behind item `last`. */
bool proof_reads_more(const branch *b, uint32_t last);
/* Whether no value of it depends on which memory an allocation gets. The order is that of the rules alone, and all
 * nodes are placed. */
mr_status proof_of_memory(const branch *b, bool *out_clean);

/* ---- by_rules.c */

/* The item's nodes enter the order, and leave it, without a decision. `said_yes`: of a query. All items one after the
 * other, from an empty order on. */
void rules_place(branch *b, uint32_t i, bool said_yes);
/* Says that not all schedules were tried where the virtual GPU orders a race of the first run, which is of this branch:
 * it waits for more than CUDA guarantees. */
void rules_find_stricter(explorer *e, branch *b);

/* ---- what new memory holds: fresh.c */

/* Sets result->reads_fresh where an operation may read memory of the program before it is written. */
mr_status fresh_find(explorer *e, branch *b);

/* ---- schedules by priorities: priority.c */

/* Draws the run e->priority_run of this branch. Forgets the order. */
mr_status priority_draw(explorer *e, branch *b);
bool priority_can(const branch *b); /* it is not too large */
static inline bool priority_goes_first(const branch *b, uint32_t node, uint32_t other) {
    return b->moments[node] < b->moments[other];
}
/* That at least one of the runs had a schedule in which two given orders hold. */
double priority_chance(const mr_explore_result *r);

/* ---- the budget: budget.c */

/* Seconds that count so far: of the processor, or of the wall if these are very many. */
double budget_now(const explorer *e);
void budget_begin_clock(explorer *e);
/* The search, or a part of it, has so many seconds; 0: all that it needs. */
void budget_end_at(explorer *e, double seconds_from_now);
/* A schedule was counted: with a second outcome, a search that was to end early has the whole budget. */
void budget_note_outcomes(explorer *e);
/* mr_machine.interrupted of players, for an explorer. */
bool budget_interrupts(void *context);
/* An interruption has come. True: by the clock; the search is then stopped, and the result says so. */
bool budget_takes_interruption(explorer *e);
/* Call this often: it sets e->stop. Cheap. */
void budget_look_at_clock(explorer *e);
/* The same, and players and marks may go: for the loop of a search, where nobody reads a player. */
void budget_look(explorer *e);
/* Takes memory back until there is room for so many bytes more. If there is none for what the innermost search needs
 * itself, the search is stopped; if there is none for more, the innermost search lets go of its player. */
void budget_make_room(explorer *e, size_t more);
/* All below the branch that nobody stands in. */
void budget_drop_children(explorer *e, branch *b);
/* If there is no room, what the last run has left is freed first. */
bool budget_has_room(explorer *e, size_t more);
/* Frees memory that is kept for the next run, until there is room for so many bytes more. */
void budget_trim_spares(explorer *e, size_t more);
size_t budget_of_player(const explorer *e, const branch *b); /* what one takes, about */
void budget_begin(explorer *e);                              /* before the first run */
void budget_measure(explorer *e);                            /* after it */
/* Divides what is left of the memory among this process and so many others, at most. How many there is room for. */
unsigned budget_divide(explorer *e, unsigned others);
void budget_unite(explorer *e); /* there are no others any more */

/* ---- the search: search.c */

typedef enum {
    STAGE_ENTER,
    STAGE_TURN,
    STAGE_OPEN,
    STAGE_SCAN,
    STAGE_ASK,
    STAGE_LOOK
} search_stage;

typedef struct {
    uint32_t item;
    search_stage stage;
    uint32_t node, other;       /* STAGE_SCAN: the pair that is next */
    uint32_t place, next_place; /* STAGE_ASK of an allocation: see place.c */
    bool asked;                 /* of this item: see order_leave */
    uint32_t overtaken;         /* pairs against the order of submission */
    uint32_t turn;              /* the choice of hosts that is next */
    uint32_t deviations;        /* of those before: who does not fall on the first */
} cursor;

/* Queries that said yes or no on the way. */
typedef struct {
    mr_site where;
    bool yes;
} polled;

typedef struct {
    cursor at;
    plan plan; /* what has been carried out so far */
    MR_VEC(polled) polls;
} journey;

/* All schedules of `b` that begin with the journey, in the state `from` (NULL: from the beginning). */
mr_status search_branch(explorer *e, branch *b, const journey *begin, const order *from,
                        unsigned depth);

/* ---- choices of hosts: turns.c */

static inline bool turns_are_open(const branch *b) { /* several hosts could go on */
    return b->turns.count > 0;
}
/* After the first run: whether one order of its hosts stands for all, or which ones do. */
void turns_judge(explorer *e);
/* The searches have met one way only in which the function goes on; else turns_are_one has said too much. */
void turns_check_one(explorer *e);
/* The search of all orders, or of as many as the budget permits: those first that deviate from the usual one least
 * often. */
mr_status turns_search(explorer *e, branch *b);
/* The same without a search, where one schedule of the device stands for all in each order of the hosts. *out_searched:
 * it does in all that there was time for; else there is no result. */
mr_status turns_of_proved(explorer *e, bool *out_searched);

/* ---- outcomes: outcome.c */

/* One more schedule came to this value, with so many pairs against the order of submission. */
mr_status outcome_count(explorer *e, const branch *b, const plan *schedule, uint32_t overtaken,
                        const mr_buffer *value, size_t text_size);
typedef struct {
    size_t index;     /* of the result's outcomes */
    bool is_simplest; /* of the schedules so far that lead there */
} outcome_met;
/* The same, and says which outcome it is. Not where it stops the search. */
mr_status outcome_meet(explorer *e, const branch *b, const plan *schedule, uint32_t overtaken,
                       const mr_buffer *value, size_t text_size, outcome_met *out_met);
void outcome_forget_all(explorer *e);
/* Classes that a worker has counted for an outcome, which came after all that were counted so far. */
typedef struct {
    uint32_t index; /* of the result's outcomes */
    uint32_t overtaken, switches, length;
    uint64_t count;
    /* Schedule, steps, difference; NULL: none of its schedules is simpler than those before. */
    const char *texts[3];
} outcome_part;
bool outcome_has_room(const explorer *e, size_t more); /* outcomes */
mr_status outcome_find_or_add(explorer *e, const char *value, size_t size, size_t text_size,
                              uint32_t *out_index);
mr_status outcome_add_part(explorer *e, const outcome_part *part);
/* As text, and as steps for a person. */
mr_status outcome_keep_schedule(explorer *e, mr_explore_outcome *o, const branch *b, const plan *p);

/* ---- the two orders of a hazard: sides.c, witness.c */

/* Finds the two items of the requested pair in this branch. */
void sides_find(const explorer *e, branch *b);
#define SIDES_NONE UINT32_MAX
uint32_t sides_item(const branch *b, uint64_t seq); /* of that number; SIDES_NONE: it has none */
bool sides_is_at(const branch *b, uint32_t item, mr_site where);

/* Keeps the schedule, if it shows an order of the pair with fewer `overtaken` than so far. */
mr_status witness_look(explorer *e, const branch *b, const plan *schedule, uint32_t overtaken,
                       const mr_buffer *value, size_t text_size);

struct explorer {
    const mr_explore_subject *subject;
    mr_explore_options options;
    mr_explore_result *result;
    MR_MAP(size_t) places;   /* of outcomes, by a hash of the value */
    const mr_program *first; /* of the first run */
    uint64_t seed, draws;    /* of the machine, at the beginning */
    size_t branches;         /* that are open */
    bool stop;
    unsigned untried_lines;
    double deadline, looked; /* budget.c */
    bool is_late;            /* the deadline is over */
    uint64_t looks;
    size_t store_most; /* bytes for players and the run that was last; 0: no bound */
    size_t process_before,
        host_before;  /* bytes before the first run: of the process, of host tensors */
    bool no_room;     /* it was stopped by that */
    own_schedule own; /* of the first run */
    branch *root;
    struct search *innermost;
    struct sharing *share; /* the search is shared by processes, now (share.h); else NULL */
    unsigned shares;       /* times that workers have begun */
    double lent; /* seconds that workers have had beyond those of the thread of this process */
    size_t store_whole;  /* store_most, when it is not divided among processes */
    struct apart *apart; /* independent races are explored apart, now (apart.h); else NULL */
    /* of this pass: only schedules with so many pairs against the order of submission count; -1:
     * all */
    int overtaking;
    bool excluded; /* by that: there are schedules with more */
    /* of this pass: only schedules with so many choices of hosts that do not fall on the first count; -1: all */
    int deviations;
    bool deviates;    /* by that: there are schedules with more */
    bool one_order;   /* of hosts stands for all */
    bool eager;       /* plans are (steer.h) */
    bool estimating;  /* only the number of schedules is of interest */
    bool again;       /* schedules may have been counted: only a new outcome counts */
    bool by_priority; /* schedules are drawn by priority.c: run priority_run, from 1 on */
    uint64_t priority_run;
    double ends; /* of the whole budget */
    /* The deadline is earlier, for as long as there is one outcome (turns.c). */
    bool others_may_end;
    double reserved;                 /* seconds behind the deadline, which are for that */
    double began_thread, began_wall; /* by the clock of the thread, and of the wall */
    double tick, told;               /* when the clock was asked, and go_on was told */
    uint64_t random;                 /* state of the generator, for samples */
    double weight;                   /* of the sample: the product of the numbers of choices */
    mr_buffer value, texts;          /* kept for their memory */
    MR_VEC(const mr_command *) wanted;
    MR_VEC(mr_explore_race) races; /* of the first run, by what the checker said */
};

void outcome_free(const mr_explore_outcome *o); /* what it owns */
/* The first reason counts. */
void explore_incomplete(explorer *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline mr_site explore_shown(const explorer *e, mr_site where) {
    return e->subject->shown ? e->subject->shown(e->subject->context, where) : where;
}

#endif
