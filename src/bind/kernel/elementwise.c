/* mr.elementwise: lua/millrace/elementwise.lua does the work. This file has the parts that Lua cannot do: the
 * script's line, an error at that line, and whether tensors share memory. */
#include <string.h>

#include "bind/internal.h"
#include "bind/open.h"

/* its address is the registry key of the function that the Lua module returned */
static const char maker;

/* misuse(text): raises at the script's line. */
static int misuse(lua_State *L) {
    return mr_misuse(L, "%s", luaL_checkstring(L, 1));
}

/* where() -> "race.lua:3", or nil */
static int where(lua_State *L) {
    mr_caller caller = mr_enter(L);
    mr_push_site(L, caller.where);
    return 1;
}

/* epoch() -> changes with mr.reset(), after which modules must be loaded again */
static int epoch(lua_State *L) {
    lua_pushinteger(L, mr_machine_of(L)->epoch);
    return 1;
}

static bool same_view(const mr_tensor *a, const mr_tensor *b) {
    if (a->storage != b->storage || a->offset != b->offset || a->ndim != b->ndim) return false;
    size_t size = (size_t)a->ndim * sizeof *a->shape;
    return memcmp(a->shape, b->shape, size) == 0 && memcmp(a->stride, b->stride, size) == 0;
}

/* conflict(output, other) -> whether a thread may write what another one uses. An element that is read and written by
 * the same thread is not a conflict. */
static int conflict(lua_State *L) {
    const mr_tensor *output = mr_check_tensor(L, 1), *other = mr_check_tensor(L, 2);
    lua_pushboolean(L, !same_view(output, other) && mr_tensor_may_overlap(output, other));
    return 1;
}

/* self_overlaps(output) -> whether two of its elements are at one address */
static int self_overlaps(lua_State *L) {
    lua_pushboolean(L, mr_tensor_self_overlaps(mr_check_tensor(L, 1)));
    return 1;
}

static const luaL_Reg tools[] = {{"misuse", misuse},
                                 {"where", where},
                                 {"epoch", epoch},
                                 {"conflict", conflict},
                                 {"self_overlaps", self_overlaps},
                                 {NULL, NULL}};

/* Loads the Lua module with these tools, and pushes the function that makes elementwise objects. */
static void push_maker(lua_State *L) {
    mr_push_embedded(L, &maker, "millrace.elementwise", tools);
}

MR_FUNCTION(
    elementwise_new, "elementwise",
    "mr.elementwise(signature: string, statement: string [, name: string|{name: string, options: "
    "string[], derivative: table}]) -> f: function",
    "Makes a function that computes each element with a statement of CUDA C: "
    "mr.elementwise(\"float a, float x, float y -> float z\", \"z = a * x + y\"). Call it as f(a, "
    "x, y) for new tensors, or with {out=z} as the last argument; several outputs are listed: "
    "{out={z, w}}. Inputs are tensors, which broadcast, or numbers. Types are float, double, "
    "__half, __nv_bfloat16, int, long long, unsigned char and bool. In the statement, inputs are "
    "values (halves as float) and outputs are variables. `i` is the position of the element in "
    "row-major order, from 0, and `n` the number of elements. {stream=s} says where it runs. A "
    "kernel is compiled at the first call that needs it. An input that requires gradients is an "
    "error, unless derivative={x = \"2 * x * g\"} has an expression for it: of the inputs, the "
    "output and its gradient `g`. f:source() returns the CUDA C of the kernel for contiguous "
    "tensors of one shape.") {
    mr_set_context(L);
    lua_settop(L, 3);
    push_maker(L);
    lua_insert(L, 1);
    lua_call(L, 3, 1);
    return 1;
}

static const mr_function *const functions[] = {&elementwise_new_function, NULL};
const mr_class mr_elementwise_class = {"mr", "Kernels of one statement.", functions, NULL, NULL};

void mr_open_elementwise(lua_State *L) {
    mr_table_open(L, &mr_elementwise_class);
}
