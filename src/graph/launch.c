/* Executables: a launch submits the commands of the lowered graph (lower.c), the first lane on the stream of the
 * launch. So the launch comes after that stream's earlier work and before its later work. R42: it also waits for the
 * executable's last launch.
 *
 * Easiest to break: a launch is one call to the user, so all that can be checked is checked before the first
 * command. The hazard checker is the exception: its verdict on a node rests on the nodes before, so it may refuse a
 * node after others were submitted. Then the launch goes on without nodes, so that its lanes join and it is recorded:
 * later work, and the next launch, come after the nodes that were submitted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "graph/state.h"
#include "model/backend.h"
#include "model/given.h"
#include "ops/params.h"

static const char launch_name[] = "launch";

/* ---- coming and going */

static mr_status fill(mr_executable *x) {
    const mr_graph *graph = x->graph;
    MR_TRY(mr_graph_lower(graph, &x->lowered));
    MR_TRY(mr_executable_fill_commands(x));
    x->enabled = malloc(graph->nodes.count + 1);
    x->lanes = calloc(x->lowered.lanes.count + 1, sizeof *x->lanes);
    x->events = calloc(x->lowered.events + 1, sizeof *x->events);
    if (!x->enabled || !x->lanes || !x->events) return mr_no_memory("for an executable graph");
    for (uint32_t i = 0; i < graph->nodes.count; i++) {
        x->enabled[i] = !graph->nodes.items[i].off;
        x->has_events |= mr_command_has(x->commands[i], MR_PART_EVENT);
    }
    return MR_OK;
}

static mr_status check_instantiate(const mr_caller *caller, const mr_graph *graph) {
    MR_TRY(mr_machine_ready(caller->machine));
    if (graph->epoch != caller->machine->epoch)
        return mr_fail(MR_CODE_INVALID_HANDLE,
                       "the graph was captured before mr.reset(): capture it again");
    if (!graph->memory.count || !graph->executables) return MR_OK;
    return mr_fail(
        MR_CODE_NOT_SUPPORTED,
        "instantiate: the graph allocates memory, and so it has one executable at a time "
        "(R44): both would write to the same addresses. Allocate the tensors before the "
        "capture, or capture a second graph");
}

mr_status mr_graph_instantiate(const mr_caller *caller, mr_graph *graph,
                               mr_executable **out_executable) {
    *out_executable = NULL;
    MR_TRY(check_instantiate(caller, graph));
    mr_executable *x = calloc(1, sizeof *x);
    if (!x) return mr_no_memory("for an executable graph");
    x->refs = 1;
    x->graph = graph;
    mr_graph_retain(graph);
    graph->executables++;
    mr_status status = fill(x);
    if (status) mr_executable_release(x);
    else *out_executable = x;
    return status;
}

void mr_executable_retain(mr_executable *executable) {
    executable->refs++;
}

static void drop_lanes(mr_executable *x) {
    for (size_t i = 1; i < x->lowered.lanes.count && x->lanes; i++) {
        mr_stream_release(x->lanes[i]);
        x->lanes[i] = NULL;
    }
}

/* The memory of a graph is freed in the order of its own stream, after the last launch. */
static void leave_graph(const mr_executable *x) {
    mr_graph *graph = x->graph;
    mr_caller nobody = {.machine = graph->machine};
    graph->executables--;
    if (x->launched_on) mr_graph_note_use(graph, x->launched_on);
    if (x->launched_on && graph->memory_stream && graph->epoch == graph->machine->epoch)
        mr_error_destroy(mr_stream_wait_event(&nobody, graph->memory_stream, x->done));
    mr_graph_release(graph);
}

static void empty(mr_executable *x) {
    drop_lanes(x);
    for (uint32_t i = 0; i < x->lowered.events && x->events; i++) mr_event_release(x->events[i]);
    free(x->lanes);
    free(x->events);
    mr_executable_free_commands(x);
    free(x->enabled);
    mr_lowered_free(&x->lowered);
    leave_graph(x);
}

void mr_executable_release(mr_executable *x) {
    if (!x || --x->refs) return;
    mr_executable_drop_built(x);
    empty(x);
    mr_event_release(x->done);
    mr_stream_release(x->launched_on);
    free(x);
}

