-- Tasks of mr.run: coroutines with a current stream of their own that await events and streams.
local lu = require "luaunit"
local mr = require "millrace"

local function here() return mr.current_stream() end

-- Which words came in which order.
local function log()
  local words = {}
  return words, function(word) words[#words + 1] = word end
end

TestTasks = {}

function TestTasks.test_results_come_in_the_order_of_the_functions()
  lu.assertEquals({ mr.run(function() return 1, "second" end, function() end, function() mr.sleep(0) return 3 end) },
    { 1, nil, 3 })
end

function TestTasks.test_one_goes_on_while_another_waits()
  local slow, quick = mr.stream{ name = "slow" }, mr.stream{ name = "quick" }
  local words, say = log()
  mr.run(function()
    mr.spin{ ms = 100, stream = slow } -- long enough for a GPU with other work
    slow:await()
    say "slow"
  end, function()
    for i = 1, 3 do
      mr.spin{ ms = 1, stream = quick }
      quick:record_event():await()
      say("quick " .. i)
    end
  end)
  lu.assertEquals(words, { "quick 1", "quick 2", "quick 3", "slow" })
end

-- The others would never go on if the one that yields counted as progress.
function TestTasks.test_one_yields_until_another_has_slept()
  local is_done
  lu.assertEquals({ mr.run(function()
    while not is_done do coroutine.yield() end
    return "seen"
  end, function()
    mr.sleep(5)
    is_done = true
    return "slept"
  end) }, { "seen", "slept" })
end

function TestTasks.test_a_task_that_fails_is_closed()
  local words, say = log()
  local function closing(word)
    return setmetatable({}, { __close = function() say(word .. " on " .. mr.current_stream().name) end })
  end
  local a, b = mr.stream{ name = "a" }, mr.stream{ name = "b" }
  local ok, problem = pcall(mr.run, function()
    mr.set_stream(a)
    local _ <close> = closing "first"
    mr.sleep(1)
  end, function()
    mr.set_stream(b)
    local _ <close> = closing "second"
    error("broken", 0)
  end)
  lu.assertFalse(ok)
  lu.assertEquals(problem, "task 2: broken")
  lu.assertEquals(words, { "second on b", "first on a" })
end

function TestTasks.test_await_has_waited()
  local s, x, value = mr.stream(), mr.zeros(4, { pinned = true, device = "cpu" }), nil
  mr.run(function()
    mr.set_stream(s)
    local y = mr.full({ 4 }, 7)
    x:copy_(y, { non_blocking = true })
    s:await()
    value = x:totable()
  end, function() mr.sleep(0) end)
  lu.assertEquals(value, { 7, 7, 7, 7 })
end

function TestTasks.test_an_event_that_was_never_recorded_is_not_waited_for()
  local words, say = log()
  mr.run(function() mr.event():await() say "a" end, function() say "b" end)
  lu.assertEquals(words, { "a", "b" })
end

function TestTasks.test_those_that_yield_take_turns()
  local words, say = log()
  local function task(name)
    return function()
      for i = 1, 2 do
        say(name .. i)
        coroutine.yield()
      end
    end
  end
  mr.run(task "a", task "b")
  lu.assertEquals(words, { "a1", "b1", "a2", "b2" })
end

TestStreams = {}

function TestStreams.test_each_task_has_its_own()
  local a, b, home = mr.stream(), mr.stream(), here()
  mr.run(function()
    mr.set_stream(a)
    mr.sleep(0)
    lu.assertEquals(here(), a)
  end, function()
    lu.assertEquals(here(), home)
    mr.set_stream(b)
    mr.sleep(0)
    lu.assertEquals(here(), b)
  end)
  lu.assertEquals(here(), home)
end

function TestStreams.test_a_task_begins_with_that_of_the_caller()
  local s = mr.stream()
  s:run(function()
    mr.run(function() lu.assertEquals(here(), s) end, function() mr.set_stream(mr.stream()) end)
    lu.assertEquals(here(), s)
  end)
end

-- The function of mr.with and s:run may wait: its stream is current in this task alone.
function TestStreams.test_scopes_may_wait()
  local s, home = mr.stream(), here()
  mr.run(function()
    s:run(function()
      mr.spin{ ms = 1 }
      s:await()
      lu.assertEquals(here(), s)
      lu.assertErrorMsgContains("inside", s.run, s, function() mr.sleep(0) error("inside", 0) end)
      lu.assertEquals(here(), s)
    end)
    lu.assertEquals(here(), home)
    return "a"
  end, function()
    local _ <close> = mr.stream():scope()
    mr.sleep(0)
    lu.assertNotEquals(here(), s)
  end)
  lu.assertEquals(here(), home)
end

function TestStreams.test_also_after_an_error()
  local s, home, closed_on = mr.stream(), here(), nil
  lu.assertErrorMsgContains("task 2: ", mr.run, function()
    mr.set_stream(s)
    local _ <close> = setmetatable({}, { __close = function() closed_on = here() end })
    mr.sleep(1)
  end, function() error("two") end)
  lu.assertEquals(here(), home)
  lu.assertEquals(closed_on, s)
end

function TestStreams.test_a_closed_one_gives_way_to_the_default_stream()
  mr.run(function()
    local s = mr.stream()
    mr.set_stream(s)
    s:close()
    mr.sleep(0)
    lu.assertEquals(here(), mr.default_stream())
  end, function() end)
end

TestSleep = {}

-- The clock counts nanoseconds. A difference of two of its times in milliseconds is rounded, by far less than one.
local ROUNDING_MS = 1e-7

function TestSleep.test_lasts_as_long_as_it_says()
  local before = mr.clock()
  mr.sleep(2)
  lu.assertTrue(mr.clock() - before >= 2 - ROUNDING_MS)
  before = mr.clock()
  local words, say = log()
  mr.run(function() mr.sleep(3) say "three" end, function() mr.sleep(1) say "one" end)
  lu.assertTrue(mr.clock() - before >= 3 - ROUNDING_MS)
  if mr.machine then lu.assertTrue(mr.clock() - before < 4) end
  lu.assertEquals(words, { "one", "three" })
end

function TestSleep.test_wants_a_time()
  for _, wrong in ipairs{ -1, 0 / 0, "x", math.huge } do
    lu.assertErrorMsgContains("sleep: expected milliseconds from 0 to 1e12", mr.sleep, wrong)
  end
end

TestWithoutRun = {}

function TestWithoutRun.test_await_is_synchronize()
  local s = mr.stream()
  mr.spin{ ms = 1, stream = s }
  local e = s:record_event()
  e:await()
  lu.assertTrue(e:query())
  mr.spin{ ms = 1, stream = s }
  s:await()
  lu.assertTrue(s:query())
end

-- A coroutine of the script's own is no task: it waits for itself, and set_stream in it is as it always was.
function TestWithoutRun.test_a_coroutine_of_the_script_waits_for_itself()
  local s, home = mr.stream(), here()
  mr.run(function()
    local step = coroutine.wrap(function()
      mr.spin{ ms = 1, stream = s }
      s:await()
      coroutine.yield("waited")
    end)
    lu.assertEquals(step(), "waited")
    lu.assertTrue(s:query())
  end)
  coroutine.wrap(function() mr.set_stream(s) end)()
  lu.assertEquals(here(), s)
  mr.set_stream(home)
end

TestNested = {}

function TestNested.test_the_tasks_around_go_on()
  local slow = mr.stream()
  local words, say = log()
  lu.assertEquals({ mr.run(function()
    return mr.run(function()
      mr.spin{ ms = 2, stream = slow }
      slow:await()
      say "inner"
      return "i"
    end)
  end, function()
    mr.sleep(0.1)
    say "outer"
    return "o"
  end) }, { "i", "o" })
  lu.assertEquals(words, { "outer", "inner" })
end

TestErrors = {}

function TestErrors.test_arguments()
  lu.assertErrorMsgContains("run: expected at least one function", mr.run)
  lu.assertErrorMsgContains("run: expected a function as argument 2, got number", mr.run, print, 2)
  lu.assertErrorMsgContains("event", mr.event().await, 1)
  lu.assertErrorMsgContains("stream", mr.stream().await, 1)
end

function TestErrors.test_name_the_task_and_its_line()
  lu.assertErrorMsgMatches("task 2: .*tasks.lua:%d+: broken", mr.run, function() mr.sleep(1) end, function()
    mr.sleep(0)
    error("broken")
  end)
  local closed = mr.stream()
  closed:close()
  local ok, problem = pcall(mr.run, function() end, function() closed:synchronize() end)
  lu.assertFalse(ok)
  lu.assertEquals(problem.task, 2)
  lu.assertStrContains(problem.where, "tasks.lua:")
  local mine = {}
  lu.assertIs(select(2, pcall(mr.run, function() error(mine) end)), mine)
end

function TestErrors.test_a_function_of_c_cannot_wait()
  lu.assertErrorMsgContains("await: a task cannot wait in a function that C code calls", mr.run, function()
    mr.no_grad(function() mr.default_stream():await() end)
  end)
end

TestChoosers = {}

-- Under the others the device works only while the host waits.
function TestChoosers.test_tasks_end_under_each()
  if not mr.machine then return end
  for _, chooser in ipairs{ "adversarial", "random:3", "manual", "timed" } do
    local before = mr.machine.chooser(chooser)
    local a, b = mr.stream(), mr.stream()
    local function task(s)
      return function()
        mr.set_stream(s)
        local x = mr.ones(8)
        for _ = 1, 3 do
          x:mul_(2)
          s:record_event():await()
          mr.sleep(0.01)
        end
        return x:sum():item()
      end
    end
    lu.assertEquals({ mr.run(task(a), task(b)) }, { 64, 64 })
    mr.machine.chooser(before)
  end
end

TestChecked = {}

function TestChecked.test_await_orders_and_its_absence_is_a_hazard()
  local function program(waits)
    return function()
      local s, t, x = mr.stream(), mr.stream(), mr.zeros(64)
      mr.synchronize()
      mr.run(function()
        mr.set_stream(s)
        x:fill_(1)
        if waits then s:await() end
        t:run(function() x:fill_(2) end)
      end)
      mr.synchronize()
    end
  end
  lu.assertEquals(#mr.hazard.check(program(true)), 0)
  local reports = mr.hazard.check(program(false))
  lu.assertEquals(#reports, 1)
  lu.assertStrContains(reports[1].second.where, "tasks.lua:")
end

-- A trace has the script's lines, not those of the library.
function TestChecked.test_a_trace_names_the_line_that_waits()
  local tr = mr.timeline(function()
    mr.run(function()
      mr.spin{ ms = 1 }
      mr.current_stream():await()
    end)
  end)
  for _, span in ipairs(tr.spans) do
    lu.assertStrContains(span.where or "tasks.lua", "tasks.lua")
    lu.assertNotStrContains(span.where or "", "millrace.tasks")
  end
end

os.exit(lu.LuaUnit.run())
