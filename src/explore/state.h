/* The inside of an exploration, private to this folder.
 *
 * A branch is one program that the function came to, with the player that carries it out and the order of its nodes.
 * The branches are a tree: a child is the function's program if an item has another result than in its parent. A search
 * goes through the schedules of one branch that begin in a given way.
 *
 *     mr.explore(fn)
 *        |  bind/explore/explore.c        calls the function protected; turns its result into bytes
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
 * Looks. The host looks at the device by a wait, an access or a query. Up to the next look all decisions are made on
 * bits. Then exactly the work before the look is carried out. If the host finds another value than was recorded, the
 * rest of the program is no longer valid. Then the function is called again, forced into the schedule so far, and its
 * new program is a child of the old one. Children differ by the value. So the function runs once for each history of
 * values.
 *
 * Ordinals. A plan says which command is carried out while the host is at which item. Items for the release of an
 * object are not counted. They come when its last reference goes, which depends on the schedule, because pending
 * commands hold references.
 *
 * What an allocation misses. Whether it may miss complete frees depends on the rules alone, not on the schedule. So
 * `branch.c` goes through the order once without a decision, and notes the answer for each allocation. The search then
 * has one more place for it (`place.c`), and an answer in the plan tells the pool not to look.
 *
 * Two judges. `tests/c/test_explore_differential.c` goes through every interleaving of random programs. It compares
 * the number of classes and of outcomes, and checks that there is a hazard exactly where there is more than one
 * class. It takes the order from the simple checker of the hazard tests. */
#ifndef MR_EXPLORE_STATE_H
#define MR_EXPLORE_STATE_H

#include "base/map.h"
#include "explore/explore.h"
#include "explore/order.h"
#include "explore/ready.h"
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

/* Host functions may change variables, and so the value. So the value is known only for this order of host functions,
 * and for these positions between the host's calls. */
typedef MR_VEC(plan_step) function_order;
typedef struct {
    function_order order;
    mr_buffer text;
} variant;

/* The item at which a child differs from its parent, and how. */
typedef struct {
    uint32_t item;
    mr_difference_kind kind;
    uint64_t value;
    /* a hash of the set of host functions that have run by then: the child has the values that these have read */
    uint64_t functions;
    /* If another host goes on: the number of the choice of hosts, from 1, and that host; 0: no choice of hosts */
    uint32_t turn, who;
} branch_key;

/* A schedule that a run of the function took by itself, and the bytes of its value. */
typedef struct {
    plan plan;
    mr_buffer value;
    size_t text_size;
} own_schedule;

/* Texts of an item, each NULL until it is first needed; owned. */
typedef struct {
    char *command, *timed; /* "`sum` (a.lua:7)", and which of several it is */
    char *step;            /* a line of `steps` */
} told_item;

/* What the hazard checker says of a program, without carrying it out (proof.c). */
typedef struct {
    bool is_known; /* the checker has been asked */
    bool pair;     /* there are accesses that nothing orders, or atomic updates */
    bool lifetime; /* one of such a pair is the allocation or the free of the memory */
    mr_claims claims;
} program_verdict;

typedef struct branch branch;
#define MOST_DEVICES 64

struct branch {
    mr_program *program;
    uint64_t in_use[MOST_DEVICES]; /* bytes, when its run began (room.c) */
    mr_player *player;             /* NULL: taken back, see budget.c */
    steer_player *steer;           /* the player's machine owns it */
    mr_program_edit edit;          /* what the player leaves out, for slice.c */
    mr_player_mark *start;
    order order;
    uint8_t *classes; /* item_class, by item */
    bool *may_miss;   /* by item: as order_may_miss says, by the rules alone */
    /* by item: the first one from there on at which the host looks; count: none */
    uint32_t *breaks_at;
    uint64_t *conflicts; /* by node: the earlier nodes that touch the same bytes */
    bool *known;         /* by node: that row is filled in */
    ready_nodes ready;   /* for search_plan_needed */
    told_item *told;     /* by item (tell.c); NULL: none is kept */
    uint32_t count;      /* items */
    /* For priority.c; NULL before its first use. By node: the nodes before it by the rules, and when it runs. */
    uint64_t *ruled;
    uint32_t *moments;
    /* of the text of the value; the first one is of the branch's own run */
    MR_VEC(variant) variants;
    MR_VEC(value_part) parts;
    bool has_functions;
    /* host functions write memory; the program has the bytes of its own run */
    bool functions_write;
    bool strayed; /* of its run */
    bool stages;  /* as in the result */
    /* the player goes back by starting again: marks would take too much memory */
    bool without_marks;
    program_verdict verdict;
    bool clean; /* no value depends on which memory an allocation gets: proof.c */
    size_t fixed_bytes,
        host_bytes; /* what it takes beside its player, and the player's host memory */
    /* items of the pair whose two orders are to be shown; UINT32_MAX: not known */
    uint32_t sides[2];

