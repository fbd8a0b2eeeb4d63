/* The commands that one call of a function submitted, in order, and a strict comparison of two calls (auto.h). Private
 * to this folder.
 *
 * Easiest to break: every property that matters on the device must be compared, or a launch computes something else
 * than the call would have. */
#ifndef MR_GRAPH_SEQUENCE_H
#define MR_GRAPH_SEQUENCE_H

#include "graph/state.h"

typedef enum { SUBMITTED_WORK, SUBMITTED_RECORD, SUBMITTED_WAIT, SUBMITTED_ALLOC } submitted_kind;

typedef struct {
    submitted_kind kind;
    bool held;           /* not yet submitted, so it holds a handle on its storages */
    uint32_t of;         /* WAIT: the entry of the record; ALLOC: the number of the allocation */
    mr_command *command; /* WORK; one reference */
    mr_event *event;     /* RECORD that is held: one reference */
    /* RECORD: the event used in a capture, or in place of a closed event */
    mr_event *stand_in;
    uint64_t record_seq; /* RECORD that was carried out */
    mr_storage *storage; /* ALLOC; one reference */
    mr_stream *stream;   /* one reference */
    mr_site where;
} submitted;

typedef struct {
    MR_VEC(submitted) list;
    MR_VEC(uint64_t) allocated; /* ids of storages, ascending */
    uint64_t seed, first_draw;  /* of the machine at the beginning */
    uint32_t draws;
} sequence;

void mr_sequence_clear(sequence *s);

/* Each takes its own references. False: no memory. `held` as above. */
bool mr_sequence_add_work(sequence *s, mr_command *command, bool held);
bool mr_sequence_add_record(sequence *s, mr_event *event, mr_stream *stream, mr_site where,
                            bool held);
bool mr_sequence_add_wait(sequence *s, uint32_t record, mr_stream *stream, mr_site where);
bool mr_sequence_add_alloc(sequence *s, mr_storage *storage, mr_stream *stream, mr_site where,
                           bool held);
void mr_sequence_drop_last(sequence *s);
/* Call it once the entry is submitted, or dropped. */
void mr_sequence_let_go(submitted *entry);

/* Whether entry i is the same in both; else `text` says what differs, with both lines. Both have it. */
bool mr_sequence_same(const sequence *before, const sequence *now, size_t i, char *text,
                      size_t size);
/* The same for an allocation that `now` is about to make. */
bool mr_sequence_same_alloc(const sequence *before, const sequence *now, uint64_t bytes,
                            const mr_stream *stream, mr_site where, char *text, size_t size);
/* Called at the end of `now`: whether both have the same length. */
bool mr_sequence_same_end(const sequence *before, const sequence *now, char *text, size_t size);

#endif
