/* The parts of mr_waits_find, private to this folder:
 *     rounds.c    finds the waits of a program, and makes edits that leave some out
 *     judge.c     shows an edited program to the hazard checker
 *     beyond.c    what a wait orders beside the accesses to tensors
 *     looks.c     likewise: work, and calls that look at how far it is
 *     found.c     what a run of these two notes
 *     search.c    the smallest sufficient set, and which waits matter only together
 *     around.c    what comes before a wait, and after it
 *     explain.c   sentences
 *     records.c   which calls of record_stream are needed
 *     cost.c      what a wait costs, and what would cost less
 *
 * No command is carried out. A *teller* (`program/teller.c`) has a player's objects on a machine whose backend does
 * nothing. It calls the observers with the recorded commands, some left out or added (`mr_program_edit`). So a question
 * costs only the checker's time, some 50 ns for each command, and stops at the first new hazard.
 *
 * Answers are monotone. The judge counts accesses that have a hazard only without the dropped waits. Dropping more
 * waits can only add such accesses. The searches rest on that. A minimal set of waits that cannot all go (a *cut*) is
 * found by dividing (QuickXplain), and a smallest sufficient set is a smallest hitting set of the cuts. Only waits that
 * were submitted between two commands can order them, so a cut is looked for among these.
 *
 * Orders beside tensors. `waits/beyond.c` notes the orders of host functions, answers and atomic updates that the
 * program has with all waits, each in its weakest form. A run without some waits checks whether these still hold. A
 * lost one counts like a new hazard in the searches, so the answers stay monotone; only the verdict on the wait alone
 * tells them apart.
 *
 * Costs are plays. A player carries the edited program out without bodies (`mr_machine.skips_bodies`), from a mark in
 * front of the first change. A proposal is an edit, too, which adds records and waits; the checker judges it before
 * it is played. */
#ifndef MR_WAITS_PARTS_H
#define MR_WAITS_PARTS_H

#include "base/vec.h"
#include "waits/waits.h"
#include "hazard/hazard.h"
#include "order/order.h"

#define NO_ITEM SIZE_MAX

/* ---- rounds.c */

/* One execution of a wait. */
typedef struct {
    uint32_t wait;    /* index */
    uint32_t stream;  /* slot of the waiting stream; NONE: the host */
    uint32_t barrier; /* index of the barrier's execution to which it belongs; NONE: no barrier */
    size_t at;        /* the waiting item; for a barrier its first one */
    size_t record;    /* the record that it waits for; NO_ITEM: unknown */
    bool own_record;  /* the record is dropped with the wait */
} wait_round;

/* One execution of mr.barrier: its items, and its members' rounds. The first member waits for all others, then they for
 * it. */
typedef struct {
    size_t first, last;
    uint32_t first_round, members;
} barrier_round;

typedef struct {
    uint64_t seq;
    size_t item;
} numbered;

/* A call of elapsed_time, which needs a complete record; or a query of a record. */
typedef struct {
    size_t at, record;
} timed_record;

typedef struct {
    const mr_program *program;
    size_t items;
    MR_VEC(wait_round) rounds; /* in the order of `at`; those of a wait are not together */
    MR_VEC(barrier_round) barriers;
    MR_VEC(numbered) numbers;   /* ascending */
    MR_VEC(timed_record) times; /* in the order of `at` */
    MR_VEC(size_t) resets;      /* items: each drops work that the host has not waited for */
    MR_VEC(size_t) functions;   /* items: host functions, and launches that may print */
    /* queries that said yes, of a record or (NO_ITEM) of a stream */
    MR_VEC(timed_record) queries;
    uint64_t refusals;                /* queries that said no */
    size_t *first_round, *next_round; /* by wait; by round: of the same wait; NO_ITEM: no more */
    size_t waits;
} wait_rounds;

mr_status mr_waits_rounds(const mr_program *program, const mr_waits_options *options,
                          wait_rounds *out_rounds);
/* Whether the options include item `i` in the questions. */
bool mr_waits_is_judged(const mr_waits_options *options, size_t i);
void mr_waits_rounds_free(wait_rounds *rounds);
mr_site mr_waits_site(const wait_rounds *rounds, size_t wait);
mr_wait_kind mr_waits_kind(const wait_rounds *rounds, size_t wait);
size_t mr_waits_item_of(const wait_rounds *rounds, uint64_t seq); /* NO_ITEM: none */

