/* The compact form of a kernel for launch.c: the values for addresses, the values that decide whether an access is
 * reached, and the tests that end loops.
 *
 * Easiest to break: a node comes after its operands, except for what an iteration adds to a phi of a loop. */
#include <stdlib.h>
#include <string.h>

#include "ptx/access/launch.h"

enum { MOST_VISITS = 100 };

typedef struct {
    access_graph *graph;
    const access_origins *origins;
    bool *is_needed;       /* by value */
    bool *is_needed_block; /* by block of the graph */
    ACCESS_LIST(uint32_t) work;
    uint32_t visits; /* of predicates, for one condition */

    uint32_t *node_of;  /* by value */
    uint32_t *block_of; /* by block of the graph */
    ACCESS_LIST(launch_node) nodes;
    ACCESS_LIST(launch_block) blocks;
    ACCESS_LIST(launch_atom) atoms;
    ACCESS_LIST(launch_test) tests;
    ACCESS_LIST(launch_site) sites;
    ACCESS_LIST(uint32_t) operands, bases;
    ACCESS_LIST(access_link) links;
} compiler;

/* Pairs of a value and a sign. */
typedef ACCESS_LIST(uint32_t) chain;

/* ---- conditions and loops of the graph */

typedef void (*atom_visitor)(compiler *c, const access_value *compare, bool is_true, void *context);

static void visit_atoms(compiler *c, uint32_t p, bool is_true, int depth, atom_visitor visit,
                        void *context);

/* a && b without optimisation is a phi: false on the way where a is false, b on the other way. If it is true, that way
 * was taken: its conditions hold, too. */
static void visit_phi_atoms(compiler *c, const access_value *v, bool is_true, int depth,
                            atom_visitor visit, void *context) {
    access_graph *graph = c->graph;
    const access_block *b = &graph->blocks.items[v->block];
    uint32_t possible = 0, way = 0;
    if (b->is_header || b->is_irreducible) return;
    for (uint32_t k = 0; k < v->operand_count; k++) {
        const access_value *o = access_value_at(graph, access_operand(graph, v, k));
        if (!graph->blocks.items[b->predecessors[k]].reached) continue;
        if (o->op == ACCESS_CONSTANT && (o->constant != 0) != is_true) continue;
        possible++;
        way = k;
    }
    if (possible != 1) return;
    visit_atoms(c, access_operand(graph, v, way), is_true, depth + 1, visit, context);
    uint32_t from = b->predecessors[way];
    for (; from != b->dominator && from != 0; from = graph->blocks.items[from].dominator) {
        const access_block *on_way = &graph->blocks.items[from];
        if (on_way->has_condition && on_way->condition != ACCESS_NONE)
            visit_atoms(c, on_way->condition, on_way->condition_true, depth + 1, visit, context);
    }
}

/* The comparisons that hold if predicate `p` is `is_true`. */
static void visit_atoms(compiler *c, uint32_t p, bool is_true, int depth, atom_visitor visit,
                        void *context) {
    const access_value *v = access_value_at(c->graph, p);
    c->visits = depth ? c->visits + 1 : 0;
    if (depth > 8 || c->visits > MOST_VISITS || v->bits != 1) return;
    if (v->op == ACCESS_PHI) {
        visit_phi_atoms(c, v, is_true, depth, visit, context);
    } else if (v->op == ACCESS_COMPARE) {
        visit(c, v, is_true, context);
    } else if (v->op == (is_true ? ACCESS_AND : ACCESS_OR)) {
        visit_atoms(c, access_operand(c->graph, v, 0), is_true, depth + 1, visit, context);
        visit_atoms(c, access_operand(c->graph, v, 1), is_true, depth + 1, visit, context);
    } else if (v->op == ACCESS_XOR) {
        const access_value *other = access_value_at(c->graph, access_operand(c->graph, v, 1));
        if (other->op == ACCESS_CONSTANT)
            visit_atoms(c, access_operand(c->graph, v, 0), is_true != (other->constant != 0),
                        depth + 1, visit, context);
    }
}

static void visit_block_atoms(compiler *c, uint32_t block, atom_visitor visit, void *context) {
    const access_block *b = &c->graph->blocks.items[block];
    if (b->has_condition && b->condition != ACCESS_NONE)
        visit_atoms(c, b->condition, b->condition_true, 0, visit, context);
}

