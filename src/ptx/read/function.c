/* Functions and kernels: signature, performance directives, and whether this is a declaration or the definition. */
#include <string.h>

#include "ptx/read/reader.h"

/* ---- directives after the signature */

/* .maxntid 16, 4: missing sizes are 1. */
static mr_status read_extents(ptx_reader *r, uint32_t out[3]) {
    uint64_t value;
    bool more = true;
    for (int i = 0; i < 3; i++) out[i] = 1;
    for (int i = 0; i < 3 && more; i++) {
        MR_TRY(ptx_take_count(r, "a number of threads", UINT32_MAX, &value));
        out[i] = (uint32_t)value;
        MR_TRY(ptx_accept(r, ',', &more));
    }
    return more ? ptx_wrong(r, "a block has three extents at most") : MR_OK;
}

static mr_status read_number(ptx_reader *r, uint32_t *out) {
    uint64_t value;
    MR_TRY(ptx_take_count(r, "a number", UINT32_MAX, &value));
    *out = (uint32_t)value;
    return MR_OK;
}

static mr_status read_directive(ptx_reader *r, ptx_function *f) {
    char shown[PTX_SHOWN];
    const ptx_token t = r->token;
    uint32_t ignored;
    ptx_shown(t.text - 1, t.size + 1, shown);
    MR_TRY(ptx_advance(r));
#define IS(word) (t.size == sizeof(word) - 1 && memcmp(t.text, word, t.size) == 0)
    if (IS("maxntid")) return read_extents(r, f->max_threads);
    if (IS("reqntid")) return read_extents(r, f->wanted_threads);
    if (IS("minnctapersm")) return read_number(r, &f->min_blocks);
    if (IS("maxnctapersm")) return read_number(r, &ignored);
    if (IS("maxnreg")) return read_number(r, &f->max_registers);
    if (IS("pragma")) return ptx_read_pragma(r);
    if (IS("noreturn")) {
        f->never_returns = true;
        return MR_OK;
    }
#undef IS
    const char *group = ptx_uncovered(t.text - 1, t.size + 1);
    if (group)
        return ptx_fail(r, t.line, MR_CODE_NOT_SUPPORTED, "%s is not covered: %s", shown, group);
    return ptx_fail(r, t.line, MR_CODE_INVALID_ARGUMENT, "%s is not a directive of a function",
                    shown);
}

/* A directive that is not covered becomes the problem of this function, and is passed over. */
static mr_status read_directives(ptx_reader *r, ptx_function *f) {
    while (r->token.kind == PTX_TOKEN_DOT) {
        ptx_lexer lexer = r->lexer;
        ptx_token token = r->token;
        mr_status status = read_directive(r, f);
        if (!status) continue;
        MR_TRY(ptx_pardon(r, status, &f->problem));
        r->lexer = lexer;
        r->token = token;
        while (!ptx_at(r, '{') && !ptx_at(r, ';') && r->token.kind != PTX_TOKEN_END)
            MR_TRY(ptx_advance(r));
    }
    return MR_OK;
}

/* ---- declarations and definitions */

/* The function of that name, made if this is its first declaration. */
static mr_status declare(ptx_reader *r, ptx_name name, ptx_function *f, uint32_t *out_index) {
    ptx_symbol symbol = {PTX_NAMES_FUNCTION, (uint32_t)r->functions.count, 1};
    bool found = ptx_record(r, name)->binding >= 0;
    if (found) symbol = r->names.bindings.items[ptx_record(r, name)->binding].symbol;
    *out_index = symbol.index;
    if (found && symbol.kind == PTX_NAMES_FUNCTION) {
        const ptx_function *before = &r->functions.items[symbol.index];
        if (before->signature.parameter_count != f->signature.parameter_count ||
            before->signature.result_count != f->signature.result_count)
            return ptx_fail(r, f->place.ptx_line, MR_CODE_INVALID_ARGUMENT,
                            "the function `%.200s` was declared on line %u with other parameters",
                            f->name, (unsigned)before->place.ptx_line);
        f->is_visible |= before->is_visible;
        f->is_weak |= before->is_weak;
        f->never_returns |= before->never_returns;
        return MR_OK;
    }
    MR_TRY(ptx_bind(r, name, symbol));
    return mr_vec_push(&r->functions, *f) ? MR_OK : ptx_no_memory(r);
}

mr_status ptx_read_function(ptx_reader *r, ptx_function *linkage) {
    ptx_function f = *linkage;
    ptx_name name;
    uint32_t index;
    bool ends;
    f.place.ptx_line = r->token.line;
    if (ptx_at_dot(r, "attribute")) {
        return ptx_fail(r, r->token.line, MR_CODE_NOT_SUPPORTED,
                        "`.attribute` of a function is not covered");
    }
    MR_TRY(ptx_read_signature(r, &f.signature, &name));
    f.name = ptx_record(r, name)->text;
    MR_TRY(read_directives(r, &f));
    MR_TRY(declare(r, name, &f, &index));
    MR_TRY(ptx_accept(r, ';', &ends));
    if (ends) {
        if (!r->functions.items[index].is_defined) r->functions.items[index] = f;
        return MR_OK;
    }
    if (r->functions.items[index].is_defined)
        return ptx_fail(r, f.place.ptx_line, MR_CODE_INVALID_ARGUMENT,
                        "the function `%.200s` is defined twice", f.name);
    MR_TRY(ptx_read_body(r, &f));
    r->functions.items[index] = f;
    return MR_OK;
}