    host_turns turns;     /* where several hosts could go on, in the order of the run */
    task_queries queries; /* of tasks, likewise */
    branch_key key;       /* which result of the parent's item leads here */
    MR_VEC(branch *) children;

    /* A leaf: after item key.item nothing depends on the order, so its own run is its only schedule. It has neither
     * player nor order. */
    bool leaf;
    /* A leaf whose host reads more after that item: another schedule with the same key may have changed those bytes. So
     * it stands for one schedule only. */
    bool reads_more;
    own_schedule own;
    size_t forced; /* steps of `own` that were its parent's */
    enum { NOT_COMPARED, LIKE_ROOT, UNLIKE_ROOT } likeness; /* for apart.c */
    const branch *before; /* the parent, which has the order of the decisions so far */
};

typedef struct explorer explorer;

/* Runs and records the function, forced into the plan. The branch cannot be searched yet. `out_own` may be NULL. */
mr_status branch_record(explorer *e, const plan *forced, own_schedule *out_own,
                        branch **out_branch);
/* Makes the player that carries the program out, and the facts about its items. Then branch_order, before it is
 * searched. */
mr_status branch_open(explorer *e, branch *b);
mr_status branch_order(explorer *e, branch *b);
mr_status branch_prepare(explorer *e, branch *b); /* both */
/* Frees its player, or makes it again, at the beginning of the program. */
void branch_close_player(branch *b);
mr_status branch_open_player(explorer *e, branch *b);
mr_status branch_go_to_start(explorer *e, branch *b); /* also where there is no player yet */
/* Runs the function without recording a branch. *out_followed: it submitted everything that the plan carries out. */
mr_status branch_follow(const mr_explore_subject *subject, const plan *forced,
                        mr_explore_value *out_value, bool *out_followed);
/* Schedules are planned as a whole, but from the next start on the player does not carry these items out; NULL: it
 * carries all out. By item, borrowed. */
void branch_leave_out(branch *b, const bool *left_out);
static inline bool branch_leaves_out(const branch *b, uint32_t item) {
    return b->edit.left_out && b->edit.left_out[item];
}
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
/* Fills the conflict rows of all nodes of items [first, last], whose storages exist by now. */
void branch_find_conflicts(branch *b, size_t first, size_t last);
/* Whether two nodes, the earlier one first, touch the same bytes, one of them writing. Their storages are there. */
bool branch_conflict(const branch *b, uint32_t early, uint32_t late);
/* Whether mixing the parts of two conflicting nodes could change the result. It can if they share more than one
 * element, or if one of them updates memory that the other one writes. */
bool branch_may_mix(const branch *b, uint32_t early, uint32_t late);
/* Whether a node touches memory, so that it can be in pairs. The host's own node of a copy is its read of the source,
 * if it reads it; `asked`: as for order_copy_of. */
bool branch_takes_part(const branch *b, uint32_t node, bool asked);
/* Writes the current bytes of the value, after this schedule, to `out`. Runs the function again if its host functions
 * ran in a new order. */
mr_status branch_value(explorer *e, branch *b, const plan *schedule, mr_buffer *out,
                       size_t *out_text_size);

/* ---- whether memory is short: room.c */

