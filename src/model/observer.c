/* The list of observers: see observer.h. */
#include "model/observer.h"

static const char *const engine_texts[] = {
#define X(name, text) text,
    MR_ENGINE_LIST(X)
#undef X
};

const char *mr_engine_text(mr_engine engine) {
    return engine_texts[engine];
}

static mr_engine engine_of_copy(mr_copy_direction direction) {
    switch (direction) {
    case MR_COPY_H2D: return MR_ENGINE_COPY_IN;
    case MR_COPY_D2H: return MR_ENGINE_COPY_OUT;
    case MR_COPY_D2D: return MR_ENGINE_COPY_DEVICE;
    case MR_COPY_PEER: return MR_ENGINE_COPY_PEER;
    case MR_COPY_H2H: break;
    }
    return MR_ENGINE_NONE;
}

mr_engine mr_engine_of(const mr_command *command) {
    switch (command->kind) {
    case MR_COMMAND_OP: return MR_ENGINE_SM;
    case MR_COMMAND_COPY: return engine_of_copy(command->u.copy.direction);
    case MR_COMMAND_RECORD:
    case MR_COMMAND_WAIT:
    case MR_COMMAND_HOST_FUNCTION:
    case MR_COMMAND_ALLOC:
    case MR_COMMAND_FREE:
    case MR_COMMAND_FAULT: MR_HOST_LIST(MR_COMMAND_CASE) MR_ACCOUNT_LIST(MR_COMMAND_CASE) break;
    }
    return MR_ENGINE_NONE;
}

static void count_listeners(mr_machine *machine) {
    machine->observing.ran_listeners = machine->observing.everything_listeners = 0;
    for (size_t i = 0; i < machine->observing.observers.count; i++) {
        const mr_observer *observer = machine->observing.observers.items[i];
        if (observer->ran) machine->observing.ran_listeners++;
        if (observer->everything) machine->observing.everything_listeners++;
    }
}

mr_status mr_observer_add(mr_machine *machine, mr_observer *observer) {
    if (!mr_vec_push(&machine->observing.observers, observer))
        return mr_no_memory("for one more observer");
    count_listeners(machine);
    return MR_OK;
}

void mr_observer_remove(mr_machine *machine, mr_observer *observer) {
    size_t kept = 0;
    for (size_t i = 0; i < machine->observing.observers.count; i++)
        if (machine->observing.observers.items[i] != observer)
            machine->observing.observers.items[kept++] = machine->observing.observers.items[i];
    machine->observing.observers.count = kept;
    count_listeners(machine);
}

static const char *const cause_texts[] = {
#define X(name, text) text,
    MR_CAUSE_LIST(X)
#undef X
};

const char *mr_cause_text(mr_cause cause) {
    return cause_texts[cause];
}

void mr_observers_ran(mr_machine *machine, const mr_command *command, const mr_run *run) {
    machine->observing.runs_told++;
    for (size_t i = 0; i < machine->observing.observers.count; i++) {
        mr_observer *observer = machine->observing.observers.items[i];
        if (observer->ran) observer->ran(observer, command, run);
    }
}

void mr_observers_went_back(mr_machine *machine, uint64_t runs_told) {
    machine->observing.runs_told = runs_told;
    for (size_t i = 0; i < machine->observing.observers.count; i++) {
        mr_observer *observer = machine->observing.observers.items[i];
        if (observer->went_back) observer->went_back(observer, runs_told);
    }
}

bool mr_observers_want_findings(const mr_machine *machine) {
    for (size_t i = 0; i < machine->observing.observers.count; i++)
        if (machine->observing.observers.items[i]->found) return true;
    return false;
}

void mr_observers_tell_finding(mr_machine *machine, const mr_command *command,
                               const mr_kernel_finding *finding) {
    for (size_t i = 0; i < machine->observing.observers.count; i++) {
        mr_observer *observer = machine->observing.observers.items[i];
        if (observer->found) observer->found(observer, command, finding);
    }
}

