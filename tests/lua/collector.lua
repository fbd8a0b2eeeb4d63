-- options: --device virtual:2
-- virtual only: how finalizers and the collector meet a call is the same on every backend
-- The collector may run, and with it finalizers, wherever a call makes a Lua value. Objects that the call has taken out
-- of the script's tables stay, and lists that it walks over do not change under it. Under make check-san the collector
-- runs at each of these moments.
-- not checked: tensors are collected while streams use them
-- not recorded: each of its many collections would walk over what the recorder keeps
local lu = require "luaunit"
local mr = require "millrace"

local TIMES = 300

local function weak(t) return setmetatable(t, { __mode = "v" }) end

-- Runs `fn` at some collection that is near, or when there have been `more` after that.
local at_collection
function at_collection(fn, more)
  setmetatable({}, { __gc = function()
    if not more or more == 0 then return fn() end
    at_collection(fn, more - 1)
  end })
end

local function hold_nothing() collectgarbage(); collectgarbage() end

TestBorrowed = {}

function TestBorrowed:setUp() collectgarbage("incremental", 50, 1000) end

function TestBorrowed:tearDown()
  collectgarbage("incremental", 200, 100)
  mr.synchronize()
end

-- For each function that takes objects out of a table: that table alone holds them.
local function tensor() return mr.ones(2, 2) end
local stream = mr.stream
local CALLS = {
  zeros = function() mr.zeros(2, weak { stream = stream() }) end,
  full = function() mr.full({ 2 }, 3, weak { stream = stream(), name = "n" .. 1 }) end,
  arange = function() mr.arange(3, weak { stream = stream() }) end,
  linspace = function() mr.linspace(0, 1, 3, weak { stream = stream() }) end,
  eye = function() mr.eye(2, weak { stream = stream() }) end,
  zeros_like = function() mr.zeros_like(tensor(), weak { stream = stream() }) end,
  rand = function() mr.rand(2, weak { stream = stream() }) end,
  randn = function() mr.randn(2, weak { stream = stream() }) end,
  randint = function() mr.randint(1, 5, { 2 }, weak { stream = stream() }) end,
  randperm = function() mr.randperm(4, weak { stream = stream() }) end,
  tensor = function() mr.tensor({ { 1, 2 }, { 3, 4 } }, weak { stream = stream() }) end,
  literal = function() mr.tensor(weak { weak { 1, 2 }, weak { 3, 4 } }) end,
  memcpy_async = function() mr.memcpy_async(tensor(), tensor(), weak { stream = stream() }) end,
  memset_async = function() mr.memset_async(tensor(), 1, weak { stream = stream() }) end,
  spin = function() mr.spin(weak { ms = 0.001, stream = stream() }) end,
  op = function()
    mr.op(weak { reads = weak { tensor(), tensor() }, writes = weak { tensor() }, stream = stream(), ms = 0.001 })
  end,
  op_single = function() mr.op(weak { reads = tensor(), writes = tensor(), ms = 0.001 }) end,
  out = function() tensor():add(1, weak { out = tensor() }) end,
  reduction = function() tensor():sum(weak { dim = weak { 1 }, out = mr.zeros(2) }) end,
  free = function() tensor():free(weak { stream = stream() }) end,
  cat = function() mr.cat(weak { tensor(), tensor() }) end,
  stack = function() mr.stack(weak { tensor(), tensor(), tensor() }, 2) end,
  barrier = function() mr.barrier(weak { stream(), stream(), stream() }) end,
}

local kernel = mr.kernel("__global__ void f(float *x, int n) { if (threadIdx.x < n) x[threadIdx.x] += 1; }")
local both = mr.elementwise("float x -> float y, float z", "y = x; z = 2 * x")
function CALLS.launch_by_index() kernel[weak{ weak{ 1 }, weak{ 32 }, 0, stream() }](tensor(), 4) end
function CALLS.launch() kernel:launch(weak{ grid = 1, block = weak{ 32 }, stream = stream() }, tensor(), 4) end
function CALLS.elementwise() both(tensor(), weak{ out = weak{ tensor(), tensor() }, stream = stream() }) end

for name, call in pairs(CALLS) do
  TestBorrowed["test_" .. name .. "_keeps_what_only_a_weak_table_holds"] = function()
    for _ = 1, TIMES do
      -- Either it was gone before the call, which is an error of the usual kind, or it stays until the end.
      local ok, err = pcall(call)
      local gone = ok or err:find("expected") or err:find("is empty") or err:find("changed while they were read") or
        err:find("needs a grid and a block")
      lu.assertTrue(gone ~= nil, err)
    end
  end
end

