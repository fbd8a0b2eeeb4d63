/* The arguments of a launch: each one is checked against its parameter and written to the block of parameters. An error
 * names the argument, its declaration, the given value, and a conversion if one would help. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "bind/kernel/kernel.h"

/* "saxpy: argument 3 (`float a`): expected a number, got a tensor". */
static int bad_kernel_argument(lua_State *L, const mr_kernel_passed *a, uint32_t i,
                               const char *expected, const char *got) {
    char param[sizeof(mr_c_param)];
    return mr_misuse(L, "%s: argument %d (`%s`): expected %s, got %s", a->kernel->name, (int)i + 1,
                     mr_kernel_param_text(&a->kernel->params[i], param, sizeof param), expected,
                     got);
}

/* Names the argument that was given instead of a number. */
static const char *not_a_number(lua_State *L, int at) {
    const mr_tensor *t = mr_test_tensor(L, at);
    if (t && t->numel == 1) return "a tensor: pass t:item(), its value";
    if (lua_isnil(L, at)) return "nil";
    return mr_type_text(L, at);
}

/* ---- pointers */

static void dtype_list(uint8_t dtypes, char *out, size_t size) {
    out[0] = '\0';
    for (int d = 0; d < MR_DTYPE_COUNT; d++)
        if (dtypes >> d & 1) {
            size_t used = strlen(out);
            snprintf(out + used, size - used, "%s%s", used ? " or " : "",
                     mr_dtype_text((mr_dtype)d));
        }
}

/* `float **y`: addresses lie in memory, where nothing follows them. */
static bool is_of_addresses(const mr_kernel_param *p) {
    return p->c.pointers > 1;
}

static void bad_addresses(lua_State *L, const mr_kernel_passed *a, uint32_t i, const char *got) {
    char text[200];
    snprintf(text, sizeof text,
             "%s; simpler is one parameter for each tensor, which the checker follows", got);
    bad_kernel_argument(
        L, a, i, "a tensor of addresses, such as mr.tensor({x.data_ptr}, {dtype=\"i64\"})", text);
}

static void bad_dtype(lua_State *L, const mr_kernel_passed *a, uint32_t i, const mr_tensor *t) {
    char wanted[80], expected[120], got[120];
    uint8_t dtypes = a->kernel->params[i].dtypes;
    dtype_list(dtypes, wanted, sizeof wanted);
    snprintf(expected, sizeof expected, "a tensor of %s", wanted);
    snprintf(got, sizeof got, "one of %s", mr_dtype_text((mr_dtype)t->dtype));
    if (is_of_addresses(&a->kernel->params[i])) bad_addresses(L, a, i, got);
    if (!(dtypes & (dtypes - 1)))
        snprintf(got, sizeof got, "one of %s: t:to(\"%s\") converts it",
                 mr_dtype_text((mr_dtype)t->dtype), wanted);
    bad_kernel_argument(L, a, i, expected, got);
}

static void check_pointed(lua_State *L, const mr_kernel_passed *a, uint32_t i, const mr_tensor *t) {
    const mr_kernel_param *p = &a->kernel->params[i];
    if (p->dtypes && !(p->dtypes >> t->dtype & 1)) bad_dtype(L, a, i, t);
    if (t->storage->kind == MR_MEMORY_PAGEABLE)
        bad_kernel_argument(L, a, i, "a tensor on a device or in pinned host memory",
                            "one in pageable host memory: t:to(0) or t:pin_memory() copies it");
    if (!t->contiguous && !a->kernel->strided)
        bad_kernel_argument(L, a, i,
                            "a contiguous tensor (pass its contiguous(), or make the kernel with "
                            "{strided=true} and pass the strides, too)",
                            "one with gaps or another order");
}

static void set_pointer(lua_State *L, mr_kernel_passed *a, uint32_t i) {
    int at = a->first + (int)i;
    if (lua_isnil(L, at)) return; /* NULL */
    if (!mr_test_tensor(L, at) && is_of_addresses(&a->kernel->params[i]))
        bad_addresses(L, a, i, mr_type_text(L, at));
    if (!mr_test_tensor(L, at))
        bad_kernel_argument(L, a, i, "a tensor or nil", mr_type_text(L, at));
    mr_tensor *t = mr_check_tensor(L, at);
    check_pointed(L, a, i, t);
    a->pointers[a->pointer_count++] = (mr_kernel_pointer){i,
                                                          a->kernel->ptx->params[i].offset,
                                                          t,
                                                          a->kernel->params[i].access,
                                                          a->kernel->params[i].c.name,
                                                          false};
}

