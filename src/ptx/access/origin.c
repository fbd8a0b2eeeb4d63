/* The pointers that a value can be derived from: a fixed point over all values of the kernel and the values stored to
 * memory that is not followed. Then it is known whether local memory may be followed as memory.c assumed; if not, the
 * values are made again.
 *
 * Easiest to break: sets only grow, and an instruction that is not understood adds to them. A pointer that is rebuilt
 * from decisions (bit by bit, by branches) is not found. */
#include "ptx/access/graph.h"

#include <string.h>

enum { MOST_ATTEMPTS = 12 };

/* ---- sets */

typedef struct {
    access_graph *graph;
    access_origins *all;
    access_origin scratch;
    bool changed;
} solver;

static bool unite(uint64_t *to, const uint64_t *from, uint32_t words) {
    uint64_t grown = 0;
    for (uint32_t k = 0; k < words; k++) {
        grown |= from[k] & ~to[k];
        to[k] |= from[k];
    }
    return grown != 0;
}

static void put(uint64_t *set, uint32_t bit) {
    set[bit / 64] |= UINT64_C(1) << (bit % 64);
}

static bool is_empty(const uint64_t *set, uint32_t words) {
    for (uint32_t k = 0; k < words; k++)
        if (set[k]) return false;
    return true;
}

static bool is_equal(const access_origin *a, const access_origin *b, uint32_t words) {
    size_t bytes = words * sizeof(uint64_t);
    return !memcmp(a->plus, b->plus, bytes) && !memcmp(a->minus, b->minus, bytes);
}

static access_origin new_origin(access_graph *graph, uint32_t words) {
    uint64_t *sets = access_take(graph, 5 * words * sizeof *sets);
    return (access_origin){.plus = sets,
                           .minus = sets + words,
                           .distance = sets + 2 * words,
                           .mixed = sets + 3 * words,
                           .number = sets + 4 * words,
                           .is_exact = true};
}

static void clear(access_origin *o, uint32_t words) {
    memset(o->plus, 0, 5 * words * sizeof *o->plus);
    o->is_exact = true;
    o->is_known = true;
}

/* ---- the origin of one value, from those of its operands */

static const access_origin *operand_origin(const solver *s, const access_value *v, uint32_t k) {
    return &s->all->origins[access_operand(s->graph, v, k)];
}

/* All origins of `o` become mixed; those of a difference stay a difference. */
static void blend(access_origin *to, const access_origin *o, uint32_t words) {
    unite(to->mixed, o->plus, words);
    unite(to->mixed, o->minus, words);
    unite(to->mixed, o->mixed, words);
    unite(to->distance, o->distance, words);
    if (is_empty(o->minus, words)) return;
    unite(to->distance, o->plus, words);
    unite(to->distance, o->minus, words);
}

static void keep(access_origin *to, const access_origin *o, uint32_t words) {
    unite(to->plus, o->plus, words);
    unite(to->minus, o->minus, words);
    unite(to->distance, o->distance, words);
    unite(to->mixed, o->mixed, words);
    to->is_exact = o->is_exact;
}

/* One of several, whichever. */
static void join(solver *s, const access_value *v, uint32_t first) {
    uint32_t words = s->all->set_words;
    access_origin *to = &s->scratch;
    const access_origin *one = NULL;
    bool same = true;
    to->is_known = false;
    for (uint32_t k = first; k < v->operand_count; k++) {
        const access_origin *o = operand_origin(s, v, k);
        if (!o->is_known) continue;
        to->is_known = true;
        if (!one) one = o;
        same &= o->is_exact && one->is_exact && is_equal(one, o, words);
        unite(to->plus, o->plus, words);
        unite(to->mixed, o->mixed, words);
        unite(to->distance, o->distance, words);
        unite(to->minus, o->minus, words);
    }
    if (same) return;
    to->is_exact = false;
    if (is_empty(to->minus, words)) return;
    unite(to->distance, to->minus, words);
    unite(to->distance, to->plus, words);
    memset(to->minus, 0, words * sizeof *to->minus);
}

