/* Decodes ld, st, atom, red, cp.async and hints about memory. */
#include "ptx/decode/decode.h"
#include "ptx/watch/watch.h"

#include <string.h>

static ptx_space take_space(ptx_decoder *d) {
    if (ptx_take(d, PTX_MOD_global)) return PTX_GLOBAL;
    if (ptx_take(d, PTX_MOD_shared) || ptx_take(d, PTX_MOD_shared_cta)) return PTX_SHARED;
    if (ptx_take(d, PTX_MOD_local)) return PTX_LOCAL;
    if (ptx_take(d, PTX_MOD_const_)) return PTX_CONST;
    if (ptx_take(d, PTX_MOD_param) || ptx_take(d, PTX_MOD_param_entry) ||
        ptx_take(d, PTX_MOD_param_func)) {
        return PTX_PARAM;
    }
    return PTX_GENERIC;
}

/* A cache does not change the values that are read. */
static void take_cache_hints(ptx_decoder *d) {
    static const ptx_modifier hints[] = {PTX_MOD_ca,
                                         PTX_MOD_cg,
                                         PTX_MOD_cs,
                                         PTX_MOD_lu,
                                         PTX_MOD_cv,
                                         PTX_MOD_wb,
                                         PTX_MOD_wt,
                                         PTX_MOD_nc,
                                         PTX_MOD_L1,
                                         PTX_MOD_L2,
                                         PTX_MOD_L2_64B,
                                         PTX_MOD_L2_128B,
                                         PTX_MOD_L2_256B,
                                         PTX_MOD_unified,
                                         PTX_MOD_L1_evict_last,
                                         PTX_MOD_L1_evict_first,
                                         PTX_MOD_L1_evict_normal,
                                         PTX_MOD_L1_evict_unchanged,
                                         PTX_MOD_L1_no_allocate};
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) ptx_take(d, hints[i]);
}

static ptx_order take_order(ptx_decoder *d, ptx_order otherwise) {
    ptx_order order = ptx_take(d, PTX_MOD_volatile_) ? PTX_VOLATILE
                      : ptx_take(d, PTX_MOD_mmio)    ? PTX_VOLATILE
                      : ptx_take(d, PTX_MOD_relaxed) ? PTX_RELAXED
                      : ptx_take(d, PTX_MOD_acquire) ? PTX_ACQUIRE
                      : ptx_take(d, PTX_MOD_release) ? PTX_RELEASE
                      : ptx_take(d, PTX_MOD_acq_rel) ? PTX_ACQ_REL
                      : ptx_take(d, PTX_MOD_sc)      ? PTX_SEQ_CST
                                                     : otherwise;
    ptx_take(d, PTX_MOD_relaxed); /* .mmio.relaxed */
    ptx_take(d, PTX_MOD_weak);
    return order;
}

static ptx_scope take_scope(ptx_decoder *d, ptx_scope otherwise) {
    return ptx_take(d, PTX_MOD_cta)                              ? PTX_SCOPE_BLOCK
           : ptx_take(d, PTX_MOD_cluster)                        ? PTX_SCOPE_CLUSTER
           : ptx_take(d, PTX_MOD_gpu) || ptx_take(d, PTX_MOD_gl) ? PTX_SCOPE_DEVICE
           : ptx_take(d, PTX_MOD_sys)                            ? PTX_SCOPE_SYSTEM
                                                                 : otherwise;
}

static ptx_memory_code *new_access(ptx_decoder *d, unsigned count) {
    ptx_memory_code *m = mr_region_alloc(&d->module->region, count * sizeof *m);
    if (!m) {
        if (!d->failure) d->failure = mr_no_memory("to decode PTX");
        return NULL;
    }
    for (unsigned i = 0; i < count; i++) m[i].index = d->module->access_count++;
    return m;
}

