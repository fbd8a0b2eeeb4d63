/* A search that is shared by processes: see share.h. */
#include "explore/share.h"

#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "ops/ids.h"
#include "ops/op.h"

#define FIRST_SECONDS 0.1  /* alone */
#define EACH_SECONDS  0.01 /* of a subtree, about */
#define LEAST_SIZE    64   /* schedules of a subtree, about */
#define MOST_BEGUN    20   /* times that workers begin in one search */
#define MOST_BACK     4    /* subtrees given back before workers begin anew */

/* ---- whether, and how */

/* A kernel of the script counts its launches in this process (k:profile). */
static bool has_kernels(const branch *b) {
    for (uint32_t i = 0; i < b->count; i++) {
        mr_program_item it = mr_program_item_at(b->program, i);
        if (it.row && it.row->id == MR_OP_kernel) return true;
    }
    return false;
}

unsigned share_most_workers(const explorer *e) {
    unsigned count = e->options.workers ? e->options.workers : (unsigned)mr_parallel_threads();
    return count < MOST_WORKERS ? count : MOST_WORKERS;
}

bool share_may(const search *s) {
    const explorer *e = s->e;
    const mr_explore_options *o = &e->options;
    return share_most_workers(e) > 1 && e->shares < MOST_BEGUN && !s->depth && !s->random &&
           !e->estimating && !e->again && !e->apart && e->overtaking < 0 && e->deviations <= 0 &&
           !o->pair[0].where.file && !turns_are_open(s->b) && !s->b->has_functions &&
           !has_kernels(s->b);
}

/* Whether the function seems to have been called for all values: it has not run for a while. */
static bool is_quiet(search *s) {
    const mr_explore_result *r = s->e->result;
    search_shape *shape = &s->shape;
    if (shape->runs != r->runs) {
        shape->runs = r->runs;
        shape->quiet_from = r->schedules;
    }
    return r->schedules - shape->quiet_from >= (r->schedules - shape->from) / 2;
}

/* The largest depth whose subtrees have that size. The largest depths of all are ignored, since few paths reach
 * them. */
static uint32_t find_depth(const search *s, double least) {
    double schedules = (double)(s->e->result->schedules - s->shape.from);
    uint32_t depth = 0;
    while (depth + 1 < SHARE_DEPTHS && schedules / (s->shape.choices[depth + 1] + 1) >= least)
        depth++;
    return depth;
}

static mr_status make_share(search *s, uint32_t depth) {
    sharing *h = calloc(1, sizeof *h);
    if (!h) return mr_no_memory("to explore schedules");
    *h = (sharing){.search = s, .depth = depth, .inside = s->frames.count > depth};
    s->e->share = h;
    return MR_OK;
}

mr_status share_choose(search *s, double seconds) {
    const explorer *e = s->e;
    if (e->options.shared_depth) return make_share(s, e->options.shared_depth - 1);
    double tried = (double)(e->result->schedules - s->shape.from);
    if (!is_quiet(s) || seconds < FIRST_SECONDS || tried < 4 * LEAST_SIZE) return MR_OK;
    double least = tried / seconds * EACH_SECONDS;
    uint32_t depth = find_depth(s, least > LEAST_SIZE ? least : LEAST_SIZE);
    return depth ? make_share(s, depth) : MR_OK;
}

/* ---- at a subtree */

bool share_is_at_subtree(const search *s) {
    const sharing *h = s->e->share;
    return h && h->search == s && !h->inside && s->frames.count == h->depth + 1;
}

static uint64_t hash_of_path(const search *s) {
    uint64_t hash = s->e->share->depth;
    for (uint32_t i = 0; i < s->e->share->depth; i++) {
        const frame *f = &s->frames.items[i];
        hash = (hash ^ (uint64_t)f->kind << 1 ^ f->second) * 0x9e3779b97f4a7c15u;
        hash = (hash ^ f->at.item) * 0x9e3779b97f4a7c15u;
        hash = (hash ^ (uint64_t)f->at.node << 32 ^ f->at.other) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash;
}

bool share_begin(explorer *e, unsigned count) {
    sharing *h = e->share;
    h->runs = e->result->runs;
    h->workers = workers_begin(e, count, &h->is_worker);
    if (h->is_worker) h->own = worker_next(h->workers);
    return h->workers != NULL;
}

static void enter(sharing *h, explorer *e) {
    h->inside = true;
    if (h->is_worker) worker_begin(e);
}

mr_status share_ask(search *s, share_answer *out_answer) {
    sharing *h = s->e->share;
    workers_answer answer = WORKERS_GAVE_BACK;
    h->path = hash_of_path(s);
    if (h->is_worker && h->number != h->own) answer = WORKERS_REPORTED;
    if (!h->is_worker) MR_TRY(workers_ask(h->workers, s->e, h->number, h->path, &answer));
    *out_answer = answer == WORKERS_WAIT       ? SHARE_WAIT
                  : answer == WORKERS_REPORTED ? SHARE_PASS
                                               : SHARE_SEARCH;
    if (*out_answer == SHARE_PASS) {
        s->frames.items[h->depth].second = true;
        h->number++;
    }
    if (*out_answer == SHARE_SEARCH) enter(h, s->e);
    return MR_OK;
}

void share_step_back(search *s, bool *out_ends) {
    explorer *e = s->e;
    sharing *h = e->share;
    *out_ends = false;
    if (!h || h->search != s || !h->inside || s->frames.count > h->depth) return;
    h->inside = false;
    if (!h->workers) return; /* the subtree had begun before the depth was known */
    if (h->is_worker) {
        worker_report(h->workers, e, h->number, h->path, h->gives_back);
        h->gives_back = false;
        h->own = worker_next(h->workers);
    } else {
        bool is_stale = workers_given_back(h->workers) >= MOST_BACK && e->result->runs != h->runs;
        *out_ends = workers_have_failed(h->workers) || is_stale;
    }
    h->number++;
}

void share_abandon(search *s) {
    for (size_t i = s->e->share->depth; i < s->frames.count; i++) s->frames.items[i].second = true;
}

/* ---- the end */

mr_status share_end(explorer *e) {
    sharing *h = e->share;
    mr_status status = MR_OK;
    if (!h) return MR_OK;
    if (h->workers) {
        if (e->stop) status = workers_take_rest(h->workers, e, h->number + h->inside);
        e->lent += workers_ahead(h->workers);
        e->shares += workers_have_failed(h->workers) ? MOST_BEGUN : 1;
        workers_end(h->workers);
    }
    free(h);
    e->share = NULL;
    return status;
}
