/* CUDA's own copies and fills, which wait like CUDA's functions, and abstract operations for sketches of programs. */
#include <inttypes.h>
#include <stdio.h>

#include "bind/open.h"

#define LONGEST_MS 1e9 /* eleven days: far from where nanoseconds overflow */

/* --- copies and fills --------------------------------------------------------------------------- */

static mr_stream *check_stream_option(lua_State *L, int arg) {
    static const char *const known[] = {"stream", NULL};
    mr_option_slots options = mr_check_options(L, arg, known);
    return mr_option_stream(L, &options, "stream");
}

MR_FUNCTION(forms_memcpy, "memcpy", "mr.memcpy(destination: tensor, source: tensor)",
            "cudaMemcpy, on the legacy default stream. The host waits until the copy is done. From "
            "a pageable source it waits only until the source has been staged; between device "
            "tensors it does not wait (R20, R21). Both tensors must be contiguous and have the "
            "same dtype and number of bytes.") {
    mr_caller caller = mr_enter(L);
    mr_tensor *destination = mr_check_tensor(L, 1), *source = mr_check_tensor(L, 2);
    mr_raise(L, mr_memcpy(&caller, destination, source, NULL, true));
    return 0;
}

MR_FUNCTION(forms_memcpy_async, "memcpy_async",
            "mr.memcpy_async(destination: tensor, source: tensor [, {stream: stream}])",
            "cudaMemcpyAsync, on `stream` or on the current stream of the source's device (if the "
            "source is on the host: of the destination's device). Returns at once if the host "
            "memory is pinned. With pageable memory, a copy to the host waits (R22, R23). Both "
            "tensors must be contiguous and have the same dtype and number of bytes.") {
    mr_caller caller = mr_enter(L);
    mr_tensor *destination = mr_check_tensor(L, 1), *source = mr_check_tensor(L, 2);
    mr_raise(L, mr_memcpy(&caller, destination, source, check_stream_option(L, 3), false));
    return 0;
}

static uint8_t check_byte(lua_State *L, int arg) {
    lua_Integer byte = mr_check_integer(L, arg);
    if (byte < 0 || byte > 255)
        mr_misuse(L, "memset: the byte is %" PRId64 ", expected 0 to 255", (int64_t)byte);
    return (uint8_t)byte;
}

MR_FUNCTION(forms_memset, "memset", "mr.memset(t: tensor, byte: integer)",
            "cudaMemset, on the legacy default stream: sets every byte to `byte` (0 to 255). The "
            "host waits only if t is pinned host memory (R24). t must be contiguous.") {
    mr_caller caller = mr_enter(L);
    mr_tensor *t = mr_check_tensor(L, 1);
    mr_raise(L, mr_memset(&caller, t, check_byte(L, 2), NULL, true));
    return 0;
}

MR_FUNCTION(forms_memset_async, "memset_async",
            "mr.memset_async(t: tensor, byte: integer [, {stream: stream}])",
            "cudaMemsetAsync, on `stream` or on the current stream: sets every byte to `byte`. The "
            "host never waits (R24). t must be contiguous.") {
    mr_caller caller = mr_enter(L);
    mr_tensor *t = mr_check_tensor(L, 1);
    uint8_t byte = check_byte(L, 2);
    mr_raise(L, mr_memset(&caller, t, byte, check_stream_option(L, 3), false));
    return 0;
}

/* --- abstract operations ------------------------------------------------------------------------ */

static uint64_t nanoseconds(lua_State *L, const char *what, lua_Number ms) {
    if (ms != ms) mr_misuse(L, "%s: ms is not a number (nan), expected 0 or more", what);
    if (!(ms >= 0 && ms <= LONGEST_MS))
        mr_misuse(L, "%s: ms is %g, expected 0 or more, and at most %g", what, ms, LONGEST_MS);
    return (uint64_t)(ms * 1e6 + 0.5);
}

