/* What the files of this folder share among themselves. */
#ifndef MR_MODEL_INTERNAL_H
#define MR_MODEL_INTERNAL_H

#include "model/backend.h"
#include "model/observer.h"

/* After a backend slot that may have run host functions: frees what the collector dropped in them
 * and returns their first error, or `status`. */
mr_status mr_machine_waited(mr_machine *machine, mr_status status);

mr_status mr_stream_open_default(mr_device *device, mr_stream_kind kind, mr_stream **out_stream);
void mr_stream_close_default(mr_stream *stream);

/* Device memory whose last handle is gone: frees it in the order of its stream. */
void mr_storage_free_dropped(mr_storage *storage);

/* mr_event_record, with an action of another name: "record_event" is what the script asked for. */
mr_status mr_event_record_as(mr_event *event, mr_stream *stream, const char *name);

/* An action of the host alone (a synchronise, a query) for the observers. */
mr_status mr_announce(mr_machine *machine, mr_action_kind kind, mr_stream *stream, mr_event *event,
                      mr_device *device, const char *name);

#endif
