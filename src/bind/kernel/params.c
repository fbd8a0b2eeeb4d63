/* The parameters of a kernel. PTX has their sizes; the C text has the types that pointers point to, and says which
 * numbers are signed. If the two disagree, the text was not understood, and only the PTX counts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bind/kernel/kernel.h"

#define DTYPE(d) (uint8_t)(1u << (d))

/* The dtypes that a pointer to a C type takes; 0: any, as the type is unknown. */
static uint8_t dtypes_of(const char *base) {
    static const struct {
        const char *base;
        uint8_t dtypes;
    } known[] = {{"float", DTYPE(MR_F32)},
                 {"double", DTYPE(MR_F64)},
                 {"__half", DTYPE(MR_F16)},
                 {"half", DTYPE(MR_F16)},
                 {"__nv_bfloat16", DTYPE(MR_BF16)},
                 {"nv_bfloat16", DTYPE(MR_BF16)},
                 {"int", DTYPE(MR_I32)},
                 {"unsigned int", DTYPE(MR_I32)},
                 {"long long", DTYPE(MR_I64)},
                 {"unsigned long long", DTYPE(MR_I64)},
                 {"unsigned char", DTYPE(MR_U8) | DTYPE(MR_BOOL)},
                 {"char", DTYPE(MR_U8) | DTYPE(MR_BOOL)},
                 {"signed char", DTYPE(MR_U8) | DTYPE(MR_BOOL)},
                 {"bool", DTYPE(MR_BOOL) | DTYPE(MR_U8)}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].base, base) == 0) return known[i].dtypes;
    return 0;
}

/* A C type that is known to be a number; its bytes, or 0. */
static uint32_t number_bytes(const char *base, bool *out_unsigned) {
    static const struct {
        const char *base;
        uint32_t bytes;
        bool is_unsigned;
    } known[] = {
        {"char", 1, false},        {"signed char", 1, false},   {"unsigned char", 1, true},
        {"short", 2, false},       {"unsigned short", 2, true}, {"int", 4, false},
        {"unsigned int", 4, true}, {"long long", 8, false},     {"unsigned long long", 8, true}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].base, base) == 0) {
            *out_unsigned = known[i].is_unsigned;
            return known[i].bytes;
        }
    return 0;
}

/* Accepts signed and unsigned integers of so many bytes, since only the size is known. */
static void set_widest(mr_kernel_param *p, uint32_t bytes) {
    p->least = bytes >= 8 ? INT64_MIN : -((int64_t)1 << (8 * bytes - 1));
    p->most = bytes >= 8 ? INT64_MAX : ((int64_t)1 << 8 * bytes) - 1;
}

static void narrow(mr_kernel_param *p, uint32_t bytes, bool is_unsigned) {
    if (bytes >= 8) return;
    if (is_unsigned) p->least = 0;
    else p->most = ((int64_t)1 << (8 * bytes - 1)) - 1;
}

static mr_argument_kind kind_of_ptx(const mr_ptx_param *p) {
    if (p->is_struct) return MR_ARGUMENT_STRUCT;
    if (mr_ptx_types[p->type].sort == PTX_FLOAT && p->bytes >= 4) return MR_ARGUMENT_FLOAT;
    if (p->may_be_pointer) return MR_ARGUMENT_ANY;
    return p->bytes <= 8 ? MR_ARGUMENT_INTEGER : MR_ARGUMENT_STRUCT;
}

static bool is_real(const mr_c_param *c) {
    return strcmp(c->base, "float") == 0 || strcmp(c->base, "double") == 0;
}

/* A parameter that is not a struct, by its declaration. */
static void apply_declaration(const mr_ptx_param *p, const mr_c_param *c, mr_kernel_param *out) {
    bool is_unsigned = false;
    if (c->pointers) {
        if (p->bytes != 8) return;
        out->kind = MR_ARGUMENT_POINTER;
        out->dtypes = c->pointers == 1 ? dtypes_of(c->base) : DTYPE(MR_I64);
    } else if (is_real(c) && p->bytes == (strcmp(c->base, "float") == 0 ? 4 : 8)) {
        out->kind = MR_ARGUMENT_FLOAT; /* some compilers write .b32 */
    } else if (strcmp(c->base, "bool") == 0 && p->bytes == 1) {
        out->least = 0;
        out->most = 1;
    } else if (number_bytes(c->base, &is_unsigned) == p->bytes) {
        out->kind = MR_ARGUMENT_INTEGER;
        narrow(out, p->bytes, is_unsigned);
    }
}

static void describe_param(const mr_ptx_kernel *ptx, uint32_t i, const mr_c_param *c,
                           mr_kernel_param *out) {
    const mr_ptx_param *p = &ptx->params[i];
    *out = (mr_kernel_param){.kind = kind_of_ptx(p)};
    set_widest(out, p->bytes);
    if (c) {
        out->c = *c;
        if (out->kind != MR_ARGUMENT_STRUCT) apply_declaration(p, c, out);
        return;
    }
    snprintf(out->c.name, sizeof out->c.name, "%s", p->name);
    if (out->kind == MR_ARGUMENT_ANY && mr_ptx_kernel_access(ptx)[i].access)
        out->kind = MR_ARGUMENT_POINTER;
}

/* The name without namespace and template arguments, as in the declaration after __global__. */
static void plain_name(const char *name, char *out, size_t size) {
    size_t length = strcspn(name, "<(");
    size_t start = length;
    while (start && name[start - 1] != ':') start--;
    snprintf(out, size, "%.*s", (int)(length - start), name + start);
}

#define MOST_PARAMS 128

mr_kernel_param *mr_kernel_params_describe(const mr_ptx_kernel *ptx, const mr_kernel_unit *unit,
                                           const char *name) {
    mr_kernel_param *params = calloc(ptx->param_count + 1, sizeof *params);
    mr_c_param *c = calloc(MOST_PARAMS, sizeof *c);
    char plain[MR_LONGEST_NAME + 1];
    int found = -1;
    plain_name(name, plain, sizeof plain);
    if (c && unit->text) found = mr_signature_find(unit->text, unit->size, plain, c, MOST_PARAMS);
    bool known = found == (int)ptx->param_count && found <= MOST_PARAMS;
    for (uint32_t i = 0; params && i < ptx->param_count; i++)
        describe_param(ptx, i, known ? &c[i] : NULL, &params[i]);
    free(c);
    return params;
}

const char *mr_kernel_param_text(const mr_kernel_param *param, char *out, size_t size) {
    snprintf(out, size, "%s%s%s", param->c.type, param->c.type[0] ? " " : "", param->c.name);
    return out;
}

void mr_kernel_add_params(luaL_Buffer *text, const mr_kernel_box *kernel) {
    char one[sizeof(mr_c_param)];
    for (uint32_t i = 0; i < kernel->ptx->param_count; i++) {
        if (i) luaL_addstring(text, ", ");
        luaL_addstring(text, mr_kernel_param_text(&kernel->params[i], one, sizeof one));
    }
}
