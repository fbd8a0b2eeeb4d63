/* Tells observers of a call that a launch replaces: the operations that the script asked for, on its streams and with
 * its waits. So the checker judges the function as it is written. The launch orders more: all of it comes after earlier
 * work of each stream, and before later work.
 *
 * Easiest to break: each launch uses the same memory, where the script would get new memory. Uses by the last launch
 * are complete when that memory is handed out again, by an order that only launches have. */
#include "graph/auto_state.h"

/* Takes over the reference. */
static mr_status tell(mr_command *command) {
    mr_status status = mr_observers_written(command->machine, command);
    mr_command_release(command);
    return status;
}

static mr_status tell_work(const mr_auto *a, mr_command *command) {
    command->seq = a->machine->counts.next_seq++; /* it was made when the call was held */
    mr_command_retain(command);
    return tell(command);
}

static mr_status tell_event(const mr_auto *a, submitted *entry, submitted *record) {
    mr_caller at = {.machine = a->machine, .where = entry->where};
    bool records = entry == record;
    mr_command *command;
    MR_TRY(mr_command_create(&at, records ? MR_COMMAND_RECORD : MR_COMMAND_WAIT, entry->stream,
                             records ? "record_event" : "wait_event", 0, &command));
    mr_event_retain(record->event);
    command->u.event.event = record->event;
    if (records) record->record_seq = command->seq;
    command->u.event.record_seq = record->record_seq;
    return tell(command);
}

mr_status mr_auto_tell(mr_auto *a) {
    mr_status status = MR_OK;
    if (!mr_observers_as_written(a->machine)) return MR_OK;
    a->told_first = a->machine->counts.next_seq;
    for (size_t i = 0; i < a->now.list.count && !status; i++) {
        submitted *entry = &a->now.list.items[i];
        switch (entry->kind) {
        case SUBMITTED_ALLOC: break; /* it was told when it was made */
        case SUBMITTED_WORK: status = tell_work(a, entry->command); break;
        case SUBMITTED_RECORD: status = tell_event(a, entry, entry); break;
        case SUBMITTED_WAIT: status = tell_event(a, entry, &a->now.list.items[entry->of]); break;
        }
    }
    a->told_last = a->machine->counts.next_seq - 1;
    return status;
}

void mr_auto_tell_reused(const mr_auto *a, mr_storage *storage) {
    mr_observers_reused(a->machine, storage, a->told_first, a->told_last);
}