mr_graph *mr_executable_graph(const mr_executable *executable) {
    return executable->graph;
}

const bool *mr_executable_enabled(const mr_executable *executable) {
    return executable->enabled;
}

uint64_t mr_executable_changes(const mr_executable *executable) {
    return executable->changes;
}

bool mr_executable_holds_memory(const mr_executable *executable) {
    return executable->memory_in_use;
}

uint32_t mr_executable_lanes(const mr_executable *executable) {
    return (uint32_t)executable->lowered.lanes.count;
}

const char *mr_executable_rebuilt(const mr_executable *executable) {
    return executable->rebuilt[0] ? executable->rebuilt : NULL;
}

const char *mr_executable_expanded(const mr_executable *executable) {
    return executable->expanded[0] ? executable->expanded : NULL;
}

/* ---- R43 */

mr_status mr_executable_update(const mr_caller *caller, mr_executable *x, mr_graph *graph) {
    char why[400];
    if (graph == x->graph) return MR_OK;
    MR_TRY(check_instantiate(caller, graph));
    if (!mr_graph_same(x->graph, graph, why, sizeof why))
        return mr_capture_error(MR_CODE_GRAPH_UPDATE, "update", why, (mr_site){0},
                                "Instantiate the new graph instead.");
    mr_executable fresh = {.graph = graph};
    mr_graph_retain(graph);
    graph->executables++;
    mr_status status = fill(&fresh);
    if (status) {
        empty(&fresh);
        return status;
    }
    memcpy(fresh.enabled, x->enabled, graph->nodes.count);
    /* The memory of the old graph is freed after the launches so far. */
    empty(x);
    x->graph = fresh.graph;
    x->commands = fresh.commands;
    x->enabled = fresh.enabled;
    x->lanes = fresh.lanes;
    x->events = fresh.events;
    x->lowered = fresh.lowered;
    x->has_events = fresh.has_events;
    executable_changed(x);
    x->memory_in_use = false; /* the first launch waits for the new graph's memory */
    return MR_OK;
}

mr_status mr_executable_enable(mr_executable *x, uint32_t i, bool on) {
    if (i >= x->graph->nodes.count)
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "enable: the graph has %zu nodes",
                       x->graph->nodes.count);
    const mr_command *command = x->commands[i];
    if (mr_command_has(command, MR_PART_MEMORY))
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "enable: node %u (%s) is memory, which is always there", i + 1,
                       command->name);
    if (x->enabled[i] != on) {
        x->changes++;
        mr_executable_drop_built(x);
    }
    x->enabled[i] = on;
    return MR_OK;
}

/* ---- before a launch */

static mr_status freed_operand(const mr_command *command, const mr_storage *storage) {
    char name[100] = "a tensor", freed[140] = "";
    if (storage->name) snprintf(name, sizeof name, "`%.80s`", mr_name_text(storage->name));
    if (storage->freed_where.file)
        snprintf(freed, sizeof freed, " at %.100s:%d", storage->freed_where.file,
                 storage->freed_where.line);
    return mr_fail(
        MR_CODE_INVALID_HANDLE,
        "launch: node `%.60s`, captured at %.100s:%d, uses %s, which was freed%s: keep it "
        "until the last launch, or capture again",
        command->name, command->where.file ? command->where.file : "?", command->where.line, name,
        freed);
}

/* R45. The backend's graph has the event's handle. */
static mr_status check_event(const mr_command *command) {
    const mr_event *event = command->u.event.event;
    char name[100];
    if (!event->closed) return MR_OK;
    return mr_fail(
        MR_CODE_INVALID_HANDLE,
        "launch: node `%.60s`, captured at %.100s:%d, is for %s, which is closed: keep it "
        "until the last launch, or capture again",
        command->name, command->where.file ? command->where.file : "?", command->where.line,
        mr_event_describe(event, name, sizeof name));
}

static mr_status check_operands(const mr_executable *x) {
    const mr_graph *graph = x->graph;
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const mr_command *command = x->commands[i];
        if (!x->enabled[i]) continue;
        if (mr_command_has(command, MR_PART_EVENT)) MR_TRY(check_event(command));
        for (uint32_t k = 0; k < command->operand_count; k++) {
            const mr_tensor *t = command->operands[k].tensor;
            bool is_own = t->storage->graph == graph || mr_graph_pool_is_own(graph, t);
            if (t->storage->freed && !is_own) return freed_operand(command, t->storage);
            MR_TRY(mr_graph_pool_check_operand(graph, command, t));
        }
    }
    return MR_OK;
}

