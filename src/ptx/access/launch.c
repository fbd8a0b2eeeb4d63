/* Finds the bytes that a launch can access. It goes through the blocks of the kernel and makes a linear form of each
 * value that it needs. The form is over the indices of threads and blocks, the counters of loops, and symbols for the
 * terms that are not linear. Conditions become facts. Then it finds the bounds of each address (run.h lists the files).
 *
 * Easiest to break: forms and facts hold for the last time that their block was entered. Both are used only in
 * blocks that the block of the value, or of the condition, dominates. */
#include "ptx/access/launch.h"

#include <stdlib.h>
#include <string.h>

#include "ptx/access/run.h"

enum { STEPS_OF_A_LAUNCH = 8000 };

static void enter_block(launch_run *r, uint32_t k) {
    const launch_block *b = &r->program->blocks[k];
    r->is_dead[k] = k && r->is_dead[b->dominator];
    for (uint32_t a = 0; a < b->atom_count && !r->is_dead[k]; a++)
        r->is_dead[k] =
            !launch_assume_atom(r, &r->program->atoms[b->atoms + a], k, launch_scope_of(r, k));
    if (b->is_header && !r->is_dead[k]) launch_enter_loop(r, k);
    for (uint32_t n = b->nodes; n < b->nodes + b->node_count; n++) {
        const launch_node *node = launch_node_at(r, n);
        r->is_defined[n] = node->op != ACCESS_UNDEFINED;
        if (r->is_dead[k]) r->forms[n] = linear_constant(0);
        else if (!node->is_loop_phi) r->forms[n] = launch_evaluate(r, node);
    }
}

/* ---- extents */

enum { READ_PLAINLY, WRITE_PLAINLY, ATOMICALLY, WAYS, MOST_CERTAIN = 4 };

/* The known accesses of one kind through one pointer. */
typedef struct {
    mr_ptx_extent assumed; /* all others together; with bounds if there is one */
    bool is_there;
    bool is_of_device; /* an atomic access has a scope below .sys */
    mr_ptx_extent certain[MOST_CERTAIN];
    uint32_t certain_count;
} way;

typedef struct {
    launch_run run;
    way *ways; /* by piece, then by way */
} evaluation;

/* The reason is that of the widest part. */
static void widen(way *w, int64_t first, int64_t end, mr_ptx_reason reason) {
    mr_ptx_extent *e = &w->assumed;
    if (!w->is_there || (first <= e->first && end >= e->end)) e->reason = reason;
    if (!w->is_there || first < e->first) e->first = first;
    if (!w->is_there || end > e->end) e->end = end;
    w->is_there = true;
}

static bool is_same_grid(const mr_ptx_extent *a, const mr_ptx_extent *b) {
    bool same = a->dim_count == b->dim_count;
    for (uint32_t k = 0; k < a->dim_count && same; k++)
        same = a->dims[k].count == b->dims[k].count && a->dims[k].stride == b->dims[k].stride;
    return same;
}

/* Runs that have grown up to the next ones are one. */
static void close_gaps(mr_ptx_extent *e) {
    while (e->dim_count && e->run >= e->dims[0].stride) {
        e->run += e->dims[0].stride * (e->dims[0].count - 1);
        e->dim_count--;
        for (uint32_t k = 0; k < e->dim_count; k++) e->dims[k] = e->dims[k + 1];
    }
}

/* True: `into` is both. */
static bool join(mr_ptx_extent *into, const mr_ptx_extent *e) {
    if (!into->dim_count && e->first >= into->first && e->end <= into->end) return true;
    if (!is_same_grid(into, e) || e->first > into->first + into->run ||
        into->first > e->first + e->run)
        return false;
    int64_t first = e->first < into->first ? e->first : into->first;
    int64_t end =
        e->first + e->run > into->first + into->run ? e->first + e->run : into->first + into->run;
    if (into->dim_count && end - first > into->dims[0].stride) return false;
    into->first = first;
    into->run = end - first;
    if (e->end > into->end) into->end = e->end;
    close_gaps(into);
    return true;
}

