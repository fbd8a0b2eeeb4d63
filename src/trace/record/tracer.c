/* The observer that traces: notes the host's clock before and after each call, and when the device carried it out.
 *
 * Easiest to break: the cost. A call only fills in one entry, and a run one record of a log; all other work is done for
 * a snapshot. Runs stay in the log while a return to a checkpoint can undo them; otherwise they are folded into their
 * entries now and then. */
#include <string.h>

#include "model/backend.h"
#include "ops/op.h"
#include "ops/params.h"
#include "order/order.h"
#include "tensor/tensor.h"
#include "trace/record/kept.h"

#define CALLS_UNDER_WAY                                                                            \
    8                 /* a wait that runs a host function that submits: two; finalizers add some */
#define SETTLE_AT 256 /* runs in the log */
/* So many at most can be undone, however many checkpoints there are. */
#define MOST_UNDOABLE ((size_t)1 << 18)

/* Facts that `may` noted of a call that is under way. */
typedef struct {
    uint64_t seq, time, waited, worked, followed;
} asked;

struct mr_tracer {
    mr_observer observer;
    mr_machine *machine;
    mr_kept kept;
    uint64_t began, first_seq;
    asked calls[CALLS_UNDER_WAY];
    unsigned newest_call;
    uint64_t waited, worked, made; /* machine->host.waits.total and its like at the last `did` */
    uint64_t last_returned;        /* the host's clock then */
    uint64_t last_seq;             /* of it */
    /* the text of runs_start; NULL: the backend reports runs by itself */
    const char *how;
    bool tells_runs;
};

static mr_tracer *tracer_of(mr_observer *observer) {
    return (mr_tracer *)((char *)observer - offsetof(mr_tracer, observer));
}

/* Not mr_machine_time, which would tell observers of everything about a read of the clock. */
static uint64_t host_time(const mr_tracer *t) {
    return t->machine->backend->host_time(t->machine);
}

/* ---- calls */

static kept_entry *last_call(mr_tracer *t, const mr_host_times *times) {
    kept_entry *last = mr_kept_find(&t->kept, t->last_seq);
    return last && last->called && times->begin >= last->returned ? last : NULL;
}

/* With launch-blocking (R52) the host waits for a command after it was told, and its own work on memory it does
 * then. */
static void end_last_call_later(mr_tracer *t) {
    const mr_host_times *waits = &t->machine->host.waits, *works = &t->machine->host.works;
    kept_entry *last;
    if (t->machine->launch_blocking && waits->total != t->waited && (last = last_call(t, waits))) {
        last->waited += waits->total - t->waited;
        last->returned = t->last_returned = waits->end;
        t->waited = waits->total;
    }
    if (works->total != t->worked && (last = last_call(t, works)) &&
        last->kind == MR_COMMAND_HOST_ACCESS) {
        last->worked += works->total - t->worked;
        last->returned = t->last_returned = works->end;
        t->worked = works->total;
    }
}

/* A call that the host leaves only when the device has done something. */
static bool is_wait(const mr_command *command, const kept_entry *entry) {
    if (entry->waited) return true;
    return mr_kind_waits(command->kind);
}

/* Adds the time that passed while a chooser moved the device on. It belongs to a call that waits; any other call, such
 * as a query, was made after it. */
static void count_followed(const mr_command *command, uint64_t followed, kept_entry *entry) {
    if (is_wait(command, entry)) entry->waited += followed;
    else entry->call += followed;
}

/* Memory of the host is made before the command that first writes it. */
static void begin_with_memory(const mr_tracer *t, const mr_command *command, asked *call) {
    const mr_host_times *makes = &t->machine->host.makes;
    if (makes->total == t->made || makes->begin < t->last_returned || !command->operand_count ||
        command->operands[0].tensor->storage != t->machine->host.made)
        return;
    call->time = makes->begin;
    call->worked -= makes->end - makes->begin;
}

static mr_status may(mr_observer *observer, const mr_command *command) {
    mr_tracer *t = tracer_of(observer);
    const mr_host_times *waits = &t->machine->host.waits;
    end_last_call_later(t);
    asked call = {command->seq, host_time(t), waits->total, t->machine->host.works.total,
                  t->machine->host.follows.total};
    /* R27: cudaFree waits before its command is made. */
    if (mr_command_frees_at_once(command) && waits->total != t->waited &&
        waits->begin >= t->last_returned) {
        call.time = waits->begin;
        call.waited = t->waited;
    }
    if (mr_command_is(command, MR_TRAIT_TOUCH) || mr_command_has(command, MR_PART_COPY))
        begin_with_memory(t, command, &call);
    t->newest_call = (t->newest_call + 1) % CALLS_UNDER_WAY;
    t->calls[t->newest_call] = call;
    return MR_OK;
}