/* An address inside of a variable whose place in local memory, or in the parameters, is known. */
static bool fixed_address(ptx_decoder *d, const ptx_operand *o, ptx_memory_code *m) {
    const ptx_function *f = d->function;
    const ptx_variable *v;
    uint64_t at;
    if (o->kind == PTX_PARAMETER) {
        v = ptx_parameter_of(f, o->index);
        at = d->routine->parameter_offset[o->index];
        m->space = f->is_entry ? PTX_PARAM : PTX_LOCAL;
        m->may_be_unset = true;
    } else if (o->kind == PTX_LOCAL_VARIABLE && f->variables[o->index].space != PTX_SHARED) {
        v = &f->variables[o->index];
        at = d->routine->variable_offset[o->index];
        m->space = PTX_LOCAL;
        m->may_be_unset = v->space == PTX_PARAM;
    } else {
        return false;
    }
    uint64_t offset = (uint64_t)o->offset;
    if (offset > v->bytes || m->bytes > v->bytes - offset) {
        ptx_reject(d, "it accesses %u bytes at offset %lld of `%s`, which has %llu", m->bytes,
                   (long long)o->offset, v->name, (unsigned long long)v->bytes);
    } else if ((at + offset) % m->align != 0) {
        ptx_reject(d, "it accesses `%s` at an offset that is no multiple of %u", v->name, m->align);
    }
    m->fixed = true;
    m->offset = (int64_t)(at + offset);
    return true;
}

static ptx_place_of address_place(ptx_decoder *d, const ptx_operand *o, ptx_memory_code *m) {
    if (!o->is_address) {
        ptx_reject(d, "its address must be in brackets");
        return 0;
    }
    if (fixed_address(d, o, m)) return ptx_constant_of(d, 0, 4);
    bool is_local_pointer = m->space == PTX_PARAM && !d->function->is_entry;
    if (is_local_pointer)
        m->space = PTX_LOCAL; /* a register that holds the address of a parameter */
    m->wide_address = true;
    if (o->kind == PTX_REGISTER) {
        unsigned bytes;
        ptx_place_of place = ptx_wide_source(d, o, 4, &bytes);
        m->offset = o->offset;
        m->wide_address = bytes == 8;
        return place;
    }
    if (o->kind == PTX_INTEGER) return ptx_constant_of(d, o->bits, 8);
    if (o->kind == PTX_VARIABLE || o->kind == PTX_LOCAL_VARIABLE) {
        bool is_local = o->kind == PTX_LOCAL_VARIABLE;
        const ptx_function *f = d->function;
        const ptx_variable *v =
            is_local ? &f->variables[o->index] : &d->module->tree.variables[o->index];
        int32_t function = is_local ? (int32_t)(f - d->module->tree.functions) : -1;
        bool generic = m->space == PTX_GENERIC && v->space == PTX_SHARED;
        return ptx_address_of(d, function, o->index, o->offset, 8, generic);
    }
    ptx_refuse(d, "its address is of a kind that it cannot have");
    return 0;
}

static unsigned take_count(ptx_decoder *d) {
    return ptx_take(d, PTX_MOD_v8)   ? 8
           : ptx_take(d, PTX_MOD_v4) ? 4
           : ptx_take(d, PTX_MOD_v2) ? 2
                                     : 1;
}

/* The access of a load or store; NULL: it was refused. */
static ptx_memory_code *plain_access(ptx_decoder *d, uint8_t access) {
    ptx_type t = ptx_type_at(d, 0);
    unsigned bytes = mr_ptx_types[t].bytes;
    ptx_memory_code *m = new_access(d, 1);
    if (!m) return NULL;
    m->space = (uint8_t)take_space(d);
    take_cache_hints(d);
    m->order = (uint8_t)take_order(d, PTX_WEAK);
    m->scope = (uint8_t)take_scope(d, m->order == PTX_VOLATILE ? PTX_SCOPE_SYSTEM : PTX_SCOPE_NONE);
    m->atomic = m->order >= PTX_RELAXED || m->order == PTX_VOLATILE;
    m->access = access;
    m->count = (uint8_t)take_count(d);
    m->part_bytes = (uint8_t)bytes;
    m->bytes = (uint8_t)(bytes * m->count);
    m->align = m->bytes;
    if (bytes < 1 || bytes > 8 || m->bytes > 32) {
        ptx_refuse(d, "accesses of this type are not interpreted");
        return NULL;
    }
    return m;
}

