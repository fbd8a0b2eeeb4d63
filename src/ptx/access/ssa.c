/* Values in SSA form: each operation of the same operands has one number, and a variable has its value at each place.
 *
 * Values are made block by block while the graph is complete (Braun and others: Simple and Efficient Construction of
 * Static Single Assignment Form). */
#include "ptx/access/values.h"

/* Passes are over phis that may have become superfluous; one that is left costs precision only. */
enum { MOST_PASSES = 6 };

/* ---- values */

static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 31)) * 0x7fb5d329728ea185ull;
    x = (x ^ (x >> 27)) * 0x81dadef4bc2dd44dull;
    return x ^ (x >> 33);
}

static void know(access_graph *graph, access_value_map *map, uint64_t key, uint32_t value) {
    if (!mr_map_put(map, key, value)) longjmp(graph->out_of_memory, 1);
}

uint32_t access_find(const access_graph *graph, uint32_t value) {
    access_value *values = graph->values.items;
    for (uint32_t next; (next = values[value].replaced) != ACCESS_NONE; value = next)
        if (values[next].replaced != ACCESS_NONE) values[value].replaced = values[next].replaced;
    return value;
}

static uint64_t canonical(uint64_t x, uint32_t bits) {
    if (bits >= 64) return x;
    if (bits == 1) return x & 1;
    return (uint64_t)((int64_t)(x << (64 - bits)) >> (64 - bits));
}

uint32_t access_fresh(access_maker *m, access_value value, const uint32_t *operands,
                      uint32_t count) {
    value.operands = m->graph->operands.count;
    value.operand_count = count;
    value.replaced = ACCESS_NONE;
    for (uint32_t k = 0; k < count; k++) access_push(m->graph, &m->graph->operands, operands[k]);
    access_push(m->graph, &m->graph->values, value);
    access_push(m->graph, &m->same_hash, ACCESS_NONE);
    return m->graph->values.count - 1;
}

static bool equal_values(const access_graph *graph, const access_value *a, const access_value *b,
                         const uint32_t *operands) {
    if (a->op != b->op || a->bits != b->bits || a->from != b->from ||
        a->is_signed != b->is_signed || a->comparison != b->comparison || a->number != b->number ||
        a->offset != b->offset || a->constant != b->constant)
        return false;
    for (uint32_t k = 0; k < a->operand_count; k++)
        if (access_operand(graph, a, k) != operands[k]) return false;
    return true;
}

/* Values that a launch fixes are calculated at the start, outside of loops. */
static void place_uniform(const access_maker *m, access_value *value, const uint32_t *operands,
                          uint32_t count) {
    if (!count) {
        bool is_size = value->op == ACCESS_SPECIAL &&
                       (value->number == PTX_SREG_ntid || value->number == PTX_SREG_nctaid);
        value->is_uniform = value->op == ACCESS_CONSTANT || value->op == ACCESS_PARAM || is_size;
        return;
    }
    value->is_uniform = value->op >= ACCESS_ADD && value->op <= ACCESS_TRUNCATE;
    for (uint32_t k = 0; k < count; k++)
        value->is_uniform &= m->graph->values.items[operands[k]].is_uniform;
    if (value->is_uniform) value->block = 0;
}

/* The same value if there is one already that is known here, else a new one. */
uint32_t access_number(access_maker *m, access_value value, const uint32_t *operands,
                       uint32_t count) {
    access_graph *graph = m->graph;
    place_uniform(m, &value, operands, count);
    uint64_t hash = mix(value.op | (uint64_t)value.bits << 8 | (uint64_t)value.from << 16 |
                        (uint64_t)value.is_signed << 24 | (uint64_t)value.number << 32);
    hash = mix(hash ^ value.constant) ^ value.offset;
    for (uint32_t k = 0; k < count; k++) hash = mix(hash ^ operands[k]);
    hash >>= 1; /* the table adds 1 */
    uint32_t *last = mr_map_find(&m->graph->numbered, hash);
    for (uint32_t v = last ? *last : ACCESS_NONE; v != ACCESS_NONE; v = m->same_hash.items[v]) {
        const access_value *other = &graph->values.items[v];
        if (other->operand_count == count && equal_values(graph, other, &value, operands) &&
            access_dominates(graph, other->block, value.block))
            return access_find(graph, v);
    }
    uint32_t before = last ? *last : ACCESS_NONE;
    uint32_t made = access_fresh(m, value, operands, count);
    m->same_hash.items[made] = before;
    know(graph, &graph->numbered, hash, made);
    return made;
}

