/* Splits a clique into smaller ones: see comm.h. */
#include "collective/calls.h"

#include <string.h>

struct mr_split {
    uint32_t refs;
    uint32_t size;
    uint64_t asked; /* ranks, as bits */
    bool is_complete;
    int64_t color[MR_MEETING_MOST], key[MR_MEETING_MOST];
    mr_device *device[MR_MEETING_MOST];
    mr_comm *made[MR_MEETING_MOST]; /* one reference each, until it is taken; NULL: none */
};

void mr_split_release(mr_split *split) {
    if (!split || --split->refs) return;
    for (uint32_t k = 0; k < split->size; k++) mr_comm_release(split->made[k]);
    free(split);
}

/* The ranks with this color, sorted by key; equal keys keep their order. */
static uint32_t find_part(const mr_split *split, int64_t color, uint32_t *ranks) {
    uint32_t count = 0;
    for (uint32_t k = 0; k < split->size; k++) {
        if (split->color[k] != color) continue;
        uint32_t at = count++;
        for (; at && split->key[ranks[at - 1]] > split->key[k]; at--) ranks[at] = ranks[at - 1];
        ranks[at] = k;
    }
    return count;
}

static mr_status make_part(mr_collectives *c, mr_split *split, int64_t color) {
    uint32_t ranks[MR_MEETING_MOST], count = find_part(split, color, ranks);
    mr_clique *part;
    MR_TRY(mr_clique_new(c, count, NULL, &part));
    bool fine = true;
    for (uint32_t i = 0; i < count && fine; i++) {
        split->made[ranks[i]] = mr_comm_new(part, i, split->device[ranks[i]]);
        fine = split->made[ranks[i]] != NULL;
    }
    mr_status status = fine ? mr_clique_connect(part) : mr_no_memory("for a communicator");
    mr_clique_release(part);
    return status;
}

static mr_status complete(mr_collectives *c, mr_split *split) {
    for (uint32_t k = 0; k < split->size; k++)
        if (split->color[k] >= 0 && !split->made[k]) MR_TRY(make_part(c, split, split->color[k]));
    split->is_complete = true;
    return MR_OK;
}

static mr_status begin(mr_clique *clique) {
    if (clique->split) return MR_OK;
    clique->split = calloc(1, sizeof *clique->split);
    if (!clique->split) return mr_no_memory("for a communicator");
    clique->split->refs = 1;
    clique->split->size = clique->size;
    return MR_OK;
}

mr_status mr_comm_split(mr_collectives *c, mr_comm *comm, int64_t color, int64_t key,
                        mr_split **out_split) {
    mr_clique *clique = comm->clique;
    uint64_t own = (uint64_t)1 << comm->rank;
    char text[120];
    *out_split = NULL;
    MR_TRY(mr_comm_usable(comm, "split"));
    if (mr_collectives_have_ranks(c))
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "split: not while several ranks run: make a group with mr.dist.new_group");
    MR_TRY(begin(clique));
    mr_split *split = clique->split;
    if (split->asked & own)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "split: %s has already called it, but not all other ranks have",
                       mr_comm_describe(comm, text, sizeof text));
    split->refs++;
    split->asked |= own;
    split->color[comm->rank] = color;
    split->key[comm->rank] = key;
    split->device[comm->rank] = comm->device;
    *out_split = split;
    if (__builtin_popcountll(split->asked) < (int)clique->size) return MR_OK;
    clique->split = NULL;
    mr_split_release(split);   /* the clique's reference */
    return complete(c, split); /* the caller has its own, also after a failure */
}

bool mr_split_take(mr_split *split, uint32_t rank, mr_comm **out_comm) {
    if (!split->is_complete) return false;
    *out_comm = split->made[rank];
    split->made[rank] = NULL;
    return true;
}
