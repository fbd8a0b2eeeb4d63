/* Declarations of variables and parameters: attributes, type, name, dimensions. And of registers. */
#include <string.h>

#include "ptx/read/reader.h"

/* Far above any device's memory, and low enough that sums of sizes cannot overflow. */
#define LARGEST_VARIABLE ((uint64_t)1 << 60)

static const struct {
    const char *word;
    ptx_space space;
} pointed_spaces[] = {
    {"global", PTX_GLOBAL}, {"shared", PTX_SHARED}, {"local", PTX_LOCAL}, {"const", PTX_CONST}};

/* After `.align`. */
static mr_status read_align(ptx_reader *r, uint32_t *out_align) {
    uint64_t align;
    MR_TRY(ptx_take_count(r, "an alignment", UINT32_MAX / 2, &align));
    if (!align || align & (align - 1))
        return ptx_wrong(r, "an alignment must be a power of two, not %llu",
                         (unsigned long long)align);
    *out_align = (uint32_t)align;
    return MR_OK;
}

/* After `.ptr`: what a parameter points to. */
static mr_status read_pointed(ptx_reader *r, ptx_variable *v) {
    for (size_t i = 0; i < sizeof pointed_spaces / sizeof *pointed_spaces; i++) {
        bool taken;
        MR_TRY(ptx_accept_dot(r, pointed_spaces[i].word, &taken));
        if (taken) v->points_into = pointed_spaces[i].space;
    }
    bool aligned;
    MR_TRY(ptx_accept_dot(r, "align", &aligned));
    return aligned ? read_align(r, &v->points_align) : MR_OK;
}

/* After `.attribute`: (.managed), (.unified(1, 2)). */
static mr_status read_attribute_list(ptx_reader *r, ptx_variable *v) {
    MR_TRY(ptx_expect(r, '(', "after `.attribute`"));
    for (int open = 1; open > 0;) {
        if (ptx_at_dot(r, "managed")) v->is_managed = true;
        else if (ptx_at(r, '(')) open++;
        else if (ptx_at(r, ')')) open--;
        else if (r->token.kind == PTX_TOKEN_END) return ptx_expected(r, "`)` after the attributes");
        MR_TRY(ptx_advance(r));
    }
    return MR_OK;
}

static mr_status take_type(ptx_reader *r, ptx_declaration *out) {
    char shown[PTX_SHOWN];
    const ptx_token *t = &r->token;
    ptx_name name = ptx_names_find(&r->names, t->text, t->size);
    ptx_type type = name == PTX_NO_NAME ? PTX_NO_TYPE : (ptx_type)ptx_record(r, name)->type;
    if (type == PTX_NO_TYPE) {
        const char *group = ptx_uncovered(t->text, t->size);
        ptx_shown(t->text - 1, t->size + 1, shown);
        if (group)
            return ptx_fail(r, t->line, MR_CODE_NOT_SUPPORTED, "%s is not covered: %s", shown,
                            group);
        return ptx_wrong(r, "%s is neither a type nor an attribute of a declaration", shown);
    }
    if (out->variable.type != PTX_NO_TYPE)
        return ptx_wrong(r, "the declaration has two types: %s is the second",
                         ptx_shown(t->text - 1, t->size + 1, shown));
    out->variable.type = type;
    return ptx_advance(r);
}

mr_status ptx_read_attributes(ptx_reader *r, ptx_space space, ptx_declaration *out) {
    *out = (ptx_declaration){.variable.space = space, .vector = 1};
    while (r->token.kind == PTX_TOKEN_DOT) {
        bool vector = ptx_at_dot(r, "v2") || ptx_at_dot(r, "v4") || ptx_at_dot(r, "v8");
        if (vector) out->vector = (uint32_t)(r->token.text[1] - '0');
        if (ptx_at_dot(r, "align")) {
            MR_TRY(ptx_advance(r));
            MR_TRY(read_align(r, &out->variable.align));
        } else if (ptx_at_dot(r, "ptr")) {
            MR_TRY(ptx_advance(r));
            MR_TRY(read_pointed(r, &out->variable));
        } else if (ptx_at_dot(r, "attribute")) {
            MR_TRY(ptx_advance(r));
            MR_TRY(read_attribute_list(r, &out->variable));
        } else if (vector) {
            MR_TRY(ptx_advance(r));
        } else {
            MR_TRY(take_type(r, out));
        }
    }
    if (out->variable.type == PTX_NO_TYPE) return ptx_expected(r, "a type such as `.b32`");
    return MR_OK;
}

/* Sets `count` and `bytes`, for a first dimension that is known. */
static mr_status measure(ptx_reader *r, ptx_declaration *d) {
    uint64_t count = d->vector, element = mr_ptx_types[d->variable.type].bytes;
    for (uint32_t i = 0; i < d->dimension_count; i++) {
        if (d->dimensions[i] && count > LARGEST_VARIABLE / element / d->dimensions[i])
            return ptx_wrong(r, "the array `%.200s` is larger than 2^60 bytes", d->variable.name);
        count *= d->dimensions[i];
    }
    d->variable.count = count;
    d->variable.bytes = count * element;
    return MR_OK;
}

