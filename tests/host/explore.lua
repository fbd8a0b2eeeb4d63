-- --explore: a script under every schedule, the exit status, bounds, and what goes wrong.
local lu = require "luaunit"
local command = require "host.support.command"

local function run(options, code)
  return command.with_file(code, function(path) return command.say{ options = options, path, "one", "two" } end)
end

local RACY = [[
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
x = mr.zeros(1)
assert(not seen, "globals of another run")
seen = true
mr.synchronize()
a:run(function() x:add_(1) end)
b:run(function() x:mul_(3) end)
mr.synchronize()
io.write("x is ")
print(x:item(), ...)
]]

TestExplore = {}

function TestExplore.test_outcomes_that_differ()
  local text, status = run("--explore", RACY)
  lu.assertStrContains(text, "2 schedules, 2 outcomes")
  lu.assertStrContains(text, "x is 3.0\tone\ttwo")
  lu.assertStrContains(text, "x is 1.0\tone\ttwo")
  lu.assertEquals(status, 3)
end

-- As reports of hazards do, the steps and a witness leave the script's folder out.
function TestExplore.test_places_are_without_the_folder()
  local body = RACY:gsub("io.write%(.-\n", ""):gsub("print%(x:item%(%), %.%.%.%)", "return x:item()")
  local code = "local function work()\n" .. body .. [[end
    local r = mr.explore(function() seen = nil return work() end)
    print(r) print(r.hazards[1]:witness())]]
  command.with_file(code, function(path)
    local text, name = command.say{ path }, path:match("[^/]+$")
    lu.assertStrContains(text, name .. ":7\n")
    lu.assertStrContains(text, name .. ":7 before " .. name .. ":8: 3.0")
    lu.assertNotStrContains(text, path)
  end)
end

function TestExplore.test_all_ways_to_print()
  for _, way in ipairs { "io.stdout:write", "io.output():write", "io.write" } do
    local text, status = run("--explore", (RACY:gsub("print%(x:item%(%), %.%.%.%)", way .. '(x:item(), "\\n")')))
    lu.assertStrContains(text, "x is 3.0")
    lu.assertStrContains(text, "x is 1.0")
    lu.assertEquals(status, 3)
  end
  local text = run("--explore", 'io.stdout:write("a", 1):write("b"):flush() assert(io.type(io.stdout) == "file")')
  lu.assertStrContains(text, "1 outcome: deterministic")
  lu.assertStrContains(text, "a1b")
end

function TestExplore.test_hazards_are_counted_as_the_checker_counts_them()
  local code = [[
local s, x = {}, mr.zeros(4)
for i = 1, 3 do s[i] = mr.stream() end
mr.synchronize()
for i = 1, 3 do s[i]:run(function() x:add_(1) end) end
mr.synchronize()]]
  lu.assertStrContains((run("--explore", code)), "3 hazards at 1 pair of places: --check instead of --explore shows it")
  lu.assertStrContains((run("--check", code)), "3 hazards at 1 pair of places in ")
end

function TestExplore.test_a_printed_table_is_named_as_the_reason()
  local text, status = run("--explore", "print({})")
  lu.assertStrContains(text, "the address of a table (`table: 0x...`)")
  lu.assertEquals(status, 1)
end

function TestExplore.test_not_with_waits()
  local text, status = run("--explore --waits", RACY)
  lu.assertStrContains(text, "use one of them at a time")
  lu.assertEquals(status, 2)
end

function TestExplore.test_one_outcome()
  local text, status = run("--explore", (RACY:gsub("b:run", "b:wait_stream(a) b:run")))
  lu.assertStrContains(text, "1 schedule, 1 outcome: deterministic")
  lu.assertEquals(status, 0)
end

function TestExplore.test_bounds()
  local text, status = run("--explore=max:1,grain:1", RACY)
  lu.assertStrContains(text, "it stopped after max = 1 schedules")
  lu.assertEquals(status, 0)
  for _, bad in ipairs { "max", "max:", "max:x", "max:1;grain:2" } do
    text, status = run("--explore=" .. command.quote(bad), RACY)
    lu.assertStrContains(text, "--explore: max: expected a number, as in max:1000,grain:2, got '" .. bad)
    lu.assertEquals(status, 2)
  end
  for bad, name in pairs { ["mux:1"] = "mux", ["max:1,,grain:2"] = "", [":1"] = "", ["grain:1,foo:1"] = "foo" } do
    text, status = run("--explore=" .. command.quote(bad), RACY)
    lu.assertStrContains(text, "--explore: there is no option '" .. name ..
      "': expected one of max, time, memory, grain, preempt, polls, seeds, seed, as in max:1000,grain:2")
    lu.assertEquals(status, 2)
  end
end

