/* The random chooser: takes any possible step with equal probability, from a seed.
 *
 * How far the device gets between two calls of the host is also a choice: no steps, some, or all possible
 * ones. If each step were a separate choice, work of many steps would never be done before an access that
 * follows at once. If each access were a separate choice, no work would still be pending at the end of a
 * loop of accesses. So there are two paces, each kept for a while: one for submissions, which lasts until
 * the host waits, and one for accesses. A device whose work is always done shows no race between streams,
 * so half of the time the device does not advance. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "virtual/chooser.h"

typedef enum { HOLD, STROLL, RUN } pace;

#define KEEP_PACE   32 /* accesses for which a pace is kept, on average */
#define LONG_STROLL 9  /* log2 of the steps of the longest one */

typedef struct {
    mr_chooser base;
    char name[40];
    struct draws {
        uint64_t state;
        pace at_submit, at_access;
        uint64_t left; /* steps that the device may still take at this choice point */
    } now;
    MR_VEC(mr_device_step) steps; /* its memory never shrinks: a copy that was made fits back */
} random_chooser;

/* splitmix64 */
static uint64_t draw(random_chooser *r) {
    uint64_t z = r->now.state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* [0, count) without the bias of a remainder: the high half of the product. */
static size_t below(random_chooser *r, size_t count) {
    return (size_t)((unsigned __int128)draw(r) * count >> 64);
}

static bool offer(mr_chooser *chooser, const mr_device_step *step) {
    random_chooser *r = (random_chooser *)chooser;
    return mr_vec_push(&r->steps, *step);
}

static pace draw_pace(random_chooser *r) {
    static const pace paces[] = {HOLD, HOLD, STROLL, RUN};
    return paces[below(r, sizeof paces / sizeof *paces)];
}

/* As many steps as the pace says; of a stroll as likely a few as many. */
static uint64_t steps_at(random_chooser *r, pace at) {
    if (at == HOLD) return 0;
    return at == RUN ? UINT64_MAX : below(r, (size_t)1 << below(r, LONG_STROLL + 1));
}

static bool may_go_on(random_chooser *r, const mr_moment *moment) {
    bool first = !moment->taken;
    switch (moment->point) {
    case MR_CHOICE_LOOK: return false;
    case MR_CHOICE_SUBMIT:
        if (first) r->now.left = steps_at(r, r->now.at_submit);
        return r->now.left-- > 0;
    case MR_CHOICE_ACCESS:
        if (first && !below(r, KEEP_PACE)) r->now.at_access = draw_pace(r);
        if (first) r->now.left = steps_at(r, r->now.at_access);
        return r->now.left-- > 0;
    case MR_CHOICE_QUERY: return draw(r) & 1;
    case MR_CHOICE_WAIT:
        if (first) r->now.at_submit = draw_pace(r);
        return true;
    case MR_CHOICE_STEP: return true;
    }
    return true;
}

static bool allowed(const mr_device_step *step, mr_choice_point point) {
    if (point > MR_CHOICE_ACCESS) return true;
    switch (step->command->kind) {
    case MR_COMMAND_HOST_FUNCTION: return false;
    case MR_COMMAND_FAULT: return point > MR_CHOICE_SUBMIT;
    case MR_COMMAND_OP:
    case MR_COMMAND_COPY:
    case MR_COMMAND_RECORD:
    case MR_COMMAND_WAIT:
    case MR_COMMAND_ALLOC:
    case MR_COMMAND_FREE: MR_HOST_LIST(MR_COMMAND_CASE) MR_ACCOUNT_LIST(MR_COMMAND_CASE) break;
    }
    return true;
}

static bool take(mr_chooser *chooser, const mr_moment *moment, mr_device_step *out_step) {
    random_chooser *r = (random_chooser *)chooser;
    if (!r->steps.count || !may_go_on(r, moment)) return false;
    size_t i = below(r, r->steps.count), looked = 0;
    while (!allowed(&r->steps.items[i], moment->point)) {
        if (++looked == r->steps.count) return false;
        i = (i + 1) % r->steps.count;
    }
    *out_step = r->steps.items[i];
    r->steps.items[i] = mr_vec_pop(&r->steps);
    return true;
}

static void withdraw(mr_chooser *chooser, const void *gone) {
    random_chooser *r = (random_chooser *)chooser;
    size_t kept = 0;
    for (size_t i = 0; i < r->steps.count; i++)
        if (r->steps.items[i].work != gone) r->steps.items[kept++] = r->steps.items[i];
    r->steps.count = kept;
}

static void clear(mr_chooser *chooser) {
    ((random_chooser *)chooser)->steps.count = 0;
}

MR_CHOOSER_STATE(random_chooser, now, steps)

mr_status mr_virtual_chooser_random(uint64_t seed, mr_chooser **out_chooser) {
    random_chooser *r = calloc(1, sizeof *r);
    if (!r) return mr_no_memory("for a chooser");
    snprintf(r->name, sizeof r->name, "random:%" PRIu64, seed);
    r->now.state = seed;
    r->now.at_submit = draw_pace(r);
    r->now.at_access = draw_pace(r);
    r->base = (mr_chooser){.name = r->name,
                           .every_submission = true,
                           .offer = offer,
                           .take = take,
                           .withdraw = withdraw,
                           .clear = clear,
                           .destroy = destroy,
                           .saved_size = saved_size,
                           .save = save,
                           .load = load};
    *out_chooser = &r->base;
    return MR_OK;
}