static uint8_t negate(uint8_t comparison) {
    switch (comparison) {
    case PTX_MOD_eq: return PTX_MOD_ne;
    case PTX_MOD_ne: return PTX_MOD_eq;
    case PTX_MOD_lt: return PTX_MOD_ge;
    case PTX_MOD_le: return PTX_MOD_gt;
    case PTX_MOD_gt: return PTX_MOD_le;
    default: return PTX_MOD_lt;
    }
}

static uint8_t mirror(uint8_t comparison) {
    switch (comparison) {
    case PTX_MOD_lt: return PTX_MOD_gt;
    case PTX_MOD_le: return PTX_MOD_ge;
    case PTX_MOD_gt: return PTX_MOD_lt;
    case PTX_MOD_ge: return PTX_MOD_le;
    default: return comparison;
    }
}

static bool is_way_back(const access_graph *graph, uint32_t from, uint32_t header) {
    return graph->blocks.items[from].reached && access_dominates(graph, header, from);
}

/* Whether it is a loop, all of whose back edges are understood. */
static bool is_loop(const access_graph *graph, uint32_t block) {
    return graph->blocks.items[block].is_header && !graph->blocks.items[block].is_irreducible;
}

static bool is_invariant(const access_graph *graph, uint32_t value, uint32_t header) {
    return !access_in_loop(graph, graph->values.items[value].block, header);
}

/* The phi of `header` to which `value` adds only loop-invariant values; ACCESS_NONE. */
static uint32_t find_counter(compiler *c, uint32_t value, uint32_t header, chain *out,
                             uint8_t *in_out_bits) {
    access_graph *graph = c->graph;
    for (int depth = 0; depth < 64; depth++) {
        const access_value *v = &graph->values.items[value];
        if (v->bits < *in_out_bits) *in_out_bits = v->bits;
        if (v->op == ACCESS_PHI) return v->block == header ? value : ACCESS_NONE;
        /* A sum before the extension can wrap around in the narrow register. A sum after it could hide that. */
        if (v->op == ACCESS_EXTEND && v->is_signed && !out->count) {
            value = access_operand(graph, v, 0);
            continue;
        }
        if (v->op != ACCESS_ADD && v->op != ACCESS_SUB) return ACCESS_NONE;
        uint32_t a = access_operand(graph, v, 0), b = access_operand(graph, v, 1);
        bool subtracts = v->op == ACCESS_SUB;
        if (!subtracts && is_invariant(graph, a, header)) {
            uint32_t swap = a;
            a = b;
            b = swap;
        }
        if (!is_invariant(graph, b, header)) return ACCESS_NONE;
        access_push(graph, out, b);
        access_push(graph, out, subtracts ? UINT32_MAX : 1);
        value = a;
    }
    return ACCESS_NONE;
}

/* The number that an iteration adds to a phi, the same on all ways back. */
static bool find_step(compiler *c, uint32_t phi, chain *out) {
    access_graph *graph = c->graph;
    const access_value *v = &graph->values.items[phi];
    const access_block *b = &graph->blocks.items[v->block];
    uint32_t back = ACCESS_NONE;
    for (uint32_t k = 0; k < v->operand_count; k++) {
        if (!is_way_back(graph, b->predecessors[k], v->block)) continue;
        uint32_t o = access_operand(graph, v, k);
        if (back != ACCESS_NONE && o != back) return false;
        back = o;
    }
    uint8_t bits = 64;
    if (back == ACCESS_NONE || find_counter(c, back, v->block, out, &bits) != phi) return false;
    return bits == v->bits; /* else the sum is cut off somewhere */
}

static bool is_small_constant(const access_graph *graph, uint32_t value, uint64_t least) {
    const access_value *v = &graph->values.items[value];
    return v->op == ACCESS_CONSTANT && (int64_t)v->constant >= (int64_t)least;
}

static bool is_shrinking(compiler *c, uint32_t phi) {
    access_graph *graph = c->graph;
    const access_value *v = &graph->values.items[phi];
    const access_block *b = &graph->blocks.items[v->block];
    for (uint32_t k = 0; k < v->operand_count; k++) {
        if (!is_way_back(graph, b->predecessors[k], v->block)) continue;
        uint32_t o = access_operand(graph, v, k);
        while (o != phi) {
            const access_value *back = &graph->values.items[o];
            bool divides = back->op == ACCESS_DIV || back->op == ACCESS_SHR;
            if (!divides || back->bits != v->bits) return false;
            uint32_t by = access_operand(graph, back, 1);
            if (!is_small_constant(graph, by, back->op == ACCESS_DIV)) return false;
            o = access_operand(graph, back, 0);
        }
    }
    return true;
}