static void add_certain(way *w, const mr_ptx_extent *e) {
    for (uint32_t k = 0; k < w->certain_count; k++) {
        if (!join(&w->certain[k], e)) continue;
        for (uint32_t i = 0; i < w->certain_count; i++) { /* it may have met another one */
            if (i == k || !join(&w->certain[k < i ? k : i], &w->certain[k < i ? i : k])) continue;
            w->certain[k < i ? i : k] = w->certain[--w->certain_count];
            break;
        }
        return;
    }
    if (w->certain_count < MOST_CERTAIN) w->certain[w->certain_count++] = *e;
    else widen(w, e->first, e->end, MR_PTX_GAPS);
}

/* An extent with a reason is all between its bounds. */
static void add_extent(evaluation *v, const launch_site *site, uint32_t piece,
                       const mr_ptx_extent *e) {
    for (uint32_t k = 0; k < WAYS; k++) {
        way *w = &v->ways[(size_t)piece * WAYS + k];
        bool is_its_way = site->is_atomic ? k == ATOMICALLY
                          : k == READ_PLAINLY
                              ? site->access & MR_PTX_READS
                              : k == WRITE_PLAINLY && (site->access & MR_PTX_WRITES);
        if (is_its_way && !site->is_system) w->is_of_device = true;
        if (is_its_way && e->reason) widen(w, e->first, e->end, e->reason);
        else if (is_its_way) add_certain(w, e);
    }
}

static void widen_piece(evaluation *v, const launch_site *site, uint32_t piece, int64_t first,
                        int64_t end, mr_ptx_reason reason) {
    add_extent(v, site, piece, &(mr_ptx_extent){.first = first, .end = end, .reason = reason});
}

/* The pointers that the address can be derived from: all that they point to. */
static void widen_all(evaluation *v, const launch_site *site, bool pointers, mr_ptx_reason reason) {
    const launch_run *r = &v->run;
    const uint32_t *bases = &r->program->bases[site->bases];
    for (uint32_t k = 0; k < site->base_count + site->unclear_count; k++)
        if (r->is_pointer[bases[k]] == pointers)
            widen_piece(v, site, bases[k], LINEAR_LEAST, LINEAR_MOST, reason);
}

static uint64_t pointers_of(const launch_run *r, const launch_site *site, uint32_t *out_count) {
    const uint32_t *bases = &r->program->bases[site->bases];
    uint64_t set = 0;
    *out_count = 0;
    for (uint32_t k = 0; k < site->base_count + site->unclear_count; k++) {
        if (!r->is_pointer[bases[k]]) continue;
        set |= launch_bit(bases[k]);
        ++*out_count;
    }
    return set;
}

/* The base of an address. A value with unknown parts counts as a base plus numbers if these parts cannot contain
 * another pointer: x + (x & 15). */
static const linear_term *base_of(const launch_run *r, const launch_site *site,
                                  const linear_form *address) {
    bool is_mixed;
    uint32_t count;
    const linear_term *base = launch_base(r, address, &is_mixed);
    if (base || !is_mixed) return base;
    uint64_t only = pointers_of(r, site, &count);
    for (uint32_t k = 0; k < address->count && count == 1; k++) {
        const linear_term *t = &address->terms[k];
        if (r->is_base[t->symbol] && r->holds[t->symbol] == only && t->factor == 1) base = t;
        else if (r->is_base[t->symbol]) return NULL;
    }
    return base;
}