/* a + b or a - b of exact ones, a word of 64 bases at once. A base that is there twice is not a pointer any more. */
static void add_exact(solver *s, const access_origin *a, const uint64_t *plus,
                      const uint64_t *minus) {
    access_origin *to = &s->scratch;
    for (uint32_t k = 0; k < s->all->set_words; k++) {
        uint64_t up = (a->plus[k] | plus[k]) & ~(a->minus[k] | minus[k]);
        uint64_t down = (a->minus[k] | minus[k]) & ~(a->plus[k] | plus[k]);
        uint64_t twice = (a->plus[k] & plus[k]) | (a->minus[k] & minus[k]);
        /* +1 +1 -1 cannot be: a value has a base in one of its two sets. */
        to->plus[k] = up & ~twice;
        to->minus[k] = down & ~twice;
        to->mixed[k] |= twice;
    }
}

static void add(solver *s, const access_value *v) {
    uint32_t words = s->all->set_words;
    const access_origin *a = operand_origin(s, v, 0), *b = operand_origin(s, v, 1);
    access_origin *to = &s->scratch;
    bool subtract = v->op == ACCESS_SUB;
    unite(to->mixed, a->mixed, words);
    unite(to->mixed, b->mixed, words);
    unite(to->distance, a->distance, words);
    unite(to->distance, b->distance, words);
    to->is_known = a->is_known && b->is_known;
    if (a->is_exact && b->is_exact) {
        if (subtract) add_exact(s, a, b->minus, b->plus);
        else add_exact(s, a, b->plus, b->minus);
        return;
    }
    to->is_exact = false;
    unite(to->plus, a->plus, words);
    unite(to->plus, subtract ? b->minus : b->plus, words);
    unite(to->distance, a->minus, words);
    unite(to->distance, subtract ? b->plus : b->minus, words);
}

/* x >> 3 << 3 is x, aligned. High halves come from 32-bit values, which by themselves are not pointers. */
static void shift_left(solver *s, const access_value *v) {
    const access_value *shifted = access_value_at(s->graph, access_operand(s->graph, v, 0));
    uint32_t words = s->all->set_words;
    if (shifted->op == ACCESS_SHR &&
        access_operand(s->graph, shifted, 1) == access_operand(s->graph, v, 1)) {
        keep(&s->scratch, operand_origin(s, shifted, 0), words);
        return;
    }
    blend(&s->scratch, operand_origin(s, v, 0), words);
    if (shifted->op == ACCESS_EXTEND) blend(&s->scratch, operand_origin(s, shifted, 0), words);
}

static void load_origin(solver *s, const access_value *v) {
    const access_origins *all = s->all;
    const access_origin *address = operand_origin(s, v, 0);
    access_origin *to = &s->scratch;
    uint64_t *set = v->bits >= 64 ? to->plus : to->mixed;
    to->is_exact = false;
    if (v->number != ACCESS_NONE) {
        unite(set, all->storage_holds[v->number], all->set_words);
        return;
    }
    if (v->space == PTX_SHARED) {
        unite(set, all->shared_holds, all->set_words);
        return;
    }
    if (v->space == PTX_GLOBAL || v->space == PTX_CONST) {
        put(set, ORIGIN_MEMORY);
        return;
    }
    uint64_t *bases = s->all->origins[s->graph->values.count].plus; /* scratch */
    memset(bases, 0, all->set_words * sizeof *bases);
    access_bases(all, access_operand(s->graph, v, 0), bases);
    to->is_known = address->is_known;
    bool is_memory = is_empty(bases, all->set_words);
    for (uint32_t b = 0; b < all->set_bits; b++) {
        if (!access_has(bases, b)) continue;
        if (b == ORIGIN_SHARED) unite(set, all->shared_holds, all->set_words);
        else if (b >= all->first_storage)
            unite(set, all->storage_holds[b - all->first_storage], all->set_words);
        else if (b >= all->first_param_address) {
            for (uint32_t p = 0; p < all->piece_count; p++)
                if (all->pieces[p].param == b - all->first_param_address)
                    put(set, ORIGIN_FIRST_PIECE + p);
        } else is_memory = true;
    }
    if (is_memory) put(set, ORIGIN_MEMORY);
}

