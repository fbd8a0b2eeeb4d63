/* Rounds, and how a world begins and ends: see world.h. */
#include "collective/world_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "collective/ranks.h"
#include "model/backend.h"
#include "model/observer.h"

static uint64_t bit(uint32_t rank) {
    return (uint64_t)1 << rank;
}

/* ---- rounds */

static bool is_own(const mr_world *w, const pending_call *call) {
    return call->host == w->c->own_host;
}

static bool has_own(const mr_world *w) {
    for (size_t i = 0; i < w->c->calls.count; i++)
        if (is_own(w, &w->c->calls.items[i])) return true;
    return false;
}

/* Sends the new calls of this rank to all ranks that still run. */
static mr_status begin_round(mr_world *w) {
    mr_buffer text = {0};
    uint64_t count = 0;
    w->round++;
    for (size_t i = 0; i < w->c->calls.count; i++) {
        pending_call *call = &w->c->calls.items[i];
        if (!is_own(w, call)) continue;
        w->last[w->fabric->rank] = call->where;
        if (call->round) continue;
        call->round = w->round;
        mr_far_write(w, call, &text);
        count++;
    }
    mr_status status = MR_OK;
    for (uint32_t k = 0; k < w->fabric->size && !status; k++) {
        mr_buffer out = {0};
        if (k == w->fabric->rank || w->ended & bit(k)) continue;
        mr_message_add(&out, MESSAGE_ROUND);
        mr_message_add(&out, count);
        if (text.size) mr_buffer_add(&out, text.data, text.size);
        out.failed |= text.failed;
        status = mr_world_send(w, k, &out);
    }
    mr_buffer_free(&text);
    return status;
}

static mr_status read_round(mr_world *w, uint32_t from, message *in) {
    if (mr_message_number(in) != MESSAGE_ROUND)
        return mr_fail(MR_CODE_UNKNOWN, "a message of rank %u came out of order", from);
    mr_status status = MR_OK;
    for (uint64_t left = mr_message_number(in); left && !status; left--) {
        pending_call call;
        status = mr_far_read(w, from, in, &call);
        if (status) break;
        call.round = w->round;
        w->last[from] = call.where;
        if (mr_vec_push(&w->c->calls, call)) continue;
        mr_collective_forget(&call);
        status = mr_no_memory("for a call of rank %u", from);
    }
    return status;
}

/* The same order on all ranks: by round, then by rank. */
static void sort_calls(mr_collectives *c) {
    pending_call *calls = c->calls.items;
    for (size_t i = 1; i < c->calls.count; i++) {
        pending_call moved = calls[i];
        size_t at = i;
        for (; at && (calls[at - 1].round > moved.round ||
                      (calls[at - 1].round == moved.round && calls[at - 1].host > moved.host));
             at--)
            calls[at] = calls[at - 1];
        calls[at] = moved;
    }
}

static mr_status end_round(mr_world *w) {
    uint64_t clocks[2];
    const mr_simulator *simulator = w->c->machine->backend->simulator;
    if (simulator) simulator->clocks(w->c->machine, clocks);
    mr_status status = MR_OK;
    for (uint32_t k = 0; k < w->fabric->size && !status; k++) {
        message in;
        if (k == w->fabric->rank || w->ended & bit(k)) continue;
        status = mr_world_receive(w, k, &in);
        if (!status && in.bytes) status = read_round(w, k, &in);
        free(in.bytes);
        if (!status && w->failure) status = mr_error_copy(w->failure);
    }
    if (simulator) /* stand-ins take no time on this host's clock */
        simulator->set_clocks(w->c->machine, clocks);
    sort_calls(w->c);
    return status;
}

static mr_status run_round(mr_world *w) {
    MR_TRY(begin_round(w));
    MR_TRY(end_round(w));
    size_t before = w->c->calls.count;
    MR_TRY(mr_collectives_settle(w->c));
    if (w->failure) return mr_error_copy(w->failure);
    if (w->c->calls.count < before) return MR_OK;
    return mr_hosts_deadlock(w->c, w->fabric->size, w->ended);
}

static void drop_far_calls(mr_world *w) {
    mr_collectives *c = w->c;
    size_t kept = 0;
    for (size_t i = 0; i < c->calls.count; i++) {
        pending_call *call = &c->calls.items[i];
        if (is_own(w, call)) c->calls.items[kept++] = *call;
        else mr_collective_forget(call);
    }
    c->calls.count = kept;
}

