-- Ctrl-C: a real SIGINT, sent when the script says that it is ready.
local lu = require "luaunit"
local command = require "host.support.command"

local function assert_stopped(code, place)
  local result = command.run{ "-e", "print('ready')\n" .. code, interrupts = 1 }
  lu.assertEquals(result.out, "ready\n", code)
  lu.assertStrMatches(result.err, "millrace: interrupted" .. (place or " at %(command line%):%d+") .. "\n")
  lu.assertEquals(result.status, 130, code)
end

TestInterrupt = {}

function TestInterrupt.test_loops()
  assert_stopped("while true do end", " at %(command line%):2")
  assert_stopped("for i = 1, math.huge do end")
  assert_stopped("::again:: goto again")
  assert_stopped("local function f() return f() end f()")
  assert_stopped("for _ in function() return 1 end do end")
end

-- The script then runs on a thread of its own, to which the signal must find its way.
function TestInterrupt.test_under_a_small_limit_of_the_stack()
  for _, code in ipairs{ "while true do end", "io.popen('sleep 2'):read()" } do
    local result = command.run{ "-e", "print('ready') " .. code, interrupts = 1, environment = "ulimit -s 128" }
    lu.assertStrContains(result.err, "millrace: interrupted")
    lu.assertEquals(result.status, 130)
  end
end

function TestInterrupt.test_pcall_does_not_swallow_it()
  assert_stopped("local function f() while true do end end\nwhile true do pcall(f) end")
  assert_stopped("local function f() pcall(f) while true do end end\nwhile true do f() end")
  assert_stopped("while true do pcall(error) end")
end

function TestInterrupt.test_handlers_do_not_swallow_it()
  assert_stopped("local function f() while true do end end\nwhile true do xpcall(f, f) end")
  assert_stopped("xpcall(error, function() while true do end end)")
  assert_stopped("while true do xpcall(function() while true do end end, debug.traceback) end")
end

function TestInterrupt.test_coroutines()
  assert_stopped("coroutine.resume(coroutine.create(function() while true do end end))\nwhile true do end")
  assert_stopped("coroutine.wrap(function() while true do end end)()")
  assert_stopped("local function f() while true do pcall(function() while true do end end) end end\n" ..
    "local function g() while true do pcall(coroutine.wrap(f)) end end\n" ..
    "while true do pcall(coroutine.wrap(g)) end")
  assert_stopped("while true do coroutine.wrap(function() end)() end")
  assert_stopped("local co = coroutine.wrap(function() while true do coroutine.yield() end end)\n" ..
    "while true do co() end")
end

-- Also those that wait for the rank which is interrupted, and go on when that has ended.
function TestInterrupt.test_ranks()
  for _, code in ipairs{
    "if rank == 1 then while true do end end mr.dist.barrier()",
    "if rank == 1 then while true do end end while true do pcall(mr.dist.barrier) while true do end end",
    "if rank == 1 then coroutine.wrap(function() while true do end end)() end while true do pcall(mr.dist.barrier) end",
    "local t = mr.ones(3) while true do mr.dist.all_reduce(t) end",
    "local t = mr.ones(4096, 4096) for _ = 1, 1000 do t:add_(1) end while true do pcall(mr.synchronize) end",
  } do
    local result = command.run{ "--device", "virtual:2", "-e",
      "print('ready')\nmr.dist.spawn(2, function(rank) " .. code .. " end)", interrupts = 1 }
    lu.assertStrContains(result.err, "millrace: interrupted at (command line):2\n")
    lu.assertEquals(result.status, 130, code)
  end
end

function TestInterrupt.test_close_handlers()
  assert_stopped("local m = {__close = function() while true do end end}\n" ..
    "while true do local x <close> = setmetatable({}, m) end")
  assert_stopped("local co = coroutine.create(function()\n" ..
    "local x <close> = setmetatable({}, {__close = function() while true do end end}) coroutine.yield() end)\n" ..
    "coroutine.resume(co) coroutine.close(co)")
end

function TestInterrupt.test_functions_called_from_c()
  assert_stopped("table.sort({1, 2, 3}, function() while true do end end)")
  assert_stopped("string.gsub('x', '.', function() while true do end end)")
  assert_stopped("mr.with(mr.stream(), function() while true do end end)")
  assert_stopped("mr.default_stream():host_func(function() while true do end end)\nmr.synchronize()")
end

function TestInterrupt.test_blocking_input()
  local result = command.run{ "-e", "print('ready') local p = io.popen('sleep 2') p:read() while true do end",
                              interrupts = 1 }
  lu.assertEquals(result.status, 130)
end

