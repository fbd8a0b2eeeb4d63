-- Each function of mr.docs() is called while a host function is pending: on the virtual GPU, on a
-- real one, and on the tests' own driver. The calls of that driver wait for the device wherever
-- CUDA allows it (tests/cuda/behind_a_host_function.lua). A call must come back, and the host
-- function must run. The name of each function is written before it is called, so the last one is
-- the one that hung.
-- timeout: 120
-- not replayed: it resets the machine, and asks what the host does
--
--     millrace --device cuda tests/gpu/behind_a_host_function.lua [NAME]       only functions with NAME in their
-- names
local mr = require "millrace"

local only = arg and arg[1]
local held = mr.stream{name = "held"}
local here = mr.stream{name = "here"}

-- ---------------------------------------------------------------- a pending function

local ran, expected = 0, 0
local function run_one() ran = ran + 1 end

local function pend()
  mr.spin{ms = 0.2, stream = held}
  held:host_func(run_one)
  expected = expected + 1
end

local function synchronize_all()
  for i = 0, mr.device_count() - 1 do mr.synchronize(i) end
end

local function settle(name)
  synchronize_all()
  if ran ~= expected then error(("%s: %d host functions ran, expected %d"):format(name, ran, expected)) end
end

-- ---------------------------------------------------------------- what is called with what

-- Printing and reading files of the project is not about the device. The others are refused by a real GPU.
local LEFT_OUT = { ["mr.help"] = "prints", ["mr.docs"] = "asks no device", ["mr.explore"] = "virtual",
  ["mr.waits"] = "virtual", ["mr.replay"] = "virtual", ["mr.stress"] = "runs a function many times",
  ["kernel.profile"] = "virtual", ["tensor.peek"] = "virtual", ["kernel.__index"] = "is a part of the launch",
  ["tensor.__close"] = "is tensor.free", ["tensor.__newindex"] = "is tensor.copy_",
  ["tensor.name"] = "asks no device" }
local LEFT_OUT_OWNERS = { ["mr.machine"] = "virtual", comm = "virtual", ["mr.nccl"] = "virtual",
  ["mr.dist"] = "virtual", ["mr.dist.Work"] = "virtual", ["mr.nn.parallel"] = "virtual",
  ["mr.nn"] = "makes tables and tensors",
  graph_pool = "has none",
  ["mr.nn.Module"] = "is written in Lua", ["mr.optim.lr_scheduler"] = "asks no device",
  ["mr.optim.lr_scheduler.Scheduler"] = "asks no device" }