/* Tells the other ranks of the failure, unless they find it by themselves or have told it. */
static void fail(mr_world *w, mr_status status) {
    bool is_known = w->failure || status->code == MR_CODE_COLLECTIVE_MISMATCH;
    if (!is_known && strncmp(status->message, "deadlock", 8) != 0)
        mr_world_tell_failure(w, status->code, status->message);
    if (!w->failure) w->failure = mr_error_copy(status);
    drop_far_calls(w);
    mr_world_abort(w);
}

mr_status mr_world_settle(mr_collectives *c) {
    mr_world *w = c->world;
    mr_status status = MR_OK;
    if (w->failure) return mr_error_copy(w->failure);
    while (!status && has_own(w)) status = run_round(w);
    if (status) fail(w, status);
    return status;
}

mr_status mr_world_group(mr_collectives *c, uint32_t number, const uint32_t *ranks, uint32_t count,
                         mr_comm **out_comm) {
    world_group *group;
    mr_world *w = c->world;
    if (w->failure) return mr_error_copy(w->failure);
    MR_TRY(mr_world_find_group(w, number, ranks, count, w->fabric->rank, &group));
    mr_status status = w->device ? mr_world_connect(w, group) : MR_OK;
    if (status) {
        fail(w, status);
        return status;
    }
    *out_comm = NULL;
    for (uint32_t i = 0; i < count; i++)
        if (ranks[i] == c->world->fabric->rank) *out_comm = group->comms[i];
    return MR_OK;
}

/* The explorer carries out one call many times, in different orders, and other processes would not take part. */
mr_status mr_world_check(const pending_call *call) {
    mr_machine *machine = call->ask.comm->clique->machine;
    char text[120];
    if (!call->ask.comm->clique->group || call->ask.comm->rank >= MR_MEETING_MOST ||
        mr_clique_host(call->ask.comm->clique, call->ask.comm->rank) + 1 != call->host)
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "%s: %s is not a communicator of this rank in a group of ranks: in a "
                       "process that is a rank, use mr.dist",
                       call->name, mr_comm_describe(call->ask.comm, text, sizeof text));
    if (!machine->backend->simulator ||
        strcmp(machine->backend->simulator->chooser(machine), "explorer") != 0)
        return MR_OK;
    return mr_fail(MR_CODE_NOT_SUPPORTED,
                   "%s: mr.explore cannot carry out ranks in several processes: use "
                   "millrace --ranks N",
                   call->name);
}

/* ---- clocks */

/* Stand-ins begin at a given time, so with a clock at zero none of them is late. Hosts differ only in their time. */
static void turn(mr_collectives *c, uint32_t host) {
    mr_world *w = c->world;
    const mr_simulator *simulator = c->machine->backend->simulator;
    bool is_away = host != c->own_host;
    if (!simulator || is_away == w->is_away) return;
    if (strcmp(simulator->chooser(c->machine), "timed") != 0) return;
    if (is_away) simulator->clocks(c->machine, w->clocks);
    simulator->set_clocks(c->machine, is_away ? (const uint64_t[2]){0, 0} : w->clocks);
    w->is_away = is_away;
}

static const mr_hosts processes = {.turn = turn, .meet = mr_world_meet};

/* ---- joining and leaving */

static mr_status check(const mr_collectives *c, const mr_fabric *fabric) {
    const mr_machine *machine = c->machine;
    if (fabric->size > MR_MEETING_MOST)
        return mr_fail(MR_CODE_NOT_SUPPORTED, "init: %u ranks were started, and %d is the most",
                       fabric->size, MR_MEETING_MOST);
    if (machine->backend->communicator_join) return MR_OK;
    if (!machine->backend->simulator)
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "init: ranks in several processes run on virtual GPUs and on "
                       "CUDA: " MR_MORE_DEVICES,
                       fabric->size, fabric->size);
    if (machine->device_count >= (int)fabric->size) return MR_OK;
    return mr_fail(MR_CODE_INVALID_DEVICE,
                   "init: %u ranks need as many devices, and this machine has %d: " MR_MORE_DEVICES,
                   fabric->size, machine->device_count, fabric->size, fabric->size);
}

