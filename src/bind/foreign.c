/* Names of PyTorch and CUDA, and what to write instead: see foreign.h. */
#include "bind/foreign.h"
#include "bind/nearest.h"
#include "bind/open.h"

#include <string.h>

#define NOT_HERE "not in this version"
#define NO_FILES "--sandbox has no files"

static const struct {
    const char *owner, *name, *advice;
} foreign[] = {
    {"tensor", "float", "write t:to(\"f32\")"},
    {"tensor", "double", "write t:to(\"f64\")"},
    {"tensor", "half", "write t:to(\"f16\")"},
    {"tensor", "bfloat16", "write t:to(\"bf16\")"},
    {"tensor", "int", "write t:to(\"i32\")"},
    {"tensor", "long", "write t:to(\"i64\")"},
    {"tensor", "byte", "write t:to(\"u8\")"},
    {"tensor", "bool", "write t:to(\"bool\")"},
    {"tensor", "type", "write t.dtype, or t:to(\"f64\")"},
    {"tensor", "dim", "write t.ndim"},
    {"tensor", "numpy", "write t:totable()"},
    {"tensor", "tolist", "write t:totable()"},
    {"tensor", "T", "write t:t()"},
    {"tensor", "is_cuda", "write t.device ~= \"cpu\""},
    {"tensor", "is_cpu", "write t.device == \"cpu\""},
    {"tensor", "is_pinned", "write t.pinned"},
    {"tensor", "is_contiguous", "write t.contiguous"},
    {"tensor", "nelement", "write t.numel"},
    {"tensor", "element_size", "write t.itemsize"},
    {"tensor", "data", "write t:detach()"},
    {"tensor", "repeat", "`repeat` is a word of Lua: write t:tile(...)"},
    {"tensor", "set_requires_grad", "write t:requires_grad_()"},
    {"tensor", "new_zeros", "write mr.zeros_like(t) or mr.zeros(...)"},
    {"tensor", "data", "write t:detach()"},
    {"tensor", "diagonal", "write t:diag()"},
    {"tensor", "trace", "write t:diag():sum()"},
    {"tensor", "clip", "write t:clamp(low, high)"},
    {"stream", "enter", "write mr.with(s, fn) or s:run(fn)"},
    {"stream", "cuda_stream", "write s.handle"},
    {"event", "enable_timing", "write mr.event{timing=true}"},
    {"event", "destroy", "write e:close()"},
    {"stream", "destroy", "write s:close()"},
    {"mr", "enable_timing", "write mr.event{timing=true}"},
    {"mr", "ExternalStream", "write mr.stream{handle=number}"},
    {"mr", "to_dlpack", "write t:dlpack()"},
    {"tensor", "to_dlpack", "write t:dlpack()"},
    {"tensor", "__dlpack__", "write t:dlpack()"},
    {"event", "from_ipc_handle", "write mr.event{ipc=handle}"},
    {"tensor", "share_memory_", "make the tensor with ipc=true"},
    {"mr", "stream_sync", "write s:synchronize()"},
    {"mr", "grad", "write mr.autograd.grad(outputs, inputs)"},
    {"mr", "clip", "write mr.clamp(x, low, high)"},
    {"mr", "optimizer", "optimisers are in mr.optim: mr.optim.Adam(module:parameters())"},
    {"mr", "Module", "write mr.nn.Module.class(\"Net\")"},
    {"mr.nn", "functional", "functions are methods of tensors: x:relu(), x:cross_entropy(classes)"},
    {"mr", "svd", NOT_HERE},
    {"mr.nn", "RNN", NOT_HERE},
    {"mr.nn", "Transformer", NOT_HERE},
    {"mr.nn", "MultiheadAttention", NOT_HERE},
    {"mr.nn", "parallel", NOT_HERE},
    {"mr.data", "DataLoader", "write mr.data.batches(tensors, {batch_size=, shuffle=true})"},
    {"mr.data", "Dataset", "mr.data.batches takes host tensors"},
    {"mr.data", "TensorDataset", "mr.data.batches takes host tensors"},
    {"mr.optim", "optimizer", "write mr.optim.Adam(module:parameters(), {lr=0.001})"},
    {"mr", "is_available", "write mr.device_count() > 0"},
    {"mr", "Stream", "write mr.stream()"},
    {"mr", "Event", "write mr.event()"},
    {"mr", "Tensor", "write mr.tensor{...}"},
    {"mr", "from_numpy", "write mr.tensor{...}"},
    {"mr", "cuda", "its functions are in mr: mr.synchronize, mr.stream, mr.event, mr.memory"},
    {"mr", "float32", "dtypes are strings: \"f32\""},
    {"mr", "float64", "dtypes are strings: \"f64\""},
    {"mr", "int32", "dtypes are strings: \"i32\""},
    {"mr", "int64", "dtypes are strings: \"i64\""},
    {"mr", "uint8", "dtypes are strings: \"u8\""},
    {"mr", "float16", "dtypes are strings: \"f16\""},
    {"mr", "bfloat16", "dtypes are strings: \"bf16\""},
    {"mr", "save", NO_FILES}, /* removed there, else found */
    {"mr", "load", NO_FILES},
    {"mr", "from_ipc_handle", "--sandbox has no other processes"},
    {"mr", "RawKernel", "write mr.kernel(source, name)"},
    {"mr", "RawModule", "write mr.module(source)"},
    {"mr", "ElementwiseKernel", "write mr.elementwise(\"float x -> float y\", \"y = 2 * x\")"},
    {"mr", "cudaLaunchKernel", "write k[{grid, block}](...), with k from mr.kernel"},
    {"mr", "cudaMemcpyToSymbol", "write m:global(name):copy_(t), with m from mr.module"},
    {"kernel", "grid", "write k[{grid, block}](...)"},
    {"mr", "cudaMemcpy", "write mr.memcpy(dst, src)"},
    {"mr", "cudaMemcpyAsync", "write mr.memcpy_async(dst, src)"},
    {"mr", "cudaStreamCreate", "write mr.stream()"},
    {"mr", "cudaEventCreate", "write mr.event()"},
    {"mr", "cudaDeviceSynchronize", "write mr.synchronize()"},
};

