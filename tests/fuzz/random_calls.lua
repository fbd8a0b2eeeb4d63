-- timeout: 300
-- not checked: its calls race
-- Random calls of every documented function with random arguments, the collector running hard: no crash,
-- no hang, nothing left behind. Runs under the sanitizers in `make check-san`.
--
--     millrace tests/fuzz/random_calls.lua [CALLS [SEED]]     or FUZZ_CALLS, FUZZ_SEED in the environment
--
-- Some arguments are weak tables that alone hold their contents, and some are emptied by a
-- finalizer. Finalizers use the machine in the middle of whatever call the collector runs in.
--
-- The seed is fixed, so that a change that breaks something is the one to look at. Another seed, or 0 for one that
-- differs each time, is for long runs by hand.
--
-- Sizes are small or absurd, never merely large: a script may well ask for 30 GB and get them.
local mr = require "millrace"

local CALLS = tonumber(arg and arg[1] or os.getenv("FUZZ_CALLS")) or os.getenv("MILLRACE_LONG") and 60000 or
  os.getenv("MILLRACE_SHORT") and 3000 or 6000
local SEED = tonumber(arg and arg[2] or os.getenv("FUZZ_SEED")) or 20240
if SEED == 0 then SEED = os.time() end
local TRACE = os.getenv("FUZZ_TRACE") -- shows each call before it is made
local MOST_ELEMENTS = 4096 -- what is kept for later calls

print(("random_calls: %d calls, seed %d"):format(CALLS, SEED))
math.randomseed(SEED)

-- In turn a whole collection wherever one can begin, generations, and steps so small that a collection lasts for many
-- calls.
local function collect_hard(turn)
  if turn % 3 == 0 then collectgarbage("incremental", 50, 1000)
  elseif turn % 3 == 1 then collectgarbage("generational", 5, 50)
  else collectgarbage("incremental", 100, 100, 10) end
