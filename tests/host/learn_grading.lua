-- timeout: 120
-- own pace: what is graded has limits of time
-- Messages of the grader of `millrace learn`: about programs that ask, waits, and mistakes that are easy to make.
local lu = require "luaunit"
local command = require "host.support.command"
local lessons = require "host.support.lessons"

local IS_SANITIZED = not io.open((command.host:match("^(.*)/[^/]*$") or ".") .. "/millrace.so") -- as in saving.lua

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
    for i = 1, 7 do
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

-- More orders than the first search tries, and fewer than the next one.
function TestQueries.test_many_orders_without_a_loop()
  local questions = ("local t = mr.stream() t:run(function() mr.zeros(1) end) t:query()\n"):rep(9)
  lu.assertStrContains(message_for("01_asynchronous.lua", "return function(s, flag, value)\n" .. questions ..
    "s:run(function() flag:copy_(value) end) return flag:item() end"), ",passed,passed,Right in each of 512 orders.")
end

-- Where the host must not wait, a loop of queries is a wait, like an await. One query is none.
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
    lu.assertStrContains(out, "the host polls until the answer is yes (query), so it waits")
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

-- A loop that gives up is tried with more noes than the explorer gives. One that asks on, or waits then, is right.
function TestQueries.test_a_loop_that_gives_up()
  local function said(lesson, old, loop) return message_for(lesson, changed(lesson, old, loop)) end
  local once = "if not copied:query() then copied:query() end"
  local out = said("14_query.lua", once, "for _ = 1, 130 do if copied:query() then break end end")
  lu.assertStrContains(out, ",failed,schedule,\"The loop of queries in line 4 gives up: after 50 ms of other work")
  lu.assertStrContains(out, "and then the result is 0.")
  lu.assertStrContains(said("14_query.lua", once, "for _ = 1, 50000 do if copied:query() then break end end"),
    "gives up")
  lu.assertStrContains(said("14_query.lua", once, "for _ = 1, math.huge do if copied:query() then break end end"),
    ",passed,passed,")
  local both = "for _ = 1, 200 do if a:query() and b:query() then break end end"
  lu.assertStrContains(said("05_synchronize_what.lua", "a:synchronize()", both), "gives up")
  lu.assertStrContains(said("05_synchronize_what.lua", "a:synchronize()", both ..
    " a:synchronize() b:synchronize()"), ",passed,passed,")
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
  lu.assertStrContains(out, "line 3 waits without need (wait_event): `s` waits for its own earlier work, which " ..
    "comes first anyway.")
  out = message_for(name, changed(name, "  s:wait_event(s:record_event())\n", ""))
  lu.assertStrContains(out, "(synchronize): it only stops the host. Each stream keeps the order of its own work")
end

TestMistakes = {}

-- The message names a call that the task asks for and the function lacks, or one that the function must not have.
function TestMistakes.test_what_the_task_asks_for()
  local out = message_for("07_it_worked.lua", changed("07_it_worked.lua", "mr.spin{ms = 1}",
    "mr.spin{ms = 1}\n  mr.current_stream():wait_stream(s)"))
  lu.assertStrContains(out, "The result is right, but line 4 has a delay, which the task does not allow.")
  out = message_for("36_inside_a_block.lua", "return function(x, y) return x:flip(1) end")
  lu.assertTrue(out:find("the task asks for a launch of the kernel `reverse`: your function has none.", 1, true) ~= nil
    or out:find("compiler", 1, true) ~= nil, out)
end

-- A task that names streams is not solved on one of them, and its work stays as long as it is, and where it is.
function TestMistakes.test_the_streams_and_the_work_of_the_task()
  local function said(name, solution) return message_for(name, "return function" .. solution .. " end") end
  lu.assertStrContains(said("06_any_order.lua",
    "(a, b, x, y) a:run(function() x:add_(1) y:copy_(x) x:mul_(100) end) return y"),
    ",failed,uses,\"The result is right, but the task asks for work on `b`: your function has none.\"")
  lu.assertStrContains(said("04_default_stream.lua", "(s, x) return s:run(function() return (x + 1) * 2 end)"),
    "the task asks for work on the default stream: your function has none.")
  local queue = "24_launch_queue.lua"
  lu.assertStrContains(said(queue, "(s, x) mr.spin{ms = 3, stream = s} s:run(x.add_, x, 1100) return x"),
    "the task asks for 30 ms of `spin` on `s`: your function has none.")
  lu.assertStrContains(said(queue, "(s, x) s:run(x.add_, x, 1100) mr.spin{ms = 30, stream = s} return x"),
    "the task asks for `add_` on `s`, behind 30 ms of `spin` on `s`: your function has none.")
  lu.assertStrContains(said(queue, "(s, x) mr.spin{ms = 30, stream = s} return s:run(x.add, x, 1100)"),
    ",passed,passed,")
  lu.assertStrContains(said("33_graphs.lua", [[(a, b, x, y)
    local g = mr.graph.capture(function() x:add_(1) y:copy_(x) end, {stream = a})
    g:launch(a) g:launch(a) return y]]),
    "the task asks for work on `b` in the graph: it is in no capture of your function.")
  lu.assertStrContains(said("33_graphs.lua", [[(a, b, x, y)
    mr.graph.begin(a)
    a:run(x.add_, x, 1) b:wait_stream(a) b:run(y.copy_, y, x) a:wait_stream(b)
    local g = mr.graph.finish(a)
    g:launch(a) g:launch(a) return y]]), ",passed,passed,")
end

