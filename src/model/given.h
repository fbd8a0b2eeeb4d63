/* Entry points for a caller that has made the records of streams, events and storages itself (a player of recorded
 * programs) instead of letting the model allocate them. Such a record is filled in as by the model, has more references
 * than are ever dropped, and is never freed by the model. */
#ifndef MR_MODEL_GIVEN_H
#define MR_MODEL_GIVEN_H

#include "model/command.h"

#define MR_GIVEN_REFS (1u << 30) /* what `refs` of such a record begins with */

/* mr_stream_create, from the point on where the record is filled in. */
mr_status mr_stream_open_given(mr_stream *stream);
/* Call this when the last reference goes. */
void mr_stream_drop_given(mr_stream *stream);

mr_status mr_event_open_given(mr_event *event);
void mr_event_drop_given(mr_event *event);
/* After its RECORD, `record`, has been submitted. */
void mr_event_recorded(mr_event *event, const mr_command *record);

/* The model's own counts of a machine: numbers that it has given out, bytes that are live, references of the default
 * streams. With a checkpoint of the backend it brings the machine back to an earlier point. */
size_t mr_machine_counts_bytes(const mr_machine *machine);
void mr_machine_counts_save(const mr_machine *machine, void *out);
void mr_machine_counts_load(mr_machine *machine, const void *in);

/* A simulator has gone back to a checkpoint: bodies that are half run forget what they noted. */
void mr_machine_drop_body_notes(mr_machine *machine);

/* Finds memory and puts it on the account. `alloc`: the ALLOC command, which is to be submitted next; NULL: host
 * memory. */
mr_status mr_storage_place(mr_storage *storage, const mr_command *alloc);
/* Submits a FREE, which it takes over, and takes the memory off the account. */
mr_status mr_storage_submit_free(mr_command *command);
/* cudaFree's own synchrony, before such a FREE with `at_once`. */
mr_status mr_storage_free_wait(mr_storage *storage);
/* Host memory: what happens when the last reference goes. */
void mr_storage_drop_given(mr_storage *storage);
/* Releases the streams that record_stream has named. */
void mr_storage_forget_users(mr_storage *storage);

#endif