mr_order_facts mr_waits_stream_facts(const mr_program *program, uint32_t stream);
/* Whether `stream` is a default stream whose commands come after the work of the other one (R3). */
bool mr_waits_gathers(const mr_program *program, uint32_t stream, uint32_t other);
/* What the host has waited for once it returns from this item, as devices do it; a query waits if it says yes. */
mr_place_set mr_waits_host_waits_for(const mr_program *program, const mr_program_item *it);
/* Whether such places of an item hold what the stream has by then. A record is asked for apart. */
bool mr_waits_is_within(const mr_program *program, mr_place_set places, const mr_program_item *it,
                        uint32_t stream);

/* An edit in the making, and the memory that it points to. */
typedef struct {
    mr_program_edit edit;
    bool *left_out;
    MR_VEC(mr_program_addition) added;
} wait_edit;

mr_status mr_waits_edit_open(const wait_rounds *rounds, wait_edit *out_edit);
void mr_waits_edit_free(wait_edit *edit);
/* Makes the edit without the `dropped` rounds; removes earlier additions. OUT_OF_MEMORY is the only failure. */
mr_status mr_waits_edit_drop(const wait_rounds *rounds, const bool *dropped, wait_edit *edit);
/* Adds one more addition, in the right order. */
mr_status mr_waits_edit_add(wait_edit *edit, mr_program_addition addition);

/* ---- judge.c */

/* A lost order between things that are not accesses to a tensor. The checker follows neither the data that a host
 * function shares with other code (for a launch that prints: the output), nor the host's use of an answer. So it is
 * unknown whether the loss matters. */
typedef enum {
    MR_LOST_NOTHING, /* it is a hazard */
    /* host function `first` may still run when the host gets to item `second` */
    MR_LOST_FUNCTION,
    MR_LOST_FUNCTIONS, /* the order of two host functions */
    MR_LOST_ANSWER,    /* query `second` may say no */
    MR_LOST_UPDATES,   /* the order of two atomic updates */
    /* then only a copy orders the two, and CUDA leaves open whether it waits (R23) */
    MR_LOST_COPY,
    MR_LOST_LOOK, /* `look` may come before the end of work `first` */
} lost_order;

/* A hazard that the program does not have with all waits, or an order that it has. */
typedef struct {
    lost_order lost;
    bool is_time;  /* elapsed_time is called for a record, item `first`, that may not be complete */
    bool is_reset; /* mr.reset, item `second`, may drop work */
    /* one of the two is a launch that is only assumed to touch the bytes */
    bool assumed;
    mr_hazard_kind kind;
    size_t first, second; /* items */
    uint64_t storage;     /* id */
    size_t look;          /* of the options' */
} new_hazard;

typedef struct {
    uint64_t seq, storage;
} judged_access;

/* Two host functions of two streams; the first comes before the second with all waits. By index. */
typedef struct {
    size_t first, second;
} function_pair;

/* With all waits, this work and earlier work of its stream are complete at the look. */
typedef struct {
    size_t look, work; /* item */
} look_order;

typedef struct {
    MR_VEC(look_order) orders; /* in the order of the looks */
    size_t look, order;        /* the next ones in a run */
    /* For the first run. By stream: the last work known to be complete, and the last one noted; by item: the next work
     * of its stream. Each plus 1; 0: none. */
    uint32_t *over, *noted, *first, *next;
} wait_looks;

/* The orders of host functions with all waits, and the progress of a run. */
typedef struct {
    uint32_t *lane_of; /* by stream; NONE: it has no host function */
    uint32_t *next;    /* by function: the next one of its stream, plus 1; 0: there is none */
    /* by lane and lane: the first function of the second lane that is not known to come before, plus 1 */
    uint32_t *known_to;
    /* by lane: the first function that the host does not know to have run, plus 1 */
    uint32_t *pending;
    size_t lanes;
    size_t *known_from; /* by function: the first item at which the host knows it to have run */
    MR_VEC(uint32_t) by_known;     /* functions that have such an item, in its order */
    MR_VEC(function_pair) pairs;   /* in the order of `second` */
    MR_VEC(judged_access) updates; /* sorted: unordered even with all waits */
    MR_VEC(judged_access) copies;  /* sorted: ordered only by a copy, even with all waits */
    bool *may_say_no;              /* by query: with all waits */
    size_t function, known, pair, query;
} wait_beyond;