local SOURCE = [[
__device__ int counter;
extern "C" __global__ void add(float *x, int n) {
  extern __shared__ float s[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (n > 1000000) s[i] = x[i];
  if (i < n) x[i] += 1;
}
]]
local has_compiler = pcall(mr.kernel, SOURCE, "add")

-- A source of its own each time: a module that was loaded already is not loaded again.
local sources = 0
local function new_source()
  sources = sources + 1
  return SOURCE .. ("// %d\n"):format(sources) .. ("__device__ int unused_%d;\n"):format(sources)
end

local function small() return mr.ones(4, 4) end
local function graph()
  local x = mr.ones(4)
  return (mr.graph(function() x:add_(1) end))
end
local function timeline() return (mr.timeline(function() held:run(small) end)) end
local function layer() return mr.nn.Linear(4, 4):to(0) end
local function optimiser() return mr.optim.SGD(layer():parameters()) end
local function temporary(ending, work)
  local path = os.tmpname()
  os.remove(path)
  work(path .. ending)
  os.remove(path .. ending)
end
local function nothing() end
local is_real = mr.backend == "cuda" -- other processes and other code share only a real device

local CALLS = {
  ["mr.device_count"] = function() return mr.device_count() end,
  ["mr.device"] = function() return mr.device(0) end,
  ["mr.set_device"] = function() mr.set_device(0) end,
  ["mr.with"] = function() mr.with(here, small) end,
  ["mr.manual_seed"] = function() mr.manual_seed(1) end,
  ["mr.launch_blocking"] = function()
    local before = mr.launch_blocking(true)
    small():add_(1)
    mr.launch_blocking(before)
  end,
  ["mr.allow_tf32"] = function() mr.allow_tf32(mr.allow_tf32(true)) end,
  ["mr.reset"] = function() -- it drops the function, and all that there was
    collectgarbage() -- capsules that lend memory, which a reset would take away
    collectgarbage()
    mr.reset()
    expected = ran
    held, here = mr.stream{name = "held"}, mr.stream{name = "here"}
  end,
  ["mr.set_stream"] = function() mr.set_stream(mr.default_stream()) end,
  ["mr.run"] = function() mr.run(small, function() mr.sleep(0.01) end) end,
  ["stream.await"] = function() mr.run(function() held:await() end) end,
  ["event.await"] = function() mr.run(function() held:record_event():await() end) end,
  ["mr.barrier"] = function() mr.barrier{ held, here } end,
  ["mr.full"] = function() mr.full({ 4 }, 1) end,
  ["mr.tensor"] = function() mr.tensor({ 1, 2, 3 }) end,
  ["mr.cat"] = function() mr.cat{ small(), small() } end,
  ["mr.stack"] = function() mr.stack{ small(), small() } end,
  ["mr.einsum"] = function() mr.einsum("ij,jk->ik", small(), small()) end,
  ["mr.no_grad"] = function() mr.no_grad(small) end,
  ["mr.enable_grad"] = function() mr.enable_grad(small) end,
  ["mr.save"] = function() temporary(".npy", function(path) mr.save(path, small()) end) end,
  ["mr.load"] = function()
    temporary(".npy", function(path)
      mr.save(path, mr.ones(4, { device = "cpu" }))
      pend()
      mr.load(path, { device = 0 })
      mr.load(path, { pinned = true })
    end)
  end,
  ["mr.from_dlpack"] = function()
    mr.from_dlpack(mr.ones(4, { device = "cpu" }):dlpack())
    if is_real then mr.from_dlpack(small():dlpack{ stream = held }):add_(1) end
  end,
  ["mr.from_ipc_handle"] = is_real and function() -- its own handle is refused by the driver
    pcall(mr.from_ipc_handle, mr.zeros(4, { ipc = true }):ipc_handle(), 0, 4)
  end or nothing,
  ["mr.memcpy"] = function()
    mr.memcpy(small(), small()) mr.memcpy(small():cpu(), small()) mr.memcpy(small(), small():cpu())
  end,
  ["mr.memcpy_async"] = function()
    mr.memcpy_async(small(), mr.ones(4, 4, { device = "cpu", pinned = true }))
    mr.memcpy_async(mr.ones(1 << 20, { device = "cpu" }), mr.ones(1 << 20))
  end,
  ["mr.memset"] = function() mr.memset(small(), 0) end,
  ["mr.memset_async"] = function() mr.memset_async(small(), 0) end,
  ["mr.op"] = function() mr.op{ name = "op", writes = { small() }, ms = 0.01 } end,
  ["mr.spin"] = function() mr.spin{ ms = 0.01, stream = here } end,
  ["mr.kernel"] = has_compiler and function() mr.kernel(new_source(), "add") end or nothing,
  ["mr.module"] = has_compiler and function() mr.module(new_source()) end or nothing,
  ["mr.elementwise"] = has_compiler and function()
    mr.elementwise("float x -> float z", ("z = x + %d"):format(sources), "plus")(small())
  end or nothing,
  ["mr.timeline"] = function() mr.timeline(small) end,
  ["mr.sync_debug"] = function() mr.sync_debug(mr.sync_debug()) end,
  ["mr.format"] = function() return mr.format(small()) end,
  ["mr.print"] = function() mr.print(small():sum():item()) end,
  ["mr.arange"] = function() mr.arange(4) end,
  ["mr.linspace"] = function() mr.linspace(0, 1, 5) end,
  ["mr.randint"] = function() mr.randint(1, 5, { 4 }) end,
  ["mr.conv2d_input"] = function() mr.conv2d_input({ 1, 1, 4, 4 }, mr.ones(1, 1, 3, 3), mr.ones(1, 1, 2, 2)) end,
  ["mr.conv2d_weight"] = function() mr.conv2d_weight(mr.ones(1, 1, 4, 4), { 1, 1, 3, 3 }, mr.ones(1, 1, 2, 2)) end,
  ["mr.max_pool2d_backward"] = function()
    mr.max_pool2d_backward({ 1, 1, 4, 4 }, mr.ones(1, 1, 2, 2), mr.ones(1, 1, 2, 2, { dtype = "i64" }), 2)
  end,
  ["mr.avg_pool2d_backward"] = function() mr.avg_pool2d_backward({ 1, 1, 4, 4 }, mr.ones(1, 1, 2, 2), 2) end,
  ["mr.adaptive_avg_pool2d_backward"] = function()
    mr.adaptive_avg_pool2d_backward({ 1, 1, 4, 4 }, mr.ones(1, 1, 2, 2))
  end,
  ["mr.nll_loss_backward"] = function()
    mr.nll_loss_backward({ 4, 4 }, mr.ones(4), mr.ones(4, { dtype = "i64" }), { reduction = "none" })
  end,

  ["device.synchronize"] = function() mr.device(0):synchronize() end,
  ["device.can_access_peer"] = function() mr.device(0):can_access_peer(mr.device_count() - 1) end,
  ["device.enable_peer_access"] = function()
    if mr.device_count() < 2 or not mr.device(0):can_access_peer(1) then return end
    mr.device(0):enable_peer_access(1)
    local to, from = mr.ones(4), mr.ones(4, { device = 1 })
    synchronize_all()
    pend()
    mr.memcpy_async(to, from)
    synchronize_all()
  end,

  ["stream.wait_event"] = function() here:wait_event(held:record_event()) end,
  ["stream.wait_stream"] = function() here:wait_stream(held) end,
  ["stream.wait"] = function() here:wait(held) end,
  ["stream.record_event"] = function() held:record_event() end,
  ["stream.synchronize"] = function() here:synchronize() held:synchronize() end,
  ["stream.query"] = function() return held:query() end,
  ["stream.run"] = function() here:run(small) end,
  ["stream.scope"] = function() local _ <close> = here:scope() end,
  ["stream.host_func"] = function() here:host_func(nothing) end,
  ["stream.close"] = function()
    local new = mr.stream()
    new:run(small)
    new:close()
  end,
  ["stream.is_capturing"] = function() return here:is_capturing() end,
  ["stream.capture_info"] = function() return here:capture_info() end,

  ["event.record"] = function() mr.event():record(held) end,
  ["event.wait"] = function() held:record_event():wait(here) end,
  ["event.synchronize"] = function() held:record_event():synchronize() end,
  ["event.query"] = function() return held:record_event():query() end,
  ["event.ipc_handle"] = is_real and function() mr.event{ interprocess = true }:ipc_handle() end or nothing,
  ["event.elapsed_time"] = function()
    local from, to = mr.event{ timing = true }, mr.event{ timing = true }
    from:record(held)
    to:record(held)
    held:synchronize()
    pend()
    return from:elapsed_time(to), to - from
  end,
  ["event.__sub"] = nothing, -- in the one before
  ["event.close"] = function()
    local e = held:record_event()
    e:close()
  end,

  ["kernel.launch"] = has_compiler and function()
    local k, x = mr.kernel(new_source(), "add"), small()
    pend()
    k:launch({ grid = 1, block = 32 }, x, 16)
    pend()
    k:launch({ grid = 1, block = 32, shared = 100 << 10 }, x, 16) -- more than all may have
  end or nothing,
  ["kernel.access"] = has_compiler and function() return mr.kernel(SOURCE, "add"):access() end or nothing,
  ["module.get"] = has_compiler and function() return mr.module(SOURCE):get("add") end or nothing,
  ["module.global"] = has_compiler and function()
    return mr.module(new_source()):global("counter"):item()
  end or nothing,

  ["mr.autograd.grad"] = function()
    local x = small():requires_grad_()
    mr.autograd.grad((x * x):sum(), x)
  end,
  ["mr.autograd.Function"] = function()
    mr.autograd.Function{ forward = function(_, x) return x * 2 end, backward = function(_, g) return g end }(small())
  end,
  ["mr.data.DistributedSampler"] = function()
    mr.data.DistributedSampler(small(), { num_replicas = 2, rank = 0 }):indices()
  end,
  ["mr.data.batches"] = function()
    for _ in mr.data.batches(mr.ones(8, 2, { device = "cpu" }), { batch_size = 4, device = 0 }) do end
  end,
  ["mr.nn.init.constant_"] = function() mr.nn.init.constant_(small(), 1) end,
  ["mr.nn.utils.clip_grad_norm_"] = function()
    local x = small():requires_grad_();
    (x * x):sum():backward()
    mr.nn.utils.clip_grad_norm_({ x }, 1)
  end,
  ["mr.nn.utils.clip_grad_value_"] = function()
    local x = small():requires_grad_();
    (x * x):sum():backward()
    mr.nn.utils.clip_grad_value_({ x }, 1)
  end,
  ["mr.optim.Optimizer.step"] = function()
    for _, class in ipairs{ "SGD", "Adam", "AdamW", "RMSprop" } do
      local m = layer()
      local o = mr.optim[class](m:parameters())
      m(small()):sum():backward()
      o:step()
    end
  end,
  ["mr.optim.Optimizer.load_state_dict"] = function() optimiser():load_state_dict(optimiser():state_dict()) end,
  ["mr.optim.SGD"] = optimiser,
  ["mr.optim.Adam"] = nothing, -- with `step`
  ["mr.optim.AdamW"] = nothing,
  ["mr.optim.RMSprop"] = nothing,

  ["mr.hazard.check"] = function() mr.hazard.check(small) end,
  ["mr.hazard.ignore"] = function() mr.hazard.ignore() end,
  ["mr.hazard.why"] = function() mr.hazard.check(function() mr.hazard.reports() end) end,
  ["mr.hazard.readable"] = function() mr.hazard.check(function() mr.hazard.reports() end) end,

  ["mr.memory.empty_cache"] = function()
    do local _ <close> = mr.zeros(1 << 20, { pinned = true, device = "cpu" }) end
    pend()
    mr.memory.empty_cache()
  end,

  ["mr.graph.capture"] = graph,
  ["mr.graph.begin"] = function()
    mr.graph.begin(here)
    here:run(small)
    mr.graph.finish(here)
  end,
  ["mr.graph.finish"] = nothing, -- in the one before
  ["mr.graph.auto"] = function()
    local x = small()
    local f = mr.graph.auto(function() x:add_(1) end)
    for _ = 1, 8 do f() pend() end
    return mr.graph.why(f)
  end,
  ["mr.graph.why"] = nothing, -- in the one before
  ["graph.launch"] = function()
    local g = graph()
    g:launch()
    pend()
    g:launch()
    pend()
    g:close()
  end,
  ["graph.instantiate"] = function() graph():instantiate():launch() end,
  ["graph.update"] = function()
    local x, y = small(), small()
    local g = mr.graph(function() x:add_(1) end)
    g:launch()
    pend()
    g:update(function() y:add_(1) end)
    pend()
    g:launch()
  end,
  ["graph.enable"] = function()
    local g = graph()
    g:launch()
    g:enable(1, false)
    pend()
    g:launch()
  end,
  ["graph.set"] = function()
    local x = small()
    local g = mr.graph(function() x:add_(1) end)
    g:launch()
    g:set(1, function() x:add_(2) end)
    pend()
    g:launch()
  end,
  ["graph.nodes"] = function() return graph():nodes() end,
  ["graph.print"] = function() return graph():nodes() end,
  ["graph.save"] = function() temporary(".dot", function(path) graph():save(path) end) end,
  ["graph.close"] = function() graph():close() end,
  ["graph.inputs"] = function() return graph():inputs() end,

  ["mr.trace.start"] = function()
    mr.trace.start()
    pend()
    mr.trace.stop()
    mr.trace.start() -- while the end of the one before may be put off
    pend()
    mr.trace.stop()
  end,
  ["mr.trace.stop"] = nothing, -- in the one before
  ["trace.print"] = function() return tostring(timeline()) end,
  ["trace.save"] = function() temporary(".json", function(path) timeline():save(path) end) end,
  ["trace.overlap"] = function() return timeline():overlap("held", "held") end,
  ["trace.idle"] = function() return #timeline() end,
  ["trace.why"] = function() return #timeline() end,
  ["trace.compare"] = function() return timeline():compare(timeline()) end,
  ["trace.critical_path"] = function() return timeline():critical_path() end,

  ["tensor.free"] = function()
    small():free()
    mr.ones(4):record_stream(held):free()
    local t = mr.ones(4)
    mr.default_stream():synchronize()
    pend()
    t:free{ sync = true }
  end,
  ["tensor.dlpack"] = function()
    mr.ones(4, { device = "cpu" }):dlpack()
    if is_real then small():dlpack{ stream = here } end
  end,
  ["tensor.ipc_handle"] = is_real and function() mr.zeros(4, { ipc = true }):ipc_handle() end or nothing,
  ["tensor.record_stream"] = function() mr.ones(4):record_stream(held) end,
  ["tensor.backward"] = function()
    local x = small():requires_grad_();
    (x * x):sum():backward()
  end,
  ["tensor.register_post_accumulate_grad_hook"] = function()
    local x = small():requires_grad_()
    x:register_post_accumulate_grad_hook(nothing);
    (x * 2):sum():backward()
  end,
  ["tensor.retain_grad"] = function()
    local x = small():requires_grad_();
    (x * 2):retain_grad()
  end,
  ["tensor.pin_memory"] = function() return mr.ones(1 << 18, { device = "cpu" }):pin_memory() end,
  ["tensor.matmul"] = function()
    local a = mr.ones(256, 256)
    return a:matmul(a)
  end,
  -- Where no kernel really runs, the weights are 0 and refused.
  ["mr.multinomial"] = function() pcall(mr.multinomial, mr.ones(4), 2) end,
  ["tensor.multinomial"] = function() pcall(mr.multinomial, mr.ones(4), 2) end,
  ["tensor.sort"] = function() return mr.rand(100000):sort() end,
}

-- ---------------------------------------------------------------- operations: the first arguments that are taken

local selves, tuples
local function make_operands()
  local x, y, v = mr.ones(4, 4), mr.ones(4, 4), mr.ones(4)
  local i, at = mr.ones(4, 4, { dtype = "i64" }), mr.ones(4, { dtype = "i64" })
  local b, image, filter, one = mr.ones(4, 4, { dtype = "bool" }), mr.ones(1, 1, 4, 4), mr.ones(1, 1, 3, 3), mr.ones()
  local flags = mr.ones(4, { dtype = "bool" })
  selves = { x, v, i, b, image, at, one, mr.ones(1, 1, 8), mr.ones(2, 4, 4), 4 }
  tuples = { {}, { y }, { 1 }, { 2 }, { v }, { i }, { b, 1 }, { b, y }, { b }, { y, y }, { 1, 2 }, { 1, 1, 1 },
    { 1, at }, { 1, i }, { 1, at, y }, { 1, i, y }, { 1, at, v }, { at }, { flags }, { filter }, { mr.ones(1, 1, 3) },
    { 4, 4 }, { 2, 2, 2, 2 }, { { scale_factor = 2 } },
    { { 4 } }, { { 4, 4 } }, { { 1, 2 } }, { { 2, 1 } }, { { 1, 1 } }, { 2, 1 }, { "f64" },
    { 0 }, { 0, 1 }, { y, 0.5 }, { x, y, 1 }, { v, v }, { v, v, v, v }, { { 4 }, v, v }, { mr.ones(2, 4, 4) },
    { 1, true }, { 4, 1 }, { true }, { 4 }, { 1, 5 }, { x, at }, { at, x }, { i, x } }
end

local function operators()
  return { __add = function(x) return x + 1 end, __sub = function(x) return x - 1 end,
      __mul = function(x) return x * 2 end,
    __div = function(x) return x / 2 end, __pow = function(x) return x ^ 2 end, __mod = function(x) return x % 2 end,
    __idiv = function(x) return x // 2 end, __band = function(x) return x & 1 end,
    __bor = function(x) return x | 1 end,
    __bxor = function(x) return x ~ 1 end, __shl = function(x) return x << 1 end,
    __shr = function(x) return x >> 1 end,
    __bnot = function(x) return ~x end, __unm = function(x) return -x end, __len = function(x) return #x end,
    __index = function(x) return x[1] end, __tostring = tostring }
end

local function method(owner, name)
  if owner ~= "tensor" then
    local t = mr
    for part in owner:gmatch "%.([%w_]+)" do t = t[part] end
    return t[name]
  end
  if name == "contiguous" then return function(t) return t:contiguous() end end
  return operators()[name] or function(t, ...) return t[name](t, ...) end
end

local missing = {}
local function call_somehow(full, f)
  local why
  if pcall(f) then return end
  for _, self in ipairs(selves) do
    for _, tuple in ipairs(tuples) do
      local ok, err = pcall(f, self, table.unpack(tuple))
      if ok then return end
      why = err
    end
  end
  missing[#missing + 1] = ("%s: no arguments were taken (the last error: %s)"):format(full, tostring(why))
end

-- ---------------------------------------------------------------- all of them

local OBJECTS = { trace = true, stream = true, event = true, device = true, kernel = true, module = true,
  graph = true }
local METHODS = { ["mr.optim.Optimizer.zero_grad"] = optimiser, ["mr.optim.Optimizer.state_dict"] = optimiser }

local names, seen = {}, {}
for _, entry in ipairs((mr.docs())) do
  local full = entry.owner .. "." .. entry.name
  local wanted = not only or full:find(only, 1, true)
  local left_out = LEFT_OUT[full] or LEFT_OUT_OWNERS[entry.owner]
  if entry.kind ~= "property" and wanted and not left_out and not seen[full] then
    seen[full] = true
    names[#names + 1] = { full = full, owner = entry.owner, name = entry.name }
  end
end
-- The reset comes last: it takes the operands with it.
table.sort(names, function(a, b)
  local a_last, b_last = a.full == "mr.reset", b.full == "mr.reset"
  if a_last ~= b_last then return b_last end
  if a.owner ~= b.owner then return a.owner < b.owner end
  return a.name < b.name
end)

local owner
for _, f in ipairs(names) do
  io.write(f.owner ~= owner and "\n" .. f.owner .. ":" or "", " ", f.name)
  io.flush()
  owner = f.owner
  local call = CALLS[f.full] or METHODS[f.full]
  if not call then make_operands() end
  synchronize_all()
  pend()
  if call then call()
  elseif OBJECTS[f.owner] then
    if f.name ~= "__len" then missing[#missing + 1] = f.full .. ": has no call" end
  else
    call_somehow(f.full, method(f.owner, f.name))
  end
  settle(f.full)
end
if #names == 0 then error("no function is called so") end
if #missing > 0 then error("add calls to this file:\n" .. table.concat(missing, "\n")) end
print(("\n%d functions\n1 passed, 0 failed"):format(#names))
