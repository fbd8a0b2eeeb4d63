/* The saved state of communicators for a function that runs several times: see comm.h. */
#include "collective/calls.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    mr_comm *comm; /* one reference; NULL: gone before */
    mr_stream *last;
    mr_event *done; /* one reference each, or NULL */
    bool closed;
} kept_comm;

typedef struct {
    mr_clique *clique; /* one reference */
    uint64_t operations;
    bool aborted;
    kept_comm *comms; /* by rank */
} kept_clique;

typedef struct kept_cliques {
    MR_VEC(kept_clique) list;
} kept_cliques;

static mr_stream *same_stream(mr_stream *stream) {
    if (stream) mr_stream_retain(stream);
    return stream;
}

static mr_event *same_event(mr_event *event) {
    if (event) mr_event_retain(event);
    return event;
}

static kept_comm keep_comm(mr_comm *comm) {
    if (!comm) return (kept_comm){0};
    mr_comm_retain(comm);
    return (kept_comm){comm, same_stream(comm->last), same_event(comm->done), comm->closed};
}

static void put_comm_back(const kept_comm *kept) {
    mr_comm *comm = kept->comm;
    if (!comm) return;
    mr_stream_release(comm->last);
    mr_event_release(comm->done);
    comm->last = same_stream(kept->last);
    comm->done = same_event(kept->done);
    comm->closed = kept->closed;
}

static void release_comm(const kept_comm *kept) {
    mr_stream_release(kept->last);
    mr_event_release(kept->done);
    mr_comm_release(kept->comm);
}

static bool keep_clique(kept_cliques *kept, mr_clique *clique) {
    kept_clique one = {clique, clique->operations, clique->aborted,
                       calloc(clique->size, sizeof *one.comms)};
    if (!one.comms || !mr_vec_push(&kept->list, one)) {
        free(one.comms);
        return false;
    }
    clique->refs++;
    for (uint32_t k = 0; k < clique->size; k++) one.comms[k] = keep_comm(clique->comms[k]);
    return true;
}

mr_status mr_collectives_keep(mr_collectives *c) {
    bool fine = (c->kept = calloc(1, sizeof *c->kept)) != NULL;
    for (mr_clique *clique = c->newest; clique && fine; clique = clique->next)
        fine = keep_clique(c->kept, clique);
    if (fine) return MR_OK;
    mr_collectives_let_go(c);
    return mr_no_memory("for the state of communicators");
}

void mr_collectives_put_back(mr_collectives *c) {
    if (!c->kept) return;
    for (size_t i = 0; i < c->kept->list.count; i++) {
        const kept_clique *kept = &c->kept->list.items[i];
        kept->clique->operations = kept->operations;
        kept->clique->aborted = kept->aborted;
        for (uint32_t k = 0; k < kept->clique->size; k++) put_comm_back(&kept->comms[k]);
    }
}

void mr_collectives_let_go(mr_collectives *c) {
    kept_cliques *kept = c->kept;
    c->kept = NULL;
    for (size_t i = 0; kept && i < kept->list.count; i++) {
        const kept_clique *one = &kept->list.items[i];
        for (uint32_t k = 0; k < one->clique->size; k++) release_comm(&one->comms[k]);
        mr_clique_release(one->clique);
        free(one->comms);
    }
    if (kept) mr_vec_free(&kept->list);
    free(kept);
}
