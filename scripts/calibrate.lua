-- Measures what a device model of the virtual GPU needs, on the current device, and writes a model file.
--
--     build/millrace --device cuda scripts/calibrate.lua my_gpu.model
--     build/millrace --model ./my_gpu.model race.lua
--
-- Without a file name the model goes to standard output. Times are medians, and those of calls are times of the
-- sandbox: its own part is in them, because programs in it are what the model predicts. For the same reason the most
-- frequent calls are measured among other calls: no program finds the caches as warm as a long loop of one call does.
-- Figures that cannot be measured are taken from the device's properties, or else from the shipped model of the GPU
-- that is most like this one. The comment on each line says which. On the virtual GPU the result is the model that it
-- runs with.
local mr = require "millrace"
local M = dofile((arg[0]:match("^(.*)/") or ".") .. "/measure.lua")

if arg[2] or (arg[1] or ""):sub(1, 1) == "-" then
  error("calibrate.lua: expected one name at most, of the file that the model goes to", 0)
end

local ROUNDS = 21
local device = mr.current_device()
local s, other = mr.stream(), mr.stream()
mr.set_stream(s) -- the default stream has duties that other streams have not
local in_s = { stream = s }
local small = mr.zeros(1)
M.wait_for_all()

-- Sizes: large enough for a real bus, small enough for a simulated one.
local MIB = 1 << 20
local GPU_BYTES = M.virtual and 64 * MIB or math.min(1024 * MIB, device.total_memory // 16)
local BUS_BYTES = M.virtual and 64 * MIB or 256 * MIB

-- ---------------------------------------------------------------- ways to measure, all in nanoseconds

local function add() small:add_(1) end

-- A call of the host: `calls` of them in a row. `after` drops their results, and does not count.
local function a_call(calls, work, after)
  local function once()
    M.wait_for_all()
    local began = mr.clock()
    for i = 1, calls do work(i) end
    local ms = mr.clock() - began
    if after then after() end
    return ms * 1e6 / calls
  end
  once()
  return M.median_of(ROUNDS, once)
end

-- What a program does between two calls of a kind: other calls, which leave the caches to find again, and now and then
-- a wait.
local x, e, page = mr.ones(64, 64), mr.event(), mr.zeros(64, 64, { device = "cpu" })
local function do_other_things()
  mr.with(other, function()
    local y = (x + 1):mul_(x)
    y:narrow(1, 1, 8):fill_(y:sum():item())
    x:record_stream(s)
    e:record()
    s:wait_event(e)
    page:copy_(x)
    return tostring(y), x:t():exp()
  end)
  M.wait_for_all()
end

local BURST, BURSTS = 3, 40

-- A call of the host in short bursts between other things, with nothing freed meanwhile.
local function among_others(work)
  return function()
    local ms = 0
    collectgarbage()
    collectgarbage("stop")
    for _ = 1, BURSTS do
      do_other_things()
      local began = mr.clock()
      for _ = 1, BURST do work() end
      ms = ms + (mr.clock() - began)
    end
    collectgarbage("restart")
    return ms * 1e6 / (BURST * BURSTS)
  end
end

local function a_call_among_others(work)
  local once = among_others(work)
  once()
  return M.median_of(ROUNDS, once)
end

-- The time that one piece of work takes beyond another, by turns, so that both find the same machine.
local function beyond_among_others(more, less)
  local longer, shorter = among_others(more), among_others(less)
  longer()
  shorter()
  return M.median_of(ROUNDS, function() return longer() - shorter() end)
end

-- A piece of work of the device: what `count` more of them add, so that the events' own time falls out.
local function a_piece(count, work)
  local function pieces(n)
    return M.median_of(ROUNDS, function()
      return M.on_device(s, 1, function()
        for _ = 1, n do work() end
      end)
    end)
  end
  pieces(1)
  return (pieces(1 + count) - pieces(1)) * 1e6 / count
end

-- GB/s from the times of all of the bytes and of a quarter: what does not depend on the size falls out.
local function rate(bytes, time)
  time(bytes)
  return (bytes - bytes // 4) / (time(bytes) - time(bytes // 4))
end

local function copy_rate(to, from)
  return rate(to.nbytes, function(bytes)
    local range = { { 1, bytes // to.itemsize } }
    local a, b = to[range], from[range]
    return 1e6 * M.median_of(5, function()
      return M.on_device(s, 0.1, function() mr.memcpy_async(a, b, in_s) end)
    end)
  end)
end

local function bytes_of(count, opts)
  opts = opts or {}
  opts.dtype = "u8"
  return mr.zeros(count, opts)
end

-- ---------------------------------------------------------------- each figure: its value, and how it was got

local PROPERTY = "[p] property of the device"
local found = {} -- what has been measured so far

local measure = {}

function measure.max_resident_grids()
  local MS, MOST = 4, 512
  local streams = {}
  for i = 1, MOST do streams[i] = mr.stream() end
  local function at_once(count)
    return M.median_of(3, function()
      M.wait_for_all()
      return M.took(function()
        for i = 1, count do mr.spin{ms = MS, stream = streams[i]} end
        mr.synchronize()
      end)
    end) < 1.7 * MS
  end
  at_once(MOST)
  local fit, more = 1, MOST
  if at_once(more) then fit = more end
  while more - fit > 1 do
    local middle = (fit + more) // 2
    if at_once(middle) then fit = middle else more = middle end
  end
  for _, stream in ipairs(streams) do stream:close() end
  return fit, ("so many kernels of one block run at once, of at most %d tried"):format(MOST)
end

function measure.kernel_memory_gbs()
  local a, b = bytes_of(GPU_BYTES), bytes_of(GPU_BYTES)
  local gbs = 2 * copy_rate(a, b)
  return gbs, ("copy of %d MiB inside the device, read + write"):format(GPU_BYTES // MIB)
end

-- A product large enough that its arithmetic takes its time, and every multiprocessor has a part of it.
local function tflops(dtype)
  local n, k = 128 * math.ceil(device.sm_count ^ 0.5), 512
  local function once()
    local opts = { dtype = dtype }
    local a, b = mr.rand(n, k, opts), mr.rand(k, n, opts)
    local out = { out = mr.empty(n, n, opts) }
    local function product() a:mm(b, out) end
    product()
    return M.median_of(5, function() return M.on_device(s, 0.1, product) end)
  end
  local ms = once()
  while not M.virtual and ms < 10 and n < 8192 do
    n = math.min(8192, 2 * n)
    k = n
    ms = once()
  end
  return 2e-9 * n * n * k / ms, ("product of %d x %d and %d x %d"):format(n, k, k, n)
end

function measure.fp32_tflops() return tflops("f32") end
function measure.fp64_tflops() return tflops("f64") end

function measure.kernel_floor_ns()
  return a_piece(32, add), "start to start of dependent small kernels"
end

function measure.graph_floor_ns()
  local COUNT, both = 64, {}
  for i, count in ipairs{ 1, 1 + COUNT } do
    local g <close> = mr.graph(function() for _ = 1, count do add() end end)
    g:launch(s)
    M.wait_for_all()
    both[i] = M.median_of(ROUNDS, function() return M.on_device(s, 1, function() g:launch(s) end) end)
  end
  return (both[2] - both[1]) * 1e6 / COUNT, "likewise, in a graph"
end

function measure.handover_ns()
  local there, here = bytes_of(4096), bytes_of(4096, { pinned = true }) -- fewer may travel with the commands
  local function copy() mr.memcpy_async(here, there, in_s) end
  local both = a_piece(32, function()
    add()
    copy()
  end)
  return (both - found.kernel_floor_ns - a_piece(32, copy)) / 2,
    ("half of what a kernel and a copy of 4 KiB to the host take in turn, %.1f us, beyond alone"):format(both * 1e-3)
end

-- The same calls with every other kernel in a second stream and in the first: what an event costs the first alone falls
-- out.
function measure.wait_latency_ns()
  local function to_and_fro(second)
    return a_piece(32, function()
      for _, hop in ipairs{ { s, second }, { second, s } } do
        mr.with(hop[1], add)
        e:record(hop[1])
        hop[2]:wait_event(e)
      end
    end)
  end
  return (to_and_fro(other) - to_and_fro(s)) / 2,
    "a small kernel behind an event of another stream, beyond one of its own stream"
end

local function bus(to_device)
  local there, here = bytes_of(BUS_BYTES), bytes_of(BUS_BYTES, { pinned = true })
  local gbs = to_device and copy_rate(there, here) or copy_rate(here, there)
  return gbs, ("pinned, %d MiB"):format(BUS_BYTES // MIB)
end

function measure.h2d_gbs() return bus(true) end
function measure.d2h_gbs() return bus(false) end

function measure.copy_latency_ns()
  local there, here = bytes_of(16), bytes_of(16, { pinned = true })
  return a_piece(32, function() mr.memcpy_async(there, here, in_s) end), "copy of 16 bytes to the device, pinned"
end

-- Another device that this one can reach, with access both ways; nil if there is none.
local function find_peer()
  if mr.device_count() < 2 then error("there is one device", 0) end
  for i = 0, mr.device_count() - 1 do
    local peer = mr.device(i)
    if peer ~= device and device:can_access_peer(peer) then
      pcall(device.enable_peer_access, device, peer) -- once more is an error
      pcall(peer.enable_peer_access, peer, device)
      return peer
    end
  end
end

local function need_peer()
  return find_peer() or error("no other device can be reached", 0)
end

function measure.peer_access() return find_peer() and 1 or 0, "asked of the device" end

function measure.peer_gbs()
  local peer = need_peer()
  local here, there = bytes_of(GPU_BYTES), bytes_of(GPU_BYTES, { device = peer })
  M.wait_for_all()
  return copy_rate(here, there), ("copy of %d MiB between two devices"):format(GPU_BYTES // MIB)
end

function measure.peer_latency_ns()
  local peer = need_peer()
  local here, there = bytes_of(16), bytes_of(16, { device = peer })
  M.wait_for_all()
  return a_piece(32, function() mr.memcpy_async(here, there, in_s) end), "copy of 16 bytes between two devices"
end

function measure.launch_ns()
  local a, b = mr.ones(256), mr.ones(256)
  local mix = { add, function() a:add_(b) end, function() a:mul_(b) end, function() b:fill_(1) end }
  local next_kind = 0
  return a_call_among_others(function()
    next_kind = next_kind % #mix + 1
    mix[next_kind]()
  end), ("a small kernel, of %d kinds, among other calls"):format(#mix)
end

-- A library chooses among kernels by the sizes, and some take it two launches. Smaller products are no library's.
function measure.product_ns()
  local SIZES, sum = M.virtual and { 160 } or { 256, 512, 1024 }, 0
  for _, n in ipairs(SIZES) do
    local a, b = mr.ones(n, n), mr.ones(n, n)
    local out = { out = mr.empty(n, n) }
    sum = sum + a_call_among_others(function() a:mm(b, out) end)
  end
  return sum / #SIZES, ("products of %s, their mean, among other calls"):format(table.concat(SIZES, ", "))
end

function measure.query_ns()
  return a_call(50, function() s:query() end), "query of an idle stream"
end

function measure.record_ns()
  return a_call_among_others(function() e:record(s) end), "record of an event, among other calls"
end

function measure.record_timed_ns()
  local timed = mr.event{timing = true}
  return a_call_among_others(function() timed:record(s) end), "record of a timed event, among other calls"
end

-- How long a small kernel and this wait for it hold the host.
local function launch_and(wait)
  return 1e6 * M.median_of(ROUNDS, function()
    M.wait_for_all()
    return M.took(function()
      add()
      wait()
    end)
  end)
end

local function wait_for_stream() s:synchronize() end

-- How long a small kernel is under way before it runs: from the call until a query first says that it is done. Records
-- in another stream move the queries along, so that on average half a query is too much. A wait takes as long at least.
function measure.launch_latency_ns()
  local steps = math.max(1, math.min(32, math.floor(found.query_ns / found.record_ns + 0.5)))
  local sum = 0
  add()
  for step = 0, steps - 1 do
    sum = sum + M.median_of(ROUNDS, function()
      M.wait_for_all()
      return M.took(function()
        add()
        for _ = 1, step do e:record(other) end
        repeat until s:query()
      end)
    end)
  end
  return math.min(sum / steps * 1e6 - found.query_ns / 2, launch_and(wait_for_stream)) - found.kernel_floor_ns,
    "call of a small kernel to a query that says done, less the kernel and half a query"
end

function measure.wakeup_ns()
  local whole = launch_and(wait_for_stream)
  return math.max(whole - found.launch_latency_ns - found.kernel_floor_ns, 0),
    ("what is left of launch and synchronise, %.1f us"):format(whole * 1e-3)
end

function measure.copy_call_ns()
  local there, here = bytes_of(16), bytes_of(16, { pinned = true })
  return a_call_among_others(function() mr.memcpy_async(there, here, in_s) end),
    "mr.memcpy_async of 16 bytes, pinned, among other calls"
end

function measure.wait_event_ns()
  local function record() e:record(s) end
  return beyond_among_others(function()
    record()
    other:wait_event(e)
  end, record), "a wait behind a record, beyond the record, among other calls"
end

function measure.alloc_ns()
  return a_call_among_others(function() return mr.empty(1024) end), "mr.empty of 4 KiB, among other calls"
end

function measure.free_ns()
  return M.median_of(ROUNDS, function()
    local list = {}
    for i = 1, 100 do list[i] = mr.empty(1024) end
    return M.took(function()
      for i = 1, 100 do list[i]:free() end
    end)
  end) * 1e6 / 100, "t:free() of 4 KiB"
end

function measure.synchronize_ns()
  return a_call(50, wait_for_stream), "an idle stream"
end

-- For a busy device: what it takes beyond a stream comes when the work has ended, and few wait for an idle one.
function measure.device_synchronize_ns()
  local beyond = launch_and(mr.synchronize) - launch_and(wait_for_stream)
  return found.synchronize_ns + beyond,
    ("synchronize_ns and what a wait for the device takes beyond one for a busy stream, %.1f us"):format(beyond * 1e-3)
end

function measure.stream_create_ns()
  local list = {}
  return a_call(16, function(i) list[i] = mr.stream() end, function()
    for i = 1, 16 do list[i]:close() end
  end), "mr.stream()"
end

-- The driver's event is made at the first record.
function measure.event_create_ns()
  local both = a_call_among_others(function() mr.event{timing = true}:record(s) end)
  return both - found.record_timed_ns, "mr.event{timing=true} and its first record, less a record"
end

function measure.staging_gbs()
  local there, here = bytes_of(MIB), bytes_of(MIB, { device = "cpu" })
  return rate(MIB, function(bytes)
    local a, b = there[{ { 1, bytes } }], here[{ { 1, bytes } }]
    return 1e6 * M.median_of(ROUNDS, function()
      mr.spin{ms = 3, stream = s}
      local ms = M.took(mr.memcpy_async, a, b, in_s)
      s:synchronize()
      return ms
    end)
  end), "mr.memcpy_async of 1 MiB of pageable memory, behind a kernel"
end

-- From the whole time of a copy, in which the bus has its part.
function measure.unstaging_gbs()
  local there, here = bytes_of(4 * MIB), bytes_of(4 * MIB, { device = "cpu" })
  local whole = rate(4 * MIB, function(bytes)
    local range = { { 1, bytes } }
    local from, to = there[range], here[range]
    return 1e6 * M.median_of(ROUNDS, function() return M.took(mr.memcpy, to, from) end)
  end)
  return 1 / (1 / whole - 1 / found.d2h_gbs),
    ("mr.memcpy of 4 MiB to pageable memory, %.1f GB/s, without the bus"):format(whole)
end

function measure.host_memory_gbs()
  local a, b = bytes_of(BUS_BYTES, { device = "cpu" }), bytes_of(BUS_BYTES, { device = "cpu" })
  return rate(BUS_BYTES, function(bytes)
    local to, from = a[{ { 1, bytes } }], b[{ { 1, bytes } }]
    return 1e6 * M.median_of(5, function() return M.took(mr.memcpy, to, from) end)
  end), ("mr.memcpy of %d MiB between pageable memory: one core"):format(BUS_BYTES // MIB)
end

-- The collector frees older tensors, as in programs.
function measure.host_work_gbs()
  local bytes = 16 * MIB
  local a = mr.ones(bytes // 4, { device = "cpu" })
  local function double() return a * 2 end
  double()
  return 2 * bytes / (1e6 * M.median_of(ROUNDS, function() return M.took(double) end)),
    ("x * 2 of %d MiB of host memory, read + write"):format(bytes // MIB)
end

-- ---------------------------------------------------------------- Lua's own time

local SECONDS_DO_NOT_PASS = "the script's own time does not pass here"

-- The work of a script between calls: a loop with calls, tables and numbers.
local function some_lua(rounds)
  local sum, list = 0.0, {}
  local function plus(a, b) return a + b end
  for i = 1, rounds do
    list[i % 8 + 1] = plus(i, sum)
    if list[1] and i % 3 == 0 then sum = sum + #list else sum = sum * 0.5 end
  end
  return sum
end

-- How many hundreds of instructions, how many calls of functions of C, and how many KiB allocated `work` takes.
local function count_lua(work)
  local hundreds, calls = 0, 0
  debug.sethook(function() hundreds = hundreds + 1 end, "", 100) -- by itself: a hook's own instructions count, too
  work()
  debug.sethook(function()
    if debug.getinfo(2, "S").what == "C" then calls = calls + 1 end
  end, "c")
  work()
  debug.sethook()
  collectgarbage()
  collectgarbage("stop")
  local before = collectgarbage("count")
  work()
  local kib = collectgarbage("count") - before
  collectgarbage("restart")
  return hundreds, calls, kib
end

-- In ns, the collector at work.
local function time_of_lua(work)
  if M.virtual then error(SECONDS_DO_NOT_PASS, 0) end
  work()
  return 1e6 * M.median_of(ROUNDS, function() return M.took(work) end)
end

function measure.lua_ns()
  local LUA_ROUNDS = 20000
  local function work() some_lua(LUA_ROUNDS) end
  local hundreds = count_lua(work)
  return time_of_lua(work) / hundreds, ("a hundred instructions, in a loop of %d rounds"):format(LUA_ROUNDS)
end

function measure.lua_kib_ns()
  local function work()
    for i = 1, 20000 do
      local list = { i, i }
      list.next = function() return list end
    end
  end
  local hundreds, _, kib = count_lua(work)
  return (time_of_lua(work) - hundreds * found.lua_ns) / kib, "small tables and closures, which are collected"
end

-- What the library asks itself and what scripts ask of tensors: their fields, and views that autograd records.
function measure.lua_call_ns()
  local w, plain = mr.rand(64, 64):requires_grad_(), mr.rand(64, 64)
  local layer = mr.nn.Linear(8, 8):to(0)
  M.wait_for_all()
  local function work()
    for _ = 1, 50 do
      layer:zero_grad()
      local narrow = w:t():narrow(1, 1, 8)
      plain:view(-1):narrow(1, 1, 8)
      if narrow.shape[1] ~= 8 or narrow.dtype ~= plain.dtype then error("not what it was") end
    end
  end
  local hundreds, calls, kib = count_lua(work)
  return (time_of_lua(work) - hundreds * found.lua_ns - kib * found.lua_kib_ns) / calls,
    "fields of tensors, and views, recorded ones too; what their instructions and their memory do not take"
end

function measure.lua_collect_ns()
  collectgarbage()
  local kib = collectgarbage("count")
  return time_of_lua(collectgarbage) / kib, ("a full collection, with %.0f KiB in use"):format(kib)
end

-- ---------------------------------------------------------------- the rest: properties

local major, minor = device.compute_capability:match("(%d+)%.(%d+)")

local property = {
  compute_major = tonumber(major),
  compute_minor = tonumber(minor),
  sm_count = device.sm_count,
  warp_size = device.warp_size,
  max_threads_per_block = device.max_threads_per_block,
  max_threads_per_sm = device.max_threads_per_sm,
  max_blocks_per_sm = device.max_blocks_per_sm,
  registers_per_sm = device.registers_per_sm,
  shared_per_sm_bytes = device.shared_per_sm,
  shared_per_block_bytes = device.shared_per_block,
  async_engine_count = device.async_engine_count,
  priority_greatest = select(2, mr.priority_range()),
  total_memory_bytes = device.total_memory,
  l2_bytes = device.l2_bytes,
  sm_clock_hz = device.clock_hz,
  -- Some drivers no longer tell the memory's clock.
  memory_gbs = device.memory_bandwidth > 0 and device.memory_bandwidth * 1e-9 or nil,
}

-- ---------------------------------------------------------------- the shipped models

-- The shipped model whose compute capability and size are nearest; an empty one where the sources are not at hand.
local function nearest_model()
  local best, least
  local listing = assert(io.popen("ls " .. M.quote(M.folder .. "/../src/virtual/models") .. "/*.model 2>/dev/null"))
  for path in listing:lines() do
    local model = M.read_model(path)
    local function distance(key) return math.abs(model[key] - property[key]) end
    local memory = distance("total_memory_bytes") / (1 << 40) -- of two with the same multiprocessors
    local far = memory + 100 * distance("compute_major") + 10 * distance("compute_minor") + distance("sm_count") / 100
    if not least or far < least then best, least = model, far end
  end
  listing:close()
  return best or { name = "no model" }
end

-- ---------------------------------------------------------------- writing

-- In the order of the shipped files; "" is an empty line.
local ORDER = {
  "compute_major", "compute_minor", "sm_count", "warp_size", "max_threads_per_block", "max_threads_per_sm",
  "max_blocks_per_sm", "max_resident_grids", "registers_per_sm", "shared_per_sm_bytes", "shared_per_block_bytes",
  "async_engine_count", "priority_greatest", "sm_clock_hz", "total_memory_bytes", "l2_bytes", "",
  "memory_gbs", "kernel_memory_gbs", "fp32_tflops", "fp64_tflops", "kernel_floor_ns", "graph_floor_ns", "handover_ns",
  "wait_latency_ns",
  "h2d_gbs", "d2h_gbs", "copy_latency_ns", "peer_access", "peer_gbs", "peer_latency_ns", "",
  "launch_ns", "launch_latency_ns", "product_ns", "copy_call_ns", "record_ns", "record_timed_ns", "wait_event_ns",
  "alloc_ns", "free_ns", "synchronize_ns", "device_synchronize_ns", "wakeup_ns", "query_ns", "stream_create_ns",
  "event_create_ns", "staging_gbs", "unstaging_gbs", "host_memory_gbs", "host_work_gbs",
  "lua_ns", "lua_call_ns", "lua_kib_ns", "lua_collect_ns",
}

-- Figures from which others are computed come first.
local FIRST = { "kernel_floor_ns", "query_ns", "record_ns", "record_timed_ns", "launch_ns", "launch_latency_ns",
  "synchronize_ns", "d2h_gbs", "lua_ns", "lua_kib_ns" }

local function number(value)
  if value == math.floor(value) then return ("%d"):format(value) end
  return (value >= 100 and "%.0f" or "%.3g"):format(value)
end

local base = nearest_model()
local how = {}

-- An error without its place in this script.
local function reason_of(err)
  return (tostring(err):gsub("^%S+:%d+: ", ""):gsub("\n.*", ""))
end

-- Measures one figure, or takes it from where it can be had.
local function find(key)
  if found[key] then return end
  local reason
  if measure[key] then
    local ok, value, text = pcall(measure[key])
    M.wait_for_all()
    collectgarbage()
    pcall(mr.memory.empty_cache)
    if ok and value == value and value >= 0 and value < 1e15 then
      found[key], how[key] = value, "[m] " .. text
      return
    end
    reason = ok and ("measured as %g"):format(value) or reason_of(value)
  end
  if property[key] then
    found[key], how[key] = property[key], PROPERTY
  else
    found[key] = tonumber(base[key]) or (key:find("latency") and 1800 or key:find("gbs") and 10 or 1)
    how[key] = "[a] " .. (base[key] and "as " .. base.name or "an assumption") .. (reason and ": " .. reason or "")
  end
end

local function model_text()
  for _, key in ipairs(FIRST) do find(key) end
  local name = device.name:gsub(" %(virtual%)$", "")
  local lines = {
    ("# %s, by scripts/calibrate.lua on the %s backend. Medians."):format(name, mr.backend),
    "# [m] measured, [p] property that the driver tells, [a] as in another model, or an assumption.",
    "name = " .. name,
  }
  for _, key in ipairs(ORDER) do
    if key == "" then
      lines[#lines + 1] = ""
    else
      find(key)
      lines[#lines + 1] = ("%-35s # %s"):format(("%s = %s"):format(key, number(found[key])), how[key])
    end
  end
  return table.concat(lines, "\n") .. "\n"
end

-- The virtual GPU must take it.
local function check_loads(path)
  local name, ok = M.run("--device", "virtual", "--model", path, "-e", "print(mr.device(0).name)")
  if not ok then error(("%s was written, but cannot be loaded"):format(path), 0) end
  print(("%s: %s"):format(path, name:gsub("%s+$", "")))
end

local text = model_text()
local path = arg[1]
if not path then
  io.write(text)
else
  if not path:find("/") and not path:find("%.model") then path = "./" .. path end -- else it would be a shipped name
  local file = assert(io.open(path, "w"))
  file:write(text)
  assert(file:close())
  local rows = { { "figure", "here", base.name, "ratio", "" } }
  for _, key in ipairs(ORDER) do
    if measure[key] then
      local known = tonumber(base[key]) or 0
      rows[#rows + 1] = { key, number(found[key]), number(known),
        known ~= 0 and ("%.2f"):format(found[key] / known) or "-", how[key]:find("^%[m%]") and "" or how[key] }
    end
  end
  M.print_table(rows)
  check_loads(path)
end