const char *mr_foreign_advice(const char *owner, const char *name) {
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if ((!owner || strcmp(foreign[i].owner, owner) == 0) && strcmp(foreign[i].name, name) == 0)
            return foreign[i].advice;
    return NULL;
}

/* --- tables of functions -------------------------------------------------------------------------------- */

/* Tables that only some backends have: scripts test `if mr.machine then`. */
static bool is_optional(const char *name) {
    return strcmp(name, "machine") == 0;
}

/* Upvalues: the module, and the name of the table. */
static int no_such_name(lua_State *L) {
    if (lua_type(L, 2) != LUA_TSTRING) return 0;
    const char *owner = lua_tostring(L, lua_upvalueindex(2)), *name = lua_tostring(L, 2);
    if (is_optional(name)) return 0;
    const char *advice = mr_foreign_advice(owner, name);
    if (advice) return mr_misuse(L, "there is no `%s.%s`: %s", owner, name, advice);
    mr_nearest nearest;
    mr_nearest_begin(&nearest, name);
    for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1))
        if (lua_type(L, -2) == LUA_TSTRING) mr_nearest_offer(&nearest, lua_tostring(L, -2));
    const char *meant = mr_nearest_found(&nearest);
    if (meant)
        return mr_misuse(L, "there is no `%s.%s`: did you mean `%s.%s`?", owner, name, owner,
                         meant);
    return mr_misuse(L, "there is no `%s.%s`: help(\"%s\") lists all names", owner, name, owner);
}

void mr_refuse_missing(lua_State *L, const char *owner) {
    lua_createtable(L, 0, 1);
    mr_push_module(L);
    lua_pushstring(L, owner);
    lua_pushcclosure(L, no_such_name, 2);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
}

void mr_open_foreign(lua_State *L) {
    mr_refuse_missing(L, "mr");
}
