/* Failures of work without a wait: see unfinished.h. */
#include "host/unfinished.h"

#include "bind/bind.h"
#include "model/backend.h"
#include "ops/op.h"

/* Other operations were checked before they were submitted. */
static void see(void *context, const mr_pending *pending) {
    const mr_command *command = pending->command;
    bool is_kernel =
        command->kind == MR_COMMAND_OP && command->u.op.row->family->id == MR_FAMILY_KERNEL;
    if (is_kernel || command->kind == MR_COMMAND_FAULT) *(bool *)context = true;
}

int mr_unfinished_ask(lua_State *L) {
    mr_machine *machine = mr_bind_machine(L);
    bool may_fail = false;
    const mr_backend *backend = machine->backend;
    if (machine->lost) return 0; /* some call has said so */
    machine->hooks.context = L;
    if (backend->simulator) backend->simulator->pending(machine, see, &may_fail);
    else if (backend->kernel_may_fail) may_fail = backend->kernel_may_fail(machine);
    if (may_fail) mr_raise(L, mr_machine_drain(machine));
    return 0;
}
