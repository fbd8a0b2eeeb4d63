/* Initial values of variables: numbers, strings as they lie in memory, addresses of symbols, in braces that may be
 * nested like the array's dimensions. Only the bytes up to the last value are kept, so the size of an array costs
 * nothing. */
#include <string.h>

#include "ptx/read/reader.h"

/* For all initial values of a module. The text of a compiler is longer than the bytes that it gives; braces that skip
 * the rest of a row are not. */
#define MOST_INIT_BYTES ((uint64_t)1 << 28)

typedef MR_VEC(ptx_relocation) relocations;

/* 0xFF(x), 0xFF00(x), ...: one byte each of the address of x. */
typedef struct {
    uint32_t parts; /* bytes seen so far; 0: none is open */
    ptx_relocation relocation;
} masked;

typedef struct {
    ptx_reader *r;
    ptx_declaration *d;
    uint32_t element; /* bytes */
    uint64_t at;      /* the next element */
    MR_VEC(uint8_t) bytes;
    relocations relocations;
    masked masked;
} values;

static mr_status write_element(values *v, uint64_t bits) {
    uint64_t first = v->at * v->element, end = first + v->element;
    if (end > MOST_INIT_BYTES || v->r->init_bytes + end > MOST_INIT_BYTES)
        return ptx_fail(v->r, v->r->token.line, MR_CODE_NOT_SUPPORTED,
                        "initial values of more than 256 MiB are not covered");
    while (v->bytes.count < end)
        if (!mr_vec_push(&v->bytes, 0)) return ptx_no_memory(v->r);
    for (uint32_t i = 0; i < v->element; i++)
        v->bytes.items[first + i] = i < 8 ? (uint8_t)(bits >> 8 * i) : 0;
    v->at++;
    return MR_OK;
}

/* ---- numbers */

static double as_double(const ptx_literal *c) {
    double d;
    float f;
    uint32_t low = (uint32_t)c->bits;
    if (!c->is_real) return c->is_unsigned ? (double)c->bits : (double)(int64_t)c->bits;
    memcpy(&f, &low, sizeof f);
    memcpy(&d, &c->bits, sizeof d);
    return c->single ? (double)f : d;
}

static uint64_t bits_of(double value, uint32_t bytes) {
    uint64_t bits = 0;
    float f = (float)value;
    if (bytes == 4) memcpy(&bits, &f, 4);
    else memcpy(&bits, &value, 8);
    return bits;
}

static mr_status write_number(values *v, const ptx_literal *c) {
    const ptx_type_info *type = &mr_ptx_types[v->d->variable.type];
    bool wide = v->d->variable.type == PTX_f32 || v->d->variable.type == PTX_f64;
    if (type->sort == PTX_FLOAT && wide && !(c->is_real && c->single == (type->bytes == 4)))
        return write_element(v, bits_of(as_double(c), type->bytes));
    if (c->is_real && type->bytes != (c->single ? 4 : 8))
        return ptx_wrong(v->r, "a real number of %d bytes cannot be the initial value of a `.%s`",
                         c->single ? 4 : 8, type->name);
    return write_element(v, c->bits);
}

/* ---- addresses */

/* `generic(symbol) + 4`, `symbol + 4`. */
static mr_status read_address(ptx_reader *r, ptx_relocation *out) {
    bool open = false;
    ptx_name name;
    ptx_symbol symbol;
    bool found;
    MR_TRY(ptx_take_name(r, "a number or the name of a variable or function", &name));
    out->generic = strcmp(ptx_record(r, name)->text, "generic") == 0 && ptx_at(r, '(');
    if (out->generic) {
        MR_TRY(ptx_accept(r, '(', &open));
        MR_TRY(ptx_take_name(r, "the name of a variable", &name));
    }
    MR_TRY(ptx_resolve(r, name, &symbol, &found));
    char shown[PTX_SHOWN];
    if (!found || (symbol.kind != PTX_NAMES_VARIABLE && symbol.kind != PTX_NAMES_FUNCTION))
        return ptx_wrong(r, "there is no variable or function %s before this line",
                         ptx_shown(ptx_record(r, name)->text, ptx_record(r, name)->size, shown));
    out->variable = symbol.kind == PTX_NAMES_VARIABLE ? (int32_t)symbol.index : -1;
    out->function = symbol.kind == PTX_NAMES_FUNCTION ? (int32_t)symbol.index : -1;
    MR_TRY(ptx_read_offset(r, &out->addend));
    if (!open) return MR_OK;
    MR_TRY(ptx_expect(r, ')', "after the name of the variable"));
    int64_t further;
    MR_TRY(ptx_read_offset(r, &further));
    out->addend = (int64_t)((uint64_t)out->addend + (uint64_t)further);
    return MR_OK;
}

