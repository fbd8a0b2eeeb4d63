/* The inside of functions that become graphs by themselves (auto.h). Files from below: sequence.c, auto_record.c (calls
 * that are carried out), auto_tell.c (what observers are told in place of a launch); auto_hold.c (calls that are held
 * back), auto.c. */
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
    uint16_t rank;  /* whose call is under way (mr_machine.rank) */
    uint32_t depth; /* calls under way: of itself, by itself */
    call_phase phase;
    mr_stream *origin; /* of the call under way: the current stream at its beginning */
    MR_VEC(mr_stream *)
    streams;            /* of the call: the origin, and those that came after it; references */
    uint64_t id;        /* of the call that is held, among those of captures */
    sequence last, now; /* what the last call submitted, and this one so far */
    bool has_last;
    /* Why no graph can do the call; "": one can. For `last`, and for `now`. */
    char last_reason[300], reason[300];
    char why[600];
    bool shortened;            /* memory for `now` was out: it is not all of it */
    mr_executable *executable; /* of `last`; NULL: none was made */
    uint64_t calls, launches, captures;
    uint64_t told_first,
        told_last; /* numbers of what observers were told of the last call as written */
};

/* ---- auto_record.c */

/* Notes an action of this call that no graph can do; the first reason counts. */
void mr_auto_object(mr_auto *a, mr_site where, const char *name, const char *what);
/* Whether another rank has made the call: the commands of the rank that runs are no part of it. */
static inline bool mr_auto_is_other_rank(const mr_auto *a) {
    return a->rank && a->rank != a->machine->rank;
}
extern const char mr_auto_frees[], mr_auto_meets[]; /* what to say of a free, of a collective */
/* Why a graph cannot do that; NULL: it can. */
const char *mr_auto_objection(const mr_command *command);
/* The stream takes part from now on. NULL, or why it cannot. */
const char *mr_auto_join(mr_auto *a, mr_stream *stream);
/* From here on the call is recorded. */
mr_status mr_auto_record(mr_auto *a);
void mr_auto_stop_recording(mr_auto *a);

/* ---- auto_tell.c: for observers that judge what the script wrote, and not the launch in its place */

/* Tells what is held, in its order. An error: one of them refuses, and nothing has been submitted. */
mr_status mr_auto_tell(mr_auto *a);
/* The graph's memory takes the place of new memory. */
void mr_auto_tell_reused(const mr_auto *a, mr_storage *storage);

/* ---- auto_hold.c */

/* From here on the call is held; its streams are those of the list. */
mr_status mr_auto_hold(mr_auto *a);
/* The streams are as before, and nothing has been submitted. */
void mr_auto_leave_hold(mr_auto *a);
/* Submits all that is held. */
mr_status mr_auto_submit_held(mr_auto *a);
/* Both, and the rest of the call is recorded. */
mr_status mr_auto_give_up(mr_auto *a);

#endif
