/* Objects that code outside of millrace can reach: see outside.h. */
#include "model/outside.h"

#include "model/backend.h"
#include "model/internal.h"
#include "model/observer.h"

/* ---- marks */

static void tell(const mr_caller *caller, const char *what) {
    caller->machine->outside.used = true;
    mr_observers_shared(caller->machine, what, caller->where);
}

void mr_share_memory(const mr_caller *caller, mr_storage *storage, const char *what) {
    storage->shared = true;
    tell(caller, what);
}

void mr_share_stream(const mr_caller *caller, mr_stream *stream, const char *what) {
    stream->shared = true;
    tell(caller, what);
}

void mr_share_event(const mr_caller *caller, mr_event *event, const char *what) {
    event->shared = true;
    tell(caller, what);
}

bool mr_command_shares_now(const mr_command *command) {
    if (command->stream && command->stream->shared) return true;
    if (mr_command_has(command, MR_PART_EVENT) && command->u.event.event->shared) return true;
    if (mr_command_has(command, MR_PART_MEMORY) && command->u.storage->shared) return true;
    for (uint32_t i = 0; i < command->operand_count; i++)
        if (command->operands[i].tensor->storage->shared) return true;
    return false;
}

/* ---- loans */

mr_status mr_loan_begin(const mr_caller *caller, mr_tensor *tensor, mr_loan *loan) {
    mr_storage *storage = tensor->storage;
    if (storage->graph || storage->pool)
        return mr_fail(
            MR_CODE_INVALID_ARGUMENT,
            "dlpack: the memory belongs to a graph, whose launches use it again: copy it "
            "with t:clone() outside of the graph");
    loan->machine = caller->machine;
    loan->tensor = tensor;
    mr_tensor_retain(tensor);
    mr_storage_add_handle(storage);
    storage->loans++;
    caller->machine->outside.loans++;
    return MR_OK;
}

void mr_loan_end(mr_loan *loan) {
    mr_machine_outside *outside = &loan->machine->outside;
    mr_loan *first = atomic_load_explicit(&outside->returned, memory_order_relaxed);
    do loan->next = first;
    while (!atomic_compare_exchange_weak_explicit(&outside->returned, &first, loan,
                                                  memory_order_release, memory_order_relaxed));
}

static void take_back(mr_loan *loan) {
    mr_tensor *tensor = loan->tensor;
    mr_storage *storage = tensor->storage;
    loan->machine->outside.loans--;
    if (!--storage->loans && storage->free_waits) mr_storage_free_lent(storage);
    mr_storage_drop_handle(storage);
    mr_tensor_release(tensor);
    loan->drop(loan);
}

void mr_loans_collect(mr_machine *machine) {
    if (machine->host_function.running) return;
    mr_loan *loan =
        atomic_exchange_explicit(&machine->outside.returned, NULL, memory_order_acquire);
    while (loan) {
        mr_loan *next = loan->next;
        take_back(loan);
        loan = next;
    }
}

/* The first storage on a device that is lent; NULL: none. */
static const mr_storage *find_on_device(const mr_machine *machine) {
    if (!machine->outside.loans) return NULL;
    for (const mr_storage *s = machine->objects.newest_storage; s; s = s->older)
        if (s->loans && s->kind == MR_MEMORY_DEVICE && s->epoch == machine->epoch) return s;
    return NULL;
}

/* A lost device has lost its memory, too. */
mr_status mr_loans_allow_reset(mr_machine *machine) {
    mr_loans_collect(machine);
    const mr_storage *lent = machine->lost ? NULL : find_on_device(machine);
    if (!lent) return MR_OK;
    return mr_fail(MR_CODE_NOT_PERMITTED,
                   "mr.reset: code outside of millrace uses memory of a device (%s%s%s by dlpack), "
                   "and a reset would free it: release the capsule, and the objects made from it",
                   lent->name ? "`" : "", lent->name ? mr_name_text(lent->name) : "a tensor",
                   lent->name ? "`" : "");
}

/* ---- the backend's part */

mr_status mr_outside_of(const mr_machine *machine, const char *what, const char *why,
                        const mr_outside_slots **out_slots) {
    *out_slots = machine->backend->outside;
    if (*out_slots) return MR_OK;
    return mr_fail(MR_CODE_NOT_SUPPORTED,
                   "%s: not on the virtual GPU: %s; run on a GPU with --device cuda", what, why);
}
