/* Operands of decoded instructions: where a register, a constant or an address lies (code.h). An instruction must have
 * so many operands and types, of these sizes, and no unknown modifier. */
#include "ptx/decode/decode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/run/arith.h"

bool ptx_needs(ptx_decoder *d, unsigned operands, unsigned types) {
    const ptx_instruction *i = d->instruction;
    if (i->type_count != types) {
        ptx_refuse(d, "it must have %u type%s, and has %u", types, types == 1 ? "" : "s",
                   i->type_count);
        return false;
    }
    if (i->operand_count != operands) {
        ptx_refuse(d, "it must have %u operand%s, and has %u", operands, operands == 1 ? "" : "s",
                   i->operand_count);
        return false;
    }
    return true;
}

bool ptx_take(ptx_decoder *d, ptx_modifier modifier) {
    const ptx_instruction *i = d->instruction;
    bool found = false;
    for (unsigned k = 0; k < i->modifier_count; k++) {
        if (i->modifiers[k] != modifier) continue;
        d->taken |= 1u << k;
        found = true;
    }
    return found;
}

ptx_type ptx_type_at(const ptx_decoder *d, unsigned i) {
    return i < d->instruction->type_count ? (ptx_type)d->instruction->types[i] : PTX_NO_TYPE;
}

/* ---- constants */