/* R44: memory that the last launch allocated and no free has released. */
static mr_status check_memory(const mr_executable *x) {
    const mr_graph *graph = x->graph;
    if (!graph->keeps_memory || !x->memory_in_use) return MR_OK;
    for (size_t i = 0; i < graph->memory.count; i++) {
        const graph_memory *m = &graph->memory.items[i];
        if (m->freed || m->storage->freed) continue;
        return mr_fail(
            MR_CODE_INVALID_ARGUMENT,
            "launch: %s, which the graph allocates (%s:%d), has not been freed since the "
            "last launch (cudaErrorInvalidValue, 1): free it, in the graph or after the "
            "launch, or capture with auto_free=true",
            m->storage->name ? mr_name_text(m->storage->name) : "a tensor",
            m->storage->made.file ? m->storage->made.file : "?", m->storage->made.line);
    }
    return MR_OK;
}

static mr_status check_launch(const mr_caller *caller, const mr_executable *x,
                              const mr_stream *stream) {
    char on[100];
    MR_TRY(mr_machine_ready(caller->machine));
    MR_TRY(mr_stream_usable(stream));
    if (x->graph->epoch != caller->machine->epoch)
        return mr_fail(MR_CODE_INVALID_HANDLE,
                       "launch: the graph was captured before mr.reset(): capture it again");
    if (stream->device != x->graph->device)
        return mr_fail(MR_CODE_INVALID_HANDLE,
                       "launch: the graph is of device %d, and %s is on device %d",
                       x->graph->device->index, mr_stream_describe(stream, on, sizeof on),
                       stream->device->index);
    MR_TRY(mr_graph_pool_check_launch(x->graph));
    MR_TRY(check_operands(x));
    return stream->capture ? MR_OK : check_memory(x);
}

/* Streams and events of the lanes are made by the first launch. R42: all nodes have the priority of the launch's
 * stream. */
static mr_status make_objects(const mr_caller *caller, mr_executable *x, int priority) {
    const lowered *l = &x->lowered;
    char name[64];
    if (l->lanes.count > 1 && x->lanes[1] && x->lanes[1]->priority != priority) drop_lanes(x);
    for (size_t i = 1; i < l->lanes.count; i++) {
        mr_stream_options options = {.nonblocking = true, .priority = priority, .name = name};
        snprintf(name, sizeof name, "graph %llu, lane %zu",
                 (unsigned long long)mr_graph_number(x->graph), i + 1);
        if (!x->lanes[i])
            MR_TRY(mr_stream_create(caller, l->lanes.items[i], &options, &x->lanes[i]));
    }
    mr_event_options options = {0};
    for (uint32_t i = 0; i < l->events && l->lanes.count > 1; i++)
        if (!x->events[i]) MR_TRY(mr_event_create(caller, &options, &x->events[i]));
    if (x->done) return MR_OK;
    return mr_event_create(caller, &options, &x->done);
}

/* ---- the commands of a launch */

typedef struct {
    const mr_caller *caller; /* of the launch */
    mr_executable *x;
    mr_stream *stream;
    uint64_t first_draw;
    bool begun;     /* an operation was submitted */
    uint32_t nodes; /* submitted so far; those that observers were only told of do not count */
    /* the calls of a group of collectives so far; its last call submits them all */
    MR_VEC(mr_launched_call) calls;
    bool native; /* the backend carries out all of them at once: observers are only told */
} launching;

/* Takes over the reference. */
static mr_status submit(const launching *w, mr_command *command) {
    if (!w->native) return mr_command_submit(command);
    mr_status status = mr_command_may(command);
    if (!status) {
        command->stream->last_seq = command->seq;
        mr_command_did(command);
    }
    mr_command_release(command);
    return status;
}