-- Work that takes the simulation minutes: the wait polls for Ctrl-C.
function TestInterrupt.test_wait_for_a_device()
  local work = "local t = mr.zeros(4096, 4096) for _ = 1, 1000 do t:add_(1) end\n"
  assert_stopped(work .. "mr.synchronize()")
  assert_stopped(work .. "while true do pcall(mr.synchronize) end")
  assert_stopped(work .. "while true do pcall(t.item, t:sum()) end")
end

function TestInterrupt.test_a_long_computation()
  assert_stopped("mr.ones(1, {device = 'cpu'}):expand(1 << 46):sum()")
  for _, chooser in ipairs{"timed", "adversarial", "random:1"} do
    assert_stopped("mr.machine.chooser('" .. chooser .. "')\nmr.ones(1):expand(1 << 46):sum()\nmr.synchronize()")
  end
end

-- Loops of C that are as long as the script makes them: one press ends each.
function TestInterrupt.test_making_many_parts_and_values()
  local long = "mr.ones(1, {device = 'cpu'}):expand(1 << 40)"
  for _, call in ipairs{ ":split(1)", ":chunk(1 << 40)", ":totable()", ":reshape(1 << 20, 1 << 20):totable()" } do
    assert_stopped(long .. call)
  end
  assert_stopped("local t = " .. long .. " mr.equal(t, t)")
  assert_stopped("local t = " .. long .. " mr.allclose(t, t)")
end

-- An interrupted computation goes on at the next wait, from where it was.
function TestInterrupt.test_a_computation_goes_on_after_the_interruption()
  local result = command.run{ "-i", input = "x = mr.ones(1 << 8, 1):expand(-1, 1 << 22)\nprint('ready')\n" ..
    "s = x:sum()\nmr.synchronize()\nprint(s:item() == 2^30)\n", interrupts = 1 }
  lu.assertStrContains(result.out, "true")
end

-- Half of a block cannot be taken back, so the device is lost: by an interruption, and by no fault of the kernel.
function TestInterrupt.test_a_kernel_in_the_middle_of_a_block()
  local kernel = "k = mr.kernel([[extern \"C\" __global__ void f(volatile float *y) " ..
    "{ while (y[0] == 0) y[1] += 1; }]])\n"
  for _, chooser in ipairs{ "timed", "adversarial" } do
    local result = command.run{ "--check", "--device", "virtual", "--chooser", chooser, "-e", kernel ..
      "y = mr.zeros(4)\nk[{1, 1}](y)\nprint('ready')\nmr.synchronize()", interrupts = 1 }
    lu.assertStrContains(result.err, "\na wait was interrupted; nothing is claimed about what came after\n")
    lu.assertNotStrContains(result.err, "launch-timeout")
    lu.assertEquals(result.status, 130)
  end
  local result = command.run{ "-i", "--device", "virtual", interrupts = 1, input = kernel ..
    "y = mr.zeros(4) k[{1, 1}](y)\nprint('ready') mr.synchronize()\n" ..
    "e = select(2, pcall(mr.synchronize)) print(e.code, e.message)\nmr.reset() print(mr.ones(3):sum():item())\n" }
  lu.assertStrContains(result.out, "interrupted\tf was stopped in the middle of a block (interrupted): " ..
    "every call fails until mr.reset()\n")
  lu.assertStrContains(result.out, "3.0\n")
end