typedef struct {
    const wait_rounds *rounds;
    mr_teller *teller;
    mr_hazard *hazard;
    const mr_waits_options *options;
    wait_edit edit;
    bool *dropped;    /* by round: dropped in this run */
    uint64_t told;    /* items, over all runs */
    mr_status status; /* the first failure of a run; owned */

    MR_VEC(judged_access) known; /* sorted: accesses that have a hazard with all waits */
    bool has_certain;            /* one of these hazards is certain, not only assumed */
    bool *late_times;            /* by rounds->times: possibly incomplete even with all waits */
    bool learning;
    wait_beyond beyond;
    wait_looks looks;
    mr_claims claims; /* what the checker did not follow, with all waits */
    /* Communicators with unordered collectives on a device (R64a): the most of all runs. */
    uint64_t room;
    /* If set, a lost order is only noted in `lost`, and does not count as a break. */
    bool only_hazards;
    new_hazard lost; /* the first one of the last run, with `only_hazards` */

    /* of a run */
    bool stop, stop_at_first;
    uint64_t spread;
    size_t time, reset;
    MR_VEC(new_hazard) found;
    size_t next_round; /* the next round of this run */
    bool *adds; /* by wait: a dropped round of it would have ordered more; NULL: not asked for */
    /* by wait: with all waits, some round of it may add to the order */
    bool *may_add;
    bool adds_nothing; /* first run: the next round is known to add nothing */
} wait_judge;

mr_status mr_waits_judge_open(const wait_rounds *rounds, const mr_waits_options *options,
                              wait_judge *out_judge);
void mr_waits_judge_close(wait_judge *judge);
/* Sets `dropped` to exactly the rounds of the waits that are not kept (by wait). */
void mr_waits_judge_keep(wait_judge *judge, const bool *kept);
void mr_waits_judge_drop_wait(wait_judge *judge, size_t wait);
void mr_waits_judge_drop_round(wait_judge *judge, size_t round);
/* Whether the first run already shows that the wait alone orders nothing. */
bool mr_waits_judge_adds_nothing(const wait_judge *judge, size_t wait);
/* Whether the program without the dropped rounds has a new hazard; the first one is in `found`. After a failure
 * judge->status is set, and the answer means nothing. */
bool mr_waits_judge_breaks(wait_judge *judge);
/* Judges the program with judge->edit as it is; all new hazards are then in `found`. */
bool mr_waits_judge_edit(wait_judge *judge, bool stop_at_first);
/* The chain by which item `first` comes before `second` without the dropped rounds. False: there is none. */
bool mr_waits_judge_chain(wait_judge *judge, size_t first, size_t second, mr_buffer *out);

/* ---- found.c */

void mr_waits_judge_add(wait_judge *judge, new_hazard h);
void mr_waits_judge_no_memory(wait_judge *judge); /* for the orders of beyond.c and looks.c */
/* Whether the wait has no effect besides its order: its streams take no part in the default stream's barrier. */
bool mr_waits_only_orders(const wait_rounds *rounds, size_t wait);
bool mr_waits_judge_ordered(const wait_judge *judge, uint32_t first, uint64_t seq, uint32_t second);
int mr_waits_compare_accesses(const void *a, const void *b); /* judged_access */

/* ---- beyond.c */

mr_status mr_waits_beyond_open(wait_judge *judge);
void mr_waits_beyond_close(wait_judge *judge);
void mr_waits_beyond_rewind(wait_judge *judge);
/* Called before item i; i = the count of items: the end. */
void mr_waits_beyond_next(wait_judge *judge, size_t i);
/* The index after which no code of the script runs. */
size_t mr_waits_end_of_code(const wait_judge *judge);
void mr_waits_beyond_updated(wait_judge *judge, judged_access access, uint64_t first_seq);
void mr_waits_beyond_copied(wait_judge *judge, judged_access access, uint64_t first_seq);
mr_status mr_waits_beyond_learnt(wait_judge *judge);
/* The number of queries, with all waits, whose answers may decide what the script does; likewise host functions. */
uint64_t mr_waits_beyond_open_answers(const wait_judge *judge);
uint64_t mr_waits_beyond_open_functions(const wait_judge *judge);

/* ---- looks.c */

