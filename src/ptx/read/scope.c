/* Scopes: what a name stands for at a place of the text.
 *
 * The bindings in force form a stack, and a name's record points to its innermost one. A scope that ends takes its part
 * of the stack away and lets the hidden bindings show again. Two things do not fit into the stack:
 *
 * - Labels may be used before they stand. So uses are kept in a list and looked up when their scope ends: in this scope
 *   first, then in the outer ones.
 * - `.reg .b32 %r<100>` declares %r0 to %r99. No register is made before its first use. A map from (range, number) has
 *   the registers made so far, so a register made in an inner scope stays the same one after it. */
#include <string.h>

#include "ptx/read/reader.h"

mr_status ptx_bind(ptx_reader *r, ptx_name name, ptx_symbol symbol) {
    ptx_names *names = &r->names;
    int32_t hidden = ptx_record(r, name)->binding;
    char shown[PTX_SHOWN];
    if (hidden >= 0 && names->bindings.items[hidden].depth == r->depth)
        return ptx_wrong(r, "%s is declared twice in the same scope",
                         ptx_shown(ptx_record(r, name)->text, ptx_record(r, name)->size, shown));
    ptx_binding binding = {symbol, name, r->depth, hidden};
    if (!mr_vec_push(&names->bindings, binding)) return ptx_no_memory(r);
    ptx_record(r, name)->binding = (int32_t)names->bindings.count - 1;
    return MR_OK;
}

void ptx_unbind(ptx_reader *r, size_t first_binding) {
    while (r->names.bindings.count > first_binding) {
        ptx_binding b = mr_vec_pop(&r->names.bindings);
        ptx_record(r, b.name)->binding = b.hidden;
    }
}

/* ---- registers of a range */

/* The range that the prefix stands for now, -1: none. */
static int64_t range_of(const ptx_reader *r, ptx_name prefix) {
    if (prefix == PTX_NO_NAME) return -1;
    int32_t binding = r->names.records.items[prefix].binding;
    if (binding < 0) return -1;
    ptx_symbol symbol = r->names.bindings.items[binding].symbol;
    return symbol.kind == PTX_NAMES_RANGE ? (int64_t)symbol.index : -1;
}

/* Splits `%r12` into a declared prefix and a number: `%r` and 12, or `%r1` and 2. */
static bool split(const ptx_reader *r, ptx_name name, uint32_t *out_range, uint32_t *out_number) {
    const ptx_name_record *record = &r->names.records.items[name];
    uint64_t number = 0, power = 1;
    for (uint32_t size = record->size; size > 1 && power < 10000000000u; power *= 10) {
        char c = record->text[--size];
        if (c < '0' || c > '9') return false;
        number += (uint64_t)(c - '0') * power;
        if (c == '0' && power > 1) continue; /* no leading zeros */
        int64_t range = range_of(r, ptx_names_find(&r->names, record->text, size));
        if (range < 0 || number >= r->names.ranges.items[range].count) continue;
        *out_range = (uint32_t)range;
        *out_number = (uint32_t)number;
        return true;
    }
    return false;
}

static mr_status register_of(ptx_reader *r, ptx_name name, uint32_t range, uint32_t number,
                             uint32_t *out_index) {
    uint64_t key = (uint64_t)range << 32 | number;
    const uint32_t *known = mr_map_find(&r->names.range_registers, key);
    *out_index = known ? *known : (uint32_t)r->body.registers.count;
    if (!known) {
        ptx_register made = {ptx_record(r, name)->text, r->names.ranges.items[range].type};
        if (!mr_vec_push(&r->body.registers, made) ||
            !mr_map_put(&r->names.range_registers, key, *out_index))
            return ptx_no_memory(r);
    }
    ptx_record(r, name)->range = range + 1;
    ptx_record(r, name)->register_index = *out_index;
    return MR_OK;
}

mr_status ptx_resolve(ptx_reader *r, ptx_name name, ptx_symbol *out_symbol, bool *out_found) {
    const ptx_name_record *record = ptx_record(r, name);
    *out_found = true;
    if (record->binding >= 0) {
        *out_symbol = r->names.bindings.items[record->binding].symbol;
        return MR_OK;
    }
    *out_symbol = (ptx_symbol){PTX_NAMES_REGISTER, record->register_index, 1};
    if (record->range &&
        range_of(r, r->names.ranges.items[record->range - 1].prefix) == record->range - 1)
        return MR_OK;
    uint32_t range, number;
    *out_found = split(r, name, &range, &number);
    return *out_found ? register_of(r, name, range, number, &out_symbol->index) : MR_OK;
}

/* ---- labels */

mr_status ptx_use_label(ptx_reader *r, ptx_label_use use) {
    return mr_vec_push(&r->body.label_uses, use) ? MR_OK : ptx_no_memory(r);
}

static void set_label(ptx_reader *r, const ptx_label_use *use, uint32_t index) {
    if (use->slot) *use->slot = index;
    else r->body.instructions.items[use->instruction].operands[use->operand].index = index;
}

/* Looks up the uses since `first_use`; those that are not of this scope stay for the outer one. */
static mr_status resolve_labels(ptx_reader *r, size_t first_use) {
    size_t kept = first_use;
    for (size_t i = first_use; i < r->body.label_uses.count; i++) {
        ptx_label_use use = r->body.label_uses.items[i];
        int32_t at = ptx_record(r, use.name)->binding;
        const ptx_binding *b = at < 0 ? NULL : &r->names.bindings.items[at];
        if (b && b->depth == r->depth && b->symbol.kind == PTX_NAMES_LABEL) {
            set_label(r, &use, b->symbol.index);
        } else if (r->depth == 1) {
            char shown[PTX_SHOWN];
            const ptx_name_record *record = ptx_record(r, use.name);
            r->place = use.place;
            return ptx_fail(r, use.line, MR_CODE_INVALID_ARGUMENT,
                            "there is no label %s in this function",
                            ptx_shown(record->text, record->size, shown));
        } else {
            r->body.label_uses.items[kept++] = use;
        }
    }
    r->body.label_uses.count = kept;
    return MR_OK;
}

/* ---- scopes */

mr_status ptx_open_scope(ptx_reader *r) {
    if (r->depth == PTX_DEEPEST)
        return ptx_wrong(r, "scopes are nested more than %d deep", PTX_DEEPEST);
    r->body.scopes[r->depth++] = (ptx_braces){r->names.bindings.count, r->body.label_uses.count};
    return MR_OK;
}

mr_status ptx_close_scope(ptx_reader *r) {
    ptx_braces scope = r->body.scopes[r->depth - 1];
    MR_TRY(resolve_labels(r, scope.first_use));
    ptx_unbind(r, scope.first_binding);
    r->depth--;
    return MR_OK;
}
