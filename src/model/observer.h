/* An observer sees every action after it is complete and before it is carried out, in the order of
 * the host's calls. It changes nothing; it may refuse. */
#ifndef MR_MODEL_OBSERVER_H
#define MR_MODEL_OBSERVER_H

#include "model/action.h"

struct mr_observer {
    const char *name;
    /* Not NULL: the action is not carried out and the error is raised at the caller. */
    mr_status (*action)(mr_observer *observer, const mr_action *action);
    /* Optional: `observed` of these objects is about to become unreachable. */
    void (*storage_gone)(mr_observer *observer, mr_storage *storage);
    void (*stream_gone)(mr_observer *observer, mr_stream *stream);
    void (*event_gone)(mr_observer *observer, mr_event *event);
};

/* The machine does not own it. Observers are told in the order of adding. */
mr_status mr_observer_add(mr_machine *machine, mr_observer *observer);
void mr_observer_remove(mr_machine *machine, mr_observer *observer);

#endif
