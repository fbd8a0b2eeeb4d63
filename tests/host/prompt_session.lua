-- The variables of a session: a local of one entry is a local of those that follow.
local lu = require "luaunit"
local command = require "host.support.command"

-- What the prompt shows for these entries, a list of lines; and what it complains about.
local function shown(input)
  local result = command.run{ "-i", input = input }
  lu.assertEquals(result.status, 0)
  local rest = result.out:match("^millrace [^\n]*\n[^\n]*\n(.*)$")
  return (rest:gsub("mr:%d+[^\n>]*> ", ""):gsub("%.%.> ", "")), result.err
end

local function assert_shows(input, expected)
  local out, err = shown(input)
  lu.assertEquals({ out, err }, { expected, "" })
end

TestTimeline = {}

local LONG_AGO = "mr.spin{ms = 5}\nmr.synchronize()\n"

function TestTimeline.test_it_begins_at_the_entry()
  local out = shown(LONG_AGO .. "x = mr.ones(4)\nprint(x)\n:tl\n")
  lu.assertStrContains(out, "\nus ")
  lu.assertNotStrContains(out, "\nms ")
end

function TestTimeline.test_it_has_nothing_of_before_a_reset()
  local out = shown(LONG_AGO .. ":reset\nx = mr.ones(4)\nprint(x)\n:tl all\n")
  lu.assertStrContains(out, "ones")
  lu.assertNotStrContains(out, "spin")
  lu.assertNotStrContains(out, "synchronize")
  local _, lanes = out:gsub("\ndefault stream ", "")
  lu.assertEquals(lanes, 1)
end

-- What has columns becomes paragraphs there.
function TestTimeline.test_narrow_terminals()
  local result = command.run{ "-i", input = "x = mr.ones(4)\n:tl\n:who\n", environment = "export COLUMNS=50" }
  lu.assertEquals(result.err, "")
  lu.assertStrContains(result.out, "x\n  type: f32[4]\n  size: 16 B\n  where: dev 0\n  last writer: ones at mr:1:1\n" ..
    "  who can read it now: default; not host\n")
end

TestCopied = {}

-- Line by line, as a terminal gives it that does not mark what is pasted.
function TestCopied.test_prompts_are_no_part_of_an_entry()
  assert_shows("mr> local x = 1\nmr:2 [copy]> x\nmr> f = function(a)\n..>   return a\n..> end\nmr> f(5)\n", "1\n5\n")
  assert_shows("mr> x = [[\n..> within a string]]\n#x\n", "19\n")
end

-- The page's own session, pasted with its answers.
function TestCopied.test_the_session_of_the_readme()
  local page = command.read "README.md"
  local text = page:match "\n(mr> a, b = .-\n)stream `b` waits"
  local out, err = shown(text)
  lu.assertEquals(err, "")
  lu.assertStrContains(out, "stream `b` waits for stream `a` (mr:2:3) before `tail` (mr:2:4)")
end

TestReset = {}

function TestReset.test_tensors_of_before_are_shown_as_lost()
  local out = shown("x = mr.ones(4)\nlocal y = mr.ones(2, {device = 'cpu'})\nmr.reset()\nx\ny\n:who\n")
  lu.assertStrContains(out, "tensor f32[4] device 0, the default stream (lost in mr.reset())\n[1., 1.]\n" ..
    "tensor f32[2] cpu, last written by fill")
  lu.assertStrContains(out, "\nx                          lost in mr.reset()\n")
end

function TestReset.test_streams_of_before_read_nothing()
  local out = shown("a = mr.stream()\nmr.reset()\nx = mr.ones(4)\n:who\n")
  lu.assertStrContains(out, "ones at mr:3:1  default; not host\n")
end

function TestReset.test_time_says_what_it_does_not_measure()
  local out = shown("mr.machine.chooser 'manual'\nx = mr.ones(4)\n:time x:sum();\n")
  lu.assertStrContains(out, "device: not measured, since under the chooser manual :time does not run it; :run does")
end

TestLocals = {}

