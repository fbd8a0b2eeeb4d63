-- The command line: what each option does, and the one clear sentence for each kind of wrong input.
local lu = require "luaunit"
local command = require "host.support.command"
local run, eval = command.run, command.eval

-- A sentence on standard error, nothing on standard output, and that exit status.
local function assert_refused(result, status, pattern)
  lu.assertStrMatches(result.err, "millrace: " .. pattern .. "\n")
  lu.assertEquals(result.out, "")
  lu.assertEquals(result.status, status)
end

TestCommandLine = {}

function TestCommandLine.test_version()
  local result = run{ "--version" }
  lu.assertStrMatches(result.out, "millrace %d+%.%d+%.%d+ %(Lua 5%.4%.%d+, [%a, ]*virtual%)\n")
  lu.assertEquals(result.status, 0)
end

function TestCommandLine.test_help_names_every_option()
  local result = run{ "--help" }
  lu.assertEquals(result.status, 0)
  for _, name in ipairs{ "-e", "-i", "--device", "--model", "--chooser", "--launch-blocking", "--ascii", "--sandbox",
                         "--memory", "--device-memory", "--instructions", "--time", "--version", "--help", "doctor" } do
    lu.assertStrContains(result.out, "  " .. name)
  end
end

function TestCommandLine.test_doctor_says_what_was_found()
  local result = run{ "doctor" }
  lu.assertEquals(result.status, 0)
  for _, what in ipairs{ "version", "compiler", "lua", "prompt", "model h100", "model h200", "backend",
                         "device 0", "memory", "matrix product", "kernel compiler", "kernel cache", "gpu driver",
                         "nccl", "MPI" } do
    lu.assertStrContains("\n" .. result.out, "\n" .. what .. " ")
  end
  lu.assertStrContains(result.out, "h200")
end

function TestCommandLine.test_unknown_options_name_the_nearest()
  assert_refused(run{ "--sandbx" }, 2, "unknown option %-%-sandbx; did you mean %-%-sandbox%?")
  assert_refused(run{ "--devise=virtual" }, 2, "unknown option %-%-devise; did you mean %-%-device%?")
  assert_refused(run{ "-x" }, 2, "unknown option %-x; millrace %-%-help lists them")
end

function TestCommandLine.test_a_seed_is_that_of_the_chooser()
  assert_refused(run{ "--seed", "7", "x.lua" }, 2, "unknown option %-%-seed; did you mean %-%-chooser random:7%?")
  assert_refused(run{ "--seed=8" }, 2, "unknown option %-%-seed; did you mean %-%-chooser random:8%?")
  assert_refused(run{ "--seed" }, 2, "unknown option %-%-seed; did you mean %-%-chooser random:SEED%?")
end

function TestCommandLine.test_values_behind_a_space()
  local said = "cannot open %s: no such file; as a value of %%-%%-%s it is written %%-%%-%s=%s"
  for _, one in ipairs{ { "check", "warn" }, { "check", "error" }, { "explore", "max:10" }, { "explore", "json" } } do
    local name, value = one[1], one[2]
    assert_refused(run{ "--" .. name, value, "x.lua" }, 2, said:format(value, name, name, value))
  end
  lu.assertStrContains(run{ "--check", "--", "warn" }.err, "cannot open warn: no such file\n")
  lu.assertStrContains(run{ "--check", "other.lua" }.err, "cannot open other.lua: no such file\n")
end

function TestCommandLine.test_commands_name_the_nearest()
  assert_refused(run{ "lern" }, 2, "cannot open lern: no such file; did you mean millrace learn%?")
  assert_refused(run{ "docter" }, 2, "cannot open docter: no such file; did you mean millrace doctor%?")
  lu.assertStrContains(run{ "learner.lua" }.err, "cannot open learner.lua: no such file\n")
end

function TestCommandLine.test_values_are_checked()
  assert_refused(run{ "-e" }, 2, "%-e needs a value")
  assert_refused(run{ "--help=me" }, 2, "%-%-help takes no value, got 'me'")
  assert_refused(run{ "--sandbox", "--memory", "much" }, 2, "%-%-memory: expected a number .* got 'much'")
  assert_refused(run{ "--sandbox", "--memory=nan" }, 2, "%-%-memory: expected .*")
  assert_refused(run{ "--sandbox", "--time=-1" }, 2, "%-%-time: expected .*")
  assert_refused(run{ "--memory", "10" }, 2, "%-%-memory limits a script under %-%-sandbox: add %-%-sandbox")
  assert_refused(run{ "doctor", "who" }, 2, "doctor takes no arguments, got 'who'; to run .*")