/* ---- numbers, structs */

static void set_float(lua_State *L, mr_kernel_passed *a, uint32_t i) {
    int at = a->first + (int)i;
    const mr_ptx_param *to = &a->kernel->ptx->params[i];
    if (lua_type(L, at) != LUA_TNUMBER)
        bad_kernel_argument(L, a, i, "a number", not_a_number(L, at));
    double value = lua_tonumber(L, at);
    float single = (float)value;
    memcpy(a->params + to->offset, to->bytes == 8 ? (const void *)&value : &single, to->bytes);
}

static int64_t check_whole(lua_State *L, const mr_kernel_passed *a, uint32_t i) {
    int at = a->first + (int)i, exact;
    if (lua_isboolean(L, at)) return lua_toboolean(L, at);
    if (lua_type(L, at) != LUA_TNUMBER)
        bad_kernel_argument(L, a, i, "an integer", not_a_number(L, at));
    int64_t value = lua_tointegerx(L, at, &exact);
    if (!exact) {
        char got[64];
        mr_number_format(got, sizeof got, "%.14g", lua_tonumber(L, at));
        bad_kernel_argument(L, a, i, "an integer", got);
    }
    return value;
}

static void set_integer(lua_State *L, mr_kernel_passed *a, uint32_t i) {
    const mr_kernel_param *p = &a->kernel->params[i];
    const mr_ptx_param *to = &a->kernel->ptx->params[i];
    int64_t value = check_whole(L, a, i);
    if (value < p->least || value > p->most) {
        char expected[80], got[32];
        snprintf(expected, sizeof expected, "an integer from %" PRId64 " to %" PRId64, p->least,
                 p->most);
        snprintf(got, sizeof got, "%" PRId64, value);
        bad_kernel_argument(L, a, i, expected, got);
    }
    memcpy(a->params + to->offset, &value, to->bytes); /* little-endian, as GPUs are */
}

static void set_struct(lua_State *L, mr_kernel_passed *a, uint32_t i) {
    int at = a->first + (int)i;
    const mr_ptx_param *to = &a->kernel->ptx->params[i];
    size_t size;
    char expected[80], got[60];
    snprintf(expected, sizeof expected, "its %" PRIu32 " bytes as a string (string.pack)",
             to->bytes);
    if (lua_type(L, at) != LUA_TSTRING) bad_kernel_argument(L, a, i, expected, mr_type_text(L, at));
    const char *bytes = lua_tolstring(L, at, &size);
    snprintf(got, sizeof got, "%zu byte%s", size, size == 1 ? "" : "s");
    if (size != to->bytes) bad_kernel_argument(L, a, i, expected, got);
    memcpy(a->params + to->offset, bytes, size);
}

static void set_argument(lua_State *L, mr_kernel_passed *a, uint32_t i) {
    switch (a->kernel->params[i].kind) {
    case MR_ARGUMENT_POINTER: set_pointer(L, a, i); break;
    case MR_ARGUMENT_INTEGER: set_integer(L, a, i); break;
    case MR_ARGUMENT_FLOAT: set_float(L, a, i); break;
    case MR_ARGUMENT_STRUCT: set_struct(L, a, i); break;
    case MR_ARGUMENT_ANY:
        if (lua_type(L, a->first + (int)i) == LUA_TNUMBER) set_integer(L, a, i);
        else set_pointer(L, a, i);
        break;
    }
}

/* "expected 4 arguments (float* y, const float* x, float a, int n), got 3". */
void mr_kernel_check_count(lua_State *L, const mr_kernel_box *kernel, int first) {
    int wanted = (int)kernel->ptx->param_count, given = lua_gettop(L) - first + 1;
    if (given == wanted) return;
    luaL_Buffer list;
    luaL_buffinit(L, &list);
    mr_kernel_add_params(&list, kernel);
    luaL_pushresult(&list);
    mr_misuse(L, "%s: expected %d argument%s (%s), got %d", kernel->name, wanted,
              wanted == 1 ? "" : "s", lua_tostring(L, -1), given);
}

void mr_kernel_check_arguments(lua_State *L, mr_kernel_passed *passed) {
    for (uint32_t i = 0; i < passed->kernel->ptx->param_count; i++) set_argument(L, passed, i);
}