void room_begin(const mr_machine *machine, branch *b); /* its run begins */
/* Marks the result as not complete if the order may decide whether an allocation of the run fails. */
void room_judge(explorer *e, const branch *b);

/* ---- what needs no search: proof.c */

/* Whether one schedule of the program stands for all. Then the hazard checker followed all of it and finds no hazard,
 * and nothing observes the order. Reads only the program: the branch needs no player. */
mr_status proof_of_one(const explorer *e, branch *b, bool *out_proved);
/* Whether items can depend on the order only by the bytes that they touch. */
bool proof_of_items(const explorer *e, const branch *b);
/* Whether it is known what each command touches. */
mr_status proof_of_accesses(branch *b, bool *out_known);
/* Whether all memory is written as a whole by the first command that was submitted to touch it. */
mr_status proof_of_first_writes(const branch *b, bool *out_all);
/* Whether the hazard checker, which treats each rank as a host of its own, finds no hazard in the last run, and nothing
 * observes the order. Then all orders of the work lead to the same values, in any order of the ranks. */
bool proof_of_ranks(const explorer *e);
/* Whether nothing after item `last` depends on the order, if the host has waited for everything before it. Then there
 * is only one continuation. */
bool proof_of_rest(const explorer *e, const branch *b, uint32_t last);
/* The host reads memory behind item `last`. */
bool proof_reads_more(const branch *b, uint32_t last);
/* Whether no value of the program depends on which memory an allocation gets. The order is that of the rules alone, and
 * all nodes are placed. */
mr_status proof_of_memory(branch *b, bool *out_clean);

/* ---- by_rules.c */

/* Places the item's nodes in the order, and updates the sets after them, without a decision. `said_yes`: the answer of
 * a query. Call it for each item in turn, from an empty order on. */
void rules_place(branch *b, uint32_t i, bool said_yes);
/* Marks the result as not complete if the virtual GPU orders a race of the first run (this branch), because it waits
 * for more than CUDA guarantees. */
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
/* The chance that at least one of the runs had a schedule with two given orders. */
double priority_chance(const mr_explore_result *r);

/* ---- the budget: budget.c */

/* Seconds used so far: of processor time, or of wall-clock time if that is far longer (BUDGET_PATIENCE). */
double budget_now(const explorer *e);
void budget_begin_clock(explorer *e);
/* The search, or a part of it, has so many seconds; 0: all that it needs. */
void budget_end_at(explorer *e, double seconds_from_now);
/* Called when a schedule was counted. If there is now a second outcome, a search that was to end early gets the whole
 * budget. */
void budget_note_outcomes(explorer *e);
/* mr_machine.interrupted of players, for an explorer. */
bool budget_interrupts(void *context);
/* Called after an interruption. True: the clock caused it; the search is then stopped, and the result says so. */
bool budget_takes_interruption(explorer *e);
/* Call this often: it sets e->stop. Cheap. */
void budget_look_at_clock(explorer *e);
/* The same, but may free players and marks: for the loop of a search, at a point where no player is in use. */
void budget_look(explorer *e);
/* Takes memory back until there is room for so many bytes more. If there is none for what the innermost search needs
 * itself, the search is stopped; if there is none for more, the innermost search lets go of its player. */
void budget_make_room(explorer *e, size_t more);
/* Frees all branches below this one that no search is using. */
void budget_drop_children(explorer *e, branch *b);
/* If there is no room, the memory left by the last run is freed first. */
bool budget_has_room(explorer *e, size_t more);
/* Frees memory that is kept for the next run, until there is room for so many bytes more. */
void budget_trim_spares(explorer *e, size_t more);
size_t budget_of_player(const explorer *e, const branch *b); /* what one takes, about */
void budget_begin(explorer *e);                              /* before the first run */
void budget_measure(explorer *e);                            /* after it */
/* Divides the rest of the memory among this process and at most `others` more. Returns how many more there is room
 * for. */
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
    uint32_t deviations;        /* earlier choices of hosts that were not the first host */
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

