/* The observer that names hidden waits: see sync_debug.h. A call that waits by its kind is known
 * before it is done, so that it can be refused. All else that made the host wait is known by the
 * time that passed.
 *
 * A copy that ends with a wait of its own is two commands of one place: the place is told once. */
#include "trace/record/sync_debug.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "order/order.h"

typedef struct {
    const char *name;
    mr_site where;
} place;

struct mr_sync_debug {
    mr_observer observer;
    mr_machine *machine;
    mr_sync_mode mode;
    void (*tell)(void *context, const mr_hidden_wait *wait);
    void *context;
    MR_VEC(place) told;
    uint64_t seen; /* machine->host.waits.total at the last command */
};

static mr_sync_debug *debug_of(mr_observer *observer) {
    return (mr_sync_debug *)((char *)observer - offsetof(mr_sync_debug, observer));
}

/* ---- what waits */

static bool copy_waits(const mr_command *command, mr_hidden_kind *out_kind) {
    mr_order_copy_rules rules = mr_order_copy_guaranteed(command);
    mr_copy_direction direction = command->u.copy.direction;
    *out_kind = MR_HIDDEN_COPY;
    if (command->u.copy.synchronous)
        return direction != MR_COPY_H2H && (rules.after_stream || rules.until_done);
    *out_kind = MR_HIDDEN_PAGEABLE;
    return direction == MR_COPY_D2H && mr_order_copy_is_open(command);
}

/* Whether it is the wait at the end of an operation that needs values, and not a synchronize() of the script. */
static bool is_own_wait(const mr_command *command) {
    return strcmp(command->name, "synchronize") != 0;
}

static bool reads_values(const char *name) {
    static const char *const readers[] = {"item",   "print",   "totable", "format",
                                          "tolist", "nonzero", "has_nan", "save"};
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (strcmp(name, readers[i]) == 0) return true;
    return false;
}

/* Known before it is done. */
static bool waits(const mr_command *command, mr_hidden_kind *out_kind) {
    bool found = false;
    switch (command->kind) {
    case MR_COMMAND_COPY: found = copy_waits(command, out_kind); break;
    case MR_COMMAND_STREAM_SYNC:
        *out_kind = MR_HIDDEN_COPY;
        found = is_own_wait(command);
        break;
    case MR_COMMAND_FREE:
        *out_kind = MR_HIDDEN_FREE;
        found = command->u.at_once;
        break;
    case MR_COMMAND_OP:
    case MR_COMMAND_RECORD:
    case MR_COMMAND_WAIT:
    case MR_COMMAND_HOST_FUNCTION:
    case MR_COMMAND_ALLOC:
    case MR_COMMAND_FAULT:
    case MR_COMMAND_EVENT_SYNC:
    case MR_COMMAND_DEVICE_SYNC:
    case MR_COMMAND_STREAM_QUERY:
    case MR_COMMAND_EVENT_QUERY:
    case MR_COMMAND_HOST_ACCESS:
    case MR_COMMAND_STREAM_CREATE:
    case MR_COMMAND_STREAM_CLOSE:
    case MR_COMMAND_RESET: MR_ACCOUNT_LIST(MR_COMMAND_CASE) break;
    }
    if (found && reads_values(command->name)) *out_kind = MR_HIDDEN_READ;
    return found;
}

/* It has waited, and nothing of its kind says so. */
static bool has_waited(const mr_command *command, mr_hidden_kind *out_kind) {
    if (command->machine->launch_blocking) return false; /* the script has asked for it */
    *out_kind = command->kind == MR_COMMAND_COPY ? MR_HIDDEN_PAGEABLE : MR_HIDDEN_QUEUE;
    return mr_command_is(command, MR_TRAIT_SUBMITTED) && command->kind != MR_COMMAND_FREE;
}

/* ---- telling */