static const ptx_operand *part_of(ptx_decoder *d, const ptx_operand *o, unsigned i,
                                  unsigned count) {
    if (count == 1 && o->kind != PTX_LIST) return o;
    if (o->kind == PTX_LIST && o->count == count) return &o->list[i];
    ptx_reject(d, "it must have %u registers in braces", count);
    return o;
}

/* The handler of a load or store of one part of the width of its register: one that is quick in the usual case. */
static ptx_run *quick(const ptx_decoder *d, const ptx_memory_code *m, unsigned width,
                      bool is_load) {
    static const ptx_lane loads[3][2] = {
        {PTX_LANE_load_global_4, PTX_LANE_load_global_8},
        {PTX_LANE_load_shared_4, PTX_LANE_load_shared_8},
        {PTX_LANE_load_shared_wide_4, PTX_LANE_load_shared_wide_8}};
    static const ptx_lane stores[3][2] = {
        {PTX_LANE_store_global_4, PTX_LANE_store_global_8},
        {PTX_LANE_store_shared_4, PTX_LANE_store_shared_8},
        {PTX_LANE_store_shared_wide_4, PTX_LANE_store_shared_wide_8}};
    ptx_run *usual = is_load ? ptx_run_load : ptx_run_store;
    if (m->order != PTX_WEAK || m->count != 1 || m->part_bytes != width || width < 4) return usual;
    bool is_8 = width == 8;
    if (m->fixed) {
        if (!is_load || m->space != PTX_PARAM) return usual;
        return d->lanes[is_8 ? PTX_LANE_load_param_8 : PTX_LANE_load_param_4];
    }
    if (m->space == PTX_SHARED) {
        return d
            ->lanes[is_load ? loads[1 + m->wide_address][is_8] : stores[1 + m->wide_address][is_8]];
    }
    bool is_global = (m->space == PTX_GLOBAL || m->space == PTX_CONST) && m->wide_address;
    if (!is_global) return usual;
    return d->lanes[is_load ? loads[0][is_8] : stores[0][is_8]];
}

static void decode_ld(ptx_decoder *d) {
    if (!ptx_needs(d, 2, 1)) return;
    const ptx_operand *o = d->instruction->operands;
    ptx_type t = ptx_type_at(d, 0);
    bool is_signed = mr_ptx_types[t].sort == PTX_SIGNED;
    ptx_memory_code *m = plain_access(d, MR_PTX_READS);
    if (!m) return;
    ptx_place_of address = address_place(d, &o[1], m);
    unsigned first = 0;
    for (unsigned i = 0; i < m->count && !d->failure; i++) {
        const ptx_operand *part = part_of(d, &o[0], i, m->count);
        if (d->failure) return;
        if (part->kind == PTX_SINK) {
            m->parts[i] = PTX_NO_PART;
            continue;
        }
        unsigned width;
        m->parts[i] = ptx_wide_result(d, part, m->part_bytes, &width);
        if (first && width != first) ptx_reject(d, "its registers must have the same width");
        first = width;
    }
    if (d->failure) return;
    if (first == 0) first = m->part_bytes < 2 ? 2 : m->part_bytes;
    m->load = m->order == PTX_WEAK ? ptx_find_load(m->part_bytes, is_signed, first)
                                   : ptx_find_load_strong(m->part_bytes, is_signed, first);
    if (m->count == 1 && m->parts[0] == PTX_NO_PART) m->parts[0] = ptx_scratch(d, first);
    ptx_code *code = ptx_emit(d, quick(d, m, first, true), m->parts[0], address, address, address);
    if (code) code->memory = m;
}

