/* Actions of a script on a simulated device: the backend's slots of simulator.h, with the checks that every other call
 * has. */
#include "model/simulator.h"

#include "model/history.h"
#include "model/internal.h"

mr_status mr_machine_step(mr_machine *machine, mr_stream *stream, bool *out_moved, char *out_text,
                          size_t text_size) {
    *out_moved = false;
    MR_TRY(mr_machine_ready(machine));
    if (stream) MR_TRY(mr_stream_usable(stream));
    const mr_simulator *simulator = machine->backend->simulator;
    MR_ACCOUNT_BEFORE(machine);
    mr_history_before(machine);
    mr_status status = mr_machine_waited(
        machine, simulator->step(machine, stream, out_moved, out_text, text_size));
    mr_history_after(machine, *out_moved || status);
    MR_ACCOUNT(machine, status, .kind = MR_COMMAND_STEP, .stream = stream,
               .u.account.value = *out_moved);
    mr_machine_free_dropped(machine);
    return status;
}

mr_status mr_machine_back(mr_machine *machine, uint32_t count, uint32_t *out_undone) {
    MR_ACCOUNT_BEFORE(machine);
    mr_status status = mr_history_back(machine, count, out_undone);
    MR_ACCOUNT(machine, status, .kind = MR_COMMAND_BACK,
               .u.account = {.value = count, .number = *out_undone});
    return status;
}

mr_status mr_machine_pass(mr_machine *machine, uint64_t nanoseconds) {
    MR_TRY(mr_machine_ready(machine));
    const mr_simulator *simulator = machine->backend->simulator;
    MR_ACCOUNT_BEFORE(machine);
    mr_history_before(machine);
    mr_status status = mr_machine_waited(machine, simulator->pass(machine, nanoseconds));
    mr_history_after(machine, true);
    MR_ACCOUNT(machine, status, .kind = MR_COMMAND_PASS, .u.account.value = nanoseconds);
    mr_machine_free_dropped(machine);
    return status;
}

mr_status mr_machine_set_history(mr_machine *machine, const mr_history_limits *limits) {
    mr_status status = mr_history_set_limits(machine, limits);
    double bytes = (double)limits->bytes;
    MR_ACCOUNT(machine, status, .kind = MR_COMMAND_HISTORY,
               .u.account = {.value = limits->steps, .number = limits->always ? -bytes : bytes});
    return status;
}

mr_status mr_machine_set_chooser(mr_machine *machine, const char *name) {
    MR_ACCOUNT_BEFORE(machine);
    mr_history_end(machine, "mr.machine.chooser", (mr_site){0});
    mr_status status = machine->backend->simulator->set_chooser(machine, name);
    MR_ACCOUNT(machine, status, .kind = MR_COMMAND_CHOOSER, .u.account.text = name);
    return status;
}

mr_status mr_machine_set_model(mr_machine *machine, const char *name) {
    MR_ACCOUNT_BEFORE(machine);
    mr_history_end(machine, "mr.machine.model", (mr_site){0});
    mr_status status = machine->backend->simulator->set_model(machine, name);
    MR_ACCOUNT(machine, status, .kind = MR_COMMAND_MODEL, .u.account.text = name);
    return status;
}

mr_status mr_machine_set_setting(mr_machine *machine, const char *name, int64_t value) {
    MR_ACCOUNT_BEFORE(machine);
    mr_history_end(machine, "mr.machine.settings", (mr_site){0});
    mr_status status = machine->backend->simulator->set_setting(machine, name, value);
    MR_ACCOUNT(machine, status, .kind = MR_COMMAND_SETTING,
               .u.account = {.text = name, .value = (uint64_t)value});
    return status;
}

void mr_machine_pending(mr_machine *machine, void (*see)(void *context, const mr_pending *pending),
                        void *context) {
    MR_ACCOUNT_BEFORE(machine);
    machine->backend->simulator->pending(machine, see, context);
    MR_ACCOUNT(machine, MR_OK, .kind = MR_COMMAND_LOOK);
}

void mr_machine_revive(mr_machine *machine) {
    machine->backend->simulator->revive(machine);
    mr_error_destroy(machine->lost);
    mr_error_destroy(machine->deferred_error);
    machine->lost = machine->deferred_error = NULL;
    mr_machine_free_dropped(machine);
}

uint64_t mr_machine_device_time(mr_machine *machine) {
    uint64_t time = machine->backend->simulator->device_time(machine);
    MR_ACCOUNT(machine, MR_OK, .kind = MR_COMMAND_DEVICE_TIME, .u.account.value = time);
    return time;
}