static mr_status open_world(mr_world *w) {
    uint32_t ranks[MR_MEETING_MOST];
    world_group *group;
    mr_machine *machine = w->c->machine;
    MR_TRY(mr_machine_ready(machine));
    MR_TRY(check(w->c, w->fabric));
    if (machine->backend->communicator_join) w->device = machine->current_device;
    for (uint32_t k = 0; k < w->fabric->size; k++) ranks[k] = k;
    MR_TRY(mr_world_make_group(w, 0, ranks, w->fabric->size, &group));
    machine->first_device = w->device ? w->device : machine->devices[w->fabric->rank];
    mr_machine_set_device(machine, machine->first_device);
    w->c->own_comm = group->comms[w->fabric->rank];
    mr_observers_host_is(machine, (uint16_t)w->c->own_host);
    return w->device ? mr_world_connect(w, group) : MR_OK;
}

/* Reports the failure to all ranks, and to later calls of this one. */
static void fail_as(mr_world *w, const char *what, const char *error) {
    char text[2000];
    w->failed = true;
    mr_world_abort(w);
    if (w->failure) return;
    mr_text_format(text, sizeof text, "rank %u %s: %s", w->fabric->rank, what, error);
    mr_world_tell_failure(w, MR_CODE_NO_PEER, text);
    w->failure = mr_fail(MR_CODE_NO_PEER, "%s", text);
}

mr_status mr_world_not_joined(const mr_collectives *c) {
    return c->not_joined ? mr_error_copy(c->not_joined) : MR_OK;
}

static void note_not_joined(mr_collectives *c, mr_status status, mr_site where) {
    c->not_joined =
        mr_fail(status->code,
                "mr.dist: this process could not join the other ranks (%s:%d), and MPI joins it "
                "once: correct this and start all ranks again. The error was: %s",
                where.file ? where.file : "?", where.line, status->message);
}

mr_status mr_world_join(mr_collectives *c, mr_fabric *fabric, double timeout, mr_site where) {
    mr_world *w = c->world = calloc(1, sizeof *w);
    if (!w) {
        fabric->close(fabric, true);
        return mr_no_memory("for ranks");
    }
    *w = (mr_world){.c = c, .fabric = fabric, .timeout = timeout};
    c->own_host = fabric->rank + 1;
    c->hosts = &processes;
    mr_status status = open_world(w);
    if (!status) return MR_OK;
    note_not_joined(c, status, where);
    fail_as(w, "could not join", status->message);
    mr_world_leave(c);
    return status;
}

mr_status mr_world_separated(const mr_collectives *c) {
    return c->world->failure ? mr_error_copy(c->world->failure) : MR_OK;
}

bool mr_world_is_joined(const mr_collectives *c) {
    return c->world != NULL;
}

void mr_world_set_timeout(mr_collectives *c, double timeout) {
    c->world->timeout = timeout;
}

uint32_t mr_world_local_rank(const mr_collectives *c) {
    return c->world->fabric->local_rank;
}

void mr_world_fail(mr_collectives *c, const char *error) {
    if (c->world) fail_as(c->world, "has ended by an error", error);
}

void mr_world_leave(mr_collectives *c) {
    mr_world *w = c->world;
    if (!w) return;
    drop_far_calls(w);
    mr_world_disconnect(w);
    w->fabric->close(w->fabric, w->failed);
    for (size_t i = 0; i < w->groups.count; i++) mr_world_free_group(w->groups.items[i]);
    for (size_t i = 0; i < w->streams.count; i++) mr_stream_release(w->streams.items[i].stream);
    mr_vec_free(&w->groups);
    mr_vec_free(&w->streams);
    for (uint32_t k = 0; k < MR_MEETING_MOST; k++) {
        for (size_t i = 0; i < w->early[k].count; i++) free(w->early[k].items[i].bytes);
        mr_vec_free(&w->early[k]);
        free(w->handed[k].bytes);
    }
    if (w->nothing) mr_storage_drop_handle(w->nothing->storage);
    mr_tensor_release(w->nothing);
    mr_error_destroy(w->failure);
    free(w);
    c->world = NULL;
    c->hosts = NULL;
    c->own_host = 0;
    c->own_comm = NULL;
}