static void param_origin(solver *s, const access_value *v) {
    for (uint32_t p = 0; p < s->all->piece_count; p++) {
        const access_piece *piece = &s->all->pieces[p];
        if (piece->param != v->number || v->offset + v->bits / 8 <= piece->offset ||
            piece->offset + 8 <= v->offset)
            continue;
        bool whole = v->bits == 64 && v->offset == piece->offset;
        put(whole ? s->scratch.plus : s->scratch.mixed, ORIGIN_FIRST_PIECE + p);
    }
}

/* Values that keep a pointer keep `number`; for others the pointers become numbers, too. */
static void number_origin(solver *s, const access_value *v) {
    access_origin *to = &s->scratch;
    uint32_t words = s->all->set_words;
    bool keeps = v->op == ACCESS_ADD || v->op == ACCESS_SUB || v->op == ACCESS_PHI ||
                 v->op == ACCESS_SELECT || v->op == ACCESS_MIN || v->op == ACCESS_MAX;
    if (v->op == ACCESS_COMPARE) return; /* judged by itself */
    if (v->op == ACCESS_LOAD) {
        bool is_kept =
            v->number != ACCESS_NONE || (v->space != PTX_GLOBAL && v->space != PTX_CONST);
        if (is_kept) unite(to->number, s->all->numbers_held, words);
        return;
    }
    for (uint32_t k = 0; k < v->operand_count; k++) {
        const access_origin *o = operand_origin(s, v, k);
        unite(to->number, o->number, words);
        if (keeps) continue;
        unite(to->number, o->plus, words);
        unite(to->number, o->minus, words);
        unite(to->number, o->distance, words);
        unite(to->number, o->mixed, words);
    }
}

/* The value counts as a number, whatever its operands are. A value read from the program's memory does not contain an
 * address. */
static void leave_number(solver *s) {
    access_origin *to = &s->scratch;
    uint32_t words = s->all->set_words;
    unite(to->number, to->plus, words);
    unite(to->number, to->minus, words);
    unite(to->number, to->distance, words);
    unite(to->number, to->mixed, words);
    to->number[ORIGIN_MEMORY / 64] &= ~(UINT64_C(1) << ORIGIN_MEMORY % 64);
    memset(to->plus, 0, 4 * words * sizeof *to->plus);
    to->is_exact = true;
}