/* An address that holds no pointer of this launch is a number: relative to each of the numbers that it comes from. */
static void add_number_site(evaluation *v, const launch_site *site, const linear_form *address) {
    const launch_run *r = &v->run;
    const uint32_t *bases = &r->program->bases[site->bases];
    linear_range range = launch_bounds(&v->run, address, site->block);
    if (range.low > range.high) return;
    for (uint32_t k = 0; k < site->base_count; k++) {
        int64_t number;
        memcpy(&number, (const char *)r->plan->params + r->program->piece_offsets[bases[k]], 8);
        int64_t first = linear_plus(range.low, linear_times(number, -1));
        int64_t end = linear_plus(linear_plus(range.high, linear_times(number, -1)), site->bytes);
        widen_piece(v, site, bases[k], first, end, MR_PTX_KEPT);
    }
    for (uint32_t k = 0; k < site->unclear_count; k++)
        widen_piece(v, site, bases[site->base_count + k], LINEAR_LEAST, LINEAR_MOST, MR_PTX_KEPT);
}

static void add_site(evaluation *v, const launch_site *site) {
    launch_run *r = &v->run;
    const uint32_t *bases = &r->program->bases[site->bases];
    linear_form offset, start;
    uint32_t pointers;
    if (r->is_dead[site->block]) return;
    pointers_of(r, site, &pointers);
    const linear_form *address = &r->forms[site->address];
    if (!pointers) {
        if (site->base_count) add_number_site(v, site, address);
        else widen_all(v, site, false, MR_PTX_KEPT);
        return;
    }
    const linear_term *base = site->base_count ? base_of(r, site, address) : NULL;
    start = (linear_form){.count = 1, .terms = {{1, base ? base->symbol : 0}}};
    /* A number can be what was chosen. */
    if (!base || r->why[base->symbol]) widen_all(v, site, false, MR_PTX_CHOSEN);
    if (!base || !linear_add(address, &start, -1, &offset)) {
        widen_all(v, site, true, MR_PTX_ARITHMETIC);
        return;
    }
    linear_range range = launch_bounds(r, &offset, site->block);
    if (range.low > range.high) return; /* the conditions contradict each other: not reached */
    mr_ptx_extent e = {.first = range.low, .end = linear_plus(range.high, site->bytes)}, shape = e;
    uint64_t holds = r->holds[base->symbol];
    bool is_one = !r->why[base->symbol] && holds != launch_bit(LAUNCH_SHARED_BIT);
    e.reason = is_one ? launch_shape(r, site, &offset, &shape) : MR_PTX_CHOSEN;
    if (!e.reason) e = shape;
    for (uint32_t k = 0; k < site->base_count + site->unclear_count; k++) {
        uint32_t piece = bases[k];
        if (!r->is_pointer[piece]) continue;
        if (k >= site->base_count)
            widen_piece(v, site, piece, LINEAR_LEAST, LINEAR_MOST, MR_PTX_ARITHMETIC);
        else if (holds & launch_bit(piece)) add_extent(v, site, piece, &e);
    }
}

static bool is_certain(const way *w, const mr_ptx_extent *e) {
    for (uint32_t k = 0; k < w->certain_count; k++)
        if (!w->certain[k].dim_count && e->first >= w->certain[k].first &&
            e->end <= w->certain[k].end)
            return true;
    return false;
}

static uint32_t list_extents(const evaluation *v, mr_ptx_extent *out, uint32_t most) {
    static const uint8_t accesses[WAYS] = {MR_PTX_READS, MR_PTX_WRITES,
                                           MR_PTX_READS | MR_PTX_WRITES};
    const access_program *program = v->run.program;
    uint32_t count = 0;
    for (uint32_t k = 0; k < WAYS * program->piece_count; k++) {
        const way *w = &v->ways[k];
        const access_piece *piece = &program->pieces[k / WAYS];
        bool adds = w->is_there && !is_certain(w, &w->assumed);
        for (uint32_t i = 0; i < w->certain_count + adds; i++) {
            if (count++ >= most) continue;
            mr_ptx_extent *to = &out[count - 1];
            *to = i < w->certain_count ? w->certain[i] : w->assumed;
            to->param = piece->param;
            to->offset = piece->offset;
            to->access = accesses[k % WAYS];
            to->is_atomic = k % WAYS == ATOMICALLY;
            to->is_system = to->is_atomic && !w->is_of_device;
        }
    }
    return count;
}