static mr_status add_relocation(values *v, const ptx_relocation *relocation) {
    return mr_vec_push(&v->relocations, *relocation) ? MR_OK : ptx_no_memory(v->r);
}

static mr_status write_address(values *v) {
    ptx_relocation relocation = {.offset = v->at * v->element, .size = v->element};
    MR_TRY(read_address(v->r, &relocation));
    if (v->element != 8 && v->element != 4)
        return ptx_wrong(v->r, "an address cannot be the initial value of a `.%s`",
                         mr_ptx_types[v->d->variable.type].name);
    MR_TRY(add_relocation(v, &relocation));
    return write_element(v, 0);
}

static bool continues(const masked *m, const ptx_relocation *next, uint64_t mask) {
    const ptx_relocation *first = &m->relocation;
    return mask == (uint64_t)0xFF << 8 * m->parts && next->offset == first->offset + m->parts &&
           next->variable == first->variable && next->function == first->function &&
           next->addend == first->addend && next->generic == first->generic;
}

/* After `0xFF00(`. Compilers write an address in a packed struct as eight such bytes. */
static mr_status write_masked(values *v, uint64_t mask) {
    ptx_relocation relocation = {.offset = v->at * v->element, .size = 8};
    MR_TRY(read_address(v->r, &relocation));
    MR_TRY(ptx_expect(v->r, ')', "after the masked address"));
    if (!v->masked.parts && mask == 0xFF) v->masked.relocation = relocation;
    if (v->element != 1 || !continues(&v->masked, &relocation, mask))
        return ptx_fail(v->r, v->r->token.line, MR_CODE_NOT_SUPPORTED,
                        "a mask of an address is covered only as eight bytes in order: 0xFF(x), "
                        "0xFF00(x), ...");
    v->masked.parts = (v->masked.parts + 1) % 8;
    if (!v->masked.parts) MR_TRY(add_relocation(v, &v->masked.relocation));
    return write_element(v, 0);
}

/* ---- values */

static unsigned escaped(const char **at, const char *end) {
    char c = *(*at)++;
    static const char letters[] = "abfnrtv", codes[] = "\a\b\f\n\r\t\v";
    const char *letter = c ? strchr(letters, c) : NULL;
    if (letter) return (unsigned char)codes[letter - letters];
    unsigned value = 0;
    if (c == 'x') {
        for (; *at < end && strchr("0123456789abcdefABCDEF", **at) && **at; ++*at)
            value = value * 16 + (unsigned)(**at <= '9' ? **at - '0' : (**at | 32) - 'a' + 10);
        return value & 0xFF;
    }
    if (c < '0' || c > '7') return (unsigned char)c;
    --*at;
    for (int i = 0; i < 3 && *at < end && **at >= '0' && **at <= '7'; i++)
        value = value * 8 + (unsigned)(*(*at)++ - '0');
    return value & 0xFF;
}

/* "text": its characters and a NUL, if there is room for it. */
static mr_status write_string(values *v, uint64_t end_element) {
    if (v->element != 1) return ptx_wrong(v->r, "a string can be the value of bytes only");
    const char *at = v->r->token.text, *end = at + v->r->token.size;
    while (at < end && v->at < end_element) {
        unsigned byte = (unsigned char)*at++;
        if (byte == '\\' && at < end) byte = escaped(&at, end);
        MR_TRY(write_element(v, byte));
    }
    if (at < end) return ptx_wrong(v->r, "the string is longer than `%.200s`", v->d->variable.name);
    if (v->at < end_element) MR_TRY(write_element(v, 0));
    return ptx_advance(v->r);
}