mr_status mr_waits_looks_open(wait_judge *judge);
void mr_waits_looks_close(wait_judge *judge);
void mr_waits_looks_rewind(wait_judge *judge);
void mr_waits_looks_next(wait_judge *judge, size_t i); /* as mr_waits_beyond_next */

/* ---- search.c */

/* A set of waits. None of them is needed alone, but they cannot all go. */
typedef struct {
    uint32_t *waits;
    size_t count;
    bool is_asked, breaks; /* without them: for the sentences about them */
    new_hazard why;
} wait_cut;

typedef struct {
    bool *needed;  /* by wait: needed alone, or unknown whether it is */
    bool *kept;    /* the sufficient set */
    bool *matters; /* not needed alone, but it cannot be dropped together with some others */
    bool exact;
    MR_VEC(wait_cut) cuts; /* the minimal cuts found so far */
} wait_search;

mr_status mr_waits_search(wait_judge *judge, uint64_t effort, wait_search *io_search);
/* The smallest known cut that has the wait; NULL: none. */
wait_cut *mr_waits_cut_of(const wait_search *search, size_t wait);
void mr_waits_search_free(wait_search *search);

/* ---- around.c */

/* An operation behind the wait and one before it that have data in common. It is the first such pair of two streams, or
 * else one of the same stream, which needs no wait. */
typedef struct {
    size_t first, second;
    bool is_found, same_stream;
    bool is_complete; /* all were compared */
} wait_pair;

/* Items of the work and the allocations that the round may wait for, also through other streams: newest first. Those of
 * the stream that waits are asked for apart (`own`). */
size_t mr_waits_before(const wait_judge *judge, const wait_round *r, bool own, size_t *out,
                       size_t most);
/* The work, accesses of the host and frees that the round may hold up, also through other streams: oldest first. */
size_t mr_waits_after(const wait_judge *judge, const wait_round *r, size_t *out, size_t most);
wait_pair mr_waits_pair(const wait_judge *judge, const wait_round *r);
/* Whether the host reads a time, by elapsed_time or mr.clock(), that the round may change. */
bool mr_waits_is_measured(const wait_judge *judge, const wait_round *r);

/* ---- explain.c */

void mr_waits_say_hazard(const wait_judge *judge, const new_hazard *h, mr_site beside,
                         mr_buffer *out);
/* "stream `copy`", "the default stream", "the host" for NONE. */
void mr_waits_say_stream(const wait_judge *judge, uint32_t stream, mr_buffer *out);
/* "`x`", by the slot of the storage. */
void mr_waits_say_storage(const wait_judge *judge, uint32_t storage, mr_buffer *out);
/* Says why the wait can be removed; uses `judge`. `adds`: it adds to the order of the rest. */
void mr_waits_say_redundant(wait_judge *judge, size_t wait, bool adds, bool with_chain,
                            mr_buffer *out);

/* ---- records.c */

/* Judges the calls of record_stream with the kept waits (`kept`: by wait). `of`: the waits, for their lines. */
mr_status mr_waits_judge_records(wait_judge *judge, const bool *kept, const mr_waits *of,
                                 mr_waits_records *out_calls);
void mr_waits_records_free(mr_waits_records *calls);

/* ---- cost.c */

/* The costs of waits in the program with only some of its waits. */
typedef struct {
    wait_judge *judge;
    const mr_waits_options *options;
    const bool *kept;  /* by wait: those that the program has; NULL: all */
    wait_edit base;    /* leaves out the others */
    mr_player *player; /* at the first round of the wait at hand */
    uint64_t played;   /* items */
    bool has_reset;    /* the program */
    double start_ms, makespan_ms;
} wait_costs;

/* *out_reason: why costs cannot be predicted, static; NULL: they can. `kept` is borrowed. */
mr_status mr_waits_costs_open(wait_judge *judge, const mr_waits_options *options, const bool *kept,
                              wait_costs *out_costs, const char **out_reason);
void mr_waits_costs_close(wait_costs *costs);
/* Call it for waits in ascending order. *out_known false: without the wait the program fails. */
mr_status mr_waits_cost_of(wait_costs *costs, size_t wait, bool *out_known, double *out_ms);
/* Writes a cheaper, checked replacement for a needed wait; writes nothing if there is none. */
mr_status mr_waits_instead(wait_costs *costs, size_t wait, double costs_ms, mr_buffer *out);

#endif
