/* Groups, and the list of calls that they collect. */
#include "collective/calls.h"
#include "collective/world.h"

#include "model/capture.h"
#include "model/machine.h"

/* Keeps the memory, too: the collector may take the script's handle before the group ends. */
static void keep_tensor(mr_tensor *t) {
    if (!t) return;
    mr_tensor_retain(t);
    mr_storage_add_handle(t->storage);
}

/* No other host has run since the beginning of the group. */
void mr_collectives_cancel(mr_collectives *c, size_t first) {
    c->depth--;
    mr_collectives_drop(c, first, c->machine->rank);
}

void mr_collectives_free(mr_collectives *c) {
    if (!c) return;
    mr_world_leave(c);
    for (size_t i = 0; i < c->calls.count; i++) mr_collective_forget(&c->calls.items[i]);
    mr_vec_free(&c->calls);
    while (c->newest) mr_clique_unlink(c->newest);
    mr_error_destroy(c->not_joined);
    free(c);
}

size_t mr_collectives_begin(mr_collectives *c) {
    c->depth++;
    return c->calls.count;
}

bool mr_collectives_in_group(const mr_collectives *c) {
    return c->depth > 0;
}

bool mr_collectives_collected(const mr_collectives *c, const mr_stream *stream,
                              const mr_device *device, const char **out_name, mr_site *out_where) {
    for (size_t i = 0; c->depth && i < c->calls.count; i++) {
        const pending_call *call = &c->calls.items[i];
        const mr_stream *on = call->ask.stream;
        if (call->host != c->machine->rank || call->node) continue;
        if (stream ? on != stream : on->device != device) continue;
        *out_name = call->name;
        *out_where = call->where;
        return true;
    }
    return false;
}

mr_status mr_collectives_end(mr_collectives *c) {
    if (--c->depth) return MR_OK;
    uint32_t host = c->machine->rank;
    for (size_t i = 0; i < c->calls.count; i++)
        if (c->calls.items[i].host == host) c->calls.items[i].is_ready = true;
    mr_status status = mr_collectives_check_group(c);
    bool are_captured = false;
    if (!status) status = mr_collectives_are_captured(c, &are_captured);
    if (!status)
        status = are_captured ? mr_collectives_capture(c)
                 : c->world   ? mr_world_settle(c)
                 : c->ranks   ? mr_ranks_settle(c)
                              : mr_collectives_settle(c);
    mr_collectives_drop(c, 0, c->machine->rank);
    return status;
}

mr_status mr_collective_collect(mr_collectives *c, const pending_call *call) {
    pending_call one = *call;
    MR_TRY(mr_machine_ready(c->machine));
    if (!one.ask.stream) one.ask.stream = one.ask.comm->device->current;
    MR_TRY(mr_collective_check(&one.ask));
    if (c->world) MR_TRY(mr_world_check(&one));
    if (!mr_vec_push(&c->calls, one)) return mr_no_memory("for %s", one.name);
    mr_comm_retain(one.ask.comm);
    keep_tensor(one.ask.in);
    keep_tensor(one.ask.out);
    mr_stream_retain(one.ask.stream);
    if (one.node) mr_command_retain(one.node);
    return MR_OK;
}

mr_status mr_collective_ask(mr_collectives *c, const mr_caller *caller,
                            const mr_collective_call *call) {
    pending_call one = {.ask = *call,
                        .where = caller->where,
                        .name = caller->name ? caller->name : mr_collective_name(call),
                        .host = c->machine->rank};
    /* Commands that a function of mr.graph.auto holds back are submitted first. */
    MR_TRY(mr_capture_ask_host(caller, MR_ASK_COLLECTIVE, one.name, NULL, NULL, NULL));
    MR_TRY(mr_collective_collect(c, &one));
    if (c->depth) return MR_OK;
    c->depth = 1;
    return mr_collectives_end(c);
}
