-- virtual only: exact times of the device model
-- not checked: it counts queues, steps back and exact times, which frees by the collector join
-- mr.trace, mr.timeline, and what a trace tells. The analysis itself is tested below Lua
-- (tests/c/test_trace_analysis.c).
local lu = require "luaunit"
local mr = require "millrace"

local a, b = mr.stream { name = "a" }, mr.stream { name = "b" }

local function line() return debug.getinfo(2, "l").currentline end

local function here(n) return "trace.lua:" .. n end

local function find(tr, name, n)
  for _, s in ipairs(tr.spans) do
    if s.name == name then
      n = (n or 1) - 1
      if n == 0 then return s end
    end
  end
  error("no span " .. name)
end

TestTimeline = {}

function TestTimeline.test_returns_a_trace_and_the_results()
  local tr, x, y, z = mr.timeline(function(...) return select("#", ...), nil, ... end, 7)
  lu.assertStrContains(tostring(tr), "trace of 0 spans")
  lu.assertEquals({ x, y, z }, { 1, nil, 7 })
  lu.assertEquals(#tr, 0)
  lu.assertEquals(tr.ms, 0)
end

function TestTimeline.test_waits_for_the_end()
  local at
  local tr = mr.timeline(function()
    at = line() + 1
    mr.spin { ms = 2, stream = a }
  end)
  local spin = find(tr, "spin")
  lu.assertEquals(spin.where, here(at))
  lu.assertEquals(spin.stream, "a")
  lu.assertEquals(spin.engine, "sm")
  lu.assertEquals(spin.kind, "op")
  lu.assertAlmostEquals(spin.finish - spin.start, 2, 1e-9)
  lu.assertTrue(spin.called <= spin.returned and spin.returned <= spin.start)
  lu.assertAlmostEquals(tr.ms, spin.finish, 1e-9)
end

function TestTimeline.test_an_error_passes_and_ends_the_trace()
  lu.assertErrorMsgContains("my own", mr.timeline, function() error("my own") end)
  local object = {}
  local ok, message = pcall(mr.timeline, function() error(object) end)
  lu.assertFalse(ok)
  lu.assertIs(message, object)
  lu.assertErrorMsgContains("function", mr.timeline, 3)
end

function TestTimeline.test_may_be_nested()
  local inner
  local outer = mr.timeline(function()
    mr.spin { ms = 1, stream = a }
    inner = mr.timeline(mr.spin, { ms = 1, stream = b })
  end)
  local function spins(tr)
    local count = 0
    for _, s in ipairs(tr.spans) do count = count + (s.name == "spin" and 1 or 0) end
    return count
  end
  lu.assertEquals(spins(outer), 2)
  lu.assertEquals(find(inner, "spin", 2).stream, "b") -- the first one was pending when it began
  lu.assertNil(find(inner, "spin", 1).called)
end

TestTrace = {}

function TestTrace.test_starts_and_stops_once()
  lu.assertErrorMsgContains("mr.trace.start() begins one", mr.trace.stop)
  mr.trace.start()
  lu.assertErrorMsgContains("mr.trace.stop() ends it", mr.trace.start)
  lu.assertEquals(#mr.trace.stop(), 0)
  lu.assertErrorMsgContains("max", mr.trace.start, { max = 0 })
  lu.assertErrorMsgContains("did you mean `max`", mr.trace.start, { mx = 1 })
end

function TestTrace.test_stop_waits_for_nothing()
  mr.trace.start()
  mr.spin { ms = 5, stream = a }
  local before = mr.clock()
  local tr = mr.trace.stop()
  lu.assertEquals(mr.clock(), before)
  lu.assertNil(find(tr, "spin").start)
  mr.synchronize()
  lu.assertNil(find(tr, "spin").start) -- a trace does not change
end

function TestTrace.test_max_forgets_the_oldest()
  mr.trace.start { max = 10 }
  for _ = 1, 50 do mr.spin { ms = 0.01, stream = a } end
  a:synchronize()
  local tr = mr.trace.stop()
  lu.assertEquals(#tr, 10)
  -- 41, and the free of an earlier test's tensor if the collector comes to it now
  lu.assertTrue(tr.facts.forgotten == 41 or tr.facts.forgotten == 42, tr.facts.forgotten)
end

function TestTrace.test_a_trace_outlives_what_it_is_of()
  local tr = mr.timeline(function()
    local s <close> = mr.stream { name = "of short life" }
    s:run(function() mr.ones(3):add_(1) end)
  end)
  collectgarbage()
  lu.assertEquals(find(tr, "add_").stream, "of short life")
end

function TestTrace.test_spans_are_made_once_and_say_what_they_are()
  local tr = mr.timeline(function() mr.spin { ms = 1, stream = a } end)
  lu.assertIs(tr.spans, tr.spans)
  lu.assertStrContains(tostring(find(tr, "spin")), "spin on a at trace.lua:")
end

function TestTrace.test_the_host_in_a_wait()
  local tr = mr.timeline(function()
    mr.spin { ms = 3, stream = a }
    a:synchronize()
  end)
  local wait = find(tr, "synchronize")
  lu.assertEquals(wait.engine, "host")
  lu.assertEquals(wait.stream, "a")
  lu.assertTrue(wait.waited > 2.9 and wait.finish >= find(tr, "spin").finish)
end

function TestTrace.test_facts_and_streams()
  local tr = mr.timeline(function() mr.spin { ms = 1, stream = a } end)
  lu.assertEquals(tr.facts.backend, "virtual")
  lu.assertEquals(tr.facts.chooser, "timed")
  lu.assertStrContains(tr.facts.how, "virtual time")
  lu.assertEquals(tr.facts.script, "trace.lua")
  lu.assertEquals(tr.streams[1].name, "a")
  lu.assertEquals(tr.streams[1].id, a.id)
end

function TestTrace.test_hazards_are_in_it()
  local x = mr.zeros(16)
  mr.synchronize()
  local tr
  mr.hazard.check(function()
    tr = mr.timeline(function()
      a:run(function()
        mr.spin { ms = 1 }
        x:fill_(1)
      end)
      b:run(function() x:add_(1) end)
    end)
  end)
  local hazard = tr.hazards[1]
  lu.assertEquals(hazard.kind, "read-after-write")
  lu.assertEquals(tr.spans[hazard.first].name, "fill_")
  lu.assertEquals(tr.spans[hazard.second].name, "add_")
  lu.assertStrContains(hazard.fix, "wait")
end

function TestTrace.test_steps_back_are_undone()
  mr.machine.chooser("manual")
  mr.trace.start()
  for i = 1, 3 do mr.op { name = "op" .. i, ms = 1, stream = a } end
  while mr.machine.step(a) do end
  local undone = 0
  repeat
    undone = undone + mr.machine.back()
    local queue = mr.machine.queues()[1]
  until queue and #queue.pending == 2 and queue.pending[1].state == "ready"
  local tr = mr.trace.stop()
  mr.machine.chooser("timed")
  lu.assertTrue(undone >= 2)
  lu.assertNotNil(find(tr, "op1").start)
  lu.assertNil(find(tr, "op2").start)
  lu.assertNil(find(tr, "op3").start)
end

TestTells = {}

local function pipeline()
  return mr.timeline(function()
    mr.spin { ms = 2, stream = a }
    local e = a:record_event()
    b:wait_event(e)
    mr.spin { ms = 1, stream = b }
    mr.op { name = "tail", ms = 1, stream = a }
    b:synchronize()
  end)
end

function TestTells.test_overlap_and_idle()
  local tr = pipeline()
  lu.assertAlmostEquals(tr:overlap(a, "b"), 1, 0.01)
  lu.assertAlmostEquals(tr:overlap("a", a), 3, 0.01)
  local ms, gaps = tr:idle(b)
  lu.assertAlmostEquals(ms, 2, 0.05)
  lu.assertEquals(#gaps, 1)
  lu.assertEquals(gaps[1].cause, "event")
  lu.assertEquals(gaps[1].holder.name, "wait_event")
  lu.assertIs(gaps[1].next, find(tr, "spin", 2))
  lu.assertStrContains(tostring(gaps), "was held by: event, wait_event at trace.lua:")
  lu.assertEquals(tr:overlap(a, mr.stream()), 0) -- it did nothing
  lu.assertErrorMsgContains("it has a, b", tr.overlap, tr, "a", "c")
  lu.assertErrorMsgContains("a stream, or the name of one", tr.idle, tr, 3)
end

function TestTells.test_critical_path()
  local tr = pipeline()
  local path = tr:critical_path()
  local at, names = path[1].start, {}
  for _, link in ipairs(path) do
    at = at + link.ms
    if not link.host then names[#names + 1] = link.span.name end
  end
  lu.assertTrue(at <= tr.ms)
  lu.assertEquals(names[1], "spin")
  lu.assertStrContains(tostring(path), "spin at trace.lua")
end

-- A on the first stream; B on the second, or moved to another one; C on the second, which waits for the first.
local function behind_two(moved)
  local first, second, other = mr.stream(), mr.stream(), mr.stream()
  return mr.timeline(function()
    first:run(function() mr.op{ name = "A", ms = 2 } end)
    local b_stream = moved and other or second
    b_stream:run(function() mr.op{ name = "B", ms = 1 } end)
    second:wait_stream(first)
    second:run(function() mr.op{ name = "C", ms = 1 } end)
  end)
end

-- The gain that the answer promises for another stream is that of the changed program.
function TestTells.test_why_of_one_stream_keeps_the_waits_of_the_stream()
  local tr, moved = behind_two(false), behind_two(true)
  local why = tr:why("B", "C")
  lu.assertEquals(why.cause, "same-stream")
  lu.assertNotStrContains(why.text, "Give") -- which would save nothing
  lu.assertStrContains(why.text, "saves nothing")
  lu.assertAlmostEquals(why.saves_ms, 0, 0.005)
  lu.assertAlmostEquals(find(moved, "C").start, find(tr, "C").start, 0.005)
  local s = mr.stream()
  local row = mr.timeline(function()
    s:run(function()
      for _, name in ipairs{ "P", "Q", "R" } do mr.op{ name = name, ms = 1 } end
    end)
  end)
  lu.assertAlmostEquals(row:why("P", "R").saves_ms, 1, 0.02)
end

function TestTells.test_why()
  local tr = pipeline()
  local why = tr:why("spin", "spin")
  lu.assertEquals(why.cause, "event")
  lu.assertFalse(why.overlapped)
  lu.assertEquals(why.where, find(tr, "wait_event").where)
  lu.assertAlmostEquals(why.saves_ms, 2, 0.05)
  lu.assertEquals(tostring(why), why.text)
  lu.assertStrContains(why.text, "waits for an event")
  local one, two = find(tr, "spin"), find(tr, "spin", 2)
  lu.assertEquals(tr:why(two, one).text, why.text)
  lu.assertEquals(tr:why(two.index, one).text, why.text)
  lu.assertTrue(tr:why("tail", two).overlapped)
  lu.assertErrorMsgContains("no operation \"mm\"", tr.why, tr, "mm", "spin")
  lu.assertErrorMsgContains("no span 99", tr.why, tr, 99, 1)
  lu.assertErrorMsgContains("a span of tr.spans", tr.why, tr, {}, 1)
  lu.assertErrorMsgContains("no operation that a device runs", tr.why, tr, find(tr, "wait_event"), one)
end

function TestTells.test_compare()
  local function work() mr.spin { ms = 1, stream = a } mr.ones(1 << 20):add_(1) end
  local before = mr.timeline(work)
  collectgarbage()
  collectgarbage()
  mr.synchronize()
  mr.reset()
  a, b = mr.stream { name = "a" }, mr.stream { name = "b" }
  mr.machine.model("t4")
  a, b = mr.stream { name = "a" }, mr.stream { name = "b" }
  local after = mr.timeline(work)
  local rows = before:compare(after)
  lu.assertEquals(rows.before_ms, before.ms)
  lu.assertEquals(rows.after_ms, after.ms)
  local spin, add
  for _, row in ipairs(rows) do
    if row.name == "spin" then spin = row end
    if row.name == "add_" then add = row end
  end
  lu.assertAlmostEquals(spin.before_ms, spin.after_ms, 1e-6)
  lu.assertTrue(add.after_ms > 2 * add.before_ms, tostring(rows))
  lu.assertStrContains(tostring(rows), "add_ at trace.lua")
  lu.assertErrorMsgContains("expected a trace", before.compare, before, 3)
end

function TestTells.test_compare_finds_what_an_edit_has_moved()
  local before = mr.timeline(function() mr.op { name = "moved", ms = 1 } end)
  local after = mr.timeline(function()
    mr.op { name = "other", ms = 1 }
    mr.op { name = "moved", ms = 2 }
  end)
  local rows = before:compare(after)
  lu.assertEquals(#rows, 2)
  lu.assertEquals(rows[1].name, "moved")
  lu.assertEquals({ rows[1].before_count, rows[1].after_count }, { 1, 1 })
  lu.assertNotEquals(rows[1].where, rows[1].after_where)
  lu.assertAlmostEquals(rows[1].after_ms, 2, 1e-6)
  lu.assertStrContains(tostring(rows), "later line")
  lu.assertNil(rows[2].after_where)
end

TestSyncDebug = {}

function TestSyncDebug.tearDown()
  mr.sync_debug("off")
  mr.synchronize()
end

function TestSyncDebug.test_returns_the_mode_before()
  lu.assertEquals(mr.sync_debug(), "off")
  lu.assertEquals(mr.sync_debug("error"), "off")
  lu.assertEquals(mr.sync_debug("warn"), "error")
  lu.assertEquals(mr.sync_debug("off"), "warn")
  lu.assertErrorMsgContains('there are "off", "warn", "error"', mr.sync_debug, "loud")
end

function TestSyncDebug.test_error_refuses_hidden_waits_before_they_wait()
  local x, unused, pinned = mr.ones(4), mr.ones(4), mr.zeros(4, { device = "cpu", pinned = true })
  local pageable = mr.zeros(4, { device = "cpu" })
  mr.synchronize()
  mr.sync_debug("error")
  local refused = {
    item = function() return x:sum():item() end,
    print = function() print(x) end,
    totable = function() return x:totable() end,
    has_nan = function() return x:has_nan() end,
    save = function() mr.save("never.npy", x) end,
    cpu = function() return x:cpu() end,
    copy_ = function() pinned:copy_(x) end,
    memcpy = function() mr.memcpy(pinned, x) end,
    memcpy_async = function() mr.memcpy_async(pageable, x) end,
    free = function() unused:free { sync = true } end,
  }
  for name, fn in pairs(refused) do
    mr.spin { ms = 5 }
    local before = mr.clock()
    lu.assertErrorMsgContains(name .. " makes the host wait for the device", fn)
    if name ~= "free" then lu.assertTrue(mr.clock() - before < 1, name) end
  end
  -- what is asked for, and what does not wait
  mr.synchronize()
  mr.current_stream():synchronize()
  pinned:copy_(x, { non_blocking = true })
  mr.memcpy_async(x, pinned)
  x:add_(1)
  mr.event():synchronize()
end

TestShow = {}

function TestShow.test_print_and_save()
  local path = os.tmpname()
  os.remove(path)
  local tr = pipeline()
  tr:save(path .. ".csv")
  local file = assert(io.open(path .. ".csv"))
  lu.assertStrContains(file:read("a"), "spin")
  file:close()
  os.remove(path .. ".csv")
  lu.assertErrorMsgContains(".csv", tr.save, tr, path .. ".nothing")
  tr:print { width = 80, ascii = true, color = false }
  tr:print { width = 80, ascii = true, color = false, before = tr }
  lu.assertErrorMsgContains("a trace", tr.print, tr, { before = 3 })
end

os.exit(lu.LuaUnit.run())
