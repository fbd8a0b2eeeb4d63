-- timeout: 120
-- --check, MILLRACE_CHECK and --report: the output, its place, and the exit status.
local lu = require "luaunit"
local command = require "host.support.command"

local CLEAN = "local a = mr.zeros(4) a:add_(1)"
local RACE = [[
local s = mr.stream{name = "s"}
local A = mr.zeros(100, 100)
A:normal_()
local sum
mr.with(s, function()
  sum = A:sum()
end)
print("done")
]]
local KEYS = "kind=read-after-write reason=no-path tensor=A first=%s:3 second=%s:6"
local PROOF = "no hazards: every legal schedule of these %d operations gives the same values"

-- Runs the code as a file; -> result, path.
local function run(code, ...)
  local options = { ... }
  return command.with_file(code, function(path)
    options[#options + 1] = path
    return command.run(options), path
  end)
end

-- As sentences name it.
local function name_of(path) return path:match("[^/]*$") end

-- ---------------------------------------------------------------- a reader of JSON

-- Any JSON text without exponents; raises where it is none.
local function parse(text)
  local value
  local function fail(at) error("no JSON at " .. at .. ": " .. text, 0) end
  local function skip(at) return text:match("^[ \t\r\n]*()", at) end
  local function list(at, close, item)
    local next = skip(at)
    if text:sub(next, next) == close then return next + 1 end
    repeat
      local after = skip(item(skip(at)))
      local c = text:sub(after, after)
      at = after + 1
      if c ~= "," and c ~= close then fail(after) end
      if c == close then return at end
    until false
  end
  local function string_at(at)
    local parts = {}
    if text:sub(at, at) ~= '"' then fail(at) end
    at = at + 1
    while text:sub(at, at) ~= '"' do
      local c = text:sub(at, at)
      if c == "" or c:byte() < 32 then fail(at) end
      if c == "\\" then
        local code = text:match("^u(%x%x%x%x)", at + 1)
        local escaped = ({ n = "\n", t = "\t", ['"'] = '"', ["\\"] = "\\", ["/"] = "/" })[text:sub(at + 1, at + 1)]
        if not code and not escaped then fail(at) end
        parts[#parts + 1] = code and utf8.char(tonumber(code, 16)) or escaped
        at = at + (code and 6 or 2)
      else
        parts[#parts + 1] = c
        at = at + 1
      end
    end
    return table.concat(parts), at + 1
  end
  function value(at)
    local c = text:sub(at, at)
    if c == '"' then return string_at(at) end
    if c == "{" then
      local object = {}
      return object, list(at + 1, "}", function(from)
        local key, after = string_at(from)
        after = skip(after)
        if text:sub(after, after) ~= ":" then fail(after) end
        object[key], after = value(skip(after + 1))
        return after
      end)
    end
    if c == "[" then
      local array = {}
      return array, list(at + 1, "]", function(from)
        local element, after = value(from)
        array[#array + 1] = element
        return after
      end)
    end
    for word, meaning in pairs { ["true"] = true, ["false"] = false, ["null"] = "null" } do
      if text:sub(at, at + #word - 1) == word then return meaning, at + #word end
    end
    local number, after = text:match("^(%-?%d+%.?%d*)()", at)
    if not number then fail(at) end
    return tonumber(number), after
  end
  local result, after = value(skip(1))
  if skip(after) ~= #text + 1 then fail(after) end
  return result
end

local function parse_lines(text)
  local objects = {}
  for line in text:gmatch("([^\n]*)\n") do objects[#objects + 1] = parse(line) end
  return objects
end

-- ---------------------------------------------------------------- exit status

TestStatus = {}

function TestStatus.test_a_hazard_gives_3_and_the_script_goes_on()
  local result, path = run(RACE, "--check")
  lu.assertEquals(result.status, 3)
  lu.assertEquals(result.out, "done\n")
  lu.assertStrContains(result.err, KEYS:format(path, path))
end

function TestStatus.test_without_it_there_is_nothing()
  for _, options in ipairs { {}, { "--check=off" } } do
    local result = run(RACE, table.unpack(options))
    lu.assertEquals({ result.status, result.out, result.err }, { 0, "done\n", "" })
  end
end

function TestStatus.test_a_clean_run_gives_0_and_says_what_that_proves()
  local result = run(CLEAN, "--check")
  lu.assertEquals({ result.status, result.err }, { 0, PROOF:format(2) .. "\n" })
end

function TestStatus.test_what_the_host_read_is_a_caveat()
  local result = run(CLEAN .. " print(a:sum():item())", "--check")
  lu.assertEquals(result.status, 0)
  lu.assertStrMatches(result.err, "no hazards: every legal schedule of these %d+ operations gives the same values\n" ..
    "This holds if 1 value that the host read does not change what it submits%.\n")
end

-- A copy to memory of the host gives no value to the script; what reads that memory does.
function TestStatus.test_a_copy_to_the_host_is_no_read()
  local copy = CLEAN ..
    ' local h = mr.zeros(4, {device = "cpu"}) local p = a:to("cpu") h:copy_(a, {non_blocking = true}) '
  local text = run(copy .. "mr.synchronize()", "--check").err
  lu.assertNotStrContains(text, "that the host read")
  for _, read in ipairs{ "h[1]:item()", "p:totable()", 'mr.save("/dev/null.npy", h)', "mr.equal(h, h)" } do
    local result = run(copy .. "mr.synchronize() pcall(function() " .. read .. " end)", "--check")
    lu.assertStrContains(result.err, "that the host read", read)
  end
end

function TestStatus.test_a_script_that_fails_gives_1()
  local result = run(RACE .. "error('broken')", "--check")
  lu.assertEquals(result.status, 1)
  lu.assertStrContains(result.err, "broken")
  lu.assertStrContains(result.err, "hazard: read-after-write")
  lu.assertEquals(run("error('broken')", "--check=error").status, 1)
  lu.assertEquals(run("error{code = 'hazard'}", "--check=error").status, 1)
  lu.assertEquals(run("error{code = 'hazard'}").status, 1)
  lu.assertEquals(run("x x", "--check").status, 1)
end

function TestStatus.test_a_hazard_that_a_host_function_was_refused_for()
  local code = [[
local s, pin = mr.stream(), mr.zeros(8, { pinned = true })
pin:copy_(mr.ones(8), { non_blocking = true })
s:host_func(function() print(pin[1]:item()) end)
s:synchronize()]]
  local result = run(code, "--check=error")
  lu.assertEquals({ result.status, result.out }, { 3, "" })
  lu.assertStrContains(result.err, "a host function failed: ")
  lu.assertEquals(run((code:gsub("print%b()", "error('broken')")), "--check=error").status, 1)
end

function TestStatus.test_error_stops_at_the_first()
  local result, path = run(RACE, "--check=error")
  lu.assertEquals(result.status, 3)
  lu.assertEquals(result.out, "")
  lu.assertStrContains(result.err, KEYS:format(path, path))
  lu.assertStrContains(result.err, "stack traceback:")
end

function TestStatus.test_a_refusal_that_was_caught_still_counts()
  local result = run((RACE:gsub("mr%.with%(", "pcall(mr.with, ", 1)), "--check=error")
  lu.assertEquals({ result.status, result.out }, { 3, "done\n" })
end

function TestStatus.test_os_exit_does_not_lose_it()
  lu.assertEquals(run(RACE .. "os.exit(0)", "--check").status, 3)
  lu.assertEquals(run(RACE .. "os.exit(7)", "--check").status, 7)
  lu.assertEquals(run(CLEAN .. " os.exit(true)", "--check").status, 0)
end

function TestStatus.test_advice_is_no_hazard()
  local code = "local s, e = mr.stream(), mr.event() s:wait_event(e)"
  local result = run(code, "--check=advice")
  lu.assertEquals(result.status, 0)
  lu.assertStrContains(result.err, "advice: never-recorded-wait")
  lu.assertEquals(run(code, "--check").err, "nothing was checked: no operation was submitted\n")
  lu.assertEquals(run(RACE, "--check=advice").status, 3)
end

function TestStatus.test_hazards_that_a_script_looks_for_itself_do_not_count()
  local result = run("local function race()\n" .. RACE .. "end\nassert(#mr.hazard.check(race) == 1)", "--check")
  lu.assertEquals(result.status, 0)
  lu.assertEquals(result.err, "nothing was checked outside mr.hazard.check\n" ..
    "not counted: 3 operations ran inside mr.hazard.check and are reported there\n")
  -- The collector would free tensors at a time that depends on all that was allocated.
  result = run("collectgarbage 'stop' mr.zeros(4):add_(1) local function race()\n" .. RACE ..
    "end\nmr.hazard.check(race)", "--check")
  lu.assertEquals(result.status, 0)
  lu.assertStrContains(result.err, PROOF:format(2) .. "\nnot counted: 3 operations ran inside")
end

function TestStatus.test_what_was_cleared_still_counts()
  local result = run(RACE .. "mr.hazard.clear() print((mr.hazard.summary()))", "--check")
  lu.assertEquals(result.status, 3)
  lu.assertStrContains(result.out, "not counted: 1 hazard, which mr.hazard.clear() forgot\n")
  lu.assertStrContains(result.err, "1 hazard at 1 pair of places in 3 operations (1 before mr.hazard.clear())\n")
  result = run(RACE .. "mr.hazard.clear()", "--check", "--report=json")
  local objects = parse_lines(result.err)
  lu.assertEquals({ result.status, objects[2].hazards, objects[2].reports, objects[2].cleared }, { 3, 1, 1, 1 })
end

function TestStatus.test_where_nothing_was_checked_nothing_is_claimed()
  local result = run(RACE .. "print((mr.hazard.summary()))")
  lu.assertEquals(result.out, "done\nnothing was checked: the checker is off\n\n")
  result = run("mr.hazard.mode('off')\n" .. RACE, "--check")
  lu.assertEquals(result.status, 0)
  lu.assertEquals(result.err, "nothing was checked: the checker is off\n")
  result = run(CLEAN .. " mr.hazard.mode('off')\n" .. RACE .. "mr.hazard.mode('warn')", "--check")
  lu.assertEquals(result.err, PROOF:format(2) ..
    "\nThis holds for the operations that were checked: others were pending or " ..
    "submitted while the checker was off.\n")
  lu.assertEquals(run(CLEAN .. " mr.hazard.mode('collect')", "--check").err, PROOF:format(2) .. "\n")
  result = command.run{ "--check", "/nowhere/race.lua" }
  lu.assertEquals(result.status, 1)
  lu.assertStrContains(result.err, "nothing was checked: no operation was submitted\n")
end

function TestStatus.test_what_cuda_leaves_open_is_an_exception_of_the_verdict()
  local code = [[
local s = mr.stream{name = "s"}
local x, g = mr.ones(100), mr.zeros(100, {device = "cpu"})
mr.synchronize()
s:run(function() g:copy_(x, {non_blocking = true}) end)
print(g[1]:item())
]]
  local result = run(code, "--check")
  lu.assertEquals(result.status, 0)
  lu.assertStrContains(result.err, "This holds if an asynchronous copy of pageable memory waits, which CUDA does " ..
    "not specify (see --check=advice).")
  result = run(code, "--check=error", "--report=json")
  lu.assertEquals(parse_lines(result.err)[1].unspecified, 1)
  result = run((code:gsub('"cpu"', '"cpu", pinned = true'):gsub("print", "s:synchronize() print")), "--check")
  lu.assertNotStrContains(result.err, "pageable")
end

function TestStatus.test_what_is_collected_at_the_end_is_none()
  lu.assertEquals(run([[
    local a, b = mr.stream(), mr.stream()
    local x = mr.with(a, function() return mr.ones(4) end)
    b:wait_stream(a)
    mr.with(b, function() return x:sum() end)]], "--check").status, 0)
end

function TestStatus.test_code_and_standard_input_are_checked_too()
  lu.assertEquals(command.eval(RACE, "--check").status, 3)
  lu.assertEquals(command.run{ "--check", "-", input = RACE }.status, 3)
end

-- ---------------------------------------------------------------- the environment and misuse

TestChoice = {}

function TestChoice.test_the_environment_stands_for_the_option()
  local function with(value, ...)
    local arguments = { ... }
    arguments.environment = "export MILLRACE_CHECK=" .. value
    arguments[#arguments + 1], arguments[#arguments + 2] = "-e", RACE
    return command.run(arguments)
  end
  lu.assertEquals(with("warn").status, 3)
  lu.assertEquals(with("error").out, "")
  lu.assertEquals(with("error", "--check=warn").out, "done\n")
  lu.assertEquals(with("warn", "--check=off").status, 0)
  lu.assertEquals(with("").status, 0)
  lu.assertEquals(with("loud").status, 2)
end

function TestChoice.test_the_module_of_a_plain_lua_starts_in_the_mode_of_the_environment()
  local function plain(value)
    local text = 'mr = require "millrace"\n' .. RACE .. "print(mr.hazard.mode())"
    return command.run_plain(text, "MILLRACE_CHECK=" .. value)
  end
  if not plain("") then return end
  lu.assertEquals(plain(""), "done\noff\n")
  lu.assertStrContains(plain("warn"), "hazard: read-after-write on `A`")
  lu.assertStrContains(plain("warn"), "done\nwarn\n")
  lu.assertStrMatches(plain("error"), "lua5.4: [^\n]*:7: hazard: read%-after%-write.*")
  lu.assertStrContains(plain("loud"), 'no check "loud"')
end

-- A finalizer that was set before the module was loaded runs when all of it is closed.
function TestChoice.test_what_comes_after_the_machine_is_refused()
  local said, ok = command.run_plain([[
keep = setmetatable({}, {__gc = function()
  for _, late in ipairs{
    function() mr.zeros(3) end, function() s:synchronize() end, function() mr.hazard.mode() end,
    function() mr.current_device() end, function() x:sum() end,
  } do io.write(tostring(select(2, pcall(late))), "\n") end
end})
mr = require "millrace"
x, s = mr.ones(4), mr.stream()]])
  if not said then return end
  lu.assertTrue(ok)
  lu.assertEquals(select(2, said:gsub("the machine is closed: the script has ended", "")), 5, said)
end

function TestChoice.test_a_form_of_reports_asks_for_them()
  local result = run(RACE, "--report=json")
  lu.assertEquals(result.status, 3)
  lu.assertEquals(#parse_lines(result.err), 2)
  lu.assertStrContains(run(RACE, "--report=text").err, "hazard: read-after-write")
  result = run(RACE, "--report=json", "--check=off")
  lu.assertEquals({ result.status, result.err }, { 0, "" })
end

function TestChoice.test_collect_says_only_the_verdict()
  local result = run(RACE .. "print(#mr.hazard.reports())", "--check=collect")
  lu.assertEquals({ result.status, result.out }, { 3, "done\n1\n" })
  lu.assertEquals(result.err, "1 hazard at 1 pair of places in 3 operations\n")
end

function TestChoice.test_misuse()
  local result = command.eval("", "--check=loud")
  lu.assertEquals(result.status, 2)
  lu.assertStrContains(result.err, 'no check "loud"; there are warn, error')
  result = command.eval("", "--report=xml")
  lu.assertEquals(result.status, 2)
  lu.assertStrContains(result.err, "--report: expected text or json, got 'xml'")
  lu.assertStrContains(command.eval("", "--report").err, "--report")
end

function TestChoice.test_the_mode_takes_no_word_of_its_own()
  local result, path = run(RACE, "--check")
  lu.assertStrContains(result.err, path)
end

function TestChoice.test_help_names_them()
  local help = command.run{ "--help" }.out
  for _, word in ipairs { "--check[=MODE]", "--report=FORM", "MILLRACE_CHECK",
                          "3    --check or --waits found a hazard" } do
    lu.assertStrContains(help, word)
  end
end

function TestChoice.test_the_prompt_warns_and_leaves_with_0()
  local result = command.run{ "-i", input = "mr.hazard.mode()\n" .. "do " .. RACE:gsub("\n", " ") .. " end\n" }
  lu.assertEquals(result.status, 0)
  lu.assertStrContains(result.out, "warn")
  lu.assertStrContains(result.err, "hazard: read-after-write")
  lu.assertEquals(command.run{ "-i", input = "1\n" }.err, "")
  lu.assertStrContains(command.run{ "-i", "--check=off", input = "mr.hazard.mode()\n" }.out, "off")
end

function TestChoice.test_in_the_sandbox()
  local result = command.eval(RACE, "--sandbox", "--check")
  lu.assertEquals({ result.status, result.out }, { 3, "done\n" })
  lu.assertStrContains(result.err, "hazard: read-after-write on `A`")
  lu.assertEquals(command.eval(RACE, "--sandbox", "--check=error").status, 3)
  result = command.eval("mr.zeros(4):add_(1)", "--sandbox", "--check")
  lu.assertEquals({ result.status, result.err }, { 0, PROOF:format(2) .. "\n" })
  result = command.eval("while true do end", "--sandbox", "--time", "0.2", "--check")
  lu.assertEquals(result.status, 1)
end

function TestChoice.test_why_returns_what_a_script_prints()
  local result, path = run(RACE .. [[
    local text = mr.hazard.why(":3", ":6")
    assert(text:find("nothing orders"), text)
    mr.synchronize() print(text)
    A:sum()
    print(mr.hazard.why(":3", ":12"))]], "--check")
  local name = name_of(path)
  lu.assertEquals(select(2, result.out:gsub("nothing orders", "")), 1)
  lu.assertStrContains(result.out, ("nothing orders `normal_` by the default stream at %s:3 (#"):format(name))
  lu.assertStrContains(result.out, (") before `sum` by stream s at %s:6 (#"):format(name))
  lu.assertStrContains(result.out, (") is ordered before `sum` by the default stream at %s:12 (#"):format(name))
end

-- ---------------------------------------------------------------- the form

TestForm = {}

local function at_a_terminal(environment)
  return command.with_file(RACE, function(path)
    local program = ("%s %s --check %s"):format(environment, command.quote(command.host), path)
    local shown = io.popen("script -qec " .. command.quote(program) .. " /dev/null </dev/null 2>&1")
    local text = shown:read("a")
    shown:close()
    return text
  end)
end

function TestForm.test_plain_where_it_is_no_terminal()
  local result = command.run{ "--check", "-e", RACE, environment = "unset NO_COLOR" }
  lu.assertStrContains(result.err, "hazard: read-after-write")
  lu.assertNotStrContains(result.err, "\27")
end

function TestForm.test_coloured_at_a_terminal_unless_told_not_to()
  local text = at_a_terminal("env -u NO_COLOR TERM=xterm")
  lu.assertStrContains(text, "\27[1;31mhazard: read-after-write\27[0m")
  lu.assertStrContains(at_a_terminal("env NO_COLOR= TERM=xterm"), "\27[")
  for _, variables in ipairs{ "NO_COLOR=1 TERM=xterm", "NO_COLOR= TERM=dumb", "NO_COLOR= TERM=" } do
    text = at_a_terminal("env " .. variables)
    lu.assertStrContains(text, "hazard: read-after-write")
    lu.assertNotStrContains(text, "\27[")
  end
end

function TestForm.test_the_report_is_the_documented_one()
  local result, path = run(RACE, "--check")
  lu.assertEquals(result.err, (([[
hazard: read-after-write on `A` (f32[100,100], bytes 0..39999)
  sum     reads  A on stream s at NAME:6
  normal_ writes A on stream default at NAME:3
nothing makes s wait for default: s is non-blocking, so it does not wait for the default stream.
fix: before line 6 add   s:wait_stream(mr.default_stream())
kind=read-after-write reason=no-path tensor=A first=FILE:3 second=FILE:6
1 hazard at 1 pair of places in 3 operations
]]):gsub("%u%u%u%u", { FILE = path, NAME = name_of(path) })))
end

function TestForm.test_json_is_an_object_a_line()
  local result, path = run(RACE, "--check", "--report=json")
  lu.assertEquals(result.status, 3)
  local objects = parse_lines(result.err)
  lu.assertEquals(#objects, 2)
  local r = objects[1]
  lu.assertEquals({ r.type, r.kind, r.reason, r.tensor, r.bytes, r.count },
    { "hazard", "read-after-write", "no-path", "A", { 0, 39999 }, 1 })
  lu.assertEquals({ r.first.op, r.first.access, r.first.stream, r.first.where },
    { "normal_", "write", "default", path .. ":3" })
  lu.assertEquals({ r.second.op, r.second.access, r.second.stream, r.second.where },
    { "sum", "read", "s", path .. ":6" })
  lu.assertEquals(r.fix, "s:wait_stream(mr.default_stream())")
  lu.assertEquals(r.fixes, { { place = "before", file = path, line = 6, text = "s:wait_stream(mr.default_stream())" } })
  lu.assertEquals({ r.number, r.stream_pairs, r.amended }, { 1, 1, false })
  lu.assertStrContains(r.why, "s is non-blocking")
  lu.assertEquals({ objects[2].type, objects[2].hazards, objects[2].operations }, { "summary", 1, 3 })
end

-- A pair that is met again is not printed again, unless it needs lines of its own: the summary has the last numbers.
function TestForm.test_the_counts_of_the_end_are_in_the_summary()
  local result = run([[
local x, streams = mr.zeros(4), {}
for i = 1, 5 do streams[i] = mr.stream() end
mr.synchronize()
for i = 1, 5 do
  streams[i]:run(function() x:fill_(i) end)
end]], "--report=json")
  local objects = parse_lines(result.err)
  lu.assertEquals({ #objects, objects[1].count, objects[2].count, objects[3].count }, { 4, 1, 2, 10 })
  lu.assertEquals(objects[#objects].counts, { { number = 1, count = 10, stream_pairs = 10 } })
end

-- Every field that an object and a table have is in the tables of docs/hazards.md.
function TestForm.test_the_fields_are_documented()
  local page = command.read("docs/hazards.md")
  local result = run(RACE .. [[
    for key in pairs(mr.hazard.reports()[1]) do print(key) end
    for key in pairs(select(2, mr.hazard.summary())) do print(key) end]], "--check=collect")
  local names = {}
  for name in result.out:gmatch("[%l_]+") do if name ~= "done" then names[#names + 1] = name end end
  for _, object in ipairs(parse_lines(run(RACE, "--report=json").err)) do
    for name in pairs(object) do names[#names + 1] = name end
  end
  lu.assertTrue(#names > 40)
  for _, name in ipairs(names) do
    if not page:find("\n| [^\n|]*`" .. name .. "`[^\n|]* |") then lu.assertEquals(name, "text") end
  end
end

function TestForm.test_what_is_amended_is_short()
  local result, path = run([[
local a, b, x = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.zeros(4, {name = "x"})
mr.synchronize()
a:run(function() x:fill_(1) end)
b:run(function() x:sum() end)
b:wait_stream(a)]], "--check")
  local name = name_of(path)
  local _, whole = result.err:gsub("hazard: ", "")
  lu.assertEquals(whole, 1)
  lu.assertStrContains(result.err, ("update: read-after-write on `x`, %s:4 after %s:3, reported above\n" ..
    "b waits for a at %s:5, but this wait was submitted after the use"):format(name, name, name))
  lu.assertStrContains(result.err, "kind=read-after-write reason=waited-after-use tensor=x")
end

local LOOP = [[
local streams, total = {}, mr.zeros(4, {name = "total"})
for i = 1, 4 do streams[i] = mr.stream() end
mr.synchronize()
for i = 1, 4 do
  streams[i]:run(function() total:add_(i) end)
end]]

function TestForm.test_all_tensors_of_an_operation_are_named()
  local result = run([[
local x, y, s = mr.zeros(4, {name = "x"}), mr.zeros(4, {name = "y"}), mr.stream()
s:run(function() return x + y end)]], "--report=json")
  lu.assertEquals(parse_lines(result.err)[1].tensors, { "x", "y" })
end

function TestForm.test_other_streams_at_the_same_places_are_told_at_once_and_at_the_end()
  local result, path = run(LOOP, "--check")
  local name = name_of(path)
  local _, whole = result.err:gsub("hazard: ", "")
  local _, amended = result.err:gsub("update: ", "")
  lu.assertEquals({ whole, amended }, { 1, 2 })
  for i = 1, 3 do
    lu.assertStrContains(result.err, ("add   streams[i]:wait_stream(streams[%d])\n"):format(i))
  end
  lu.assertStrContains(result.err, ("update: read-after-write on `total`, %s:5 after %s:5, reported above\n" ..
    "The same happens between other streams, too (streams[3] after streams[1]): 2 times so far, for 2 pairs of " ..
    "streams. No other line is needed.\n"):format(name, name))
  local objects = parse_lines(run(LOOP, "--report=json").err)
  lu.assertEquals({ #objects, objects[2].number, objects[2].amended, objects[2].stream_pairs }, { 4, 1, true, 2 })
  lu.assertEquals(#objects[3].fixes, 3)
end

-- Also where no more lines are needed: one line in the loop serves all.
function TestForm.test_the_last_count_is_that_of_all_pairs_of_streams()
  local result = run([[
local streams, x = {}, mr.zeros(4, {name = "x"})
for i = 1, 4 do streams[i] = mr.stream() end
for i = 1, 4 do
  streams[i]:run(function() return x:sum() end)
end
mr.synchronize()]], "--check")
  lu.assertStrContains(result.err, "The same happens between other streams, too (streams[2] after default): 2 times " ..
    "so far, for 2 pairs of streams. No other line is needed.\n")
  lu.assertStrContains(result.err, "4 times so far, for 4 pairs of streams. No other line is needed.\n" ..
    "4 hazards at 1 pair of places")
end

function TestForm.test_json_of_a_clean_run_of_advice_and_of_odd_names()
  local objects = parse_lines(run(CLEAN, "--check", "--report=json").err)
  lu.assertEquals({ #objects, objects[1].type, objects[1].text }, { 1, "summary", PROOF:format(2) })
  objects = parse_lines(run("mr.stream():wait_event(mr.event())", "--check=advice", "--report=json").err)
  lu.assertEquals({ #objects, objects[1].type, objects[1].kind }, { 2, "advice", "never-recorded-wait" })
  objects = parse_lines(run((RACE:gsub("100, 100", [[4, {name = 'a "b" \\ \1'}]])), "--check", "--report=json").err)
  lu.assertEquals(objects[1].tensor, 'a "b" \\ \1')
end

-- Two streams add to one tensor, from a file of that name; all are called `name`.
local function race_in(name, file)
  return ([[
local name, file = %q, %q
local a, b = mr.stream{ name = "a" .. name }, mr.stream{ name = "b" .. name }
local x, e = mr.zeros(4, { name = name }), mr.event{ name = name }
mr.synchronize()
local code = "local x, a, b, e, name = ... mr.with(a, function() x:fill_(1) end) e:record(a) " ..
  "mr.op{ name = name, reads = { x }, writes = { x }, stream = b }"
assert(load(code, "@" .. file))(x, a, b, e, name:sub(1, 24))]]):format(name, file)
end

local EURO = "\u{20ac}"

function TestForm.test_json_is_utf8_also_where_names_are_long_or_are_none()
  local cases = { { "\xff\xc3(\xed\xa0\x80", "\xfe.lua" } }
  for size = 58, 65 do cases[#cases + 1] = { ("n"):rep(size % 3) .. EURO:rep(size), EURO:rep(size) .. ".lua" } end
  for size = 150, 190, 10 do cases[#cases + 1] = { ("n"):rep(size), ("d"):rep(size - 4) .. ".lua" } end
  cases[#cases + 1] = { "n", ("d/"):rep(150) .. EURO:rep(40) .. ".lua" }
  for _, case in ipairs(cases) do
    local name, file = table.unpack(case)
    local text = run(race_in(name, file), "--report=json").err
    lu.assertEquals((utf8.len(text)) ~= nil, true, name .. " in " .. file)
    local objects = parse_lines(text)
    lu.assertEquals(#objects, 2)
    lu.assertStrMatches(objects[1].second.where, ".*%.lua:1")
    if utf8.len(name) then lu.assertEquals(objects[1].tensor, name) end
    if utf8.len(file) and #file <= 200 then lu.assertEquals(objects[1].second.where, file .. ":1") end
  end
  local r = parse_lines(run(race_in("bad\xff\xfename", "f.lua"), "--report=json").err)[1]
  lu.assertEquals(r.tensor, "bad\u{fffd}\u{fffd}name")
  r = parse_lines(run(race_in(EURO:rep(60), "f.lua"), "--report=json").err)[1]
  lu.assertEquals(r.first.stream, "a" .. EURO:rep(19) .. "...")
end

function TestForm.test_names_do_not_break_lines_nor_command_the_terminal()
  local odd = "a b\n\"q\"\r\27[31m\xff\u{9b}"
  for _, mode in ipairs { "warn", "error" } do
    local text = run(race_in(odd, odd .. ".lua"), "--check=" .. mode).err
    text = text:match("(.*)stack traceback") or text -- which is Lua's
    lu.assertNotStrContains(text, "\27")
    lu.assertNotStrContains(text, "\r")
    lu.assertNotStrContains(text, "\xff")
    lu.assertNotStrContains(text, "\u{9b}")
    local shown, quoted = [[a b\n"q"\r\x1b[31m\xff\u{9b}]], [["a b\n\"q\"\r\x1b[31m\xff\u{9b}]]
    lu.assertStrContains(text, ("hazard: read-after-write on `%s` (f32[4], bytes 0..15)\n"):format(shown))
    lu.assertStrContains(text, (" on stream b%s at %s.lua:1\n"):format(shown, shown))
    lu.assertStrContains(text, ("kind=read-after-write reason=no-path tensor=%s\" first=%s.lua:1\" second=%s.lua:1\"\n")
      :format(quoted, quoted, quoted))
  end
  local shown = run(race_in(odd, "f.lua") .. [[
    mr.hazard.ignore{ tensor = name }
    local r = mr.hazard.reports()[1]
    print(mr.hazard.why(r.first, r.second))]], "--check")
  lu.assertEquals({ shown.out:find("[\27\r\xff]") }, {})
  lu.assertStrContains(shown.out, [[stream ba b\n"q"\r\x1b[31m\xff\u{9b} at f.lua:1]])
  lu.assertStrContains(shown.err, [[ignored 0: tensor="a b\n\"q\"\r\x1b[31m\xff\u{9b}"]])
end

-- The line is put into a script: a name in its comment must not end that.
function TestForm.test_a_fix_is_a_line_also_if_a_name_is_more()
  local result = run([[
local x, a = mr.zeros(4), mr.stream{ name = "a" }
mr.synchronize()
mr.with(a, function() x:fill_(1) end)
mr.with(mr.stream{ name = "b\nos.exit(9)" }, function() x:fill_(2) end)
mr.synchronize()]], "--report=json")
  local r = parse_lines(result.err)[1]
  lu.assertEquals(r.fix, [[mr.synchronize() -- no variable in scope here leads to b\nos.exit(9): ]] ..
    "name it first, at line 4: local s = ...")
end

function TestForm.test_json_in_error_mode_comes_beside_the_error()
  local result = run(RACE, "--check=error", "--report=json")
  lu.assertEquals(result.status, 3)
  local objects = {}
  for line in result.err:gmatch("[^\n]+") do
    if line:sub(1, 1) == "{" then objects[#objects + 1] = parse(line) end
  end
  lu.assertEquals({ #objects, objects[1].type, objects[2].type }, { 2, "hazard", "summary" })
end

-- A failure for which the script has not waited is told at the end, where no line of it runs.
TestFailureAtTheEnd = {}

function TestFailureAtTheEnd.test_it_has_no_empty_traceback()
  local code = [==[
local k = mr.kernel([[extern "C" __global__ void far(float *y) { y[100000] = 1; }]])
local y = mr.zeros(4)
k[{1, 1}](y)
]==]
  for _, check in ipairs{ "off", "warn" } do
    local result, path = run(code, "--device", "virtual", "--check=" .. check)
    lu.assertEquals(result.status, 1)
    lu.assertStrContains(result.err, "millrace: " .. path .. ":3: kernel `far` at ")
    lu.assertNotStrContains(result.err, "stack traceback")
    result = run(code .. "y:item()\n", "--device", "virtual", "--check=" .. check) -- a line that waits is named
    lu.assertStrContains(result.err, "stack traceback:\n\t[C]: in ")
    lu.assertStrContains(result.err, ":4: in main chunk")
  end
end

TestModules = {}

-- The fix within a module uses a local of the module that the function itself does not: the chunk has ended, but
-- another function holds it. With the fix the hazard is gone.
function TestModules.test_a_fix_names_a_local_of_the_module()
  local stage = [[
local mr = require "millrace"
local stage = {}
local copy, compute = mr.stream{name = "copy"}, mr.stream{name = "compute"}
HEAD
function stage.load(x) copy:run(function() x:fill_(1) end) end
function stage.use(x)
FIX
  compute:run(function() x:mul_(2) end)
end
return stage
]]
  local main = [[
local mr = require "millrace"
package.path = FOLDER .. "/?.lua"
local stage = require "stage"
local x = mr.zeros(64)
mr.synchronize()
stage.load(x)
stage.use(x)
mr.synchronize()
]]
  local folder = os.tmpname()
  os.remove(folder)
  assert(os.execute("mkdir " .. folder))
  local function report(head, fix)
    command.write(folder .. "/stage.lua", (stage:gsub("HEAD", head):gsub("FIX", fix)))
    return run(main:gsub("FOLDER", ("%q"):format(folder)), "--check").err
  end
  lu.assertStrContains(report("", ""), "fix: before line 8 add   compute:wait_stream(copy)\n")
  lu.assertStrContains(report("", "compute:wait_stream(copy)"), "no hazards")
  -- another variable of that name, or another value
  lu.assertStrContains(report("", "local copy = 1"),
    "add   mr.synchronize() -- no variable in scope here leads to copy")
  lu.assertStrContains(report("for _ = 1, 1 do local copy = copy function stage.other() return copy end end", ""),
    "add   compute:wait_stream(copy)\n")
  os.execute("rm -r " .. folder)
end

os.exit(lu.LuaUnit.run())
