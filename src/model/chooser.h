/* Choosers decide what a device does next, wherever the rules of CUDA leave a choice.
 *
 * The virtual GPU offers steps: "this work may go on now". A chooser keeps what it was offered and
 * hands one back when the machine comes to a choice point. A step is offered when it becomes possible
 * and taken once; after it was carried out, the steps that it made possible are offered. A decision may depend only on
 * the offers, in their order, and on the choice point. */
#ifndef MR_MODEL_CHOOSER_H
#define MR_MODEL_CHOOSER_H

#include "model/command.h"
#include "model/simulator.h"

typedef struct {
    uint64_t time;             /* virtual nanoseconds at which it happens under the cost model */
    const mr_command *command; /* what moves */
    void *work;                /* the backend's: what it keeps for carrying the command out */
    void *part;                /* the backend's: which part of it, when several are under way */
} mr_device_step;

/* Where the device may move. */
typedef enum {
    /* a look at pending work: complete work is retired, and no choice is made. Neither host functions (R46) nor faults
     * (R49) may be taken */
    MR_CHOICE_LOOK,
    /* the host has submitted, and reads no memory: the same steps may not be taken */
    MR_CHOICE_SUBMIT,
    /* the host is about to access memory: no host functions, because it did not wait or query */
    MR_CHOICE_ACCESS,
    /* the host asks whether something is done, or reads memory again and again; polling must come to an end */
    MR_CHOICE_QUERY,
    MR_CHOICE_WAIT, /* the host cannot go on before `goal` is done: declining is not allowed */
    MR_CHOICE_STEP, /* the user asked for one step */
} mr_choice_point;

typedef struct {
    mr_choice_point point;
    uint64_t until; /* the host's present; a timed chooser takes nothing later than this */
    void *goal;     /* WAIT, QUERY: one step.work that must be done for it; NULL: all there is */
    unsigned taken; /* steps taken at this choice point so far */
} mr_moment;

/* What CUDA leaves open besides the order of steps: questions with the answers yes and no. (Whether a query finds
 * operations done is not such a question: it does if `take` lets the device get there at MR_CHOICE_QUERY.) */
typedef enum {
    MR_OPEN_H2D_ASYNC,  /* R23: this async copy from pageable memory returns once it is staged */
    MR_OPEN_D2H_ASYNC,  /* R23: this async copy to pageable memory returns before it is done */
    MR_OPEN_FREE_WAITS, /* R27: this cudaFree waits for the device */
    /* R10: this query sees the records and waits it asks for, after work that is done */
    MR_OPEN_QUERY,
    MR_OPEN_REUSE_EVENT,    /* R30, policy 1: this allocation may look for such memory */
    MR_OPEN_REUSE_COMPLETE, /* R30, policy 2 */
    MR_OPEN_REUSE_WAIT,     /* R30, policy 3 */
} mr_open_choice;

struct mr_chooser {
    const char *name; /* as in mr.machine.chooser(), with the seed; lives as long as the chooser */
    /* True: order is by time, and the device keeps its engines' accounts; steps are then made
     * possible by resources too. False: every step whose predecessors are done is possible. */
    bool timed;
    /* True: a command is one step. False: as many as it has slices. */
    bool whole;
    /* Where `whole` is false and this is not 0: as many slices as this, or as it has items. */
    uint32_t slices;
    /* True: it is asked at every submission except a free. False: it is asked now and then, so that complete work is
     * retired. */
    bool every_submission;
    /* True: of the memory that a stream has freed, its next allocation gets such as pending work of another stream
     * uses. */
    bool seeks_used_memory;

    /* False when memory is out. */
    bool (*offer)(mr_chooser *chooser, const mr_device_step *step);
    /* Takes a step; false if there is none, or if none shall run now. */
    bool (*take)(mr_chooser *chooser, const mr_moment *moment, mr_device_step *out_step);
    /* Removes the steps of a work that continues, or is dropped, without them. Withdrawing a work without steps is
     * allowed. */
    void (*withdraw)(mr_chooser *chooser, const void *work);
    void (*clear)(mr_chooser *chooser); /* all steps are gone (a reset) */
    void (*destroy)(mr_chooser *chooser);
    /* Optional: `usual` is what the settings say, and the answer of a chooser that has no `decide`. `command` may
     * be NULL. */
    bool (*decide)(mr_chooser *chooser, mr_open_choice what, const mr_command *command, bool usual);
    /* For checkpoints. `save` copies what it has been offered, and whatever else its decisions depend on, into
     * `out_copy` of saved_size bytes; `load` restores it, in the same chooser. Optional, all three or none: a chooser
     * without them keeps its own state through a restore. */
    size_t (*saved_size)(const mr_chooser *chooser);
    void (*save)(const mr_chooser *chooser, void *out_copy);
    void (*load)(mr_chooser *chooser, const void *copy);
};

#endif