typedef struct {
    uint32_t header;
    bool is_emitting;
    uint32_t tests; /* how many there are */
} loop_tests;

static void need(compiler *c, uint32_t value);
static void need_block(compiler *c, uint32_t block);

static void visit_test(compiler *c, const access_value *compare, bool is_true, void *context) {
    loop_tests *t = context;
    access_graph *graph = c->graph;
    launch_test test = {.is_signed = compare->is_signed, .bits = compare->from};
    uint8_t comparison = is_true ? compare->comparison : negate(compare->comparison);
    for (uint32_t side = 0; side < 2; side++) {
        uint32_t value = access_operand(graph, compare, side);
        uint32_t bound = access_operand(graph, compare, 1 - side);
        chain found = {0};
        if (!is_invariant(graph, bound, t->header)) continue;
        uint32_t phi = find_counter(c, value, t->header, &found, &test.bits);
        if (phi == ACCESS_NONE) continue;
        if (!t->is_emitting) {
            need(c, phi);
            need(c, bound);
            for (uint32_t k = 0; k < found.count; k += 2) need(c, found.items[k]);
            return;
        }
        test.comparison = side ? mirror(comparison) : comparison;
        test.phi = c->node_of[phi];
        test.bound = c->node_of[bound];
        test.chain = c->operands.count;
        test.chain_count = found.count / 2;
        for (uint32_t k = 0; k < found.count; k += 2) {
            access_push(graph, &c->operands, c->node_of[found.items[k]]);
            access_push(graph, &c->operands, found.items[k + 1]);
        }
        access_push(graph, &c->tests, test);
        return;
    }
}

/* A block that every iteration comes through, because the other way out of the block before leaves the loop. */
static bool continues_loop(const access_graph *graph, uint32_t block, uint32_t header) {
    const access_block *b = &graph->blocks.items[block];
    if (!b->reached || !b->has_condition || b->predecessor_count != 1) return false;
    uint32_t from = b->predecessors[0];
    const access_block *before = &graph->blocks.items[from];
    if (!access_in_loop(graph, block, header) || !access_in_loop(graph, from, header)) return false;
    for (uint32_t k = 0; k < before->successor_count; k++)
        if (before->successors[k] != block && access_in_loop(graph, before->successors[k], header))
            return false;
    const access_block *h = &graph->blocks.items[header];
    for (uint32_t k = 0; k < h->predecessor_count; k++)
        if (is_way_back(graph, h->predecessors[k], header) &&
            !access_dominates(graph, from, h->predecessors[k]))
            return false;
    return true;
}

static void visit_tests(compiler *c, uint32_t header, bool is_emitting) {
    loop_tests t = {.header = header, .is_emitting = is_emitting};
    for (uint32_t k = 0; k < c->graph->order.count; k++)
        if (continues_loop(c->graph, c->graph->order.items[k], header))
            visit_block_atoms(c, c->graph->order.items[k], visit_test, &t);
}

/* ---- what is needed */

static void need(compiler *c, uint32_t value) {
    value = access_find(c->graph, value);
    if (c->is_needed[value]) return;
    c->is_needed[value] = true;
    access_push(c->graph, &c->work, value);
}

static void need_atom(compiler *c, const access_value *compare, bool is_true, void *context) {
    (void)is_true;
    (void)context;
    need(c, access_operand(c->graph, compare, 0));
    need(c, access_operand(c->graph, compare, 1));
}

static void need_block(compiler *c, uint32_t block) {
    while (!c->is_needed_block[block]) {
        c->is_needed_block[block] = true;
        visit_block_atoms(c, block, need_atom, NULL);
        if (is_loop(c->graph, block)) visit_tests(c, block, false);
        block = c->graph->blocks.items[block].dominator;
    }
}

static void need_phi(compiler *c, uint32_t phi) {
    access_graph *graph = c->graph;
    const access_value *v = &graph->values.items[phi];
    const access_block *b = &graph->blocks.items[v->block];
    chain step = {0};
    if (b->is_irreducible) return;
    for (uint32_t k = 0; k < v->operand_count; k++) {
        if (!b->is_header || !is_way_back(graph, b->predecessors[k], v->block)) {
            need(c, access_operand(graph, v, k));
            if (graph->blocks.items[b->predecessors[k]].reached) need_block(c, b->predecessors[k]);
        }
    }
    if (b->is_header && find_step(c, phi, &step))
        for (uint32_t k = 0; k < step.count; k += 2) need(c, step.items[k]);
}

