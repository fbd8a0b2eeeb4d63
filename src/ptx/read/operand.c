/* Operands of instructions. The meaning of a name is decided here; whether an instruction takes such an operand is for
 * the decoder. */
#include <string.h>

#include "ptx/read/reader.h"

#define MOST_LISTED 255

static const uint8_t operand_kinds[] = {
    [PTX_NAMES_REGISTER] = PTX_REGISTER,
    [PTX_NAMES_VARIABLE] = PTX_VARIABLE,
    [PTX_NAMES_LOCAL_VARIABLE] = PTX_LOCAL_VARIABLE,
    [PTX_NAMES_PARAMETER] = PTX_PARAMETER,
    [PTX_NAMES_FUNCTION] = PTX_FUNCTION,
    [PTX_NAMES_LABEL] = PTX_LABEL,
    [PTX_NAMES_TARGETS] = PTX_TARGETS,
    [PTX_NAMES_PROTOTYPE] = PTX_PROTOTYPE,
};

/* The next token is one of .x .y .z .w (or .r .g .b .a): takes it. -1: it is not. */
static mr_status take_component(ptx_reader *r, int *out) {
    static const char letters[] = "xyzwrgba";
    const ptx_token *t = &r->token;
    const char *at = t->kind == PTX_TOKEN_DOT && t->size == 1 ? strchr(letters, *t->text) : NULL;
    *out = at ? (int)(at - letters) % 4 : -1;
    return at ? ptx_advance(r) : MR_OK;
}

static mr_status read_special(ptx_reader *r, int special, ptx_operand *out) {
    int component;
    *out = (ptx_operand){.kind = PTX_SPECIAL, .index = (uint32_t)special};
    if (!ptx_special_is_vector((ptx_special)special)) return MR_OK;
    if (!ptx_at_dot(r, "x") && !ptx_at_dot(r, "y") && !ptx_at_dot(r, "z"))
        return ptx_expected(r, "`.x`, `.y` or `.z` after the special register");
    MR_TRY(take_component(r, &component));
    out->component = (uint8_t)component;
    return MR_OK;
}

/* A vector register: all of its parts, or one. */
static mr_status read_vector(ptx_reader *r, ptx_symbol symbol, ptx_operand *out) {
    int component;
    MR_TRY(take_component(r, &component));
    if (component >= (int)symbol.count)
        return ptx_wrong(r, "the vector register has %u parts", (unsigned)symbol.count);
    if (component >= 0) {
        *out = (ptx_operand){.kind = PTX_REGISTER, .index = symbol.index + (uint32_t)component};
        return MR_OK;
    }
    ptx_operand *list = ptx_alloc(r, symbol.count, sizeof *list);
    if (!list) return ptx_no_memory(r);
    for (uint32_t i = 0; i < symbol.count; i++)
        list[i] = (ptx_operand){.kind = PTX_REGISTER, .index = symbol.index + i};
    *out = (ptx_operand){.kind = PTX_LIST, .count = (uint8_t)symbol.count, .list = list};
    return MR_OK;
}

static mr_status unknown_name(ptx_reader *r, const ptx_name_record *record, uint32_t line) {
    char shown[PTX_SHOWN];
    ptx_shown(record->text, record->size, shown);
    bool is_register = record->text[0] == '%';
    const char *group = is_register ? ptx_uncovered(record->text, record->size) : NULL;
    if (group)
        return ptx_fail(r, line, MR_CODE_NOT_SUPPORTED, "%s is not covered: %s", shown, group);
    return ptx_fail(r, line, MR_CODE_INVALID_ARGUMENT,
                    is_register ? "the register %s is not declared in this function"
                                : "%s is not declared before this line",
                    shown);
}

/* %envreg7: the number is kept as the component. */
static bool is_environment(const ptx_name_record *record, uint8_t *out_number) {
    if (record->size < 8 || record->size > 9 || memcmp(record->text, "%envreg", 7) != 0)
        return false;
    unsigned number = 0;
    for (const char *c = record->text + 7; *c; c++) {
        if (*c < '0' || *c > '9') return false;
        number = number * 10 + (unsigned)(*c - '0');
    }
    *out_number = (uint8_t)number;
    return number < 32;
}

