-- Tasks of mr.run in mr.explore: which one goes on depends on what the device says. Tasks within ranks.
-- virtual only: schedules are explored there
-- options: --device virtual:2
-- not checked: schedules are explored
-- not replayed: schedules are explored, by a chooser that no name tells
local lu = require "luaunit"
local mr = require "millrace"

TestExplored = {}

local function outcomes(result)
  local values = {}
  for i, outcome in ipairs(result.outcomes) do values[i] = outcome.value end
  table.sort(values)
  return table.unpack(values)
end

-- Which of two goes on first is what the device says.
function TestExplored.test_both_orders_of_two_events()
  local result = mr.explore(function()
    local a, b, order = mr.stream(), mr.stream(), ""
    local function task(s, name)
      return function()
        mr.op{ name = name, ms = 1, stream = s }
        s:await()
        order = order .. name
      end
    end
    mr.run(task(a, "a"), task(b, "b"))
    return order
  end)
  lu.assertStrContains(result.incomplete, "the query at")
  lu.assertEquals({ outcomes(result) }, { "ab", "ba" })
end

function TestExplored.test_what_await_orders_is_ordered()
  local function program(waits)
    return function()
      local s, x = mr.stream(), mr.zeros(1)
      mr.synchronize()
      mr.run(function()
        s:run(function() x:add_(1) end)
        if waits then s:await() end
        mr.sleep(1)
      end)
      local y = mr.stream():run(function() return x:clone() end)
      mr.synchronize()
      return y:item()
    end
  end
  lu.assertEquals({ outcomes(mr.explore(program(true))) }, { 1 })
  lu.assertEquals({ outcomes(mr.explore(program(false))) }, { 0, 1 })
end

-- No time goes by, so a task that sleeps goes on in its turn.
function TestExplored.test_sleep()
  local result = mr.explore(function()
    local order = ""
    mr.run(function() mr.sleep(5) order = order .. "a" end, function() mr.sleep(1) order = order .. "b" end)
    return order
  end)
  lu.assertEquals({ outcomes(result) }, { "ab" })
  lu.assertFalse(result.complete)
  lu.assertFalse(result.deterministic)
  lu.assertStrContains(result.incomplete, "mr.sleep took no time")
end

-- `c` may be done before `a` while `late` is set already. No answers of queries lead there.
function TestExplored.test_only_the_first_of_those_that_wait_goes_on()
  local result = mr.explore(function()
    local a, b, c = mr.stream{ name = "a" }, mr.stream{ name = "b" }, mr.stream{ name = "c" }
    local a_is_done, late, is_bad
    a:run(mr.spin, { ms = 5 })
    b:run(mr.spin, { ms = 1 })
    c:wait_stream(a)
    mr.run(function() a:await() a_is_done = true end, function() b:await() is_bad = late and not a_is_done end,
      function() late = true c:await() end)
    return is_bad or false
  end, { polls = 5 })
  lu.assertFalse(result.complete)
  lu.assertFalse(result.deterministic)
  lu.assertStrContains(result.incomplete, "the first one went on")
end

-- The same schedule leads to the same turns.
function TestExplored.test_a_replay()
  local s, x = mr.stream(), mr.zeros(1)
  mr.synchronize()
  local function program()
    local order = ""
    mr.run(function()
      s:run(function() x:add_(1) end)
      s:await()
      order = order .. "a"
    end, function()
      mr.sleep(1)
      order = order .. "b"
    end)
    return order
  end
  local result = mr.explore(program)
  lu.assertEquals({ outcomes(result) }, { "ab", "ba" })
  for _, outcome in ipairs(result.outcomes) do
    lu.assertEquals((mr.replay(outcome.schedule, program)), outcome.value)
  end
end

TestRanks = {}

-- A rank that no other one meets: the error has the lines of all tasks that wait.
function TestRanks.test_nothing_can_go_on()
  local ok, problem = pcall(mr.dist.spawn, 2, function(rank)
    if rank == 1 then return end
    mr.run(function()
      mr.sleep(1)
    end, function()
      mr.dist.all_reduce(mr.zeros(4))
      mr.current_stream():await()
    end)
  end)
  lu.assertFalse(ok)
  lu.assertEquals(problem.code, "deadlock")
  lu.assertEquals(problem.task, 2)
  lu.assertStrMatches(problem.message, ".*; task 1 waits at .*tasks_explored.lua:%d+")
end

os.exit(lu.LuaUnit.run())
