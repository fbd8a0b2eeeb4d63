/* The list of observers: see observer.h. */
#include "model/observer.h"

mr_status mr_observer_add(mr_machine *machine, mr_observer *observer) {
    if (!mr_vec_push(&machine->observers, observer))
        return mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory for one more observer");
    return MR_OK;
}

void mr_observer_remove(mr_machine *machine, mr_observer *observer) {
    size_t kept = 0;
    for (size_t i = 0; i < machine->observers.count; i++)
        if (machine->observers.items[i] != observer)
            machine->observers.items[kept++] = machine->observers.items[i];
    machine->observers.count = kept;
}
