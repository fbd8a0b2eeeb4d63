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

-- Each of `names` is a task that adds its letter when its own work is done.
local function letters(names)
  return function()
    local order, list = "", {}
    for i = 1, #names do
      local s, name = mr.stream(), names:sub(i, i)
      list[i] = function()
        mr.op{ name = name, ms = 1, stream = s }
        s:await()
        order = order .. name
      end
    end
    mr.run(table.unpack(list))
    return order
  end
end

-- Which one goes on first is what the device says. Queries of tasks at one line are no loop that asks.
function TestExplored.test_all_orders()
  local result = mr.explore(letters "ab")
  lu.assertEquals({ outcomes(result) }, { "ab", "ba" })
  lu.assertTrue(result.complete)
  result = mr.explore(letters "abcd")
  lu.assertEquals(#result.outcomes, 24)
  lu.assertTrue(result.complete)
  lu.assertNil(result.incomplete)
end

function TestExplored.test_one_outcome_is_deterministic()
  local result = mr.explore(function()
    local x, sum = mr.zeros(2), 0
    local function task(i)
      return function()
        local s = mr.stream()
        s:wait_stream(mr.default_stream())
        s:run(function() x[i]:fill_(i) end)
        s:record_event():await()
        sum = sum + x[i]:item()
      end
    end
    mr.run(task(1), task(2))
    return sum
  end)
  lu.assertTrue(result.deterministic)
  lu.assertNil(result.not_followed)
end

-- A schedule names who waits on.
function TestExplored.test_the_difference()
  local result = mr.explore(letters "ab")
  for _, outcome in ipairs(result.outcomes) do
    local text = table.concat(outcome.difference or {}, "\n")
    if outcome.value == "ba" then lu.assertStrMatches(text, ".*task 1 still waits at .*tasks_explored.lua:%d+.*")
    else lu.assertNotStrContains(text, "still waits") end
  end
  result = mr.explore(letters "abcd", { max = 1 })
  lu.assertFalse(result.complete)
  lu.assertStrContains(table.concat(result.untried, "\n"), "task 1 still waits at ")
end

-- An event that was seen to be over stays so: the task that is asked next goes on.
function TestExplored.test_several_await_one_event()
  local result = mr.explore(function()
    local s, order = mr.stream(), ""
    mr.spin{ ms = 1, stream = s }
    local e = s:record_event()
    local function task(name)
      return function()
        e:await()
        order = order .. name
      end
    end
    mr.run(task "a", task "b", task "c")
    return order
  end)
  lu.assertEquals({ outcomes(result) }, { "abc", "bca", "cab" })
  lu.assertTrue(result.complete)
end

-- Each choice is tried once, also where tasks are asked several times before those around them.
function TestExplored.test_tasks_of_a_task()
  local result = mr.explore(function()
    local order = ""
    local function task(name)
      local s = mr.stream()
      mr.spin{ ms = 1, stream = s }
      return function()
        s:await()
        order = order .. name
      end
    end
    local a, b, c = task "a", task "b", task "c"
    mr.run(function() mr.run(a, b) end, c)
    return order
  end)
  lu.assertEquals({ outcomes(result) }, { "abc", "acb", "bac", "bca", "cab", "cba" })
  lu.assertTrue(result.schedules <= 12)
  lu.assertTrue(result.complete)
end

-- One that yields may do so for ever.
function TestExplored.test_a_loop_that_yields()
  local function program(times)
    return function()
      local s, is_done, asked = mr.stream(), false, 0
      mr.spin{ ms = 1, stream = s }
      mr.run(function()
        s:await()
        is_done = true
      end, function()
        while not is_done and asked < times do
          coroutine.yield()
          asked = asked + 1
        end
      end)
      return asked
    end
  end
  local result = mr.explore(program(math.huge))
  lu.assertEquals({ outcomes(result) }, { 0, 1, 2, 3 })
  lu.assertFalse(result.complete)
  lu.assertStrContains(result.incomplete, "was answered no at most 2 times in a row")
  result = mr.explore(program(5), { polls = 10 })
  lu.assertEquals({ outcomes(result) }, { 0, 1, 2, 3, 4, 5 })
  lu.assertTrue(result.complete)
end

-- A query of the script's own is none of a task, whatever has been asked before at its place.
function TestExplored.test_a_query_beside_tasks()
  local result = mr.explore(function()
    local s, e, asked = mr.stream(), mr.event(), 0
    mr.spin{ ms = 1, stream = s }
    mr.run(function()
      e:await() -- was never recorded
      while not s:query() do asked = asked + 1 end
    end)
    return asked
  end)
  lu.assertEquals({ outcomes(result) }, { 0, 1, 2 })
  lu.assertStrContains(result.incomplete, "the query at")
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

-- `b` may be done before `a` while `late` is set already.
function TestExplored.test_any_of_those_that_wait_goes_on()
  local result = mr.explore(function()
    local a, b, c = mr.stream{ name = "a" }, mr.stream{ name = "b" }, mr.stream{ name = "c" }
    local a_is_done, late, is_bad
    a:run(mr.spin, { ms = 5 })
    b:run(mr.spin, { ms = 1 })
    c:wait_stream(a)
    mr.run(function() a:await() a_is_done = true end, function() b:await() is_bad = late and not a_is_done end,
      function() late = true c:await() end)
    return is_bad or false
  end)
  lu.assertTrue(result.complete)
  lu.assertEquals(#result.outcomes, 2)
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

-- Nobody steers its runs: the first that waits does in earnest, if all are told no.
function TestExplored.test_mr_stress()
  local result = mr.stress(letters "abc", { runs = 20, seed = 1 })
  for _, outcome in ipairs(result.outcomes) do lu.assertEquals(#outcome.value, 3) end
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