-- Ctrl-C is not an outcome of an explored function.
function TestInterrupt.test_a_kernel_that_is_explored()
  local result = command.run{ "--device", "virtual", interrupts = 1, "-e", [==[
    local k = mr.kernel[[extern "C" __global__ void f(volatile float *y) { while (y[0] == 0) y[1] += 1; }]]
    print("ready")
    local r = mr.explore(function() local y = mr.zeros(4) k[{1, 1}](y) return y[2]:item() end)
    print(r.interrupted, #r.outcomes)]==] }
  lu.assertEquals(result.out, "ready\ntrue\t0\n", result.err)
end

-- A wait orders what came true, and nothing when it was interrupted.
function TestInterrupt.test_an_interrupted_wait_is_no_wait_for_the_checker()
  for _, wait in ipairs{ "s:synchronize()", "e:synchronize()", "mr.synchronize()" } do
    local result = command.run{ "-i", interrupts = 1, input = ([[
s, p, one = mr.stream(), mr.zeros(1, {device = "cpu", pinned = true}), mr.ones(1)
mr.synchronize()
mr.with(s, function() endless = one:expand(1 << 46):sum() p:copy_(one, {non_blocking = true}) end)
e = s:record_event()
print("ready")
WAIT
value = p[1]:item()
print("found", #mr.hazard.reports(), mr.hazard.reports()[1].kind)
mr.hazard.clear() print("before", select(2, mr.hazard.summary()).interrupted)
mr.reset() mr.zeros(4)
]]):gsub("WAIT", wait), "--check" }
    lu.assertStrContains(result.err, "interrupted")
    lu.assertStrContains(result.out, "found\t1\tread-after-write")
    lu.assertStrContains(result.out, "before\t0")
    lu.assertStrContains(result.err, "\na wait was interrupted; nothing is claimed about what came after\n")
  end
end

function TestInterrupt.test_current_stream_is_restored_on_the_way_out()
  local result = command.run{ "-i", interrupts = 1, input = [[
s = mr.stream()
print("ready") mr.with(s, function() local _ <close> = mr.stream():scope() while true do end end)
print(mr.current_stream() == mr.default_stream())
]] }
  lu.assertStrContains(result.out, "true\n")
  lu.assertStrContains(result.err, "interrupted at mr:2:1\n")
end

-- Functions of Lua's libraries: no hook reaches them, so they ask by themselves.
function TestInterrupt.test_patterns()
  for _, code in ipairs{
    "local s = ('a'):rep(30000) pcall(string.find, s, ('.-'):rep(3) .. 'b')",
    "local s = ('a'):rep(100000) pcall(string.match, s, ('a*'):rep(4) .. 'b')",
    "local s = ('('):rep(1000000) pcall(string.find, s, '%b()')",
    "local s = ('a'):rep(30000) for _ in s:gmatch(('.-'):rep(3) .. 'b') do end",
    "local s = ('a'):rep(30000) while true do pcall(string.gsub, s, ('.-'):rep(3) .. 'b', '') end",
    "local s = ('a'):rep(100000) pcall(string.find, s, '(a-)(a-)%1%1%2b')",
    "local s = ('a'):rep(30000) coroutine.wrap(function() s:find(('.-'):rep(3) .. 'b') end)()",
  } do assert_stopped(code) end
end

function TestInterrupt.test_functions_on_tables()
  for _, code in ipairs{
    "table.move({}, 1, 1 << 62, 2)",
    "pcall(table.move, {}, 1, 1 << 62, 2, {})",
    "table.move({}, -(1 << 62), -1, -(1 << 62) - 5)",
    "table.insert(setmetatable({}, {__len = rawlen and function() return 1 << 62 end}), 1, 0)",
    "table.remove(setmetatable({}, {__len = function() return 1 << 62 end}), 1)",
    "table.concat(setmetatable({}, {__index = type, __len = function() return 1 << 62 end}), '', 1 << 60)",
  } do assert_stopped(code) end
end

-- Hooks do not reach a finalizer: the third Ctrl-C ends the process.
function TestInterrupt.test_the_third_one_ends_what_cannot_be_stopped()
  local code = "setmetatable({}, {__gc = function() while true do end end}) collectgarbage()"
  local result = command.run{ "-e", "print('ready') " .. code, interrupts = 5 }
  lu.assertStrContains(result.err, "stopping when the call at hand returns; Ctrl-C again ends the program at once\n")
  lu.assertStrContains(result.err, "interrupted in a call that cannot be stopped; ended\n")
  lu.assertEquals(result.status, 130)
end

-- A global keeps the object: what nothing holds may be finalized before, where hooks do not reach.
function TestInterrupt.test_one_is_enough_while_finalizers_run_at_the_end()
  local result = command.run{ "-e", "kept = setmetatable({}, {__gc = function() print('ready') while true do end end})",
                              interrupts = 1 }
  lu.assertEquals(result.status, 130)
end

-- The work that has found something by then: one Ctrl-C ends it, and the script goes on with what was found.
TestFound = {}

-- Twelve streams add to one tensor: more orders than anybody waits for.
local MANY = [[
local function many()
  local x, s = mr.zeros(1), {}
  for i = 1, 12 do s[i] = mr.stream() end
  mr.synchronize()
  for i = 1, 12 do mr.op{name = "w" .. i, writes = {x}, stream = s[i]} end
  mr.synchronize()
  return x:item()
end
]]

local function assert_goes_on(code, expected)
  if not code:find("print('ready')", 1, true) then code = "print('ready')\n" .. code end
  local result = command.run{ "-e", code, interrupts = 1 }
  lu.assertEquals(result.out, "ready\n" .. expected, result.err)
  lu.assertEquals(result.status, 0, result.err)
end

function TestFound.test_explore()
  assert_goes_on(MANY .. [[
    local r = mr.explore(many, {max = 1000000000})
    print(r.complete, r.interrupted, r.deterministic, #r.outcomes > 0, r.schedules > 0)
    print(tostring(r):match("it was interrupted after %d+ schedules") ~= nil)
    print(mr.explore(function() return mr.zeros(1):item() end))]],
    'false\ttrue\tfalse\ttrue\ttrue\ntrue\n1 schedule, 1 outcome: deterministic\n'
    .. '  outcome 1, in 1 schedule: 0.0\n')
end

-- In the function: under a pcall of its own, in a wait for a device, in a host function.
function TestFound.test_explore_in_the_function()
  for _, body in ipairs { "while true do pcall(error) end", "while true do pcall(mr.synchronize) end",
                          "mr.spin{ms = 1} mr.default_stream():host_func(function() while true do end end)" } do
    assert_goes_on(([[
      local x = mr.zeros(4)
      local r = mr.explore(function() x:add_(1) %s end)
      print(r.complete, r.interrupted, #r.outcomes, x:sum():item())
      print(mr.explore(function() return 1 end).complete)]]):format(body), "false\ttrue\t0\t0.0\ntrue\n")
  end
end

function TestFound.test_stress()
  assert_goes_on([[
    local r = mr.stress(function() mr.spin{ms = 0.1} return 7 end, {runs = 1000000000})
    print(r.interrupted, r.runs > 0, r.outcomes[1].value, r.outcomes[1].count == r.runs)
    print((tostring(r):gsub("%d+", "N")))
    print(mr.stress(function() return 1 end, {runs = 1}))]],
    "true\ttrue\t7\ttrue\nN runs, N outcome; it was interrupted\n  outcome N, in N runs, first with seed N: N\n"
    .. "1 run, 1 outcome\n  outcome 1, in 1 run, first with seed 0: 1\n")
end

function TestFound.test_waits_in_the_function()
  assert_goes_on([[
    local r = mr.waits(function() mr.synchronize() while true do end end)
    print(r.complete, r.interrupted, r.total, r.sufficient, #r.waits)
    print(mr.waits(function() end).complete)]], "false\ttrue\t0\tnil\t0\ntrue\n")
end

-- A line of its own for each wait, so that there are many to be asked about.
function TestFound.test_waits()
  assert_goes_on([[
    local lines = {"local mr, a, b, x = ..."}
    for i = 1, 4000 do
      lines[#lines + 1] = 'mr.op{name = "w", writes = {x}, stream = a}'
      lines[#lines + 1] = 'b:wait_stream(a)'
      lines[#lines + 1] = 'mr.op{name = "r", reads = {x}, stream = b}'
      lines[#lines + 1] = 'a:wait_stream(b)'
    end
    local chunk = assert(load(table.concat(lines, "\n"), "=many"))
    local a, b, x = mr.stream(), mr.stream(), mr.zeros(4)
    mr.synchronize()
    local r = mr.waits(function() chunk(mr, a, b, x) print('ready') io.stdout:flush() end)
    print(r.complete, r.interrupted, r.total, r.sufficient, #r.waits < 8000)
    for _, w in ipairs(r.waits) do assert(w.verdict == "needed" and w.because) end
    print((tostring(r):match("^[^\n]*"):gsub("by then: %d+ %a+", "by then: N are")))]],
    "false\ttrue\t8000\tnil\ttrue\n8000 waits; interrupted, and known by then: N are needed\n")
end

function TestFound.test_a_second_one_ends_the_script()
  for _, call in ipairs { "mr.explore(many, {max = 1000000000})",
                          "mr.stress(many, {runs = 1000000000})", "mr.waits(function() while true do end end)" } do
    local result = command.run{ "-e", "print('ready')\n" .. MANY .. call .. " print('on') while true do end",
                                interrupts = 2 }
    lu.assertEquals(result.out, "ready\non\n")
    lu.assertStrContains(result.err, "millrace: interrupted at (command line):")
    lu.assertEquals(result.status, 130)
  end
end

-- The output of an explored script is kept, so another process says that it runs. Only the first run starts one: a
-- process ignores interrupts while os.execute waits for its child, and an interrupt would meet that in a later run.
function TestFound.test_the_command_line()
  command.with_file("", function(first)
    local say_ready = ("if os.remove(%q) then os.execute('(sleep 0.5; echo ready) &') end "):format(first)
    local result = command.run{ "--explore=max:1000000000", "-e", MANY .. say_ready .. "return many()", interrupts = 1 }
    lu.assertStrContains(result.out, "it was interrupted after")
    lu.assertEquals(result.status, 130)
  end)
end

os.exit(lu.LuaUnit.run())
