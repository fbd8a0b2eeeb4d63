/* Processes with real devices: the beginning and end of their communicators, and the watch over their collectives
 * (world.h).
 *
 * All ranks of the world make a group at the same time: bind/ranks/dist.c lets them meet first. Then they exchange the
 * ranks of the group, and the first of these makes the id by which the backend connects them. */
#include "collective/world_parts.h"

#include <string.h>

#include "model/backend.h"

#define WORDS (MR_COMMUNICATOR_ID / sizeof(uint64_t))

static mr_clique *clique_of(const world_group *group) {
    return group->comms[0]->clique;
}

static bool has_link(const mr_world *w, const mr_clique *clique) {
    return w->device && clique->link && clique->epoch == w->c->machine->epoch;
}

/* ---- beginning */

static mr_status tell_group(mr_world *w, const world_group *group, const uint64_t *id) {
    mr_status status = MR_OK;
    for (uint32_t k = 0; k < w->fabric->size && !status; k++) {
        mr_buffer out = {0};
        if (k == w->fabric->rank || (w->ended >> k & 1)) continue;
        mr_message_add(&out, MESSAGE_GROUP);
        mr_message_add(&out, group->number);
        mr_message_add(&out, group->size);
        for (uint32_t i = 0; i < group->size; i++) mr_message_add(&out, group->ranks[i]);
        for (size_t i = 0; i < WORDS; i++) mr_message_add(&out, id[i]);
        status = mr_world_send(w, k, &out);
    }
    return status;
}

/* `id` is set by the first rank of the group. */
static mr_status read_group(mr_world *w, const world_group *group, uint32_t from, message *in,
                            uint64_t *id) {
    uint32_t ranks[MR_MEETING_MOST];
    bool fine = mr_message_number(in) == MESSAGE_GROUP && mr_message_number(in) == group->number;
    uint64_t size = mr_message_number(in);
    fine = fine && size <= MR_MEETING_MOST;
    for (uint64_t i = 0; i < size && fine; i++) ranks[i] = (uint32_t)mr_message_number(in);
    for (size_t i = 0; i < WORDS && fine; i++) {
        uint64_t word = mr_message_number(in);
        if (from == group->ranks[0]) id[i] = word;
    }
    if (!fine || !in->fine)
        return mr_fail(MR_CODE_UNKNOWN, "a message of rank %u came out of order", from);
    world_group *same;
    return mr_world_find_group(w, group->number, ranks, (uint32_t)size, from, &same);
}

static mr_status hear_groups(mr_world *w, const world_group *group, uint64_t *id) {
    for (uint32_t k = 0; k < w->fabric->size; k++) {
        message in;
        if (k == w->fabric->rank) continue;
        MR_TRY(mr_world_receive(w, k, &in));
        if (!in.bytes && w->failure) return mr_error_copy(w->failure);
        if (!in.bytes)
            return mr_fail(MR_CODE_NO_PEER, "new_group: rank %u has ended: all ranks make a group",
                           k);
        mr_status status = read_group(w, group, k, &in, id);
        free(in.bytes);
        MR_TRY(status);
    }
    return MR_OK;
}

/* ---- watching */

static bool is_pending(mr_world *w, const mr_comm *comm) {
    bool done = true;
    if (comm && comm->done && has_link(w, comm->clique))
        mr_error_destroy(w->c->machine->backend->event_query(comm->done, &done));
    return !done;
}

/* A communicator of this rank whose last operation has not ended. NULL: there is none. */
static const mr_comm *find_pending(mr_world *w) {
    for (size_t i = 0; i < w->groups.count; i++) {
        const world_group *group = w->groups.items[i];
        for (uint32_t k = 0; k < group->size; k++)
            if (group->ranks[k] == w->fabric->rank && is_pending(w, group->comms[k]))
                return group->comms[k];
    }
    return NULL;
}

static mr_status too_late(const mr_world *w, const mr_comm *comm, double waited) {
    char title[120];
    mr_site last = w->last[w->fabric->rank];
    return mr_fail(MR_CODE_NO_PEER,
                   "time-out: rank %u has waited for its device for %.3g s, and the last operation "
                   "of %s has not ended; the last call of the rank was at %.100s:%d",
                   w->fabric->rank, waited, mr_clique_describe(comm->clique, title, sizeof title),
                   last.file ? last.file : "?", last.line);
}

/* A wait that is not blocked by a collective continues. */
static mr_status watch(void *context, double waited) {
    mr_world *w = context;
    const mr_comm *pending = find_pending(w);
    if (!pending) return MR_OK;
    mr_world_look(w);
    if (!w->failure && w->timeout > 0 && waited > w->timeout) {
        w->failure = too_late(w, pending, waited);
        mr_world_tell_failure(w, w->failure->code, w->failure->message);
    }
    if (!w->failure) return MR_OK;
    mr_world_abort(w);
    return mr_error_copy(w->failure);
}

mr_status mr_world_connect(mr_world *w, world_group *group) {
    const mr_backend *backend = w->c->machine->backend;
    uint64_t id[WORDS] = {0};
    mr_membership own = {.id = (const char *)id, .size = group->size, .watch = watch, .context = w};
    if (clique_of(group)->link) return MR_OK;
    if (group->ranks[0] == w->fabric->rank)
        MR_TRY(backend->communicator_id(w->c->machine, (char *)id));
    MR_TRY(tell_group(w, group, id));
    MR_TRY(hear_groups(w, group, id));
    while (own.rank < group->size && group->ranks[own.rank] != w->fabric->rank) own.rank++;
    if (own.rank == group->size) return MR_OK;
    return backend->communicator_join(w->device, &own, &clique_of(group)->link);
}

/* ---- ending */

void mr_world_abort(mr_world *w) {
    for (size_t i = 0; i < w->groups.count; i++) {
        const mr_clique *clique = clique_of(w->groups.items[i]);
        if (has_link(w, clique))
            w->c->machine->backend->communicator_abort(w->c->machine, clique->link);
    }
}

void mr_world_disconnect(mr_world *w) {
    for (size_t i = 0; i < w->groups.count; i++) {
        mr_clique *clique = clique_of(w->groups.items[i]);
        if (has_link(w, clique))
            w->c->machine->backend->communicator_close(w->c->machine, clique->link);
        clique->link = NULL;
    }
}