function TestLocals.test_they_live_on()
  assert_shows("local a, b = 1, 2\na, b\nb = 3\na + b\n", "1\t2\n4\n")
  assert_shows("local function f(n) return n < 2 and 1 or n * f(n - 1) end\nf(5)\n", "120\n")
  assert_shows("local x\nx\nx = 4\nx\n", "nil\n4\n")
  assert_shows("local x = 1\n_G.x\n", "nil\n")
end

function TestLocals.test_closures_share_the_variable()
  assert_shows("local n = 0\nlocal function count() n = n + 1 return n end\ncount();\ncount()\nn\nn = 10\ncount()\n",
    "2\n2\n11\n")
  assert_shows("local a, get = 1\nget = function() return a end\na = 2\nget()\n", "2\n")
end

function TestLocals.test_a_new_declaration_is_a_new_variable()
  assert_shows("local x = 1\nlocal function old() return x end\nlocal x = 2\nx, old()\n", "2\t1\n")
  assert_shows("local x = 1\nlocal x = x + 1\nx\n", "2\n")
  assert_shows("local x = 1 local x = 2\nx\n", "2\n")
end

function TestLocals.test_those_of_blocks_do_not()
  assert_shows("do local x = 1 end\nx, x\n", "nil\tnil\n")
  assert_shows("for i = 1, 2 do local x = i end\ni, x\n", "nil\tnil\n")
  assert_shows("local f = function(p) local q = p return q end\nf(3)\np, q\n", "3\nnil\tnil\n")
end

function TestLocals.test_constants()
  local out, err = shown("local k <const> = 5\nk\nk = 6\nlocal t <const> = {}\nt = 1\nt.x = 2 print(t.x)\nk\n")
  lu.assertEquals(out, "5\n2\n5\n")
  lu.assertEquals(err, "mr:3:1: attempt to assign to const variable 'k'\n" ..
    "mr:5:1: attempt to assign to const variable 't'\n")
end

local CLOSER = [[
function closer(name) return setmetatable({}, {__close = function() print("closed " .. name) end}) end
]]

TestUnknown = {}

function TestUnknown.test_a_name_without_a_value_is_told()
  local out, err = shown("stream_a = mr.stream()\nstream_b\n= steam\nzeros\nqwxz\nx = nil\nx.y\nlocal y\ny\nnil\n" ..
    "qwxz, 1\n_\n")
  lu.assertEquals(out, "nil\nnil\nnil\nnil\nnil\nnil\nnil\t1\nnil\n")
  lu.assertEquals(err, "hint: no variable `stream_b` has a value; did you mean `stream_a`?\n" ..
    "hint: no variable `steam` has a value\n" ..
    "hint: no variable `zeros` has a value; did you mean mr.zeros?\nhint: no variable `qwxz` has a value\n" ..
    "mr:7:1: attempt to index a nil value (global 'x')\n")
end

-- An error that pcall has caught, and one that was raised again.
function TestUnknown.test_hints_of_caught_errors()
  local _, err = shown("pcall(function() return torch.ones(3) end)\npcall(function() return 1 end)\nfalse, 'x'\n")
  lu.assertEquals(err, "hint: write mr.ones\n")
  command.with_file("local ok, e = pcall(function()\n  return torch.zeros(3)\nend)\n\nerror(e)\n", function(path)
    lu.assertStrContains(command.run{ path }.err, "hint: write mr.zeros\n")
  end)
end

function TestLocals.test_close_waits_for_the_end_of_the_session()
  assert_shows(CLOSER .. "local a <close> = closer('a')\nlocal b <close> = closer('b')\nprint(a ~= nil)\n",
    "true\nclosed b\nclosed a\n")
end

function TestLocals.test_close_at_a_new_declaration_before_it_takes_effect()
  assert_shows(CLOSER .. "local a <close> = closer('old')\nlocal a <close> = closer('new') print('declared')\n1\n",
    "closed old\ndeclared\n1\nclosed new\n")
end

function TestLocals.test_close_at_an_error_of_the_entry()
  local out, err = shown(CLOSER .. "local a <close> = closer('a') error('no')\n'on'\na\n")
  lu.assertEquals(out, "closed a\non\nnil\n")
  lu.assertEquals(err, "mr:2:1: no\nhint: no variable `a` has a value\n")