static void compute(solver *s, const access_value *v) {
    access_origin *to = &s->scratch;
    uint32_t words = s->all->set_words;
    clear(to, words);
    switch ((access_op)v->op) {
    case ACCESS_UNDEFINED: to->is_known = false; break;
    case ACCESS_PARAM: param_origin(s, v); break;
    case ACCESS_ADDRESS_PARAM: put(to->plus, s->all->first_param_address + v->number); break;
    case ACCESS_ADDRESS_LOCAL: put(to->plus, s->all->first_storage + v->number); break;
    case ACCESS_ADDRESS_SHARED: put(to->plus, ORIGIN_SHARED); break;
    case ACCESS_ADDRESS_VARIABLE: put(to->plus, ORIGIN_VARIABLES); break;
    case ACCESS_WORKSPACE: put(to->mixed, ORIGIN_WORKSPACE); break;
    case ACCESS_ADD:
    case ACCESS_SUB: add(s, v); break;
    case ACCESS_SHL: shift_left(s, v); break;
    case ACCESS_SELECT: join(s, v, 1); break;
    case ACCESS_PHI:
    case ACCESS_MIN:
    case ACCESS_MAX: join(s, v, 0); break;
    case ACCESS_LOAD: load_origin(s, v); break;
    case ACCESS_EXTEND:
        break; /* half of a pointer is not a pointer, until it is put together with the other */
    case ACCESS_COMPARE:
    case ACCESS_CONSTANT:
    case ACCESS_SPECIAL: break;
    case ACCESS_PACK: /* two halves may be a pointer again */
        to->is_exact = false;
        for (uint32_t k = 0; k < v->operand_count; k++) {
            const access_origin *o = operand_origin(s, v, k);
            unite(v->bits >= 64 ? to->plus : to->mixed, o->mixed, words);
        }
        break;
    case ACCESS_AND:
    case ACCESS_OR: /* alignment, tags */
        to->is_exact = false;
        for (uint32_t k = 0; k < 2; k++) {
            blend(to, operand_origin(s, v, k), words);
            unite(to->plus, operand_origin(s, v, k)->plus, words);
        }
        break;
    case ACCESS_MUL:
    case ACCESS_DIV:
    case ACCESS_SHR:
    case ACCESS_XOR:
    case ACCESS_TRUNCATE:
    case ACCESS_OTHER:
        for (uint32_t k = 0; k < v->operand_count; k++) {
            const access_value *o = access_value_at(s->graph, access_operand(s->graph, v, k));
            blend(to, operand_origin(s, v, k), words);
            if (o->op == ACCESS_EXTEND) blend(to, operand_origin(s, o, 0), words);
        }
        break;
    }
    number_origin(s, v);
    if (v->is_number) leave_number(s);
}

static bool grow(access_origin *o, const access_origin *by, uint32_t words) {
    bool changed = unite(o->plus, by->plus, words);
    changed |= unite(o->minus, by->minus, words);
    changed |= unite(o->distance, by->distance, words);
    changed |= unite(o->mixed, by->mixed, words);
    changed |= unite(o->number, by->number, words);
    changed |= !o->is_known && by->is_known;
    changed |= o->is_exact && !by->is_exact;
    o->is_known |= by->is_known;
    o->is_exact &= by->is_exact;
    /* A base in both sets: the value was one thing first and another then. */
    for (uint32_t k = 0; k < words; k++)
        if (o->plus[k] & o->minus[k]) o->is_exact = false;
    return changed;
}

/* ---- what memory holds */

void access_bases(const access_origins *origins, uint32_t address, uint64_t *out) {
    const access_origin *o = &origins->origins[address];
    uint32_t words = origins->set_words;
    unite(out, o->plus, words);
    if (is_empty(o->plus, words)) {
        unite(out, o->distance, words);
        unite(out, o->mixed, words);
        return;
    }
    for (uint32_t b = ORIGIN_FIRST_PIECE; b < ORIGIN_FIRST_PIECE + origins->piece_count; b++)
        if (access_has(o->distance, b)) put(out, b);
    /* Besides a pointer, mixed values are a part of the offset. That holds only if the added pointers are known. A
     * value that is one of several can be the mixed one, and low bits of a pointer are not one. A value mixed with one
     * from memory is an index. */
    for (uint32_t b = 0; b < origins->set_bits && !o->is_exact; b++)
        if (b != ORIGIN_MEMORY && access_has(o->mixed, b)) put(out, b);
}

static void hold(solver *s, uint64_t *holder, uint32_t value) {
    const access_origin *o = &s->all->origins[value];
    uint32_t words = s->all->set_words;
    s->changed |= unite(holder, o->plus, words);
    s->changed |= unite(holder, o->mixed, words);
}

