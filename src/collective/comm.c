/* The life of communicators: see comm.h. */
#include "collective/calls.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/backend.h"

/* ---- cliques */

void mr_clique_unlink(mr_clique *clique) {
    if (clique->previous) clique->previous->next = clique->next;
    else clique->owner->newest = clique->next;
    if (clique->next) clique->next->previous = clique->previous;
    clique->owner = NULL;
}

static void link_clique(mr_collectives *c, mr_clique *clique) {
    clique->owner = c;
    clique->next = c->newest;
    if (c->newest) c->newest->previous = clique;
    c->newest = clique;
}

void mr_clique_release(mr_clique *clique) {
    if (!clique || --clique->refs) return;
    mr_machine *machine = clique->machine;
    if (clique->link && clique->epoch == machine->epoch)
        machine->backend->communicator_close(machine, clique->link);
    if (clique->owner) mr_clique_unlink(clique);
    mr_split_release(clique->split);
    mr_name_release(clique->name);
    free(clique->comms);
    free(clique);
}

mr_status mr_clique_new(mr_collectives *c, uint32_t size, const char *name,
                        mr_clique **out_clique) {
    mr_clique *clique = *out_clique = calloc(1, sizeof *clique);
    if (clique) clique->comms = calloc(size, sizeof(mr_comm *));
    if (!clique || !clique->comms) {
        free(clique);
        return mr_no_memory("for a communicator");
    }
    clique->refs = 1;
    clique->size = size;
    clique->machine = c->machine;
    clique->epoch = c->machine->epoch;
    clique->id = ++c->cliques;
    link_clique(c, clique);
    if (name) clique->name = mr_name_new(name, strlen(name));
    if (!name || clique->name) return MR_OK;
    mr_clique_release(clique);
    return mr_no_memory("for a communicator");
}

mr_status mr_clique_connect(mr_clique *clique) {
    const mr_backend *backend = clique->machine->backend;
    mr_device *devices[MR_MEETING_MOST];
    if (!backend->communicator_open) return MR_OK;
    for (uint32_t k = 0; k < clique->size; k++) devices[k] = clique->comms[k]->device;
    return backend->communicator_open(devices, clique->size, &clique->link);
}

/* ---- handles */

mr_comm *mr_comm_new(mr_clique *clique, uint32_t rank, mr_device *device) {
    mr_comm *comm = calloc(1, sizeof *comm);
    if (!comm) return NULL;
    *comm = (mr_comm){.refs = 1, .clique = clique, .rank = rank, .device = device};
    clique->refs++;
    clique->comms[rank] = comm;
    clique->devices[rank] = device;
    return comm;
}

void mr_comm_retain(mr_comm *comm) {
    comm->refs++;
}

void mr_comm_release(mr_comm *comm) {
    if (!comm || --comm->refs) return;
    comm->clique->comms[comm->rank] = NULL;
    mr_stream_release(comm->last);
    mr_event_release(comm->done);
    mr_clique_release(comm->clique);
    free(comm);
}

void mr_comm_close(mr_comm *comm) {
    comm->closed = true;
}

void mr_comm_reopen(mr_comm *comm) {
    comm->closed = false;
}

void mr_comm_abort(mr_comm *comm) {
    comm->clique->aborted = true;
}

mr_status mr_comm_usable(const mr_comm *comm, const char *operation) {
    char text[120];
    const mr_clique *clique = comm->clique;
    const char *why = comm->closed                              ? "is closed"
                      : clique->aborted                         ? "was aborted"
                      : clique->epoch != clique->machine->epoch ? "is from before mr.reset()"
                                                                : NULL;
    if (!why) return MR_OK;
    bool have_ranks = clique->owner && mr_collectives_have_ranks(clique->owner);
    bool is_final = have_ranks && !comm->closed && !clique->aborted;
    return mr_fail(MR_CODE_INVALID_HANDLE, "%s: %s %s: %s", operation,
                   mr_comm_describe(comm, text, sizeof text), why,
                   is_final     ? "the ranks cannot continue: start them again"
                   : have_ranks ? "make new ones with mr.dist.init and mr.dist.new_group"
                                : "make new ones with mr.nccl.comms or mr.dist.init");
}

