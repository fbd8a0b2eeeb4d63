/* Names of PyTorch and CUDA, and what to write instead: see foreign.h. */
#include "bind/foreign.h"
#include "bind/nearest.h"
#include "bind/open.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#define NOT_HERE "not in this version"
#define NO_FILES "--sandbox has no files"

static const mr_foreign foreign[] = {
    /* functions of the module */
    {"mr", "Stream", "write mr.stream()"},
    {"mr", "Event", "write mr.event()"},
    {"mr", "Tensor", "write mr.tensor{...}"},
    {"mr", "as_tensor", "write mr.tensor{...}"},
    {"mr", "from_numpy", "write mr.tensor{...}"},
    {"mr", "enable_timing", "write mr.event{timing=true}"},
    {"mr", "ExternalStream", "write mr.stream{handle=number}"},
    {"mr", "to_dlpack", "write t:dlpack()"},
    {"mr", "stream_sync", "write s:synchronize()"},
    {"mr", "torch", "mr is torch here: mr.zeros, mr.stream, mr.nn"},
    {"mr", "cuda", "its functions are in mr: mr.synchronize, mr.stream, mr.event, mr.memory"},
    {"mr", "is_available", "write mr.device_count() > 0"},
    {"mr", "get_device_name", "write mr.device(0).name"},
    {"mr", "get_device_properties", "write mr.device(0), which has them as fields"},
    {"mr", "get_device_capability", "write mr.device(0).compute_capability"},
    {"mr", "can_device_access_peer", "write mr.device(0):can_access_peer(1)"},
    {"mr", "memory_allocated", "write mr.memory.allocated()"},
    {"mr", "max_memory_allocated", "write mr.memory.max_allocated()"},
    {"mr", "memory_reserved", "write mr.memory.reserved()"},
    {"mr", "reset_peak_memory_stats", "write mr.memory.reset_peak()"},
    {"mr", "memory_stats", "write mr.memory.stats()"},
    {"mr", "memory_summary", "write mr.print(mr.memory.stats())"},
    {"mr", "mem_get_info", "write mr.memory.stats()"},
    {"mr", "empty_cache", "write mr.memory.empty_cache()"},
    {"mr", "CUDAGraph", "write g = mr.graph(fn), then g:launch()"},
    {"mr", "cuda_graph", "write g = mr.graph(fn), then g:launch()"},
    {"mr", "make_graphed_callables", "write mr.graph.auto(fn)"},
    {"mr", "graph_pool_handle", "write mr.graph.pool()"},
    {"mr", "is_current_stream_capturing", "write mr.current_stream().is_capturing"},
    {"mr", "set_sync_debug_mode", "write mr.sync_debug(\"warn\")"},
    {"mr", "manual_seed_all", "write mr.manual_seed(n)"},
    {"mr", "profiler", "write tr = mr.timeline(fn), then tr:print()"},
    {"mr", "profile", "write tr = mr.timeline(fn), then tr:print()"},
    {"mr", "nvtx", "write mr.timeline(fn): its rows have names and lines by themselves"},
    {"mr", "amp", "not in this version: convert with x:to(\"bf16\")"},
    {"mr", "autocast", "not in this version: convert with x:to(\"bf16\")"},
    {"mr", "GradScaler", NOT_HERE},
    {"mr", "inference_mode", "write mr.no_grad(fn)"},
    {"mr", "set_grad_enabled", "write mr.no_grad(fn) or mr.enable_grad(fn)"},
    {"mr", "grad", "write mr.autograd.grad(outputs, inputs)"},
    {"mr", "compile", NOT_HERE},
    {"mr", "clip", "write mr.clamp(x, low, high)"},
    {"mr", "concat", "write mr.cat(list, dim)"},
    {"mr", "svd", NOT_HERE},
    {"mr", "optimizer", "optimisers are in mr.optim: mr.optim.Adam(module:parameters())"},
    {"mr", "Module", "write mr.nn.Module.class(\"Net\")"},
    {"mr", "utils", "write mr.data.batches(...); mr.nn.utils has clip_grad_norm_"},
    {"mr", "distributed", "write mr.dist"},
    {"mr", "multiprocessing", "write mr.dist.spawn(n, fn)"},
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
    /* CUDA's functions */
    {"mr", "cudaSetDevice", "write mr.set_device(0), or {device=0} where something is made"},
    {"mr", "cudaGetDevice", "write mr.current_device()"},
    {"mr", "cudaGetDeviceCount", "write mr.device_count()"},
    {"mr", "cudaGetDeviceProperties", "write mr.device(0), which has them as fields"},
    {"mr", "cudaDeviceSynchronize", "write mr.synchronize()"},
    {"mr", "cudaDeviceCanAccessPeer", "write mr.device(0):can_access_peer(1)"},
    {"mr", "cudaDeviceEnablePeerAccess", "write mr.device(0):enable_peer_access(1)"},
    {"mr", "cudaStreamCreate", "write mr.stream{nonblocking=false}; mr.stream() is non-blocking"},
    {"mr", "cudaStreamCreateWithFlags", "write mr.stream(), which is non-blocking by default"},
    {"mr", "cudaStreamCreateWithPriority", "write mr.stream{priority=-1}"},
    {"mr", "cudaStreamNonBlocking", "write mr.stream(), which is non-blocking by default"},
    {"mr", "cudaStreamLegacy", "write mr.default_stream()"},
    {"mr", "cudaStreamPerThread", "write mr.per_thread_stream()"},
    {"mr", "cudaStreamDestroy", "write s:close()"},
    {"mr", "cudaStreamSynchronize", "write s:synchronize()"},
    {"mr", "cudaStreamQuery", "write s:query()"},
    {"mr", "cudaStreamWaitEvent", "write s:wait_event(e)"},
    {"mr", "cudaStreamAddCallback", "write s:host_func(fn)"},
    {"mr", "cudaLaunchHostFunc", "write s:host_func(fn)"},
    {"mr", "cudaEventCreate", "write mr.event()"},
    {"mr", "cudaEventCreateWithFlags", "write mr.event{timing=true} or mr.event{blocking=true}"},
    {"mr", "cudaEventRecord", "write s:record_event(e) or e:record(s)"},
    {"mr", "cudaEventSynchronize", "write e:synchronize()"},
    {"mr", "cudaEventQuery", "write e:query()"},
    {"mr", "cudaEventElapsedTime", "write start:elapsed_time(stop), both from mr.event{timing=true}"},
    {"mr", "cudaEventDestroy", "write e:close()"},
    {"mr", "cudaMalloc", "write mr.empty(n)"},
    {"mr", "cudaMallocAsync", "write mr.empty(n), inside s:run(fn) for stream s"},
    {"mr", "cudaFree", "write t:free(); the collector does it, too"},
    {"mr", "cudaFreeAsync", "write t:free(); the collector does it, too"},
    {"mr", "cudaMallocHost", "write mr.empty(n, {device=\"cpu\", pinned=true})"},
    {"mr", "cudaHostAlloc", "write mr.empty(n, {device=\"cpu\", pinned=true})"},
    {"mr", "cudaFreeHost", "write t:free(); the collector does it, too"},
    {"mr", "cudaMemcpy", "write mr.memcpy(dst, src)"},
    {"mr", "cudaMemcpyAsync", "write mr.memcpy_async(dst, src)"},
    {"mr", "cudaMemset", "write mr.memset(t, byte)"},
    {"mr", "cudaMemsetAsync", "write mr.memset_async(t, byte)"},
    {"mr", "cudaMemcpyToSymbol", "write m:global(name):copy_(t), with m from mr.module"},
    {"mr", "cudaMemGetInfo", "write mr.memory.stats()"},
    {"mr", "cudaLaunchKernel", "write k[{grid, block}](...), with k from mr.kernel"},
    {"mr", "cudaGetLastError", "errors are raised as Lua errors: pcall catches them"},
    {"mr", "cudaStreamBeginCapture", "write g = mr.graph(fn), or mr.graph.begin(s)"},
    {"mr", "cudaStreamEndCapture", "write g = mr.graph.finish(s), after mr.graph.begin(s)"},
    {"mr", "cudaGraphInstantiate", "write g:instantiate(); g:launch() does it, too"},
    {"mr", "cudaGraphLaunch", "write g:launch()"},
    {"mr", "cudaProfilerStart", "write mr.trace.start()"},
    {"mr", "cudaProfilerStop", "write mr.trace.stop()"},
    {"mr", "cudaIpcGetMemHandle", "write t:ipc_handle()"},
    /* objects */
    {"stream", "enter", "write mr.with(s, fn) or s:run(fn)"},
    {"stream", "cuda_stream", "write s.handle"},
    {"stream", "destroy", "write s:close()"},
    {"stream", "record", "write e = s:record_event(), or e:record(s)"},
    {"stream", "launch_host_func", "write s:host_func(fn)"},
    {"stream", "add_callback", "write s:host_func(fn)"},
    {"stream", "sync", "write s:synchronize()"},
    {"event", "enable_timing", "write mr.event{timing=true}"},
    {"event", "destroy", "write e:close()"},
    {"event", "from_ipc_handle", "write mr.event{ipc=handle}"},
    {"event", "sync", "write e:synchronize()"},
    {"device", "multi_processor_count", "write d.sm_count"},
    {"device", "major", "write d.compute_capability"},
    {"device", "minor", "write d.compute_capability"},
    {"graph", "replay", "write g:launch()"},
    {"graph", "reset", "write g:close()"},
    {"graph", "debug_dump", "write g:save(\"g.dot\")"},
    {"graph", "capture_begin", "write g = mr.graph(fn), or mr.graph.begin(s)"},
    {"graph", "capture_end", "write g = mr.graph.finish(s)"},
    {"mr.graph", "replay", "write g = mr.graph(fn), then g:launch()"},
    {"kernel", "grid", "write k[{grid, block}](...)"},
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
    {"tensor", "register_hook",
     "not in this version; a parameter has t:register_post_accumulate_grad_hook(fn)"},
    {"tensor", "new_zeros", "write mr.zeros_like(t) or mr.zeros(...)"},
    {"tensor", "diagonal", "write t:diag()"},
    {"tensor", "trace", "write t:diag():sum()"},
    {"tensor", "clip", "write t:clamp(low, high)"},
    {"tensor", "to_dlpack", "write t:dlpack()"},
    {"tensor", "__dlpack__", "write t:dlpack()"},
    {"tensor", "share_memory_", "make the tensor with ipc=true"},
    /* networks */
    {"mr.nn", "functional", "functions are methods of tensors: x:relu(), x:cross_entropy(classes)"},
    {"mr.nn", "DataParallel", "write mr.nn.parallel.DataParallel(module)"},
    {"mr.nn", "DistributedDataParallel", "write mr.nn.parallel.DistributedDataParallel(module)"},
    {"mr.nn", "RNN", NOT_HERE},
    {"mr.nn", "Transformer", NOT_HERE},
    {"mr.nn", "MultiheadAttention", NOT_HERE},
    {"mr.nn.Module", "register_forward_hook",
     "not in this version: write a class whose forward calls this module"},
    {"mr.nn.Module", "register_forward_pre_hook",
     "not in this version: write a class whose forward calls this module"},
    {"mr.nn.Module", "register_full_backward_hook",
     "not in this version; a parameter has t:register_post_accumulate_grad_hook(fn)"},
    {"mr.nn.Module", "register_parameter", "assign it: m.weight = mr.nn.Parameter(t)"},
    {"mr.nn.Module", "add_module", "assign it: m.layer = mr.nn.Linear(2, 2)"},
    {"mr.nn.Module", "half", "write m:to(\"f16\")"},
    {"mr.nn.Module", "float", "write m:to(\"f32\")"},
    {"mr.nn.Module", "double", "write m:to(\"f64\")"},
    {"mr.nn.Module", "__init__", "write function Net:init(...)"},
    {"mr.nn.Module", "__call__", "write function Net:forward(x), and call net(x)"},
    {"mr.data", "DataLoader", "write mr.data.batches(tensors, {batch_size=, shuffle=true})"},
    {"mr.data", "Dataset", "mr.data.batches takes host tensors"},
    {"mr.data", "TensorDataset", "mr.data.batches takes host tensors"},
    {"mr.optim", "optimizer", "write mr.optim.Adam(module:parameters(), {lr=0.001})"},
    /* several devices */
    {"mr.dist", "init_process_group", "write mr.dist.init()"},
    {"mr.dist", "destroy_process_group", "write mr.dist.destroy()"},
    {"mr.dist", "is_initialized", "ranks are joined from the start: write mr.dist.world_size() > 1"},
    {"mr.dist", "get_rank", "write mr.dist.rank()"},
    {"mr.dist", "get_world_size", "write mr.dist.world_size()"},
    {"mr.dist", "get_backend", "write mr.backend"},
    {"mr.dist", "ReduceOp", "write {op=\"sum\"}, or \"prod\", \"min\", \"max\", \"avg\""},
    {"mr.dist", "isend", "write mr.dist.send(t, peer, {async=true})"},
    {"mr.dist", "irecv", "write mr.dist.recv(t, peer, {async=true})"},
    {"mr.dist", "P2POp", "write the sends and receives in mr.nccl.group(fn)"},
    {"mr.dist", "batch_isend_irecv", "write the sends and receives in mr.nccl.group(fn)"},
    {"mr.dist", "all_gather_into_tensor", "write mr.dist.all_gather(out, t)"},
    {"mr.dist", "reduce_scatter_tensor", "write mr.dist.reduce_scatter(out, t)"},
    {"mr.dist", "all_to_all_single", "write mr.dist.all_to_all(out, t)"},
    {"mr.dist", "gather", "write mr.dist.all_gather(out, t)"},
    {"mr.dist", "scatter", "write mr.dist.broadcast(t, root), and take a part of t"},
    {"mr.dist", "all_gather_object", "tensors are sent: write mr.dist.all_gather(out, t)"},
    {"mr.dist", "broadcast_object_list", "tensors are sent: write mr.dist.broadcast(t, root)"},
    {"mr.nccl", "ncclAllReduce", "write c:all_reduce(t), with c from mr.nccl.comms"},
    {"mr.nccl", "ncclCommInitAll", "write mr.nccl.comms({0, 1})"},
    {"mr.nccl", "ncclGroupStart", "write mr.nccl.group(fn)"},
    /* words that help is asked for */
    {"word", "torch", "mr is torch here: help(\"from_pytorch\") lists its names"},
    {"word", "pytorch", "mr is torch here: help(\"from_pytorch\") lists its names"},
    {"word", "cuda", "mr has its functions: help(\"from_pytorch\") lists its names"},
    {"word", "ddp", "write mr.nn.parallel.DistributedDataParallel(module); help(\"distributed.md\")"},
    {"word", "distributed data parallel",
     "write mr.nn.parallel.DistributedDataParallel(module); help(\"distributed.md\")"},
    {"word", "torch.distributed", "it is mr.dist here: help(\"mr.dist\"), help(\"distributed.md\")"},
    {"word", "nccl", "help(\"mr.nccl\") and help(\"distributed.md\") are about it"},
    {"word", "mpi", "help(\"distributed.md\") is about it"},
    {"word", "cuda graph", "it is mr.graph here: help(\"mr.graph\"), help(\"graphs.md\")"},
    {"word", "cuda graphs", "it is mr.graph here: help(\"mr.graph\"), help(\"graphs.md\")"},
    {"word", "cuda stream", "write mr.stream(): help(\"stream\")"},
    {"word", "cuda event", "write mr.event(): help(\"event\")"},
    {"word", "pinned memory", "write mr.empty(n, {device=\"cpu\", pinned=true})"},
    {"word", "nsight", "write mr.timeline(fn): help(\"timelines.md\")"},
    {"word", "compute-sanitizer", "the checker is --check: help(\"hazards.md\")"},
    {"word", "racecheck", "the checker is --check: help(\"hazards.md\")"},
};