/* ---- a launch */

static void find_pointers(launch_run *r) {
    for (uint32_t i = 0; i < r->plan->pointer_count; i++) {
        for (uint32_t k = 0; k < r->program->piece_count; k++) {
            if (r->program->piece_offsets[k] != r->plan->pointers[i]) continue;
            r->is_pointer[k] = true;
            r->pointers |= launch_bit(k);
            r->taint = launch_bit(k);
            r->pieces[k] = launch_symbol(r, 1, LAUNCH_MOST_ADDRESS);
            if (r->pieces[k].count) r->is_base[r->pieces[k].terms[0].symbol] = true;
            r->taint = 0;
        }
    }
}

static void prepare(launch_run *r) {
    linear_reset(r->system, STEPS_OF_A_LAUNCH);
    r->pointers = LAUNCH_ELSEWHERE;
    find_pointers(r);
    for (uint32_t k = 0; k < 3; k++) {
        r->indices[0][k] = launch_symbol(r, 0, (int64_t)r->plan->block[k] - 1);
        r->indices[1][k] = launch_symbol(r, 0, (int64_t)r->plan->grid[k] - 1);
    }
    r->cause = MR_PTX_ARITHMETIC; /* it is not free beside the indices of the thread */
    r->lane = launch_symbol(r, 0, 31);
}

static uint32_t evaluate_all(evaluation *v, mr_ptx_extent *out, uint32_t most) {
    const access_program *p = v->run.program;
    prepare(&v->run);
    for (uint32_t k = 0; k < p->block_count && !v->run.is_exhausted; k++) enter_block(&v->run, k);
    for (uint32_t k = 0; k < p->site_count; k++) {
        const launch_site *site = &p->sites[k];
        if (!v->run.is_exhausted) {
            add_site(v, site);
            continue;
        }
        widen_all(v, site, true, MR_PTX_SIZE);
        widen_all(v, site, false, MR_PTX_SIZE);
    }
    return list_extents(v, out, most);
}

static uint32_t without_memory(const access_program *p, mr_ptx_extent *out, uint32_t most) {
    uint32_t count = 0;
    for (uint32_t k = 0; k < p->piece_count; k++)
        if (count++ < most)
            out[count - 1] = (mr_ptx_extent){.param = p->pieces[k].param,
                                             .offset = p->pieces[k].offset,
                                             .access = MR_PTX_READS | MR_PTX_WRITES,
                                             .reason = MR_PTX_SIZE,
                                             .first = LINEAR_LEAST,
                                             .end = LINEAR_MOST};
    return count;
}

uint32_t access_evaluate(const access_program *program, const mr_ptx_plan *plan, mr_ptx_extent *out,
                         uint32_t most) {
    evaluation v = {.run = {.program = program, .plan = plan}};
    launch_run *r = &v.run;
    uint32_t nodes = program->node_count, pieces = program->piece_count;
    size_t forms = ((size_t)nodes + pieces) * sizeof(linear_form);
    size_t ways = WAYS * (size_t)pieces * sizeof(way);
    size_t loops = program->block_count * sizeof(launch_loop);
    size_t flags = (size_t)program->block_count + nodes + pieces;
    char *memory = malloc(sizeof(linear_system) + forms + loops + ways + flags);
    if (!memory) return without_memory(program, out, most);
    r->system = (linear_system *)memory;
    r->forms = (linear_form *)(memory + sizeof(linear_system));
    r->pieces = r->forms + nodes;
    r->loops = (launch_loop *)(r->pieces + pieces);
    v.ways = (way *)(r->loops + program->block_count);
    r->is_dead = (bool *)(v.ways + WAYS * (size_t)pieces);
    r->is_defined = r->is_dead + program->block_count;
    r->is_pointer = r->is_defined + nodes;
    memset(r->loops, 0, loops + ways + flags);
    uint32_t count = evaluate_all(&v, out, most);
    free(memory);
    return count;
}