-- The sandbox may not start clang: then nothing is said of the solution.
function TestMistakes.test_a_machine_that_cannot_grade_kernels()
  local name = "36_inside_a_block.lua"
  lessons.with_folder(function(folder)
    command.write(folder .. "/" .. name, lessons.of(name).exercise.start)
    local result = command.run { environment = "export MILLRACE_COMPILER=clang", "learn", "--grade", folder }
    lu.assertStrContains(result.out, ",36_inside_a_block,not graded,unavailable,")
    result = command.run { environment = "export MILLRACE_COMPILER=clang", "learn", "--check",
      lessons.FOLDER .. "/" .. name }
    lu.assertStrMatches(result.out, "not available: .*\n")
  end)
end

-- Events in a kernel are told by the lines of the learner's file, and an argument is no place of the lesson.
function TestMistakes.test_the_lines_of_a_kernel()
  local name = "36_inside_a_block.lua"
  local out = message_for(name, lessons.of(name).exercise.start)
  lu.skipIf(out:find("compiler", 1, true) ~= nil, "no compiler of kernels")
  lu.assertStrContains(out, "reverse writes shared memory on stream default of device 0 at 36_inside_a_block.lua:6")
  lu.assertStrContains(out, "(`s`) at 36_inside_a_block.lua:7, and thread")
  lu.assertNotStrContains(out, "<kernel text>")
  out = message_for(name, changed(name, "y[i] = s[63 - i]", "y[i] = x[64 + i]"))
  lu.assertStrContains(out, "kernel `reverse` at 36_inside_a_block.lua:7: thread (0,0,0) of block (0,0,0) reads 4")
  lu.assertNotStrContains(out, "lesson:")
  lu.assertNotStrContains(out, "mr.reset")
end

-- Without the long work there is nothing that could overlap: no wait is to blame.
function TestMistakes.test_work_that_is_left_out_is_named()
  local out = message_for("08_record_so_far.lua", changed("08_record_so_far.lua",
    "  local ready = a:record_event()\n", "", "  a:run(function() mr.op{name = \"long\", ms = 3} end)\n",
    "  local ready = a:record_event()\n"))
  lu.assertStrContains(out, ",failed,serial,")
  lu.assertStrContains(out, "the start has 3.0 ms of `long`, and your function has none: keep that work.")
  lu.assertNotStrContains(out, "one stream is idle")
end

-- To print a tensor copies it in the current stream and waits for that, though nothing is written.
function TestMistakes.test_a_print_waits()
  local out = message_for("02_where_time_goes.lua",
    "return function(s, x)\n local y = s:run(function() return x * 2 + 1 end)\n s:run(function() print(y) end)\n" ..
    "return y end")
  lu.assertStrContains(out, ",failed,host,\"In line 3 the host waits (print).")
  lu.assertStrContains(message_for("02_where_time_goes.lua",
    "return function(s, x) local y = s:run(function() return x * 2 + 1 end) print(y) return y end"), ",failed,hazard,")
  lu.assertStrContains(message_for("02_where_time_goes.lua",
    "return function(s, x) print('here', nil, 1) return s:run(function() return x * 2 + 1 end) end"),
    ",passed,passed,")
end

function TestMistakes.test_a_number_is_no_table()
  lu.assertStrContains(message_for("11_one_stream_waits.lua", "return function() return 7 end"),
    "The result is 7, and the task asks for a table of 2 values.")
end

function TestMistakes.test_two_values_are_no_table()
  local out = message_for("11_one_stream_waits.lua", changed("11_one_stream_waits.lua", "b:wait_stream(a)",
    "b:wait_stream(a)\n  c:wait_stream(a)", "return {y, z}", "return y, z"))
  lu.assertStrContains(out, "Your function returns 2 values, and only the first of them is the result. Return one")
end

-- The library's errors are shown, without what would be the answer or is not for an exercise.
function TestMistakes.test_errors_of_the_library()
  local out = message_for("33_graphs.lua", lessons.of("33_graphs.lua").exercise.start)
  lu.assertStrContains(out, "stream `b` was forked from stream `a` and not joined again")
  lu.assertNotStrContains(out, "wait_stream")
  out = message_for("14_query.lua", "return function(s, x) return x:peek() end")
  lu.assertStrContains(out, "In line 1 your function calls t:peek(), which has no place in an order.")
  lu.assertNotStrContains(out, "replay")
  out = message_for("35_collectives.lua", [[return function(a, c, d, comms, g, h, w)
    comms[1]:all_reduce(g, {stream = c})
  end]])
  lu.assertStrContains(out, "by rank 0 of communicator (35_collectives.lua:2) would wait for ever")
  out = message_for("05_synchronize_what.lua", changed("05_synchronize_what.lua", "a:synchronize()", "a.synchronize()"))
  lu.assertStrContains(out, "expected a stream, got nothing: write a colon, object:synchronize(...)")
end

function TestMistakes.test_what_needs_much_memory()
  for _, body in ipairs { "local function f() return 1 + f() end return f()",
                          "local t = {} for i = 1, 1e6 do t[i] = x + 1 end" } do
    local out = message_for("14_query.lua", "return function(s, x) " .. body .. " end")
    -- Under sanitizers the time may be over first.
    if IS_SANITIZED and out:find(",failed,endless,", 1, true) then break end
    lu.assertStrContains(out, ",failed,memory,")
    lu.assertStrContains(out, "it keeps too much, has far too many operations, or calls itself without end.")
    lu.assertNotStrContains(out, "inputs")
  end
  lu.assertStrContains(message_for("14_query.lua", "return function() return mr.zeros(1000000000) end"),
    "Tensors as large as its inputs are enough")
end

os.exit(lu.LuaUnit.run())