/* Options of PyTorch and CUDA: the option that a function here has in its place, or how the same is said. */
static const struct {
    const char *name, *here, *advice;
} options[] = {
    {"pin_memory", "pinned", NULL},
    {"enable_timing", "timing", NULL},
    {"async_op", "async", NULL},
    {"non_blocking", "nonblocking", NULL},
    {"nonblocking", "non_blocking", NULL},
    {"blocking", "nonblocking",
     "streams are non-blocking, as in PyTorch; nonblocking=false makes one that is not"},
    {"device_ids", "devices", NULL},
    {"device_ids", NULL, "the module stays where it is; move it by m:to(device) first"},
    {"output_device", NULL, "the module stays where it is; move it by m:to(device) first"},
    {"process_group", "group", NULL},
    {"bucket_cap_mb", "bucket_mb", NULL},
    {"find_unused_parameters", NULL, "leave it out"},
    {"gradient_as_bucket_view", NULL, "leave it out"},
    {"static_graph", NULL, "leave it out"},
    {"backend", NULL, "leave it out: mr.backend says what is there"},
    {"init_method", NULL, "ranks are started by --ranks N, mr.dist.spawn(n, fn) or mpirun"},
    {"world_size", NULL, "ranks are started by --ranks N, mr.dist.spawn(n, fn) or mpirun"},
    {"rank", NULL, "ranks are started by --ranks N, mr.dist.spawn(n, fn) or mpirun"},
    {"capture_error_mode", "mode", NULL},
    {"learning_rate", "lr", NULL},
    {"num_workers", "depth", "one thread prepares the batches; `depth` says how many are ready"},
    {"generator", "seed", NULL},
    {"generator", NULL, "mr.manual_seed(n) sets the seed"},
    {"size_average", "reduction", NULL},
    {"block_dim", "block", NULL},
    {"threads", "block", NULL},
    {"grid_dim", "grid", NULL},
    {"blocks", "grid", NULL},
    {"shared_mem", "shared", NULL},
    {"shared_mem_bytes", "shared", NULL},
    {"memory_format", NULL, "leave it out: elements are stored row by row"},
    {"layout", NULL, "leave it out: elements are stored row by row"},
};

