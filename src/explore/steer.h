/* Choosers that do as they are told. One is for a player, which is given commands to carry out. The other is for a run
 * of the function itself. It follows a plan up to a point and then goes on in a fixed way. */
#ifndef MR_EXPLORE_STEER_H
#define MR_EXPLORE_STEER_H

#include "base/vec.h"
#include "model/chooser.h"
#include "model/hosts.h"
#include "model/observer.h"
#include "program/program.h"

/* ---- plans: a schedule as numbers */

/* One part of the command that item `command` submitted is carried out while the host is at item `at`. That is before
 * the host carries out the item, or inside of it, where it waits. */
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

/* Where several hosts can go on, the choice of this number (from 0) falls on the one of index `who`, not on the first
 * (mr_host_choice). Numbers increase; choices that are not named fall on the first. */
typedef struct {
    uint32_t number, who;
} plan_turn;

typedef struct {
    MR_VEC(plan_step) steps;
    MR_VEC(plan_answer) answers;
    MR_VEC(plan_turn) turns;
    /* A waiting host lets all hosts continue first that need not wait; then the choice is among waiting hosts. So all
     * has been submitted that can be when a wait ends. */
    bool eager;
    uint32_t until; /* it says everything about the items before this one */
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
    bool answer, answered; /* what `decide` says; it was asked */
    /* A wait for something that was not expected: the oldest offer that may go on. The offer that went is noted. */
    bool (*allowed)(void *context, const mr_command *command);
    void (*went)(void *context, const mr_command *command);
    void *context;
} steer_player;

mr_status steer_player_create(uint32_t grain, steer_player **out_steer);

/* ---- for a run of the function */

/* Several hosts could go on, while item `at` was the next one. */
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
    const mr_recorder *recorder; /* NULL: none is there, and the host is behind all items */
    MR_VEC(struct submitted {
        uint64_t seq;
        uint32_t item;
    })
    submitted;                   /* by seq */
    size_t next_submitted;       /* behind the one that was looked for last */
    MR_VEC(plan_step) functions; /* host functions, in the order in which they ran */
    plan *taken;                 /* all steps are added to it; NULL: they are not kept */
    bool strayed;                /* it could not do as the plan says */
    bool *gone;                  /* where it says that the machine has destroyed it */
} steer_script;

/* To be given to the machine, which owns it; then `attach`, after the recorder's beginning, so that the recorder is
 * told first. The plan must stay. */
mr_status steer_script_create(const plan *forced, bool *out_gone, steer_script **out_steer);
mr_status steer_script_attach(steer_script *s, mr_machine *machine, const mr_recorder *recorder);
void steer_script_detach(steer_script *s);

#endif
