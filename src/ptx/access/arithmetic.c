/* Moves, conversions, integer arithmetic and predicates as the values of a kernel see them. */
#include "ptx/access/values.h"

static void write_result_of(access_maker *m, uint32_t value, uint32_t bits, bool is_signed) {
    access_write_operand(m, &m->at->operands[0], value, bits, is_signed);
}

/* add, sub, mul, mad, min, max, and, or, xor, shl, shr, div, rem, neg, not, abs of integers without modifiers that
 * change what they mean. */
static bool is_plain(const access_maker *m) {
    return !ptx_has(m->at, PTX_MOD_sat) && !ptx_has(m->at, PTX_MOD_cc) &&
           !ptx_has(m->at, PTX_MOD_hi) && !ptx_has(m->at, PTX_MOD_relu) &&
           access_is_integer(access_type_at(m, 0)) &&
           access_type_bits(access_type_at(m, 0)) >= 16 && access_type_at(m, 0) != PTX_u16x2 &&
           access_type_at(m, 0) != PTX_s16x2;
}

/* mul and mad, `.lo` and `.wide` */
static uint32_t product(access_maker *m, uint32_t *out_bits) {
    uint32_t bits = access_type_bits(access_type_at(m, 0));
    bool is_signed = mr_ptx_types[access_type_at(m, 0)].sort == PTX_SIGNED;
    uint32_t a = access_source(m, 1, bits), b = access_source(m, 2, bits);
    if (ptx_has(m->at, PTX_MOD_wide) && bits < 64) {
        a = access_extend(m, a, bits, bits * 2, is_signed);
        b = access_extend(m, b, bits, bits * 2, is_signed);
        bits *= 2;
    }
    *out_bits = bits;
    return access_binary(m, ACCESS_MUL, bits, is_signed, a, b);
}

/* x & 7 is x - (x >> 3 << 3), and x & ~7 is x >> 3 << 3: linear in x and in x >> 3. */
static uint32_t masked(access_maker *m, uint32_t bits, uint32_t x, uint64_t mask) {
    uint64_t all = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    bool keeps_high = mask >> (bits - 1) & 1;
    uint64_t low = keeps_high ? ~mask & all : mask & all;
    if (low & (low + 1)) return ACCESS_NONE;
    if (!low) return keeps_high ? x : access_constant(m, 0, bits);
    uint32_t by = access_constant(m, (uint64_t)__builtin_popcountll(low), 32);
    uint32_t high = access_binary(m, ACCESS_SHL, bits, false,
                                  access_binary(m, ACCESS_SHR, bits, true, x, by), by);
    return keeps_high ? high : access_binary(m, ACCESS_SUB, bits, false, x, high);
}

static uint32_t and_of(access_maker *m, uint32_t bits) {
    uint32_t a = access_source(m, 1, bits), b = access_source(m, 2, bits), swap;
    uint64_t mask;
    if (access_is_constant(m, a, &mask)) swap = a, a = b, b = swap;
    if (bits > 1 && access_is_constant(m, b, &mask)) {
        uint32_t made = masked(m, bits, a, mask);
        if (made != ACCESS_NONE) return made;
    }
    return access_binary(m, ACCESS_AND, bits, false, a, b);
}

/* bfe.u32 d, x, from, length */
static uint32_t bit_field(access_maker *m, uint32_t bits, bool is_signed) {
    uint64_t from, length;
    uint32_t x = access_source(m, 1, bits);
    if (!is_signed && access_is_constant(m, access_source(m, 2, 32), &from) &&
        access_is_constant(m, access_source(m, 3, 32), &length) && length &&
        from + length <= bits && length < 63) {
        uint32_t shifted =
            from ? access_binary(m, ACCESS_SHR, bits, false, x, access_constant(m, from, 32)) : x;
        return from + length == bits ? shifted
                                     : masked(m, bits, shifted, (UINT64_C(1) << length) - 1);
    }
    return access_other(m, bits, &x, 1);
}