static bool is_opaque(const access_value *v) {
    return v->op == ACCESS_LOAD || v->op == ACCESS_OTHER || v->op == ACCESS_PACK;
}

static void need_operands(compiler *c, uint32_t value) {
    const access_value *v = &c->graph->values.items[value];
    need_block(c, v->block);
    if (v->op == ACCESS_PHI) {
        need_phi(c, value);
    } else if (!is_opaque(v)) {
        uint32_t first = v->op == ACCESS_SELECT ? 1 : 0;
        for (uint32_t k = first; k < v->operand_count; k++) need(c, access_operand(c->graph, v, k));
        if (v->op == ACCESS_SELECT)
            for (int truth = 0; truth < 2; truth++)
                visit_atoms(c, access_operand(c->graph, v, 0), truth, 0, need_atom, NULL);
    }
}

static void find_needed(compiler *c) {
    access_graph *graph = c->graph;
    uint64_t *bases = access_take(graph, c->origins->set_words * sizeof *bases);
    for (uint32_t k = 0; k < graph->sites.count; k++) {
        const access_site *site = &graph->sites.items[k];
        uint32_t address = access_find(graph, site->address);
        if (site->is_followed || site->space == PTX_SHARED || site->space == PTX_LOCAL ||
            site->space == PTX_PARAM)
            continue;
        memset(bases, 0, c->origins->set_words * sizeof *bases);
        access_bases(c->origins, address, bases);
        launch_site made = {.address = address,
                            .block = site->block,
                            .bytes = site->bytes,
                            .access = site->access,
                            .is_atomic = site->is_atomic,
                            .is_system = site->is_system,
                            .doubt = site->is_guarded ? MR_PTX_CONDITION : MR_PTX_CERTAIN};
        const uint64_t *plus = c->origins->origins[address].plus;
        made.bases = c->bases.count;
        for (uint32_t p = 0; p < c->origins->piece_count; p++) {
            if (!access_has(bases, ORIGIN_FIRST_PIECE + p)) continue;
            if (!access_has(plus, ORIGIN_FIRST_PIECE + p)) continue;
            access_push(graph, &c->bases, p);
        }
        made.base_count = c->bases.count - made.bases;
        for (uint32_t p = 0; p < c->origins->piece_count; p++)
            if (access_has(bases, ORIGIN_FIRST_PIECE + p) &&
                !access_has(plus, ORIGIN_FIRST_PIECE + p))
                access_push(graph, &c->bases, p);
        made.unclear_count = c->bases.count - made.bases - made.base_count;
        if (c->bases.count == made.bases) continue;
        access_push(graph, &c->sites, made);
        need_block(c, site->block);
        if (made.base_count) need(c, address);
    }
    while (c->work.count) need_operands(c, c->work.items[--c->work.count]);
}

/* ---- nodes */

static void emit_phi(compiler *c, const access_value *v, uint32_t value, launch_node *node) {
    access_graph *graph = c->graph;
    const access_block *b = &graph->blocks.items[v->block];
    node->is_loop_phi = b->is_header && !b->is_irreducible;
    if (b->is_irreducible) {
        node->op = ACCESS_OTHER;
        return;
    }
    for (uint32_t k = 0; k < v->operand_count; k++) {
        if (!graph->blocks.items[b->predecessors[k]].reached) continue;
        if (node->is_loop_phi && is_way_back(graph, b->predecessors[k], v->block)) continue;
        access_push(graph, &c->operands, c->node_of[access_operand(graph, v, k)]);
        access_push(graph, &c->operands, c->block_of[b->predecessors[k]]);
    }
    node->operand_count = (c->operands.count - node->operands) / 2;
    chain step = {0};
    if (!node->is_loop_phi) return;
    node->is_affine = find_step(c, value, &step);
    node->is_shrinking = is_shrinking(c, value);
    node->step = c->operands.count;
    if (!node->is_affine) return;
    node->step_count = step.count / 2;
    for (uint32_t k = 0; k < step.count; k += 2) {
        access_push(graph, &c->operands, c->node_of[step.items[k]]);
        access_push(graph, &c->operands, step.items[k + 1]);
    }
}

