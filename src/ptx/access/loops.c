/* The loops of a launch: their counters as linear forms, and how often they run.
 *
 * Easiest to break: a counter must not wrap around before its test ends the loop. */
#include <stdlib.h>

#include "ptx/access/run.h"

/* Adds up pairs of a node and a sign. */
static bool add_chain(launch_run *r, uint32_t first, uint32_t count, linear_form *in_out) {
    const uint32_t *pairs = &r->program->operands[first];
    for (uint32_t k = 0; k < count; k++) {
        int64_t sign = pairs[2 * k + 1] == 1 ? 1 : -1;
        linear_form sum;
        if (!linear_add(in_out, &r->forms[pairs[2 * k]], sign, &sum)) return false;
        *in_out = sum;
    }
    return true;
}

static bool step_of(launch_run *r, const launch_node *phi, int64_t *out) {
    linear_form f = linear_constant(0);
    return phi->is_affine && add_chain(r, phi->step, phi->step_count, &f) &&
           launch_as_number(r, &f, out);
}

static bool divides(const linear_form *f, int64_t step) {
    if (f->constant % step) return false;
    for (uint32_t k = 0; k < f->count; k++)
        if (f->terms[k].factor % step) return false;
    return true;
}

/* A counter that grows: it is `start` plus a multiple of `step` > 0, and the loop goes on only if it is at most
 * `limit`. */
typedef struct {
    linear_form start, limit;
    int64_t step;
} counter;

static bool mirror(counter *c) {
    linear_form zero = linear_constant(0), start, limit;
    if (!linear_add(&zero, &c->start, -1, &start) || !linear_add(&zero, &c->limit, -1, &limit))
        return false;
    c->start = start;
    c->limit = limit;
    c->step = -c->step;
    return true;
}

/* Without a sign, a counter that falls must stop before it gets below 0, and bounds must have no sign bit. */
static bool is_signed_enough(launch_run *r, const launch_test *t, const counter *c,
                             uint32_t header) {
    linear_form after = c->limit;
    if (t->is_signed || t->comparison == PTX_MOD_ne) return true;
    if (launch_is_negative(r, &c->limit, header)) return false;
    if (c->step > 0) return true;
    after.constant = linear_plus(after.constant, c->step + (t->comparison == PTX_MOD_gt));
    return !launch_is_negative(r, &after, header) && !launch_is_negative(r, &c->start, header);
}

static bool find_limit(launch_run *r, const launch_test *t, counter *c, uint32_t header) {
    bool falls = c->step < 0;
    if (!is_signed_enough(r, t, c, header)) return false;
    if (falls && !mirror(c)) return false;
    linear_form d;
    switch (t->comparison) {
    case PTX_MOD_lt:
    case PTX_MOD_gt:
        if (falls != (t->comparison == PTX_MOD_gt)) return false;
        c->limit.constant = linear_plus(c->limit.constant, -1);
        return true;
    case PTX_MOD_le:
    case PTX_MOD_ge: return falls == (t->comparison == PTX_MOD_ge);
    case PTX_MOD_ne: /* meets the bound, if it begins below and the step divides the distance */
        if (!linear_add(&c->start, &c->limit, -1, &d) || !divides(&d, c->step)) return false;
        if (linear_upper(r->system, &d, launch_at(r, header)) > 0) return false;
        c->limit.constant = linear_plus(c->limit.constant, -c->step);
        return true;
    default: return false;
    }
}

/* The most iterations that one test allows, and the resulting bound of the number of iterations. */
static void judge_test(launch_run *r, const launch_test *t, uint32_t header, linear_form *starts,
                       const linear_form *iteration, int64_t *in_out_most) {
    const launch_node *phi = launch_node_at(r, t->phi);
    counter c = {.limit = r->forms[t->bound]};
    linear_form d, f;
    if (!step_of(r, phi, &c.step) || !c.step) return;
    c.start = starts[t->phi - r->program->blocks[header].nodes];
    if (!add_chain(r, t->chain, t->chain_count, &c.start)) return;
    if (!launch_fits(r, &c.start, t->bits, header) || !find_limit(r, t, &c, header)) return;
    /* One step beyond the limit must not wrap around. */
    linear_form beyond = c.limit;
    beyond.constant = linear_plus(beyond.constant, c.step);
    int64_t most = launch_range_of(t->bits).high - 1;
    if (linear_upper(r->system, &beyond, launch_at(r, header)) > most) return;
    if (!linear_add(&c.limit, &c.start, -1, &d)) return;
    int64_t room = linear_upper(r->system, &d, launch_at(r, header));
    if (room == LINEAR_MOST) return;
    int64_t times = room < 0 ? 0 : room / c.step + 1;
    if (times < *in_out_most) *in_out_most = times;
    /* start + step * (iteration - 1) <= limit in all iterations but the first, and there, too, give or take `slack` */
    if (!linear_add(&c.start, &c.limit, -1, &d)) return;
    d.constant = linear_plus(d.constant, -c.step);
    int64_t slack = linear_upper(r->system, &d, launch_at(r, header));
    if (slack == LINEAR_MOST || !linear_add(&d, iteration, c.step, &f)) return;
    r->loops[header].is_known = r->program->blocks[header].test_count == 1;
    r->loops[header].has_bound = slack <= 0;
    r->loops[header].bound = f;
    if (slack > 0) f.constant = linear_plus(f.constant, -slack);
    linear_assume_closely(r->system, &f, launch_scope_of(r, header));
}

static linear_form loop_phi(launch_run *r, const launch_node *phi, const linear_form *start,
                            const linear_form *iteration) {
    int64_t step;
    linear_form f;
    if (step_of(r, phi, &step) && linear_add(start, iteration, step, &f) &&
        launch_fits(r, &f, phi->bits, phi->block))
        return f;
    r->taint = phi->holds & r->pointers;
    if (phi->is_shrinking && !launch_is_negative(r, start, phi->block))
        return launch_within(r, phi, 0, linear_upper(r->system, start, launch_at(r, phi->block)));
    return launch_unknown(r, phi->bits);
}

/* The phis of a loop: their initial values plus the number of iterations times the increment. */
void launch_enter_loop(launch_run *r, uint32_t header) {
    const launch_block *b = &r->program->blocks[header];
    uint32_t count = 0;
    while (count < b->node_count && launch_node_at(r, b->nodes + count)->is_loop_phi) count++;
    if (!count) return;
    linear_form *starts = malloc(count * sizeof *starts);
    r->taint = 0;
    r->cause = MR_PTX_CERTAIN;
    linear_form iteration = launch_symbol(r, 0, LINEAR_MOST);
    if (!starts || !iteration.count) {
        free(starts);
        r->is_exhausted = true;
        return;
    }
    r->cause = MR_PTX_LOOP;
    launch_loop *loop = &r->loops[header];
    loop->counter = iteration.terms[0].symbol;
    for (uint32_t k = 0; k < count; k++)
        starts[k] = launch_merge_phi(r, launch_node_at(r, b->nodes + k));
    r->is_counter[iteration.terms[0].symbol] = true;
    int64_t most = LINEAR_MOST;
    for (uint32_t k = 0; k < b->test_count; k++)
        judge_test(r, &r->program->tests[b->tests + k], header, starts, &iteration, &most);
    r->system->symbols[iteration.terms[0].symbol].high = most;
    for (uint32_t k = 0; k < count; k++)
        r->forms[b->nodes + k] =
            loop_phi(r, launch_node_at(r, b->nodes + k), &starts[k], &iteration);
    r->taint = 0;
    free(starts);
}