const char *mr_clique_describe(const mr_clique *clique, char *out, size_t size) {
    if (clique->name) mr_text_format(out, size, "communicator `%s`", clique->name->text);
    else mr_text_format(out, size, "communicator #%u", clique->id);
    return out;
}

const char *mr_comm_describe(const mr_comm *comm, char *out, size_t size) {
    char title[100];
    mr_clique_describe(comm->clique, title, sizeof title);
    mr_text_format(out, size, "rank %u of %s", comm->rank, title);
    return out;
}

uint32_t mr_clique_host(const mr_clique *clique, uint32_t rank) {
    return clique->group ? clique->hosts[rank] : (uint32_t)clique->devices[rank]->index;
}

uint32_t mr_clique_rank(const mr_clique *clique, uint32_t rank) {
    return clique->machine->rank ? mr_clique_host(clique, rank) : rank;
}

void mr_ranks_tell(uint64_t ranks, mr_buffer *out) {
    mr_buffer_puts(out, ranks & (ranks - 1) ? "ranks" : "rank");
    for (const char *between = " "; ranks; ranks &= ranks - 1, between = ", ")
        mr_buffer_printf(out, "%s%d", between, __builtin_ctzll(ranks));
}

/* ---- making them */

static mr_status check_devices(const mr_collectives *c, mr_device *const *devices, uint32_t count) {
    if (!count || count > MR_MEETING_MOST)
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "comms: expected 1 to %d devices, got %u",
                       MR_MEETING_MOST, count);
    uint64_t seen = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bit = (uint64_t)1 << devices[i]->index;
        if (devices[i]->machine != c->machine)
            return mr_fail(MR_CODE_INVALID_DEVICE, "comms: device %d is of another machine",
                           devices[i]->index);
        if (seen & bit)
            return mr_fail(MR_CODE_INVALID_ARGUMENT,
                           "comms: device %d is named twice: a communicator has one rank on each "
                           "device (R67)",
                           devices[i]->index);
        seen |= bit;
    }
    return MR_OK;
}

static void release_all(mr_comm **comms, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        mr_comm_release(comms[i]);
        comms[i] = NULL;
    }
}

mr_status mr_comms_create(mr_collectives *c, mr_device *const *devices, uint32_t count,
                          const char *name, mr_comm **out_comms) {
    memset(out_comms, 0, count * sizeof *out_comms);
    MR_TRY(mr_machine_ready(c->machine));
    MR_TRY(check_devices(c, devices, count));
    mr_clique *clique;
    MR_TRY(mr_clique_new(c, count, name, &clique));
    bool fine = true;
    for (uint32_t i = 0; i < count && fine; i++)
        fine = (out_comms[i] = mr_comm_new(clique, i, devices[i])) != NULL;
    mr_status status = fine ? mr_clique_connect(clique) : mr_no_memory("for a communicator");
    mr_clique_release(clique);
    if (status) release_all(out_comms, count);
    return status;
}

mr_status mr_comms_of_processes(mr_collectives *c, mr_device *device, uint32_t count,
                                const char *name, mr_comm **out_comms) {
    mr_clique *clique;
    memset(out_comms, 0, count * sizeof *out_comms);
    MR_TRY(mr_clique_new(c, count, name, &clique));
    bool fine = true;
    for (uint32_t i = 0; i < count && fine; i++)
        fine = (out_comms[i] = mr_comm_new(clique, i, device)) != NULL;
    mr_clique_release(clique);
    if (fine) return MR_OK;
    release_all(out_comms, count);
    return mr_no_memory("for a communicator");
}

static void let_go(mr_tensor *t) {
    if (!t) return;
    mr_storage_drop_handle(t->storage);
    mr_tensor_release(t);
}

void mr_collective_forget(pending_call *call) {
    mr_command_release(call->node);
    mr_comm_release(call->ask.comm);
    let_go(call->ask.in);
    let_go(call->ask.out);
    mr_stream_release(call->ask.stream);
}

void mr_collectives_drop(mr_collectives *c, size_t first, uint32_t host) {
    size_t kept = first, count = c->calls.count;
    for (size_t i = first; i < count; i++) {
        pending_call *call = &c->calls.items[i];
        if (call->host == host) mr_collective_forget(call);
        else c->calls.items[kept++] = *call;
    }
    if (first < count) c->calls.count = kept;
}