static mr_hidden_wait describe(const mr_command *command, mr_hidden_kind kind, uint64_t waited) {
    static const struct {
        const char *because, *instead;
    } texts[] = {
#define X(name, because_text, instead_text) {because_text, instead_text},
        MR_HIDDEN_WAIT_LIST(X)
#undef X
    };
    return (mr_hidden_wait){.kind = kind,
                            .name = command->name,
                            .where = command->where,
                            .stream = command->stream,
                            .waited = waited,
                            .because = texts[kind].because,
                            .instead = texts[kind].instead};
}

static bool is_told(const mr_sync_debug *d, const mr_command *command) {
    for (size_t i = 0; i < d->told.count; i++) {
        const place *p = &d->told.items[i];
        if (p->where.line == command->where.line && p->where.file == command->where.file &&
            strcmp(p->name, command->name) == 0)
            return true;
    }
    return false;
}

static void tell(mr_sync_debug *d, const mr_command *command, mr_hidden_kind kind,
                 uint64_t waited) {
    if (!command->where.file || is_told(d, command)) return;
    /* An operation's own name may go; the kind's name stays. */
    place told = {command->own_name ? mr_command_kinds[command->kind].name : command->name,
                  command->where};
    if (!mr_vec_push(&d->told, told)) return; /* then it is told again */
    mr_hidden_wait wait = describe(command, kind, waited);
    d->tell(d->context, &wait);
}

/* ---- the observer */

static mr_status may(mr_observer *observer, const mr_command *command) {
    mr_sync_debug *d = debug_of(observer);
    mr_hidden_kind kind;
    if (command->kind != MR_COMMAND_FREE) d->seen = d->machine->host.waits.total;
    if (d->mode != MR_SYNC_ERROR || !command->where.file || !waits(command, &kind)) return MR_OK;
    mr_hidden_wait wait = describe(command, kind, 0);
    return mr_fail(MR_CODE_NOT_PERMITTED,
                   "%s makes the host wait for the device, and mr.sync_debug is \"error\": %s. "
                   "Instead: %s",
                   wait.name, wait.because, wait.instead);
}

static void did(mr_observer *observer, const mr_command *command, bool host_waited) {
    (void)host_waited; /* also true of calls that found nothing to wait for */
    mr_sync_debug *d = debug_of(observer);
    uint64_t waited = d->machine->host.waits.total - d->seen;
    mr_hidden_kind kind;
    d->seen = d->machine->host.waits.total;
    if (d->mode != MR_SYNC_WARN) return;
    if (waits(command, &kind) || (waited && has_waited(command, &kind)))
        tell(d, command, kind, waited);
}

/* ---- life */

mr_status mr_sync_debug_create(mr_machine *machine,
                               void (*tell_wait)(void *context, const mr_hidden_wait *wait),
                               void *context, mr_sync_debug **out_debug) {
    mr_sync_debug *d = *out_debug = calloc(1, sizeof *d);
    if (!d) return mr_no_memory("for mr.sync_debug");
    *d = (mr_sync_debug){.observer = {.name = "sync-debug", .may = may, .did = did},
                         .machine = machine,
                         .tell = tell_wait,
                         .context = context};
    return MR_OK;
}

mr_status mr_sync_debug_set(mr_sync_debug *d, mr_sync_mode mode) {
    if (mode != MR_SYNC_OFF && d->mode == MR_SYNC_OFF)
        MR_TRY(mr_observer_add(d->machine, &d->observer));
    if (mode == MR_SYNC_OFF && d->mode != MR_SYNC_OFF) mr_observer_remove(d->machine, &d->observer);
    if (mode == MR_SYNC_OFF) d->told.count = 0;
    d->mode = mode;
    d->seen = d->machine->host.waits.total;
    return MR_OK;
}

mr_sync_mode mr_sync_debug_mode(const mr_sync_debug *d) {
    return d->mode;
}

void mr_sync_debug_destroy(mr_sync_debug *d) {
    if (!d) return;
    mr_error_destroy(mr_sync_debug_set(d, MR_SYNC_OFF));
    mr_vec_free(&d->told);
    free(d);
}
