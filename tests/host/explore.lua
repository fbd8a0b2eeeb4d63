-- --explore: a script under every schedule, the exit status, bounds, and errors.
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
    lu.assertStrContains(text, "x is 3")
    lu.assertStrContains(text, "x is 1")
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
  lu.assertStrContains((run("--explore", code)), "3 hazards at 1 pair of places:\n")
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

-- A script of tests that asks for the status learns of hazards. The text and `claim` tell of a search that was cut.
function TestExplore.test_the_status_tells_of_hazards()
  local benign = RACY:gsub("add_%(1%)", "fill_(1)"):gsub("mul_%(3%)", "fill_(1)")
  local text, status = run("--explore", benign)
  lu.assertStrContains(text, " 1 outcome")
  lu.assertStrContains(text, "1 hazard")
  lu.assertEquals(status, 3)
  local asks = [[
local s, n = mr.stream(), 0
s:run(function() mr.spin{ms = 1} end)
while not s:query() do n = n + 1 end
print(n > 3 and "many" or "few")]]
  command.with_file(asks, function(path) lu.assertEquals(command.say{ path }, "many\n") end)
  text, status = run("--explore", asks)
  lu.assertStrContains(text, " 1 outcome; not all schedules: the query")
  lu.assertStrContains(text, "\n  A run without --explore may come to an outcome that is not listed.\n")
  lu.assertStrContains(text, "1, in 3 schedules: few\n")
  lu.assertEquals(status, 0)
  text, status = run("--explore=json", asks)
  lu.assertStrContains(text, '"claim":"none"')
  lu.assertEquals(status, 0)
  text, status = run("--explore", RACY .. asks)
  lu.assertStrContains(text, "may come to an outcome that is not listed")
  lu.assertEquals(status, 3)
end

function TestExplore.test_bounds()
  local text, status = run("--explore=max:1,grain:1", RACY)
  lu.assertStrContains(text, "it stopped after max = 1 schedules")
  lu.assertEquals(status, 3)
  for _, bad in ipairs { "max", "max:", "max:x", "max:1;grain:2" } do
    text, status = run("--explore=" .. command.quote(bad), RACY)
    lu.assertStrContains(text, "--explore: max: expected a number, as in max:1000,grain:2, got '" .. bad)
    lu.assertEquals(status, 2)
  end
  for bad, name in pairs { ["mux:1"] = "mux", ["max:1,,grain:2"] = "", [":1"] = "", ["grain:1,foo:1"] = "foo" } do
    text, status = run("--explore=" .. command.quote(bad), RACY)
    lu.assertStrContains(text, "--explore: there is no option '" .. name ..
      "': expected one of max, time, memory, grain, preempt, polls, seeds, seed, workers, as in max:1000,grain:2")
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
    ["workers:0"] = "workers: expected a whole number of at least 1, got '0'",
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
  for _, good in ipairs { "seed:-1,seeds:3", "time:0.5", "max:1e3,preempt:1e12", "polls:1e12", "max: 0x10", "workers:1",
    "workers:1e12" } do
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

-- A command is carried out once, whatever the number of runs; another one, or its next call, by itself.
function TestExplore.test_commands_and_the_environment_are_fed_again()
  local log = os.tmpname()
  local code = RACY:gsub("io.write.*", "") .. ([[
for i = 1, 2 do assert(os.execute("echo again >> LOG")) end
if x:item() > 2 then assert(os.execute("echo more >> LOG")) end
print(x:item(), os.getenv("HOME") == os.getenv("HOME"), os.time{year = 2020, month = 1, day = 1, hour = 12})]])
    :gsub("LOG", log)
  local text, status = run("--explore", code)
  local file = assert(io.open(log))
  local written = file:read("a")
  file:close()
  os.remove(log)
  lu.assertStrContains(text, "2 schedules, 2 outcomes")
  lu.assertStrContains(text, "os.execute, os.getenv said the same in each run")
  lu.assertEquals(written, "again\nagain\nmore\n")
  lu.assertEquals(status, 3)
end

