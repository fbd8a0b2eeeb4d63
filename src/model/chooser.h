/* Who decides what a device does next, wherever the rules of CUDA leave a choice.
 *
 * The virtual GPU offers steps: "this action may go on now". A chooser keeps what it was offered and
 * hands one back when the machine comes to a choice point. A step is offered when it becomes possible
 * and taken once; after it was carried out, the steps that it made possible are offered. Nothing but
 * the offers, in the order in which they were made, and the choice point may enter a decision. */
#ifndef MR_MODEL_CHOOSER_H
#define MR_MODEL_CHOOSER_H

#include "model/action.h"

typedef struct {
    uint64_t time;     /* virtual nanoseconds at which it happens under the cost model */
    mr_action *action; /* what moves */
    void *part;        /* the backend's: which part of the action, when several are under way */
} mr_step;

/* Where the device may move. */
typedef enum {
    MR_CHOICE_SUBMIT, /* the host enqueues and looks at nothing: only what it cannot notice may move,
                         so neither host functions (R46) nor faults (R49) may be taken */
    MR_CHOICE_ACCESS, /* the host is about to touch memory: no host functions, it did not ask */
    MR_CHOICE_QUERY,  /* the host asks whether something is done; polling must come to an end */
    MR_CHOICE_WAIT,   /* the host cannot go on before `goal` is done: declining is not allowed */
    MR_CHOICE_STEP,   /* a person asked for one step */
} mr_choice_point;

typedef struct {
    mr_choice_point point;
    uint64_t until;  /* the host's present; a timed chooser takes nothing later than this */
    mr_action *goal; /* WAIT, QUERY: one action that must be done for it; NULL: all there is */
    unsigned taken;  /* steps taken at this choice point so far */
} mr_moment;

typedef struct mr_chooser mr_chooser;
struct mr_chooser {
    const char *name; /* as in mr.machine.chooser(), with the seed; lives as long as the chooser */
    /* True: order is by time, and the device keeps its engines' accounts; steps are then made
     * possible by resources too. False: every step whose predecessors are done is possible. */
    bool timed;
    /* True: an action is one step. False: as many as it has slices. */
    bool whole;

    /* False when memory is out. */
    bool (*offer)(mr_chooser *chooser, const mr_step *step);
    /* Takes a step out; false when there is none, or to leave things as they are for this moment. */
    bool (*take)(mr_chooser *chooser, const mr_moment *moment, mr_step *out_step);
    /* The action goes on, or goes away, without its step having been taken. Its steps are gone; an
     * action without any is nothing to complain about. */
    void (*withdraw)(mr_chooser *chooser, mr_action *action);
    void (*clear)(mr_chooser *chooser); /* all steps are gone (a reset) */
    void (*destroy)(mr_chooser *chooser);
};

#endif
