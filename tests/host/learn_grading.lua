-- timeout: 120
-- own pace: what is graded has limits of time
-- What the grader of `millrace learn` says: of programs that ask, of waits, of mistakes that are easy to make.
local lu = require "luaunit"
local lessons = require "host.support.lessons"

local message_for, changed = lessons.message_for, lessons.changed

TestQueries = {}

-- Two loops of questions have as many orders as the product says. They are tried with fewer answers.
function TestQueries.test_two_loops_of_questions_pass()
  local both = changed("05_synchronize_what.lua", "a:synchronize()",
    "while not a:query() do end\n  while not b:query() do end")
  local out = message_for("05_synchronize_what.lua", both)
  lu.assertStrContains(out, ",passed,passed,")
  lu.assertStrContains(out, "was answered no at most 3 times in a row")
  local one_line = changed("05_synchronize_what.lua", "a:synchronize()", "repeat until a:query() and b:query()")
  lu.assertStrContains(message_for("05_synchronize_what.lua", one_line), ",passed,passed,")
end

-- The orders of large tensors take the memory of the grader before they are all tried.
function TestQueries.test_two_loops_with_large_tensors_pass()
  lu.assertStrContains(message_for("27_copy_engines.lua", [[return function(a, b, p, q, x, y)
    a:run(function() x:copy_(p, {non_blocking = true}) end)
    b:run(function() q:copy_(y, {non_blocking = true}) end)
    while not a:query() do end
    while not b:query() do end
    return {x[1]:item(), q[1]:item()}
  end]]), ",passed,passed,")
end

-- One loop is tried with many answers, and what does not end in one order is endless.
function TestQueries.test_one_loop_of_questions()
  local function said(condition)
    return message_for("14_query.lua", changed("14_query.lua", "if not copied:query() then copied:query() end",
      condition))
  end
  lu.assertStrContains(said("while not copied:query() do end"), "no at most 120 times in a row")
  lu.assertStrContains(said("for _ = 1, 50 do if copied:query() then break end end"), ",failed,schedule,")
  lu.assertStrContains(said("while copied:query() do end"), ",failed,endless,")
end

-- More orders than can be tried are no fault of a loop.
function TestQueries.test_too_many_orders()
  local out = message_for("01_asynchronous.lua", [[return function(s, flag, value)
    for i = 1, 12 do
      local t = mr.stream()
      t:run(function() mr.zeros(1) end)
      while not t:query() do end
      s:query()
    end
    s:run(function() flag:copy_(value) end)
    return flag:item()
  end]])
  lu.assertStrContains(out, ",failed,orders,\"Your program has more orders than can be tried.")
end

-- Where the host must not wait, a loop of questions is a wait, and so is an await. One question is none.
function TestQueries.test_a_loop_of_questions_makes_the_host_wait()
  for lesson, line in pairs { ["06_any_order.lua"] = 2, ["10_waited_for_too_early.lua"] = 3,
                              ["12_host_or_device.lua"] = 3, ["30_priorities.lua"] = 4 } do
    local right = lessons.of(lesson).right[1]
    local added, count = right:gsub("\n(%s*[%w_]+:wait_%w+%b())", function(wait)
      local stream = ({ ["30_priorities.lua"] = "high" })[lesson] or "a"
      return wait:find("^%s*a:") and "\n  while not b:query() do end" or
        ("\n  while not %s:query() do end"):format(stream)
    end)
    lu.assertTrue(count > 0)
    local out = message_for(lesson, added)
    lu.assertStrContains(out, ",failed,host,")
    lu.assertStrContains(out, "the host asks until it is told yes (query), so it waits")
    lu.assertTrue(tonumber(out:match("In line (%d+)")) > line)
    lu.assertStrContains(message_for(lesson, (right:gsub("\n", "\n  mr.current_stream():query()\n", 1))), ",passed,")
  end
  local function awaited(first, second)
    return message_for("06_any_order.lua", changed("06_any_order.lua", "x:add_(1) end)", "x:add_(1) end)\n" .. first,
      "y:copy_(x) end)", "y:copy_(x) end)\n" .. second))
  end
  local out = awaited("mr.run(function() a:await() end)", "mr.run(function() b:record_event():await() end)")
  lu.assertStrContains(out, "In line 3 the host waits (await).")
  lu.assertStrContains(awaited("a:await()", "b:await()"), ",failed,host,\"In line 3 the host waits")
end

TestWaits = {}

-- A reason is one sentence, in places of the learner's own.
function TestWaits.test_a_reason_has_no_place_of_the_lesson()
  for _, name in ipairs { "01_asynchronous.lua", "14_query.lua", "22_overwriting_the_source.lua" } do
    local right = lessons.of(name).right[1]
    local out = message_for(name, (right:gsub("\n", "\n  mr.synchronize()\n", 2)))
    lu.assertStrContains(out, ",failed,wait,")
    lu.assertStrContains(out, "waits without need (synchronize): ")
    lu.assertNotStrContains(out, "lesson:")
    lu.assertNotStrContains(out, "is ordered before `")
  end
  local out = message_for("07_it_worked.lua", changed("07_it_worked.lua", "local y",
    "local y\n  s:wait_stream(mr.current_stream())", "mr.spin{ms = 1}", "mr.current_stream():wait_stream(s)"))
  lu.assertStrContains(out, "Your arguments are ready when your function begins.")
  lu.assertNotStrContains(out, "lesson:")
end

function TestWaits.test_the_wait_that_covers_another_is_named()
  local out = message_for("22_overwriting_the_source.lua", [[return function(s, stage, x, y, first, second)
    mr.synchronize()
    stage:fill_(first)
    mr.synchronize()
    s:run(function() x:copy_(stage, {non_blocking = true}) end)
    mr.synchronize()
    stage:fill_(second)
    s:run(function() y:copy_(stage, {non_blocking = true}) end)
    return {x, y}
  end]])
  lu.assertStrContains(out, "line 2 waits without need (synchronize): the later wait at line 4 covers it.\"")
end

function TestWaits.test_a_stream_is_a_queue()
  local name = "03_first_in_first_out.lua"
  local out = message_for(name, lessons.of(name).exercise.start)
  lu.assertStrContains(out, "line 3 waits without need (wait_event): `s` waits for its own earlier work, which comes " ..
    "first anyway.")
  out = message_for(name, changed(name, "  s:wait_event(s:record_event())\n", ""))
  lu.assertStrContains(out, "(synchronize): it only stops the host. Each stream keeps the order of its own work")
end

os.exit(lu.LuaUnit.run())
