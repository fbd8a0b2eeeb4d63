/* CUDA's own copies and fills, with CUDA's own synchrony, and the abstract operations with which a
 * program is sketched. */
#include <inttypes.h>
#include <stdlib.h>

#include "bind/tensor.h"

#define LONGEST_MS 1e9 /* eleven days: far from where nanoseconds overflow */

/* --- copies and fills --------------------------------------------------------------------------- */

static mr_stream *check_stream_option(lua_State *L, int arg) {
    static const char *const known[] = {"stream", NULL};
    return mr_options_check(L, arg, known) ? mr_option_stream(L, arg, "stream") : NULL;
}

MR_FUNCTION(
    forms_memcpy, "memcpy", "mr.memcpy(destination: tensor, source: tensor)",
    "cudaMemcpy, on the legacy default stream. The host waits until it is done; for a pageable "
    "source only until that is staged, and between device tensors not at all (R20, R21). Both "
    "contiguous, of equal bytes and dtype.") {
    mr_machine *machine = mr_enter(L);
    mr_tensor *destination = mr_check_tensor(L, 1), *source = mr_check_tensor(L, 2);
    mr_raise(L, mr_memcpy(machine, destination, source, NULL, true));
    return 0;
}

MR_FUNCTION(
    forms_memcpy_async, "memcpy_async",
    "mr.memcpy_async(destination: tensor, source: tensor [, {stream: stream}])",
    "cudaMemcpyAsync, on `stream` or the current one of the source's device (from the host: of the "
    "destination's). Returns at once if host memory on either side is pinned; with pageable memory "
    "a copy to the host waits (R22, R23). Both contiguous, of "
    "equal bytes and dtype.") {
    mr_machine *machine = mr_enter(L);
    mr_tensor *destination = mr_check_tensor(L, 1), *source = mr_check_tensor(L, 2);
    mr_raise(L, mr_memcpy(machine, destination, source, check_stream_option(L, 3), false));
    return 0;
}

static uint8_t check_byte(lua_State *L, int arg) {
    lua_Integer byte = mr_check_integer(L, arg);
    if (byte < 0 || byte > 255)
        mr_misuse(L, "memset: the byte is %" PRId64 ", expected 0 to 255", (int64_t)byte);
    return (uint8_t)byte;
}

MR_FUNCTION(
    forms_memset, "memset", "mr.memset(t: tensor, byte: integer)",
    "cudaMemset, on the legacy default stream: every byte becomes `byte` (0 to 255). The host does "
    "not wait, unless t is pinned host memory (R24). t must be contiguous.") {
    mr_machine *machine = mr_enter(L);
    mr_tensor *t = mr_check_tensor(L, 1);
    mr_raise(L, mr_memset(machine, t, check_byte(L, 2), NULL, true));
    return 0;
}

MR_FUNCTION(
    forms_memset_async, "memset_async",
    "mr.memset_async(t: tensor, byte: integer [, {stream: stream}])",
    "cudaMemsetAsync, on `stream` or the current one: every byte becomes `byte`; the host never "
    "waits (R24). t must be contiguous.") {
    mr_machine *machine = mr_enter(L);
    mr_tensor *t = mr_check_tensor(L, 1);
    uint8_t byte = check_byte(L, 2);
    mr_raise(L, mr_memset(machine, t, byte, check_stream_option(L, 3), false));
    return 0;
}

/* --- abstract operations ------------------------------------------------------------------------ */

static uint64_t nanoseconds(lua_State *L, const char *what, lua_Number ms) {
    if (ms != ms) mr_misuse(L, "%s: ms is not a number (nan), expected 0 or more", what);
    if (!(ms >= 0 && ms <= LONGEST_MS))
        mr_misuse(L, "%s: ms is %g, expected 0 or more, and at most %g", what, ms, LONGEST_MS);
    return (uint64_t)(ms * 1e6 + 0.5);
}

/* Pushes a list of our own with the tensors of the option, which is a list or a single one: nobody
 * else can take them out of it while they are used. */
static void push_list(lua_State *L, const char *name) {
    mr_push_option(L, 1, name);
    lua_newtable(L);
    if (mr_test(L, -2, &mr_tensor_class)) {
        lua_pushvalue(L, -2);
        lua_rawseti(L, -2, 1);
    } else if (lua_type(L, -2) == LUA_TTABLE) {
        lua_Integer count = (lua_Integer)lua_rawlen(L, -2);
        for (lua_Integer i = 1; i <= count; i++) {
            lua_rawgeti(L, -2, i);
            if (!mr_test(L, -1, &mr_tensor_class))
                mr_misuse(L, "option `%s`: entry %d is %s, expected a tensor", name, (int)i,
                          mr_type_text(L, -1));
            lua_rawseti(L, -2, i);
        }
    } else if (!lua_isnil(L, -2)) {
        mr_misuse(L, "option `%s`: expected a list of tensors, got %s", name, mr_type_text(L, -2));
    }
    lua_remove(L, -2);
}

