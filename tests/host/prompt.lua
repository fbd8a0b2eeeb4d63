-- The prompt through a pipe; prompt_terminal.lua types at a terminal.
local lu = require "luaunit"
local command = require "host.support.command"

-- What the prompt shows for these lines, without banner and prompts.
local function shown(input)
  local result = command.run{ "-i", input = input }
  lu.assertEquals(result.status, 0)
  local banner, rest = result.out:match("^(millrace [^\n]*\n[^\n]*)\n(.*)$")
  lu.assertStrContains(banner, "Its time stands still")
  return (rest:gsub("mr:%d+[^\n>]*> ", ""):gsub("%.%.> ", "")), result.err
end

TestPrompt = {}

function TestPrompt.test_expressions_are_shown()
  lu.assertEquals(shown("1 + 1\n"), "2\n")
  lu.assertEquals(shown("'a', nil, 2\n"), "a\tnil\t2\n")
  lu.assertEquals(shown("x = 1\nx\n"), "1\n")
  lu.assertEquals(shown("\n   \n-- nothing\n"), "")
  lu.assertEquals(shown("'no newline at the end'"), "no newline at the end\n")
  lu.assertEquals(shown("table.unpack({}, 1, 3)\n"), "nil\tnil\tnil\n")
end

function TestPrompt.test_tables_are_shown()
  lu.assertEquals(shown("{}\n"), "{}\n")
  lu.assertEquals(shown("{3, 'x', {1}, {}, b = true, a = 1, [2.5] = 0}\n"),
    '{3, "x", {1}, {}, a = 1, b = true, [2.5] = 0}\n')
  lu.assertEquals(shown("setmetatable({}, {__tostring = function() return 'mine' end})\n"), "mine\n")
end

function TestPrompt.test_one_that_is_no_number_has_no_sign()
  lu.assertEquals(shown("0/0, -(0/0)\n"), "nan\tnan\n")
  lu.assertEquals(shown("{0/0, -(0/0)}\n"), "{nan, nan}\n")
  lu.assertEquals(shown("print(0/0, -(0/0))\n"), "nan\tnan\n")
  lu.assertEquals(shown("t = mr.tensor({0/0, -(0/0)}, {device = 'cpu'})\nt[1]:item(), t[2]:item()\n"), "nan\tnan\n")
end

function TestPrompt.test_modules_and_optimisers_show_what_they_are()
  lu.assertEquals(shown("mr.nn.Linear(2, 3)\n"), "Linear(in_features=2, out_features=3, bias=true)\n")
  lu.assertStrContains(shown("mr.optim.SGD({mr.zeros(1)})\n"), "SGD (1 group")
  lu.assertStrContains(shown("mr.nn\n"), "mr.nn: ")
end

function TestPrompt.test_a_graph_is_printed_once()
  local text = shown("g = mr.graph(function() mr.ones(4) end)\ng:print()\n")
  local _, count = text:gsub("2 nodes", "")
  lu.assertEquals(count, 1)
end

local FAILS = 'k = mr.kernel([[extern "C" __global__ void f(int *y) { y[100000000] = 1; }]])\n' ..
  'y = mr.zeros(4, {dtype="i32"})\n'

-- Nothing waits for it: it is told at the end.
function TestPrompt.test_a_failed_kernel_is_told_at_the_end()
  local result = command.run{ "-i", input = FAILS .. "k[{1, 1}](y)\n" }
  lu.assertEquals(result.status, 1)
  lu.assertStrContains(result.err, "illegal-address")
  result = command.run{ "-e", FAILS .. "k[{1, 1}](y)" }
  lu.assertEquals(result.status, 1)
  lu.assertStrContains(result.err, "illegal-address")
  result = command.run{ "-e", FAILS .. "k[{1, 1}](y) pcall(mr.synchronize)" }
  lu.assertEquals({ result.status, result.err }, { 0, "" }) -- the script was told
  result = command.run{ "-e", FAILS .. "k[{1, 1}](y) mr.reset()" }
  lu.assertEquals({ result.status, result.err }, { 0, "" })
end

function TestPrompt.test_help_alone_says_how_it_is_called()
  lu.assertStrContains(shown("help\n"), "help()")
end

function TestPrompt.test_incomplete_input_goes_on()
  lu.assertEquals(shown("for i = 1, 2 do\nprint(i)\nend\n"), "1\n2\n")
  lu.assertEquals(shown("1 +\n2\n"), "3\n")
  lu.assertEquals(shown("math.max(\n1,\n5)\n"), "5\n")
  lu.assertEquals(shown("x = {\n1, 2 }\n#x\n"), "2\n")
  lu.assertEquals(shown("[[a\nb]]\n"), "a\nb\n")
  local _, err = shown("x =\n")
  lu.assertStrContains(err, "mr:1:1: unexpected symbol near <eof>")
end

