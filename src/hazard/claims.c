/* The ledger of what was not followed, and its clauses: see claims.h. */
#include "hazard/claims.h"

#include "base/text.h"
#include "model/backend.h"
#include "model/outside.h"
#include "ops/kernel.h"
#include "ops/op.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

const mr_claim_row mr_claim_rows[MR_CLAIM_COUNT] = {
#define X(id, key, effect, concerns, one, several)                                                 \
    {key, MR_CLAIM_##effect, MR_CLAIM_##concerns == MR_CLAIM_EXPLORED, one, several},
    MR_CLAIM_LIST(X)
#undef X
};

static const char *const words[] = {
#define X(id, text) text,
    MR_CLAIM_WORD_LIST(X)
#undef X
};

const char *mr_claim_text(mr_claim claim) {
    return words[claim];
}

void mr_claims_merge(mr_claims *claims, const mr_claims *earlier) {
    for (int i = 0; i < MR_CLAIM_COUNT; i++) claims->count[i] += earlier->count[i];
    claims->ranks |= earlier->ranks; /* rank 0 of several worlds counts once */
    claims->count[MR_CLAIM_RANKS] = (uint64_t)__builtin_popcountll(claims->ranks);
    if (!earlier->count[MR_CLAIM_FAILED]) return;
    claims->where = earlier->where;
    claims->code = earlier->code;
}

/* ---- events */

/* Values reach Lua through a read by the host, or through a copy to temporary memory, which the checker does not see
 * read (item()). A value copied to other host memory is read by a separate call, or never. */
static bool is_host_read(const mr_command *command) {
    switch (command->kind) {
    case MR_COMMAND_COPY:
        return command->u.copy.direction == MR_COPY_D2H &&
               command->operands[0].tensor->storage->transient;
    case MR_COMMAND_HOST_ACCESS:
        for (uint32_t i = 0; i < command->operand_count; i++)
            if (command->operands[i].access & MR_READ) return true;
        return false;
    case MR_COMMAND_OP:
    case MR_COMMAND_RECORD:
    case MR_COMMAND_WAIT:
    case MR_COMMAND_HOST_FUNCTION:
    case MR_COMMAND_ALLOC:
    case MR_COMMAND_FREE:
    case MR_COMMAND_FAULT:
    case MR_COMMAND_STREAM_SYNC:
    case MR_COMMAND_EVENT_SYNC:
    case MR_COMMAND_DEVICE_SYNC:
    case MR_COMMAND_STREAM_QUERY:
    case MR_COMMAND_EVENT_QUERY:
    case MR_COMMAND_STREAM_CREATE:
    case MR_COMMAND_STREAM_CLOSE:
    case MR_COMMAND_RESET: MR_ACCOUNT_LIST(MR_COMMAND_CASE) break;
    }
    return false;
}

/* On a real GPU it was not observed whether threads meet in volatile accesses. */
static void note_not_looked(mr_claims *claims, const mr_kernel_escapes *e) {
    mr_claims_add(claims, MR_CLAIM_NOT_LOOKED);
    if (e && e->may_depend_on_order && !e->depends_on_order)
        mr_claims_add(claims, MR_CLAIM_THREADS);
}

static void note_launch(mr_claims *claims, const mr_command *command, const mr_kernel_escapes *e) {
    if (e->follows_data) mr_claims_add(claims, MR_CLAIM_POINTERS);
    if (e->is_declared) mr_claims_add(claims, MR_CLAIM_DECLARED);
    if (e->uses_addresses) mr_claims_add(claims, MR_CLAIM_ADDRESSES);
    if (e->depends_on_order) mr_claims_add(claims, MR_CLAIM_THREADS);
    if (!command->machine->backend->simulator) note_not_looked(claims, e);
}

/* Ranks are hosts of one process: the checker does not see what they share besides tensors. */
static void note_rank(mr_claims *claims, uint16_t rank) {
    uint64_t bit = (uint64_t)1 << (rank - 1);
    if (claims->ranks & bit) return;
    claims->ranks |= bit;
    mr_claims_add(claims, MR_CLAIM_RANKS);
}

void mr_claims_did(mr_claims *claims, const mr_command *command) {
    const mr_kernel_escapes *launch = mr_kernel_escapes_of(command);
    if (__builtin_expect(command->machine->rank != 0, 0)) note_rank(claims, command->machine->rank);
    if (mr_command_shares(command)) mr_claims_add(claims, MR_CLAIM_OUTSIDE);
    if (is_host_read(command)) mr_claims_add(claims, MR_CLAIM_HOST_READS);
    else if (mr_command_is(command, MR_TRAIT_QUERY)) mr_claims_add(claims, MR_CLAIM_QUERIES);
    else if (launch) note_launch(claims, command, launch);
}

/* An error of a call that was refused for its arguments or for want of memory is not a failure of the run: nothing was
 * done. An error that loses the device has its own row, since it may first show in a call that is not a command. */
static bool ends_run(const mr_error *status) {
    if (mr_code_sticky(status->code)) return false;
    return status->code == MR_CODE_HOST_FUNCTION || status->code == MR_CODE_UNKNOWN ||
           status->code == MR_CODE_LAUNCH_OUT_OF_RESOURCES;
}

static void note_failure(mr_claims *claims, mr_site where, mr_code code) {
    if (!claims->count[MR_CLAIM_FAILED]) {
        claims->where = where;
        claims->code = code;
    }
    mr_claims_add(claims, MR_CLAIM_FAILED);
}

void mr_claims_lost(mr_claims *claims, const mr_error *error) {
    note_failure(claims, error->where, error->code);
}

void mr_claims_failed(mr_claims *claims, const mr_command *command, const mr_error *status) {
    if (!status) {
        mr_claims_add(claims, MR_CLAIM_QUERIES);
        return;
    }
    if (status->code == MR_CODE_OUT_OF_MEMORY && command->kind == MR_COMMAND_ALLOC)
        mr_claims_add(claims, MR_CLAIM_SHORT);
    if (mr_code_is_interruption(status->code)) {
        mr_claims_add(claims, MR_CLAIM_INTERRUPTED);
        return;
    }
    /* The function's error is reported twice: for the function, and for the call in which it ran. */
    bool is_told_again =
        status->code == MR_CODE_HOST_FUNCTION && command->kind != MR_COMMAND_HOST_FUNCTION;
    if (!ends_run(status) || is_told_again) return;
    note_failure(claims, status->where.file ? status->where : command->where, status->code);
}

void mr_claims_found(mr_claims *claims, const mr_command *command,
                     const mr_kernel_finding *finding) {
    const mr_kernel_escapes *launch = mr_kernel_escapes_of(command);
    if (finding->kind == MR_FINDING_NOT_LOOKED) note_not_looked(claims, launch);
    if (finding->kind == MR_FINDING_ORDER && launch && !launch->depends_on_order)
        mr_claims_add(claims, MR_CLAIM_THREADS);
    bool is_told = launch && launch->follows_data; /* as POINTERS */
    if (finding->kind == MR_FINDING_STRAYED && !is_told) mr_claims_add(claims, MR_CLAIM_STRAYED);
}

/* ---- judging */

mr_claims mr_claims_explored(const mr_claims *claims) {
    mr_claims explored = *claims;
    for (int i = 0; i < MR_CLAIM_COUNT; i++)
        if (!mr_claim_rows[i].is_explored) explored.count[i] = 0;
    return explored;
}

mr_claim mr_claims_judge(const mr_claims *claims) {
    mr_claim claim = MR_CLAIM_IS_EVERY;
    for (int i = 0; i < MR_CLAIM_COUNT; i++) {
        if (!claims->count[i]) continue;
        if (mr_claim_rows[i].effect == MR_CLAIM_FORBIDS) return MR_CLAIM_IS_NONE;
        claim = MR_CLAIM_IS_CONDITIONAL;
    }
    return claim;
}

/* ---- clauses */

static void put_place(const mr_claims *claims, mr_buffer *out) {
    if (claims->where.file) {
        mr_text_put(out, claims->where.file);
        mr_buffer_printf(out, ":%d", claims->where.line);
    } else {
        mr_buffer_puts(out, "an unknown line");
    }
    mr_buffer_printf(out, " (%s)", mr_code_text(claims->code));
}

void mr_claims_write_row(const mr_claims *claims, mr_claim_id id, mr_buffer *out) {
    uint64_t count = claims->count[id];
    for (const char *at = count == 1 ? mr_claim_rows[id].one : mr_claim_rows[id].several; *at;
         at++) {
        if (*at == '#') mr_buffer_printf(out, "%" PRIu64, count);
        else if (*at == '@') put_place(claims, out);
        else mr_buffer_add(out, at, 1);
    }
}

void mr_claims_write(const mr_claims *claims, mr_claim claim, mr_buffer *out) {
    for (int i = 0; i < MR_CLAIM_COUNT; i++) {
        bool is_condition = mr_claim_rows[i].effect == MR_CLAIM_IF;
        if (!claims->count[i] || (is_condition && claim == MR_CLAIM_IS_NONE)) continue;
        mr_claims_write_row(claims, (mr_claim_id)i, out);
        mr_buffer_puts(out, "\n");
    }
}

/* ---- a ledger of its own */

static mr_claims *claims_of(mr_observer *observer) {
    return &((mr_ledger *)((char *)observer - offsetof(mr_ledger, observer)))->claims;
}

static void did(mr_observer *observer, const mr_command *command, bool host_waited) {
    (void)host_waited;
    mr_claims_did(claims_of(observer), command);
}

static void failed(mr_observer *observer, const mr_command *command, const mr_error *status) {
    mr_claims_failed(claims_of(observer), command, status);
}

static void lost(mr_observer *observer, const mr_error *error) {
    mr_claims_lost(claims_of(observer), error);
}

static void drew(mr_observer *observer) {
    mr_claims_add(claims_of(observer), MR_CLAIM_DRAWN);
}

static void learned(mr_observer *observer) {
    mr_claims_add(claims_of(observer), MR_CLAIM_LEARNED);
}

static void finalized(mr_observer *observer) {
    mr_claims_add(claims_of(observer), MR_CLAIM_FINALIZED);
}

static void shared(mr_observer *observer, const char *what, mr_site where) {
    (void)what, (void)where;
    mr_claims_add(claims_of(observer), MR_CLAIM_OUTSIDE);
}

static void found(mr_observer *observer, const mr_command *command,
                  const mr_kernel_finding *finding) {
    mr_claims_found(claims_of(observer), command, finding);
}

mr_status mr_ledger_begin(mr_ledger *ledger, mr_machine *machine) {
    *ledger = (mr_ledger){.observer = {.name = "claims",
                                       .as_written = true,
                                       .did = did,
                                       .failed = failed,
                                       .lost = lost,
                                       .drew = drew,
                                       .learned = learned,
                                       .finalized = finalized,
                                       .shared = shared,
                                       .found = found}};
    mr_status status = mr_observer_add(machine, &ledger->observer);
    if (status) ledger->observer.did = NULL;
    return status;
}

void mr_ledger_end(mr_ledger *ledger, mr_machine *machine) {
    if (ledger->observer.did) mr_observer_remove(machine, &ledger->observer);
    ledger->observer.did = NULL;
}