/* The tensors of the list at the top, in an array of Lua's that is pushed. */
static mr_tensor **push_array(lua_State *L, int *out_count) {
    int list = lua_gettop(L), count = (int)lua_rawlen(L, list);
    mr_tensor **tensors = lua_newuserdatauv(L, (size_t)count * sizeof *tensors + 1, 0);
    for (int i = 0; i < count; i++) {
        lua_rawgeti(L, list, i + 1);
        tensors[i] = mr_check_tensor(L, lua_gettop(L));
        lua_pop(L, 1);
    }
    *out_count = count;
    return tensors;
}

MR_FUNCTION(
    forms_op, "op",
    "mr.op{name: string=\"op\", reads: tensor[], writes: tensor[], ms: number=0.1, stream: stream, "
    "blocks: integer=1}",
    "An abstract operation, to sketch a program with: takes `ms` milliseconds on the device, "
    "occupies `blocks` multiprocessors, and reads and writes exactly these tensors (views count as "
    "the bytes that they cover; pinned host tensors may be among them). Each element written "
    "becomes a fixed mix of what was read and of the name, so other orders give other values.") {
    static const char *const known[] = {"name", "reads", "writes", "ms", "stream", "blocks", NULL};
    mr_machine *machine = mr_enter(L);
    mr_abstract op = {.name = "op"};
    if (!mr_options_check(L, 1, known))
        return mr_misuse(L, "op: expected a table: mr.op{name=, reads={...}, writes={...}, ms=}");
    lua_settop(L, 1);
    const char *name = mr_option_name(L, 1, "name");
    if (name) op.name = name;
    op.duration_ns = nanoseconds(L, "op", mr_option_number(L, 1, "ms", 0.1));
    op.stream = mr_option_stream(L, 1, "stream");
    lua_Integer blocks = mr_option_integer(L, 1, "blocks", 1);
    if (blocks < 1 || blocks > INT32_MAX)
        return mr_misuse(L, "op: blocks is %" PRId64 ", expected 1 to %d", (int64_t)blocks,
                         INT32_MAX);
    op.blocks = (uint32_t)blocks;
    push_list(L, "reads");
    op.reads = push_array(L, &op.read_count);
    push_list(L, "writes");
    op.writes = push_array(L, &op.write_count);
    mr_raise(L, mr_abstract_op(machine, &op));
    return 0;
}

MR_FUNCTION(
    forms_spin, "spin", "mr.spin{ms: number, stream: stream}",
    "Keeps a stream (the current one if none is named) busy for that many milliseconds, and "
    "touches no memory: the way to make overlap and races visible. Also mr.spin(ms).") {
    static const char *const known[] = {"ms", "stream", NULL};
    mr_machine *machine = mr_enter(L);
    lua_Number ms;
    mr_stream *stream = NULL;
    if (lua_type(L, 1) == LUA_TNUMBER) {
        ms = lua_tonumber(L, 1);
        stream = check_stream_option(L, 2);
    } else {
        if (!mr_options_check(L, 1, known))
            return mr_misuse(L, "spin: expected mr.spin{ms=, stream=}");
        mr_push_option(L, 1, "ms");
        if (lua_isnil(L, -1)) return mr_misuse(L, "spin: how long? Expected mr.spin{ms=, stream=}");
        lua_pop(L, 1);
        ms = mr_option_number(L, 1, "ms", 0);
        stream = mr_option_stream(L, 1, "stream");
    }
    mr_raise(L, mr_spin(machine, stream, nanoseconds(L, "spin", ms)));
    return 0;
}

static const mr_function *const functions[] = {
    &forms_memcpy_function,
    &forms_memcpy_async_function,
    &forms_memset_function,
    &forms_memset_async_function,
    &forms_op_function,
    &forms_spin_function,
    NULL,
};

const mr_class mr_forms_class = {
    "mr",
    "CUDA's own forms, with CUDA's own synchrony (R20-R24), and abstract operations.",
    functions,
    NULL,
};

void mr_open_cuda_forms(lua_State *L, mr_machine *machine) {
    mr_table_open(L, machine, &mr_forms_class);
}