/* Searches all schedules of `b` that begin with the journey, in the state `from` (NULL: from the beginning). */
mr_status search_branch(explorer *e, branch *b, const journey *begin, const order *from,
                        unsigned depth);

/* ---- choices of hosts: turns.c */

static inline bool turns_are_open(const branch *b) { /* several hosts could go on */
    return b->turns.count > 0;
}
/* After the first run: whether one order of its hosts stands for all, or which ones do. */
void turns_judge(explorer *e);
/* After the search: checks that the function always continued in one way, as one_order had assumed. */
void turns_check_one(explorer *e);
/* Searches all orders of the hosts, or as many as the budget permits. Orders with the fewest deviations from the usual
 * one come first. */
mr_status turns_search(explorer *e, branch *b);
/* The same without a search, if one schedule of the device stands for all in each order of the hosts. *out_searched: it
 * did in each order that there was time for; false: there is no result. */
mr_status turns_of_proved(explorer *e, bool *out_searched);

/* ---- outcomes: outcome.c */

/* One more schedule came to this value, with so many pairs against the order of submission. */
mr_status outcome_count(explorer *e, const branch *b, const plan *schedule, uint32_t overtaken,
                        const mr_buffer *value, size_t text_size);
typedef struct {
    size_t index;     /* of the result's outcomes */
    bool is_simplest; /* of the schedules so far that lead there */
} outcome_met;
/* The same, and returns which outcome it is, unless it stops the search. */
mr_status outcome_meet(explorer *e, const branch *b, const plan *schedule, uint32_t overtaken,
                       const mr_buffer *value, size_t text_size, outcome_met *out_met);
void outcome_forget_all(explorer *e);
/* Classes that a worker has counted for an outcome. They come after all classes counted so far. */
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
        host_before;            /* bytes before the first run: of the process, of host tensors */
    bool no_room;               /* the search was stopped for lack of memory */
    size_t outcome_bytes;       /* of values and texts of all outcomes */
    own_schedule own;           /* of the first run */
    double first_run, last_run; /* seconds that they have taken */
    branch *root;
    struct search *innermost;
    struct sharing *share; /* the search is shared by processes, now (share.h); else NULL */
    unsigned shares;       /* times that workers have begun */
    double lent;           /* processor seconds of workers beyond those of this process's thread */
    size_t store_whole;    /* store_most, when it is not divided among processes */
    struct apart *apart;   /* independent races are explored apart, now (apart.h); else NULL */
    /* bound of this pass: the pairs that may run against the order of submission; -1: any number */
    int overtaking;
    bool excluded; /* the bound on pairs excluded schedules */
    /* bound of this pass: the choices of hosts that may deviate from the first host; -1: any number */
    int deviations;
    bool deviates;    /* the bound on choices of hosts excluded schedules */
    bool one_order;   /* one order of the hosts stands for all */
    bool eager;       /* plans are eager (steer.h) */
    bool estimating;  /* only the number of schedules is of interest */
    bool again;       /* schedules may have been counted: only a new outcome counts */
    bool by_priority; /* schedules are drawn by priority.c: run priority_run, from 1 on */
    uint64_t priority_run;
    double ends; /* of the whole budget */
    /* While there is only one outcome, the deadline is earlier (turns.c). */
    bool others_may_end;
    double reserved;                 /* seconds after the deadline that are kept for other orders */
    double began_thread, began_wall; /* by the clock of the thread, and of the wall */
    double share_told;               /* of the tree, so far */
    double tick, told;               /* when the clock was asked, and go_on was told */
    uint64_t random;                 /* state of the generator, for samples */
    double weight;                   /* of the sample: the product of the numbers of choices */
    mr_buffer value, texts;          /* kept for their memory */
    MR_VEC(const mr_command *) wanted;
    MR_VEC(mr_explore_race) races; /* of the first run, by what the checker said */
};

/* The first reason counts. */
void explore_incomplete(explorer *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline mr_site explore_shown(const explorer *e, mr_site where) {
    return e->subject->shown ? e->subject->shown(e->subject->context, where) : where;
}

#endif
