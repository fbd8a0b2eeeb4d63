-- Host functions among everything else that a stream may hold, and nothing may hang, on the virtual GPU and on a real
-- one. There each step says what it does before it does it, so the last line tells what hung.
-- timeout: 120
--
--     millrace --device cuda tests/gpu/host_functions.lua
--     MILLRACE_HOST_FUNCTIONS=callback millrace --device cuda tests/gpu/host_functions.lua   the other form
--     millrace --device cuda tests/gpu/host_functions.lua SEED [SUBMISSIONS [STEP]]
--         another random mix; only the steps that hold this text
local mr = require "millrace"

local seed, submissions = tonumber(arg and arg[1]) or 1, tonumber(arg and arg[2]) or 10000
local only = arg and arg[3]
math.randomseed(seed)

-- Says what comes, does it, says how long it took.
local function step(what, fn)
  if only and not what:find(only, 1, true) then return end
  io.write(what, " ... ")
  io.flush()
  local before = mr.clock()
  local note = fn()
  print(("%.1f ms%s"):format(mr.clock() - before, note and ", " .. note or ""))
end

local function check(got, expected, what)
  if got ~= expected then
    error(("%s: got %s, expected %s"):format(what, got, expected), 2)
  end
end

local called = 0
local function count() called = called + 1 end
local function called_since(fn)
  called = 0
  fn()
  return called
end

local s, other = mr.stream(), mr.stream()
local x = mr.zeros(16)
mr.synchronize()

-- A kernel of 30 ms, and a host function behind it: what `fn` submits comes while that is pending.
local function behind_a_pending_function(fn)
  check(called_since(function()
    mr.spin{ms = 30, stream = s}
    s:host_func(count)
    fn()
    mr.synchronize()
  end), 1, "the function ran")
end

print(mr.backend, "host functions: " .. (os.getenv "MILLRACE_HOST_FUNCTIONS" or "as the device allows"))

-- ---------------------------------------------------------------- numbers

step("300 functions alone", function()
  check(called_since(function()
    for _ = 1, 300 do s:host_func(count) end
    s:synchronize()
  end), 300, "calls")
end)

for _, pairs_of in ipairs{ 55, 60, 600 } do
  step(pairs_of .. " pairs of add_ and function", function()
    check(called_since(function()
      s:run(function()
        for _ = 1, pairs_of do
          x:add_(1)
          s:host_func(count)
        end
      end)
      s:synchronize()
    end), pairs_of, "calls")
  end)
end

step("60 pairs on the default stream, and 60 of spin", function()
  local default = mr.default_stream()
  check(called_since(function()
    for _ = 1, 60 do
      x:add_(1)
      default:host_func(count)
    end
    for _ = 1, 60 do
      mr.spin{ms = 0.01, stream = s}
      s:host_func(count)
    end
    mr.synchronize()
  end), 120, "calls")
end)

step("2000 add_ behind one function", function()
  behind_a_pending_function(function()
    s:run(function() for _ = 1, 2000 do x:add_(1) end end)
  end)
end)

step("200 streams with a function each", function()
  check(called_since(function()
    local streams = {}
    for i = 1, 200 do
      streams[i] = mr.stream()
      mr.spin{ms = 0.1, stream = streams[i]}
      streams[i]:host_func(count)
    end
    mr.synchronize()
    for _, stream in ipairs(streams) do stream:close() end
  end), 200, "calls")
end)

step("a function and back, 500 times", function()
  s:synchronize()
  local before = mr.clock()
  for _ = 1, 500 do
    s:host_func(count)
    s:synchronize()
  end
  return ("%.1f us each"):format((mr.clock() - before) * 2)
end)

-- ---------------------------------------------------------------- what may pend behind one