function TestPrompt.test_errors_do_not_end_it()
  local out, err = shown("error('boom')\nx x\nnil + 1\nerror{}\n'alive'\n")
  lu.assertEquals(out, "alive\n")
  lu.assertStrContains(err, "mr:1:1: boom\n")
  lu.assertStrContains(err, "syntax error near 'x'")
  lu.assertStrContains(err, "attempt to perform arithmetic on a nil value")
  out, err = shown("setmetatable({}, {__tostring = function() error('shy') end})\n'alive'\n")
  lu.assertEquals(out, "alive\n")
  lu.assertStrContains(err, "shy")
end

function TestPrompt.test_entries_are_numbered_and_their_lines_are_quoted()
  local _, err = shown("\nx = 1\nfor i = 1, 2 do\n-- nothing\nend\nerror('three')\nx x\n1 +\n2 + nil\n" ..
    "function f()\nerror('six')\nend\ndo f() end\n")
  lu.assertEquals(err, "mr:3:1: three\nmr:4:1: syntax error near 'x'\n" ..
    "mr:5:2: attempt to perform arithmetic on a nil value\n    2 + nil\n" ..
    "mr:6:2: six\n    error('six')\nstack traceback:\n\t[C]: in function 'error'\n" ..
    "\tmr:6:2: in function 'f'\n\tmr:7:1: in entry 7\n")
end

function TestPrompt.test_each_entry_is_a_place_of_hazards()
  local _, err = shown([[
a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
x = mr.zeros(4)
mr.synchronize()
a:run(function() x:add_(1) end)
b:run(function() x:add_(1) end)
mr.synchronize()
b:run(function() x:fill_(1) end)
a:run(function() x:fill_(1) end)
mr.hazard.why("mr:7", "mr:8:1")
]])
  local _, count = err:gsub("hazard: ", "")
  lu.assertEquals(count, 2)
  lu.assertStrContains(err, "first=mr:4:1 second=mr:5:1\n")
  lu.assertStrContains(err, "fix: next time, before mr:5 enter   b:wait_stream(a)\n")
  lu.assertStrContains(err, "first=mr:7:1 second=mr:8:1\n")
  lu.assertStrContains(err, "fix: next time, before mr:8 enter   a:wait_stream(b)\n")
end

function TestPrompt.test_a_hazard_names_locals_of_earlier_entries()
  local _, err = shown([[
local a, b = mr.stream(), mr.stream()
local x = mr.zeros(4)
mr.synchronize()
a:run(function() x:add_(1) end)
b:run(function()
  x:add_(1)
end)
]])
  lu.assertStrContains(err, "hazard: read-after-write on `x`")
  lu.assertStrContains(err, "fix: next time, before mr:5:2 enter   b:wait_stream(a)\n")
  lu.assertStrContains(err, "first=mr:4:1 second=mr:5:2\n")
end

-- It returns its text and prints nothing: who prints it, or types it, sees it once.
function TestPrompt.test_why_says_it_once()
  local before = [[
a, b, x = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.zeros(4)
mr.synchronize()
a:run(function() x:add_(1) end)
b:run(function() x:add_(1) end)
]]
  local function said(line)
    local out = shown(before .. line .. "\n")
    local rest, count = out:gsub("nothing orders `add_`[^\n]*\n", "")
    return { count, rest }
  end
  lu.assertEquals(said('mr.hazard.why("mr:3", "mr:4")'), { 1, "" })
  lu.assertEquals(said('(mr.hazard.why("mr:3", "mr:4"))'), { 1, "" })
  lu.assertEquals(said('print(mr.hazard.why("mr:3", "mr:4"))'), { 1, "" })
  lu.assertEquals(said('print((mr.hazard.why("mr:3", "mr:4")))'), { 1, "" })
  lu.assertEquals(said('t = mr.hazard.why("mr:3", "mr:4")'), { 0, "" })
  lu.assertEquals(said('t = mr.hazard.why("mr:3", "mr:4")\nt'), { 1, "" })
end

function TestPrompt.test_the_fix_of_a_script_s_line_is_put_into_the_script()
  local _, err = shown([[
f = load("local s, x = ...\nmr.with(s, function() x:fill_(1) end)", "=other.lua")
a, b, x = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.zeros(4)
mr.synchronize()
f(a, x)
f(b, x)
]])
  lu.assertStrContains(err, "fix: before line 2 add ")
end

function TestPrompt.test_naming_a_tensor_waits_for_nothing()
  local out = shown("t = mr.ones(3)\nt:add_(1)\nprint(mr.current_stream():query())\n")
  lu.assertStrContains(out, "f32")
  lu.assertStrContains(out, "false\n")
end

function TestPrompt.test_help_is_there()
  lu.assertEquals(shown("help == mr.help, help ~= nil\n"), "true\ttrue\n")
end

function TestPrompt.test_exit()
  lu.assertEquals(command.run{ "-i", input = "os.exit(5)\nprint('no')" }.status, 5)
end

function TestPrompt.test_it_follows_a_script_also_a_failed_one()
  local result = command.run{ "-i", "-e", "x = 1 error('boom')", input = "x + 1\n" }
  lu.assertStrContains(result.out, "mr:1> 2\n")
  lu.assertStrContains(result.err, "boom")
  lu.assertEquals(result.status, 0)
end

os.exit(lu.LuaUnit.run())
