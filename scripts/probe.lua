-- Asks the device the questions that CUDA's documentation leaves open, through the sandbox, and prints the answers
-- beside those that an H200 gave (docs/semantics.md, "What an H200 did").
--
--     build/millrace scripts/probe.lua                    the virtual GPU
--     build/millrace --device cuda scripts/probe.lua      a GPU, and the virtual one beside it
--     ... scripts/probe.lua --raw                         lines for programs: id, verdict, answer, recorded
--     ... scripts/probe.lua P4g R21b                      only these questions
--
-- `*` marks the rows in which two of the columns differ; below the table stands why, where that
-- is known. A number differs when it is off by more than the factor that its row allows. Each
-- question is asked once to warm up and then three times; a `?` behind an answer says that these
-- disagreed. Times come from kernels that do nothing but wait. Not here: graphs and capture (R35
-- to R45), and what the library has no call for: cudaMalloc and cudaFree, cudaFreeHost, events
-- that processes share. The costs of calls are the business of scripts/calibrate.lua.
local mr = require "millrace"
local M = dofile((arg[0]:match("^(.*)/") or ".") .. "/measure.lua")
local took = M.took

local BUSY = 16                   -- ms that a stream is kept busy: a call that takes half of it has waited
local ROUNDS = M.virtual and 1 or 3
local KIB, MIB = 1 << 10, 1 << 20

local rows = {}