function TestExplore.test_an_exploration_inside_is_refused()
  local text, status = run("--explore", "local r = pcall(mr.explore, function() return 1 end)\nprint(r)")
  lu.assertStrContains(text, "the function calls mr.explore: it calls its function again and again")
  lu.assertStrContains(text, "needs no --explore")
  lu.assertNotStrContains(text, "traceback")
  lu.assertEquals(status, 1)
end

-- ---------------------------------------------------------------- what a person reads

function TestExplore.test_what_differs_from_the_order_of_submission()
  local text = run("--explore", RACY)
  lu.assertStrMatches((text:gsub("\n.*", "")), "2 schedules, 2 outcomes")
  lu.assertStrContains(text, "x is 3.0\tone\ttwo\n      in the order of submission\n")
  lu.assertStrMatches(text, ".*x is 1.0\tone\ttwo\n      `mul_` %([^\n]*:7%) before `add_` %([^\n]*:6%); "
    .. "the rest as submitted\n.*")
end

function TestExplore.test_long_prints_are_shown_by_the_lines_that_differ()
  local text = run("--explore", 'print("first")\n' .. RACY .. 'print("last")\nprint("very last")')
  lu.assertStrContains(text, "\n    line 2: x is 3.0\tone\ttwo\n    ... (3 lines that all print)\n")
  lu.assertStrContains(text, "\n    line 2: x is 1.0\tone\ttwo\n")
  lu.assertNotStrContains(text, "very last")
  text = run("--explore", 'print("first")\nprint("second")\nprint("last")')
  lu.assertStrContains(text, "second") -- one outcome is shown whole
end

function TestExplore.test_the_hazard_its_fix_and_the_script_with_it()
  local text, status = run("--explore", RACY)
  lu.assertStrContains(text, "  1 hazard:\n    read-after-write on ")
  lu.assertStrContains(text, "\n    fix: before line 7 add   b:wait_stream(a)\n"
    .. "  with the fix: 1 schedule, 1 outcome: deterministic\n")
  lu.assertNotStrContains(text, "kind=read-after-write")
  lu.assertEquals(status, 3)
end

-- Hints for a further search are in the form to write: for a script, as an option of the host.
function TestExplore.test_hints_name_the_options_of_the_host()
  lu.assertStrContains((run("--explore", "local mr = require 'millrace'\n" .. RACY)),
    "(--explore=grain:n mixes n parts of each)")
  local polling = "local mr = require 'millrace'\nlocal s, x = mr.stream(), mr.zeros(1)\nmr.synchronize()\n" ..
    "s:run(function() x:add_(1) end)\nlocal n = 0\nwhile not s:query() do n = n + 1 end\nprint(n)\n"
  lu.assertStrContains((run("--explore", polling)), "asked more often (polls = N, --explore=polls:N)")
end

-- The comment of a fix does not hide what stands on the line behind it.
function TestExplore.test_a_fix_with_a_comment()
  local text = run("--explore", "local x = mr.ones(64)\nmr.synchronize()\nmr.with(mr.stream(), function()\n" ..
    "  x:fill_(3)\nend)\nfor _ = 1, 1 do print(x:sum():item())\nend")
  lu.assertStrContains(text, "fix: before line 6 add   mr.synchronize() -- no variable in scope")
  lu.assertStrContains(text, "  with the fix: 1 schedule, 1 outcome: deterministic\n")
end

-- A result that nobody can see is the same in every order, and that is no praise.
function TestExplore.test_a_race_whose_result_nobody_sees()
  local code = "local mr = require 'millrace' local s, x = mr.stream(), mr.zeros(4)\ns:run(function() x:add_(1) end)"
  lu.assertStrContains((run("--explore", code)), "1 outcome: the script prints nothing that the hazards could change\n")
  lu.assertStrContains((run("--explore", code .. "print(1)")), "1 outcome: deterministic\n")
  local fixed = code:gsub("\n", " s:wait_stream(mr.default_stream())\n")
  lu.assertStrContains((run("--explore", fixed)), "1 outcome: deterministic\n")
end