static void emit_atom(compiler *c, const access_value *compare, bool is_true, void *context) {
    (void)context;
    launch_atom atom = {.left = c->node_of[access_operand(c->graph, compare, 0)],
                        .right = c->node_of[access_operand(c->graph, compare, 1)],
                        .comparison = is_true ? compare->comparison : negate(compare->comparison),
                        .bits = compare->from,
                        .is_signed = compare->is_signed};
    access_push(c->graph, &c->atoms, atom);
}

/* A selection has two lists of atoms, for the predicate true and false: step, step_count and number, offset. */
static void emit_select(compiler *c, const access_value *v, launch_node *node) {
    uint32_t p = access_operand(c->graph, v, 0);
    access_push(c->graph, &c->operands, c->node_of[access_operand(c->graph, v, 1)]);
    access_push(c->graph, &c->operands, c->node_of[access_operand(c->graph, v, 2)]);
    node->operand_count = 2;
    node->step = c->atoms.count;
    visit_atoms(c, p, true, 0, emit_atom, NULL);
    node->step_count = c->atoms.count - node->step;
    node->number = c->atoms.count;
    visit_atoms(c, p, false, 0, emit_atom, NULL);
    node->offset = c->atoms.count - node->number;
}

/* Whatever of a pointer can be in a value. */
static uint64_t holds_of(const compiler *c, uint32_t value) {
    const access_origins *all = c->origins;
    const access_origin *o = &all->origins[value];
    uint64_t holds = 0;
    for (uint32_t b = ORIGIN_SHARED; b < all->set_bits; b++) {
        bool is_piece = b >= ORIGIN_FIRST_PIECE && b < all->first_param_address;
        bool has = access_has(o->plus, b) || access_has(o->minus, b) ||
                   access_has(o->distance, b) || access_has(o->mixed, b);
        if (has) holds |= is_piece ? launch_bit(b - ORIGIN_FIRST_PIECE) : LAUNCH_ELSEWHERE;
    }
    return holds;
}

static void emit_node(compiler *c, uint32_t value) {
    access_graph *graph = c->graph;
    const access_value *v = &graph->values.items[value];
    launch_node node = {.op = v->op,
                        .bits = v->bits,
                        .from = v->from,
                        .is_signed = v->is_signed,
                        .number = v->number,
                        .offset = v->offset,
                        .constant = v->constant,
                        .holds = holds_of(c, value),
                        .operands = c->operands.count,
                        .block = c->block_of[v->block]};
    if (v->op == ACCESS_PHI) {
        emit_phi(c, v, value, &node);
    } else if (v->op == ACCESS_SELECT) {
        emit_select(c, v, &node);
    } else if (!is_opaque(v)) {
        for (uint32_t k = 0; k < v->operand_count; k++)
            access_push(graph, &c->operands, c->node_of[access_operand(graph, v, k)]);
        node.operand_count = v->operand_count;
    }
    c->nodes.items[c->node_of[value]] = node;
}

static void emit_block_conditions(compiler *c, uint32_t block) {
    launch_block *made = &c->blocks.items[c->block_of[block]];
    made->atoms = c->atoms.count;
    visit_block_atoms(c, block, emit_atom, NULL);
    made = &c->blocks.items[c->block_of[block]];
    made->atom_count = c->atoms.count - made->atoms;
    made->is_header = is_loop(c->graph, block);
    made->tests = c->tests.count;
    if (made->is_header) visit_tests(c, block, true);
    made = &c->blocks.items[c->block_of[block]];
    made->test_count = c->tests.count - made->tests;
}

typedef struct {
    uint32_t order, value;
    bool is_phi;
} node_place;

static int by_place(const void *left, const void *right) {
    const node_place *a = left, *b = right;
    if (a->order != b->order) return a->order < b->order ? -1 : 1;
    if (a->is_phi != b->is_phi) return a->is_phi ? -1 : 1;
    return a->value < b->value ? -1 : a->value > b->value;
}

static void place_nodes(compiler *c) {
    access_graph *graph = c->graph;
    uint32_t count = 0;
    node_place *places = access_take(graph, graph->values.count * sizeof *places);
    for (uint32_t v = 0; v < graph->values.count; v++) {
        const access_value *value = &graph->values.items[v];
        if (c->is_needed[v])
            places[count++] =
                (node_place){graph->blocks.items[value->block].order, v, value->op == ACCESS_PHI};
    }
    if (count) qsort(places, count, sizeof *places, by_place);
    for (uint32_t k = 0; k < count; k++) {
        c->node_of[places[k].value] = k;
        uint32_t block = c->block_of[graph->values.items[places[k].value].block];
        if (!c->blocks.items[block].node_count++) c->blocks.items[block].nodes = k;
        launch_node empty = {0};
        access_push(graph, &c->nodes, empty);
    }
    for (uint32_t k = 0; k < count; k++) emit_node(c, places[k].value);
}

