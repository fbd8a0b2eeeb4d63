/* mr.tensor: a tensor from nested Lua tables. The first pass checks the tables, the second reads them.
 * Both use raw access only. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bind/open.h"
#include "bind/tensor/placement.h"
#include "bind/tensor_box.h"
#include "bind/nn/gradient.h"

/* A table can occur several times, so a few tables can mean a huge number of elements. */
#define MOST_ELEMENTS ((int64_t)1 << 28)

typedef struct {
    const mr_machine *machine;
    int ndim; /* -1: not known before the first element, or the first empty table */
    int64_t shape[MR_MAX_DIMS];
    bool sized[MR_MAX_DIMS];
    int64_t at[MR_MAX_DIMS]; /* the path to where we are, from 1 */
    bool any_boolean, any_integer, any_float;
    char place[MR_MAX_DIMS * 23 + 16];
} literal;

/* "element [2][3]", or "the table" at the top; stays until the next call. It leaves the Lua stack as it is: C does not
 * say in which order the arguments of a message are computed, and others read the top of that stack. */
static const char *place(literal *lit, int depth) {
    strcpy(lit->place, depth ? "element " : "the table");
    for (int i = 0; i < depth; i++) {
        size_t used = strlen(lit->place);
        snprintf(lit->place + used, sizeof lit->place - used, "[%" PRId64 "]", lit->at[i]);
    }
    return lit->place;
}

/* Says what is wrong with a table that is not a list of `size` values. */
static void not_a_list(lua_State *L, literal *lit, int depth, int index, int64_t size) {
    const char *where = place(lit, depth);
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1))
        if (lua_type(L, -2) == LUA_TSTRING)
            mr_misuse(
                L, "tensor: %s has a key `%.40s`: expected only values; options are a second table",
                where, lua_tostring(L, -2));
    for (int64_t i = 1; i <= size; i++) {
        bool missing = lua_rawgeti(L, index, i) == LUA_TNIL;
        lua_pop(L, 1);
        if (missing) mr_misuse(L, "tensor: %s has a hole: [%" PRId64 "] is nil", where, i);
    }
    mr_misuse(L, "tensor: %s has a hole: [%" PRId64 "] is nil, but there are values after it",
              where, size + 1);
}

static void check_list(lua_State *L, literal *lit, int depth, int index, int64_t size) {
    int64_t count = 0;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1))
        mr_check_stop(L, lit->machine, ++count, "reading a table into a tensor");
    if (count != size) not_a_list(L, lit, depth, index, size);
}

/* The size of dim `depth`: the first table that deep sets it, all others must have it too. */
static void check_size(lua_State *L, literal *lit, int depth, int64_t size) {
    if (!lit->sized[depth]) {
        lit->sized[depth] = true;
        lit->shape[depth] = size;
    } else if (lit->shape[depth] != size) {
        mr_misuse(L, "tensor: %s has %" PRId64 " values where those before it have %" PRId64,
                  place(lit, depth), size, lit->shape[depth]);
    }
    int64_t numel = 1;
    for (int d = 0; d <= depth; d++) {
        if (lit->shape[d] == 0) return;
        if (numel > MOST_ELEMENTS / lit->shape[d])
            mr_misuse(L, "tensor: the tables have more than %" PRId64 " values", MOST_ELEMENTS);
        numel *= lit->shape[d];
    }
}

static void check_leaf(lua_State *L, literal *lit, int depth) {
    if (lit->ndim < 0) lit->ndim = depth;
    if (lit->ndim != depth)
        mr_misuse(L, "tensor: %s is %s, but its neighbours are tables", place(lit, depth),
                  lua_isnumber(L, -1) ? "a number" : "a boolean");
    if (lua_isboolean(L, -1)) lit->any_boolean = true;
    else if (lua_isinteger(L, -1)) lit->any_integer = true;
    else lit->any_float = true;
    if (lit->any_boolean && (lit->any_integer || lit->any_float))
        mr_misuse(L, "tensor: %s is %s: booleans and numbers cannot be mixed", place(lit, depth),
                  lua_isboolean(L, -1) ? "a boolean among numbers" : "a number among booleans");
}

