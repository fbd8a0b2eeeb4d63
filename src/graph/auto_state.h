/* The inside of functions that become graphs by themselves (auto.h). Files, lowest first: sequence.c, auto_record.c
 * (calls that are carried out), auto_tell.c (what observers are told in place of a launch), auto_hold.c (calls that are
 * held), auto.c. */
#ifndef MR_GRAPH_AUTO_STATE_H
#define MR_GRAPH_AUTO_STATE_H

#include "graph/auto.h"
#include "graph/sequence.h"
#include "model/observer.h"

typedef enum { CALL_NONE, CALL_RECORDED, CALL_HELD } call_phase;

struct mr_auto {
    mr_observer observer; /* first; of a call that is recorded */
    mr_machine *machine;
    uint32_t epoch;
    uint32_t depth; /* nested calls: of itself, by itself */
    call_phase phase;
    mr_function_call begun; /* the last call; its stream is NULL after it */
    MR_VEC(mr_stream *)
    streams;            /* of the call: that stream, and those that came after it; references */
    uint64_t id;        /* of the call that is held, among those of captures */
    sequence last, now; /* the submissions of the last call, and of this one so far */
    bool has_last;
    /* Why a graph cannot replace the call; "": it can. For `last`, and for `now`. */
    char last_reason[300], reason[300];
    char why[600];
    char other_device[120];    /* what mr_auto_apart says of one */
    bool shortened;            /* `now` is incomplete: out of memory */
    mr_executable *executable; /* of `last`; NULL: none was made */
    uint64_t calls, launches, captures;
    uint64_t told_first,
        told_last; /* numbers of the commands that observers were told for the last call */
};

/* ---- auto_record.c */

/* Notes an action of this call that a graph cannot contain; the first reason counts. */
void mr_auto_object(mr_auto *a, mr_site where, const char *name, const char *what);
/* Whether another rank has made the call: the commands of the rank that runs are no part of it. */
static inline bool mr_auto_is_other_rank(const mr_auto *a) {
    return a->begun.rank && a->begun.rank != a->machine->rank;
}
extern const char mr_auto_frees[], mr_auto_meets[]; /* the texts for a free, and for a collective */
/* Why a graph cannot do that; NULL: it can. */
const char *mr_auto_objection(const mr_command *command);
/* Why work on this stream, which has not joined the call's streams, is no part of the graph. Valid until the next. */
const char *mr_auto_apart(mr_auto *a, const mr_stream *stream);
/* The stream takes part from now on. NULL, or why it cannot. */
const char *mr_auto_join(mr_auto *a, mr_stream *stream);
/* From here on the call is recorded. */
mr_status mr_auto_record(mr_auto *a);
void mr_auto_stop_recording(mr_auto *a);

/* ---- auto_tell.c: for observers that judge the script's commands, and not the launch in their place */

/* Tells the held commands, in order. An error: an observer refuses one, and nothing has been submitted. */
mr_status mr_auto_tell(mr_auto *a);
/* The graph's memory takes the place of new memory. */
void mr_auto_tell_reused(const mr_auto *a, mr_storage *storage);

/* ---- auto_hold.c */

/* From here on the call is held; its streams are those of the list. */
mr_status mr_auto_hold(mr_auto *a);
/* Ends the hold without a submission; the streams are as before. */
void mr_auto_leave_hold(mr_auto *a);
/* Submits all that is held. */
mr_status mr_auto_submit_held(mr_auto *a);
/* Ends the hold, submits the held commands, and records the rest of the call. */
mr_status mr_auto_give_up(mr_auto *a);

#endif
