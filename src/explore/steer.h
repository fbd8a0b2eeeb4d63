/* Choosers that follow instructions. One is for a player, and gets a list of commands to carry out. The other is for a
 * run of the function itself: it follows a plan, and after the plan's end makes fixed choices. */
#ifndef MR_EXPLORE_STEER_H
#define MR_EXPLORE_STEER_H

#include "base/vec.h"
#include "model/chooser.h"
#include "model/hosts.h"
#include "model/observer.h"
#include "program/program.h"

/* ---- plans: a schedule as numbers */

/* One part of the command that item `command` submitted is carried out while the host is at item `at`. The part runs
 * before the host carries out the item, or inside it, if the item waits. */
typedef struct {
    uint32_t at, command;
} plan_step;

#define PLAN_NO_ITEM UINT32_MAX

/* An answer to a question that CUDA leaves open, at item `at`. A query is answered no because the record, wait or free
 * of item `behind` comes after it; PLAN_NO_ITEM: it is not such an answer. */
typedef struct {
    uint32_t at;
    bool yes;
    uint32_t behind;
} plan_answer;

/* At this choice of hosts (numbered from 0), the host of index `who` goes on, not the first one (mr_host_choice).
 * Numbers increase; at choices without an entry the first host goes on. */
typedef struct {
    uint32_t number, who;
} plan_turn;

typedef struct {
    MR_VEC(plan_step) steps;
    MR_VEC(plan_answer) answers;
    MR_VEC(plan_turn) turns;
    /* A host that waits first lets all hosts continue that need not wait; then the choice is among waiting hosts. So
     * all possible work is submitted before a wait ends. */
    bool eager;
    uint32_t until; /* the plan is complete for the items before this one */
    uint32_t grain;
} plan;

void plan_free(plan *p);
bool plan_copy(plan *to, const plan *from); /* false: no memory */
/* "mr1 g2 t0 =1 -7 ^6 @4 2 1 @7 3 .9", and back; false: it is not such a text. */
void plan_write(const plan *p, mr_buffer *out);
bool plan_read(plan *out, const char *text);

/* ---- for a player */

typedef struct {
    mr_chooser base;
    MR_VEC(mr_device_step) offers;
    const mr_command *const *wanted; /* these, in this order */
    size_t wanted_count, next;
    bool answer, answered; /* the answer for `decide`; whether it was asked */
    /* For an unexpected wait: takes the oldest offer that is allowed, and notes it. */
    bool (*allowed)(void *context, const mr_command *command);
    void (*went)(void *context, const mr_command *command);
    void *context;
} steer_player;

mr_status steer_player_create(uint32_t grain, steer_player **out_steer);

/* ---- for a run of the function */

/* A choice of hosts, made while item `at` was the next one. */
typedef struct {
    uint32_t at;
    mr_host_choice choice;
} host_turn;
typedef MR_VEC(host_turn) host_turns;

/* The query of item `at` is that of a task that waits. */
typedef struct {
    uint32_t at;
    mr_host_ask ask;
} task_query;
typedef MR_VEC(task_query) task_queries;

/* NULL: the item is not a query, or is the script's own. */
const mr_host_ask *steer_ask_at(const task_queries *queries, uint32_t item);

typedef struct {
    mr_chooser base;
    mr_host_chooser hosts;
    MR_VEC(mr_device_step) offers;
    const plan *plan;
    size_t next, next_answer, next_turn;
    host_turns turns;     /* all choices of this run */
    task_queries queries; /* of tasks, in the order of the run */
    bool stages;          /* an asynchronous copy from pageable memory was submitted (R23) */
    mr_observer observer;
    mr_machine *machine;
    const mr_recorder *recorder; /* NULL: there is none, and the host is after all items */
    MR_VEC(struct submitted {
        uint64_t seq;
        uint32_t item;
    })
    submitted;                   /* by seq */
    size_t next_submitted;       /* after the one that was looked up last */
    MR_VEC(plan_step) functions; /* host functions, in the order in which they ran */
    plan *taken;                 /* gets all steps; NULL: steps are not kept */
    bool strayed;                /* the run could not follow the plan */
    bool *gone;                  /* set when the machine destroys the chooser */
} steer_script;

/* Pass it to the machine, which then owns it. Then call `attach`, after the recorder has begun, so that the recorder is
 * told first. `forced` must stay valid. */
mr_status steer_script_create(const plan *forced, bool *out_gone, steer_script **out_steer);
mr_status steer_script_attach(steer_script *s, mr_machine *machine, const mr_recorder *recorder);
void steer_script_detach(steer_script *s);

#endif