function TestExplore.test_values_that_no_bound_takes()
  for bad, sentence in pairs {
    ["max:0"] = "max: expected a whole number of at least 1, got '0'",
    ["max:1,grain:0"] = "grain: expected a whole number of at least 1, got '0'",
    ["max:-1"] = "max: expected a whole number of at least 1, got '-1'",
    ["max:1.5"] = "max: expected a whole number of at least 1, got '1.5'",
    ["max:inf"] = "max: expected a whole number of at least 1, got 'inf'",
    ["max:1e300"] = "max: expected a whole number of at least 1, got '1e300'",
    ["preempt:-1"] = "preempt: expected a whole number of at least 0, got '-1'",
    ["polls:0"] = "polls: expected a whole number of at least 1, got '0'",
    ["seeds:0"] = "seeds: expected a whole number of at least 1, got '0'",
    ["seed:0.5"] = "seed: expected a whole number, got '0.5'",
    ["time:0"] = "time: expected a number above 0, got '0'",
    ["time:nan"] = "time: expected a number above 0, got 'nan'",
  } do
    local text, status = run("--explore=" .. bad, RACY)
    lu.assertStrContains(text, "--explore: " .. sentence)
    lu.assertNotStrContains(text, "traceback")
    lu.assertEquals(status, 2)
  end
  for _, good in ipairs { "seed:-1,seeds:3", "time:0.5", "max:1e3,preempt:1e12", "polls:1e12", "max: 0x10" } do
    local text, status = run("--explore=" .. command.quote(good), RACY)
    lu.assertStrContains(text, "schedule")
    lu.assertNotEquals(status, 2)
  end
end

function TestExplore.test_a_script_that_exits()
  local text, status = run("--explore", RACY .. "os.exit(0)")
  lu.assertStrContains(text, "2 schedules, 2 outcomes")
  lu.assertStrContains(text, "x is 3.0\tone\ttwo")
  lu.assertStrContains(text, "ends with os.exit(0)")
  lu.assertEquals(status, 3)
  text, status = run("--explore", "print('so far') os.exit(5, true)")
  lu.assertStrContains(text, "so far")
  lu.assertStrContains(text, "ends with os.exit(5)")
  lu.assertEquals(status, 1)
  text, status = run("--explore", "os.exit()")
  lu.assertStrContains(text, "ends with os.exit(0)")
  lu.assertEquals(status, 0)
end

function TestExplore.test_what_a_script_returns_counts()
  local text, status = run("--explore", RACY:gsub("io.write.*", "return {x = x:item(), f = print}"))
  lu.assertStrContains(text, "returns {x = 3.0}")
  lu.assertEquals(status, 3)
end

function TestExplore.test_a_script_that_fails()
  local text, status = run("--explore", "mr.synchronize() error('no luck')")
  lu.assertStrContains(text, "no luck")
  lu.assertEquals(status, 1) -- the same under every schedule
end

function TestExplore.test_a_script_that_does_not_load()
  local _, status = run("--explore", "this is no Lua")
  lu.assertEquals(status, 1)
end

function TestExplore.test_code_of_the_command_line()
  local text = command.eval("print(mr.ones(3):sum():item())", "--explore").out
  lu.assertStrContains(text, "1 schedule, 1 outcome")
end

function TestExplore.test_in_the_sandbox()
  local text, status = run("--sandbox --explore", RACY:gsub("io.write.-\n", ""))
  lu.assertStrContains(text, "2 schedules, 2 outcomes")
  lu.assertEquals(status, 3)
end

-- The clock and random numbers are fed again, so that two runs can be compared; and this is said.
function TestExplore.test_what_comes_from_outside()
  local text, status = run("--explore", 'io.write(os.time(), " ", os.clock(), " ", math.random(1000000), "\\n")')
  lu.assertStrContains(text, "1 schedule, 1 outcome: deterministic")
  lu.assertStrContains(text, "os.clock, os.time said the same in each run")
  lu.assertEquals(status, 0)
  text, status = run("--explore", RACY:gsub("io.write.*", "") .. "print(os.clock() >= 0, os.clock(), x:item())")
  lu.assertStrContains(text, "2 schedules, 2 outcomes")
  lu.assertEquals(status, 3)
end

function TestExplore.test_an_exploration_inside_is_refused()
  local text, status = run("--explore", "local r = pcall(mr.explore, function() return 1 end)\nprint(r)")
  lu.assertStrContains(text, "the function calls mr.explore: it calls its function again and again")
  lu.assertStrContains(text, "needs no --explore")
  lu.assertNotStrContains(text, "traceback")
  lu.assertEquals(status, 1)
end

function TestExplore.test_it_ends_with_what_was_found()
  local code = [[
local s, x = {}, mr.zeros(1)
for i = 1, 9 do s[i] = mr.stream() end
mr.synchronize()
for i = 1, 9 do s[i]:run(function() x:mul_(2):add_(i) end) end
mr.synchronize()
print(x:item())]]
  local text, status = run("--explore=time:0.3", code)
  lu.assertStrContains(text, "not all schedules: it stopped after time = 0.3 s")
  lu.assertStrContains(text, "not tried: `")
  lu.assertEquals(status, 3)
end

os.exit(lu.LuaUnit.run())
