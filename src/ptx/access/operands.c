/* Operands of an instruction as values, and results as registers. */
#include "ptx/access/values.h"

uint32_t access_register_bits(const access_maker *m, uint32_t index) {
    const ptx_function *f = m->graph->copies.items[m->copy].function;
    uint32_t bytes = mr_ptx_types[f->registers[index].type].bytes;
    return bytes ? (bytes > 8 ? 64 : bytes * 8) : 1;
}

bool access_is_integer(ptx_type type) {
    return mr_ptx_types[type].sort != PTX_FLOAT;
}

uint32_t access_type_bits(ptx_type type) {
    uint32_t bytes = mr_ptx_types[type].bytes;
    return bytes ? (bytes > 8 ? 64 : bytes * 8) : 1;
}

static uint32_t address_of(access_maker *m, const ptx_operand *o, int64_t offset) {
    const access_graph *graph = m->graph;
    const access_copy *copy = &graph->copies.items[m->copy];
    uint32_t base;
    if (o->kind == PTX_VARIABLE) {
        bool shared = graph->tree->variables[o->index].space == PTX_SHARED;
        base = access_leaf(m, shared ? ACCESS_ADDRESS_SHARED : ACCESS_ADDRESS_VARIABLE, 64,
                           o->index, 0);
    } else if (o->kind == PTX_LOCAL_VARIABLE) {
        uint32_t storage = copy->variables[o->index];
        base = storage == ACCESS_NONE ? access_leaf(m, ACCESS_ADDRESS_SHARED, 64, ACCESS_NONE, 0)
                                      : access_leaf(m, ACCESS_ADDRESS_LOCAL, 64, storage, 0);
    } else if (!copy->parameters) {
        base = access_leaf(m, ACCESS_ADDRESS_PARAM, 64, o->index, 0);
    } else if (copy->parameters[o->index] == ACCESS_NONE) {
        base = access_other(m, 64, NULL, 0);
    } else {
        base = access_leaf(m, ACCESS_ADDRESS_LOCAL, 64, copy->parameters[o->index], 0);
    }
    return access_binary(m, ACCESS_ADD, 64, false, base, access_constant(m, (uint64_t)offset, 64));
}

static uint32_t pack(access_maker *m, const ptx_operand *o, uint32_t bits) {
    uint32_t parts[8] = {0}, count = o->count > 8 ? 8 : o->count;
    if (!count) return access_other(m, bits, NULL, 0);
    for (uint32_t k = 0; k < count; k++)
        parts[k] = access_read_operand(m, &o->list[k], bits / count);
    access_value v = {.op = ACCESS_PACK, .bits = (uint8_t)bits, .block = m->block};
    /* {the low half of x, the high half of x} is x */
    const access_value *low = access_value_at(m->graph, parts[0]);
    const access_value *high = access_value_at(m->graph, parts[count - 1]);
    if (count == 2 && bits == 64 && low->op == ACCESS_TRUNCATE && high->op == ACCESS_TRUNCATE) {
        uint32_t whole = access_operand(m->graph, low, 0);
        const access_value *shifted = access_value_at(m->graph, access_operand(m->graph, high, 0));
        uint64_t by;
        if (shifted->op == ACCESS_SHR && access_operand(m->graph, shifted, 0) == whole &&
            access_is_constant(m, access_operand(m->graph, shifted, 1), &by) && by == 32)
            return whole;
    }
    return access_number(m, v, parts, count);
}

/* Special registers that a thread always reads the same from. */
static bool is_fixed_special(ptx_special s) {
    return s == PTX_SREG_tid || s == PTX_SREG_ntid || s == PTX_SREG_ctaid || s == PTX_SREG_nctaid ||
           s == PTX_SREG_laneid;
}

/* The grid's barrier is found through these (places.c). */
static bool is_workspace(const ptx_operand *o) {
    return o->index == PTX_SREG_envreg && (o->component == 1 || o->component == 2);
}

