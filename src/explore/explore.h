/* Every schedule of a function: runs it under each allowed order that can make a difference, and reports each outcome.
 *
 * The function runs once, on the caller's machine, and is recorded (program/program.h). Its schedules are then carried
 * out on a machine of a player, without the function. Only where the host reads another value, or a query gets another
 * answer, than was recorded, the function runs again: it may then submit other commands. That run is forced into the
 * schedule so far, and its program from there on is explored like the first one.
 *
 * Two schedules are equivalent if they carry out each pair of commands that touch the same bytes, one of them writing,
 * in the same order. The commands that nothing orders and that touch the same bytes are therefore pairs to be decided.
 * A class of equivalent schedules is a choice for each pair, without a cycle. Every choice so far can be completed, so
 * the search orients one pair after the other, closes transitively, and carries out one schedule of each class.
 *
 * The flow of data: run() -> program -> order (order.h: who must come before whom) and pairs -> search (search.c) ->
 * the commands in order -> player -> bytes of the value -> outcomes. */
#ifndef MR_EXPLORE_EXPLORE_H
#define MR_EXPLORE_EXPLORE_H

#include "base/buffer.h"
#include "base/vec.h"
#include "hazard/hazard.h"
#include "model/command.h"
#include "model/tensor.h"

/* The result of a run of the function: its text as bytes, and tensors whose values are not in the text. Two outcomes
 * are equal if the texts and the tensors' bytes are equal. */
typedef struct {
    mr_buffer text;
    MR_VEC(mr_tensor *) tensors; /* one reference each */
} mr_explore_value;

void mr_explore_value_free(mr_explore_value *value); /* leaves it empty */

typedef struct {
    uint64_t schedules, outcomes, runs; /* so far; runs: of the function itself */
    double seconds;
    /* of the tree of choices that is done, 0 to 1: an estimate, which never goes back */
    double share;
    double left; /* seconds of the budget; < 0: there is no bound */
} mr_explore_progress;

/* Two accesses of the first run that nothing orders, by the numbers of their commands (mr_command.seq). */
typedef struct {
    uint64_t first, second;
} mr_explore_race;

typedef struct {
    void *context;
    mr_machine *machine;
    /* Optional, before each run: restores the state outside the function, as it was before the first run. */
    mr_status (*begin)(void *context);
    /* Calls the function, from its beginning. An error that the function raises is a value. At its end it waits for all
     * devices (mr_device_drain); an error of that is a value, too. An error here ends the exploration. */
    mr_status (*run)(void *context, mr_explore_value *out_value);
    /* Optional, between two runs: frees the remains of the last run, such as a script's garbage. */
    void (*let_go)(void *context);
    /* Optional; about ten times a second. False: stop now. */
    bool (*go_on)(void *context, const mr_explore_progress *progress);
    /* Optional: from now on a run of the function is ended, with the status INTERRUPTED, when the thread has worked so
     * many seconds, or worked and waited so many. 0: no run is ended, and an end that has already been noted is
     * cancelled. */
    void (*end_runs_after)(void *context, double worked, double waited);
    /* Optional: where the function was when a run was ended so, as "race.lua:12"; "": nothing is known. */
    const char *(*stopped_at)(void *context);
    /* Optional: the name of a place in texts for the user. */
    mr_site (*shown)(void *context, mr_site where);
    /* Optional, after the first run: what the hazard checker said of it; NULL: it did not look. */
    const mr_hazard_totals *(*verdict)(void *context);
    /* Optional, after the first run: the races that the checker has reported, one for each pair of places. */
    size_t (*races)(void *context, const mr_explore_race **out_races);
    /* Optional, after the first run: true if the run used no source of difference, such as a clock. Then a function
     * whose one schedule stands for all is called only once. */
    bool (*seems_repeatable)(void *context);
    /* Optional, after the first run: whether its ranks share no changed data except the data of collectives. If one
     * schedule stands for all of each rank, then one order of the ranks stands for all, too. */
    bool (*hosts_are_apart)(void *context);
} mr_explore_subject;

/* An access of a hazard: the command of this number, if a run has it at this line. Otherwise the first command at
 * the line in a stream of this name. */
typedef struct {
    mr_site where;
    const char *stream; /* NULL: any */
    uint64_t number;    /* of the function's commands, from 1 on; 0: not known */
} mr_explore_side;

typedef struct {
    uint64_t most; /* schedules; 0: 1,000,000 */
    /* The most processor time (budget.c); 0: as long as it takes. The first run of the function is not ended by it. */
    double seconds;
    uint64_t memory; /* limit for the bytes of the process, if the function leaves some; 0: none */
    /* The most pairs that run against the order of submission; schedules with the fewest come first. -1: no bound. */
    int overtaking;
    uint32_t grain;   /* parts of a command that others can come between; 0, 1: it is whole */
    unsigned polls;   /* how often in a row a query of one line says no; 0: 2 */
    unsigned workers; /* processes that share the search (share.h); 0: one a core; 1: none */
    /* For tests; > 0: they share it from its beginning, by subtrees of this depth - 1. */
    unsigned shared_depth;
    bool forgetful; /* for tests: nothing is kept that can be made again, as if memory were short */
    bool full;      /* search even where a proof shows that one schedule stands for all */
    bool unspecified; /* also what CUDA leaves open besides the order (mr_open_choice) */
    /* the hazard whose two orders are wanted; `where` without file: none */
    mr_explore_side pair[2];
    uint64_t samples; /* > 0: so many schedules at random instead of all */
    uint64_t seed;
} mr_explore_options;

