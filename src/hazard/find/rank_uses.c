/* Memory from before the ranks that several ranks access, one of them to write.
 *
 * Nothing orders these accesses: the hosts of ranks run side by side (hosts.c), and the checker takes the calls in the
 * order of this run. So such memory is counted in a row of the ledger that forbids a verdict. A collective that orders
 * the two is not considered. The explorer tries the orders of the hosts, but not the orders of submission to one
 * stream: if both use one stream, a condition says so. Memory that a rank has made is refused to the others, so it
 * needs no check. */
#include "hazard/state.h"

#include <stdlib.h>

/* All bytes between the first and the last one that a rank has read, or written. */
typedef struct {
    uint64_t first, end;
} extent;

typedef struct {
    uint16_t rank;
    uint32_t stream; /* the actor's slot */
    extent read, written;
} use; /* of a rank in a stream */

struct rank_uses {
    uint32_t world; /* the uses are of these ranks */
    bool counted, in_one_stream;
    MR_VEC(use) items;
};

static void widen(extent *e, const byte_view *view) {
    if (e->first == e->end) *e = (extent){view->first, view->end};
    if (view->first < e->first) e->first = view->first;
    if (view->end > e->end) e->end = view->end;
}

static bool meets(const extent *e, const byte_view *view) {
    return e->first < view->end && view->first < e->end;
}

/* NULL: no memory, the checker is marked. */
static struct rank_uses *uses_of(checker *c, history *h) {
    if (!h->by_ranks) h->by_ranks = calloc(1, sizeof *h->by_ranks);
    if (!h->by_ranks) {
        c->out_of_memory = true;
        return NULL;
    }
    if (h->by_ranks->world != c->hosts.worlds) {
        h->by_ranks->items.count = 0;
        h->by_ranks->counted = h->by_ranks->in_one_stream = false;
        h->by_ranks->world = c->hosts.worlds;
    }
    return h->by_ranks;
}

static void count(checker *c, bool *io_counted, mr_claim_id claim) {
    if (!*io_counted) mr_claims_add(&c->totals.claims, claim);
    *io_counted = true;
}

void mr_hazard_rank_touches(checker *c, history *h, const actor *a, uint8_t access,
                            const byte_view *view) {
    uint16_t rank = c->machine->rank;
    struct rank_uses *uses = uses_of(c, h);
    use *own = NULL;
    bool writes = access & MR_WRITE;
    if (!uses) return;
    for (size_t i = 0; i < uses->items.count; i++) {
        use *u = &uses->items.items[i];
        if (u->rank == rank && u->stream == a->slot) own = u;
        if (u->rank == rank || !(meets(&u->written, view) || (writes && meets(&u->read, view))))
            continue;
        count(c, &uses->counted, MR_CLAIM_RANK_ORDER);
        if (u->stream == a->slot && a != &c->order.host_actor)
            count(c, &uses->in_one_stream, MR_CLAIM_ONE_STREAM);
    }
    if (!own && mr_vec_push(&uses->items, ((use){.rank = rank, .stream = a->slot})))
        own = &uses->items.items[uses->items.count - 1];
    if (own) widen(writes ? &own->written : &own->read, view);
    else c->out_of_memory = true;
}

void mr_hazard_rank_uses_free(struct rank_uses *uses) {
    if (!uses) return;
    mr_vec_free(&uses->items);
    free(uses);
}
