/* Shared by the files of this folder. */
#ifndef MR_MODEL_INTERNAL_H
#define MR_MODEL_INTERNAL_H

#include "model/backend.h"
#include "model/observer.h"

/* After a backend slot that may have run host functions or kernels: returns `status` or, if that is OK, the deferred
 * error. The caller tells the observers what came of its call, and then calls mr_machine_free_dropped. */
mr_status mr_machine_waited(mr_machine *machine, mr_status status);
/* Frees what the collector dropped in those host functions: submissions of their own, after the one that waited. */
void mr_machine_free_dropped(mr_machine *machine);

mr_status mr_stream_open_default(const mr_caller *caller, mr_device *device, mr_stream_kind kind,
                                 mr_stream **out_stream);
void mr_stream_close_default(mr_stream *stream);

/* Notes a write: for messages about a tensor whose values are not computed yet, and for code that keeps values and must
 * know whether they changed. */
static inline void mr_storage_wrote(mr_storage *storage, const char *operation, mr_name *name,
                                    mr_site where) {
    storage->version++;
    storage->writer = operation;
    mr_name_keep(&storage->writer_name, name);
    storage->writer_where = where;
}

/* Device memory whose last handle is gone: frees it in the order of its stream. */
void mr_storage_free_dropped(mr_storage *storage);
/* Frees memory that the script freed while it was lent, after the last loan has ended. */
void mr_storage_free_lent(mr_storage *storage);

/* Makes the name of an object of the script, in *out_name; NULL for NULL. */
mr_status mr_name_given(const char *text, mr_name **out_name);

/* An action of the host itself (a synchronise, a query, closing a stream) is a pair of calls around the backend's.
 * Begin asks the observers; *out_command is NULL without observers. End tells them if `status` says that it has come
 * true, and returns what the call returns. */
mr_status mr_host_begin(const mr_caller *caller, mr_command_id kind, mr_stream *stream,
                        mr_event *event, mr_device *device, const char *name,
                        mr_command **out_command);
mr_status mr_host_end(mr_machine *machine, mr_command *command, mr_status status);
/* The same for a query: observers are not told of one that found the work not done. */
mr_status mr_host_end_query(mr_machine *machine, mr_command *command, mr_status status, bool done);

#endif