static void decode_st(ptx_decoder *d) {
    if (!ptx_needs(d, 2, 1)) return;
    const ptx_operand *o = d->instruction->operands;
    ptx_memory_code *m = plain_access(d, MR_PTX_WRITES);
    if (!m) return;
    ptx_place_of address = address_place(d, &o[0], m);
    unsigned first = 0;
    for (unsigned i = 0; i < m->count && !d->failure; i++) {
        const ptx_operand *part = part_of(d, &o[1], i, m->count);
        unsigned width;
        if (d->failure) return;
        m->parts[i] = ptx_wide_source(d, part, m->part_bytes, &width);
        if (first && width != first) ptx_reject(d, "its registers must have the same width");
        first = width;
    }
    if (d->failure) return;
    m->store = m->order == PTX_WEAK ? ptx_find_store(m->part_bytes, first)
                                    : ptx_find_store_strong(m->part_bytes, first);
    ptx_code *code = ptx_emit(d, quick(d, m, first, false), address, address, address, address);
    if (code) {
        code->memory = m;
        code->more = first;
        code->d = PTX_NO_PART;
    }
}

static ptx_modifier take_operation(ptx_decoder *d) {
    static const ptx_modifier operations[] = {PTX_MOD_and,  PTX_MOD_or,  PTX_MOD_xor, PTX_MOD_cas,
                                              PTX_MOD_exch, PTX_MOD_add, PTX_MOD_inc, PTX_MOD_dec,
                                              PTX_MOD_min,  PTX_MOD_max};
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        if (ptx_take(d, operations[i])) return operations[i];
    }
    return PTX_MOD_NONE;
}

static void decode_atomic(ptx_decoder *d, bool has_result) {
    ptx_modifier operation = take_operation(d);
    unsigned at = has_result ? 1 : 0, operands = at + (operation == PTX_MOD_cas ? 3 : 2);
    if (!ptx_needs(d, operands, 1)) return;
    ptx_type t = ptx_type_at(d, 0);
    ptx_memory_code *m = new_access(d, 1);
    if (!m) return;
    m->space = (uint8_t)take_space(d);
    m->order = (uint8_t)take_order(d, PTX_RELAXED);
    m->scope = (uint8_t)take_scope(d, PTX_SCOPE_DEVICE);
    ptx_take(d, PTX_MOD_noftz);
    m->atomic = true;
    m->access = MR_PTX_READS | MR_PTX_WRITES;
    m->count = 1;
    m->bytes = m->part_bytes = m->align = mr_ptx_types[t].bytes;
    m->atom = ptx_find_atom(operation, t);
    if (!m->atom) {
        ptx_refuse(d, "there is no such atomic operation of this type");
        return;
    }
    const ptx_operand *o = d->instruction->operands;
    ptx_place_of address = address_place(d, &o[at], m);
    ptx_place_of b = ptx_source(d, at + 1, m->bytes);
    ptx_place_of c = operation == PTX_MOD_cas ? ptx_source(d, at + 2, m->bytes) : b;
    ptx_place_of to =
        has_result && o[0].kind != PTX_SINK ? ptx_result(d, 0, m->bytes) : PTX_NO_PART;
    ptx_code *code = ptx_emit(d, ptx_run_atomic, to, address, b, c);
    if (code) code->memory = m;
}

/* cp.async.commit_group, .wait_group N, .wait_all: cp.async copies at once, so only the watch wants to know. */
static void decode_copies(ptx_decoder *d) {
    const ptx_instruction *i = d->instruction;
    if (ptx_take(d, PTX_MOD_commit_group)) {
        ptx_emit(d, ptx_run_copy_commit, PTX_NO_PART, 0, 0, 0);
        return;
    }
    uint64_t most = PTX_WAIT_ALL;
    if (ptx_take(d, PTX_MOD_wait_group) &&
        (i->operand_count != 1 || !ptx_is_constant(&i->operands[0], &most) || most > UINT32_MAX)) {
        ptx_refuse(d, "it must name a number of groups");
        return;
    }
    ptx_take(d, PTX_MOD_wait_all);
    ptx_code *code = ptx_emit(d, ptx_run_copy_wait, PTX_NO_PART, 0, 0, 0);
    if (code) code->bits = most;
}