static bool arithmetic(access_maker *m) {
    ptx_type type = access_type_at(m, 0);
    uint32_t bits = access_type_bits(type), value = ACCESS_NONE;
    bool is_signed = mr_ptx_types[type].sort == PTX_SIGNED;
    switch ((ptx_opcode)m->at->opcode) {
    case PTX_OP_mul:
    case PTX_OP_mad:
        if (!is_plain(m)) return false;
        value = product(m, &bits);
        if (m->at->opcode == PTX_OP_mad)
            value = access_binary(m, ACCESS_ADD, bits, false, value, access_source(m, 3, bits));
        break;
#define BINARY(name, op)                                                                           \
    case PTX_OP_##name:                                                                            \
        if (!is_plain(m)) return false;                                                            \
        value = access_binary(m, op, bits, is_signed, access_source(m, 1, bits),                   \
                              access_source(m, 2, bits));                                          \
        break;
        BINARY(add, ACCESS_ADD)
        BINARY(sub, ACCESS_SUB)
        BINARY(min, ACCESS_MIN)
        BINARY(max, ACCESS_MAX)
        BINARY(div, ACCESS_DIV)
#undef BINARY
    case PTX_OP_rem: {
        if (!is_plain(m)) return false;
        uint32_t a = access_source(m, 1, bits), b = access_source(m, 2, bits);
        uint32_t quotient = access_binary(m, ACCESS_DIV, bits, is_signed, a, b);
        value = access_binary(m, ACCESS_SUB, bits, false, a,
                              access_binary(m, ACCESS_MUL, bits, false, quotient, b));
        break;
    }
    case PTX_OP_shl:
    case PTX_OP_shr:
        if (!is_plain(m)) return false;
        value = access_binary(m, m->at->opcode == PTX_OP_shl ? ACCESS_SHL : ACCESS_SHR, bits,
                              is_signed, access_source(m, 1, bits), access_source(m, 2, 32));
        break;
    case PTX_OP_and: value = and_of(m, bits); break;
    case PTX_OP_or:
        value = access_binary(m, ACCESS_OR, bits, false, access_source(m, 1, bits),
                              access_source(m, 2, bits));
        break;
    case PTX_OP_xor:
        value = access_binary(m, ACCESS_XOR, bits, false, access_source(m, 1, bits),
                              access_source(m, 2, bits));
        break;
    case PTX_OP_not:
        value = bits == 1 ? access_binary(m, ACCESS_XOR, 1, false, access_source(m, 1, 1),
                                          access_constant(m, 1, 1))
                          : access_binary(m, ACCESS_SUB, bits, false,
                                          access_constant(m, UINT64_MAX, bits),
                                          access_source(m, 1, bits));
        break;
    case PTX_OP_neg:
        if (!is_plain(m)) return false;
        value = access_binary(m, ACCESS_SUB, bits, false, access_constant(m, 0, bits),
                              access_source(m, 1, bits));
        break;
    case PTX_OP_bfe: value = bit_field(m, bits, is_signed); break;
    default: return false;
    }
    write_result_of(m, value, bits, is_signed);
    return true;
}

/* Conversions between integers; those from and to floating point give no pointers. */
static bool convert(access_maker *m) {
    if (m->at->type_count < 2 || ptx_has(m->at, PTX_MOD_sat)) return false;
    ptx_type to = (ptx_type)m->at->types[0], from = (ptx_type)m->at->types[1];
    if (!access_is_integer(to) || !access_is_integer(from)) return false;
    uint32_t to_bits = access_type_bits(to), from_bits = access_type_bits(from);
    uint32_t value = access_source(m, 1, from_bits);
    bool is_signed = mr_ptx_types[from].sort == PTX_SIGNED;
    value = from_bits < to_bits ? access_extend(m, value, from_bits, to_bits, is_signed)
                                : access_truncate(m, value, to_bits);
    write_result_of(m, value, to_bits, mr_ptx_types[to].sort == PTX_SIGNED);
    return true;
}

/* Global addresses are generic addresses, and those of local memory are treated as such. An address in shared memory
 * can be a 32-bit number, so the conversion says again that it points there. */
static void convert_address(access_maker *m) {
    uint32_t bits = access_type_bits(access_type_at(m, 0)), value = access_source(m, 1, bits);
    if (access_space_of(m->at) == PTX_SHARED && !ptx_has(m->at, PTX_MOD_to))
        value = access_binary(m, ACCESS_ADD, bits, false,
                              access_leaf(m, ACCESS_ADDRESS_SHARED, 64, ACCESS_NONE, 0),
                              access_other(m, bits, NULL, 0));
    write_result_of(m, value, bits, false);
}

/* mov.b64 {low, high}, x */
static bool unpack(access_maker *m) {
    const ptx_operand *to = &m->at->operands[0];
    uint32_t bits = access_type_bits(access_type_at(m, 0)),
             part = bits / (to->count ? to->count : 1);
    uint32_t x = access_source(m, 1, bits);
    if (part == 0) return false;
    for (uint32_t k = 0; k < to->count; k++) {
        uint32_t by = access_constant(m, k * part, 32);
        uint32_t shifted = k ? access_binary(m, ACCESS_SHR, bits, false, x, by) : x;
        access_write_operand(m, &to->list[k], access_truncate(m, shifted, part), part, false);
    }
    return true;
}