static mr_status read_value(values *v, uint64_t end_element) {
    ptx_reader *r = v->r;
    if (r->token.kind == PTX_TOKEN_STRING) return write_string(v, end_element);
    if (v->at >= end_element)
        return ptx_wrong(r, "`%.200s` or a row of it has more initial values than elements",
                         v->d->variable.name);
    bool is_number = ptx_begins_constant(r), mask = false;
    ptx_literal constant;
    if (is_number) {
        MR_TRY(ptx_read_constant(r, &constant));
        MR_TRY(ptx_accept(r, '(', &mask));
        if (mask && !constant.is_real) return write_masked(v, constant.bits);
    }
    if (v->masked.parts)
        return ptx_wrong(r, "expected all eight bytes of the masked address that begins above");
    return is_number ? write_number(v, &constant) : write_address(v);
}

/* Elements that a value in `depth` braces may fill: all, a row, ... Unknown (UINT64_MAX) for x[]. */
static uint64_t extent_of(const ptx_declaration *d, uint32_t depth) {
    uint64_t extent = d->vector;
    for (uint32_t i = depth ? depth - 1 : 0; i < d->dimension_count; i++) {
        if (!d->dimensions[i] && i == 0) return UINT64_MAX;
        extent *= d->dimensions[i];
    }
    return extent;
}

/* Values, braces and commas, without recursion: `ends` says for each open brace where its row ends. */
static mr_status read_values(values *v) {
    uint64_t ends[PTX_DEEPEST + 3] = {extent_of(v->d, 0)};
    uint32_t depth = 0, dimensions = v->d->dimension_count;
    uint32_t deepest = (dimensions ? dimensions : 1) + (v->d->vector > 1);
    do {
        bool open, close = false, comma = false;
        MR_TRY(ptx_accept(v->r, '{', &open));
        if (open) {
            if (depth == deepest)
                return ptx_wrong(v->r, "the braces are nested deeper than the array `%.200s`",
                                 v->d->variable.name);
            depth++;
            uint64_t extent = extent_of(v->d, depth), room = ends[depth - 1] - v->at;
            if (v->at > ends[depth - 1]) room = 0;
            ends[depth] = v->at + (extent < room ? extent : room);
            if (!ptx_at(v->r, '}')) continue;
        } else {
            MR_TRY(read_value(v, ends[depth]));
        }
        while (depth && !comma) {
            MR_TRY(ptx_accept(v->r, ',', &comma));
            if (comma) break;
            MR_TRY(ptx_accept(v->r, '}', &close));
            if (!close) return ptx_expected(v->r, "`,` or `}` after an initial value");
            if (ends[depth] != UINT64_MAX) v->at = ends[depth];
            depth--;
        }
    } while (depth);
    return MR_OK;
}

static mr_status keep(values *v) {
    ptx_variable *variable = &v->d->variable;
    uint64_t row = extent_of(v->d, 2);
    if (v->d->dimension_count && !v->d->dimensions[0] && row) {
        uint64_t count = v->bytes.count / v->element;
        variable->count = (count + row - 1) / row * row;
        variable->bytes = variable->count * v->element;
    }
    variable->init_bytes = v->bytes.count;
    v->r->init_bytes += v->bytes.count;
    variable->init = ptx_copy(v->r, v->bytes.items, v->bytes.count, 1);
    variable->relocation_count = (uint32_t)v->relocations.count;
    variable->relocations =
        ptx_copy(v->r, v->relocations.items, v->relocations.count, sizeof *v->relocations.items);
    return variable->init && variable->relocations ? MR_OK : ptx_no_memory(v->r);
}

mr_status ptx_read_initialiser(ptx_reader *r, ptx_declaration *d) {
    values v = {.r = r, .d = d, .element = mr_ptx_types[d->variable.type].bytes};
    mr_status status = read_values(&v);
    if (!status && v.masked.parts)
        status = ptx_wrong(r, "expected all eight bytes of the masked address that begins above");
    if (!status) status = keep(&v);
    mr_vec_free(&v.bytes);
    mr_vec_free(&v.relocations);
    return status;
}