end

function TestLocals.test_a_scope_holds_in_the_entries_that_follow()
  assert_shows("local s = mr.stream{name = 's'}\nlocal _ <close> = s:scope()\nmr.current_stream() == s\n", "true\n")
end

function TestLocals.test_more_than_lua_allows_at_a_time()
  local lines, names = {}, {}
  for i = 1, 600 do
    lines[i] = ("local v%d = %d"):format(i, i)
    names[i] = "v" .. i
  end
  lines[601] = "v600, v1"
  lines[602] = "sum = 0 for _, v in ipairs{" .. table.concat(names, ", ") .. "} do sum = sum + v end"
  lines[603] = "v300 = v300 + sum v1 = 7"
  lines[604] = "v300, v1, " .. table.concat(names, " + ")
  assert_shows(table.concat(lines, "\n") .. "\n", "600\t1\n180600\t7\t" .. 180300 + 180300 + 6 .. "\n")
end

function TestLocals.test_an_environment()
  assert_shows("local _ENV = setmetatable({}, {__index = _G})\ny = 5\ny, _G.y\n", "5\tnil\n")
end

function TestLocals.test_return_and_goto()
  assert_shows("local a = 5 return a + 1\na\n", "6\n5\n")
  assert_shows("do goto done end local z = 1 ::done::\n'on'\n", "on\n")
end

function TestLocals.test_yield_is_refused_where_an_entry_waits()
  local out, err = shown(CLOSER .. "local a <close> = closer('a') coroutine.yield()\n'on'\n")
  lu.assertEquals(out, "closed a\non\n")
  lu.assertStrContains(err, "attempt to yield from outside a coroutine")
end

TestValues = {}

function TestValues.test_the_last_value_and_those_of_entries()
  assert_shows("6\n_ * 7\n_\n_[1] + _[2]\n", "6\n42\n42\n48\n")
  assert_shows("{5}\n_[1]\n", "{5}\n{5}\n") -- entry 1, not the first element
  local _, err = shown("_[9]\n")
  lu.assertStrContains(err, "there is no entry 9")
  assert_shows("local _ = {5}\n_[1]\n", "5\n")
end

function TestValues.test_a_semicolon_shows_nothing()
  assert_shows("5;\n_\n7 ; -- a comment\n_[3]\n", "5\n7\n")
  assert_shows("= 5\n  =5 -- as in Lua 5.2\n", "5\n5\n")
end

