/* The random chooser: any step that is possible, all equally likely, from a seed. At a query and a host
 * access it lets the device go on for a random number of steps, which may be none. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "virtual/state.h"

typedef struct {
    mr_chooser base;
    char name[40];
    uint64_t state;
    MR_VEC(mr_step) steps;
} random_chooser;

/* splitmix64 */
static uint64_t draw(random_chooser *r) {
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* [0, count) without the bias of a remainder: the high half of the product. */
static size_t below(random_chooser *r, size_t count) {
    return (size_t)((unsigned __int128)draw(r) * count >> 64);
}

static bool offer(mr_chooser *chooser, const mr_step *step) {
    random_chooser *r = (random_chooser *)chooser;
    return mr_vec_push(&r->steps, *step);
}

static bool take(mr_chooser *chooser, const mr_moment *moment, mr_step *out_step) {
    random_chooser *r = (random_chooser *)chooser;
    if (!r->steps.count || moment->point == MR_CHOICE_SUBMIT) return false;
    bool may_decline = moment->point == MR_CHOICE_ACCESS || moment->point == MR_CHOICE_QUERY;
    if (may_decline && draw(r) & 1) return false;
    size_t i = below(r, r->steps.count);
    if (moment->point == MR_CHOICE_ACCESS &&
        r->steps.items[i].action->kind == MR_ACTION_HOST_FUNCTION)
        return false;
    *out_step = r->steps.items[i];
    r->steps.items[i] = mr_vec_pop(&r->steps);
    return true;
}

static void withdraw(mr_chooser *chooser, mr_action *action) {
    random_chooser *r = (random_chooser *)chooser;
    size_t kept = 0;
    for (size_t i = 0; i < r->steps.count; i++)
        if (r->steps.items[i].action != action) r->steps.items[kept++] = r->steps.items[i];
    r->steps.count = kept;
}

static void clear(mr_chooser *chooser) {
    ((random_chooser *)chooser)->steps.count = 0;
}

static void destroy(mr_chooser *chooser) {
    mr_vec_free(&((random_chooser *)chooser)->steps);
    free(chooser);
}

mr_status mr_virtual_chooser_random(uint64_t seed, mr_chooser **out_chooser) {
    random_chooser *r = calloc(1, sizeof *r);
    if (!r) return mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory for a chooser");
    snprintf(r->name, sizeof r->name, "random:%" PRIu64, seed);
    r->state = seed;
    r->base = (mr_chooser){.name = r->name,
                           .offer = offer,
                           .take = take,
                           .withdraw = withdraw,
                           .clear = clear,
                           .destroy = destroy};
    *out_chooser = &r->base;
    return MR_OK;
}
