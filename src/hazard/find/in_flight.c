/* Collectives of two communicators that may be in flight on one device at once.
 *
 * Their kernels hold multiprocessors while they wait for their peers, so two communicators may wait for each other's
 * room for ever, unless an order on each device excludes it (R64a). An order of accesses does not tell whether there is
 * room. So such communicators are counted as a condition of the verdict, whichever other devices they have.
 *
 * Advice names two of them that are on two devices, where the devices can begin them in another order. On the device
 * D where nothing orders the two, the later one may begin first; on the other one the earlier may have begun. */
#include "base/text.h"
#include "hazard/state.h"

/* NULL: no memory. */
static in_flight *add(checker *c, uint32_t communicator) {
    in_flight new = {.communicator = communicator};
    if (mr_vec_push(&c->order.in_flight, new))
        return &c->order.in_flight.items[c->order.in_flight.count - 1];
    c->out_of_memory = true;
    return NULL;
}

static void fill(checker *c, in_flight *own, actor *t, const mr_command *command) {
    mr_hazard_actor_retain(t);
    if (own->actor) mr_hazard_actor_release(c, own->actor);
    own->actor = t;
    own->seq = command->seq;
    own->number = command->meeting->number;
    own->where = command->where;
    mr_text_copy(own->name, sizeof own->name, command->name);
    mr_text_copy(own->title, sizeof own->title, command->meeting->title);
}

static const in_flight *find(const checker *c, uint32_t communicator, int device) {
    for (size_t i = 0; i < c->order.in_flight.count; i++) {
        const in_flight *f = &c->order.in_flight.items[i];
        if (f->communicator == communicator && f->actor->device == device) return f;
    }
    return NULL;
}

/* Another device of both collectives. -1: there is none, or no member has been submitted there yet. */
static int other_device(const checker *c, const in_flight *own, const in_flight *before) {
    for (size_t i = 0; i < c->order.in_flight.count; i++) {
        const in_flight *f = &c->order.in_flight.items[i];
        bool is_same = f->communicator == own->communicator && f->number == own->number;
        if (!is_same || f == own) continue;
        const in_flight *there = find(c, before->communicator, f->actor->device);
        if (there && there->number == before->number) return f->actor->device;
    }
    return -1;
}

/* Members are submitted one after the other, so each is compared with the earlier ones. */
static void advise(checker *c, uint32_t communicator, uint64_t number) {
    for (size_t i = 0; i < c->order.in_flight.count; i++) {
        in_flight *own = &c->order.in_flight.items[i];
        if (own->communicator != communicator || own->number != number || !own->beside) continue;
        const in_flight *before = find(c, own->beside, own->actor->device);
        int device = other_device(c, own, before);
        if (device < 0) continue;
        mr_hazard_advise_in_flight(c, own, before, device);
        own->beside = 0;
    }
}

void mr_hazard_in_flight_note(checker *c, actor *t, const mr_command *command) {
    uint32_t communicator = command->meeting->communicator, beside = 0;
    in_flight *own = NULL;
    bool counted = false; /* of its communicator, on any device */
    bool far = command->meeting->members[command->member].far; /* its own process knows its order */
    for (size_t i = 0; i < c->order.in_flight.count; i++) {
        in_flight *f = &c->order.in_flight.items[i];
        counted |= f->counted && f->communicator == communicator;
        if (f->actor->device != t->device) continue;
        if (f->communicator == communicator) own = f;
        else if (!far && !mr_hazard_knows(c, t, f->actor, f->seq)) beside = f->communicator;
    }
    if (!own) own = add(c, communicator);
    if (!own) return;
    fill(c, own, t, command);
    if (beside && !counted) mr_claims_add(&c->totals.claims, MR_CLAIM_ROOM);
    own->counted |= beside != 0;
    own->beside = beside;
    if (c->advice.on) advise(c, communicator, own->number);
}