/* An operand as a value of `bits`. */
uint32_t access_read_operand(access_maker *m, const ptx_operand *o, uint32_t bits) {
    uint32_t value;
    switch ((ptx_operand_kind)o->kind) {
    case PTX_REGISTER:
        value = access_read_register(m, o->index);
        if (o->negated)
            value = access_binary(m, ACCESS_XOR, 1, false, value, access_constant(m, 1, 1));
        break;
    case PTX_SPECIAL:
        if (is_workspace(o)) return access_leaf(m, ACCESS_WORKSPACE, bits, o->component, 0);
        if (!is_fixed_special((ptx_special)o->index)) return access_other(m, bits, NULL, 0);
        value = access_leaf(m, ACCESS_SPECIAL, bits, o->index, o->component);
        break;
    case PTX_INTEGER: return access_constant(m, o->bits, bits);
    case PTX_VARIABLE:
    case PTX_LOCAL_VARIABLE:
    case PTX_PARAMETER: value = address_of(m, o, o->offset); break;
    case PTX_LIST: return pack(m, o, bits);
    default: return access_other(m, bits, NULL, 0);
    }
    uint32_t have = m->graph->values.items[value].bits;
    if (have > bits) return access_truncate(m, value, bits);
    return access_extend(m, value, have, bits, false);
}

uint32_t access_source(access_maker *m, uint32_t k, uint32_t bits) {
    if (k >= m->at->operand_count) return access_other(m, bits, NULL, 0);
    return access_read_operand(m, &m->at->operands[k], bits);
}

void access_write_operand(access_maker *m, const ptx_operand *o, uint32_t value, uint32_t from,
                          bool is_signed) {
    if (o->kind != PTX_REGISTER) return;
    uint32_t bits = access_register_bits(m, o->index);
    if (from < bits) value = access_extend(m, value, from, bits, is_signed);
    else if (m->graph->values.items[access_find(m->graph, value)].bits > bits)
        value = access_truncate(m, value, bits);
    access_write_register(m, o->index, value);
}

/* The registers among the operands, as wide as they are. */
static uint32_t read_registers(access_maker *m, uint32_t first, uint32_t *sources) {
    uint32_t count = 0;
    for (uint32_t k = first; k < m->at->operand_count; k++)
        if (m->at->operands[k].kind == PTX_REGISTER)
            sources[count++] = access_read_register(m, m->at->operands[k].index);
    return count;
}

uint32_t access_number_of(access_maker *m, uint32_t bits, uint32_t first, uint64_t largest) {
    uint32_t sources[PTX_MOST_OPERANDS + 1];
    uint32_t count = read_registers(m, first, sources);
    return access_other_number(m, bits, largest, sources, count);
}

/* The result is not known; it is derived from all operands. */
void access_write_other(access_maker *m, bool keeps_pointers) {
    uint32_t sources[PTX_MOST_OPERANDS + 1], count = 0;
    uint32_t results = m->at->two_results ? 2 : 1;
    for (uint32_t k = results; keeps_pointers && k < m->at->operand_count; k++)
        sources[count++] = access_read_operand(m, &m->at->operands[k], 64);
    if (!keeps_pointers) count = read_registers(m, results, sources);
    for (uint32_t r = 0; r < results && r < m->at->operand_count; r++) {
        const ptx_operand *o = &m->at->operands[r];
        uint32_t parts = o->kind == PTX_LIST ? o->count : 1;
        for (uint32_t k = 0; k < parts; k++) {
            const ptx_operand *to = o->kind == PTX_LIST ? &o->list[k] : o;
            if (to->kind != PTX_REGISTER || to->is_address) continue;
            uint32_t bits = access_register_bits(m, to->index);
            uint32_t value = keeps_pointers ? access_other(m, bits, sources, count)
                                            : access_other_number(m, bits, 0, sources, count);
            access_write_register(m, to->index, value);
        }
    }
}

ptx_type access_type_at(const access_maker *m, uint32_t k) {
    if (!m->at->type_count) return PTX_b32;
    return (ptx_type)m->at->types[k < m->at->type_count ? k : m->at->type_count - 1u];
}