static void store_escapes(solver *s) {
    access_graph *graph = s->graph;
    access_origins *all = s->all;
    uint64_t *bases = all->origins[graph->values.count].plus;
    for (uint32_t k = 0; k < graph->escapes.count; k++) {
        const access_escape *e = &graph->escapes.items[k];
        uint32_t value = access_find(graph, e->value);
        s->changed |= unite(all->numbers_held, all->origins[value].number, all->set_words);
        if (e->storage != ACCESS_NONE) hold(s, all->storage_holds[e->storage], value);
        if (e->site == ACCESS_NONE) continue;
        const access_site *site = &graph->sites.items[e->site];
        if (site->space == PTX_SHARED) {
            hold(s, all->shared_holds, value);
            continue;
        }
        memset(bases, 0, all->set_words * sizeof *bases);
        access_bases(all, access_find(graph, site->address), bases);
        if (access_has(bases, ORIGIN_SHARED)) hold(s, all->shared_holds, value);
        for (uint32_t l = 0; l < graph->storage_count; l++)
            if (access_has(bases, all->first_storage + l)) hold(s, all->storage_holds[l], value);
        if (site->space != PTX_LOCAL && site->space != PTX_PARAM) hold(s, all->memory_holds, value);
    }
}

static void solve(access_graph *graph, access_origins *all) {
    solver s = {.graph = graph, .all = all, .scratch = new_origin(graph, all->set_words)};
    all->origins = access_take(graph, (graph->values.count + 1) * sizeof *all->origins);
    for (uint32_t v = 0; v <= graph->values.count; v++) {
        all->origins[v] = new_origin(graph, all->set_words);
    }
    do {
        s.changed = false;
        for (uint32_t v = 0; v < graph->values.count; v++) {
            const access_value *value = &graph->values.items[v];
            if (value->replaced != ACCESS_NONE) continue;
            compute(&s, value);
            s.changed |= grow(&all->origins[v], &s.scratch, all->set_words);
        }
        store_escapes(&s);
    } while (s.changed);
}

/* ---- are the assumptions about local memory right? */

bool access_is_harmless(const ptx_function *function) {
    static const char *const names[] = {"vprintf", "__assertfail", "malloc", "free"};
    for (uint32_t k = 0; function && !function->is_defined && k < sizeof names / sizeof *names; k++)
        if (!strcmp(function->name, names[k])) return true;
    return false;
}

static void expose(access_graph *graph, uint32_t storage) {
    if (graph->is_exposed[storage]) return;
    graph->is_exposed[storage] = graph->again = true;
}

static void expose_all(access_graph *graph, const access_origins *all, const uint64_t *set) {
    for (uint32_t l = 0; l < graph->storage_count; l++)
        if (access_has(set, all->first_storage + l)) expose(graph, l);
}

static access_known *known_of(access_graph *graph, const access_site *site) {
    return &graph->known[graph->copies.items[site->copy].first_site + site->instruction];
}

static void check_site(access_graph *graph, const access_origins *all, const access_site *site,
                       uint64_t *bases) {
    access_known *known = known_of(graph, site);
    int64_t offset;
    uint32_t base = access_split(graph, site->address, &offset);
    const access_value *v = &graph->values.items[base];
    bool is_local = v->op == ACCESS_ADDRESS_LOCAL;
    if (site->is_followed) {
        if (is_local && v->number == known->storage && offset - site->part == known->offset) return;
        expose(graph, known->storage);
        known->storage = ACCESS_NONE;
        graph->again = true;
    }
    if (site->space == PTX_GLOBAL || site->space == PTX_SHARED || site->space == PTX_CONST) return;
    bool is_atomic = site->access == (MR_PTX_READS | MR_PTX_WRITES);
    if (is_local && !is_atomic) { /* a mixed cell, or one that was not resolved when it was read */
        if (graph->is_exposed[v->number] || known->storage != ACCESS_NONE) return;
        known->storage = v->number;
        known->offset = offset - site->part;
        graph->again = true;
        return;
    }
    memset(bases, 0, all->set_words * sizeof *bases);
    access_bases(all, access_find(graph, site->address), bases);
    expose_all(graph, all, bases);
}

