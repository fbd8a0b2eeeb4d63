/* The influences on the outcome of a launch besides the values that it reads: see outcome.h.
 *
 * Easiest to break: both answers may be yes too often, never too rarely. */
#include "ptx/access/outcome.h"

/* ---- addresses as numbers */

typedef struct {
    access_graph *graph;
    const access_origins *all;
    bool *as_number; /* by piece */
    bool has_variable;
    uint64_t *bases; /* scratch */
} number_search;

static const access_origin *origin_of(const number_search *s, uint32_t value) {
    return &s->all->origins[access_find(s->graph, value)];
}

static bool is_in(const access_origin *o, uint32_t bit) {
    return access_has(o->plus, bit) || access_has(o->minus, bit) || access_has(o->distance, bit) ||
           access_has(o->mixed, bit) || access_has(o->number, bit);
}

static void mark(number_search *s, const access_origin *o) {
    for (uint32_t p = 0; p < s->all->piece_count; p++)
        if (is_in(o, ORIGIN_FIRST_PIECE + p)) s->as_number[p] = true;
    s->has_variable |= is_in(o, ORIGIN_VARIABLES);
}

static bool is_empty(const number_search *s, const uint64_t *set) {
    for (uint32_t k = 0; k < s->all->set_words; k++)
        if (set[k]) return false;
    return true;
}

/* A pointer, or one of several, plus numbers. */
static bool is_address(const number_search *s, const access_origin *o) {
    return is_empty(s, o->mixed) && is_empty(s, o->distance) && is_empty(s, o->minus) &&
           is_empty(s, o->number);
}

static bool is_null(const number_search *s, uint32_t value) {
    const access_value *v = access_value_at(s->graph, value);
    return v->op == ACCESS_CONSTANT && !v->constant;
}

static bool points_to_one(const number_search *s, const access_origin *o) {
    uint32_t count = 0;
    for (uint32_t b = 0; b < s->all->set_bits; b++) count += access_has(o->plus, b);
    return count == 1;
}

static bool has_same_base(const number_search *s, const access_origin *a, const access_origin *b) {
    if (!is_address(s, a) || !is_address(s, b) || !points_to_one(s, a)) return false;
    for (uint32_t k = 0; k < s->all->set_words; k++)
        if (a->plus[k] != b->plus[k]) return false;
    return true;
}

static void judge_pair(number_search *s, uint32_t first, uint32_t second) {
    const access_origin *a = origin_of(s, first), *b = origin_of(s, second);
    if (is_null(s, second) && is_address(s, a)) return;
    if (is_null(s, first) && is_address(s, b)) return;
    if (has_same_base(s, a, b)) return;
    mark(s, a);
    mark(s, b);
}

/* A predicate that is not a comparison of integers compares floating point, or is made of a whole number. */
static void judge_value(number_search *s, const access_value *v, uint32_t value) {
    if (v->op == ACCESS_OTHER && v->bits == 1) mark(s, origin_of(s, value));
    if (v->op != ACCESS_COMPARE && v->op != ACCESS_MIN && v->op != ACCESS_MAX) return;
    judge_pair(s, access_operand(s->graph, v, 0), access_operand(s->graph, v, 1));
}

/* Beside the pointers that it points to, an address can hold others as a part of the index. */
static void judge_address(number_search *s, const access_site *site) {
    const access_origin *o = origin_of(s, site->address);
    for (uint32_t p = 0; p < s->all->piece_count; p++) {
        uint32_t bit = ORIGIN_FIRST_PIECE + p;
        if (access_has(o->minus, bit) || access_has(o->distance, bit) ||
            access_has(o->mixed, bit) || access_has(o->number, bit))
            s->as_number[p] = true;
    }
}

/* Local and shared memory end with the launch: a value read from them has the origins of the stored values. */
static bool outlasts_launch(number_search *s, const access_site *site) {
    if (site->space == PTX_LOCAL || site->space == PTX_PARAM || site->space == PTX_SHARED)
        return false;
    for (uint32_t k = 0; k < s->all->set_words; k++) s->bases[k] = 0;
    access_bases(s->all, access_find(s->graph, site->address), s->bases);
    bool is_known = false;
    for (uint32_t b = 0; b < s->all->set_bits; b++) {
        if (!access_has(s->bases, b)) continue;
        is_known = true;
        if (b != ORIGIN_SHARED && b < s->all->first_storage) return true;
    }
    return !is_known;
}