-- id, rule, question, the answer of an H200 (nil: nobody has asked one). Then by name: devices, the number needed; unit
-- and within, of a number; why, the reason for another answer of the virtual GPU.
local function row(id, rule, question, recorded, ask, opts)
  local r = { id = id, rule = rule, question = question, recorded = recorded, ask = ask, devices = 1, within = 1.25 }
  for key, value in pairs(opts or {}) do r[key] = value end
  rows[#rows + 1] = r
end

-- ---------------------------------------------------------------- what questions are made of

local device = mr.current_device()
local legacy, per_thread = mr.default_stream(), mr.per_thread_stream()

local function blocking() return mr.stream{nonblocking = false} end
local function nonblocking() return mr.stream() end

local function yes_no(condition) return condition and "yes" or "no" end
local function done_busy(condition) return condition and "done" or "busy" end

-- Whether call(...) keeps the host while `stream` is busy.
local function waits(stream, call, ...)
  mr.spin{ms = BUSY, stream = stream}
  local ms = took(call, ...)
  M.wait_for_all()
  return yes_no(ms > BUSY / 2)
end

-- The code of the error that call(...) raises.
local function code(call, ...)
  local ok, err = pcall(call, ...)
  if ok then return "no error" end
  return type(err) == "table" and err.code or "invalid-argument"
end

local function mark(stream) return mr.event{timing = true}:record(stream) end

local function bytes(count, opts)
  opts = opts or {}
  opts.dtype = "u8"
  return mr.zeros(count, opts)
end
local function pageable(count) return bytes(count, { device = "cpu" }) end
local function pinned(count) return bytes(count, { pinned = true }) end

-- Whether so many bytes are copied without the host having to wait for a busy stream.
local function copy_waits(make_to, make_from, count)
  local s, to, from = nonblocking(), make_to(count), make_from(count)
  M.wait_for_all()
  return waits(s, mr.memcpy_async, to, from, { stream = s })
end

-- ---------------------------------------------------------------- P1: the default stream

row("P1a", "R5", "default stream: synchronize waits for a busy blocking stream", "yes",
  function() return waits(blocking(), legacy.synchronize, legacy) end)
row("P1b", "R5", "... and for a busy non-blocking one", "no",
  function() return waits(nonblocking(), legacy.synchronize, legacy) end)

local function query_beside(stream)
  mr.spin{ms = BUSY, stream = stream}
  local done = legacy:query()
  M.wait_for_all()
  return done_busy(done)
end
row("P1c", "R5", "default stream: query while a blocking stream is busy", "busy",
  function() return query_beside(blocking()) end)
row("P1d", "R5", "... while a non-blocking one is", "done", function() return query_beside(nonblocking()) end)
row("P1e", "R6", "per-thread stream: synchronize waits for a busy blocking one", "no",
  function() return waits(blocking(), per_thread.synchronize, per_thread) end)

-- ---------------------------------------------------------------- P2, P13: priorities

row("P2a", "R8", "priorities, the least and the greatest", "0 to -5",
  function() return ("%d to %d"):format(mr.priority_range()) end)
row("P2b", "R8", "priority of a stream that asked for -100", "-5",
  function() return ("%d"):format(mr.stream{priority = -100}.priority) end)

local WAVES = 3

-- After which of the waves of a large kernel does a small one start that was submitted behind it?
local function wave_of(priority)
  local low, s = mr.stream{priority = (mr.priority_range())}, mr.stream{priority = priority}
  M.wait_for_all()
  local began = mark(low)
  mr.op{name = "large", blocks = WAVES * device.sm_count, ms = 2 * WAVES, stream = low}
  local large = mark(low)
  repeat until began:query()
  local now = mr.clock()
  repeat low:query() until mr.clock() - now > 0.5 -- the large one is under way
  mr.spin{ms = 0.1, stream = s}
  local small = mark(s)
  M.wait_for_all()
  return ("%d of %d"):format(math.floor(WAVES * (small - began - 0.1) / (large - began) + 0.5), WAVES)
end
row("P13a", "R8", "waves of a large kernel before one of higher priority starts", "1 of 3",
  function() return wave_of(select(2, mr.priority_range())) end)
row("P13b", "R54", "... before one of the same priority starts", "3 of 3",
  function() return wave_of((mr.priority_range())) end)

-- ---------------------------------------------------------------- P3: copy engines

row("P3a", "R25", "copy engines", "3", function() return ("%d"):format(device.async_engine_count) end)

local COPY = 64 * MIB
local here, there -- pinned and device memory, two of each

local function need_copies()
  if here then return end
  here, there = { pinned(COPY), pinned(COPY) }, { bytes(COPY), bytes(COPY) }
  M.wait_for_all()
end

local function up(i, s) mr.memcpy_async(there[i], here[i], { stream = s }) end
local function down(i, s) mr.memcpy_async(here[i], there[i], { stream = s }) end

-- Milliseconds from the start of both to the end of both, or of one.
local function span(first, second)
  need_copies()
  local a, b = nonblocking(), nonblocking()
  M.wait_for_all()
  mr.spin{ms = 0.5, stream = a}
  local began = mark(a)
  b:wait_event(began)
  first(1, a)
  if second then second(2, b) end
  local end_a, end_b = mark(a), mark(b)
  M.wait_for_all()
  return math.max(end_a - began, second and end_b - began or 0)
end

local function beside(first, second)
  return span(first, second) < 1.5 * span(first) and "together" or "in turn"
end
row("P3b", "R25", "a copy to the device and one to the host run", "together", function() return beside(up, down) end)
row("P3c", "R25", "two copies to the device run", "in turn", function() return beside(up, up) end)
row("P3d", "R25", "two copies to the host run", nil, function() return beside(down, down) end)
row("P3e", "R25", "a copy to the device and a kernel run", "together", function()
  local alone = span(up)
  return beside(up, function(_, s) mr.spin{ms = alone, stream = s} end)
end)
row("P3f", "R25", "rate to the device, 64 MiB of pinned memory", 55.5,
  function() return COPY / span(up) * 1e-6 end, { unit = "GB/s" })

-- ---------------------------------------------------------------- P4, R20 to R24: copies and fills

local function name_of(size) return size < MIB and ("%d KB"):format(size // KIB) or ("%d MB"):format(size // MIB) end

for i, size in ipairs{ KIB, 128 * KIB, MIB, 16 * MIB } do
  row("P4" .. ("abcd"):sub(i, i), "R23", name_of(size) .. " of pageable memory to the device, async, waits",
    size == 16 * MIB and "yes" or "no", function() return copy_waits(bytes, pageable, size) end)
end
for i, size in ipairs{ KIB, 16 * MIB } do
  row("P4" .. ("ef"):sub(i, i), "R23", name_of(size) .. " to pageable memory, async, waits", "yes",
    function() return copy_waits(pageable, bytes, size) end)
end
row("P4g", "R23", "the call with 1 MB to the device takes", 138, function()
  local s, to, from = nonblocking(), bytes(MIB), pageable(MIB)
  M.wait_for_all()
  mr.spin{ms = BUSY, stream = s}
  local us = 1e3 * took(mr.memcpy_async, to, from, { stream = s })
  M.wait_for_all()
  return us
end, { unit = "us", within = 1.5, why = "depends on the host's memory: 55 to 195 us were seen" })

for i, size in ipairs{ KIB, 16 * MIB } do
  row("R20" .. ("ab"):sub(i, i), "R20",
    "mr.memcpy of " .. name_of(size) .. " of pageable memory waits for a blocking stream", "yes", function()
      local to, from, s = bytes(size), pageable(size), blocking()
      M.wait_for_all()
      return waits(s, mr.memcpy, to, from)
    end)
end
for i, size in ipairs{ KIB, 16 * MIB } do
  row("R20" .. ("cd"):sub(i, i), "R20", "... " .. name_of(size) .. ", for a non-blocking one", "no", function()
    local to, from, s = bytes(size), pageable(size), nonblocking()
    M.wait_for_all()
    return waits(s, mr.memcpy, to, from)
  end)
end
row("R21a", "R21", "mr.memcpy inside the device waits for a blocking stream", "no", function()
  local to, from, s = bytes(MIB), bytes(MIB), blocking()
  M.wait_for_all()
  return waits(s, mr.memcpy, to, from)
end)
row("R21b", "R21", "... and takes", 12, function()
  local to, from = bytes(MIB), bytes(MIB)
  M.wait_for_all()
  mr.spin{ms = BUSY, stream = legacy}
  local us = 1e3 * took(mr.memcpy, to, from)
  M.wait_for_all()
  return us
end, { unit = "us", within = 2, why = "a model has one figure for the call of a copy, measured on small ones" })
row("R22a", "R22", "async copy of pinned memory to the device waits", "no",
  function() return copy_waits(bytes, pinned, MIB) end)
row("R22b", "R22", "async copy to pinned memory waits", "no", function() return copy_waits(pinned, bytes, MIB) end)
row("R24a", "R24", "mr.memset of device memory waits", "no", function()
  local t, s = bytes(KIB), blocking()
  M.wait_for_all()
  return waits(s, mr.memset, t, 1)
end)
row("R24b", "R24", "mr.memset of pinned memory waits", "yes", function()
  local t, s = pinned(KIB), blocking()
  M.wait_for_all()
  return waits(s, mr.memset, t, 1)
end)
row("R24c", "R24", "mr.memset_async of pinned memory waits", "no", function()
  local t, s = pinned(KIB), nonblocking()
  M.wait_for_all()
  return waits(s, mr.memset_async, t, 1, { stream = s })
end)
row("R24d", "R23", "async copy from host to host waits for its stream", "yes",
  function() return copy_waits(pageable, pageable, KIB) end)
row("R24e", "R23", "... and its values are there on return", "yes", function()
  local s, to, from = nonblocking(), pageable(1), pageable(1)
  from[1] = 7
  mr.spin{ms = 1, stream = s}
  mr.memcpy_async(to, from, { stream = s })
  local value = to[1]:item()
  M.wait_for_all()
  return yes_no(value == 7)
end)

-- ---------------------------------------------------------------- P5: what making and freeing wait for

-- Pinned memory of a size that was never asked for, so that no cache has it.
local kept, fresh = {}, 100 * KIB
local function new_pinned()
  fresh = fresh + fresh // 4
  return mr.empty(fresh, { dtype = "u8", pinned = true })
end

row("P5a", "R7", "allocating device memory waits for a busy stream", "no",
  function() return waits(nonblocking(), mr.empty, MIB) end)
row("P5b", "R7", "allocating pinned memory does", "no", function()
  return waits(nonblocking(), function() kept[#kept + 1] = new_pinned() end)
end)
row("P5c", "R27", "t:free() does", "no", function()
  local t = bytes(MIB)
  M.wait_for_all()
  return waits(nonblocking(), t.free, t)
end)
row("P5d", "R27", "t:free{sync=true} of memory from the pool does", "no", function()
  local t = bytes(MIB)
  M.wait_for_all()
  return waits(nonblocking(), t.free, t, { sync = true })
end)
row("P5e", "R7", "making a stream does", "no", function() return waits(nonblocking(), mr.stream) end)
row("P5f", "R9", "closing the busy stream does", "no", function()
  local s = nonblocking()
  return waits(s, s.close, s)
end)
row("P5g", "R7", "making, recording and closing an event does", "no", function()
  local s = nonblocking()
  return waits(s, function() mark(s):close() end)
end)
row("P5h", "R27", "mr.memory.empty_cache() does, with pinned memory to give back", nil, function()
  new_pinned():free()
  M.wait_for_all()
  return waits(nonblocking(), mr.memory.empty_cache)
end)

-- ---------------------------------------------------------------- P6: the launch queue

local LONG, MOST = 20, 5000
local deepest = 0 -- what depth() found: noise can only make it less

-- How many launches behind a long kernel return at once.
local function depth()
  local s, x = nonblocking(), mr.zeros(1)
  M.wait_for_all()
  local count = 0
  s:run(function()
    mr.spin{ms = LONG}
    while count < MOST and took(x.add_, x, 1) < LONG / 4 do count = count + 1 end
  end)
  M.wait_for_all()
  deepest = math.max(deepest, count)
  return count
end

row("P6a", "R56", "behind a long kernel, the first launch to wait", "1022", function()
  local count = depth()
  return count < MOST and ("%d"):format(count + 1) or "none of " .. MOST
end)

-- Which of so many calls behind a long kernel is the first to wait. prepare(s) returns the call, and what has to be
-- done just before.
local function first_to_wait(count, prepare)
  local s = nonblocking()
  local call, start = prepare(s)
  M.wait_for_all()
  if start then start() end
  mr.spin{ms = LONG, stream = s}
  local at
  for i = 1, count do
    if took(call) > LONG / 4 then
      at = i
      break
    end
  end
  M.wait_for_all()
  return at and ("%d"):format(at) or "none"
end

local function records(s)
  local e = mr.event()
  return function() e:record(s) end
end
local function event_waits(s)
  local e, other = mr.event(), nonblocking()
  return function() s:wait_event(e) end, function()
    mr.spin{ms = LONG, stream = other}
    e:record(other)
  end
end
local function copies(s)
  local to, from, opts = bytes(16), pinned(16), { stream = s }
  return function() mr.memcpy_async(to, from, opts) end
end
local function fills(s)
  local t, opts = bytes(16), { stream = s }
  return function() mr.memset_async(t, 1, opts) end
end
local function allocations(s)
  local list, opts = {}, { dtype = "u8", stream = s }
  return function() list[#list + 1] = mr.empty(16, opts) end
end
local function host_functions(s)
  local function nothing() end
  return function() s:host_func(nothing) end
end

row("P6b", "R56", "... of 20000 records", "none",
  function() return first_to_wait(20000, records) end)
row("P6c", "R56", "... of 3000 small copies", nil, function() return first_to_wait(3000, copies) end)
row("P6d", "R56", "... of 3000 fills (mr.memset_async)", nil,
  function() return first_to_wait(3000, fills) end)
row("P6e", "R56", "... of 20000 waits for a pending event", nil,
  function() return first_to_wait(20000, event_waits) end)
row("P6f", "R56", "... of 3000 allocations", nil, function() return first_to_wait(3000, allocations) end)
row("P6g", "R56", "... of 200 host functions", nil,
  function() return first_to_wait(200, host_functions) end)

-- Whether one of 64 more calls waits when one more launch would.
local function waits_when_full(prepare, elsewhere)
  if deepest == 0 then depth() end
  if deepest >= MOST then return "never full" end
  local s, x = nonblocking(), mr.zeros(1)
  local call, start = prepare(elsewhere and nonblocking() or s)
  M.wait_for_all()
  if start then start() end
  local longest = 0
  s:run(function()
    mr.spin{ms = LONG}
    for _ = 1, deepest do x:add_(1) end
  end)
  for _ = 1, 64 do
    longest = math.max(longest, took(call))
    if longest > LONG / 4 then break end
  end
  M.wait_for_all()
  return yes_no(longest > LONG / 4)
end

local function launches(s)
  local x = mr.zeros(1)
  local function add() x:add_(1) end
  return function() mr.with(s, add) end
end

row("P6h", "R56", "with the queue full, a record waits", nil, function() return waits_when_full(records) end)
row("P6i", "R56", "... a wait for an event", nil, function() return waits_when_full(event_waits) end)
row("P6j", "R56", "... an async copy", nil, function() return waits_when_full(copies) end)
row("P6k", "R56", "... a fill", nil, function() return waits_when_full(fills) end)
row("P6l", "R56", "... an allocation", nil, function() return waits_when_full(allocations) end)
row("P6m", "R56", "... a host function", nil, function() return waits_when_full(host_functions) end)
row("P6n", "R56", "... a launch in another stream", nil, function() return waits_when_full(launches, true) end)

-- ---------------------------------------------------------------- P7: kernels at once

-- How many times the length of one do kernels take that are all of one block, so many in each of so many streams?
local function times(streams, each)
  local list = {}
  for i = 1, streams do list[i] = nonblocking() end
  M.wait_for_all()
  local ms = took(function()
    for _ = 1, each do
      for i = 1, streams do mr.spin{ms = 5, stream = list[i]} end
    end
    mr.synchronize()
  end)
  for i = 1, streams do list[i]:close() end
  return ("%d x"):format(math.floor(ms / 5 + 0.25))
end
row("P7a", "R53", "128 kernels of one block in 128 streams, of the time of one", "1 x",
  function() return times(128, 1) end)
row("P7b", "R53", "129 in 129 streams", "2 x", function() return times(129, 1) end)
row("P7c", "R55", "two each in 64 streams, and no stream delays another", "2 x",
  function() return times(64, 2) end)

-- ---------------------------------------------------------------- P8, R13, R17: what queries and events say

row("P8", "R51", "a query that says \"not done\" makes a later call fail", "no", function()
  local s = nonblocking()
  mr.spin{ms = 1, stream = s}
  assert(not s:query())
  local ok = pcall(function()
    mr.zeros(1):add_(1)
    M.wait_for_all()
  end)
  return yes_no(not ok)
end)
row("R13a", "R13", "query of an event never recorded", "done", function() return done_busy(mr.event():query()) end)
row("R13b", "R13", "its synchronize waits", "no", function()
  local e = mr.event()
  return waits(nonblocking(), e.synchronize, e)
end)
row("R13c", "R17", "elapsed time of one never recorded", "invalid-handle", function()
  return code(function() return mr.event{timing = true}:elapsed_time(mr.event{timing = true}) end)
end)
row("R17a", "R17", "... of one that is pending", "not-ready", function()
  local s = nonblocking()
  local first = mark(s)
  mr.spin{ms = BUSY, stream = s}
  local answer = code(first.elapsed_time, first, mark(s))
  M.wait_for_all()
  return answer
end)
row("R17b", "R17", "... of one without timing", "invalid-handle", function()
  local s = nonblocking()
  local first, last = mr.event():record(s), mr.event():record(s)
  M.wait_for_all()
  return code(first.elapsed_time, first, last)
end)

-- ---------------------------------------------------------------- P11: host functions

row("P11", "R46", "host function on an idle stream, call to end of a synchronize", 12, function()
  local s = nonblocking()
  local function once()
    M.wait_for_all()
    return 1e3 * took(function()
      s:host_func(function() end)
      s:synchronize()
    end)
  end
  once()
  return M.median_of(11, once)
end, { unit = "us", within = 1.5 })

-- ---------------------------------------------------------------- P12: reuse of memory

-- Whether an allocation of stream `to` gets the memory that was freed behind pending work of another one.
local function reused(between, same_stream, options)
  M.wait_for_all()
  mr.memory.empty_cache()
  local a, b, c = nonblocking(), nonblocking(), nonblocking()
  if same_stream then b = a end
  local t = bytes(MIB, { stream = a })
  local address = t.data_ptr
  mr.spin{ms = BUSY / 2, stream = a}
  t:free(options)
  if between then between(a, b, c) end
  local u = bytes(MIB, { stream = b })
  local same = u.data_ptr == address
  M.wait_for_all()
  u:free()
  M.wait_for_all()
  return same and "same address" or "another"
end
row("P12a", "R29", "memory freed behind pending work, allocated in the same stream", "same address",
  function() return reused(nil, true) end)
row("P12b", "R30", "... in another stream", "another", function() return reused() end)
row("P12c", "R30", "... in another stream that an event puts behind the free", "same address",
  function() return reused(function(a, b) b:wait_event(a:record_event()) end) end)
row("P12d", "R30", "... in another stream once the free is done, not waited for", "same address",
  function()
    return reused(function(_, _, c)
      mr.spin{ms = BUSY, stream = c}
      c:synchronize()
    end)
  end)

row("P12e", "R27", "memory freed by t:free{sync=true} under pending work, allocated in another stream", "same address",
  function() return reused(nil, false, { sync = true }) end)

-- ---------------------------------------------------------------- P10, P14, R10: two devices

local function two()
  local d0, d1 = mr.device(0), mr.device(1)
  return mr.stream{device = d0}, mr.stream{device = d1}
end
local TWO = { devices = 2 }

row("R10", "R10", "mr.synchronize of one device waits for another", "no", function()
  local s0, s1 = two()
  mr.spin{ms = 0.1, stream = s0}
  return waits(s1, mr.synchronize, 0)
end, TWO)
row("P10", "R17", "elapsed time between two devices", "invalid-handle", function()
  local s0, s1 = two()
  local first, last = mark(s0), mark(s1)
  M.wait_for_all()
  return code(first.elapsed_time, first, last)
end, TWO)
row("P14a", "R58", "a kernel for another device's stream runs on", "that device", function()
  local s0, s1 = two()
  mr.with(mr.device(0), function() mr.spin{ms = BUSY, stream = s1} end)
  local idle, busy = s0:query() and mr.default_stream(0):query(), not s1:query()
  M.wait_for_all()
  return idle and busy and "that device" or "the current one"
end, TWO)
row("P14b", "R14", "recording an event on another device's stream", "invalid-handle", function()
  local s0, s1 = two()
  local e = mr.event():record(s0)
  local answer = code(e.record, e, s1)
  M.wait_for_all()
  return answer
end, TWO)
row("P14c", "R58", "waiting for another device's event holds the stream up", "yes", function()
  local s0, s1 = two()
  mr.spin{ms = BUSY, stream = s0}
  s1:wait_event(s0:record_event())
  local ms = took(s1.synchronize, s1)
  M.wait_for_all()
  return yes_no(ms > BUSY / 2)
end, TWO)
row("P14d", "R59", "enabling peer access twice is an error of its own", "yes", function()
  local d0, d1 = mr.device(0), mr.device(1)
  if not d0:can_access_peer(d1) then return "no access" end
  pcall(d0.enable_peer_access, d0, d1)
  return yes_no(code(d0.enable_peer_access, d0, d1) == "peer-access-already-enabled")
end, TWO)

-- ---------------------------------------------------------------- what nobody has asked yet

row("O1", "R54", "an mr.op of three waves and 6 ms takes", nil, function()
  local s = nonblocking()
  M.wait_for_all()
  return M.on_device(s, 0.1, function() mr.op{blocks = WAVES * device.sm_count, ms = 6, stream = s} end)
end, { unit = "ms" })

-- How much of the time that they take in one stream do pieces of work take in two?
local function share(work, count)
  local a, b = nonblocking(), nonblocking()
  local function run(second)
    M.wait_for_all()
    mr.spin{ms = 1, stream = a}
    local began = mark(a)
    b:wait_event(began)
    for _ = 1, count do
      work(a)
      work(second)
    end
    local end_a, end_b = mark(a), mark(b)
    M.wait_for_all()
    return math.max(end_a - began, end_b - began)
  end
  work(a)
  work(b)
  return run(b) / run(a)
end
local function half_op(part)
  local blocks = math.max(1, math.floor(device.sm_count * part))
  return function(s) mr.op{blocks = blocks, ms = 1, stream = s} end
end
row("O2", "R54", "ops on half the multiprocessors: time in two streams of that in one", nil,
  function() return share(half_op(1 / 2), 4) end, { unit = "", within = 1.2 })
row("O3", "R54", "... ops on three quarters", nil,
  function() return share(half_op(3 / 4), 1) end, { unit = "", within = 1.2 })

local function product(n)
  local a, b, out = mr.rand(n, n):sub_(0.5), mr.rand(n, n):sub_(0.5), {}
  M.wait_for_all()
  return function(s)
    out[s] = out[s] or { out = mr.empty(n, n, { stream = s }) }
    mr.with(s, a.mm, a, b, out[s])
  end
end
row("O4", "R54", "... products of 1024 x 1024, which half fill the device", nil,
  function() return share(product(1024), M.virtual and 2 or 8) end, { unit = "", within = 1.2 })
row("O5", "R54", "... products of 2048 x 2048, which fill it, with threads to spare", nil,
  function() return share(product(2048), M.virtual and 1 or 4) end, { unit = "", within = 1.2 })
row("O6", "R54", "a kernel of one thread starts beside ops on all multiprocessors", nil, function()
  local s, t = nonblocking(), nonblocking()
  M.wait_for_all()
  local began = mark(s)
  mr.op{blocks = device.sm_count, ms = BUSY, stream = s}
  repeat until began:query()
  mr.spin{ms = 0.1, stream = t}
  local finish = mark(t)
  M.wait_for_all()
  return yes_no(finish - began < BUSY / 2)
end)
row("O7", "R15", "event to kernel, another stream, beyond the same stream", nil, function()
  local HOPS = 50
  local a, b, e, f = nonblocking(), nonblocking(), mr.event(), mr.event()
  local x = mr.zeros(256)
  local function add() x:add_(1) end
  M.wait_for_all()
  local function hops(other)
    return M.on_device(a, 2, function()
      for _ = 1, HOPS do
        mr.with(a, add)
        e:record(a)
        other:wait_event(e)
        mr.with(other, add)
        f:record(other)
        a:wait_event(f)
      end
    end)
  end
  hops(b)
  return M.median_of(11, function() return hops(b) - hops(a) end) * 1e3 / (2 * HOPS)
end, { unit = "us", within = 1.5 })

-- ---------------------------------------------------------------- asking

-- A lost device answers nothing any more: a fresh one does, for the next question.
local function recover()
  if not pcall(M.wait_for_all) then
    pcall(mr.reset)
    here, there = nil, nil
    legacy, per_thread = mr.default_stream(), mr.per_thread_stream()
  end
end

-- The answer as text (of a number, with all its digits), or the number itself.
local function ask(r)
  if mr.device_count() < r.devices then return "needs two devices" end
  local answers, count = {}, {}
  for round = M.virtual and 1 or 0, ROUNDS do
    collectgarbage()
    collectgarbage("stop") -- what it frees would be in the way of what is measured
    local ok, answer = pcall(r.ask)
    collectgarbage("restart")
    if not ok then
      recover()
      return "error: " .. tostring(answer):gsub("^%S+:%d+: ", ""):gsub("%s+", " ")
    end
    if round > 0 then
      answers[#answers + 1] = answer
      count[answer] = (count[answer] or 0) + 1
    end
  end
  if r.unit then return M.median(answers) end
  local best
  for answer, n in pairs(count) do
    if not best or n > count[best] then best = answer end
  end
  return count[best] == #answers and best or best .. " ?"
end

local NOT_ASKED = "-"

local function is_open(answer)
  return answer == nil or answer == NOT_ASKED or answer == "needs two devices"
end

-- Whether two answers to the question are the same, as far as both are answers.
local function agree(r, a, b)
  if is_open(a) or is_open(b) then return true end
  local x, y = tonumber(a), tonumber(b)
  if not (r.unit and x and y) then return a == b end -- words
  if x == y then return true end
  local low, high = math.min(x, y), math.max(x, y)
  return low > 0 and high / low <= r.within
end

local function show(r, answer)
  if answer == nil then return NOT_ASKED end
  if tostring(answer):find("^error: ") then return "error" end -- told below the table
  local value = r.unit and tonumber(answer)
  if not value then return tostring(answer) end
  return ((value >= 100 and "%.0f " or "%.3g ") .. r.unit):format(value):gsub(" $", "")
end

-- ---------------------------------------------------------------- which

local raw, wanted = false, {}
for _, word in ipairs(arg) do
  if word == "--raw" then raw = true else wanted[#wanted + 1] = word end
end

local function choose()
  local by_id, chosen = {}, {}
  for _, r in ipairs(rows) do by_id[r.id] = r end
  for _, id in ipairs(wanted) do
    chosen[#chosen + 1] = by_id[id] or error("there is no question " .. id, 0)
  end
  if #wanted > 0 then rows = chosen end
end

-- ---------------------------------------------------------------- columns

local function answer_all()
  local answers = {}
  for _, r in ipairs(rows) do answers[r.id] = ask(r) end
  return answers
end

-- The answers of the virtual GPU, from a process of its own: a process has one machine.
local function answer_virtually()
  local count = math.min(2, mr.device_count())
  local text = M.run("--device", "virtual:" .. count, arg[0], "--raw", table.unpack(wanted))
  local answers = {}
  for line in text:gmatch("[^\n]+") do
    local id, _, answer = line:match("^([^\t]*)\t([^\t]*)\t([^\t]*)")
    if id then answers[id] = answer end
  end
  return answers
end

-- The word for programs: "same", "open" (nothing to compare with), "expected" (there is a reason), "differs".
local function verdict(r, answer)
  if is_open(answer) or r.recorded == nil then return "open" end
  if agree(r, answer, r.recorded) then return "same" end
  return M.virtual and r.why and "expected" or "differs"
end

local function print_raw(answers)
  for _, r in ipairs(rows) do
    local answer = answers[r.id]
    local text = math.type(answer) and ("%.6g"):format(answer) or answer
    print(table.concat({ r.id, verdict(r, answer), text, tostring(r.recorded or NOT_ASKED) }, "\t"))
  end
end

local function print_columns(columns)
  local lines, reasons, errors = { { "", "", "rule", "question" } }, {}, {}
  for _, column in ipairs(columns) do table.insert(lines[1], column.name) end
  for _, r in ipairs(rows) do
    local line, differs = { "", r.id, r.rule, r.question }, false
    for i, column in ipairs(columns) do
      local answer = column.answers[r.id]
      line[#line + 1] = show(r, answer)
      if line[#line] == "error" then errors[#errors + 1] = ("%s, %s: %s"):format(r.id, column.name, answer) end
      for j = 1, i - 1 do
        differs = differs or not agree(r, columns[j].answers[r.id], answer)
      end
    end
    if differs then
      line[1] = "*"
      if r.why then reasons[#reasons + 1] = ("%s: %s"):format(r.id, r.why) end
    end
    lines[#lines + 1] = line
  end
  M.print_table(lines)
  if #errors > 0 then print("\nNo answer:\n  " .. table.concat(errors, "\n  ")) end
  if #reasons > 0 then print("\nWhy the virtual GPU answers otherwise:\n  " .. table.concat(reasons, "\n  ")) end
  print("\nNot asked: graphs and capture (P9, R35 to R45), which this version does not have.")
end

choose()
local answers = answer_all()
if raw then
  print_raw(answers)
else
  local recorded = {}
  for _, r in ipairs(rows) do recorded[r.id] = r.recorded end
  local columns = { { name = mr.backend, answers = answers } }
  if not M.virtual then table.insert(columns, { name = "virtual", answers = answer_virtually() }) end
  table.insert(columns, { name = "H200, recorded", answers = recorded })
  print(device.name)
  print_columns(columns)
end