static void check_calls(access_graph *graph, const access_origins *all) {
    for (uint32_t k = 0; k < graph->calls.count; k++) {
        const access_call *c = &graph->calls.items[k];
        for (uint32_t v = c->first_of[0]; v < c->first_of[c->argument_count]; v++) {
            const access_origin *o = &all->origins[access_find(graph, graph->arguments.items[v])];
            expose_all(graph, all, o->plus);
            expose_all(graph, all, o->mixed);
        }
        if (!access_is_harmless(c->function)) expose_all(graph, all, all->memory_holds);
    }
}

static void check(access_graph *graph, const access_origins *all) {
    uint64_t *bases = all->origins[graph->values.count].plus;
    for (uint32_t k = 0; k < graph->sites.count; k++) {
        const access_site *site = &graph->sites.items[k];
        check_site(graph, all, site, bases);
        memset(bases, 0, all->set_words * sizeof *bases);
        access_bases(all, access_find(graph, site->address), bases);
        if (access_has(bases, ORIGIN_MEMORY)) expose_all(graph, all, all->memory_holds);
    }
    check_calls(graph, all);
}

/* ---- */

static void find_pieces(access_graph *graph, access_origins *all) {
    const ptx_signature *signature = &graph->kernel->signature;
    uint32_t count = 0;
    for (int pass = 0; pass < 2; pass++) {
        if (pass) all->pieces = access_take(graph, count * sizeof *all->pieces);
        count = 0;
        for (uint32_t p = 0; p < signature->parameter_count; p++) {
            const ptx_variable *v = &signature->parameters[p];
            if (mr_ptx_types[v->type].sort == PTX_FLOAT) continue;
            for (uint32_t offset = 0; offset + 8 <= v->bytes; offset += 8, count++)
                if (pass) all->pieces[count] = (access_piece){p, offset};
        }
    }
    all->piece_count = count;
    all->first_param_address = ORIGIN_FIRST_PIECE + count;
    all->first_storage = all->first_param_address + signature->parameter_count;
    all->set_bits = all->first_storage + graph->storage_count;
    all->set_words = (all->set_bits + 63) / 64;
}

static void new_holders(access_graph *graph, access_origins *all) {
    size_t bytes = all->set_words * sizeof(uint64_t);
    all->shared_holds = access_take(graph, bytes);
    all->memory_holds = access_take(graph, bytes);
    all->numbers_held = access_take(graph, bytes);
    all->storage_holds = access_take(graph, graph->storage_count * sizeof *all->storage_holds);
    for (uint32_t l = 0; l < graph->storage_count; l++)
        all->storage_holds[l] = access_take(graph, bytes);
}

static void forget(access_graph *graph) {
    for (uint32_t k = 0; k < graph->site_count; k++) graph->known[k].storage = ACCESS_NONE;
}

void access_settle(access_graph *graph, access_origins *out) {
    find_pieces(graph, out);
    graph->known = access_take(graph, graph->site_count * sizeof *graph->known);
    graph->is_exposed = access_take(graph, graph->storage_count);
    graph->first_cell = access_take(graph, graph->storage_count * sizeof *graph->first_cell);
    memset(graph->first_cell, 0xff, graph->storage_count * sizeof *graph->first_cell);
    forget(graph);
    for (uint32_t attempt = 0;; attempt++) {
        access_build_values(graph);
        if (graph->too_large) return;
        new_holders(graph, out);
        solve(graph, out);
        bool assumed_right = !graph->again;
        check(graph, out);
        if (assumed_right && !graph->again) return;
        if (attempt < MOST_ATTEMPTS) continue;
        /* Follow no local memory at all; that needs no assumption. */
        memset(graph->is_exposed, 1, graph->storage_count);
        forget(graph);
    }
}