/* The record of a vector, whose place is 0 while there is none. NULL: no memory. */
static ptx_constant *find_constant(ptx_constants *c, uint64_t bits, unsigned width) {
    uint64_t key = (bits ^ width * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu >> 1;
    ptx_constant *k = mr_map_find(&c->known, key);
    while (k && (k->bits != bits || k->bytes != width)) k = mr_map_again(&c->known, k);
    if (!k && (k = mr_map_insert(&c->known, key)))
        *k = (ptx_constant){.bits = bits, .bytes = (uint8_t)width};
    return k;
}

static bool write_vector(ptx_constants *c, uint64_t bits, unsigned bytes, ptx_place_of *out) {
    size_t size = bytes == 1 ? 64 : (size_t)bytes * PTX_LANES;
    if (c->data.count + size > UINT32_MAX / 2 || !mr_vec_reserve(&c->data, size)) return false;
    char *at = c->data.items + c->data.count;
    if (bytes == 1) memset(at, bits ? 0xff : 0, size);
    for (unsigned i = 0; bytes > 1 && i < PTX_LANES; i++) memcpy(at + i * bytes, &bits, bytes);
    *out = (uint32_t)c->data.count | PTX_AREA_CONSTANT;
    c->data.count += size;
    return true;
}

static void out_of_memory(ptx_decoder *d) {
    if (!d->failure) d->failure = mr_no_memory("to decode PTX");
}

/* As the bytes lie in a vector, the machine must be little-endian, like all machines with CUDA. */
ptx_place_of ptx_constant_of(ptx_decoder *d, uint64_t bits, unsigned bytes) {
    unsigned width = bytes == 0 ? 1 : bytes; /* of a predicate: 1 */
    if (bytes == 0) bits = bits != 0;
    else if (bytes < 8) bits &= ((uint64_t)1 << (8 * bytes)) - 1;
    ptx_constant *k = find_constant(d->constants, bits, width);
    if (k && k->place) return k->place;
    if (!k || !write_vector(d->constants, bits, width, &k->place)) out_of_memory(d);
    return k ? k->place : 0;
}

/* A vector whose lanes differ: found by a key that no number of 64 bits has, as its width is 3 */
static ptx_place_of lane_vector(ptx_decoder *d, ptx_special which) {
    ptx_constants *c = d->constants;
    ptx_constant *k = find_constant(c, which, 3);
    if (k && k->place) return k->place;
    if (!k || !write_vector(c, 0, 4, &k->place)) {
        out_of_memory(d);
        return 0;
    }
    uint32_t values[PTX_LANES];
    for (unsigned i = 0; i < PTX_LANES; i++) {
        uint32_t eq = 1u << i, lt = eq - 1;
        values[i] = which == PTX_SREG_laneid        ? i
                    : which == PTX_SREG_lanemask_eq ? eq
                    : which == PTX_SREG_lanemask_lt ? lt
                    : which == PTX_SREG_lanemask_le ? lt | eq
                    : which == PTX_SREG_lanemask_gt ? ~(lt | eq)
                                                    : ~lt;
    }
    memcpy(c->data.items + (k->place & ~3u), values, sizeof values);
    return k->place;
}

/* ---- scratch registers and addresses */

static unsigned kind_of(unsigned bytes) {
    return bytes == 2 ? 0 : bytes == 4 ? 1 : bytes == 8 ? 2 : 3;
}

ptx_place_of ptx_scratch(ptx_decoder *d, unsigned bytes) {
    static const uint32_t sizes[4] = {2 * PTX_LANES, 4 * PTX_LANES, 8 * PTX_LANES, 4};
    unsigned kind = kind_of(bytes);
    uint32_t which = d->used[kind]++ % PTX_SCRATCHES; /* no instruction needs more at a time */
    return d->scratch[kind] + which * sizes[kind];
}

ptx_place_of ptx_address_of(ptx_decoder *d, int32_t function, uint32_t variable, int64_t addend,
                            unsigned bytes, bool generic) {
    mr_ptx_module *m = d->module;
    for (size_t i = 0; i < m->slots.count; i++) {
        const ptx_address_slot *s = &m->slots.items[i];
        if (s->function == function && s->variable == variable && s->addend == addend &&
            s->bytes == bytes && s->generic == generic) {
            return s->offset | PTX_AREA_LAUNCH;
        }
    }
    ptx_address_slot slot = {.function = function,
                             .variable = variable,
                             .addend = addend,
                             .bytes = (uint8_t)bytes,
                             .generic = generic,
                             .offset = m->launch_bytes};
    if (m->launch_bytes > UINT32_MAX / 2 || !mr_vec_push(&m->slots, slot)) {
        out_of_memory(d);
        return 0;
    }
    m->launch_bytes += bytes * PTX_LANES;
    return slot.offset | PTX_AREA_LAUNCH;
}

/* Kernels with a parameter at the same offset share its vector: only one of them runs. */
ptx_place_of ptx_param_vector(ptx_decoder *d, uint32_t offset, unsigned bytes) {
    return ptx_address_of(d, PTX_SLOT_PARAM, offset, 0, bytes, false);
}

const ptx_variable *ptx_parameter_of(const ptx_function *f, uint32_t index) {
    const ptx_signature *s = &f->signature;
    return index < s->parameter_count ? &s->parameters[index]
                                      : &s->results[index - s->parameter_count];
}

/* ---- operands */

bool ptx_is_constant(const ptx_operand *o, uint64_t *out_bits) {
    if (o->kind != PTX_INTEGER) return false;
    *out_bits = o->bits;
    return true;
}

static ptx_place_of register_place(ptx_decoder *d, uint32_t index, unsigned bytes) {
    const ptx_register *r = &d->function->registers[index];
    unsigned has = mr_ptx_types[r->type].bytes;
    if (has != bytes) {
        if (bytes == 0) ptx_reject(d, "register %s is no predicate", r->name);
        else if (has == 0) ptx_reject(d, "register %s is a predicate", r->name);
        else
            ptx_reject(d, "register %s has %u bits, and here it must have %u", r->name, 8 * has,
                       8 * bytes);
        return 0;
    }
    return d->slot[index];
}

static uint32_t launch_vector_place(unsigned which) {
    return (uint32_t)which * 4 * PTX_LANES | PTX_AREA_LAUNCH;
}

/* Special registers that are read with a code of their own (clocks) are the matter of mov. */
static ptx_place_of special_place(ptx_decoder *d, const ptx_operand *o, unsigned bytes) {
    ptx_special which = (ptx_special)o->index;
    if (which == PTX_SREG_gridid || which == PTX_SREG_current_graph_exec) {
        return ptx_constant_of(d, 0, bytes);
    }
    if (bytes != 4) {
        ptx_reject(d, "special register %%%s has 32 bits, and here it must have %u",
                   ptx_special_names[which], 8 * bytes);
        return 0;
    }
    switch (which) {
    case PTX_SREG_tid:
        return (uint32_t)(PTX_WARP_TID + o->component) * 4 * PTX_LANES | PTX_AREA_WARP;
    case PTX_SREG_warpid: return PTX_WARP_WARPID * 4 * PTX_LANES | PTX_AREA_WARP;
    case PTX_SREG_ntid: return launch_vector_place(PTX_LAUNCH_NTID + o->component);
    case PTX_SREG_nctaid:
    case PTX_SREG_nclusterid: return launch_vector_place(PTX_LAUNCH_NCTAID + o->component);
    case PTX_SREG_ctaid:
    case PTX_SREG_clusterid: return launch_vector_place(PTX_LAUNCH_CTAID + o->component);
    case PTX_SREG_nwarpid: return launch_vector_place(PTX_LAUNCH_NWARPID);
    case PTX_SREG_smid: return launch_vector_place(PTX_LAUNCH_SMID);
    case PTX_SREG_nsmid: return launch_vector_place(PTX_LAUNCH_NSMID);
    case PTX_SREG_total_smem_size:
    case PTX_SREG_aggr_smem_size: return launch_vector_place(PTX_LAUNCH_TOTAL_SHARED);
    case PTX_SREG_dynamic_smem_size: return launch_vector_place(PTX_LAUNCH_DYNAMIC_SHARED);
    case PTX_SREG_laneid:
    case PTX_SREG_lanemask_eq:
    case PTX_SREG_lanemask_le:
    case PTX_SREG_lanemask_lt:
    case PTX_SREG_lanemask_ge:
    case PTX_SREG_lanemask_gt: return lane_vector(d, which);
    /* A cluster is one block. */
    case PTX_SREG_cluster_nctaid:
    case PTX_SREG_cluster_nctarank: return ptx_constant_of(d, 1, 4);
    case PTX_SREG_cluster_ctaid:
    case PTX_SREG_cluster_ctarank:
    case PTX_SREG_reserved_smem_offset_begin:
    case PTX_SREG_reserved_smem_offset_end: return ptx_constant_of(d, 0, 4);
    /* The address of the grid's workspace: the upper half in %envreg1, the lower one in %envreg2. */
    case PTX_SREG_envreg:
        if (o->component != 1 && o->component != 2) return ptx_constant_of(d, 0, 4);
        return launch_vector_place(PTX_LAUNCH_WORKSPACE + o->component - 1);
    default:
        ptx_refuse(d, "special register %%%s can be read by mov only", ptx_special_names[which]);
        return 0;
    }
}

static ptx_place_of real_place(ptx_decoder *d, const ptx_operand *o, unsigned bytes) {
    if (bytes == 8)
        return ptx_constant_of(
            d, o->single ? mr_bits_f64(mr_from_bits_f32((uint32_t)o->bits)) : o->bits, 8);
    if (bytes == 4) {
        float value =
            o->single ? mr_from_bits_f32((uint32_t)o->bits) : (float)mr_from_bits_f64(o->bits);
        return ptx_constant_of(d, o->single ? (uint32_t)o->bits : mr_bits_f32(value), 4);
    }
    ptx_reject(d, "a number with a point cannot be an operand of %u bits", 8 * bytes);
    return 0;
}

static ptx_place_of negated(ptx_decoder *d, ptx_place_of place) {
    ptx_place_of to = ptx_scratch(d, 0);
    ptx_emit(d, ptx_run_pred_not, to, place, place, place);
    return to;
}

static ptx_place_of variable_place(ptx_decoder *d, int32_t function, const ptx_operand *o,
                                   const ptx_variable *v, unsigned bytes) {
    if (bytes != 8 && !(bytes == 4 && v->space == PTX_SHARED)) {
        ptx_refuse(d, "the address of `%s` does not fit in %u bits", v->name, 8 * bytes);
        return 0;
    }
    return ptx_address_of(d, function, o->index, o->offset, bytes, false);
}

ptx_place_of ptx_source_of(ptx_decoder *d, const ptx_operand *o, unsigned bytes) {
    switch ((ptx_operand_kind)o->kind) {
    case PTX_REGISTER: {
        ptx_place_of place = register_place(d, o->index, bytes);
        return o->negated ? negated(d, place) : place;
    }
    case PTX_INTEGER: return ptx_constant_of(d, o->bits, bytes);
    case PTX_REAL: return real_place(d, o, bytes);
    case PTX_SPECIAL: return special_place(d, o, bytes);
    case PTX_VARIABLE: return variable_place(d, -1, o, &d->module->tree.variables[o->index], bytes);
    case PTX_LOCAL_VARIABLE: {
        const ptx_variable *v = &d->function->variables[o->index];
        if (v->space == PTX_SHARED) {
            return variable_place(d, (int32_t)(d->function - d->module->tree.functions), o, v,
                                  bytes);
        }
        if (bytes != 8 && bytes != 4) break;
        ptx_place_of to = ptx_scratch(d, bytes);
        ptx_code *code = ptx_emit(d, ptx_run_local_address, to, to, to, to);
        if (code) {
            code->bits = d->routine->variable_offset[o->index] + (uint64_t)o->offset;
            code->more = bytes;
        }
        return to;
    }
    case PTX_PARAMETER: {
        if (bytes != 8 && bytes != 4) break;
        uint64_t offset = d->routine->parameter_offset[o->index] + (uint64_t)o->offset;
        if (d->function->is_entry) return ptx_constant_of(d, offset, bytes);
        ptx_place_of to = ptx_scratch(d, bytes);
        ptx_code *code = ptx_emit(d, ptx_run_local_address, to, to, to, to);
        if (code) {
            code->bits = offset;
            code->more = bytes;
        }
        return to;
    }
    case PTX_FUNCTION:
        if (bytes != 8) break;
        return ptx_constant_of(d, PTX_WINDOW(PTX_TOP_FUNCTION) + 16 * (uint64_t)o->index, 8);
    default: break;
    }
    ptx_refuse(d, "an operand is of a kind that cannot stand in its place");
    return 0;
}

ptx_place_of ptx_source(ptx_decoder *d, unsigned i, unsigned bytes) {
    return ptx_source_of(d, &d->instruction->operands[i], bytes);
}

ptx_place_of ptx_result_of(ptx_decoder *d, const ptx_operand *o, unsigned bytes) {
    if (o->kind == PTX_SINK) return ptx_scratch(d, bytes);
    if (o->kind == PTX_REGISTER) return register_place(d, o->index, bytes);
    ptx_reject(d, "its result must be a register");
    return 0;
}

ptx_place_of ptx_result(ptx_decoder *d, unsigned i, unsigned bytes) {
    return ptx_result_of(d, &d->instruction->operands[i], bytes);
}

static ptx_place_of wide_register(ptx_decoder *d, const ptx_operand *o, unsigned least,
                                  unsigned *out_bytes) {
    const ptx_register *r = &d->function->registers[o->index];
    unsigned has = mr_ptx_types[r->type].bytes;
    if (has < least || has < 2 || has > 8) {
        ptx_reject(d, "register %s has %u bits, and here it must have at least %u", r->name,
                   8 * has, 8 * least);
        has = 8;
    }
    *out_bytes = has;
    return d->slot[o->index];
}

ptx_place_of ptx_wide_source(ptx_decoder *d, const ptx_operand *o, unsigned least,
                             unsigned *out_bytes) {
    if (o->kind == PTX_REGISTER) return wide_register(d, o, least, out_bytes);
    *out_bytes = least < 2 ? 2 : least;
    return ptx_source_of(d, o, *out_bytes);
}

ptx_place_of ptx_wide_result(ptx_decoder *d, const ptx_operand *o, unsigned least,
                             unsigned *out_bytes) {
    if (o->kind == PTX_REGISTER) return wide_register(d, o, least, out_bytes);
    *out_bytes = least < 2 ? 2 : least;
    return ptx_result_of(d, o, *out_bytes);
}
