/* Instructions that access memory, and calls that are not copied, as the values of a kernel see them.
 *
 * An address that a kernel keeps in local memory is only known when that memory is followed. So values are made again
 * until nothing new is found (access_settle in origin.c decides).
 *
 * Easiest to break: a part of local memory that is followed must be reached in no other way. */
#include "ptx/access/values.h"

#include <string.h>

ptx_space access_space_of(const ptx_instruction *i) {
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

/* The cell that an access of local memory is; ACCESS_NONE: one that is not followed. */
static uint32_t cell_at(access_maker *m, uint32_t storage, int64_t offset, uint32_t bytes) {
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

static uint32_t memory_address(access_maker *m, const ptx_operand *o) {
    if (o->kind == PTX_REGISTER) {
        uint32_t base = access_read_operand(m, o, 64);
        return access_binary(m, ACCESS_ADD, 64, false, base,
                             access_constant(m, (uint64_t)o->offset, 64));
    }
    return access_read_operand(m, o, 64);
}

/* Atomic towards all threads of the device; .gpu is the default scope of an instruction. */
static bool is_atomic(const ptx_instruction *i) {
    return ptx_is_atomic(i) && !ptx_has(i, PTX_MOD_cta) && !ptx_has(i, PTX_MOD_cluster);
}

static uint32_t add_site(access_maker *m, uint32_t address, uint32_t part, uint32_t bytes,
                         uint8_t access, ptx_space space, ptx_type element, bool is_followed) {
    access_site site = {.address = address,
                        .block = m->block,
                        .copy = m->copy,
                        .instruction = m->instruction,
                        .part = part,
                        .bytes = bytes,
                        .access = access,
                        .space = (uint8_t)space,
                        .element = (uint8_t)element,
                        .is_atomic = is_atomic(m->at),
                        .is_system = ptx_has(m->at, PTX_MOD_sys),
                        .is_guarded = m->at->guard >= 0,
                        .is_followed = is_followed};
    access_push(m->graph, &m->graph->sites, site);
    return m->graph->sites.count - 1;
}

/* Where an address points, if it is a constant place in local memory or in the parameters of the kernel. */
static access_op resolve(access_maker *m, uint32_t address, uint32_t part, ptx_space space,
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

/* The value of a load of one element: `bits` of it. */
static uint32_t load_element(access_maker *m, uint32_t address, uint32_t part, ptx_space space,
                             ptx_type type) {
    access_graph *graph = m->graph;
    uint32_t bytes = mr_ptx_types[type].bytes, bits = access_type_bits(type), number;
    int64_t offset;
    bool assumed;
    access_op base = resolve(m, address, part, space, &number, &offset, &assumed);
    access_value v = {.op = ACCESS_LOAD,
                      .bits = (uint8_t)bits,
                      .space = (uint8_t)space,
                      .number = ACCESS_NONE,
                      .is_number = !access_is_integer(type),
                      .block = m->block};
    if (base == ACCESS_ADDRESS_LOCAL) {
        uint32_t cell = cell_at(m, number, offset, bytes);
        if (cell != ACCESS_NONE) {
            if (assumed) add_site(m, address, part, bytes, MR_PTX_READS, space, type, true);
            return access_read_variable(m, graph->register_count + cell);
        }
        v.number = number;
    } else if (base == ACCESS_ADDRESS_PARAM && offset >= 0 && offset < INT32_MAX && bytes <= 8) {
        return access_leaf(m, ACCESS_PARAM, bits, number, (uint32_t)offset);
    }
    add_site(m, address, part, bytes, MR_PTX_READS, space, type, false);
    return access_fresh(m, v, &address, 1);
}

static uint32_t vector_part(const ptx_operand *o, uint32_t k, const ptx_operand **out) {
    *out = o->kind == PTX_LIST ? &o->list[k] : o;
    return o->kind == PTX_LIST ? o->count : 1;
}

static void load(access_maker *m) {
    if (m->at->operand_count < 2 || !m->at->type_count) return;
    ptx_type type = (ptx_type)m->at->types[m->at->type_count - 1];
    ptx_space space = access_space_of(m->at);
    const ptx_operand *to, *result = &m->at->operands[0];
    uint32_t count = vector_part(result, 0, &to), bytes = mr_ptx_types[type].bytes;
    uint32_t address = memory_address(m, &m->at->operands[1]);
    uint32_t values[16];
    if (count > 16) count = 16;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t part =
            access_binary(m, ACCESS_ADD, 64, false, address, access_constant(m, k * bytes, 64));
        values[k] = load_element(m, part, k * bytes, space, type);
    }
    for (uint32_t k = 0; k < count; k++) {
        vector_part(result, k, &to);
        access_write_operand(m, to, values[k], access_type_bits(type),
                             mr_ptx_types[type].sort == PTX_SIGNED);
    }
}

static void store_element(access_maker *m, uint32_t address, uint32_t part, ptx_space space,
                          ptx_type type, uint32_t value) {
    access_graph *graph = m->graph;
    uint32_t bytes = mr_ptx_types[type].bytes, number;
    int64_t offset;
    bool assumed;
    access_op base = resolve(m, address, part, space, &number, &offset, &assumed);
    if (base == ACCESS_ADDRESS_LOCAL) {
        uint32_t cell = cell_at(m, number, offset, bytes);
        if (cell != ACCESS_NONE) {
            if (assumed) add_site(m, address, part, bytes, MR_PTX_WRITES, space, type, true);
            access_write_variable(m, graph->register_count + cell, value);
            return;
        }
    }
    uint32_t site = add_site(m, address, part, bytes, MR_PTX_WRITES, space, type, false);
    access_escape escape = {.value = value, .site = site, .storage = ACCESS_NONE};
    if (base == ACCESS_ADDRESS_LOCAL) escape.storage = number;
    access_push(graph, &graph->escapes, escape);
}

static void store(access_maker *m) {
    if (m->at->operand_count < 2 || !m->at->type_count) return;
    ptx_type type = (ptx_type)m->at->types[m->at->type_count - 1];
    ptx_space space = access_space_of(m->at);
    const ptx_operand *from;
    uint32_t count = vector_part(&m->at->operands[1], 0, &from), bytes = mr_ptx_types[type].bytes;
    uint32_t address = memory_address(m, &m->at->operands[0]);
    for (uint32_t k = 0; k < count; k++) {
        vector_part(&m->at->operands[1], k, &from);
        uint32_t part =
            access_binary(m, ACCESS_ADD, 64, false, address, access_constant(m, k * bytes, 64));
        store_element(m, part, k * bytes, space, type,
                      access_read_operand(m, from, access_type_bits(type)));
    }
}

/* An access whose value does not matter: atomics, copies. A stored value can be read back elsewhere. */
static void access_memory(access_maker *m, const ptx_operand *o, uint32_t bytes, uint8_t access,
                          ptx_space space, ptx_type element, uint32_t first_stored) {
    uint32_t site = add_site(m, memory_address(m, o), 0, bytes, access, space, element, false);
    for (uint32_t k = first_stored; k < m->at->operand_count; k++) {
        access_escape escape = {.site = site, .storage = ACCESS_NONE};
        escape.value = access_read_operand(m, &m->at->operands[k], access_type_bits(element));
        access_push(m->graph, &m->graph->escapes, escape);
    }
}

static uint32_t vector_length(const ptx_instruction *i) {
    return ptx_has(i, PTX_MOD_v2) ? 2 : ptx_has(i, PTX_MOD_v4) ? 4 : ptx_has(i, PTX_MOD_v8) ? 8 : 1;
}

static void atomic(access_maker *m, uint32_t address) {
    if (m->at->operand_count <= address || !m->at->type_count) return;
    ptx_type type = (ptx_type)m->at->types[m->at->type_count - 1];
    uint32_t bytes = mr_ptx_types[type].bytes * vector_length(m->at);
    ptx_space space = access_space_of(m->at);
    access_memory(m, &m->at->operands[address], bytes, MR_PTX_READS | MR_PTX_WRITES, space, type,
                  address + 1);
    if (address != 1) return;
    const ptx_operand *to;
    uint32_t where = memory_address(m, &m->at->operands[1]);
    uint32_t count = vector_part(&m->at->operands[0], 0, &to);
    for (uint32_t k = 0; k < count; k++) {
        vector_part(&m->at->operands[0], k, &to);
        access_value v = {.op = ACCESS_LOAD,
                          .bits = (uint8_t)access_type_bits(type),
                          .space = (uint8_t)space,
                          .number = ACCESS_NONE,
                          .block = m->block};
        access_write_operand(m, to, access_fresh(m, v, &where, 1), access_type_bits(type),
                             mr_ptx_types[type].sort == PTX_SIGNED);
    }
}

/* cp.async.ca.shared.global [to], [from], bytes {, bytes of them that are read} */
static void copy_async(access_maker *m) {
    if (m->at->operand_count < 3 || !m->at->operands[1].is_address) return;
    uint64_t bytes;
    if (!access_is_constant(m, access_read_operand(m, &m->at->operands[2], 64), &bytes) ||
        bytes > 16)
        bytes = 16;
    uint32_t to = add_site(m, memory_address(m, &m->at->operands[0]), 0, (uint32_t)bytes,
                           MR_PTX_WRITES, PTX_SHARED, PTX_b8, false);
    /* The copied bytes can be pointers. */
    uint32_t from = memory_address(m, &m->at->operands[1]);
    access_value v = {.op = ACCESS_LOAD,
                      .bits = 64,
                      .space = PTX_GLOBAL,
                      .number = ACCESS_NONE,
                      .block = m->block};
    access_escape copied = {.site = to, .storage = ACCESS_NONE};
    copied.value = access_fresh(m, v, &from, 1);
    access_push(m->graph, &m->graph->escapes, copied);
    access_memory(m, &m->at->operands[1], (uint32_t)bytes, MR_PTX_READS, PTX_GLOBAL, PTX_b8,
                  PTX_MOST_OPERANDS);
}

/* ---- calls that are not copied */

static void read_argument(access_maker *m, const ptx_operand *o) {
    access_graph *graph = m->graph;
    const access_copy *copy = &graph->copies.items[m->copy];
    uint32_t storage = ACCESS_NONE;
    if (o->kind == PTX_LOCAL_VARIABLE) storage = copy->variables[o->index];
    else if (o->kind == PTX_PARAMETER && copy->parameters) storage = copy->parameters[o->index];
    if (storage == ACCESS_NONE) {
        uint32_t value = access_read_operand(m, o, 64);
        access_push(graph, &graph->arguments, value);
        return;
    }
    access_value unfollowed = {.op = ACCESS_LOAD, .bits = 64, .number = storage, .block = m->block};
    uint32_t address = access_leaf(m, ACCESS_ADDRESS_LOCAL, 64, storage, 0);
    uint32_t value = access_fresh(m, unfollowed, &address, 1);
    access_push(graph, &graph->arguments, value);
    for (uint32_t k = graph->first_cell[storage]; k != ACCESS_NONE;
         k = graph->cells.items[k].next) {
        if (graph->cells.items[k].is_mixed) continue;
        value = access_read_variable(m, graph->register_count + k);
        access_push(graph, &graph->arguments, value);
    }
}

/* The result lies in a storage that is not followed (see expose_results), or in a register. */
static void write_result(access_maker *m, const ptx_operand *o, const access_call *c) {
    access_graph *graph = m->graph;
    const access_copy *copy = &graph->copies.items[m->copy];
    uint32_t first = c->first_of[0], count = c->first_of[c->argument_count] - first;
    uint32_t *sources = access_take(graph, count * sizeof *sources);
    if (count) memcpy(sources, graph->arguments.items + first, count * sizeof *sources);
    uint32_t result = access_other(m, 64, sources, count);
    if (o->kind == PTX_REGISTER) {
        access_write_register(m, o->index,
                              access_truncate(m, result, access_register_bits(m, o->index)));
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

static void call(access_maker *m) {
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

bool access_memory_instruction(access_maker *m) {
    switch ((ptx_opcode)m->at->opcode) {
    case PTX_OP_ld:
    case PTX_OP_ldu: load(m); return true;
    case PTX_OP_st: store(m); return true;
    case PTX_OP_atom: atomic(m, 1); return true;
    case PTX_OP_red: atomic(m, 0); return true;
    case PTX_OP_cp: copy_async(m); return true;
    case PTX_OP_discard:
        access_memory(m, &m->at->operands[0], 128, MR_PTX_WRITES, access_space_of(m->at), PTX_b8,
                      PTX_MOST_OPERANDS);
        return true;
    case PTX_OP_call: call(m); return true;
    default: return false;
    }
}