function TestValues.test_tables()
  local out = shown("{a = {b = {c = 1}}, 'x\\n\"y\"', [true] = 0, ['not a name'] = 1}\n")
  lu.assertEquals(out, [[{"x\n\"y\"", a = {b = {c = 1}}, ["not a name"] = 1, [true] = 0}]] .. "\n")
  lu.assertEquals(shown("t = {} t.t = t t.u = {t}\nt\n"), "{t = {itself}, u = {{itself}}}\n")
  out = shown("(function() local t = {} for i = 1, 1000 do t[i] = i end return t end)()\n")
  lu.assertStrContains(out, "-- and 900 more")
  for line in out:gmatch("[^\n]+") do lu.assertTrue(#line <= 100) end
  out = shown("(function() local t = {} for i = 1, 100 do t = {t} end return t end)()\n")
  lu.assertStrContains(out, "{...}")
  out = shown("{{name = 'a', ms = 1.5, where = ('x'):rep(40)}, {name = 'long', ms = 20, where = ('y'):rep(40)}}\n")
  lu.assertStrContains(out, '  {ms = 1.5, name = "a",    where = "' .. ("x"):rep(40) .. '"},\n' ..
    '  {ms = 20,  name = "long", where = "' .. ("y"):rep(40) .. '"},\n')
end

function TestValues.test_what_millrace_has()
  lu.assertStrContains(shown("mr\n"), "tables of functions:\n")
  lu.assertStrContains(shown("mr.ones\n"), "mr.ones(sizes: integer...")
  lu.assertEquals(shown("function f(a, ...) end\nf\n"), "function(a, ...)  -- mr:1:1\n")
end

-- Why, and which one may be meant.
TestLoading = {}

function TestLoading.test_loading_what_is_not_there()
  local folder = os.tmpname()
  os.remove(folder)
  assert(os.execute("mkdir " .. folder))
  command.write(folder .. "/race.lua", "x = 1\n")
  local _, err = shown(":load " .. folder .. "/race\n:load " .. folder .. "/rcae.lua\n:load " .. folder .. "\n:load " ..
    folder .. "/nothing/here.lua\n")
  os.execute("rm -r " .. folder)
  local meant = ("no such file; did you mean `%s/race.lua`?\n"):format(folder)
  lu.assertStrContains(err, ("%s/race cannot be read: %s"):format(folder, meant))
  lu.assertStrContains(err, ("%s/rcae.lua cannot be read: %s"):format(folder, meant))
  lu.assertStrContains(err, folder .. " cannot be read: it is a directory\n")
  lu.assertStrContains(err, folder .. "/nothing/here.lua cannot be read: no such file\n")
end

TestHints = {}

function TestHints.test_habits()
  for entry, hint in pairs{
    ["mr.ones(3):numel()"] = "write x.numel",
    ["print(mr.ones(3) > 1)"] = "x:gt(y)",
    ["x @ y"] = "x:matmul(y)",
    ["x ** 2"] = "x ^ 2",
    ["y = (a + b) @ x"] = "written x:matmul(y)", ["y = x @ w.t() + b"] = "written x:matmul(y)",
    ["print(f'x is {x}')"] = "write (\"%d\"):format(x)",
    ["mr.tensor([1, 2])"] = "{1, 2}",
    ["x.sum(dim=1)"] = "{dim = ...}",
    ["x += 1"] = "x = x +", ["1 != 2"] = "~=", ["None"] = "nil", ["mr.ones(2).sum()"] = "colon",
    ["t[1:3]"] = "t[{ {first",
    ["# five"] = "--", ["import torch"] = "mr is torch here", ["import json"] = "require", ["sleep(1)"] = "mr.spin",
    ["mr.event{enable_timing = true}"] = "write `timing`", ["torch.cuda.Stream()"] = "mr.stream",
    ["torch.cuda.synchronize()"] = "mr.synchronize", ["mr.memory.summary()"] = "allocated", ["a && b"] = "and",
    ["zeros(3)"] = "mr.zeros", ["def f(x): return x"] = "function f(x)", ["'a' + 'b'"] = "..",
    ["cudaDeviceSynchronize()"] = "mr.synchronize()",
    ["loacl x = 3"] = "did you mean `local`?", ["fucntion f() end"] = "did you mean `function`?",
    ["if true tehn x = 1 end"] = "did you mean `then`?", ["retrun 3"] = "did you mean `return`?",
    ["k = mr.kernel([[__global__ void f(float *y) { y[x[0]] = 1; }]])"] =
      "write [=[ ... ]=] around a text that holds ]]",
    ["mr.stream('copy')"] = "write {name=\"copy\"}", ["mr.stream('cuda:0')"] = "write {device=\"cuda:0\"}",
  } do
    local _, err = shown(entry .. "\n")
    lu.assertStrContains(err, hint)
  end
end

function TestHints.test_the_first_line_of_a_block_gets_its_own_at_once()
  for entry, hint in pairs {
    ["for i in range(3):"] = "for i = 1, n do", ["while x < 3:"] = "while condition do", ["if x == 1:"] = "then",
    ["try:"] = "pcall",
  } do
    local out, err = shown(entry .. "\nprint('next')\n")
    lu.assertStrContains(err, "hint: ")
    lu.assertStrContains(err, hint)
    lu.assertEquals(out, "next\n") -- an entry of its own
  end
  assert_shows("for i = 1, 2 do\n print(i)\nend\nif true then\n print(3) end\nx = {\n 4}\nx[1]\n",
    "1\n2\n3\n4\n")
end

-- There is no hint for a text that ended at its own end, or for a name that is near to a keyword by chance.
function TestHints.test_a_hint_needs_a_reason()
  for _, entry in ipairs{ "s = [[a]] x y", "t = {[[a]], b[c[1]] d}", "fork x" } do
    local _, err = shown(entry .. "\n")
    lu.assertStrContains(err, " near ")
    lu.assertNotStrContains(err, "around a text that holds")
  end
end

function TestHints.test_methods_that_are_called_with_a_dot()
  local _, err = shown("s = mr.stream()\ns.wait_stream(s)\n")
  lu.assertStrContains(err, "hint: methods are called with a colon: s:wait_stream(...)")
  _, err = shown("mr.dist.broadcast(mr.ones(1), {})\n")
  lu.assertNotStrContains(err, "hint: ")
end

function TestHints.test_none_where_there_is_nothing_to_say()
  assert_shows("local None = 1\nNone\nx = '+= 1 != 2'\nexit = 5\nexit\n#'abc'\n", "1\n5\n3\n")
end

TestInspecting = {}

function TestInspecting.test_question_marks()
  lu.assertStrContains(shown("?mr.zeros\n"), "Makes a tensor of zeros")
  lu.assertStrContains(shown("?no-path\n"), "a reason of the hazard checker")
  lu.assertStrContains(shown("? R13\n"), "R13")
  lu.assertEquals(shown("function f(a)\n  return a\nend\n??f\n"), "-- mr:1:1\nfunction f(a)\n  return a\nend\n")
  lu.assertEquals(shown("x = 5\n?x\n"), "number: 5\n")
  local _, err = shown("?nothing_like_it\n")
  lu.assertStrContains(err, "nothing is called `nothing_like_it`")
end

TestStart = {}

function TestStart.test_the_users_own_file()
  local folder = os.tmpname()
  os.remove(folder)
  os.execute("mkdir -p " .. folder .. "/millrace")
  command.write(folder .. "/millrace/init.lua", "mine = 'from init.lua' local l = 1\nif bad then error('bad') end")
  local environment = "export XDG_CONFIG_HOME=" .. folder
  lu.assertStrContains(command.run{ "-i", input = "mine\n", environment = environment }.out, "from init.lua")
  local failed = command.run{ "-i", "-e", "bad = true", input = "'on'\n", environment = environment }
  lu.assertStrContains(failed.err, "init.lua:2: bad")
  lu.assertStrContains(failed.out, "on\n")
  lu.assertStrContains(command.run{ "-i", "--sandbox", input = "mine\n", environment = environment }.out, "nil\n")
  os.execute("rm -rf " .. folder)
end

function TestStart.test_a_sandbox_keeps_the_tools_of_the_prompt()
  local result = command.run{ "-i", "--sandbox",
    input = "pcall(require, 'millrace.prompt.session')\ndebug, io, os.execute\nlocal x = 4\nx\n" }
  lu.assertStrContains(result.out, "false")
  lu.assertStrContains(result.out, "nil\tnil\tnil\n")
  lu.assertStrContains(result.out, "> 4\n")
end

TestKept = {}

function TestKept.test_earlier_values_have_names()
  assert_shows("1 + 1\n'b'\n__, _\n_1 + 5\n", "2\nb\n2\tb\n7\n")
  assert_shows("_2 = 'mine'\n3\n_2\n", "3\nmine\n") -- what the user calls so is the user's
  local out = shown("7\n" .. ("x = 1\n"):rep(60) .. "_1\n")
  lu.assertEquals(out, "7\nnil\n")
  assert_shows("7\n:reset\n_1\n__\n_\n", "7\na fresh device; the session begins anew\nnil\nnil\nnil\n")
end

function TestKept.test_the_values_of_host_tensors_are_shown()
  assert_shows("mr.tensor({1, 2}, {device = 'cpu'})\n", "[1, 2]\ntensor i64[2] cpu\n")
  assert_shows("x = mr.ones(2)\nmr.synchronize()\nx:peek()\n", "[1., 1.]\ntensor f32[2] cpu\n")
  lu.assertStrContains(shown("mr.zeros(2000000, {device = 'cpu'})\n"), "tensor f32[2000000] cpu")
end

-- Nothing is waited for, and nothing is read: no hazard comes of it.
function TestKept.test_an_echo_says_who_may_read_it()
  local out, err = shown("s = mr.stream{name = 's'}\nx = mr.ones(2)\nx\ns:wait_stream(mr.default_stream())\nx\n" ..
    "mr.synchronize()\nx\nmr.current_stream():query()\n")
  lu.assertEquals(err, "")
  lu.assertStrContains(out, "1 pending, last written by ones at mr:2:1\n  safe to read now: default; not host, s\n")
  lu.assertStrContains(out, "ones at mr:2:1\n  safe to read now: default, s; not host\n")
  lu.assertStrContains(out, "the default stream, last written by ones at mr:2:1\ntrue\n")
  out, err = shown("h = mr.zeros(2, {device = 'cpu', pinned = true})\nx = mr.ones(2)\n" ..
    "h:copy_(x, {non_blocking = true})\nh\n")
  lu.assertEquals(err, "")
  lu.assertStrContains(out, "a read by the host now races with copy_ at mr:3:1\n")
end

function TestKept.test_sizes()
  lu.assertStrContains(shown("x = mr.zeros(1024)\n:who\n"), "f32[1024]  4 KiB")
end

function TestKept.test_time_without_a_wait()
  local out = shown(":time --no-wait mr.spin{ms = 50}\nmr.current_stream():query()\n")
  lu.assertStrContains(out, "device: not waited for\n")
  lu.assertStrContains(out, "false\n")
  lu.assertStrContains(shown(":time mr.spin{ms = 50}\n"), "all done: 50")
end

function TestKept.test_what_is_watched_is_shown_behind_each_entry()
  local out, err = shown("local x = mr.zeros(2)\n:watch x:peek()[1]:item()\n:watch 1 +\n:watch nothing.at\n" ..
    "x:fill_(3)\n:watch\n:watch off 2\nmr.synchronize()\n:watch off\n1\n:watch off 9\n")
  lu.assertStrContains(err, ":watch: ")
  lu.assertStrContains(err, "there is no number `9`")
  lu.assertStrContains(out, "x:peek()[1]:item(): 0.0\nnothing.at: attempt to index a nil value (global 'nothing')\n")
  lu.assertStrContains(out, "1: x:peek()[1]:item()\n2: nothing.at\n")
  lu.assertStrContains(out, "x:peek()[1]:item(): 3.0\n1\n")
end

function TestKept.test_a_timeline_has_what_is_pending()
  local out = shown("s = mr.stream{name = 's'}\ns:run(function() mr.spin{ms = 1} end)\n:tl\n")
  lu.assertStrContains(out, "pending on stream `s`: spin (mr:2:1)\n")
end

function TestKept.test_dot()
  local out, err = shown("x = mr.ones(2)\nmr.synchronize()\n:dot\n:dot x.txt\n")
  lu.assertStrContains(out, "digraph")
  lu.assertStrContains(out, '[label="ones\\nmr:1:1"]') -- the entry, as it is named elsewhere
  lu.assertStrContains(err, "does not end in .dot")
end

function TestKept.test_settings_last()
  local home = os.tmpname()
  os.remove(home)
  os.execute("mkdir " .. home)
  local function run(input)
    return command.run{ "-i", input = input, environment = "export HOME=" .. home .. "; unset XDG_CONFIG_HOME" }
  end
  local result = run(":set times 5\n:set hints off\n:set hints maybe\n:set nothing on\n:set times nan\n")
  lu.assertStrContains(result.err, ":set hints: expected on or off, got `maybe`")
  lu.assertStrContains(result.err, "there is no setting `nothing`")
  lu.assertStrContains(result.err, ":set times: expected a number of milliseconds, or off, got `nan`")
  lu.assertEquals(command.read(home .. "/.config/millrace/settings"), "times 5\nhints off\n")
  lu.assertStrContains(run(":set\n").out, "times    5      an entry")
  command.write(home .. "/.config/millrace/settings", "times soon\n\0\n")
  result = run("1\n")
  lu.assertStrContains(result.err, "settings times: expected a number")
  lu.assertEquals(result.status, 0)
  os.execute("rm -rf " .. home)
end

os.exit(lu.LuaUnit.run())