bool mr_observers_want_touched(const mr_machine *machine) {
    for (size_t i = 0; i < machine->observing.observers.count; i++)
        if (machine->observing.observers.items[i]->touched) return true;
    return false;
}

void mr_observers_tell_touched(mr_machine *machine, const mr_command *command,
                               const mr_kernel_touched *touched) {
    for (size_t i = 0; i < machine->observing.observers.count; i++) {
        mr_observer *observer = machine->observing.observers.items[i];
        if (observer->touched) observer->touched(observer, command, touched);
    }
}

uint8_t *mr_observers_unset(const mr_machine *machine, const mr_command *command,
                            const mr_storage *storage) {
    uint8_t *unset = NULL;
    for (size_t i = 0; i < machine->observing.observers.count && !unset; i++) {
        mr_observer *observer = machine->observing.observers.items[i];
        if (observer->unset) unset = observer->unset(observer, command, storage);
    }
    return unset;
}

bool mr_observers_as_written(const mr_machine *machine) {
    for (size_t i = 0; i < machine->observing.observers.count; i++)
        if (machine->observing.observers.items[i]->as_written) return true;
    return false;
}

mr_status mr_observers_written(mr_machine *machine, const mr_command *command) {
    machine->observing.wrote = true;
    for (size_t i = 0; i < machine->observing.observers.count; i++) {
        mr_observer *observer = machine->observing.observers.items[i];
        if (!observer->as_written) continue;
        if (observer->may) MR_TRY(observer->may(observer, command));
        observer->did(observer, command, true);
    }
    return MR_OK;
}

void mr_observers_reused(mr_machine *machine, mr_storage *storage, uint64_t first, uint64_t last) {
    for (size_t i = 0; i < machine->observing.observers.count; i++) {
        mr_observer *observer = machine->observing.observers.items[i];
        if (observer->reused && storage->observed) observer->reused(observer, storage, first, last);
    }
}

void mr_observers_renumbered(mr_machine *machine, mr_event *event) {
    for (size_t i = 0; i < machine->observing.observers.count; i++) {
        mr_observer *observer = machine->observing.observers.items[i];
        if (observer->renumbered && event->observed) observer->renumbered(observer, event);
    }
}

void mr_observers_drew(mr_machine *machine) {
    for (size_t i = 0; i < machine->observing.observers.count; i++) {
        mr_observer *observer = machine->observing.observers.items[i];
        if (observer->drew) observer->drew(observer);
    }
}

void mr_observers_learned(mr_machine *machine) {
    for (size_t i = 0; i < machine->observing.observers.count; i++) {
        mr_observer *observer = machine->observing.observers.items[i];
        if (observer->learned) observer->learned(observer);
    }
}

void mr_observers_finalized(mr_machine *machine) {
    for (size_t i = 0; i < machine->observing.observers.count; i++) {
        mr_observer *observer = machine->observing.observers.items[i];
        if (observer->finalized) observer->finalized(observer);
    }
}

void mr_observers_shared(mr_machine *machine, const char *what, mr_site where) {
    for (size_t i = 0; i < machine->observing.observers.count; i++) {
        mr_observer *observer = machine->observing.observers.items[i];
        if (observer->shared) observer->shared(observer, what, where);
    }
}

void mr_observers_host_is(mr_machine *machine, uint16_t rank) {
    machine->rank = rank;
    for (size_t i = 0; i < machine->observing.observers.count; i++) {
        mr_observer *observer = machine->observing.observers.items[i];
        if (observer->host_is) observer->host_is(observer, rank);
    }
}

void mr_observers_lost(mr_machine *machine) {
    for (size_t i = 0; i < machine->observing.observers.count; i++) {
        mr_observer *observer = machine->observing.observers.items[i];
        if (observer->lost) observer->lost(observer, machine->lost);
    }
}
