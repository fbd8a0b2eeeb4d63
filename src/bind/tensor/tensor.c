/* The class of tensors: free, record_stream, and the metamethods. The box is in tensor_box.c; properties,
 * views, indexing and copies have files of their own. */
#include "bind/explore.h"
#include "bind/open.h"
#include "bind/record.h"
#include "bind/nn/gradient.h"
#include "bind/ops/functional.h"
#include "bind/tensor/tensor.h"

/* --- methods: lifetime -------------------------------------------------------------------------- */

MR_FUNCTION(tensor_free, "free", "t:free([{stream: stream, sync: boolean=false}])",
            "Frees the memory of this tensor and all its views; any later use of them is an error. "
            "The free is in the order of the stream on which the tensor was allocated, or of "
            "`stream` (cudaFreeAsync). With sync=true it frees at once, like cudaFree. cudaFree "
            "does not wait here: it assumes that all work on the memory is done, so wait for that "
            "work first (R27). Freeing twice is an error.") {
    static const char *const known[] = {"stream", "sync", NULL};
    mr_caller caller = mr_enter(L);
    mr_tensor *t = mr_check_tensor(L, 1);
    mr_free_mode mode = MR_FREE_OWN_STREAM;
    mr_option_slots options = mr_check_options(L, 2, known);
    mr_stream *stream = mr_option_stream(L, &options, "stream");
    if (stream) mode = MR_FREE_ON_STREAM;
    if (mr_option_boolean(L, &options, "sync", false)) {
        if (stream) return mr_misuse(L, "free: expected stream= or sync=true, not both");
        mode = MR_FREE_SYNC;
    }
    mr_bind_explore_frees(L, t->storage);
    mr_raise(L, mr_storage_free(&caller, t->storage, mode, stream));
    return 0;
}

MR_FUNCTION(tensor_record_stream, "record_stream", "t:record_stream(s: stream) -> tensor",
            "Says that work on `s` uses the memory. When the tensor is freed, the memory is reused "
            "only after the work that was submitted to `s` before the free (R33). Without this "
            "call, memory that another stream still uses may be overwritten. Returns t.") {
    mr_caller caller = mr_enter(L);
    mr_tensor *t = mr_check_tensor(L, 1);
    mr_stream *stream = mr_check_stream(L, 2);
    mr_raise(L, mr_storage_record_stream_at(t->storage, stream, caller.where));
    lua_settop(L, 1);
    return 1;
}

MR_FUNCTION(tensor_gc, "__gc", "", "Drops the handle; the last one frees the memory.") {
    mr_set_context(L);
    mr_let_go(L, 1);
    return 0;
}

MR_FUNCTION(tensor_close, "__close", "local t <close> = ...",
            "At the end of the block, this variable no longer refers to the tensor. When no other "
            "reference to the memory is left, the memory is freed in stream order. After t:free(), "
            "the end of the block has no effect.") {
    mr_close_tensor(L, 1);
    return 0;
}

/* --- metamethods -------------------------------------------------------------------------------- */

/* Whether a tensor stands among the entries of t[{...}]. */
static bool has_tensor(lua_State *L, int index) {
    if (lua_type(L, index) != LUA_TTABLE) return false;
    bool found = false;
    for (int i = 1; !found && lua_rawgeti(L, index, i) != LUA_TNIL; i++) {
        found = lua_type(L, -1) == LUA_TUSERDATA && mr_test_tensor(L, -1);
        lua_pop(L, 1);
    }
    if (!found) lua_pop(L, 1); /* the nil */
    return found;
}

MR_FUNCTION(tensor_index, "__index", "t[i] -> tensor",
            "Returns a view; nothing is copied. t[i] is element or row i, from 1; a negative i "
            "counts from the end. For a 1-D tensor this is a 0-dim tensor; item() reads its value. "
            "t[{ {1, 3}, 2 }] has one entry for each dim. A number selects that index. {first, "
            "last [, step]} is a range that includes both ends. {i} keeps the dim, with size 1; {} "
            "keeps all. Dims without an entry are kept whole. ipairs(t) goes through the rows. A "
            "tensor as index makes a copy: t[index], of integers, has the rows that it names "
            "(index_select). t[mask], of bools, has the elements or rows where the mask is true "
            "(masked_select). The dims of the mask are the first ones of t; the host waits for the "
            "number. One of the entries of t[{...}] can be such a tensor, for its dim.") {
    int type = lua_type(L, 2);
    if (type == LUA_TSTRING) return mr_class_lookup(L);
    if (type == LUA_TUSERDATA && mr_test_tensor(L, 2)) return mr_functional_get_index(L);
    if (has_tensor(L, 2)) return mr_functional_call(L, "get_entries");
    if (type == LUA_TNUMBER && mr_tensor_ends_ipairs(L)) return 0;
    return mr_record(L, mr_tensor_get_index, "__index");
}

MR_FUNCTION(tensor_newindex, "__newindex", "t[i] = value",
            "Writes a number or a boolean to every element of t[i], or copies a tensor to it, as "
            "fill_ and copy_ do. t[mask] = value does it where the mask is true, and t[index] = "
            "value for the rows that a tensor of integers names. If it names a row twice, the "
            "value of that row is not defined.") {
    if (lua_type(L, 2) == LUA_TSTRING) return mr_gradient_set_field(L);
    if (mr_test_tensor(L, 2)) return mr_functional_set_index(L);
    if (has_tensor(L, 2)) return mr_functional_call(L, "set_entries");
    return mr_record(L, mr_tensor_set_index, "__newindex");
}

/* --- docs --------------------------------------------------------------------------------------- */

static const mr_function *const functions[] = {
    &tensor_free_function,
    &tensor_record_stream_function,
    &tensor_index_function,
    &tensor_newindex_function,
    &tensor_gc_function,
    &tensor_close_function,
    NULL,
};

const mr_class mr_tensor_class = {
    "tensor",
    "A typed, strided view of device or host memory. Shapes, dims and elements count from 1. `==` "
    "compares identity; mr.equal compares values.",
    functions,
    mr_tensor_facts,
    &mr_kind_tensor,
};

/* --- open --------------------------------------------------------------------------------------- */

void mr_open_tensor(lua_State *L) {
    mr_class_open(L, &mr_tensor_class);
    mr_class_open_index(L, &mr_tensor_class, tensor_index);
}