local BEHIND = {
  ["5000 records"] = function()
    local e = mr.event()
    for _ = 1, 5000 do e:record(s) end
  end,
  ["2000 records and waits, to and fro"] = function()
    for _ = 1, 1000 do
      other:wait_event(s:record_event())
      s:wait_event(other:record_event())
    end
  end,
  ["2000 allocations and frees"] = function()
    s:run(function() for _ = 1, 2000 do mr.empty(1000):free() end end)
  end,
  ["2000 tensors freed at once"] = function()
    local ts = {}
    for i = 1, 2000 do ts[i] = mr.empty(10, { stream = s }) end
    s:host_func(function() end)
    for i = 1, 2000 do ts[i]:free() end
  end,
  ["600 frees of what another stream uses"] = function()
    local ts = {}
    for i = 1, 600 do ts[i] = mr.empty(10, { stream = other }):record_stream(s) end
    for i = 1, 600 do ts[i]:free() end
  end,
  ["100 new streams, closed again"] = function()
    for _ = 1, 100 do
      local new = mr.stream()
      new:run(function() x:clone() end)
      new:close()
    end
  end,
  ["new pinned memory of 8 MiB"] = function() mr.zeros(1 << 21, { pinned = true }) end,
  ["60 randperm of 65,536"] = function()
    s:run(function() for _ = 1, 60 do mr.randperm(1 << 16) end end)
  end,
  ["a product"] = function()
    local a = mr.ones(256, 256)
    check((a:matmul(a))[1][1]:item(), 256, "the product")
  end,
}
local names = {}
for name in pairs(BEHIND) do names[#names + 1] = name end
table.sort(names)
for _, name in ipairs(names) do
  step(name .. " behind a pending function", function() behind_a_pending_function(BEHIND[name]) end)
end

for _, size in ipairs{ 16, 1 << 15, 1 << 20 } do
  for _, kind in ipairs{ "pageable", "pinned" } do
    step(("copies of %d elements, %s, beside a pending function"):format(size, kind), function()
      local host = mr.full({ size }, 3, { dtype = "f32", device = "cpu", pinned = kind == "pinned" })
      local device = mr.zeros(size, { stream = other })
      other:synchronize()
      behind_a_pending_function(function()
        mr.memcpy_async(device, host, { stream = other })
        mr.memcpy_async(host, device, { stream = other })
        other:synchronize()
        mr.memcpy(device, host)
        mr.memcpy(host, device)
        mr.synchronize()
        check(host[size]:item(), 3, "the copy")
      end)
    end)
  end
end

-- ---------------------------------------------------------------- order

-- The function writes pinned memory; what comes after it in any order that CUDA gives must see that. Where only the
-- default stream's barrier gives the order, a kernel reads. The driver lets a small copy from pinned memory read its
-- source before (seen on an H200 with plain CUDA C, too: docs/semantics.md).
local function order(what, from, to, link)
  step("order: " .. what, function()
    local pinned = mr.zeros(1, { pinned = true })
    local seen = mr.zeros(1)
    mr.synchronize()
    for i = 1, 200 do
      mr.spin{ms = 0.02, stream = from}
      from:host_func(function() pinned[1] = i end)
      if link then
        link(from, to)
        mr.memcpy_async(seen, pinned, { stream = to })
        to:synchronize()
        check(seen:item(), i, "after the function")
      else
        local again = mr.zeros(1)
        mr.op{name = "take", reads = { pinned }, writes = { seen }, stream = to}
        to:synchronize()
        mr.op{name = "take", reads = { pinned }, writes = { again }, stream = to}
        to:synchronize()
        check(seen:item(), again:item(), "after the function")
      end
    end
  end)
end
local blocking = mr.stream{nonblocking = false}
local function nothing() end
order("in one stream", s, s, nothing)
order("by an event", s, other, function(from, to) to:wait_event(from:record_event()) end)
order("a blocking stream, then the default stream", blocking, mr.default_stream())
order("the default stream, then a blocking stream", mr.default_stream(), blocking)
order("the stream of the thread, then the default stream", mr.per_thread_stream(), mr.default_stream())

-- A kernel's values are there when the function runs, and the kernel behind it has not begun.
step("order: a function between two kernels", function()
  local pinned = mr.zeros(1, { pinned = true })
  local y = mr.zeros(1)
  mr.synchronize()
  local wrong = 0
  s:run(function()
    for i = 1, 500 do
      y:fill_(i)
      mr.memcpy_async(pinned, y, { stream = s })
      s:host_func(function() if pinned:item() ~= i then wrong = wrong + 1 end end)
    end
  end)
  s:synchronize()
  check(wrong, 0, "values that were not its own")
end)

-- ---------------------------------------------------------------- random mixes

-- The expected contents of each stream's memory once all its work is done. `into` is pinned and written by functions,
-- `device` is copied and added to, `out` is pinned and read by functions.
local function new_lane(number)
  local stream = mr.stream{nonblocking = number % 3 ~= 0}
  return { stream = stream, event = stream:record_event(), submitted = 0, called = 0,
    into = mr.zeros(1, { dtype = "i64", pinned = true }), now_into = 0,
    device = mr.zeros(1, { dtype = "i64", stream = stream }), now_device = 0,
    out = mr.zeros(1, { dtype = "i64", pinned = true }), now_out = 0 }
end

local function submit_function(lane)
  lane.submitted = lane.submitted + 1
  local number, sees, gives = lane.submitted, lane.now_out, math.random(1000000)
  lane.now_into = gives
  lane.stream:host_func(function()
    lane.called = lane.called + 1
    check(lane.called, number, "the order of functions")
    check(lane.out:item(), sees, "what a function sees")
    lane.into[1] = gives
  end)
end

local MOVES = {
  { 30, function(lane)
    lane.stream:run(lane.device.add_, lane.device, 1)
    lane.now_device = lane.now_device + 1
  end },
  { 25, submit_function },
  { 12, function(lane)
    mr.memcpy_async(lane.device, lane.into, { stream = lane.stream })
    lane.now_device = lane.now_into
  end },
  { 12, function(lane)
    mr.memcpy_async(lane.out, lane.device, { stream = lane.stream })
    lane.now_out = lane.now_device
  end },
  { 8, function(lane) lane.event:record(lane.stream) end },
  { 6, function(lane, another) lane.stream:wait_event(another.event) end },
  { 2, function(lane, another) lane.stream:wait_stream(another.stream) end },
  { 2, function(lane) mr.empty(1000, { stream = lane.stream }):free() end },
  { 1, function(lane) lane.stream:query() end },
  { 1, function(lane)
    if math.random(5) == 1 then lane.stream:synchronize() end
  end },
  { 1, function(lane)
    if math.random(5) == 1 then
      lane.stream:run(function() check(lane.device:item(), lane.now_device, "what the host sees") end)
    end
  end },
}
local total = 0
for _, move in ipairs(MOVES) do total = total + move[1] end
local function random_move()
  local n = math.random(total)
  for _, move in ipairs(MOVES) do
    n = n - move[1]
    if n <= 0 then return move[2] end
  end
end

for _, streams in ipairs{ 1, 2, 5, 8 } do
  step(("%d random submissions on %d streams, seed %d"):format(submissions, streams, seed), function()
    local lanes = {}
    for i = 1, streams do lanes[i] = new_lane(i) end
    mr.synchronize()
    for _ = 1, submissions do random_move()(lanes[math.random(streams)], lanes[math.random(streams)]) end
    mr.synchronize()
    local functions = 0
    for _, lane in ipairs(lanes) do
      check(lane.called, lane.submitted, "functions that ran")
      check(lane.into:item(), lane.now_into, "the end of `into`")
      check(lane.device:item(), lane.now_device, "the end of `device`")
      check(lane.out:item(), lane.now_out, "the end of `out`")
      functions = functions + lane.called
      lane.stream:close()
    end
    return functions .. " functions"
  end)
end

-- ---------------------------------------------------------------- the rest

step("launch-blocking", function()
  local before = mr.launch_blocking(true)
  check(called_since(function()
    s:run(function()
      for _ = 1, 100 do
        s:host_func(count)
        x:add_(1)
      end
    end)
  end), 100, "calls")
  mr.launch_blocking(before)
end)

step("a stream closed with functions pending", function()
  check(called_since(function()
    local closed = mr.stream()
    for _ = 1, 100 do
      mr.spin{ms = 0.1, stream = closed}
      closed:host_func(count)
    end
    closed:close()
    mr.synchronize()
  end), 100, "calls")
end)

step("a reset with functions pending", function()
  local abandoned = mr.stream()
  check(called_since(function()
    for _ = 1, 10 do
      mr.spin{ms = 1, stream = abandoned}
      abandoned:host_func(count)
    end
    mr.reset()
  end), 0, "calls")
end)

step("and after it", function()
  local new = mr.stream()
  check(called_since(function()
    new:host_func(count)
    new:synchronize()
  end), 1, "calls")
end)

print "1 passed, 0 failed"
mr.spin{ms = 5}
mr.default_stream():host_func(count) -- the end does not wait for it