static void place_blocks(compiler *c) {
    access_graph *graph = c->graph;
    for (uint32_t k = 0; k < graph->order.count; k++) {
        uint32_t b = graph->order.items[k];
        if (!c->is_needed_block[b]) continue;
        const access_block *block = &graph->blocks.items[b];
        launch_block made = {.enter = block->enter,
                             .leave = block->leave,
                             .dominator = c->block_of[block->dominator]};
        c->block_of[b] = c->blocks.count;
        if (b == 0) made.dominator = 0;
        access_push(graph, &c->blocks, made);
    }
}

/* ---- */

static void *keep(mr_region *region, const void *items, uint32_t count, size_t size) {
    void *copy = mr_region_alloc(region, count * size + 1);
    if (copy && count) memcpy(copy, items, count * size);
    return copy;
}

static void emit_links(compiler *c, const access_paths *paths, launch_site *site) {
    access_link links[ACCESS_MOST_LINKS];
    uint32_t count;
    if (site->doubt) return;
    site->doubt = access_links(paths, site->block, links, &count);
    site->links = c->links.count;
    if (site->doubt) return;
    site->link_count = count;
    for (uint32_t k = 0; k < count; k++) {
        links[k].block = c->block_of[links[k].block];
        access_push(c->graph, &c->links, links[k]);
    }
}

const access_program *access_compile(access_graph *graph, const access_origins *origins,
                                     const uint32_t *param_offsets, mr_region *region) {
    compiler c = {.graph = graph, .origins = origins};
    c.is_needed = access_take(graph, graph->values.count);
    c.is_needed_block = access_take(graph, graph->blocks.count);
    c.node_of = access_take(graph, graph->values.count * sizeof *c.node_of);
    c.block_of = access_take(graph, graph->blocks.count * sizeof *c.block_of);
    find_needed(&c);
    place_blocks(&c);
    place_nodes(&c);
    for (uint32_t k = 0; k < graph->order.count; k++)
        if (c.is_needed_block[graph->order.items[k]])
            emit_block_conditions(&c, graph->order.items[k]);
    const access_paths *paths = access_find_paths(graph);
    for (uint32_t k = 0; k < c.sites.count; k++) {
        emit_links(&c, paths, &c.sites.items[k]);
        c.sites.items[k].address = c.node_of[c.sites.items[k].address];
        c.sites.items[k].block = c.block_of[c.sites.items[k].block];
    }
    access_program *p = mr_region_alloc(region, sizeof *p);
    if (!p) return NULL;
    p->node_count = c.nodes.count;
    p->block_count = c.blocks.count;
    p->site_count = c.sites.count;
    p->piece_count = origins->piece_count;
    p->nodes = keep(region, c.nodes.items, c.nodes.count, sizeof *p->nodes);
    p->blocks = keep(region, c.blocks.items, c.blocks.count, sizeof *p->blocks);
    p->atoms = keep(region, c.atoms.items, c.atoms.count, sizeof *p->atoms);
    p->tests = keep(region, c.tests.items, c.tests.count, sizeof *p->tests);
    p->sites = keep(region, c.sites.items, c.sites.count, sizeof *p->sites);
    p->operands = keep(region, c.operands.items, c.operands.count, sizeof *p->operands);
    p->bases = keep(region, c.bases.items, c.bases.count, sizeof *p->bases);
    p->links = keep(region, c.links.items, c.links.count, sizeof *p->links);
    p->pieces = keep(region, origins->pieces, origins->piece_count, sizeof *p->pieces);
    uint32_t *pieces = mr_region_alloc(region, p->piece_count * sizeof *pieces + 1);
    for (uint32_t k = 0; k < p->piece_count && pieces; k++)
        pieces[k] = param_offsets[origins->pieces[k].param] + origins->pieces[k].offset;
    p->param_offsets = param_offsets;
    p->piece_offsets = pieces;
    bool kept = p->nodes && p->blocks && p->atoms && p->tests && p->sites && p->operands &&
                p->bases && p->links && p->pieces && pieces;
    return kept ? p : NULL;
}