function TestBorrowed:test_a_list_that_a_finalizer_empties()
  for _ = 1, TIMES do
    local list = { mr.stream(), mr.stream(), mr.stream() }
    at_collection(function() list[1], list[2], list[3] = nil, nil, nil; collectgarbage() end)
    pcall(mr.barrier, list)
    local parts = { tensor(), tensor() }
    at_collection(function() parts[1], parts[2] = nil, 7 end)
    local ok, err = pcall(mr.cat, parts)
    if not ok then lu.assertStrContains(tostring(err), "cat: ") end
  end
end

function TestBorrowed:test_options_that_a_finalizer_changes()
  for i = 1, TIMES do
    local options = { stream = mr.stream(), dtype = "f64", name = "a name" .. i, device = 0 }
    at_collection(function() for key in pairs(options) do options[key] = 17 end end, i % 3)
    local ok, t = pcall(mr.zeros, 2, options)
    if ok then lu.assertEquals(t.dtype, "f64") end
  end
end

function TestBorrowed:test_what_a_finalizer_closes_or_frees_is_refused()
  for i = 1, TIMES do
    local s, x, out = mr.stream(), tensor(), tensor()
    at_collection(function() s:close() end)
    pcall(mr.zeros, 2, { stream = s, name = "n" .. i })
    at_collection(function() x:free(); pcall(out.free, out) end)
    pcall(x.add, x, 1, { out = out })
    pcall(mr.op, { reads = { x }, writes = { out }, ms = 0.001 })
  end
  lu.assertEquals(mr.ones(3):sum():item(), 3)
end