/* A launch of a host function needs its context, which the node owns. */
static mr_status submit_node(launching *w, uint32_t i, mr_stream *stream) {
    const mr_command *captured = w->x->commands[i];
    mr_caller at = {
        .machine = w->caller->machine, .where = captured->where, .in_place = w->caller->in_place};
    mr_command *command;
    MR_TRY(mr_command_create(&at, captured->kind, stream, captured->name, captured->operand_count,
                             &command));
    command->name = captured->name;
    command->own_name = captured->own_name ? mr_name_retain(captured->own_name) : NULL;
    command->launched = w->caller->where;
    command->launch = w->begun ? MR_LAUNCH_REST : MR_LAUNCH_FIRST;
    command->node = captured;
    mr_command_retain(captured);
    for (uint32_t k = 0; k < captured->operand_count; k++)
        mr_command_set_operand(command, k, captured->operands[k].tensor,
                               captured->operands[k].access);
    command->u = captured->u;
    if (captured->kind == MR_COMMAND_OP && captured->u.op.row->family->draws) {
        uint64_t number = mr_params_of(captured).random.offset;
        mr_params_set_draw(command, w->caller->machine->random.seed, w->first_draw + number);
    }
    w->begun = true;
    return submit(w, command);
}

static mr_status submit_event(const launching *w, const mr_caller *at, mr_command_id kind,
                              mr_event *event, mr_stream *stream, const char *name) {
    mr_command *command;
    MR_TRY(mr_command_create(at, kind, stream, name, 0, &command));
    mr_event_retain(event);
    command->u.event.event = event;
    command->u.event.record_seq = kind == MR_COMMAND_RECORD ? command->seq : event->record_seq;
    command->launch = event == w->x->done ? MR_LAUNCH_NONE : MR_LAUNCH_REST;
    command->launched = w->caller->where;
    mr_command_retain(command);
    mr_status status = submit(w, command);
    if (!status && kind == MR_COMMAND_RECORD) mr_event_recorded(event, command);
    mr_command_release(command);
    return status;
}

/* Submits a record or wait of the launch's own. */
static mr_status submit_order(const launching *w, mr_command_id kind, mr_event *event,
                              mr_stream *stream) {
    return submit_event(w, w->caller, kind, event, stream, launch_name);
}

/* R45: users of the event outside the graph wait for this record. */
static mr_status submit_external(const launching *w, const mr_command *captured,
                                 mr_stream *stream) {
    mr_event *event = captured->u.event.event;
    mr_caller at = {
        .machine = w->caller->machine, .where = captured->where, .in_place = w->caller->in_place};
    return submit_event(w, &at, captured->kind, event, stream, captured->name);
}

/* Whether the steps are submitted. In a native launch they are for observers only, except calls and external events. */
static bool is_told(const launching *w) {
    return !w->native || w->caller->machine->observing.observers.count;
}

/* A disabled call is left out of its group. */
static mr_status submit_call(launching *w, uint32_t i, mr_stream *stream) {
    const mr_command *node = w->x->commands[i];
    const mr_captured_call *call = captured_call_of(node);
    bool is_made = mr_executable_carries_out(w->x, i);
    if (is_made && !mr_vec_push(&w->calls, ((mr_launched_call){node, stream})))
        return mr_no_memory("to launch a graph");
    if (call->place + 1 < call->count || !w->calls.count) return MR_OK;
    uint32_t count = (uint32_t)w->calls.count;
    w->calls.count = 0;
    MR_TRY(call->launch(w->caller, w->calls.items, count, w->begun));
    w->begun = true;
    w->nodes += count;
    return MR_OK;
}

static mr_status submit_other(launching *w, uint32_t i, mr_stream *stream) {
    const mr_command *captured = w->x->commands[i];
    uint64_t before = stream->last_seq;
    mr_status status = MR_OK;
    if (mr_command_has(captured, MR_PART_EVENT)) status = submit_external(w, captured, stream);
    else if (is_told(w)) status = submit_node(w, i, stream);
    /* An earlier error may be returned with a node that was submitted. */
    if (!w->native && stream->last_seq != before) w->nodes++;
    return status;
}

static mr_status submit_step(launching *w, const step *s) {
    mr_executable *x = w->x;
    mr_stream *stream = s->lane ? x->lanes[s->lane] : w->stream;
    if (s->kind != STEP_NODE && !is_told(w)) return MR_OK;
    if (s->kind == STEP_RECORD) return submit_order(w, MR_COMMAND_RECORD, x->events[s->at], stream);
    if (s->kind == STEP_WAIT) return submit_order(w, MR_COMMAND_WAIT, x->events[s->at], stream);
    const mr_command *captured = x->commands[s->at];
    if (captured_call_of(captured)) return submit_call(w, s->at, stream);
    if (!mr_executable_carries_out(x, s->at)) return MR_OK;
    return submit_other(w, s->at, stream);
}