static const int foreign_count = (int)(sizeof foreign / sizeof *foreign);

bool mr_foreign_at(int i, mr_foreign *out) {
    if (i >= foreign_count) return false;
    *out = foreign[i];
    return true;
}

const char *mr_foreign_advice(const char *owner, const char *name) {
    for (int i = 0; i < foreign_count; i++)
        if ((!owner || strcmp(foreign[i].owner, owner) == 0) && strcmp(foreign[i].name, name) == 0)
            return foreign[i].advice;
    return NULL;
}

static bool is_among(const char *name, const char *const *names) {
    while (*names && strcmp(*names, name) != 0) names++;
    return *names != NULL;
}

const char *mr_foreign_option(const char *name, const char *const *known, const char **out_here) {
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (strcmp(options[i].name, name) != 0) continue;
        *out_here = options[i].here;
        if (!options[i].here || is_among(options[i].here, known))
            return options[i].advice ? options[i].advice : "";
    }
    return NULL;
}

/* --- for Lua modules of ours ---------------------------------------------------------------------------- */

#define MOST_OPTIONS 32

/* no_option(key, names) -> the text for an option that is none of the names, which stand in one string: "op group" */
static int no_option(lua_State *L) {
    char names[512];
    const char *known[MOST_OPTIONS + 1], *key = luaL_tolstring(L, 1, NULL);
    int count = 0;
    snprintf(names, sizeof names, "%s", luaL_checkstring(L, 2));
    for (char *next = names; *next && count < MOST_OPTIONS;) {
        size_t length = strcspn(next, " ");
        known[count++] = next;
        next += length;
        if (*next) *next++ = '\0';
    }
    known[count] = NULL;
    mr_push_no_option(L, key, known);
    return 1;
}

/* advice_of(owner) -> what to write instead of names of PyTorch, by name; owner nil: of all */
static int advice_of(lua_State *L) {
    const char *owner = luaL_optstring(L, 1, NULL);
    lua_newtable(L);
    for (int i = foreign_count - 1; i >= 0; i--) { /* of several with one name the first one stays */
        mr_foreign row = foreign[i];
        if (owner && strcmp(row.owner, owner) != 0) continue;
        lua_pushstring(L, row.advice);
        lua_setfield(L, -2, row.name);
    }
    return 1;
}

const luaL_Reg mr_foreign_tools[] = {
    {"no_option", no_option}, {"advice_of", advice_of}, {NULL, NULL}};

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
    if (!advice) advice = mr_foreign_advice(NULL, name);
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