typedef struct {
    char *value; /* the text, and behind it the tensors' bytes; owned, like all texts here */
    size_t size;
    size_t text_size;
    uint64_t count; /* classes of schedules that lead to it; or samples */
    char *schedule; /* the simplest of them: what mr_explore_replay takes */
    char *steps;    /* the same for a person: a line a step */
    /* what in it is not as submitted: a line each; "" */
    char *difference;
    uint32_t overtaken; /* pairs against the order of submission */
    uint32_t switches, length;
} mr_explore_outcome;

void mr_explore_outcome_free(mr_explore_outcome *o); /* its value and texts, which are NULL then */

/* Races that are free of all others: see `combined`. */
typedef struct {
    uint64_t races;               /* pairs */
    uint64_t schedules, outcomes; /* while all others ran as submitted */
} mr_explore_group;

typedef struct {
    uint32_t groups, tried;
    uint64_t races; /* of all groups */
    bool reads;     /* the host reads what depends on them */
} mr_explore_alone;

/* A run of the function that was stopped, and had taken much longer than the first one. */
typedef struct {
    char where[128];       /* it was there then: "race.lua:12", or "" */
    double seconds, first; /* it and the first run had taken; 0: there is none */
    char *difference;      /* of the schedule by then, as in an outcome */
} mr_explore_unended;

typedef struct {
    uint64_t schedules; /* carried out: one of each class */
    uint64_t runs;      /* of the function */
    uint64_t pairs;     /* pairs that nothing orders, in the first schedule, on the same bytes */
    bool complete;
    /* stopped by go_on, or in a wait for a device; the result has what was found until then */
    bool interrupted;
    char incomplete[240]; /* why not, as a sentence; "" */
    /* The choices that were not yet tried when the search stopped, one a line: "`sum` (a.lua:7) before `fill_`
     * (a.lua:5)". */
    mr_buffer untried;
    uint64_t untried_count; /* also of those that are not in the text */
    /* Proved; a second call was needed to check that the function is repeatable, but there was no time for it. */
    bool called_once;
    /* Operations that race could mix in parts, which another number of parts (options.grain) would show. */
    bool may_mix;
    /* A racing operation may read unwritten memory: its values are not explored. */
    bool reads_fresh;
    /* The function has copied from pageable memory asynchronously, which reads it at once (R23). */
    bool stages;
    /* Where several hosts could go on, as ranks: every order of them was followed, or they are apart. Otherwise one
     * order of them is complete. */
    bool all_turns;
    bool proved; /* its one schedule stands for all: nothing in it depends on the order */
    bool unseen; /* nothing that is read or returned depends on the races (apart_prove_unseen) */
    /* Not all schedules were tried, but by that proof the others have the same outcome. */
    bool settled;
    double estimate; /* of the number of classes; 0: not estimated */
    /* After the time was over: the number of schedules drawn by priorities (priority.c). `schedules` counts only those
     * with a new outcome. */
    uint64_t by_priority;
    uint32_t threads, steps;  /* of the largest program among them */
    bool by_priority_inexact; /* a program was too large for them */
    /* Where independent races were explored apart: their groups. Each combination of what they come to is an outcome:
     * so many, from so many classes. Where these are too many to be listed, `outcomes` has those in which at most one
     * group is not as submitted. Otherwise no group, and 0. */
    MR_VEC(mr_explore_group) groups;
    double combined, classes;
    /* Where the time was over: independent groups of races, and how many of them were tried alone, the others as
     * submitted. Their outcomes are among the others. */
    mr_explore_alone alone;
    mr_explore_unended unended; /* the one that took longest */
    /* the chance that they would have met an outcome that needs two given orders; 0: unknown */
    double chance;
    double seconds;
    /* For `pair`: the outcome of a schedule in which the first goes before the second, and the
     * other way round. Each has the fewest pairs against the order of submission. `schedule`
     * NULL: there is none. */
    mr_explore_outcome witness[2];
    MR_VEC(mr_explore_outcome) outcomes; /* in the order in which they were met */
} mr_explore_result;

/* The reason why an explored function may not submit this command: "mr.reset(): what was before it is gone". NULL: it
 * may. The search ends with an error if it meets such a command. A caller that knows it before should refuse the call,
 * before anything has happened. */
const char *mr_explore_refusal(mr_command_id kind);

/* All devices of the machine are idle when it is called, and afterwards. The chooser of the machine is put back. A
 * function that is not repeatable is an error, with the first difference. *out_result is to be freed, also after an
 * error. NOT_SUPPORTED: the machine cannot be steered. */
mr_status mr_explore(const mr_explore_subject *subject, const mr_explore_options *options,
                     mr_explore_result *out_result);
void mr_explore_result_free(mr_explore_result *result);

/* Runs the function once under a schedule of an outcome. *out_followed: the function asked for what the schedule
 * says. */
mr_status mr_explore_replay(const mr_explore_subject *subject, const char *schedule,
                            mr_explore_value *out_value, bool *out_followed);

#endif