/* The tensors of the option, which is a list of them or a single one. */
static mr_tensor **check_accessed(lua_State *L, const mr_option_slots *options, const char *name,
                                  int *out_count) {
    char what[32];
    int at = mr_option_at(L, options, name);
    *out_count = 0;
    if (!at) return NULL;
    snprintf(what, sizeof what, "option `%s`", name);
    if (mr_test(L, at, &mr_kind_tensor)) { /* a list of one */
        lua_createtable(L, 1, 0);
        lua_pushvalue(L, at);
        lua_rawseti(L, -2, 1);
        at = lua_gettop(L);
    } else if (!lua_istable(L, at)) {
        mr_misuse(L, "%s: expected a list of tensors, got %s", what, mr_type_text(L, at));
    }
    return mr_check_tensors(L, at, what, out_count);
}

MR_FUNCTION(
    forms_op, "op",
    "mr.op{name: string=\"op\", reads: tensor[], writes: tensor[], ms: number=0.1, stream: stream, "
    "blocks: integer=1}",
    "Submits an abstract operation, to sketch a program. It takes `ms` milliseconds on the device, "
    "occupies `blocks` multiprocessors, and reads and writes exactly these tensors. A view counts "
    "as the bytes that it covers. Pinned host tensors are allowed. Each written element becomes a "
    "fixed mix of the values read and the name, so a different order gives different values.") {
    static const char *const known[] = {"name", "reads", "writes", "ms", "stream", "blocks", NULL};
    mr_caller caller = mr_enter(L);
    mr_abstract op = {0};
    mr_option_slots options = mr_check_options(L, 1, known);
    if (!options.first)
        return mr_misuse(L, "op: expected a table: mr.op{name=, reads={...}, writes={...}, ms=}");
    op.name = mr_option_name(L, &options, "name");
    op.duration_ns = nanoseconds(L, "op", mr_option_number(L, &options, "ms", 0.1));
    op.stream = mr_option_stream(L, &options, "stream");
    lua_Integer blocks = mr_option_integer(L, &options, "blocks", 1);
    if (blocks < 1 || blocks > INT32_MAX)
        return mr_misuse(L, "op: blocks is %" PRId64 ", expected 1 to %d", (int64_t)blocks,
                         INT32_MAX);
    op.blocks = (uint32_t)blocks;
    op.reads = check_accessed(L, &options, "reads", &op.read_count);
    op.writes = check_accessed(L, &options, "writes", &op.write_count);
    mr_raise(L, mr_abstract_op(&caller, &op));
    return 0;
}

MR_FUNCTION(
    forms_spin, "spin", "mr.spin{ms: number, stream: stream}",
    "Keeps a stream (default: the current stream) busy for this many milliseconds, without any "
    "memory access. Use it to make overlap and races visible. mr.spin(ms) is also allowed.") {
    static const char *const known[] = {"ms", "stream", NULL};
    mr_caller caller = mr_enter(L);
    lua_Number ms;
    mr_stream *stream = NULL;
    if (lua_type(L, 1) == LUA_TNUMBER) {
        ms = lua_tonumber(L, 1);
        stream = check_stream_option(L, 2);
    } else {
        mr_option_slots options = mr_check_options(L, 1, known);
        if (!options.first) return mr_misuse(L, "spin: expected mr.spin{ms=, stream=}");
        if (!mr_option_at(L, &options, "ms"))
            return mr_misuse(L, "spin: the duration is missing: expected mr.spin{ms=, stream=}");
        ms = mr_option_number(L, &options, "ms", 0);
        stream = mr_option_stream(L, &options, "stream");
    }
    mr_raise(L, mr_spin(&caller, stream, nanoseconds(L, "spin", ms)));
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
    "CUDA's own copy functions, which wait as CUDA's functions do (R20-R24), and abstract "
    "operations.",
    functions,
    NULL,
    NULL,
};

void mr_open_cuda_forms(lua_State *L) {
    mr_table_open(L, &mr_forms_class);
}