static bool move(access_maker *m) {
    if (m->at->operand_count < 2 || m->at->type_count != 1) return false;
    uint32_t bits = access_type_bits(access_type_at(m, 0));
    if (m->at->operands[0].kind == PTX_LIST) return unpack(m);
    write_result_of(m, access_source(m, 1, bits), bits, false);
    return true;
}

static bool selected(access_maker *m) {
    uint32_t bits = access_type_bits(access_type_at(m, 0));
    uint32_t p = access_source(m, 3, 1);
    write_result_of(m,
                    access_select(m, bits, p, access_source(m, 1, bits), access_source(m, 2, bits)),
                    bits, false);
    return true;
}

/* slct.u64.s32 d, a, b, c: a if c >= 0, else b */
static bool select_by_sign(access_maker *m) {
    uint32_t bits = access_type_bits(access_type_at(m, 0)), p = access_number_of(m, 1, 3, 0);
    write_result_of(m,
                    access_select(m, bits, p, access_source(m, 1, bits), access_source(m, 2, bits)),
                    bits, false);
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

static uint32_t compare(access_maker *m, bool *out_plain) {
    ptx_type type = access_type_at(m, m->at->type_count ? m->at->type_count - 1u : 0);
    *out_plain = false;
    uint32_t first = m->at->two_results ? 2 : 1;
    if (!access_is_integer(type)) return access_number_of(m, 1, first, 0);
    for (uint32_t k = 0; k < sizeof comparisons / sizeof *comparisons; k++) {
        if (!ptx_has(m->at, comparisons[k].modifier)) continue;
        access_value v = {.op = ACCESS_COMPARE,
                          .bits = 1,
                          .from = (uint8_t)access_type_bits(type),
                          .comparison = (uint8_t)comparisons[k].comparison,
                          .is_signed =
                              mr_ptx_types[type].sort == PTX_SIGNED && !comparisons[k].is_unsigned,
                          .block = m->block};
        uint32_t bits = access_type_bits(type);
        uint32_t a = access_source(m, first, bits), b = access_source(m, first + 1, bits);
        *out_plain = true;
        return access_number(m, v, (uint32_t[]){a, b}, 2);
    }
    return access_number_of(m, 1, first, 0);
}

static uint32_t not_of(access_maker *m, uint32_t p) {
    return access_binary(m, ACCESS_XOR, 1, false, p, access_constant(m, 1, 1));
}

/* setp.lt.and.s32 p|q, a, b, {!}c: p = a < b && c, q = !(a < b) && c */
static bool set_predicate(access_maker *m) {
    bool plain;
    uint32_t p = compare(m, &plain), q = not_of(m, p);
    uint32_t third = m->at->two_results ? 4 : 3;
    if (m->at->operand_count > third) {
        uint32_t c = access_source(m, third, 1);
        access_op op = ptx_has(m->at, PTX_MOD_and)  ? ACCESS_AND
                       : ptx_has(m->at, PTX_MOD_or) ? ACCESS_OR
                                                    : ACCESS_XOR;
        p = access_binary(m, op, 1, false, p, c);
        q = access_binary(m, op, 1, false, q, c);
    }
    access_write_operand(m, &m->at->operands[0], p, 1, false);
    if (m->at->two_results) access_write_operand(m, &m->at->operands[1], q, 1, false);
    return true;
}

static bool count_bits(access_maker *m) {
    uint32_t bits = access_register_bits(m, m->at->operands[0].index);
    uint32_t count = access_number_of(m, bits, 1, access_type_bits(access_type_at(m, 0)));
    write_result_of(m, count, bits, false);
    return true;
}

bool access_arithmetic_instruction(access_maker *m) {
    switch ((ptx_opcode)m->at->opcode) {
    case PTX_OP_mov: return move(m);
    case PTX_OP_cvt: return convert(m);
    case PTX_OP_cvta: convert_address(m); return true;
    case PTX_OP_selp: return selected(m);
    case PTX_OP_slct: return select_by_sign(m);
    case PTX_OP_setp: return set_predicate(m);
    case PTX_OP_popc:
    case PTX_OP_clz: return count_bits(m);
    default: return arithmetic(m);
    }
}