/* R42, R44: the launch comes after the executable's last one, and after its memory was allocated. */
static mr_status submit_waits(const launching *w) {
    const mr_executable *x = w->x;
    const mr_graph *graph = x->graph;
    if (graph->memory_ready && !x->memory_in_use)
        MR_TRY(submit_order(w, MR_COMMAND_WAIT, graph->memory_ready, w->stream));
    if (x->launched_on && x->launched_on != w->stream)
        MR_TRY(submit_order(w, MR_COMMAND_WAIT, x->done, w->stream));
    return MR_OK;
}

static void note_launch(const launching *w) {
    mr_graph *graph = w->x->graph;
    mr_stream_retain(w->stream);
    mr_stream_release(w->x->launched_on);
    w->x->launched_on = w->stream;
    w->x->launches++;
    w->x->memory_in_use = graph->memory.count != 0;
    for (size_t i = 0; i < graph->memory.count; i++) {
        const graph_memory *m = &graph->memory.items[i];
        mr_graph_pool_launched(graph, m->storage);
        if (!m->freed || graph->pool) m->storage->freed = m->freed;
    }
}

static mr_status first_of(mr_status first, mr_status second) {
    if (!first) return second;
    mr_error_destroy(second);
    return first;
}

/* After an error, only the order of the lanes. */
static mr_status submit_steps(launching *w) {
    const lowered *l = &w->x->lowered;
    mr_status status = MR_OK;
    for (size_t i = 0; i < l->steps.count; i++)
        if (!status || l->steps.items[i].kind != STEP_NODE)
            status = first_of(status, submit_step(w, &l->steps.items[i]));
    return status;
}

static mr_status launch_native(launching *w) {
    mr_machine *machine = w->caller->machine;
    w->native = true;
    bool told = machine->observing.observers.count || w->x->has_events;
    mr_status status = told ? submit_steps(w) : MR_OK;
    w->native = false;
    if (status) return status;
    mr_graph_launch launch = {
        .seq = machine->counts.next_seq++, .seed = machine->random.seed, .offset = w->first_draw};
    return machine->backend->graph_launch(w->x->built, w->stream, &launch);
}

static mr_status submit_all(launching *w) {
    mr_executable *x = w->x;
    MR_TRY(submit_waits(w));
    mr_status status = mr_executable_is_native(x, w->stream) ? launch_native(w) : submit_steps(w);
    return first_of(status, submit_order(w, MR_COMMAND_RECORD, x->done, w->stream));
}

/* The checker has refused a node. The nodes before it were submitted, and the error tells it. */
static mr_status tell_part(const launching *w, mr_status error) {
    if (!error || error->code != MR_CODE_HAZARD || !w->nodes) return error;
    return mr_error_reword(error,
                           "%s\nThe launch was carried out in part: %u of its nodes %s submitted.",
                           error->message, w->nodes, w->nodes == 1 ? "was" : "were");
}

mr_status mr_executable_launch(const mr_caller *caller, mr_executable *x, mr_stream *stream) {
    mr_machine *machine = caller->machine;
    MR_TRY(stop_holding(caller, launch_name));
    MR_TRY(check_launch(caller, x, stream));
    if (stream->capture) return mr_capture_child(caller, stream, x);
    MR_TRY(make_objects(caller, x, stream->priority));
    MR_TRY(mr_stream_usable(stream)); /* making them may have run a finalizer */
    launching w = {.caller = caller, .x = x, .stream = stream, .first_draw = machine->random.draws};
    machine->random.draws += x->graph->draws;
    mr_executable_retain(x); /* a host function that runs meanwhile may drop it */
    mr_status status = tell_part(&w, submit_all(&w));
    mr_vec_free(&w.calls);
    note_launch(&w);
    if (!status && machine->launch_blocking)
        status = mr_stream_synchronize_as(caller, stream, launch_name);
    mr_executable_release(x);
    return status;
}