end
local random = math.random
local function pick(list) return list[random(#list)] end

-- ---------------------------------------------------------------- what is called

-- Not called: those that print, that wait for a person, or that end the run.
local LEFT_OUT = {
  ["mr.help"] = true, ["mr.print"] = true, ["mr.machine.chooser"] = true, ["mr.machine.model"] = true,
  ["tensor.__close"] = true, ["trace.print"] = true, ["trace.save"] = true,
  ["mr.save"] = true,
  ["graph.print"] = true, ["graph.save"] = true,
}
local OPERATORS = {
  __add = function(x, y) return x + y end, __sub = function(x, y) return x - y end,
  __mul = function(x, y) return x * y end, __div = function(x, y) return x / y end,
  __pow = function(x, y) return x ^ y end, __mod = function(x, y) return x % y end,
  __idiv = function(x, y) return x // y end, __band = function(x, y) return x & y end,
  __bor = function(x, y) return x | y end, __bxor = function(x, y) return x ~ y end,
  __shl = function(x, y) return x << y end, __shr = function(x, y) return x >> y end,
  __bnot = function(x) return ~x end, __unm = function(x) return -x end, __len = function(x) return #x end,
  __index = function(x, i) return x[i] end, __newindex = function(x, i, v) x[i] = v end,
  __tostring = function(x) return tostring(x) end, __eq = function(x, y) return x == y end,
  __call = function(x, ...) return x(...) end,
}
local RARELY = { ["mr.reset"] = 200, ["mr.machine.fault"] = 50, ["mr.machine.settings"] = 20, ["mr.docs"] = 50,
  ["mr.format"] = 5, ["mr.kernel"] = 300, ["mr.module"] = 300, ["mr.elementwise"] = 300 }

local calls, properties = {}, {}
local pool -- the objects that there are, by class
for _, entry in ipairs((mr.docs())) do
  local full = entry.owner .. "." .. entry.name
  local object = not entry.owner:find("^mr")
  if entry.kind == "property" then
    properties[entry.owner] = properties[entry.owner] or {}
    table.insert(properties[entry.owner], entry.name)
  elseif not LEFT_OUT[full] then
    local call = { name = full, object = object and entry.owner, method = entry.name, usage = entry.usage,
      rarely = RARELY[full] }
    if OPERATORS[entry.name] then
      call.f = OPERATORS[entry.name]
    elseif not object then
      local owner = mr
      for part in entry.owner:gmatch("%.([%w_]+)") do owner = owner[part] end
      call.f = assert(owner[entry.name], full)
    end
    table.insert(calls, call)
  end
end
assert(#calls > 100)
for _ = 1, 4 do -- the call of what k[{...}] gives
  table.insert(calls, { name = "kernel[{grid, block, shared, stream}]", usage = "f(tensor, number, integer, string)",
    f = function(...)
      local kernel = pick(pool.kernel)
      local config = { random(4), random(64), random(2) * 128, pick(pool.stream) }
      if random(3) > 1 then return kernel[config](...) end
      if kernel.name == "scale" then return kernel[config](pick(pool.tensor), random(), random(5)) end
      return kernel[config](pick(pool.tensor), pick(pool.tensor), random(5), string.pack("fi4", 1, 2))
    end })
end

-- ---------------------------------------------------------------- what it is called with

pool = { tensor = {}, stream = {}, event = {}, device = {}, module = {}, kernel = {}, trace = {}, graph = {},
  graph_pool = {}, comm = {} }

local KERNELS = [[
struct pair { float a; int b; };
__device__ int counter;
__constant__ float factors[4];
extern "C" __global__ void scale(float *x, float f, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= f * factors[i & 3];
}
extern "C" __global__ void sum(const float *x, double *out, long long n, pair p) {
  extern __shared__ float s[];
  s[threadIdx.x % 32] = n > 0 ? x[threadIdx.x % n] + p.a : p.b;
  __syncthreads();
  atomicAdd(&counter, 1);
  if (threadIdx.x == 0) *out = s[0];
}
extern "C" __global__ void nothing() {}
]]

local function make_pool()
  pool.device = {}
  for i = 0, mr.device_count() - 1 do pool.device[i + 1] = mr.device(i) end
  pool.stream = { mr.default_stream(), mr.per_thread_stream(), mr.stream(),
    mr.stream { nonblocking = false, priority = -1 } }
  pool.event = { mr.event(), mr.event { timing = true } }
  pool.trace = { mr.timeline(function()
    for _, s in ipairs(pool.stream) do s:run(function() mr.spin { ms = 0.01 } s:record_event() end) end
    pool.stream[1]:wait_stream(pool.stream[3])
    mr.ones(3, { stream = pool.stream[1] }):sum():item()
  end), (mr.timeline(function() end)) }
  pool.graph = { mr.graph(function() mr.spin { ms = 0.01 } end), (mr.graph(function() return mr.ones(3) + 1 end)) }
  pool.graph_pool = { mr.graph.pool() }
  pool.comm = mr.nccl.comms { 0 }
  local module = mr.module(KERNELS)
  pool.module = { module }
  pool.kernel = { module:get("scale"), module:get("sum"), module:get("nothing") }
  pool.tensor = {
    mr.zeros(3, 4), mr.ones(4), mr.randn(2, 3, 4), mr.zeros(3, 4, { dtype = "i32" }), mr.ones(4, { dtype = "bool" }),
    mr.zeros(), mr.zeros(0, 3), mr.arange(12):view(3, 4):t(), mr.zeros(4, { dtype = "u8" }),
    mr.ones(3, 4, { dtype = "f64" }), mr.ones(4, { dtype = "bf16" }), mr.zeros(3, 4, { device = "cpu" }),
    mr.ones(4, { pinned = true }), mr.ones(3, 4, { dtype = "f16" }), mr.eye(4), mr.rand(3, 1),
    mr.tensor({ 1, 2, 3, 4 }, { device = "cpu" }),
    mr.ones(3, { dtype = "i64" }), mr.tensor({ 1, 2, 1 }, { dtype = "i64", device = "cpu" }),
  }
end

-- Host functions that are still pending may reset the devices while the pool is made.
local function refill()
  for _ = 1, 5 do
    if pcall(make_pool) then return end
  end
  make_pool()
end

local HUGE = { math.huge, -math.huge, 0 / 0, math.maxinteger, math.mininteger, 2 ^ 53, 2 ^ 63, -2 ^ 63, 1e300,
  1 << 50, -1 }
local STRINGS = { "", "f32", "f64", "i32", "i64", "u8", "bool", "f16", "cpu", "cuda", "cuda:0", "cuda:9", "cuda:",
  "a\0b", ("x"):rep(300), "1", "shape", "%s%n", "random:3", "illegal-address", "out-of-memory", "\255\254" }
local KEYS = { "dtype", "device", "pinned", "name", "stream", "out", "dim", "keepdim", "non_blocking", "reads",
  "writes", "ms", "blocks", "sync", "timing", "blocking", "priority", "nonblocking", "rtol", "atol",
  "equal_nan", "correction", "launch_queue_depth", "", 1, 2 }

local value -- forward

local function small() return random(-2, 5) end

local function list(make, most)
  local t = {}
  for i = 1, random(0, most or 4) do t[i] = make() end
  return t
end

local function options()
  local t = {}
  for _ = 1, random(0, 3) do t[pick(KEYS)] = value() end
  return t
end

-- A likely value for an option of this name.
local function option_value(key)
  if key == "dtype" then return pick { "f32", "f64", "f16", "bf16", "i32", "i64", "u8", "bool" }
  elseif key == "device" then return pick { "cpu", "cuda", 0 }
  elseif key == "stream" then return pick(pool.stream)
  elseif key == "out" then return pick(pool.tensor)
  elseif key == "name" then return "n" .. random(5)
  elseif key == "op" then return pick { "sum", "prod", "min", "max", "avg" }
  elseif key == "root" then return random(-1, 1)
  elseif key == "reads" or key == "writes" then return list(function() return pick(pool.tensor) end)
  elseif key == "ms" or key == "rtol" or key == "atol" then return random()
  elseif key == "blocks" or key == "priority" or key == "correction" then return random(0, 3)
  else return random(2) == 1 end
end

-- Some of the options that usage names in braces: {dtype: string, out=}.
local function options_of(usage)
  local keys = {}
  for key in (usage:match("%b{}") or ""):gmatch("([%a_]+)[:=]") do
    if key ~= "string" then keys[#keys + 1] = key end
  end
  return function()
    local t = {}
    for _, key in ipairs(keys) do
      if random(3) == 1 then t[key] = option_value(key) end
    end
    return t
  end
end

local function nested(depth)
  if depth == 0 then return pick { 1, 2.5, 3, -1 } end
  local t = {}
  for i = 1, 2 do t[i] = nested(depth - 1) end
  return t
end

local function a_function()
  return pick {
    function(...) return ... end,
    function() error("from inside") end,
    function() return mr.ones(3):sum() end,
    function() return mr.synchronize() end,
    function() collectgarbage("step") end,
    function() return pick(pool.stream):close() end,
    function() pick(pool.tensor):free() end,
  }
end

local MAKERS = {
  { 30, function() return pick(pool.tensor) end },
  { 8, function() return pick(pool.stream) end },
  { 6, function() return pick(pool.event) end },
  { 3, function() return pick(pool.device) end },
  { 2, function() return pick(pool.kernel) end },
  { 1, function() return pick(pool.module) end },
  { 1, function() return pick(pool.trace) end },
  { 3, function() return { random(4), random(64), random(3) == 1 and value() or 0, pick(pool.stream) } end },
  { 3, function() return { grid = random(4), block = random(64), shared = pick { 0, 128, 1 << 20 } } end },
  { 25, small },
  { 4, function() return pick(HUGE) end },
  { 6, function() return random() * 4 - 2 end },
  { 5, function() return random(2) == 1 end },
  { 6, function() return pick(STRINGS) end },
  { 4, function() return nil end },
  { 10, options_of("{dtype=, device=, pinned=, stream=, out=, non_blocking=, name=}") },
  { 4, options },
  { 8, function() return list(small) end },
  { 3, function() return list(function() return pick(pool.tensor) end) end },
  { 3, function() return list(function() return pick(pool.stream) end) end },
  { 4, function() return nested(random(0, 4)) end },
  { 3, function() return { list(small, 3), random(1, 3) } end },
  { 2, function() return list(value) end },
  { 2, a_function },
  { 1, function() return pick { io.stdout, coroutine.create(type), type, _G, pool } end },
}
local total = 0
for _, m in ipairs(MAKERS) do total = total + m[1] end

function value()
  local n = random(total)
  for _, m in ipairs(MAKERS) do
    n = n - m[1]
    if n <= 0 then return m[2]() end
  end
end

-- What the usage line asks for, one maker for each argument: "t:narrow(dim: integer, start: integer)".
local function makers_of(call)
  local usage, makers = call.usage, {}
  local sensible_options = options_of(usage)
  local function a_tensor() return pick(pool.tensor) end
  -- mr.add(x, y) is documented as x:add(y).
  if call.f and usage:find("^%l+:") then makers[1] = a_tensor end
  local inside = usage:match("^[^%s({]*%((.*)%)") or ""
  inside = inside:gsub("%b{}", "OPTIONS")
  for word in inside:gmatch("[^,]+") do
    local make
    if word:find("OPTIONS") then make = sensible_options
    elseif word:find("tensor%[%]") or word:find("tensors: list") then make = function() return list(a_tensor, 2) end
    elseif word:find("stream%[%]") then make = function() return list(function() return pick(pool.stream) end) end
    elseif word:find("integer%[%]") then make = function() return list(small, 3) end
    elseif word:find("tensor") then make = a_tensor
    elseif word:find("event") then make = function() return pick(pool.event) end
    elseif word:find("stream") then make = function() return pick(pool.stream) end
    elseif word:find("devices: list") then make = function() return list(function() return pick { 0, 0, 1 } end, 2) end
    elseif word:find("device") then make = function() return pick { 0, pick(pool.device), "cpu", "cuda" } end
    elseif word:find("integer") or word:find("dim") then make = small
    elseif word:find("boolean") or word:find("keepdim") then make = function() return random(2) == 1 end
    elseif word:find("number") then make = function() return pick { 0, 1, 2.5, -1, 0.5 } end
    elseif word:find("function") then make = a_function
    elseif word:find(":") or word:find("%.%.%.") then make = value
    else make = function() return random(4) == 1 and random() * 4 or a_tensor() end end
    makers[#makers + 1] = make
    if word:find("%.%.%.") then makers[#makers + 1] = make end
  end
  if usage:find("^[%w.]+{") then makers[1] = sensible_options end
  return makers
end

local function is_kept(x, class)
  local ok, locked = pcall(getmetatable, x)
  return ok and type(x) == "userdata" and locked == "millrace." .. class
end

-- What a finalizer does: whatever a script could do at that moment.
local EVIL = {
  function() pick(pool.stream):close() end,
  function() pick(pool.event):close() end,
  function() pick(pool.tensor):free() end,
  function() pick(pool.tensor):free { stream = pick(pool.stream) } end,
  function() pick(pool.tensor):add_(1) end,
  function() pick(pool.stream):record_event() end,
  function() pick(pool.stream):host_func(function() collectgarbage() end) end,
  function() pool.stream[random(#pool.stream)] = mr.stream() end,
  function() pool.tensor[random(#pool.tensor)] = mr.ones(3, 4) end,
  function() mr.set_stream(pick(pool.stream)) end,
  function() mr.set_stream(mr.default_stream()) end,
  function() mr.synchronize() end,
  function() mr.hazard.clear() end,
  function() mr.hazard.mode(pick { "off", "collect" }) end,
  function() return mr.hazard.reports() end,
  function() return mr.machine and mr.machine.queues() end,
  function() return mr.memory.stats() end,
  function() mr.reset() end, -- refused in the middle of a call
  function() collectgarbage() end,
  function() error("from a finalizer") end,
}

-- At some later collection. A weak reference: what the finalizer is about may be gone by then.
local function at_collection(fn) setmetatable({}, { __gc = function() pcall(fn) end }) end

local function empties(t)
  return function()
    for key in pairs(t) do t[key] = random(3) == 1 and value() or nil end
  end
end

local FRESH = { tensor = function() return mr.zeros(3, 4) end, stream = function() return mr.stream() end,
  event = function() return mr.event() end }

-- Nobody but the table holds some of what is in it now.
local function renew(t)
  for key, x in pairs(t) do
    for class, make in pairs(FRESH) do
      local made, new = false, nil
      if is_kept(x, class) and random(2) == 1 then made, new = pcall(make) end
      if made then t[key] = new end
    end
  end
end

local function endanger(t)
  if getmetatable(t) or t == pool or t == _G then return end
  local move = random(6)
  if move <= 3 then
    renew(t)
    setmetatable(t, { __mode = move == 1 and "k" or move == 2 and "v" or "kv" })
  elseif move == 4 then
    renew(t)
    at_collection(empties(t))
  end
end

local function arguments(call)
  call.makers = call.makers or makers_of(call)
  local args = { n = random(0, 3) }
  local guided = random(4) > 1
  if guided then args.n = math.max(0, #call.makers - (random(3) == 1 and random(0, 2) or 0)) end
  for i = 1, args.n do
    args[i] = (guided and random(12) > 1 and call.makers[i] or value)()
    if type(args[i]) == "table" then endanger(args[i]) end
  end
  if random(20) == 1 then at_collection(pick(EVIL)) end
  return args
end

-- ---------------------------------------------------------------- the calls

local function keep(x)
  for class, objects in pairs(pool) do
    if class ~= "device" and is_kept(x, class) then
      -- A tensor expanded to 2^53 elements is small, and whatever is done with it never ends.
      if class ~= "tensor" or x.numel <= MOST_ELEMENTS then
        objects[#objects < 24 and #objects + 1 or random(#objects)] = x
      end
    end
  end
end

local function show(call, args)
  local words = {}
  for i = 1, args.n do words[i] = tostring(args[i]):gsub("[^%g ]", "?") end
  io.stderr:write(call.name, "(", table.concat(words, ", "), ")\n")
end

local counts = { ok = 0, raised = 0 }
local STICKY = { ["illegal-address"] = true, assert = true, ["launch-failure"] = true, ["launch-timeout"] = true,
  ["misaligned-address"] = true }

local function call_once(n)
  local call = pick(calls)
  if call.rarely and random(call.rarely) > 1 then return end
  local args = arguments(call)
  local f = call.f
  if call.object then
    table.move(args, 1, args.n, 2)
    args.n = args.n + 1
    args[1] = random(20) == 1 and value() or pick(pool[call.object])
    if not f then
      local from = pick(pool[call.object])
      f = from[call.method]
      if call.method == "contiguous" then f = function(t, ...) return t:contiguous(...) end end
      if call.method == "name" and type(f) ~= "function" then return end
    end
  end
  if TRACE then show(call, args) end
  local results
  if n % 7 == 0 then
    results = table.pack(coroutine.resume(coroutine.create(f), table.unpack(args, 1, args.n)))
  else
    results = table.pack(pcall(f, table.unpack(args, 1, args.n)))
  end
  if results[1] then
    counts.ok = counts.ok + 1
    for i = 2, results.n do
      keep(results[i])
      if type(results[i]) == "table" then keep(results[i][1]) end
    end
    return
  end
  counts.raised = counts.raised + 1
  local message = tostring(results[2])
  assert(#message > 0)
  local code = type(results[2]) == "table" and results[2].code
  if STICKY[code] then
    mr.reset()
    refill()
  end
end

local function read_properties()
  local class = pick { "tensor", "stream", "event", "device" }
  local object = pick(pool[class])
  for _, name in ipairs(properties[class] or {}) do
    local fine, err = pcall(function() return object[name] end)
    if not fine then assert(name == "handle", err) end -- a simulation, or a stream from before a reset, has none
  end
  local _ = tostring(object)
end

local function wait_for_all()
  local ok, err = pcall(mr.synchronize)
  if not ok and type(err) == "table" and STICKY[err.code] then
    mr.reset()
    refill()
  end
end

mr.synchronize()
collectgarbage()
collectgarbage()
local function live()
  local stats = mr.memory.stats()
  return stats.live, stats.host.live
end
local live_before, host_before = live()
local began = os.clock()

refill()
collect_hard(0)
for n = 1, CALLS do
  call_once(n)
  if n % 50 == 0 then read_properties() end
  if n % 500 == 0 then
    collect_hard(n // 500)
    if mr.machine then pcall(mr.machine.chooser, pick { "timed", "adversarial", "random:" .. n }) end
    pcall(mr.launch_blocking, random(10) == 1)
    wait_for_all()
    local ok = pcall(refill)
    if not ok then
      mr.reset()
      refill()
    end
  end
end

wait_for_all()
pool = nil -- finalizers that are still to come find nothing to work with
wait_for_all()
mr.hazard.mode("off")
pcall(mr.set_stream, mr.default_stream())
mr.dist.destroy() -- the world keeps memory for its barriers
collectgarbage()
collectgarbage()
mr.synchronize()
collectgarbage()
mr.synchronize()
local live_after, host_after = live()

print(("%d calls returned, %d raised, %.1f s"):format(counts.ok, counts.raised, os.clock() - began))
assert(counts.ok > CALLS / 10, "too few calls get through to mean anything")
assert(live_after == live_before, ("device memory: %d bytes live before, %d after"):format(live_before, live_after))
assert(host_after == host_before, ("host memory: %d bytes live before, %d after"):format(host_before, host_after))
print("1 passed, 0 failed")