uint32_t access_constant(access_maker *m, uint64_t x, uint32_t bits) {
    access_value v = {.op = ACCESS_CONSTANT, .bits = (uint8_t)bits, .constant = canonical(x, bits)};
    return access_number(m, v, NULL, 0);
}

bool access_is_constant(const access_maker *m, uint32_t value, uint64_t *out) {
    const access_value *v = access_value_at(m->graph, value);
    *out = v->constant;
    return v->op == ACCESS_CONSTANT;
}

uint32_t access_leaf(access_maker *m, access_op op, uint32_t bits, uint32_t number,
                     uint32_t offset) {
    access_value v = {.op = (uint8_t)op, .bits = (uint8_t)bits, .number = number, .offset = offset};
    return access_number(m, v, NULL, 0);
}

uint32_t access_other(access_maker *m, uint32_t bits, const uint32_t *operands, uint32_t count) {
    access_value v = {.op = ACCESS_OTHER, .bits = (uint8_t)bits, .block = m->block};
    return access_fresh(m, v, operands, count);
}

uint32_t access_other_number(access_maker *m, uint32_t bits, uint64_t largest,
                             const uint32_t *operands, uint32_t count) {
    access_value v = {.op = ACCESS_OTHER,
                      .bits = (uint8_t)bits,
                      .block = m->block,
                      .is_number = true,
                      .constant = largest};
    return access_fresh(m, v, operands, count);
}

static uint32_t unary(access_maker *m, access_op op, uint32_t bits, uint32_t from, bool is_signed,
                      uint32_t a) {
    access_value v = {.op = (uint8_t)op,
                      .bits = (uint8_t)bits,
                      .from = (uint8_t)from,
                      .is_signed = is_signed,
                      .block = m->block};
    return access_number(m, v, &a, 1);
}

uint32_t access_binary(access_maker *m, access_op op, uint32_t bits, bool is_signed, uint32_t a,
                       uint32_t b) {
    uint64_t x, y;
    bool left = access_is_constant(m, a, &x), right = access_is_constant(m, b, &y);
    if (op == ACCESS_ADD && right && y == 0) return a;
    if (op == ACCESS_ADD && left && x == 0) return b;
    if (left && right) {
        if (op == ACCESS_ADD) return access_constant(m, x + y, bits);
        if (op == ACCESS_SUB) return access_constant(m, x - y, bits);
        if (op == ACCESS_MUL) return access_constant(m, x * y, bits);
    }
    if (op == ACCESS_SUB && right)
        return access_binary(m, ACCESS_ADD, bits, false, a, access_constant(m, -y, bits));
    access_value v = {
        .op = (uint8_t)op, .bits = (uint8_t)bits, .is_signed = is_signed, .block = m->block};
    return access_number(m, v, (uint32_t[]){a, b}, 2);
}

uint32_t access_extend(access_maker *m, uint32_t value, uint32_t from, uint32_t bits,
                       bool is_signed) {
    uint64_t x;
    if (from >= bits) return value;
    if (access_is_constant(m, value, &x)) {
        if (!is_signed && from < 64) x &= (UINT64_C(1) << from) - 1;
        return access_constant(m, x, bits);
    }
    return unary(m, ACCESS_EXTEND, bits, from, is_signed, value);
}

uint32_t access_truncate(access_maker *m, uint32_t value, uint32_t bits) {
    const access_value *v = access_value_at(m->graph, value);
    if (v->bits <= bits) return value;
    if (v->op == ACCESS_CONSTANT) return access_constant(m, v->constant, bits);
    if (v->op == ACCESS_EXTEND && v->from == bits) return access_operand(m->graph, v, 0);
    return unary(m, ACCESS_TRUNCATE, bits, 0, false, value);
}

uint32_t access_split(const access_graph *graph, uint32_t value, int64_t *out_offset) {
    *out_offset = 0;
    for (value = access_find(graph, value);;) {
        const access_value *v = &graph->values.items[value];
        if (v->op != ACCESS_ADD) return value;
        uint32_t a = access_operand(graph, v, 0), b = access_operand(graph, v, 1);
        if (graph->values.items[a].op == ACCESS_CONSTANT) {
            uint32_t c = a;
            a = b;
            b = c;
        }
        if (graph->values.items[b].op != ACCESS_CONSTANT) return value;
        *out_offset = (int64_t)((uint64_t)*out_offset + graph->values.items[b].constant);
        value = a;
    }
}