-- Two hazards: only the report of the first round, or of the next one, shows the second.
function TestExplore.test_several_fixes()
  local text = run("--explore", RACY .. 'a:run(function() x:add_(1) end)\nb:run(function() x:mul_(3) end)\n'
    .. 'mr.synchronize()\nprint(x:item())')
  lu.assertStrContains(text, "  2 hazards:\n")
  lu.assertStrContains(text, "  with the fixes: 1 schedule, 1 outcome: deterministic\n")
end

-- A fix between two parts of a line has no place in the text; code of the command line is no file.
function TestExplore.test_nothing_is_claimed_of_a_fix_that_cannot_be_put_in()
  local one_line = RACY:gsub("end%)\nb:run", "end) b:run")
  local text = run("--explore", one_line)
  lu.assertStrContains(text, "split line 6")
  lu.assertNotStrContains(text, "with the fix")
  text = command.eval(RACY, "--explore").out
  lu.assertStrContains(text, "1 hazard:")
  lu.assertNotStrContains(text, "with the fix")
end

-- The script with its fix is given the same answers, and its own file stays as it is.
function TestExplore.test_the_fix_is_put_in_in_memory()
  command.with_file(RACY, function(path)
    command.say{ options = "--explore", path }
    local file <close> = assert(io.open(path))
    lu.assertEquals(file:read("a"), RACY)
  end)
end

-- ---------------------------------------------------------------- JSON