static void decode_cp(ptx_decoder *d) {
    const ptx_instruction *i = d->instruction;
    if (!ptx_take(d, PTX_MOD_async)) {
        ptx_refuse(d, "only cp.async is interpreted");
        return;
    }
    if (ptx_has(i, PTX_MOD_commit_group) || ptx_has(i, PTX_MOD_wait_group) ||
        ptx_has(i, PTX_MOD_wait_all)) {
        decode_copies(d);
        return;
    }
    take_cache_hints(d);
    ptx_take(d, PTX_MOD_shared);
    ptx_take(d, PTX_MOD_shared_cta);
    ptx_take(d, PTX_MOD_global);
    uint64_t bytes;
    if (i->operand_count < 3 || i->operand_count > 4 || !ptx_is_constant(&i->operands[2], &bytes) ||
        (bytes != 4 && bytes != 8 && bytes != 16)) {
        ptx_refuse(d, "it must copy 4, 8 or 16 bytes");
        return;
    }
    ptx_memory_code *m = new_access(d, 2);
    if (!m) return;
    for (unsigned k = 0; k < 2; k++) {
        m[k].space = k == 0 ? PTX_SHARED : PTX_GLOBAL;
        m[k].access = k == 0 ? MR_PTX_WRITES : MR_PTX_READS;
        m[k].count = 1;
        m[k].bytes = m[k].part_bytes = m[k].align = (uint8_t)bytes;
        m[k].order = PTX_WEAK;
    }
    ptx_place_of to = address_place(d, &i->operands[0], &m[0]);
    ptx_place_of from = address_place(d, &i->operands[1], &m[1]);
    ptx_place_of size = i->operand_count == 4 ? ptx_source(d, 3, 4) : PTX_NO_PART;
    ptx_code *code = ptx_emit(d, ptx_run_copy_async, PTX_NO_PART, to, from, size);
    if (code) code->memory = m;
}

static void decode_hint(ptx_decoder *d) {
    take_space(d);
    take_cache_hints(d);
    ptx_emit(d, ptx_run_nothing, PTX_NO_PART, 0, 0, 0);
}

static void decode_fence(ptx_decoder *d) {
    bool is_membar = d->instruction->opcode == PTX_OP_membar;
    /* membar.cta, .gl and .sys are fence.sc of that scope. */
    ptx_order order = take_order(d, is_membar ? PTX_SEQ_CST : PTX_ACQ_REL);
    ptx_scope scope = take_scope(d, PTX_SCOPE_NONE);
    if (scope == PTX_SCOPE_NONE) ptx_refuse(d, "it has no scope");
    ptx_code *code = ptx_emit(d, ptx_run_fence, PTX_NO_PART, 0, 0, 0);
    if (code) code->bits = (uint64_t)order | (uint64_t)scope << 8;
}

bool ptx_decode_memory(ptx_decoder *d) {
    switch ((ptx_opcode)d->instruction->opcode) {
    case PTX_OP_ld:
    case PTX_OP_ldu: decode_ld(d); return true;
    case PTX_OP_st: decode_st(d); return true;
    case PTX_OP_atom: decode_atomic(d, true); return true;
    case PTX_OP_red: decode_atomic(d, false); return true;
    case PTX_OP_cp: decode_cp(d); return true;
    case PTX_OP_fence:
    case PTX_OP_membar: decode_fence(d); return true;
    case PTX_OP_prefetch:
    case PTX_OP_prefetchu:
    case PTX_OP_discard: decode_hint(d); return true;
    default: return false;
    }
}