/* Those above it have failed or were refused. */
static asked take_call(mr_tracer *t, uint64_t seq, uint64_t now) {
    for (unsigned i = 0; i < CALLS_UNDER_WAY; i++) {
        unsigned at = (t->newest_call + CALLS_UNDER_WAY - i) % CALLS_UNDER_WAY;
        if (t->calls[at].seq != seq) continue;
        t->calls[at].seq = 0;
        t->newest_call = (at + CALLS_UNDER_WAY - 1) % CALLS_UNDER_WAY;
        return t->calls[at];
    }
    const mr_machine_host *host = &t->machine->host;
    return (asked){seq, now, host->waits.total, host->works.total, host->follows.total};
}

static uint64_t bytes_of(const mr_command *command) {
    if (command->kind == MR_COMMAND_COPY) return command->u.copy.bytes;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < command->operand_count; i++) {
        const mr_tensor *tensor = command->operands[i].tensor;
        if (tensor) bytes += (uint64_t)tensor->numel * mr_dtype_size((mr_dtype)tensor->dtype);
    }
    return bytes;
}

/* The blocks of an mr.op. Each occupies a whole SM; 0: the operation says none. */
static uint32_t blocks_of(const mr_command *command) {
    const mr_op *row = command->u.op.row;
    bool says = row && row->family->id == MR_FAMILY_ABSTRACT;
    return says ? mr_params_of(command).abstract.blocks : 0;
}

static void describe(mr_tracer *t, kept_entry *entry, const mr_command *command) {
    entry->kind = (uint8_t)command->kind;
    entry->name = command->name;
    entry->own_name = mr_name_retain(command->own_name);
    entry->where = command->where;
    bool of_host = mr_command_frees_at_once(command);
    entry->stream = mr_kept_stream(&t->kept, of_host ? NULL : command->stream);
    entry->device = command->stream ? command->stream->device->index : -1;
    entry->host = command->machine->payer ? command->machine->payer : command->machine->rank;
    entry->meeting = command->meeting ? command->seq - command->member : 0;
    switch (mr_command_kinds[command->kind].part) {
    case MR_PART_OP: entry->blocks = blocks_of(command); break;
    case MR_PART_COPY:
        entry->synchronous = command->u.copy.synchronous;
        entry->walls = mr_order_walls(command);
        break;
    case MR_PART_EVENT:
        entry->object = mr_name_retain(command->u.event.event->name);
        if (mr_command_is(command, MR_TRAIT_BOUND)) entry->record_seq = command->u.event.record_seq;
        break;
    case MR_PART_DEVICE: entry->device = command->u.device->index; break;
    case MR_PART_MEMORY: entry->bytes = command->u.storage->bytes; return;
    case MR_PART_NONE:
    case MR_PART_HOST:
    case MR_PART_FAULT:
    case MR_PART_ACCOUNT: break;
    }
    entry->bytes = bytes_of(command);
    mr_kept_note_accesses(&t->kept, entry, command);
}

/* It stands for a command of another process, whose host is not here. */
static bool is_elsewhere(const mr_command *command) {
    return command->meeting && command->meeting->members[command->member].far;
}

static void did(mr_observer *observer, const mr_command *command, bool host_waited) {
    (void)host_waited; /* also true of calls that found nothing to wait for */
    mr_tracer *t = tracer_of(observer);
    uint64_t now = host_time(t), waited = t->machine->host.waits.total;
    uint64_t worked = t->machine->host.works.total;
    kept_entry *entry = mr_kept_add(&t->kept, command->seq);
    if (!entry) return;
    asked call = take_call(t, command->seq, now);
    describe(t, entry, command);
    entry->called = !is_elsewhere(command);
    entry->call = call.time;
    entry->returned = now;
    entry->waited = waited - call.waited;
    entry->worked = worked - call.worked;
    count_followed(command, t->machine->host.follows.total - call.followed, entry);
    t->waited = waited;
    t->worked = worked;
    t->made = t->machine->host.makes.total;
    t->last_returned = now;
    t->last_seq = command->seq;
    /* In a host function, the call that runs it has no entry yet, but may have run. */
    if (t->kept.log.count < SETTLE_AT || t->machine->host_function.running) return;
    if (!t->machine->steps.watches_writes) mr_kept_settle(&t->kept, t->kept.log.count);
    else if (t->kept.log.count >= MOST_UNDOABLE) mr_kept_settle(&t->kept, MOST_UNDOABLE / 2);
}

/* ---- runs */

static bool is_under_way(const mr_tracer *t, uint64_t seq) {
    for (unsigned i = 0; i < CALLS_UNDER_WAY; i++)
        if (t->calls[i].seq == seq) return true;
    return false;
}