/* ---- variables */

static uint64_t place(uint32_t block, uint32_t variable) {
    return (uint64_t)block << 32 | variable;
}

static void define(access_maker *m, uint32_t block, uint32_t variable, uint32_t value) {
    know(m->graph, &m->graph->definitions, place(block, variable), value);
}

static uint32_t variable_bits(const access_maker *m, uint32_t block, uint32_t variable) {
    const access_graph *graph = m->graph;
    if (variable >= graph->register_count)
        return graph->cells.items[variable - graph->register_count].bytes * 8;
    /* Registers of callers are read in blocks of the functions that they call. */
    uint32_t c = graph->blocks.items[block].copy;
    while (variable < graph->copies.items[c].first_register ||
           variable - graph->copies.items[c].first_register >=
               graph->copies.items[c].function->register_count) {
        c = graph->copies.items[c].caller;
        if (c == ACCESS_NONE) return 64;
    }
    const access_copy *copy = &graph->copies.items[c];
    uint32_t bytes =
        mr_ptx_types[copy->function->registers[variable - copy->first_register].type].bytes;
    return bytes ? (bytes > 8 ? 64 : bytes * 8) : 1;
}

static uint32_t new_phi(access_maker *m, uint32_t block, uint32_t variable) {
    access_value v = {.op = ACCESS_PHI, .block = block};
    v.bits = (uint8_t)variable_bits(m, block, variable);
    uint32_t phi = access_fresh(m, v, NULL, 0);
    define(m, block, variable, phi);
    return phi;
}

/* Are the ends of all predecessors known? */
static bool is_complete(const access_maker *m, uint32_t block) {
    const access_block *b = &m->graph->blocks.items[block];
    for (uint32_t k = 0; k < b->predecessor_count; k++)
        if (m->graph->blocks.items[b->predecessors[k]].reached && !m->is_filled[b->predecessors[k]])
            return false;
    return true;
}

/* The value of a variable at the end of a block. Ways through blocks with one predecessor are walked; elsewhere a phi
 * is made, whose operands are read later. */
static uint32_t look_up(access_maker *m, uint32_t block, uint32_t variable) {
    access_graph *graph = m->graph;
    uint32_t first = block;
    for (;;) {
        uint32_t *known = mr_map_find(&m->graph->definitions, place(block, variable));
        uint32_t value;
        const access_block *b = &graph->blocks.items[block];
        if (known) {
            value = access_find(graph, *known);
        } else if (b->predecessor_count == 1 && block != 0) {
            block = b->predecessors[0];
            continue;
        } else if (b->predecessor_count == 0) {
            access_value undefined = {.op = ACCESS_UNDEFINED};
            undefined.bits = (uint8_t)variable_bits(m, block, variable);
            value = access_number(m, undefined, NULL, 0);
        } else {
            value = new_phi(m, block, variable);
            access_pending_phi p = {.phi = value, .variable = variable, .block = block};
            if (is_complete(m, block)) {
                access_push(graph, &m->pending, p);
            } else {
                p.next = m->first_incomplete[block];
                m->first_incomplete[block] = m->incomplete.count;
                access_push(graph, &m->incomplete, p);
            }
        }
        for (; first != block; first = graph->blocks.items[first].predecessors[0])
            define(m, first, variable, value);
        return value;
    }
}

/* A phi of one value, whatever the way, is that value. */
static bool remove_phi(access_graph *graph, uint32_t phi) {
    access_value *v = &graph->values.items[phi];
    if (v->replaced != ACCESS_NONE) return false;
    uint32_t same = ACCESS_NONE;
    for (uint32_t k = 0; k < v->operand_count; k++) {
        uint32_t o = access_operand(graph, v, k);
        if (o == phi || o == same) continue;
        if (same != ACCESS_NONE) return false;
        same = o;
    }
    if (same == ACCESS_NONE || graph->values.items[same].bits != v->bits) return false;
    /* A value that comes only from the entry need not dominate: it is the same everywhere. */
    if (!access_dominates(graph, graph->values.items[same].block, v->block)) return false;
    v->replaced = same;
    return true;
}