static mr_status read_name(ptx_reader *r, ptx_operand *out) {
    uint32_t line = r->token.line;
    ptx_name name;
    ptx_symbol symbol;
    bool found;
    MR_TRY(ptx_take_name(r, "an operand", &name));
    MR_TRY(ptx_resolve(r, name, &symbol, &found));
    const ptx_name_record *record = ptx_record(r, name);
    if (found && symbol.kind == PTX_NAMES_VECTOR) return read_vector(r, symbol, out);
    if (found && symbol.kind == PTX_NAMES_RANGE) return unknown_name(r, record, line);
    if (found) {
        *out = (ptx_operand){.kind = operand_kinds[symbol.kind], .index = symbol.index};
        return MR_OK;
    }
    *out = (ptx_operand){.kind = PTX_SPECIAL, .index = PTX_SREG_envreg};
    if (is_environment(record, &out->component)) return MR_OK;
    if (record->special >= 0 && record->special != PTX_SREG_envreg)
        return read_special(r, record->special, out);
    if (strcmp(record->text, "_") == 0) {
        *out = (ptx_operand){.kind = PTX_SINK};
        return MR_OK;
    }
    if (strcmp(record->text, "WARP_SZ") == 0) {
        *out = (ptx_operand){.kind = PTX_INTEGER, .bits = 32};
        return MR_OK;
    }
    return unknown_name(r, record, line);
}

static mr_status read_immediate(ptx_reader *r, ptx_operand *out) {
    ptx_literal c;
    MR_TRY(ptx_read_constant(r, &c));
    *out = (ptx_operand){
        .kind = c.is_real ? PTX_REAL : PTX_INTEGER, .single = c.single, .bits = c.bits};
    return MR_OK;
}

/* Whether `+4` may follow the name. */
static bool takes_offset(const ptx_operand *o) {
    return o->kind == PTX_VARIABLE || o->kind == PTX_LOCAL_VARIABLE || o->kind == PTX_PARAMETER;
}

/* After `[`. */
static mr_status read_address(ptx_reader *r, ptx_operand *out) {
    if (r->token.kind != PTX_TOKEN_WORD) {
        MR_TRY(read_immediate(r, out));
        if (out->kind == PTX_REAL) return ptx_wrong(r, "an address must be an integer");
    } else {
        MR_TRY(read_name(r, out));
        if (out->kind != PTX_REGISTER && !takes_offset(out))
            return ptx_wrong(r, "an address begins with a register, a variable or a number");
        MR_TRY(ptx_read_offset(r, &out->offset));
    }
    out->is_address = true;
    return ptx_expect(r, ']', "after the address");
}

/* `!%p1`; but `!0` is a constant. */
static bool negates_name(const ptx_reader *r) {
    ptx_lexer ahead = r->lexer;
    ptx_token next;
    if (!ptx_at(r, '!')) return false;
    ptx_lex(&ahead, &next);
    return next.kind == PTX_TOKEN_WORD;
}

static mr_status read_item(ptx_reader *r, ptx_operand *out) {
    bool negated = negates_name(r);
    if (negated) MR_TRY(ptx_advance(r));
    if (r->token.kind == PTX_TOKEN_WORD) {
        MR_TRY(read_name(r, out));
        if (takes_offset(out)) MR_TRY(ptx_read_offset(r, &out->offset));
    } else if (ptx_begins_constant(r)) {
        MR_TRY(read_immediate(r, out));
    } else {
        return ptx_expected(r, "an operand");
    }
    if (negated && out->kind != PTX_REGISTER && out->kind != PTX_SPECIAL)
        return ptx_wrong(r, "`!` stands only before a predicate register");
    out->negated = negated;
    return MR_OK;
}

mr_status ptx_read_operands_in(ptx_reader *r, char close, ptx_operand *out) {
    ptx_operand items[MOST_LISTED];
    uint32_t count = 0;
    for (bool more = !ptx_at(r, (uint8_t)close); more;) {
        if (count == MOST_LISTED)
            return ptx_fail(r, r->token.line, MR_CODE_NOT_SUPPORTED,
                            "a list of more than %d operands is not covered", MOST_LISTED);
        MR_TRY(read_item(r, &items[count]));
        if (items[count++].kind == PTX_LIST)
            return ptx_wrong(r, "a list holds parts of vector registers, not whole ones");
        MR_TRY(ptx_accept(r, ',', &more));
    }
    MR_TRY(ptx_expect(r, (uint8_t)close, "after the list"));
    const ptx_operand *list = ptx_copy(r, items, count, sizeof *items);
    if (!list) return ptx_no_memory(r);
    *out = (ptx_operand){.kind = PTX_LIST, .count = (uint8_t)count, .list = list};
    return MR_OK;
}

mr_status ptx_read_operand(ptx_reader *r, ptx_operand *out) {
    bool taken;
    MR_TRY(ptx_accept(r, '[', &taken));
    if (taken) return read_address(r, out);
    MR_TRY(ptx_accept(r, '{', &taken));
    if (taken) return ptx_read_operands_in(r, '}', out);
    return read_item(r, out);
}