static void ran(mr_observer *observer, const mr_command *command, const mr_run *run) {
    mr_tracer *t = tracer_of(observer);
    kept_run told = {command->seq, *run};
    if (!mr_vec_push(&t->kept.log, told)) {
        t->kept.out_of_memory = true;
        t->kept.log_first++;
    }
    if (command->seq >= t->first_seq || is_under_way(t, command->seq) ||
        mr_kept_find(&t->kept, command->seq))
        return;
    kept_entry *entry = mr_kept_add_earlier(&t->kept, command->seq);
    if (entry) describe(t, entry, command);
}

static void went_back(mr_observer *observer, uint64_t runs_told) {
    mr_kept_undo(&tracer_of(observer)->kept, runs_told);
}

/* ---- life */

mr_status mr_tracer_start(mr_machine *machine, size_t most_spans, mr_tracer **out_tracer) {
    *out_tracer = NULL;
    mr_tracer *t = calloc(1, sizeof *t);
    if (!t) return mr_no_memory("for a trace");
    *t = (mr_tracer){
        .observer = {.name = "tracer", .may = may, .did = did, .ran = ran, .went_back = went_back},
        .machine = machine,
        .kept = {.most = most_spans, .log_first = machine->observing.runs_told},
        .began = machine->backend->host_time(machine),
        .first_seq = machine->counts.next_seq,
        .waited = machine->host.waits.total,
        .worked = machine->host.works.total,
        .made = machine->host.makes.total};
    mr_kept_open(&t->kept, most_spans, machine->observing.runs_told);
    t->tells_runs = machine->backend->runs_start != NULL;
    mr_status status = mr_observer_add(machine, &t->observer);
    if (!status && t->tells_runs) {
        status = machine->backend->runs_start(machine, &t->how);
        if (status) mr_observer_remove(machine, &t->observer);
    }
    if (status) free(t);
    else *out_tracer = t;
    return status;
}

void mr_tracer_stop(mr_tracer *t) {
    if (!t) return;
    if (t->tells_runs) t->machine->backend->runs_stop(t->machine);
    mr_observer_remove(t->machine, &t->observer);
    mr_kept_free(&t->kept);
    free(t);
}

uint64_t mr_tracer_count(const mr_tracer *t) {
    return t->kept.added;
}

/* ---- snapshots */

static void see_nothing(void *context, const mr_pending *pending) {
    (void)context, (void)pending;
}

/* Lets the backend tell of the commands that are over. */
static void catch_up(mr_tracer *t) {
    const mr_backend *backend = t->machine->backend;
    if (t->machine->host_function.running || t->machine->lost) return;
    if (t->tells_runs) backend->runs_flush(t->machine);
    if (backend->simulator) backend->simulator->pending(t->machine, see_nothing, NULL);
}

static mr_trace_facts facts_of(const mr_tracer *t) {
    const mr_machine *machine = t->machine;
    const mr_simulator *simulator = machine->backend->simulator;
    mr_trace_facts facts = {.backend = machine->backend->name,
                            .device = machine->first_device->properties.name,
                            .began = t->began,
                            .device_count = machine->device_count,
                            .sm_count = machine->first_device->properties.sm_count,
                            .copy_engines = machine->first_device->properties.async_engine_count,
                            .how = t->how};
    if (simulator) {
        facts.model = simulator->model(t->machine);
        facts.chooser = simulator->chooser(t->machine);
        facts.exact = strcmp(facts.chooser, "timed") == 0;
        simulator->lags(t->machine, &facts.lags);
        facts.how = facts.exact
                        ? "virtual time: computed with the device model, the same in every run"
                        : "virtual time under a chooser that runs one operation after the other: "
                          "the order is what counts, not the times";
    } else if (!t->tells_runs) {
        facts.how = "only the host's calls: this backend does not tell when its device ran them";
    }
    return facts;
}

/* Times count from the first call that is in the trace; from the begin of the tracer where all of it is. */
static uint64_t begin_of(const mr_tracer *t, size_t from) {
    if (from == 0 || from >= kept_count(&t->kept)) return t->began;
    const kept_entry *entry = kept_at(&t->kept, from);
    return entry->called ? entry->call : t->began;
}

void mr_tracer_set_shown(mr_tracer *t, mr_tracer_shown *shown, const void *context) {
    t->kept.shown = shown;
    t->kept.shown_context = context;
}

mr_status mr_tracer_snapshot(mr_tracer *t, uint64_t first, const mr_tracer_hazard *hazards,
                             size_t hazard_count, mr_trace **out_trace) {
    *out_trace = NULL;
    catch_up(t);
    end_last_call_later(t);
    if (t->kept.out_of_memory)
        return mr_no_memory("for a trace of more than %zu operations", kept_count(&t->kept));
    mr_trace_facts facts = facts_of(t);
    uint64_t gone = t->kept.forgotten;
    facts.forgotten = gone > first ? gone - first : 0;
    size_t from = first > gone ? (size_t)(first - gone) : 0;
    facts.began = begin_of(t, from);
    return mr_kept_trace(&t->kept, from, facts.began, &facts, hazards, hazard_count, out_trace);
}