static mr_status read_dimensions(ptx_reader *r, ptx_declaration *d) {
    for (bool more;;) {
        MR_TRY(ptx_accept(r, '[', &more));
        if (!more) return MR_OK;
        if (d->dimension_count == PTX_DEEPEST)
            return ptx_wrong(r, "an array has more than %d dimensions", PTX_DEEPEST);
        ptx_literal size = {0};
        bool given = !ptx_at(r, ']');
        if (given) MR_TRY(ptx_read_constant(r, &size));
        if (given && (size.is_real || (!size.is_unsigned && (int64_t)size.bits < 0)))
            return ptx_wrong(r, "the size of an array must be an integer that is not negative");
        if (!given && d->dimension_count)
            return ptx_wrong(r, "only the first dimension of an array may be left open");
        d->dimensions[d->dimension_count++] = size.bits;
        MR_TRY(ptx_expect(r, ']', "after the size of the array"));
    }
}

mr_status ptx_read_declarator(ptx_reader *r, const ptx_declaration *attributes,
                              ptx_declaration *out) {
    *out = *attributes;
    ptx_variable *v = &out->variable;
    if (v->type == PTX_pred)
        return ptx_wrong(r, "a variable in memory cannot be a predicate (`.pred`)");
    MR_TRY(ptx_take_name(r, "the name of a variable", &out->name));
    v->name = ptx_record(r, out->name)->text;
    MR_TRY(read_dimensions(r, out));
    MR_TRY(measure(r, out));
    if (!v->align) v->align = mr_ptx_types[v->type].bytes * out->vector;
    return MR_OK;
}

/* ---- registers */

static mr_status add_register(ptx_reader *r, const char *name, ptx_type type) {
    ptx_register made = {name, type};
    return mr_vec_push(&r->body.registers, made) ? MR_OK : ptx_no_memory(r);
}

/* .reg .v4 .f32 %v: the registers %v.x, %v.y, %v.z, %v.w. */
static mr_status add_vector(ptx_reader *r, ptx_name name, ptx_type type, uint32_t parts) {
    ptx_symbol symbol = {PTX_NAMES_VECTOR, (uint32_t)r->body.registers.count, parts};
    for (uint32_t i = 0; i < parts; i++) {
        uint32_t size = ptx_record(r, name)->size;
        char *text = ptx_alloc(r, size + 3, 1);
        if (!text) return ptx_no_memory(r);
        memcpy(text, ptx_record(r, name)->text, size);
        text[size] = '.';
        text[size + 1] = "xyzw"[i];
        MR_TRY(add_register(r, text, type));
    }
    return ptx_bind(r, name, symbol);
}

/* After `%r<`. */
static mr_status add_range(ptx_reader *r, ptx_name prefix, ptx_type type) {
    uint64_t count;
    MR_TRY(ptx_take_count(r, "a number of registers", UINT32_MAX, &count));
    MR_TRY(ptx_expect(r, '>', "after the number of registers"));
    ptx_range range = {prefix, (uint32_t)count, type};
    ptx_symbol symbol = {PTX_NAMES_RANGE, (uint32_t)r->names.ranges.count, 0};
    if (!mr_vec_push(&r->names.ranges, range)) return ptx_no_memory(r);
    return ptx_bind(r, prefix, symbol);
}

mr_status ptx_read_registers(ptx_reader *r) {
    ptx_declaration d;
    MR_TRY(ptx_read_attributes(r, PTX_GENERIC, &d));
    if (d.vector == 8) return ptx_wrong(r, "a vector register has 2 or 4 parts, not 8");
    for (bool more = true, range; more;) {
        ptx_name name;
        MR_TRY(ptx_take_name(r, "the name of a register", &name));
        MR_TRY(ptx_accept(r, '<', &range));
        if (range && d.vector > 1)
            return ptx_fail(r, r->token.line, MR_CODE_NOT_SUPPORTED,
                            "a range of vector registers is not covered: declare each one");
        if (range) {
            MR_TRY(add_range(r, name, d.variable.type));
        } else if (d.vector > 1) {
            MR_TRY(add_vector(r, name, d.variable.type, d.vector));
        } else {
            ptx_symbol symbol = {PTX_NAMES_REGISTER, (uint32_t)r->body.registers.count, 1};
            MR_TRY(add_register(r, ptx_record(r, name)->text, d.variable.type));
            MR_TRY(ptx_bind(r, name, symbol));
        }
        MR_TRY(ptx_accept(r, ',', &more));
    }
    return ptx_expect(r, ';', "after the registers");
}
