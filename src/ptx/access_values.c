/* The values of a kernel: registers, and those parts of local memory whose address is always the same constant, in SSA
 * form.
 *
 * Values are made block by block while the graph is complete (Braun and others: Simple and Efficient Construction of
 * Static Single Assignment Form). An address that a kernel keeps in local memory is only known when that memory is
 * followed; so values are made again until nothing new is found (access_settle in access_origin.c decides).
 *
 * What is easiest to break: a part of local memory that is followed must be reached in no other way. */
#include "ptx/access_graph.h"

#include <string.h>

/* Passes are over phis that may have become superfluous; one that is left costs precision only. */
enum { MOST_VALUES = 100000, MOST_PASSES = 6 };

/* ---- tables */

typedef struct {
    uint64_t *keys; /* + 1; 0: free */
    uint32_t *items;
    uint32_t capacity, count;
} table;

static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 31)) * 0x7fb5d329728ea185ull;
    x = (x ^ (x >> 27)) * 0x81dadef4bc2dd44dull;
    return x ^ (x >> 33);
}

static uint32_t *table_find(const table *t, uint64_t key) {
    if (!t->capacity) return NULL;
    for (uint32_t k = (uint32_t)mix(key);; k++) {
        uint32_t at = k & (t->capacity - 1);
        if (!t->keys[at]) return NULL;
        if (t->keys[at] == key + 1) return &t->items[at];
    }
}

static void table_set(access_graph *graph, table *t, uint64_t key, uint32_t item) {
    uint32_t *there = table_find(t, key);
    if (there) {
        *there = item;
        return;
    }
    if (t->count * 2 >= t->capacity) {
        table old = *t;
        t->capacity = old.capacity ? old.capacity * 2 : 256;
        t->keys = access_take(graph, t->capacity * sizeof *t->keys);
        t->items = access_take(graph, t->capacity * sizeof *t->items);
        t->count = 0;
        for (uint32_t k = 0; k < old.capacity; k++)
            if (old.keys[k]) table_set(graph, t, old.keys[k] - 1, old.items[k]);
    }
    uint32_t k = (uint32_t)mix(key);
    while (t->keys[k & (t->capacity - 1)]) k++;
    t->keys[k & (t->capacity - 1)] = key + 1;
    t->items[k & (t->capacity - 1)] = item;
    t->count++;
}

/* ---- values */

typedef struct {
    uint32_t phi, variable, block;
    uint32_t next; /* of the incomplete ones of that block */
} pending_phi;

typedef struct {
    access_graph *graph;
    table
        definitions; /* block and variable -> value. A variable is a register, or behind them a cell */
    table numbered;                  /* hash of a value -> the last one of that hash */
    ACCESS_LIST(uint32_t) same_hash; /* by value: the one before */
    uint32_t *only;                  /* by register that one instruction writes: its value */
    uint32_t *only_block;
    bool *is_filled;
    ACCESS_LIST(pending_phi) pending;    /* phis whose operands are still to be read */
    ACCESS_LIST(pending_phi) incomplete; /* phis of loops that are not complete yet */
    uint32_t *first_incomplete;          /* by block */

    uint32_t copy, block, instruction; /* which is being read */
    const ptx_instruction *at;
} maker;

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