function TestBorrowed:test_sizes_that_a_finalizer_changes()
  for i = 1, TIMES do
    local x, sizes = mr.zeros(12), { 3, 3, 3, 3 }
    at_collection(function() sizes[3] = -(1 << 40); sizes[4] = 1 << 40 end, i % 5)
    local ok, parts = pcall(x.split, x, sizes)
    if ok then for k = 1, 4 do lu.assertEquals(#parts[k], 3) end end
  end
end

function TestBorrowed:test_the_length_of_a_list_with_holes_is_anything()
  local s, list = mr.stream(), {}
  for bit = 0, 40 do list[1 << bit] = s end
  lu.assertErrorMsgContains("barrier: entry 3 is nil, expected a stream", mr.barrier, list)
end

TestWalks = {}

function TestWalks:tearDown()
  mr.hazard.mode("off")
  mr.hazard.clear()
  mr.synchronize()
end

function TestWalks:test_queues_are_those_of_one_moment()
  local streams = {}
  for i = 1, 8 do streams[i] = mr.stream() end
  for round = 1, 20 do
    for i = 1, 200 do
      streams[i % 8 + 1]:run(function()
        local x = mr.ones(4)
        local _ = x + 1 -- garbage whose free is submitted when it is collected
      end)
    end
    at_collection(mr.synchronize, round)
    for _, queue in ipairs(mr.machine.queues()) do
      local last = 0
      for _, operation in ipairs(queue.pending) do
        lu.assertTrue(operation.seq > last)
        last = operation.seq
      end
    end
    mr.synchronize()
  end
end

function TestWalks:test_queues_of_streams_that_nobody_holds()
  for i = 1, 50 do
    for _ = 1, 4 do mr.spin { ms = 0.01, stream = mr.stream() } end
    at_collection(mr.synchronize, i)
    for _, queue in ipairs(mr.machine.queues()) do lu.assertEquals(tostring(queue.stream):match("^%a+"), "stream") end
  end
end

-- Two hazards at places of their own.
local function race(n)
  local source = ("\n"):rep(n) .. "local s, t, x = ... s:run(x.fill_, x, 1)\nt:run(x.fill_, x, 2)"
  assert(load(source, "=race"))(mr.stream(), mr.stream(), mr.zeros(4))
  mr.synchronize()
end

function TestWalks:test_reports_while_a_finalizer_clears_them()
  mr.hazard.mode("collect")
  local asking -- the round that asks for the reports now; an earlier finalizer may run only later
  for i = 1, 60 do
    hold_nothing()
    mr.hazard.clear()
    for n = 1, 6 do race(n) end
    at_collection(function() if asking == i then mr.hazard.clear() end end, i)
    asking = i
    local reports = mr.hazard.reports()
    asking = nil
    lu.assertTrue(#reports >= 6 or #reports == 0) -- before it was cleared, or after
    for _, report in ipairs(reports) do
      lu.assertStrContains(report.message, report.kind)
      lu.assertStrContains(report.second.where or "collector", report.second.where and "race:" or "collector")
    end
  end
end

function TestWalks:test_a_trace_that_a_finalizer_stops()
  collectgarbage("incremental", 50, 1000)
  for _ = 1, TIMES do
    mr.trace.start()
    at_collection(function() pcall(mr.trace.stop) end)
    local ok, err = pcall(mr.trace.stop)
    if not ok then lu.assertStrContains(err, "no trace is under way") end
    hold_nothing() -- the finalizer's round is over
  end
  collectgarbage("incremental", 200, 100)
end

function TestWalks:test_a_check_inside_a_finalizer_of_the_last_one()
  for _ = 1, 60 do
    local inner
    local outer = mr.hazard.check(function()
      race(1)
      at_collection(function() inner = select(2, pcall(mr.hazard.check, race, 3)) end)
    end)
    lu.assertTrue(#outer >= 1)
    hold_nothing()
    lu.assertTrue(type(inner) == "table" or tostring(inner):find("check") ~= nil)
  end
end

-- Before the host waits or looks, finalizers run if a stream has used memory of another one (hosts.h). What they change
-- holds for the call: an object that they close is refused, and the stream that they make current is used.
local function before_the_wait(finalizer, call)
  local s, e, x = mr.stream(), mr.event { timing = true }, mr.ones(4, 4)
  e:record(s)
  mr.set_stream(mr.stream())
  mr.synchronize()
  hold_nothing()
  collectgarbage("stop")
  local ran = false
  at_collection(function() finalizer(s, e, x); ran = true; collectgarbage() end)
  s:run(function() x:add_(1) end)
  local ok, err = pcall(call, s, e, x)
  collectgarbage("restart")
  mr.set_stream(mr.default_stream())
  lu.assertTrue(ran)
  return ok, err
end

TestBeforeWaits = {}

function TestBeforeWaits:setUp() mr.hazard.mode("collect") end

function TestBeforeWaits:tearDown()
  mr.hazard.mode("off")
  mr.hazard.clear()
  mr.synchronize()
end

local host = { device = "cpu" }
local WAITS = {
  query = { closed = true, call = function(s) return s:query() end },
  synchronize = { closed = true, call = function(s) return s:synchronize() end },
  event_query = { closed = true, call = function(_, e) return e:query() end },
  event_synchronize = { closed = true, call = function(_, e) return e:synchronize() end },
  elapsed_time = { closed = true, call = function(_, e) return e:elapsed_time(e) end },
  synchronize_all = { call = function() return mr.synchronize() end },
  totable = { freed = true, call = function(_, _, x) return x:totable() end },
  to = { freed = true, call = function(_, _, x) return x:to("cpu") end },
  copy = { freed = true, call = function(_, _, x) return x:copy_(mr.ones(4, 4, host)) end },
  memcpy = { freed = true, call = function(_, _, x) return mr.memcpy(x, mr.ones(4, 4, host)) end },
  memcpy_async = { freed = true, closed = true,
    call = function(s, _, x) return mr.memcpy_async(x, mr.ones(4, 4, host), { stream = s }) end },
  memset = { call = function() return mr.memset(mr.ones(4, { pinned = true }), 1) end },
  free = { freed = true, call = function(_, _, x) return x:free { sync = true } end },
  nonzero = { freed = true, call = function(_, _, x) return x:nonzero() end },
  masked_select = { freed = true, call = function(_, _, x) return x:masked_select(x:gt(0)) end },
}

local function expect(is_refused, word, ok, err)
  if is_refused then lu.assertStrContains(tostring(err), word)
  else lu.assertTrue(ok, err) end
end

for name, wait in pairs(WAITS) do
  TestBeforeWaits["test_" .. name .. "_of_what_is_closed"] = function()
    expect(wait.closed, "closed", before_the_wait(function(s, e) s:close(); e:close() end, wait.call))
  end
  TestBeforeWaits["test_" .. name .. "_of_what_is_freed"] = function()
    expect(wait.freed, "freed", before_the_wait(function(_, _, x) x:free() end, wait.call))
  end
  TestBeforeWaits["test_" .. name .. "_while_another_stream_becomes_current"] = function()
    lu.assertTrue(before_the_wait(function() mr.set_stream(mr.default_stream()) end, wait.call))
  end
end

function TestWalks:test_a_profile_that_a_finalizer_resets()
  collectgarbage("incremental", 50, 1000)
  mr.machine.settings { kernel_profile = true }
  local x, counted = mr.zeros(32), mr.kernel("__global__ void f(float *x) { x[threadIdx.x] += 1; }")
  for _ = 1, TIMES // 10 do
    counted[{ 1, 32 }](x)
    mr.synchronize()
    at_collection(function() counted:profile { reset = true } end)
    local profile = counted:profile()
    if profile then lu.assertTrue(profile.launches >= 1 and #profile:lines() > 0) end
    hold_nothing() -- the finalizer's round is over
  end
  mr.machine.settings { kernel_profile = false }
  collectgarbage("incremental", 200, 100)
end

TestCurrent = {}

-- The current stream belongs to the device, and a host function or a finalizer may make another one current
-- while a call waits for the first.
function TestCurrent:test_a_default_stream_that_is_replaced_while_it_is_pushed()
  for _ = 1, 50 do
    for _, get in ipairs { mr.per_thread_stream, mr.default_stream, mr.current_stream } do
      hold_nothing()
      at_collection(mr.reset)
      lu.assertFalse(get().closed)
    end
  end
  mr.reset()
end

function TestCurrent:test_a_current_stream_that_is_replaced_during_a_wait()
  for _ = 1, 100 do
    mr.set_stream(mr.stream())
    local x = mr.ones(4)
    mr.current_stream():host_func(function()
      pcall(mr.set_stream, mr.default_stream())
      hold_nothing()
    end)
    lu.assertEquals(x:totable(), { 1, 1, 1, 1 })
  end
  mr.set_stream(mr.default_stream())
end

function TestCurrent:test_a_current_stream_that_is_replaced_during_an_allocation()
  hold_nothing()
  mr.synchronize()
  mr.machine.settings { memory_bytes = 16 << 20 }
  for _ = 1, 20 do
    mr.set_stream(mr.stream())
    collectgarbage("stop")
    local kept = {}
    at_collection(function() mr.set_stream(mr.default_stream()); hold_nothing() end)
    pcall(function() for _ = 1, 12 do kept[#kept + 1] = mr.ones(1 << 19) end end)
    collectgarbage("restart")
    for i = 1, 12 do kept[i] = nil end
    hold_nothing()
    mr.synchronize()
  end
  mr.set_stream(mr.default_stream())
  hold_nothing()
  mr.synchronize()
  mr.machine.settings { memory_bytes = 0 }
end

function TestCurrent:test_a_current_stream_that_is_replaced_while_a_graph_gets_its_inputs()
  collectgarbage("incremental", 50, 1000)
  local x = mr.ones(4)
  local g = mr.graph(function() return x + 1 end)
  g:inputs { x = x }
  for _ = 1, TIMES // 10 do
    g:inputs { x = mr.ones(4) }
    mr.set_stream(mr.stream())
    at_collection(function() mr.set_stream(mr.default_stream()); hold_nothing() end)
    g:launch()
  end
  collectgarbage("incremental", 200, 100)
  mr.synchronize()
end

-- The first launch on another device than the one on which the module was made makes the module's variables there.
function TestCurrent:test_a_launch_whose_variables_need_a_collection()
  local source = "__device__ float v[1 << 18]; __global__ void f(float *x) { x[threadIdx.x] += 1 + v[0]; }"
  for _, frees in ipairs { false, true } do
    hold_nothing()
    mr.synchronize()
    mr.machine.settings { memory_bytes = 8 << 20 }
    local late, x = mr.kernel(source), mr.zeros(32, { device = 1 })
    collectgarbage("stop")
    mr.set_stream(mr.stream { device = 1 })
    mr.synchronize()
    local ran, filler = false, {}
    while pcall(function() filler[#filler + 1] = mr.empty(1 << 18, { device = 1 }) end) do end
    at_collection(function()
      mr.set_stream(mr.default_stream(1))
      if frees then x:free() end
      ran = true
      collectgarbage()
    end)
    filler = nil -- luacheck: ignore
    local ok, err = pcall(late[{ 1, 32 }], x)
    collectgarbage("restart")
    lu.assertTrue(ran)
    if frees then lu.assertStrContains(tostring(err), "freed")
    else lu.assertTrue(ok, err) end
    mr.reset()
    late, x = nil, nil -- luacheck: ignore
    hold_nothing()
    mr.machine.settings { memory_bytes = 0 }
  end
end

-- A finalizer that runs inside a call makes calls of its own. The outer call keeps its own line and name.
function TestCurrent:test_the_line_and_name_of_a_call_that_runs_a_finalizer()
  hold_nothing()
  mr.synchronize()
  mr.machine.settings { memory_bytes = 1 << 20 }
  collectgarbage("stop")
  local ran = 0
  for _ = 1, 3 do
    local garbage = { mr.empty(1 << 18, { dtype = "u8" }) } -- luacheck: ignore
    setmetatable(garbage, { __gc = function() ran = ran + 1; mr.synchronize() end })
  end
  local line = debug.getinfo(1, "l").currentline + 1
  local x = mr.zeros(1 << 19, { dtype = "u8" })
  lu.assertEquals(ran, 3)
  lu.assertStrContains(tostring(x), ("last written by zeros at %s:%d"):format(debug.getinfo(1, "S").short_src, line))
  x:free()
  lu.assertErrorMsgContains(("made at line %d was freed at"):format(line), x.add_, x, 1)
  collectgarbage("restart")
  hold_nothing()
  mr.synchronize()
  mr.machine.settings { memory_bytes = 0 }
end

os.exit(lu.LuaUnit.run())