/* A function that is not followed may do anything with its arguments; vprintf prints them. Its texts are variables. */
static void judge_call(number_search *s, const access_call *c) {
    bool had_variable = s->has_variable;
    for (uint32_t k = c->first_of[0]; k < c->first_of[c->argument_count]; k++) {
        const access_origin *o = origin_of(s, s->graph->arguments.items[k]);
        mark(s, o);
        for (uint32_t l = 0; l < s->graph->storage_count; l++) {
            if (!is_in(o, s->all->first_storage + l)) continue;
            for (uint32_t p = 0; p < s->all->piece_count; p++)
                s->as_number[p] |= access_has(s->all->storage_holds[l], ORIGIN_FIRST_PIECE + p) ||
                                   access_has(s->all->numbers_held, ORIGIN_FIRST_PIECE + p);
        }
    }
    if (access_is_harmless(c->function)) s->has_variable = had_variable;
}

bool access_find_numbers(access_graph *graph, const access_origins *origins, bool *out) {
    number_search s = {.graph = graph,
                       .all = origins,
                       .as_number = out,
                       .bases = access_take(graph, origins->set_words * sizeof *s.bases)};
    for (uint32_t v = 0; v < graph->values.count; v++)
        if (graph->values.items[v].replaced == ACCESS_NONE)
            judge_value(&s, &graph->values.items[v], v);
    for (uint32_t k = 0; k < graph->sites.count; k++) judge_address(&s, &graph->sites.items[k]);
    for (uint32_t k = 0; k < graph->escapes.count; k++) {
        const access_escape *e = &graph->escapes.items[k];
        if (e->site == ACCESS_NONE || !outlasts_launch(&s, &graph->sites.items[e->site])) continue;
        mark(&s, origin_of(&s, e->value));
    }
    for (uint32_t k = 0; k < graph->calls.count; k++) judge_call(&s, &graph->calls.items[k]);
    return s.has_variable;
}

/* ---- the order of threads */

static bool reads_register(const ptx_operand *o, uint32_t index) {
    if (o->kind == PTX_LIST) {
        for (uint32_t k = 0; k < o->count; k++)
            if (reads_register(&o->list[k], index)) return true;
        return false;
    }
    return o->kind == PTX_REGISTER && o->index == index;
}

/* Operand 0 counts as read where it is an address, or where the instruction has no result. */
static bool uses_register(const ptx_instruction *i, uint32_t index) {
    if (i->guard >= 0 && (uint32_t)i->guard == index) return true;
    bool has_result = i->opcode != PTX_OP_st && i->opcode != PTX_OP_red && i->opcode != PTX_OP_call;
    for (uint32_t k = 0; k < i->operand_count; k++) {
        const ptx_operand *o = &i->operands[k];
        bool is_result = has_result && !o->is_address && k < (i->two_results ? 2u : 1u);
        if (!is_result && reads_register(o, index)) return true;
    }
    return false;
}

static bool uses_result(const ptx_function *f, const ptx_instruction *atom) {
    if (atom->opcode != PTX_OP_atom || !atom->operand_count) return false;
    const ptx_operand *to = &atom->operands[0];
    if (to->kind == PTX_LIST) return true;
    if (to->kind != PTX_REGISTER) return false;
    for (uint32_t k = 0; k < f->instruction_count; k++)
        if (uses_register(&f->instructions[k], to->index)) return true;
    return false;
}