static uint32_t add_value(maker *m, access_value value, const uint32_t *operands, uint32_t count) {
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

/* What a launch fixes is calculated at the start, so that loops find it outside of them. */
static void place_uniform(const maker *m, access_value *value, const uint32_t *operands,
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
static uint32_t number_value(maker *m, access_value value, const uint32_t *operands,
                             uint32_t count) {
    access_graph *graph = m->graph;
    place_uniform(m, &value, operands, count);
    uint64_t hash = mix(value.op | (uint64_t)value.bits << 8 | (uint64_t)value.from << 16 |
                        (uint64_t)value.is_signed << 24 | (uint64_t)value.number << 32);
    hash = mix(hash ^ value.constant) ^ value.offset;
    for (uint32_t k = 0; k < count; k++) hash = mix(hash ^ operands[k]);
    hash >>= 1; /* the table adds 1 */
    uint32_t *last = table_find(&m->numbered, hash);
    for (uint32_t v = last ? *last : ACCESS_NONE; v != ACCESS_NONE; v = m->same_hash.items[v]) {
        const access_value *other = &graph->values.items[v];
        if (other->operand_count == count && equal_values(graph, other, &value, operands) &&
            access_dominates(graph, other->block, value.block))
            return access_find(graph, v);
    }
    uint32_t before = last ? *last : ACCESS_NONE;
    uint32_t made = add_value(m, value, operands, count);
    m->same_hash.items[made] = before;
    table_set(graph, &m->numbered, hash, made);
    return made;
}

static uint32_t constant(maker *m, uint64_t x, uint32_t bits) {
    access_value v = {.op = ACCESS_CONSTANT, .bits = (uint8_t)bits, .constant = canonical(x, bits)};
    return number_value(m, v, NULL, 0);
}

static bool is_constant(const maker *m, uint32_t value, uint64_t *out) {
    const access_value *v = access_value_at(m->graph, value);
    *out = v->constant;
    return v->op == ACCESS_CONSTANT;
}

static uint32_t leaf(maker *m, access_op op, uint32_t bits, uint32_t number, uint32_t offset) {
    access_value v = {.op = (uint8_t)op, .bits = (uint8_t)bits, .number = number, .offset = offset};
    return number_value(m, v, NULL, 0);
}

static uint32_t other(maker *m, uint32_t bits, const uint32_t *operands, uint32_t count) {
    access_value v = {.op = ACCESS_OTHER, .bits = (uint8_t)bits, .block = m->block};
    return add_value(m, v, operands, count);
}

static uint32_t other_up_to(maker *m, uint32_t bits, uint64_t largest) {
    access_value v = {
        .op = ACCESS_OTHER, .bits = (uint8_t)bits, .block = m->block, .constant = largest};
    return add_value(m, v, NULL, 0);
}

static uint32_t unary(maker *m, access_op op, uint32_t bits, uint32_t from, bool is_signed,
                      uint32_t a) {
    access_value v = {.op = (uint8_t)op,
                      .bits = (uint8_t)bits,
                      .from = (uint8_t)from,
                      .is_signed = is_signed,
                      .block = m->block};
    return number_value(m, v, &a, 1);
}

static uint32_t binary(maker *m, access_op op, uint32_t bits, bool is_signed, uint32_t a,
                       uint32_t b) {
    uint64_t x, y;
    bool left = is_constant(m, a, &x), right = is_constant(m, b, &y);
    if (op == ACCESS_ADD && right && y == 0) return a;
    if (op == ACCESS_ADD && left && x == 0) return b;
    if (left && right) {
        if (op == ACCESS_ADD) return constant(m, x + y, bits);
        if (op == ACCESS_SUB) return constant(m, x - y, bits);
        if (op == ACCESS_MUL) return constant(m, x * y, bits);
    }
    if (op == ACCESS_SUB && right)
        return binary(m, ACCESS_ADD, bits, false, a, constant(m, -y, bits));
    access_value v = {
        .op = (uint8_t)op, .bits = (uint8_t)bits, .is_signed = is_signed, .block = m->block};
    return number_value(m, v, (uint32_t[]){a, b}, 2);
}

static uint32_t extend(maker *m, uint32_t value, uint32_t from, uint32_t bits, bool is_signed) {
    uint64_t x;
    if (from >= bits) return value;
    if (is_constant(m, value, &x)) {
        if (!is_signed && from < 64) x &= (UINT64_C(1) << from) - 1;
        return constant(m, x, bits);
    }
    return unary(m, ACCESS_EXTEND, bits, from, is_signed, value);
}

static uint32_t truncate_to(maker *m, uint32_t value, uint32_t bits) {
    const access_value *v = access_value_at(m->graph, value);
    if (v->bits <= bits) return value;
    if (v->op == ACCESS_CONSTANT) return constant(m, v->constant, bits);
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

static void define(maker *m, uint32_t block, uint32_t variable, uint32_t value) {
    table_set(m->graph, &m->definitions, place(block, variable), value);
}

static uint32_t variable_bits(const maker *m, uint32_t block, uint32_t variable) {
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
        ptx_types[copy->function->registers[variable - copy->first_register].type].bytes;
    return bytes ? (bytes > 8 ? 64 : bytes * 8) : 1;
}

static uint32_t new_phi(maker *m, uint32_t block, uint32_t variable) {
    access_value v = {.op = ACCESS_PHI, .block = block};
    v.bits = (uint8_t)variable_bits(m, block, variable);
    uint32_t phi = add_value(m, v, NULL, 0);
    define(m, block, variable, phi);
    return phi;
}

/* Are the ends of all predecessors known? */
static bool is_complete(const maker *m, uint32_t block) {
    const access_block *b = &m->graph->blocks.items[block];
    for (uint32_t k = 0; k < b->predecessor_count; k++)
        if (m->graph->blocks.items[b->predecessors[k]].reached && !m->is_filled[b->predecessors[k]])
            return false;
    return true;
}

/* What a variable holds at the end of a block. Ways through blocks with one predecessor are walked; elsewhere a phi is made,
 * whose operands are read later. */
static uint32_t look_up(maker *m, uint32_t block, uint32_t variable) {
    access_graph *graph = m->graph;
    uint32_t first = block;
    for (;;) {
        uint32_t *known = table_find(&m->definitions, place(block, variable));
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
            value = number_value(m, undefined, NULL, 0);
        } else {
            value = new_phi(m, block, variable);
            pending_phi p = {.phi = value, .variable = variable, .block = block};
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
    /* What comes only from the entry need not dominate: it is the same there and everywhere. */
    if (!access_dominates(graph, graph->values.items[same].block, v->block)) return false;
    v->replaced = same;
    return true;
}

static void read_operands(maker *m, pending_phi p) {
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
            operands[k] = number_value(m, undefined, NULL, 0);
        }
    }
    graph->values.items[p.phi].operands = graph->operands.count;
    graph->values.items[p.phi].operand_count = count;
    for (uint32_t k = 0; k < count; k++) access_push(graph, &graph->operands, operands[k]);
}

static void drain(maker *m) {
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

static uint32_t read_variable(maker *m, uint32_t variable) {
    uint32_t value = look_up(m, m->block, variable);
    if (m->pending.count) drain(m);
    return access_find(m->graph, value);
}

static uint32_t read_register(maker *m, uint32_t index) {
    const access_copy *copy = &m->graph->copies.items[m->copy];
    uint32_t variable = copy->first_register + index;
    if (copy->definitions[index] == 1 && m->only[variable] != ACCESS_NONE &&
        access_dominates(m->graph, m->only_block[variable], m->block))
        return access_find(m->graph, m->only[variable]);
    return read_variable(m, variable);
}

/* The guard of the instruction at hand as a predicate; ACCESS_NONE: it has none. */
static uint32_t guard(maker *m) {
    if (m->at->guard < 0) return ACCESS_NONE;
    uint32_t p = read_register(m, (uint32_t)m->at->guard);
    return m->at->guard_negated ? binary(m, ACCESS_XOR, 1, false, p, constant(m, 1, 1)) : p;
}

static uint32_t select_value(maker *m, uint32_t bits, uint32_t p, uint32_t a, uint32_t b) {
    if (a == b) return a;
    access_value v = {.op = ACCESS_SELECT, .bits = (uint8_t)bits, .block = m->block};
    return number_value(m, v, (uint32_t[]){p, a, b}, 3);
}

static void write_variable(maker *m, uint32_t variable, uint32_t value) {
    uint32_t p = guard(m);
    if (p != ACCESS_NONE) {
        uint32_t old = read_variable(m, variable);
        value = select_value(m, variable_bits(m, m->block, variable), p, value, old);
    }
    define(m, m->block, variable, value);
}

static void write_register(maker *m, uint32_t index, uint32_t value) {
    const access_copy *copy = &m->graph->copies.items[m->copy];
    uint32_t variable = copy->first_register + index;
    write_variable(m, variable, value);
    if (copy->definitions[index] == 1) {
        m->only[variable] = value;
        m->only_block[variable] = m->block;
    }
}

/* ---- operands */

static uint32_t register_bits(const maker *m, uint32_t index) {
    const ptx_function *f = m->graph->copies.items[m->copy].function;
    uint32_t bytes = ptx_types[f->registers[index].type].bytes;
    return bytes ? (bytes > 8 ? 64 : bytes * 8) : 1;
}

static bool is_integer(ptx_type type) {
    return ptx_types[type].sort != PTX_FLOAT;
}

static uint32_t type_bits(ptx_type type) {
    uint32_t bytes = ptx_types[type].bytes;
    return bytes ? (bytes > 8 ? 64 : bytes * 8) : 1;
}

static uint32_t address_of(maker *m, const ptx_operand *o, int64_t offset) {
    const access_graph *graph = m->graph;
    const access_copy *copy = &graph->copies.items[m->copy];
    uint32_t base;
    if (o->kind == PTX_VARIABLE) {
        bool shared = graph->tree->variables[o->index].space == PTX_SHARED;
        base = leaf(m, shared ? ACCESS_ADDRESS_SHARED : ACCESS_ADDRESS_VARIABLE, 64, o->index, 0);
    } else if (o->kind == PTX_LOCAL_VARIABLE) {
        uint32_t storage = copy->variables[o->index];
        base = storage == ACCESS_NONE ? leaf(m, ACCESS_ADDRESS_SHARED, 64, ACCESS_NONE, 0)
                                      : leaf(m, ACCESS_ADDRESS_LOCAL, 64, storage, 0);
    } else if (!copy->parameters) {
        base = leaf(m, ACCESS_ADDRESS_PARAM, 64, o->index, 0);
    } else if (copy->parameters[o->index] == ACCESS_NONE) {
        base = other(m, 64, NULL, 0);
    } else {
        base = leaf(m, ACCESS_ADDRESS_LOCAL, 64, copy->parameters[o->index], 0);
    }
    return binary(m, ACCESS_ADD, 64, false, base, constant(m, (uint64_t)offset, 64));
}

static uint32_t operand_value(maker *m, const ptx_operand *o, uint32_t bits);

static uint32_t pack(maker *m, const ptx_operand *o, uint32_t bits) {
    uint32_t parts[8], count = o->count > 8 ? 8 : o->count;
    if (!count) return other(m, bits, NULL, 0);
    for (uint32_t k = 0; k < count; k++) parts[k] = operand_value(m, &o->list[k], bits / count);
    access_value v = {.op = ACCESS_PACK, .bits = (uint8_t)bits, .block = m->block};
    /* {the low half of x, the high half of x} is x */
    const access_value *low = access_value_at(m->graph, parts[0]);
    const access_value *high = access_value_at(m->graph, parts[count - 1]);
    if (count == 2 && bits == 64 && low->op == ACCESS_TRUNCATE && high->op == ACCESS_TRUNCATE) {
        uint32_t whole = access_operand(m->graph, low, 0);
        const access_value *shifted = access_value_at(m->graph, access_operand(m->graph, high, 0));
        uint64_t by;
        if (shifted->op == ACCESS_SHR && access_operand(m->graph, shifted, 0) == whole &&
            is_constant(m, access_operand(m->graph, shifted, 1), &by) && by == 32)
            return whole;
    }
    return number_value(m, v, parts, count);
}

/* Special registers that a thread always reads the same from. */
static bool is_fixed_special(ptx_special s) {
    return s == PTX_SREG_tid || s == PTX_SREG_ntid || s == PTX_SREG_ctaid || s == PTX_SREG_nctaid ||
           s == PTX_SREG_laneid;
}

/* An operand as a value of `bits`. */
static uint32_t operand_value(maker *m, const ptx_operand *o, uint32_t bits) {
    uint32_t value;
    switch ((ptx_operand_kind)o->kind) {
    case PTX_REGISTER:
        value = read_register(m, o->index);
        if (o->negated) value = binary(m, ACCESS_XOR, 1, false, value, constant(m, 1, 1));
        break;
    case PTX_SPECIAL:
        if (!is_fixed_special((ptx_special)o->index)) return other(m, bits, NULL, 0);
        value = leaf(m, ACCESS_SPECIAL, bits, o->index, o->component);
        break;
    case PTX_INTEGER: return constant(m, o->bits, bits);
    case PTX_VARIABLE:
    case PTX_LOCAL_VARIABLE:
    case PTX_PARAMETER: value = address_of(m, o, o->offset); break;
    case PTX_LIST: return pack(m, o, bits);
    default: return other(m, bits, NULL, 0);
    }
    uint32_t have = m->graph->values.items[value].bits;
    if (have > bits) return truncate_to(m, value, bits);
    return extend(m, value, have, bits, false);
}

static uint32_t source(maker *m, uint32_t k, uint32_t bits) {
    if (k >= m->at->operand_count) return other(m, bits, NULL, 0);
    return operand_value(m, &m->at->operands[k], bits);
}

/* A value of `from` bits as the register wants it. */
static void write_operand(maker *m, const ptx_operand *o, uint32_t value, uint32_t from,
                          bool is_signed) {
    if (o->kind != PTX_REGISTER) return;
    uint32_t bits = register_bits(m, o->index);
    if (from < bits) value = extend(m, value, from, bits, is_signed);
    else if (m->graph->values.items[access_find(m->graph, value)].bits > bits)
        value = truncate_to(m, value, bits);
    write_register(m, o->index, value);
}

/* The result is not known; it is derived from all operands. */
static void write_other(maker *m, bool keeps_pointers) {
    uint32_t sources[PTX_MOST_OPERANDS + 1], count = 0;
    uint32_t results = m->at->two_results ? 2 : 1;
    for (uint32_t k = results; keeps_pointers && k < m->at->operand_count; k++)
        sources[count++] = operand_value(m, &m->at->operands[k], 64);
    for (uint32_t r = 0; r < results && r < m->at->operand_count; r++) {
        const ptx_operand *o = &m->at->operands[r];
        uint32_t parts = o->kind == PTX_LIST ? o->count : 1;
        for (uint32_t k = 0; k < parts; k++) {
            const ptx_operand *to = o->kind == PTX_LIST ? &o->list[k] : o;
            if (to->kind != PTX_REGISTER || to->is_address) continue;
            uint32_t bits = register_bits(m, to->index);
            write_register(m, to->index, other(m, bits, sources, count));
        }
    }
}

/* ---- memory */

static ptx_space space_of(const ptx_instruction *i) {
    for (uint32_t k = 0; k < i->modifier_count; k++) {
        switch ((ptx_modifier)i->modifiers[k]) {
        case PTX_MOD_global: return PTX_GLOBAL;
        case PTX_MOD_shared:
        case PTX_MOD_shared_cta:
        case PTX_MOD_shared_cluster: return PTX_SHARED;
        case PTX_MOD_local: return PTX_LOCAL;
        case PTX_MOD_const_: return PTX_CONST;
        case PTX_MOD_param:
        case PTX_MOD_param_entry:
        case PTX_MOD_param_func: return PTX_PARAM;
        default: break;
        }
    }
    return PTX_GENERIC;
}

/* Which cell an access of local memory is; ACCESS_NONE: one that is not followed. */
static uint32_t cell_at(maker *m, uint32_t storage, int64_t offset, uint32_t bytes) {
    access_graph *graph = m->graph;
    if (graph->is_exposed[storage]) return ACCESS_NONE;
    if (offset < 0 || offset > INT32_MAX || bytes > 8) {
        graph->is_exposed[storage] = graph->again = true;
        return ACCESS_NONE;
    }
    bool overlaps = false, mixed = false;
    for (uint32_t k = graph->first_cell[storage]; k != ACCESS_NONE;
         k = graph->cells.items[k].next) {
        access_cell *cell = &graph->cells.items[k];
        if (cell->offset == offset && cell->bytes == bytes) return cell->is_mixed ? ACCESS_NONE : k;
        if (cell->offset + cell->bytes <= offset || offset + bytes <= cell->offset) continue;
        graph->again |= !cell->is_mixed;
        overlaps = mixed = cell->is_mixed = true;
    }
    access_cell cell = {.storage = storage,
                        .offset = (uint32_t)offset,
                        .bytes = bytes,
                        .is_mixed = mixed,
                        .next = graph->first_cell[storage]};
    access_push(graph, &graph->cells, cell);
    graph->first_cell[storage] = graph->cells.count - 1;
    return overlaps ? ACCESS_NONE : graph->cells.count - 1;
}

static uint32_t memory_address(maker *m, const ptx_operand *o) {
    if (o->kind == PTX_REGISTER) {
        uint32_t base = operand_value(m, o, 64);
        return binary(m, ACCESS_ADD, 64, false, base, constant(m, (uint64_t)o->offset, 64));
    }
    return operand_value(m, o, 64);
}

static uint32_t add_site(maker *m, uint32_t address, uint32_t part, uint32_t bytes, uint8_t access,
                         ptx_space space, ptx_type element, bool is_followed) {
    access_site site = {.address = address,
                        .block = m->block,
                        .copy = m->copy,
                        .instruction = m->instruction,
                        .part = part,
                        .bytes = bytes,
                        .access = access,
                        .space = (uint8_t)space,
                        .element = (uint8_t)element,
                        .is_followed = is_followed};
    access_push(m->graph, &m->graph->sites, site);
    return m->graph->sites.count - 1;
}

/* Where an address points, if it is a constant place in local memory or in the parameters of the kernel. */
static access_op resolve(maker *m, uint32_t address, uint32_t part, ptx_space space,
                         uint32_t *out_number, int64_t *out_offset, bool *out_is_assumed) {
    const access_graph *graph = m->graph;
    uint32_t base = access_split(graph, address, out_offset);
    const access_value *v = &graph->values.items[base];
    *out_number = v->number;
    *out_is_assumed = false;
    if (v->op == ACCESS_ADDRESS_LOCAL || v->op == ACCESS_ADDRESS_PARAM) return (access_op)v->op;
    const access_known *known =
        &graph->known[graph->copies.items[m->copy].first_site + m->instruction];
    if (known->storage == ACCESS_NONE || space == PTX_GLOBAL || space == PTX_SHARED)
        return ACCESS_OTHER;
    *out_number = known->storage;
    *out_offset = known->offset + part;
    *out_is_assumed = true;
    return ACCESS_ADDRESS_LOCAL;
}

/* What a load of one element gives: `bits` of it. */
static uint32_t load_element(maker *m, uint32_t address, uint32_t part, ptx_space space,
                             ptx_type type) {
    access_graph *graph = m->graph;
    uint32_t bytes = ptx_types[type].bytes, bits = type_bits(type), number;
    int64_t offset;
    bool assumed;
    access_op base = resolve(m, address, part, space, &number, &offset, &assumed);
    access_value v = {.op = ACCESS_LOAD,
                      .bits = (uint8_t)bits,
                      .space = (uint8_t)space,
                      .number = ACCESS_NONE,
                      .block = m->block};
    bool is_number = !is_integer(type); /* of floating point: no pointer */
    if (base == ACCESS_ADDRESS_LOCAL) {
        uint32_t cell = cell_at(m, number, offset, bytes);
        if (cell != ACCESS_NONE) {
            if (assumed) add_site(m, address, part, bytes, MR_PTX_READS, space, type, true);
            return read_variable(m, graph->register_count + cell);
        }
        v.number = number;
    } else if (base == ACCESS_ADDRESS_PARAM && offset >= 0 && offset < INT32_MAX && bytes <= 8) {
        return leaf(m, ACCESS_PARAM, bits, number, (uint32_t)offset);
    }
    add_site(m, address, part, bytes, MR_PTX_READS, space, type, false);
    return is_number ? other(m, bits, NULL, 0) : add_value(m, v, &address, 1);
}

static uint32_t vector_part(const ptx_operand *o, uint32_t k, const ptx_operand **out) {
    *out = o->kind == PTX_LIST ? &o->list[k] : o;
    return o->kind == PTX_LIST ? o->count : 1;
}

static void load(maker *m) {
    if (m->at->operand_count < 2 || !m->at->type_count) return;
    ptx_type type = (ptx_type)m->at->types[m->at->type_count - 1];
    ptx_space space = space_of(m->at);
    const ptx_operand *to, *result = &m->at->operands[0];
    uint32_t count = vector_part(result, 0, &to), bytes = ptx_types[type].bytes;
    uint32_t address = memory_address(m, &m->at->operands[1]);
    uint32_t values[16];
    if (count > 16) count = 16;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t part = binary(m, ACCESS_ADD, 64, false, address, constant(m, k * bytes, 64));
        values[k] = load_element(m, part, k * bytes, space, type);
    }
    for (uint32_t k = 0; k < count; k++) {
        vector_part(result, k, &to);
        write_operand(m, to, values[k], type_bits(type), ptx_types[type].sort == PTX_SIGNED);
    }
}

static void store_element(maker *m, uint32_t address, uint32_t part, ptx_space space, ptx_type type,
                          uint32_t value) {
    access_graph *graph = m->graph;
    uint32_t bytes = ptx_types[type].bytes, number;
    int64_t offset;
    bool assumed;
    access_op base = resolve(m, address, part, space, &number, &offset, &assumed);
    if (base == ACCESS_ADDRESS_LOCAL) {
        uint32_t cell = cell_at(m, number, offset, bytes);
        if (cell != ACCESS_NONE) {
            if (assumed) add_site(m, address, part, bytes, MR_PTX_WRITES, space, type, true);
            write_variable(m, graph->register_count + cell, value);
            return;
        }
    }
    uint32_t site = add_site(m, address, part, bytes, MR_PTX_WRITES, space, type, false);
    access_escape escape = {.value = value, .site = site, .storage = ACCESS_NONE};
    if (base == ACCESS_ADDRESS_LOCAL) escape.storage = number;
    access_push(graph, &graph->escapes, escape);
}

static void store(maker *m) {
    if (m->at->operand_count < 2 || !m->at->type_count) return;
    ptx_type type = (ptx_type)m->at->types[m->at->type_count - 1];
    ptx_space space = space_of(m->at);
    const ptx_operand *from;
    uint32_t count = vector_part(&m->at->operands[1], 0, &from), bytes = ptx_types[type].bytes;
    uint32_t address = memory_address(m, &m->at->operands[0]);
    for (uint32_t k = 0; k < count; k++) {
        vector_part(&m->at->operands[1], k, &from);
        uint32_t part = binary(m, ACCESS_ADD, 64, false, address, constant(m, k * bytes, 64));
        store_element(m, part, k * bytes, space, type, operand_value(m, from, type_bits(type)));
    }
}

/* An access whose value does not matter: atomics, copies. What is stored can be read back elsewhere. */
static void access_memory(maker *m, const ptx_operand *o, uint32_t bytes, uint8_t access,
                          ptx_space space, ptx_type element, uint32_t first_stored) {
    uint32_t site = add_site(m, memory_address(m, o), 0, bytes, access, space, element, false);
    for (uint32_t k = first_stored; k < m->at->operand_count; k++) {
        access_escape escape = {.site = site, .storage = ACCESS_NONE};
        escape.value = operand_value(m, &m->at->operands[k], type_bits(element));
        access_push(m->graph, &m->graph->escapes, escape);
    }
}

static uint32_t vector_length(const ptx_instruction *i) {
    return ptx_has(i, PTX_MOD_v2) ? 2 : ptx_has(i, PTX_MOD_v4) ? 4 : ptx_has(i, PTX_MOD_v8) ? 8 : 1;
}

static void atomic(maker *m, uint32_t address) {
    if (m->at->operand_count <= address || !m->at->type_count) return;
    ptx_type type = (ptx_type)m->at->types[m->at->type_count - 1];
    uint32_t bytes = ptx_types[type].bytes * vector_length(m->at);
    ptx_space space = space_of(m->at);
    access_memory(m, &m->at->operands[address], bytes, MR_PTX_READS | MR_PTX_WRITES, space, type,
                  address + 1);
    if (address != 1) return;
    const ptx_operand *to;
    uint32_t where = memory_address(m, &m->at->operands[1]);
    uint32_t count = vector_part(&m->at->operands[0], 0, &to);
    for (uint32_t k = 0; k < count; k++) {
        vector_part(&m->at->operands[0], k, &to);
        access_value v = {.op = ACCESS_LOAD,
                          .bits = (uint8_t)type_bits(type),
                          .space = (uint8_t)space,
                          .number = ACCESS_NONE,
                          .block = m->block};
        write_operand(m, to, add_value(m, v, &where, 1), type_bits(type),
                      ptx_types[type].sort == PTX_SIGNED);
    }
}

/* cp.async.ca.shared.global [to], [from], bytes {, bytes of them that are read} */
static void copy_async(maker *m) {
    if (m->at->operand_count < 3 || !m->at->operands[1].is_address) return;
    uint64_t bytes;
    if (!is_constant(m, operand_value(m, &m->at->operands[2], 64), &bytes) || bytes > 16)
        bytes = 16;
    uint32_t to = add_site(m, memory_address(m, &m->at->operands[0]), 0, (uint32_t)bytes,
                           MR_PTX_WRITES, PTX_SHARED, PTX_b8, false);
    /* What is copied can be pointers. */
    uint32_t from = memory_address(m, &m->at->operands[1]);
    access_value v = {.op = ACCESS_LOAD,
                      .bits = 64,
                      .space = PTX_GLOBAL,
                      .number = ACCESS_NONE,
                      .block = m->block};
    access_escape copied = {.site = to, .storage = ACCESS_NONE};
    copied.value = add_value(m, v, &from, 1);
    access_push(m->graph, &m->graph->escapes, copied);
    access_memory(m, &m->at->operands[1], (uint32_t)bytes, MR_PTX_READS, PTX_GLOBAL, PTX_b8,
                  PTX_MOST_OPERANDS);
}

/* ---- calls that are not copied */

static void read_argument(maker *m, const ptx_operand *o) {
    access_graph *graph = m->graph;
    const access_copy *copy = &graph->copies.items[m->copy];
    uint32_t storage = ACCESS_NONE;
    if (o->kind == PTX_LOCAL_VARIABLE) storage = copy->variables[o->index];
    else if (o->kind == PTX_PARAMETER && copy->parameters) storage = copy->parameters[o->index];
    if (storage == ACCESS_NONE) {
        uint32_t value = operand_value(m, o, 64);
        access_push(graph, &graph->arguments, value);
        return;
    }
    access_value unfollowed = {.op = ACCESS_LOAD, .bits = 64, .number = storage, .block = m->block};
    uint32_t address = leaf(m, ACCESS_ADDRESS_LOCAL, 64, storage, 0);
    uint32_t value = add_value(m, unfollowed, &address, 1);
    access_push(graph, &graph->arguments, value);
    for (uint32_t k = graph->first_cell[storage]; k != ACCESS_NONE;
         k = graph->cells.items[k].next) {
        if (graph->cells.items[k].is_mixed) continue;
        value = read_variable(m, graph->register_count + k);
        access_push(graph, &graph->arguments, value);
    }
}

/* The result lies in a storage that is not followed (see expose_results), or in a register. */
static void write_result(maker *m, const ptx_operand *o, const access_call *c) {
    access_graph *graph = m->graph;
    const access_copy *copy = &graph->copies.items[m->copy];
    uint32_t first = c->first_of[0], count = c->first_of[c->argument_count] - first;
    uint32_t *sources = access_take(graph, count * sizeof *sources);
    if (count) memcpy(sources, graph->arguments.items + first, count * sizeof *sources);
    uint32_t result = other(m, 64, sources, count);
    if (o->kind == PTX_REGISTER) {
        write_register(m, o->index, truncate_to(m, result, register_bits(m, o->index)));
        return;
    }
    access_escape escape = {.value = result, .site = ACCESS_NONE, .storage = ACCESS_NONE};
    if (o->kind == PTX_LOCAL_VARIABLE) escape.storage = copy->variables[o->index];
    else if (o->kind == PTX_PARAMETER && copy->parameters)
        escape.storage = copy->parameters[o->index];
    if (escape.storage == ACCESS_NONE) return;
    if (!graph->is_exposed[escape.storage]) graph->is_exposed[escape.storage] = graph->again = true;
    access_push(graph, &graph->escapes, escape);
}

static void call(maker *m) {
    access_graph *graph = m->graph;
    const ptx_instruction *i = m->at;
    if (i->operand_count < 3 || access_is_copied(graph, m->copy, m->instruction)) return;
    const ptx_operand *results = &i->operands[0], *callee = &i->operands[1],
                      *arguments = &i->operands[2];
    access_call c = {
        .copy = m->copy, .instruction = m->instruction, .argument_count = arguments->count};
    if (callee->kind == PTX_FUNCTION) c.function = &graph->tree->functions[callee->index];
    c.first_of = access_take(graph, (arguments->count + 1u) * sizeof *c.first_of);
    for (uint32_t k = 0; k < arguments->count; k++) {
        c.first_of[k] = graph->arguments.count;
        read_argument(m, &arguments->list[k]);
    }
    c.first_of[arguments->count] = graph->arguments.count;
    access_push(graph, &graph->calls, c);
    for (uint32_t k = 0; k < results->count; k++) write_result(m, &results->list[k], &c);
}

/* ---- instructions */

static ptx_type type_at(const maker *m, uint32_t k) {
    if (!m->at->type_count) return PTX_b32;
    return (ptx_type)m->at->types[k < m->at->type_count ? k : m->at->type_count - 1u];
}

static void write_result_of(maker *m, uint32_t value, uint32_t bits, bool is_signed) {
    write_operand(m, &m->at->operands[0], value, bits, is_signed);
}

/* add, sub, mul, mad, min, max, and, or, xor, shl, shr, div, rem, neg, not, abs of integers without modifiers that
 * change what they mean. */
static bool is_plain(const maker *m) {
    return !ptx_has(m->at, PTX_MOD_sat) && !ptx_has(m->at, PTX_MOD_cc) &&
           !ptx_has(m->at, PTX_MOD_hi) && !ptx_has(m->at, PTX_MOD_relu) &&
           is_integer(type_at(m, 0)) && type_bits(type_at(m, 0)) >= 16 &&
           type_at(m, 0) != PTX_u16x2 && type_at(m, 0) != PTX_s16x2;
}

/* mul and mad, `.lo` and `.wide` */
static uint32_t product(maker *m, uint32_t *out_bits) {
    uint32_t bits = type_bits(type_at(m, 0));
    bool is_signed = ptx_types[type_at(m, 0)].sort == PTX_SIGNED;
    uint32_t a = source(m, 1, bits), b = source(m, 2, bits);
    if (ptx_has(m->at, PTX_MOD_wide) && bits < 64) {
        a = extend(m, a, bits, bits * 2, is_signed);
        b = extend(m, b, bits, bits * 2, is_signed);
        bits *= 2;
    }
    *out_bits = bits;
    return binary(m, ACCESS_MUL, bits, is_signed, a, b);
}

/* x & 7 is x - (x >> 3 << 3), and x & ~7 is x >> 3 << 3: linear in x and in x >> 3. */
static uint32_t masked(maker *m, uint32_t bits, uint32_t x, uint64_t mask) {
    uint64_t all = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    bool keeps_high = mask >> (bits - 1) & 1;
    uint64_t low = keeps_high ? ~mask & all : mask & all;
    if (low & (low + 1)) return ACCESS_NONE;
    if (!low) return keeps_high ? x : constant(m, 0, bits);
    uint32_t by = constant(m, (uint64_t)__builtin_popcountll(low), 32);
    uint32_t high =
        binary(m, ACCESS_SHL, bits, false, binary(m, ACCESS_SHR, bits, true, x, by), by);
    return keeps_high ? high : binary(m, ACCESS_SUB, bits, false, x, high);
}

static uint32_t and_of(maker *m, uint32_t bits) {
    uint32_t a = source(m, 1, bits), b = source(m, 2, bits), swap;
    uint64_t mask;
    if (is_constant(m, a, &mask)) swap = a, a = b, b = swap;
    if (bits > 1 && is_constant(m, b, &mask)) {
        uint32_t made = masked(m, bits, a, mask);
        if (made != ACCESS_NONE) return made;
    }
    return binary(m, ACCESS_AND, bits, false, a, b);
}

/* bfe.u32 d, x, from, length */
static uint32_t bit_field(maker *m, uint32_t bits, bool is_signed) {
    uint64_t from, length;
    uint32_t x = source(m, 1, bits);
    if (!is_signed && is_constant(m, source(m, 2, 32), &from) &&
        is_constant(m, source(m, 3, 32), &length) && length && from + length <= bits &&
        length < 63) {
        uint32_t shifted = from ? binary(m, ACCESS_SHR, bits, false, x, constant(m, from, 32)) : x;
        return from + length == bits ? shifted
                                     : masked(m, bits, shifted, (UINT64_C(1) << length) - 1);
    }
    return other(m, bits, &x, 1);
}

static bool arithmetic(maker *m) {
    ptx_type type = type_at(m, 0);
    uint32_t bits = type_bits(type), value = ACCESS_NONE;
    bool is_signed = ptx_types[type].sort == PTX_SIGNED;
    switch ((ptx_opcode)m->at->opcode) {
    case PTX_OP_mul:
    case PTX_OP_mad:
        if (!is_plain(m)) return false;
        value = product(m, &bits);
        if (m->at->opcode == PTX_OP_mad)
            value = binary(m, ACCESS_ADD, bits, false, value, source(m, 3, bits));
        break;
#define BINARY(name, op)                                                                           \
    case PTX_OP_##name:                                                                            \
        if (!is_plain(m)) return false;                                                            \
        value = binary(m, op, bits, is_signed, source(m, 1, bits), source(m, 2, bits));            \
        break;
        BINARY(add, ACCESS_ADD)
        BINARY(sub, ACCESS_SUB)
        BINARY(min, ACCESS_MIN)
        BINARY(max, ACCESS_MAX)
        BINARY(div, ACCESS_DIV)
#undef BINARY
    case PTX_OP_rem: {
        if (!is_plain(m)) return false;
        uint32_t a = source(m, 1, bits), b = source(m, 2, bits);
        uint32_t quotient = binary(m, ACCESS_DIV, bits, is_signed, a, b);
        value =
            binary(m, ACCESS_SUB, bits, false, a, binary(m, ACCESS_MUL, bits, false, quotient, b));
        break;
    }
    case PTX_OP_shl:
    case PTX_OP_shr:
        if (!is_plain(m)) return false;
        value = binary(m, m->at->opcode == PTX_OP_shl ? ACCESS_SHL : ACCESS_SHR, bits, is_signed,
                       source(m, 1, bits), source(m, 2, 32));
        break;
    case PTX_OP_and: value = and_of(m, bits); break;
    case PTX_OP_or:
        value = binary(m, ACCESS_OR, bits, false, source(m, 1, bits), source(m, 2, bits));
        break;
    case PTX_OP_xor:
        value = binary(m, ACCESS_XOR, bits, false, source(m, 1, bits), source(m, 2, bits));
        break;
    case PTX_OP_not:
        value = bits == 1 ? binary(m, ACCESS_XOR, 1, false, source(m, 1, 1), constant(m, 1, 1))
                          : binary(m, ACCESS_SUB, bits, false, constant(m, UINT64_MAX, bits),
                                   source(m, 1, bits));
        break;
    case PTX_OP_neg:
        if (!is_plain(m)) return false;
        value = binary(m, ACCESS_SUB, bits, false, constant(m, 0, bits), source(m, 1, bits));
        break;
    case PTX_OP_bfe: value = bit_field(m, bits, is_signed); break;
    default: return false;
    }
    write_result_of(m, value, bits, is_signed);
    return true;
}

/* Conversions between integers; those from and to floating point give no pointers. */
static bool convert(maker *m) {
    if (m->at->type_count < 2 || ptx_has(m->at, PTX_MOD_sat)) return false;
    ptx_type to = (ptx_type)m->at->types[0], from = (ptx_type)m->at->types[1];
    if (!is_integer(to) || !is_integer(from)) return false;
    uint32_t to_bits = type_bits(to), from_bits = type_bits(from);
    uint32_t value = source(m, 1, from_bits);
    bool is_signed = ptx_types[from].sort == PTX_SIGNED;
    value = from_bits < to_bits ? extend(m, value, from_bits, to_bits, is_signed)
                                : truncate_to(m, value, to_bits);
    write_result_of(m, value, to_bits, ptx_types[to].sort == PTX_SIGNED);
    return true;
}

/* Global addresses, and those of local memory as far as anybody can tell, are generic addresses. An address in shared
 * memory can be a 32-bit number: that it points there is said anew. */
static void convert_address(maker *m) {
    uint32_t bits = type_bits(type_at(m, 0)), value = source(m, 1, bits);
    if (space_of(m->at) == PTX_SHARED && !ptx_has(m->at, PTX_MOD_to))
        value = binary(m, ACCESS_ADD, bits, false,
                       leaf(m, ACCESS_ADDRESS_SHARED, 64, ACCESS_NONE, 0), other(m, bits, NULL, 0));
    write_result_of(m, value, bits, false);
}

/* mov.b64 {low, high}, x */
static bool unpack(maker *m) {
    const ptx_operand *to = &m->at->operands[0];
    uint32_t bits = type_bits(type_at(m, 0)), part = bits / (to->count ? to->count : 1);
    uint32_t x = source(m, 1, bits);
    if (part == 0) return false;
    for (uint32_t k = 0; k < to->count; k++) {
        uint32_t by = constant(m, k * part, 32);
        uint32_t shifted = k ? binary(m, ACCESS_SHR, bits, false, x, by) : x;
        write_operand(m, &to->list[k], truncate_to(m, shifted, part), part, false);
    }
    return true;
}

static bool move(maker *m) {
    if (m->at->operand_count < 2 || m->at->type_count != 1) return false;
    uint32_t bits = type_bits(type_at(m, 0));
    if (m->at->operands[0].kind == PTX_LIST) return unpack(m);
    write_result_of(m, source(m, 1, bits), bits, false);
    return true;
}

static bool select(maker *m) {
    uint32_t bits = type_bits(type_at(m, 0));
    uint32_t p = source(m, 3, 1);
    write_result_of(m, select_value(m, bits, p, source(m, 1, bits), source(m, 2, bits)), bits,
                    false);
    return true;
}

/* slct.u64.s32 d, a, b, c: a if c >= 0, else b */
static bool select_by_sign(maker *m) {
    uint32_t bits = type_bits(type_at(m, 0)), p = other(m, 1, NULL, 0);
    write_result_of(m, select_value(m, bits, p, source(m, 1, bits), source(m, 2, bits)), bits,
                    false);
    return true;
}

static const struct {
    ptx_modifier modifier, comparison;
    bool is_unsigned;
} comparisons[] = {
    {PTX_MOD_eq, PTX_MOD_eq, false}, {PTX_MOD_ne, PTX_MOD_ne, false},
    {PTX_MOD_lt, PTX_MOD_lt, false}, {PTX_MOD_le, PTX_MOD_le, false},
    {PTX_MOD_gt, PTX_MOD_gt, false}, {PTX_MOD_ge, PTX_MOD_ge, false},
    {PTX_MOD_l, PTX_MOD_lt, true},   {PTX_MOD_ls, PTX_MOD_le, true},
    {PTX_MOD_hs, PTX_MOD_ge, true},
};

static uint32_t compare(maker *m, bool *out_plain) {
    ptx_type type = type_at(m, m->at->type_count ? m->at->type_count - 1u : 0);
    *out_plain = false;
    if (!is_integer(type)) return other(m, 1, NULL, 0);
    for (uint32_t k = 0; k < sizeof comparisons / sizeof *comparisons; k++) {
        if (!ptx_has(m->at, comparisons[k].modifier)) continue;
        access_value v = {.op = ACCESS_COMPARE,
                          .bits = 1,
                          .from = (uint8_t)type_bits(type),
                          .comparison = (uint8_t)comparisons[k].comparison,
                          .is_signed =
                              ptx_types[type].sort == PTX_SIGNED && !comparisons[k].is_unsigned,
                          .block = m->block};
        uint32_t bits = type_bits(type);
        uint32_t a = source(m, m->at->two_results ? 2 : 1, bits);
        uint32_t b = source(m, m->at->two_results ? 3 : 2, bits);
        *out_plain = true;
        return number_value(m, v, (uint32_t[]){a, b}, 2);
    }
    return other(m, 1, NULL, 0);
}

static uint32_t not_of(maker *m, uint32_t p) {
    return binary(m, ACCESS_XOR, 1, false, p, constant(m, 1, 1));
}

/* setp.lt.and.s32 p|q, a, b, {!}c: p = a < b && c, q = !(a < b) && c */
static bool set_predicate(maker *m) {
    bool plain;
    uint32_t p = compare(m, &plain), q = not_of(m, p);
    uint32_t third = m->at->two_results ? 4 : 3;
    if (m->at->operand_count > third) {
        uint32_t c = source(m, third, 1);
        access_op op = ptx_has(m->at, PTX_MOD_and)  ? ACCESS_AND
                       : ptx_has(m->at, PTX_MOD_or) ? ACCESS_OR
                                                    : ACCESS_XOR;
        p = binary(m, op, 1, false, p, c);
        q = binary(m, op, 1, false, q, c);
    }
    write_operand(m, &m->at->operands[0], p, 1, false);
    if (m->at->two_results) write_operand(m, &m->at->operands[1], q, 1, false);
    return true;
}

static bool count_bits(maker *m) {
    uint32_t bits = register_bits(m, m->at->operands[0].index);
    write_result_of(m, other_up_to(m, bits, type_bits(type_at(m, 0))), bits, false);
    return true;
}

/* True: the instruction's effect on the values is known. */
static bool known_instruction(maker *m) {
    switch ((ptx_opcode)m->at->opcode) {
    case PTX_OP_ld:
    case PTX_OP_ldu: load(m); return true;
    case PTX_OP_st: store(m); return true;
    case PTX_OP_atom: atomic(m, 1); return true;
    case PTX_OP_red: atomic(m, 0); return true;
    case PTX_OP_cp: copy_async(m); return true;
    case PTX_OP_discard:
        access_memory(m, &m->at->operands[0], 128, MR_PTX_WRITES, space_of(m->at), PTX_b8,
                      PTX_MOST_OPERANDS);
        return true;
    case PTX_OP_call: call(m); return true;
    case PTX_OP_mov: return move(m);
    case PTX_OP_cvt: return convert(m);
    case PTX_OP_cvta: convert_address(m); return true;
    case PTX_OP_selp: return select(m);
    case PTX_OP_slct: return select_by_sign(m);
    case PTX_OP_setp: return set_predicate(m);
    case PTX_OP_popc:
    case PTX_OP_clz: return count_bits(m);
    case PTX_OP_bra:
    case PTX_OP_brx:
    case PTX_OP_ret:
    case PTX_OP_exit:
    case PTX_OP_trap:
    case PTX_OP_bar:
    case PTX_OP_membar:
    case PTX_OP_fence:
    case PTX_OP_prefetch:
    case PTX_OP_prefetchu:
    case PTX_OP_nanosleep:
    case PTX_OP_brkpt:
    case PTX_OP_pmevent:
    case PTX_OP_griddepcontrol:
    case PTX_OP_stackrestore: return m->at->opcode != PTX_OP_bar || !ptx_has(m->at, PTX_MOD_red);
    default: return arithmetic(m);
    }
}

static bool gives_no_pointer(const maker *m) {
    if (m->at->opcode == PTX_OP_shfl) return false;
    return m->at->type_count && !is_integer(type_at(m, 0));
}

static void fill_block(maker *m, uint32_t block) {
    access_graph *graph = m->graph;
    const access_block *b = &graph->blocks.items[block];
    const ptx_function *f = graph->copies.items[b->copy].function;
    m->block = block;
    m->copy = b->copy;
    for (m->instruction = b->first; m->instruction < b->end; m->instruction++) {
        m->at = &f->instructions[m->instruction];
        if (!known_instruction(m)) write_other(m, !gives_no_pointer(m));
    }
    m->is_filled[block] = true;
    /* The way to a block with a condition is judged by the guard as it is at the end of this block. */
    for (uint32_t k = 0; k < b->successor_count; k++) {
        access_block *to = &graph->blocks.items[b->successors[k]];
        if (!to->has_condition || b->end == b->first) continue;
        m->at = &f->instructions[b->end - 1];
        if (m->at->guard >= 0) to->condition = read_register(m, (uint32_t)m->at->guard);
    }
}

/* Phis of loops whose last way in is known now, as `block` is filled. */
static void complete(maker *m, uint32_t block) {
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
static void remove_phis(access_graph *graph) {
    bool changed = true;
    for (int pass = 0; changed && pass < 4 * MOST_PASSES; pass++) {
        changed = false;
        for (uint32_t v = 0; v < graph->values.count; v++)
            if (graph->values.items[v].op == ACCESS_PHI) changed |= remove_phi(graph, v);
    }
}

void access_build_values(access_graph *graph) {
    maker m = {.graph = graph};
    graph->values.count = graph->operands.count = graph->arguments.count = 0;
    graph->sites.count = graph->escapes.count = graph->calls.count = 0;
    graph->again = false;
    m.only = access_take(graph, graph->register_count * sizeof *m.only);
    m.only_block = access_take(graph, graph->register_count * sizeof *m.only_block);
    memset(m.only, 0xff, graph->register_count * sizeof *m.only);
    m.is_filled = access_take(graph, graph->blocks.count);
    m.first_incomplete = access_take(graph, graph->blocks.count * sizeof *m.first_incomplete);
    memset(m.first_incomplete, 0xff, graph->blocks.count * sizeof *m.first_incomplete);
    for (uint32_t k = 0; k < graph->order.count; k++) {
        fill_block(&m, graph->order.items[k]);
        complete(&m, graph->order.items[k]);
        if (graph->values.count > MOST_VALUES) graph->too_large = true;
        if (graph->too_large) return;
    }
    remove_phis(graph);
}
