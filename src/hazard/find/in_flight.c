/* Collectives of two communicators that may be in flight on one device at once.
 *
 * Their kernels hold multiprocessors while they wait for their peers, so two communicators may wait for each other's
 * room for ever, unless an order on each device excludes it (R64a). Whether there is room is nothing that an order of
 * accesses tells: such communicators are counted, as a condition of the verdict. */
#include "hazard/state.h"

void mr_hazard_in_flight_note(checker *c, actor *t, const mr_command *command) {
    in_flight *own = NULL;
    bool beside = false, counted = false; /* of its communicator, on any device */
    for (size_t i = 0; i < c->order.in_flight.count; i++) {
        in_flight *f = &c->order.in_flight.items[i];
        counted |= f->counted && f->communicator == command->meeting->communicator;
        if (f->actor->device != t->device) continue;
        if (f->communicator == command->meeting->communicator) own = f;
        else beside |= !mr_hazard_knows(c, t, f->actor, f->seq);
    }
    if (!own) {
        in_flight new = {.communicator = command->meeting->communicator};
        if (!mr_vec_push(&c->order.in_flight, new)) {
            c->out_of_memory = true;
            return;
        }
        own = &c->order.in_flight.items[c->order.in_flight.count - 1];
    }
    mr_hazard_actor_retain(t);
    if (own->actor) mr_hazard_actor_release(c, own->actor);
    own->actor = t;
    own->seq = command->seq;
    if (beside && !counted) mr_claims_add(&c->totals.claims, MR_CLAIM_ROOM);
    own->counted |= beside;
}
