/* Questions to the checker that change nothing: whether a stream may read a tensor now.
 *
 * Easiest to break: an answer must agree with check.c's verdict on the next command of that stream. So it updates the
 * order as check.c does, and then restores it. */
#include "hazard/state.h"

static const entry *find_race(checker *c, history *h, const actor *a, const byte_view *view) {
    const entry *race = NULL;
    mr_hazard_history_search(c, h, view);
    for (size_t i = 0; i < c->histories.found.count && !race; i++) {
        const entry *e = c->histories.found.items[i];
        if (!(e->access & MR_WRITE) || e->advisory || mr_hazard_knows(c, a, e->actor, e->seq))
            continue;
        if (mr_hazard_view_overlap(&e->view, view)) race = e;
    }
    c->histories.found.count = 0;
    return race;
}

static const entry *race_of_stream(checker *c, history *h, mr_stream *stream,
                                   const byte_view *view) {
    order_before before;
    actor *a = mr_hazard_actor_of(c, stream);
    const mr_command next = {.kind = MR_COMMAND_OP,
                             .seq = c->machine->counts.next_seq,
                             .machine = c->machine,
                             .stream = stream};
    if (!a) return NULL;
    mr_hazard_order_save(c, a, &next, &before);
    mr_hazard_order_before(c, a, &next);
    const entry *race = find_race(c, h, a, view);
    mr_hazard_order_restore(c, &before);
    return race;
}

bool mr_hazard_can_read(mr_hazard *c, const mr_tensor *tensor, mr_stream *stream,
                        mr_hazard_writer *out_writer) {
    byte_view view;
    history *h = tensor->storage->observed;
    if (!h || !mr_hazard_view_of(tensor, &view)) return true;
    const entry *race =
        stream ? race_of_stream(c, h, stream, &view) : find_race(c, h, &c->order.host_actor, &view);
    if (race) *out_writer = (mr_hazard_writer){race->op, race->where, race->seq};
    return !race;
}