/* The kind of an operation whose order does not matter, with its type as far as that matters; 0: it does. */
static uint8_t commuting_kind(const ptx_instruction *i) {
    static const ptx_modifier kinds[] = {PTX_MOD_add, PTX_MOD_and, PTX_MOD_or,
                                         PTX_MOD_xor, PTX_MOD_min, PTX_MOD_max};
    if (!i->type_count) return 0;
    ptx_sort sort = mr_ptx_types[i->types[i->type_count - 1]].sort;
    uint32_t bytes = mr_ptx_types[i->types[i->type_count - 1]].bytes;
    for (uint32_t k = 0; sort != PTX_FLOAT && k < sizeof kinds / sizeof *kinds; k++) {
        bool compares = kinds[k] == PTX_MOD_min || kinds[k] == PTX_MOD_max;
        uint32_t is_signed = compares && sort == PTX_SIGNED;
        if (ptx_has(i, kinds[k])) return (uint8_t)(bytes << 4 | is_signed << 3 | (k + 1));
    }
    return 0;
}

static bool is_barrier_of_grid(const access_graph *graph, const access_origins *origins,
                               const access_site *site) {
    const access_origin *o = &origins->origins[access_find(graph, site->address)];
    return access_has(o->plus, ORIGIN_WORKSPACE) || access_has(o->mixed, ORIGIN_WORKSPACE);
}

static bool reads_time(const ptx_operand *o) {
    for (uint32_t k = 0; o->kind == PTX_LIST && k < o->count; k++)
        if (reads_time(&o->list[k])) return true;
    bool is_place = o->index == PTX_SREG_smid || o->index == PTX_SREG_warpid ||
                    o->index == PTX_SREG_gridid; /* numbered as launches begin */
    return o->kind == PTX_SPECIAL && (is_place || ptx_special_is_clock((ptx_special)o->index));
}

static bool function_reads_time(const ptx_function *f) {
    for (uint32_t k = 0; k < f->instruction_count; k++)
        for (uint32_t o = 0; o < f->instructions[k].operand_count; o++)
            if (reads_time(&f->instructions[k].operands[o])) return true;
    return false;
}

static bool has_activemask(const ptx_function *f) {
    for (uint32_t k = 0; k < f->instruction_count; k++)
        if (f->instructions[k].opcode == PTX_OP_activemask) return true;
    return false;
}

static bool is_strong(const ptx_instruction *i) {
    static const ptx_modifier orders[] = {PTX_MOD_volatile_, PTX_MOD_relaxed, PTX_MOD_acquire,
                                          PTX_MOD_release, PTX_MOD_mmio};
    if (i->opcode != PTX_OP_ld && i->opcode != PTX_OP_st) return false;
    for (uint32_t k = 0; k < sizeof orders / sizeof *orders; k++)
        if (ptx_has(i, orders[k])) return true;
    return false;
}

static void add_update(const ptx_function *f, const ptx_instruction *i, access_order *io) {
    uint8_t kind = commuting_kind(i);
    if (!kind || uses_result(f, i) || (io->updates && io->updates != kind)) io->matters = true;
    io->updates = kind;
}

access_order access_find_order(access_graph *graph, const access_origins *origins) {
    access_order order = {0};
    bool loads = false, stores = false, updates = false;
    for (uint32_t c = 0; c < graph->copies.count; c++) {
        const ptx_function *f = graph->copies.items[c].function;
        if (function_reads_time(f) || has_activemask(f)) order.matters = true;
    }
    for (uint32_t k = 0; k < graph->sites.count; k++) {
        const access_site *site = &graph->sites.items[k];
        const ptx_function *f = graph->copies.items[site->copy].function;
        const ptx_instruction *i = &f->instructions[site->instruction];
        if ((!ptx_is_atomic(i) && !is_strong(i)) || is_barrier_of_grid(graph, origins, site))
            continue;
        updates |= ptx_is_atomic(i);
        loads |= i->opcode == PTX_OP_ld;
        stores |= i->opcode == PTX_OP_st;
        if (ptx_is_atomic(i)) add_update(f, i, &order);
    }
    if (order.matters) order.updates = 0;
    order.may_matter = order.matters || stores || (updates && loads);
    return order;
}

bool access_has_block_atomics(const access_graph *graph) {
    for (uint32_t k = 0; k < graph->sites.count; k++) {
        const access_site *site = &graph->sites.items[k];
        const ptx_function *f = graph->copies.items[site->copy].function;
        const ptx_instruction *i = &f->instructions[site->instruction];
        if (ptx_is_atomic(i) && ptx_has(i, PTX_MOD_cta) && site->space != PTX_SHARED) return true;
    }
    return false;
}