-- A reader of JSON for what is written here.
local function read_json(text)
  local at, read = 1, nil
  local function skip(pattern) at = text:match("^%s*" .. pattern .. "()", at) or at end
  local function list(close, one)
    local out = {}
    skip("[%[{]")
    while not text:find("^%s*" .. close, at) do
      one(out)
      skip(",")
    end
    skip(close)
    return out
  end
  local function read_text()
    local from = at + 1
    repeat at = assert(text:find('["\\]', at + 1)) if text:sub(at, at) == "\\" then at = at + 1 end
    until text:sub(at, at) == '"' and text:sub(at - 1, at) ~= '\\"'
    at = at + 1
    return (text:sub(from, at - 2):gsub("\\(.)", { n = "\n", t = "\t", ['"'] = '"', ["\\"] = "\\" }))
  end
  function read()
    skip("")
    local c = text:sub(at, at)
    if c == "{" then
      return list("}", function(out)
        local key = read_text()
        skip(":")
        out[key] = read()
      end)
    elseif c == "[" then return list("]", function(out) out[#out + 1] = read() end)
    elseif c == '"' then return read_text() end
    local word = assert(text:match("^[%w.+-]+", at), "no JSON at " .. at .. ": " .. text)
    at = at + #word
    if word == "true" or word == "false" then return word == "true" end
    return assert(tonumber(word), word)
  end
  local value = read()
  assert(text:find("^%s*$", at), "more behind the object")
  return value
end

-- It is not compared, and no part of the report.
function TestExplore.test_what_kernels_print()
  local code = [[
    local k = mr.kernel('#include <stdio.h>\nextern "C" __global__ void k(int v) { printf("v %d\\n", v); }', "k")
    k[{1, 1, stream = mr.stream()}](1)
    k[{1, 1, stream = mr.stream()}](2)
    mr.synchronize()]]
  local text, status = run("--explore", code)
  lu.assertStrContains(text, "1 schedule, 1 outcome: deterministic but for what kernels print\n")
  lu.assertStrContains(text, "This holds for all but what kernels print: printf is not compared.")
  lu.assertNotStrContains(text, "v 1")
  lu.assertEquals(status, 0)
  lu.assertEquals(run("--explore=json", code):sub(1, 1), "{")
end

function TestExplore.test_json()
  local text, status = run("--explore=json", RACY)
  lu.assertEquals(select(2, text:gsub("\n", "")), 1) -- one line
  local r = read_json(text)
  lu.assertEquals({ r.schedules, r.complete, r.deterministic, #r.outcomes, r.hazard_count }, { 2, true, false, 2, 1 })
  lu.assertEquals(r.outcomes[1].value, "x is 3.0\tone\ttwo\n")
  lu.assertEquals(r.outcomes[1].difference, {})
  lu.assertEquals(r.outcomes[2].count, 1)
  lu.assertStrMatches(r.outcomes[2].difference[1], "`mul_` %(.*:7%) before `add_` %(.*:6%)")
  lu.assertStrMatches(r.outcomes[2].schedule, "mr1 g1 .*")
  lu.assertEquals(r.hazards[1].kind, "read-after-write")
  lu.assertEquals(r.hazards[1].fixes[1].text, "b:wait_stream(a)")
  lu.assertEquals({ r.with_fix.outcomes, r.with_fix.deterministic }, { 1, true })
  lu.assertEquals(status, 3)
end

-- The output is byte for byte that of a run without --explore, also of numbers, and of calls that io.write refuses.
function TestExplore.test_output_is_that_of_a_plain_run()
  local code = [[
io.write(3.0, " ", 3, " ", 2^53, " ", 1e15, " ", 1e100, " ", 0.1, " ", -0.0, " ", 100.0, " ", -7.0, " ", 1e-10, "\n")
io.stdout:write(3.0, " ", 1/0, " ", -1/0, "\n")
io.output():write(2.0):write("x", 2.0, "\n")
print(3.0, -0.0, 2^53)
for _, value in ipairs { {}, true, print, setmetatable({}, { __tostring = function() return "t" end }) } do
  print(pcall(function() io.write("a", value) end))
  print(pcall(function() io.stdout:write(value) end))
end
print(pcall(function() io.write(nil) end))]]
  command.with_file(code, function(path)
    local plain = command.say{ path }
    lu.assertStrContains(plain, "bad argument #2 to 'write' (string expected, got table)")
    lu.assertEquals(read_json(command.say{ options = "--explore=json", path }).outcomes[1].value, plain)
  end)
end

-- The output before an error is a part of the outcome, and files that were written are, too.
function TestExplore.test_output_before_an_error()
  local text, status = run("--explore", RACY .. "error('it broke')")
  lu.assertStrContains(text, "2 schedules, 2 outcomes\n")
  for _, value in ipairs { "3.0", "1.0" } do
    lu.assertStrMatches(text, ".*: x is " .. value .. "\tone\ttwo\n    error: [^\n]*:11: it broke\n.*")
  end
  lu.assertEquals(status, 3)
  text = run("--explore=json", RACY .. "error{code = 1}")
  for i, value in ipairs { "3.0", "1.0" } do
    local o = read_json(text).outcomes[i]
    lu.assertEquals({ o.value, o.error }, { "x is " .. value .. "\tone\ttwo\n", "{code = 1}" })
  end
  local path <close> = setmetatable({ os.tmpname() }, { __close = function(self) os.remove(self[1]) end })
  text = run("--explore", RACY:gsub("io.write.*", "") .. ([[
    local file = io.open(%q, "w")
    file:write(x:item())
    file:close()
    error("it broke")]]):format(path[1]))
  lu.assertStrContains(text, "2 schedules, 2 outcomes\n")
  lu.assertStrMatches(text, '.*writes [^\n]*: "3"\n    error: .*writes [^\n]*: "1"\n    error: .*')
end

function TestExplore.test_json_of_what_is_hard_to_write()
  local text, status = run("--explore=time:5,json",
    'print("a\\"b\\\\\\n\\255") return {nan = 0/0, list = {1, 2.5}, t = mr.arange(3)}, nil, 1/0')
  local r = read_json(text)
  lu.assertStrContains(r.outcomes[1].value, 'a"b\\\n\u{fffd}')
  local returned = r.outcomes[1].values[2]
  lu.assertEquals(returned.nan, "nan")
  lu.assertEquals(returned.list, { 1, 2.5 })
  lu.assertEquals({ returned.t.dtype, returned.t.shape, returned.t.values }, { "i64", { 3 }, { 0, 1, 2 } })
  lu.assertEquals({ r.outcomes[1].values[3], r.outcomes[1].values[4] }, { "nil", "inf" })
  lu.assertEquals(status, 0)
  text, status = run("--explore=json", "error('no luck')")
  lu.assertStrContains(read_json(text).outcomes[1].error, "no luck")
  lu.assertEquals(status, 1)
  text, status = run("--explore=json", "print(1) os.exit(4)")
  lu.assertEquals(read_json(text).outcomes[1].exit, 4)
  lu.assertEquals(status, 1)
  text, status = run("--explore=jso", "print(1)")
  lu.assertStrContains(text, "there is no option 'jso'")
  lu.assertEquals(status, 2)
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

-- ---------------------------------------------------------------- what a script does outside of the machine

local OUTSIDE = RACY:gsub("io.write.*", "")

-- Calls fn with the path of a new folder, and removes it.
local function with_folder(fn)
  local pipe <close> = io.popen("mktemp -d")
  local folder = pipe:read("l")
  local ok, message = pcall(fn, folder)
  os.execute("rm -r " .. command.quote(folder))
  assert(ok, message)
end

local function read(path)
  local file = io.open(path, "rb")
  local text = file and file:read("a")
  if file then file:close() end
  return text
end

-- Writes are compared, and nothing is written. A run reads what it has written itself, and nothing of another.
function TestExplore.test_files_are_shadows()
  with_folder(function(folder)
    command.write(folder .. "/old", "before\n")
    command.write(folder .. "/gone", "")
    local text, status = run("--explore", "local folder = " .. ("%q"):format(folder) .. [[

      ]] .. OUTSIDE .. [[

      local file = assert(io.open(folder .. "/old", "a"))
      file:write("x is ", x:item())
      file:close()
      for line in io.lines(folder .. "//old") do print(line) end
      assert(not io.open(folder .. "/new") and not io.open(folder .. "/none/new", "w") and not io.open(folder, "w"))
      local new = assert(io.open(folder .. "/new", "w"))
      new:write("never closed")
      assert(os.rename(folder .. "/gone", folder .. "/moved") and not io.open(folder .. "/gone"))
      assert(io.open(folder .. "/moved"):close())
      assert(os.remove(folder .. "/moved") and not os.remove(folder .. "/moved"))
      assert(io.type(io.open(folder .. "/new")) == "file")
      assert(io.open(folder .. "/./../" .. folder:match("[^/]*$") .. "/new"))
      io.output(folder .. "/output")
      io.write("by output")]])
    lu.assertStrContains(text, "2 schedules, 2 outcomes")
    lu.assertStrContains(text, "    x is 3")
    for _, line in ipairs { '/old: "before\\nx is 1"', '/new: "never closed"', '/output: "by output"',
                            "/gone: removed", "/moved: removed" } do
      lu.assertStrContains(text, line)
    end
    lu.assertStrContains(text, "No file was written")
    lu.assertEquals(status, 3)
    lu.assertEquals(read(folder .. "/old"), "before\n")
    lu.assertEquals(read(folder .. "/gone"), "")
    for _, name in ipairs { "/new", "/output", "/moved" } do lu.assertNil(read(folder .. name)) end
  end)
end

-- The files that calls of the machine write are shadows, too. A run loads what it has saved, also under another name; a
-- timeline is not compared. A file without permission to write is an error at its line.
function TestExplore.test_saved_files_are_shadows()
  with_folder(function(folder)
    command.write(folder .. "/old.npy", "no tensor")
    local text, status = run("--explore", "local folder = " .. ("%q"):format(folder) .. [[

      ]] .. OUTSIDE .. [[

      mr.synchronize()
      mr.save(folder .. "/old.npy", x)
      mr.save(folder .. "/two.npy.tmp.npy", x:add(1))
      assert(os.rename(folder .. "/two.npy.tmp.npy", folder .. "/two.npy"))
      assert(mr.load(folder .. "/two.npy"):item() == mr.load(folder .. "/old.npy"):item() + 1)
      assert(not pcall(mr.load, folder .. "/two.npy.tmp.npy"))
      local tr = mr.timeline(function() mr.ones(1) end)
      tr:save(folder .. "/time.svg")
      mr.graph(function() mr.ones(1) end):save(folder .. "/graph.dot")
      print(select(2, pcall(mr.save, folder .. "/none/x.npy", x)))]])
    lu.assertStrContains(text, "2 schedules, 2 outcomes")
    for _, line in ipairs { '/old.npy: "\\147NUMPY', '/two.npy: "\\147NUMPY', "/two.npy.tmp.npy: removed",
                            "/time.svg: a timeline, not compared", '/graph.dot: "digraph',
                            "save: " .. folder .. "/none/x.npy: No such file or directory" } do
      lu.assertStrContains(text, line)
    end
    lu.assertEquals(status, 3)
    lu.assertEquals(read(folder .. "/old.npy"), "no tensor")
    for _, name in ipairs { "/two.npy", "/two.npy.tmp.npy", "/time.svg", "/graph.dot" } do
      lu.assertNil(read(folder .. name))
    end
  end)
end

-- Each run counts its streams, events and graphs from the same number on.
function TestExplore.test_numbers_of_objects()
  local text = run("--explore", OUTSIDE .. [[

    local g = mr.graph(function() mr.ones(1) end)
    print(mr.stream(), mr.event(), mr.stream().id, mr.event().id, g, x:item(), g.id)]])
  lu.assertStrContains(text, "2 schedules, 2 outcomes")
  local shown = {}
  for line in text:gmatch("stream #[^\n]*") do shown[#shown + 1] = line end
  lu.assertEquals(#shown, 2)
  lu.assertEquals(shown[1]:gsub("1%.0", "3.0"), shown[2]:gsub("1%.0", "3.0"))
end

-- Whatever prints is a part of the outcome, and what it reads for that is followed: tensors, the standard error,
-- warnings, graphs. A timeline is not compared.
function TestExplore.test_all_that_is_printed()
  local function explored(line)
    return (run("--explore", OUTSIDE .. "\n" .. line))
  end
  local text = run("--explore", [[local s, x = mr.stream(), mr.zeros(1) mr.synchronize()
    s:run(function() x:fill_(1) end)
    print(x)]])
  lu.assertStrContains(text, "2 schedules, 2 outcomes")
  lu.assertStrContains(text, "print reads  x")
  for _, line in ipairs { "print(x)", "mr.print(x)", "io.stderr:write(x:item())",
                          "warn '@on' warn('x ' .. x:item())" } do
    lu.assertStrContains(explored(line), "2 schedules, 2 outcomes")
  end
  text = explored "mr.timeline(function() mr.ones(1) end):print()"
  lu.assertStrContains(text, "deterministic")
  lu.assertStrContains(text, "(a timeline, not compared)")
  lu.assertStrContains(explored "mr.graph(function() mr.ones(1) end):print()", "    graph 1: 2 nodes")
  text = explored "os.execute('true ' .. x:item())"
  lu.assertStrContains(text, '    runs "true 3.0"')
  lu.assertStrContains(text, '    runs "true 1.0"')
end

-- Code that a script loads has the globals of its run: it prints into the outcome, and writes shadows.
function TestExplore.test_loaded_code()
  with_folder(function(folder)
    command.write(folder .. "/part.lua", [[local a, b, x = mr.stream(), mr.stream(), mr.zeros(1)
      mr.synchronize()
      a:run(function() x:add_(1) end)
      b:run(function() x:mul_(3) end)
      mr.synchronize()
      value = x:item()
      print("part", value)
      return {value}]])
    local text = run("--explore", ([[local folder = %q
      dofile(folder .. "/part.lua")
      print("value", value, load("return value")() == value)
      package.path = folder .. "/?.lua"
      assert(require("part") == require("part") and package.loaded.part[1] == value)
      assert(select(2, pcall(require, "nowhere")):find("module 'nowhere' not found"))
      local where = package.searchpath("part", package.path)
      local tried = select(2, package.searchpath("a-b", "?.x;%%/?", "-"))
      assert(where == folder .. "/part.lua" and tried == "no file 'a/b.x'\n\tno file '%%/a/b'")
      assert(require("io") == io and select(2, loadfile("none.lua")):find("^cannot open none.lua: No such file"))
      load("io.open(...):write('from loaded code')")(folder .. "/new", "w")
      local made = io.open(folder .. "/made.lua", "w")
      made:write("return 7")
      made:close()
      assert(dofile(folder .. "/made.lua") == 7 and require("made") == 7)]]):format(folder):gsub("io.open%(%.%.%.%)",
        "local p, m = ... io.open(p, m)"))
    for _, part in ipairs { "4 schedules, 4 outcomes", "part\t3.0", "part\t1.0", "value\t3.0\ttrue",
                            "value\t1.0\ttrue", '/new: "from loaded code"' } do
      lu.assertStrContains(text, part)
    end
    for _, name in ipairs { "/new", "/made.lua" } do lu.assertNil(read(folder .. name)) end
  end)
end

-- Nothing of a script catches os.exit. Its random numbers are told, and its changes of _G are its own.
function TestExplore.test_what_ends_and_draws()
  local text, status = run("--explore", "pcall(function() os.exit(0) end) print('after')")
  lu.assertStrContains(text, "ends with os.exit(0)")
  lu.assertNotStrContains(text, "after")
  lu.assertEquals(status, 0)
  for _, script in ipairs { "load(function() os.exit(4) end)",
    "setmetatable({}, { __gc = function() os.exit(4) end }) collectgarbage()",
    "local co = coroutine.create(function() local c <close> = setmetatable({}, { __close = function() os.exit(4) end" ..
      " }) coroutine.yield() end) coroutine.resume(co) coroutine.close(co)" } do
    text = run("--explore", script .. " print('after')")
    lu.assertStrContains(text, "ends with os.exit(4)")
    lu.assertNotStrContains(text, "after")
  end
  text = run("--explore", "local co = coroutine.create(function() os.exit(4) end) coroutine.resume(co) print('after')")
  lu.assertStrContains(text, "ends with os.exit(4)")
  text = run("--explore", OUTSIDE .. "\nmath.randomseed() print(math.random(10 ^ 9 | 0))")
  lu.assertStrContains(text, "2 schedules, 1 outcome: deterministic")
  lu.assertStrContains(text, "one answer of each call: math.random, math.randomseed said the same in each run")
  text = run("--explore", "setmetatable(_G, {__index = function(_, name) return 'no ' .. name end}) print(undefined)")
  lu.assertStrContains(text, "no undefined")
end

-- Standard input is the same in each run, by all formats.
function TestExplore.test_standard_input_is_read_once()
  local code = [[local x = mr.full({1}, 3)
    local name, number = io.read("l", "n")
    print(name, number, io.read(0), #io.read("L"), io.read(3), io.stdin:read("*n"), io.read("l"))
    for line in io.lines() do print(line) end
    print(x:item(), io.read(), io.read("a"), io.read("n"))]]
  local out = command.with_file(code, function(path)
    return command.run { "--explore", path, input = "ada\n 0x10 \nabc-2.5e1 rest\nlast\nend" }.out
  end)
  lu.assertStrContains(out, "    ada\t16\t\t2\tabc\t-25.0\t rest\n    last\n    end\n    3\tnil\t\tnil\n")
  lu.assertStrContains(out, "io.read said the same in each run")
end

-- A program is run once; one that would be written to is refused at its line, also if the script catches that.
-- A command sees the real files, and those that the script has written are copies.
function TestExplore.test_commands_that_name_a_written_file()
  for _, call in ipairs { 'os.execute("test -f NAME")', 'io.popen("cat < NAME")' } do
    local code = [[local path = os.tmpname()
local file = io.open(path, "w")
file:write("3\n")
file:close()
pcall(function() print(]] .. call:gsub('NAME"', '" .. path') .. [[) end)]]
    local text, status = run("--explore", code)
    lu.assertStrContains(text, "the command would not see what the script has done to `/tmp/lua_")
    lu.assertStrContains(text, ":5)")
    lu.assertEquals(status, 1)
  end
  lu.assertStrContains((run("--explore", 'os.execute("true") io.open("new", "w"):close() os.execute("true")')),
    "1 outcome: deterministic")
end

function TestExplore.test_programs()
  with_folder(function(folder)
    local count = folder .. "/count"
    local text = run("--explore", OUTSIDE .. ([[local p = io.popen("echo run >> %s; echo hello; exit 3")
      print(x:item(), p:read("l"), p:read("l"), p:close())]]):format(count))
    lu.assertStrContains(text, "3.0\thello\tnil\tnil\texit\t3")
    lu.assertStrContains(text, "2 outcomes")
    lu.assertEquals(read(count), "run\n")
    local message, status = run("--explore", ([[local x = mr.zeros(1)
      pcall(io.popen, "cat >> %s", "w")]]):format(count))
    lu.assertStrContains(message, "io.popen to write: the program would read it in each schedule")
    lu.assertStrMatches(message, ".*:2%).*")
    lu.assertEquals(status, 1)
    lu.assertEquals(read(count), "run\n")
  end)
end

-- The clock of the machine goes on from run to run: each run gets the times of the first one.
function TestExplore.test_times()
  local text, status = run("--explore", OUTSIDE .. [[

    local a, b = mr.event{timing = true}, mr.event{timing = true}
    a:record() mr.spin{ms = 2} b:record() b:synchronize()
    print(mr.clock(), a:elapsed_time(b) > 1, b - a, mr.machine.time(), x:item())]])
  lu.assertStrContains(text, "2 outcomes")
  lu.assertStrContains(text, "elapsed_time, mr.clock, mr.machine.time said the same in each run")
  lu.assertEquals(status, 3)
  text = run("--explore", OUTSIDE .. "print(x:item() .. ' s')") -- no time, though it looks like one
  lu.assertStrContains(text, "2 outcomes")
end

function TestExplore.test_an_error_comes_first()
  local text, status = run("--explore", "local x = require('millrace').zeros(1) x:add_(1)\nerror('it broke')")
  lu.assertStrMatches(text, "error: [^\n]*: it broke\n1 schedule, 1 outcome: this error; "
    .. "nothing is claimed about what comes after it\n.*")
  lu.assertNotStrContains(text, "deterministic")
  lu.assertEquals(status, 1)
  local silent = RACY:gsub("io.write.*", "") .. "\nerror('it broke')" -- no value of it is seen
  text, status = run("--explore", silent)
  lu.assertStrMatches(text, "error: [^\n]*: it broke\n2 schedules, 1 outcome: .*")
  lu.assertNotStrContains(text, ": deterministic but")
  lu.assertEquals(status, 1)
  lu.assertStrMatches(text,
    ".*\n  with the fix: 1 schedule, 1 outcome: this error; [^\n]*\n    error: [^\n]*: it broke\n")
  -- It fails in one of the two orders only.
  text = run("--explore", RACY .. "\nif x:item() == 3 then error('three') end")
  lu.assertStrContains(text, "2 outcomes")
  lu.assertStrMatches(text, ".*\n  with the fix: 1 schedule, 1 outcome: [^\n]*\n    error: [^\n]*: three\n")
  text, status = run("--explore=max:1", RACY .. "\nerror('it broke')")
  lu.assertStrMatches(text, "error: [^\n]*: it broke\n1 schedule, 1 outcome; not all schedules: .*")
  lu.assertEquals(status, 1)
end

-- Times of a timeline are those of each run: what is printed of them is shown, and not compared.
function TestExplore.test_printed_times()
  local text, status = run("--explore", [[local x = mr.zeros(1) mr.synchronize()
    local tr = mr.timeline(function() x:add(1) end)
    print(tr.facts.began .. " ms", x:item(), "5 msgs")]])
  lu.assertStrContains(text, "1 schedule, 1 outcome: ")
  lu.assertStrMatches(text, ".*outcome 1, in 1 schedule: %d[%d.]* ms\t0%.0\t5 msgs\n.*")
  lu.assertStrContains(text, "Printed times (a number and ms, us, ns or s) are not compared")
  lu.assertEquals(status, 0)
  text = run("--explore", OUTSIDE .. "print(x:item() .. 'x', '7 ms')")
  lu.assertStrContains(text, "2 outcomes")
  lu.assertNotStrContains(text, "Printed times")
end

os.exit(lu.LuaUnit.run())