static void read_operands(access_maker *m, access_pending_phi p) {
    access_graph *graph = m->graph;
    uint32_t count = graph->blocks.items[p.block].predecessor_count;
    uint32_t *operands = access_take(graph, count * sizeof *operands);
    for (uint32_t k = 0; k < count; k++) {
        uint32_t from = graph->blocks.items[p.block].predecessors[k];
        if (graph->blocks.items[from].reached) {
            operands[k] = look_up(m, from, p.variable);
        } else {
            access_value undefined = {.op = ACCESS_UNDEFINED,
                                      .bits = graph->values.items[p.phi].bits};
            operands[k] = access_number(m, undefined, NULL, 0);
        }
    }
    graph->values.items[p.phi].operands = graph->operands.count;
    graph->values.items[p.phi].operand_count = count;
    for (uint32_t k = 0; k < count; k++) access_push(graph, &graph->operands, operands[k]);
}

static void drain(access_maker *m) {
    uint32_t first = 0;
    for (; first < m->pending.count; first++) read_operands(m, m->pending.items[first]);
    bool changed = true;
    for (int pass = 0; changed && pass < MOST_PASSES; pass++) {
        changed = false;
        for (uint32_t k = m->pending.count; k-- > 0;)
            changed |= remove_phi(m->graph, m->pending.items[k].phi);
    }
    m->pending.count = 0;
}

uint32_t access_read_variable(access_maker *m, uint32_t variable) {
    uint32_t value = look_up(m, m->block, variable);
    if (m->pending.count) drain(m);
    return access_find(m->graph, value);
}

uint32_t access_read_register(access_maker *m, uint32_t index) {
    const access_copy *copy = &m->graph->copies.items[m->copy];
    uint32_t variable = copy->first_register + index;
    if (copy->definitions[index] == 1 && m->only[variable] != ACCESS_NONE &&
        access_dominates(m->graph, m->only_block[variable], m->block))
        return access_find(m->graph, m->only[variable]);
    return access_read_variable(m, variable);
}

/* The guard of the instruction at hand as a predicate; ACCESS_NONE: it has none. */
static uint32_t guard(access_maker *m) {
    if (m->at->guard < 0) return ACCESS_NONE;
    uint32_t p = access_read_register(m, (uint32_t)m->at->guard);
    return m->at->guard_negated
               ? access_binary(m, ACCESS_XOR, 1, false, p, access_constant(m, 1, 1))
               : p;
}

uint32_t access_select(access_maker *m, uint32_t bits, uint32_t p, uint32_t a, uint32_t b) {
    if (a == b) return a;
    access_value v = {.op = ACCESS_SELECT, .bits = (uint8_t)bits, .block = m->block};
    return access_number(m, v, (uint32_t[]){p, a, b}, 3);
}

void access_write_variable(access_maker *m, uint32_t variable, uint32_t value) {
    uint32_t p = guard(m);
    if (p != ACCESS_NONE) {
        uint32_t old = access_read_variable(m, variable);
        value = access_select(m, variable_bits(m, m->block, variable), p, value, old);
    }
    define(m, m->block, variable, value);
}

void access_write_register(access_maker *m, uint32_t index, uint32_t value) {
    const access_copy *copy = &m->graph->copies.items[m->copy];
    uint32_t variable = copy->first_register + index;
    access_write_variable(m, variable, value);
    if (copy->definitions[index] == 1) {
        m->only[variable] = value;
        m->only_block[variable] = m->block;
    }
}

void access_complete_phis(access_maker *m, uint32_t block) {
    const access_block *b = &m->graph->blocks.items[block];
    for (uint32_t k = 0; k < b->successor_count; k++) {
        uint32_t to = b->successors[k];
        if (m->first_incomplete[to] == ACCESS_NONE || !is_complete(m, to)) continue;
        for (uint32_t i = m->first_incomplete[to]; i != ACCESS_NONE;
             i = m->incomplete.items[i].next)
            access_push(m->graph, &m->pending, m->incomplete.items[i]);
        m->first_incomplete[to] = ACCESS_NONE;
    }
    if (m->pending.count) drain(m);
}

/* A phi that had two values can be left with one when those have been replaced. */
void access_remove_phis(access_graph *graph) {
    bool changed = true;
    for (int pass = 0; changed && pass < 4 * MOST_PASSES; pass++) {
        changed = false;
        for (uint32_t v = 0; v < graph->values.count; v++)
            if (graph->values.items[v].op == ACCESS_PHI) changed |= remove_phi(graph, v);
    }
}