end

-- The hint behind the message of a script that fails, or nil.
local function hint_of(text, ...)
  local options = { ... }
  return command.with_file(text, function(path)
    options[#options + 1] = path
    local result = run(options)
    lu.assertEquals(result.status, 1)
    lu.assertStrContains(result.err, "millrace: ")
    return result.err:match "\nhint: ([^\n]*)\n$"
  end)
end

function TestCommandLine.test_a_script_that_fails_gets_a_hint()
  for text, hint in pairs {
    ["import torch"] = "mr is torch here", ["require 'torch'"] = "mr is torch here",
    ["x = 1\nx += 1"] = "Lua has no +=",
    ["local x = mr.ones(3)\nprint(x.sum())"] = "methods are called with a colon: x:sum(...)",
    ["local s = mr.stream()\ns.wait_stream(s)"] = "methods are called with a colon: s:wait_stream(...)",
    ["local x = 1\nfor i in range(3):\n  print(i)\n"] = "write for i = 1, n do ... end",
    ["try:\n  x = 1\nexcept:\n  x = 2"] = "pcall",
    ["local x = mr.ones(3)\nprint(x:numel())"] = "write x.numel", ["print(len({}))"] = "the length of x is #x",
    ["mr.help(no-path)"] = 'help("no-path")',
    ["local x = 1\nloacl y = 2"] = "`loacl`: did you mean `local`?",
    ["local t = [[a]]\nlocal k = mr.kernel([[\n__global__ void f(float *y) {\n  y[x[0]] = 1;\n}\n]])"] =
      "the first ]] ended the text that [[ began",
  } do
    lu.assertStrContains(hint_of(text), hint)
  end
  local kernel = "local k = mr.kernel([[\n__global__ void f(float *y, int *i) {\n  %s\n}\n]])\nprint(k)"
  for _, line in ipairs { "y[i[0]] += 1;", "float v = y[i[0]]; y[0] = v;", "y[0] = y[i[0]] * 2 + y[i[1]];",
                          "atomicAdd(&y[i[0]], 1);", "y[i[0]] // of i\n  = 1;" } do
    lu.assertStrContains(hint_of(kernel:format(line)), "the first ]] ended the text that [[ began: write [=[ ... ]=]")
  end
  lu.assertStrContains(hint_of("local t = [==[a]==] + b[c[1]]]==]"), "write [===[ ... ]===]")
  lu.assertStrContains(hint_of("print(None.x)", "--sandbox"), "nothing is nil in Lua")
  lu.assertStrContains(run{ "-e", "print(None.x)" }.err, "\nhint: nothing is nil in Lua\n")
  local joined = "\nhint: Lua takes the ( that begins line %d as the arguments of a call: write ;( there\n"
  lu.assertStrContains(run{ "-e", "local a = mr.ones(1)\nlocal b = a:sum()\n(a + a):item()" }.err, joined:format(3))
  lu.assertStrContains(run{ "-e", "print(1)\n(2 + 3):item()" }.err, joined:format(2))
  lu.assertNotStrContains(run{ "-e", "local t = {}\nt.f(1)\nprint((2))" }.err, "hint: Lua takes")
end

function TestCommandLine.test_values_of_python_get_a_hint()
  for text, hint in pairs {
    ["mr.zeros(1).requires_grad = True"] = "`True` is nil: write true",
    ["local x = mr.zeros((2, 3))"] = "a shape is a list of arguments or a table: mr.zeros(2, 3), mr.zeros{2, 3}",
    ["for i = 1, mr.zeros(3).shape[0] do end"] = "elements, and the sizes of a shape, count from 1: x.shape[1]",
    ["local s = mr.stream() mr.synchronize(s)"] = "write s:synchronize()",
    ["mr.optim.SGD({mr.zeros(1)}, 0.1)"] = "options have names: {lr = 0.1}",
  } do
    lu.assertEquals(hint_of(text), hint)
  end
  lu.assertNil(hint_of("local yes mr.zeros(1).requires_grad = yes"))
  lu.assertNil(hint_of("for i = 1, nil do end"))
end

function TestCommandLine.test_blocks_in_braces_get_a_hint()
  for text, instead in pairs {
    ["while true {\n  break\n}"] = "while condition do ... end",
    ["local a = 1 while true { break }"] = "while condition do ... end",
    ["while x { print(x) }"] = "while condition do ... end", -- Lua takes that for a call, and stops behind it
    ["for (int i = 0; i < 3; i++) { print(i) }"] = "for i = 1, n do ... end",
    ["for i = 1, 3 {\n}"] = "for i = 1, n do ... end",
    ["if (x) { y = 1 }"] = "if condition then ... end",
    ["if x then y = 1 else { z = 2 }"] = "if condition then ... else ... end",
    ["local function f(x) { return 1 }"] = "function name(...) ... end",
  } do
    lu.assertEquals(hint_of(text), "a block has no braces in Lua: write " .. instead)
  end
  lu.assertNil(hint_of("for _, x in ipairs({1, 2}) do print x end"))
  lu.assertNil(hint_of("local t = {if_ = {1}, function() end, {2} 3}"))
end

function TestCommandLine.test_options_are_those_of_a_call()
  local options = "options are a table in Lua: {%s = ...}"
  lu.assertEquals(hint_of("local s = mr.stream(name = 'c')"), options:format "name")
  lu.assertEquals(hint_of("local t = f(g(1), {a = 2}, k = 3)"), options:format "k")
  lu.assertEquals(hint_of("local t = f(function() if x then end end, k = 3)"), options:format "k")
  for _, text in ipairs { "local h, w = x:shape[1], x:shape[2]", "f(function() a, b = 1, 2 = 3 end)",
                          "local function f(x = 3) return x end", "x = (c = 3)" } do
    lu.assertNil(hint_of(text))
  end
  lu.assertEquals(hint_of("local h, w = 1, 2 k<<<1, 32>>>(y, n=3)"), "a kernel is launched by k[{grid, block}](...)")
end

function TestCommandLine.test_a_hint_needs_a_reason()
  lu.assertNil(hint_of("error 'of its own'"))
  lu.assertNil(hint_of("local t = setmetatable({}, {__index = function() print 'called' end}) T = t\nT.a.b()"))
  lu.assertNil(hint_of("local text = [[x\nfor i in range(3):\n]]\nerror {}"))
  lu.assertNil(hint_of("local text = [[x\n{]]\nlocal t = {}\nx y = 3\nprint(t[t[1]])"))
  lu.assertNil(hint_of("local text = [[x]]\nlocal t = {}\nprint(t[t[1]]"))
end

function TestCommandLine.test_code_runs_in_order_and_shares_globals()
  local result = run{ "-e", "x = 1", "-e", "x = x + 1", "-e", "print(x)" }
  lu.assertEquals(result, { status = 0, out = "2\n", err = "" })
end

function TestCommandLine.test_code_stops_at_the_first_error()
  local result = run{ "-e", "error('first', 0)", "-e", "print('second')" }
  lu.assertEquals(result.out, "")
  lu.assertStrContains(result.err, "millrace: first\n")
  lu.assertEquals(result.status, 1)
end

-- An option behind the script is the script's. That is said where the script does not read it.
function TestCommandLine.test_an_option_behind_the_script()
  local function said(text, ...)
    local arguments = { ... }
    return command.with_file(text, function(path)
      local result = run{ path, table.unpack(arguments) }
      lu.assertEquals({ result.status, result.out }, { 0, "1\n" })
      return (result.err:gsub(path, "FILE", 1))
    end)
  end
  local silent = "local mr = require 'millrace'\nmr.ones(1) print(1)"
  for _, option in ipairs { "--check", "--report=json", "--device", "--explore=max:3" } do
    lu.assertEquals(said(silent, "x", option, "1"), ("millrace: %s is behind FILE, so it is an argument of the script, "
      .. "which reads none: options of millrace stand before the script\n"):format(option))
  end
  lu.assertEquals(said(silent, "--verbose", "-e", "check"), "") -- no option of millrace, or a short one
  lu.assertEquals(said(silent, "--", "--check"), "")
  for _, text in ipairs { "local x = ... print(1)", "print(#arg > 0 and 1)", "pcall(require, 'argparse') print(1)",
                          "print(1) pcall(dofile, 'no.lua')", "print(_G and 1)" } do
    lu.assertEquals(said(text, "--check"), "")
  end
end

-- Under the chooser `manual` a loop that asks never ends, which is said once. A loop with steps ends.
function TestCommandLine.test_a_loop_that_asks_the_manual_chooser()
  local code = [[
local s = mr.stream()
local e = s:run(function() mr.spin{ms = 1} return s:record_event() end)
for i = 1, 250000 do
  if e:query() then break end
  if %s and i %% 90000 == 0 then mr.machine.step() end
end
print(e:query())]]
  command.with_file(code:format("false"), function(path)
    local result = run{ "--chooser", "manual", path }
    lu.assertStrMatches(result.err, "note: [^\n]*:4 has asked 100000 times, and the answer is no%. Under the chooser "
      .. "manual the device does nothing by itself: mr%.machine%.step%(%) %(:step at the prompt%) takes a step, and "
      .. "synchronize%(%) waits\n")
    lu.assertEquals({ result.out, result.status }, { "false\n", 0 })
    lu.assertEquals(run{ path }, { out = "true\n", err = "", status = 0 })
  end)
  command.with_file(code:format("true"), function(path)
    lu.assertEquals(run{ "--chooser", "manual", path }, { out = "true\n", err = "", status = 0 })
  end)
end

-- At the prompt nothing is explored.
function TestCommandLine.test_explore_needs_a_script()
  assert_refused(run{ "--explore", "-i" }, 2, "%-%-explore needs a script, as in millrace %-%-explore script%.lua, or "
    .. "code behind %-e; at the prompt, mr%.explore%(fn%) explores a function")
  lu.assertStrContains(run{ "--explore", input = "print(7)" }.out, "1 outcome: deterministic")
  lu.assertStrContains(run{ "--explore", "-e", "print(7)" }.out, "1 outcome: deterministic")
end

function TestCommandLine.test_script_gets_its_arguments()
  command.with_file("print(arg[0] == '" .. "FILE" .. "', #arg, arg[1], arg[-1] ~= nil, ...)", function(path)
    command.write(path, (command.read(path):gsub("FILE", path)))
    lu.assertEquals(run{ path, "one", "-e", "" }.out, "true\t3\tone\ttrue\tone\t-e\t\n")
  end)
end

function TestCommandLine.test_first_line_may_name_an_interpreter()
  command.with_file("#!/usr/bin/env millrace\nprint 'ran'", function(path)
    lu.assertEquals(run{ path }.out, "ran\n")
  end)
end

function TestCommandLine.test_standard_input()
  lu.assertEquals(run{ "-", "a", input = "print(arg[0], ...)" }.out, "-\ta\n")
  lu.assertEquals(run{ input = "print(#arg, io.read())" }.out, "0\tnil\n")
end

-- One script, as with `python < file`: one error, values are not shown. With -i it is a session.
function TestCommandLine.test_standard_input_is_a_script_and_no_session()
  local entries = "mr> x = 20\nmr> x + 1\n21\nmr> x + 2\n"
  lu.assertEquals(run{ input = "local x = 1\nif x then\n  print(x)\nend\n" }.out, "1\n")
  lu.assertEquals(run{ input = "x = 1\nx\n" }.status, 1)
  local result = run{ input = entries }
  lu.assertEquals({ result.status, result.out }, { 1, "" })
  lu.assertStrContains(run{ "-i", input = entries }.out, "22\n")
end

function TestCommandLine.test_the_module()
  lu.assertEquals(eval("print(mr == require 'millrace', mr.backend)").out, "true\tvirtual\n")
  lu.assertEquals(eval("print(mr.ones(3):sum():item())").out, "3.0\n")
end

function TestCommandLine.test_devices()
  local code = "print(mr.device_count())"
  lu.assertEquals(eval(code).out, "1\n")
  lu.assertEquals(eval(code, "--device", "virtual:4").out, "4\n")
  lu.assertEquals(eval(code, "--device=virtual").out, "1\n")
  lu.assertEquals(eval(code, "--device=auto").out, "1\n")
  lu.assertEquals(run{ "-e", code, environment = "export MILLRACE_DEVICE=virtual:3" }.out, "3\n")
  lu.assertEquals(run{ "--device", "virtual:2", "-e", code, environment = "export MILLRACE_DEVICE=virtual:3" }.out,
    "2\n")
  assert_refused(eval(code, "--device", "tpu"), 2, ".*tpu.*")
  assert_refused(eval(code, "--device", "virtual:x"), 2, ".*virtual:x.*")
  assert_refused(eval(code, "--device", "virtual:0"), 2, ".*")
  assert_refused(eval(code, "--device", "virtual:99999999999999999999"), 2, ".*")
end

function TestCommandLine.test_cuda_is_refused_where_it_is_not_built_in()
  if not run{ "doctor" }.out:find("CUDA is not in it") then return end
  assert_refused(eval("", "--device", "cuda"), 2, ".*no CUDA backend.*")
  assert_refused(eval("", "--device", "cuda:1"), 2, ".*no CUDA backend.*")
end

function TestCommandLine.test_machine_options()
  lu.assertEquals(eval("print(mr.machine.model())", "--model", "a100").out, "a100\n")
  lu.assertEquals(eval("print(mr.machine.chooser())", "--chooser", "random:7").out, "random:7\n")
  lu.assertEquals(eval("print(mr.launch_blocking())", "--launch-blocking").out, "true\n")
  assert_refused(eval("", "--model", "h2000"), 2, ".*h2000.*")
  assert_refused(eval("", "--chooser", "wise"), 2, ".*wise.*")
end

TestScripts = {}

function TestScripts.test_missing_script()
  assert_refused(run{ "no_such_race.lua" }, 1, "cannot open no_such_race%.lua: no such file")
end

function TestScripts.test_directory()
  assert_refused(run{ "tests" }, 1, "cannot open tests: it is a directory, not a script")
end

function TestScripts.test_syntax_error_has_file_and_line()
  command.with_file("local x = 1\nx = = 2\n", function(path)
    assert_refused(run{ path }, 1, ".*:2: unexpected symbol near '='")
  end)
  assert_refused(eval("x ="), 1, "%(command line%):1: unexpected symbol near <eof>")
end

-- The function that raises it for a module inside the program is no frame of the script's, either.
function TestScripts.test_a_traceback_has_no_tools_of_ours()
  command.with_file("local mr = require 'millrace'\nlocal x = mr.zeros(4)\n" ..
    "local g = mr.graph(function() x:add_(1) end)\nlocal function f() return (g:inputs{ 5 }) end\nf()\n", function(path)
    local result = command.run{ path }
    local expected = "millrace: FILE:4: inputs: the name of an input is a string, not a number\n" ..
      "stack traceback:\n\t[C]: in method 'inputs'\n\tFILE:4: in local 'f'\n\tFILE:5: in main chunk\n"
    lu.assertEquals(result.err, (expected:gsub("FILE", path)))
  end)
end

function TestScripts.test_error_has_a_traceback_of_the_script_only()
  command.with_file("local function f()\n  error('boom')\nend\nf()\n", function(path)
    local result = run{ path }
    lu.assertEquals(result.status, 1)
    lu.assertStrContains(result.err, "millrace: " .. path .. ":2: boom\nstack traceback:\n")
    lu.assertStrContains(result.err, path .. ":4: in main chunk\n")
    lu.assertNil(result.err:find("[C]: in ?", 1, true))
  end)
end

-- Frames of the program's own Lua modules are "millrace.NAME": this one is the user's.
function TestScripts.test_a_script_may_be_called_millrace()
  local path = os.tmpname()
  os.remove(path)
  os.execute("mkdir " .. path)
  command.write(path .. "/millrace.lua", "error('boom')")
  local result = run{ "millrace.lua", environment = "cd " .. path }
  os.execute("rm -r " .. path)
  lu.assertStrContains(result.err, "\tmillrace.lua:1: in main chunk\n")
end

function TestScripts.test_error_objects()
  lu.assertStrContains(eval("error{}").err, "millrace: (error object is a table value)\n")
  lu.assertStrContains(eval("error()").err, "millrace: (error object is a nil value)\n")
  lu.assertStrContains(eval("error(setmetatable({}, {__tostring = function() return 'mine' end}))").err,
    "millrace: mine\n")
  lu.assertStrContains(eval("error(setmetatable({}, {__tostring = function() error('again') end}))").err,
    "whose __tostring fails")
  lu.assertStrContains(eval("error(setmetatable({}, {__tostring = function() return {} end}))").err,
    "whose __tostring fails")
  lu.assertEquals(eval("error('a\\0b')").status, 1)
end

function TestScripts.test_stack_overflow_and_errors_in_handlers()
  for _, code in ipairs{
    "local function f() return 1 + f() end f()",
    "local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k] end print(t.x)",
    "xpcall(error, function(m) error(m) end, 'x') error('end')",
    "local function f() coroutine.wrap(f)() end f()",
    -- Lua itself does not count the C stack across these.
    "function f() local co = coroutine.create(function() local x <close> = setmetatable({}, {__close = " ..
      "function() f() end}) coroutine.yield() end) coroutine.resume(co) assert(coroutine.close(co)) end f()",
  } do
    local result = eval(code)
    lu.assertEquals(result.status, 1, code)
    lu.assertStrContains(result.err, "millrace: ", code)
  end
end

-- Lua allows 200 C functions inside each other, also where the system gives the program little stack.
function TestScripts.test_deep_recursion_under_a_small_limit_of_the_stack()
  for _, kilobytes in ipairs{ 64, 128, 1024 } do
    for _, call in ipairs{
      "mr.with(mr.default_stream(), f)", "mr.default_stream():run(f)", "pcall(f)", "string.gsub('x', 'x', f)",
      "table.sort({1, 2}, f)", "load(f)", "tostring(setmetatable({}, {__tostring = f}))", "coroutine.wrap(f)()",
    } do
      local code = ("local depth = 0 function f() depth = depth + 1 %s end pcall(f) print(depth > 150)"):format(call)
      local result = run{ "-e", code, environment = "ulimit -s " .. kilobytes }
      lu.assertEquals(result.out, "true\n", call)
      lu.assertEquals(result.status, 0, call)
    end
  end
  local result = run{ "-e", "os.exit(7)", environment = "ulimit -s 128" }
  lu.assertEquals(result.status, 7)
end

TestLeaving = {}

function TestLeaving.test_exit_codes()
  lu.assertEquals(eval("os.exit(7)").status, 7)
  lu.assertEquals(eval("os.exit(true)").status, 0)
  lu.assertEquals(eval("os.exit(false)").status, 1)
  lu.assertEquals(eval("os.exit()").status, 0)
end

function TestLeaving.test_exit_closes_the_state()
  lu.assertEquals(eval("x = setmetatable({}, {__gc = function() print('collected') end}) os.exit(0)").out,
    "collected\n")
  lu.assertEquals(eval("coroutine.wrap(function() x = setmetatable({}, {__gc = function() print('collected') end}) " ..
    "os.exit(3, false) end)()"), { status = 3, out = "collected\n", err = "" })
end

-- Lua itself leaves them: it calls no finalizers of what is made while it closes.
function TestLeaving.test_what_finalizers_make_at_the_end_is_finalised()
  local result = eval [[
    local made, finalised = 0, 0
    local meta = debug.getmetatable(mr.ones(1))
    collectgarbage()
    local finalise = meta.__gc
    function meta.__gc(t)
      finalised = finalised + 1
      finalise(t)
      if finalised == made then io.write(made, " made and finalised\n") end
    end
    local function make()
      made = made + 1
      return mr.zeros(100)
    end
    kept = make()
    closing = setmetatable({}, { __gc = function()
      kept, stream = make(), mr.stream()
      stream:run(function() kept:add_(make()) end)
      event = stream:record_event()
    end })]]
  lu.assertEquals(result, { status = 0, out = "3 made and finalised\n", err = "" })
end

-- LeakSanitizer finds memory that is kept until then; the host itself finds a stream that a row of queues() holds.
function TestLeaving.test_what_calls_in_finalizers_copy_at_the_end_is_released()
  local result = eval [[
    local s = mr.stream()
    local x = mr.zeros(4)
    closing = setmetatable({}, { __gc = function()
      mr.hazard.mode("collect")
      s:run(function() x:add_(1) end)
      x:add_(1)
      local function race() s:run(function() x:add_(1) end) x:add_(1) end
      io.write(#mr.machine.queues(), #mr.hazard.reports(), #mr.hazard.check(race), #mr.hazard.advice(), "\n")
    end })]]
  lu.assertEquals(result, { status = 0, out = "2110\n", err = "" })
end

function TestLeaving.test_exit_from_a_finalizer()
  lu.assertEquals(eval("setmetatable({}, {__gc = function() os.exit(4) end})").status, 4)
  lu.assertEquals(eval("setmetatable({}, {__gc = function() os.exit(4) end}) os.exit(5)").status, 4)
  lu.assertEquals(eval("setmetatable({}, {__gc = function() os.exit(4) end}) collectgarbage()").status, 4)
end

function TestLeaving.test_exit_from_a_host_function()
  local result = eval("mr.default_stream():host_func(function() os.exit(6) end) mr.synchronize()")
  lu.assertEquals(result, { status = 6, out = "", err = "" })
end

os.exit(lu.LuaUnit.run())