/* The table at the top of the stack is `depth` tables deep. */
static void check_table(lua_State *L, literal *lit, int depth) {
    int index = lua_gettop(L);
    if (depth == MR_MAX_DIMS)
        mr_misuse(L, "tensor: the tables are nested more than %d deep, or one is inside itself",
                  MR_MAX_DIMS);
    if (lit->ndim >= 0 && depth >= lit->ndim)
        mr_misuse(L, "tensor: %s is a table, but its neighbours are values", place(lit, depth));
    luaL_checkstack(L, 8, "tensor: nested too deep");
    int64_t size = (int64_t)lua_rawlen(L, index);
    check_list(L, lit, depth, index, size);
    check_size(L, lit, depth, size);
    if (size == 0 && lit->ndim < 0) lit->ndim = depth + 1;
    for (int64_t i = 1; i <= size; i++) {
        lit->at[depth] = i;
        mr_check_stop(L, lit->machine, i, "reading a table into a tensor");
        int type = lua_rawgeti(L, index, i);
        if (type == LUA_TTABLE) check_table(L, lit, depth + 1);
        else if (type == LUA_TNUMBER || type == LUA_TBOOLEAN) check_leaf(L, lit, depth + 1);
        else
            mr_misuse(L, "tensor: %s is %s, expected a number, a boolean or a table",
                      place(lit, depth + 1), mr_type_text(L, -1));
        lua_pop(L, 1);
    }
}

static mr_dtype dtype_of(const literal *lit) {
    if (lit->any_boolean) return MR_BOOL;
    return lit->any_integer && !lit->any_float ? MR_I64 : MR_F32;
}

/* Writes the value or table at the top of the stack, which was `depth` tables deep; returns where the
 * next one goes. Finalizers may have changed the tables since the check, so the checked shape is used. */
static char *store(lua_State *L, const literal *lit, int depth, mr_dtype dtype, char *to) {
    if (depth == lit->ndim && mr_is_scalar(L, -1)) {
        mr_dtype_store(dtype, to, mr_check_scalar(L, lua_gettop(L)));
        return to + mr_dtype_size(dtype);
    }
    if (depth == lit->ndim || lua_type(L, -1) != LUA_TTABLE)
        mr_misuse(L, "tensor: the tables changed while they were read");
    for (int64_t i = 1; i <= lit->shape[depth]; i++) {
        mr_check_stop(L, lit->machine, i, "reading a table into a tensor");
        lua_rawgeti(L, -1, i);
        to = store(L, lit, depth + 1, dtype, to);
        lua_pop(L, 1);
    }
    return to;
}

static void check_value(lua_State *L, literal *lit) {
    lua_pushvalue(L, 1);
    if (lua_type(L, 1) == LUA_TTABLE) {
        check_table(L, lit, 0);
    } else if (mr_is_scalar(L, 1)) {
        check_leaf(L, lit, 0);
    } else {
        if (mr_test(L, 1, &mr_kind_tensor))
            mr_misuse(
                L, "tensor: argument 1 is already a tensor: clone() copies it, to() converts it");
        mr_bad_argument(L, 1, "a table, a number or a boolean");
    }
    lua_pop(L, 1);
}

MR_FUNCTION(
    literal_tensor, "tensor",
    "mr.tensor(values: table|number|boolean [, {dtype: string, device: device|integer|string, "
    "pinned: boolean=false, name: string, stream: stream, requires_grad: boolean=false}]) -> "
    "tensor",
    "Makes a tensor with these values: nested tables of equal length at each level, or a single "
    "value. Integers give i64, numbers with a fraction (also 1.0) give f32, booleans give bool, "
    "unless `dtype` is given. If the tensor is on a device, the values are copied there and the "
    "host waits for the copy, as with copy_.") {
    mr_caller caller = mr_enter_as(L, "tensor");
    literal lit = {.machine = caller.machine, .ndim = -1};
    mr_new_options options;
    check_value(L, &lit);
    mr_check_new_options(L, lua_gettop(L) >= 2 ? 2 : 0, NULL, dtype_of(&lit), &options);
    bool on_device = options.placement.kind == MR_MEMORY_DEVICE;
    mr_new_options staging = options;
    if (on_device) staging.placement = (mr_placement){.kind = MR_MEMORY_PAGEABLE};
    staging.requires_grad =
        false; /* it may run the collector, for which the values must be there */
    mr_tensor *values = mr_push_empty(L, &caller, &staging, lit.ndim, lit.shape);
    lua_pushvalue(L, 1);
    store(L, &lit, 0, options.dtype, mr_tensor_data(values));
    lua_pop(L, 1);
    if (!on_device) {
        if (options.requires_grad) mr_gradient_require(L, -1);
        return 1;
    }
    mr_tensor *t = mr_push_empty(L, &caller, &options, lit.ndim, lit.shape);
    mr_status status = mr_copy(&caller, t, values, options.placement.stream, false);
    mr_let_go(L, -2);
    mr_finish_new(L, status);
    return 1;
}

static const mr_function *const functions[] = {&literal_tensor_function, NULL};

const mr_class mr_literal_class = {"mr", "Tensors from Lua tables.", functions, NULL, NULL};

void mr_open_literal(lua_State *L) {
    mr_table_open(L, &mr_literal_class);
}
