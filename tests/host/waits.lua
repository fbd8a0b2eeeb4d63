-- --waits: the verdicts at the end of a script, the exit status, and errors.
local lu = require "luaunit"
local command = require "host.support.command"

local function run(options, code)
  return command.say{ options = "--device virtual --waits " .. options, "-e", code }
end

TestWaits = {}

local GOOD = [[
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x = mr.zeros(8, {name = "x"})
a:wait_stream(mr.default_stream())
mr.op{stream = a, writes = {x}}
b:wait_stream(a)
mr.op{stream = b, reads = {x}}
print("done")
]]

function TestWaits.test_the_verdicts_come_after_the_script()
  local text, status = run("", GOOD)
  lu.assertStrMatches(text, "done\n2 waits, 2 suffice: lines 3, 5\n.*")
  lu.assertStrContains(text, "(command line):5 wait_stream: needed (`b`")
  lu.assertEquals(status, 0)
end

-- As reports of hazards do, the text leaves the script's folder out.
function TestWaits.test_places_are_without_the_folder()
  command.with_file("local mr = require 'millrace'\n" .. GOOD, function(path)
    local result = command.run{ "--device", "virtual", "--waits", path }
    lu.assertStrContains(result.out .. result.err, path:match("[^/]+$") .. ":6 wait_stream: needed")
    lu.assertNotStrContains(result.out .. result.err, path)
  end)
end

-- A line of the script can be deleted; a wait inside of backward cannot.
function TestWaits.test_the_waits_of_backward_are_no_lines_of_the_script()
  local text, status = run("", [[
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local w = mr.ones(4, 4):requires_grad_(true)
mr.synchronize()
local y = a:run(function() return w:mul(2) end)
b:wait_stream(a)
local z = b:run(function() return y:mul(w) end)
b:synchronize()
z:sum():backward()
print(w.grad:sum():item())]])
  lu.assertStrContains(text, "64.0\n3 waits, 3 suffice: lines 3, 5, 7\n")
  lu.assertNotStrContains(text, ":8 wait")
  lu.assertEquals(status, 0)
end

-- The function runs three times and more for mr.explore, and five times for mr.stress.
function TestWaits.test_a_function_that_is_called_again_counts_once()
  local code = [[
local a = mr.stream{name = "a"}
local function fn()
  local x = mr.ones(4)
  a:wait_stream(mr.default_stream())
  local sum = a:run(function() return x:sum() end)
  x:record_stream(a)
  a:synchronize()
  return sum:item()
end
]]
  for _, call in ipairs{ "mr.explore(fn)", "mr.stress(fn, {runs = 5})", "mr.explore(fn) fn()" } do
    local text = run("", code .. call)
    local _, lines = text:gsub("needed %(", "")
    lu.assertEquals({ call, text:find(" of 3 times", 1, true), lines }, { call, nil, 2 })
    lu.assertStrContains(text, call:find("fn()", 1, true) and ":7 synchronize: needed (the host, 2 of 2 times;"
      or ":7 synchronize: needed (the host; costs")
  end
end

function TestWaits.test_also_after_os_exit()
  local text, status = run("", GOOD .. "os.exit(0)")
  lu.assertStrContains(text, "2 waits, 2 suffice")
  lu.assertEquals(status, 0)
end

function TestWaits.test_hazards_give_the_status_3()
  local text, status = run("", GOOD .. "mr.op{stream = mr.stream(), writes = {x}}")
  lu.assertStrContains(text, "The program has hazards with all its waits")
  lu.assertEquals(status, 3)
end

function TestWaits.test_a_script_that_fails_gets_no_verdicts()
  local text, status = run("", GOOD .. "error('mine', 0)")
  lu.assertStrContains(text, "millrace: mine")
  lu.assertNotStrContains(text, "suffice")
  lu.assertStrContains(text, "--waits: no verdicts: the script failed, so not all of its work is known\n")
  lu.assertEquals(status, 1)
  text, status = run("", GOOD .. "os.exit(7)")
  lu.assertStrContains(text, "--waits: no verdicts: the script was ended before its end")
  lu.assertEquals(status, 7)
  text, status = run("", GOOD .. "a:host_func(function() os.exit(0) end) a:synchronize()")
  lu.assertStrContains(text, "--waits: no verdicts: the script ended inside a host function")
  lu.assertEquals(status, 0)
end

function TestWaits.test_host_functions_that_nothing_waited_for_run_first()
  local text, status = run("", GOOD .. "b:host_func(function() print('ran') end)")
  lu.assertStrContains(text, "ran\n2 waits")
  lu.assertEquals(status, 0)
  -- A free by the collector then is no act of the script.
  text, status = run("", GOOD .. "b:host_func(function() collectgarbage() print('ran') end)")
  lu.assertStrContains(text, "ran\n2 waits")
  lu.assertEquals(status, 0)
  text, status = run("", GOOD .. "b:host_func(function() error('in it', 0) end)")
  lu.assertStrContains(text, "in it")
  lu.assertEquals(status, 1)
end

function TestWaits.test_beside_other_options()
  for _, options in ipairs { "--sandbox", "--check", "--launch-blocking", "--chooser random:3",
                             "--chooser adversarial" } do
    local text, status = run(options, GOOD)
    lu.assertStrContains(text, "2 waits, 2 suffice: lines 3, 5", options)
    lu.assertEquals(status, 0, options)
  end
end

-- The wait orders `fill_` before `mul_`, which races with `zeros` already.
function TestWaits.test_an_access_with_a_hazard_is_left_out_and_nothing_claims_more()
  local racy = [[local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local d = mr.zeros(4)
a:run(function() d:fill_(1) end)
b:wait_stream(a)
b:run(function() d:mul_(2) end)
mr.synchronize()
]]
  local text, status = run("", racy)
  lu.assertStrContains(text, "leave them out, so a redundant wait may be needed for them.")
  lu.assertStrContains(text, "2 waits, 0 suffice for the other accesses\n")
  lu.assertEquals(status, 3)
  text, status = run("--check", racy)
  lu.assertStrContains(text, "2 hazards at 2 pairs of places")
  lu.assertNotStrContains(text, "ended with an error")
  lu.assertEquals(status, 3)
end

function TestWaits.test_a_function_of_the_script_is_judged_apart()
  local text = run("", GOOD .. "print(mr.waits(function() b:wait_stream(a) end))")
  lu.assertStrContains(text, "1 wait, 0 suffice\n")
  lu.assertStrContains(text, "3 waits, 2 suffice: lines 3, 5")
end

os.exit(lu.LuaUnit.run())
