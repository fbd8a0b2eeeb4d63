-- timeout: 240
-- Steps through a script: `:load` under the chooser manual, and `millrace --step`.
local lu = require "luaunit"
local command = require "host.support.command"

local RACE = [[
local mr = require "millrace"
local p, c = mr.stream{name = "producer"}, mr.stream{name = "consumer"}
local x = mr.zeros(4)
mr.synchronize()
p:run(function()
  x:fill_(1)
end)
local sum = c:run(function() return x:sum() end)
c:synchronize()
print(sum:item())
]]

-- The output and the complaints for these lines, with the file in the place of FILE. `step`: by --step.
local function stepped(text, input, options)
  options = options or {}
  return command.with_file(text, function(path)
    local arguments = options.step and { "--step", path } or { "--chooser", "manual", "-i" }
    if options.ranks then table.move({ "--ranks", tostring(options.ranks), "--step", path }, 1, 4, 1, arguments) end
    arguments.input = input:gsub("FILE", path)
    arguments.environment = "export LC_ALL=C.UTF-8; export COLUMNS=" .. (options.columns or 80)
    local result = command.run(arguments)
    lu.assertEquals(result.status, options.status or 0)
    return result.out, result.err, path:match("[^/]*$"), path
  end)
end

TestSteps = {}

function TestSteps.test_it_stops_before_waits_and_goes_on()
  local out = stepped(RACE, ":load FILE\n:continue\n:continue\n'behind'\n")
  lu.assertStrContains(out, ":4: `synchronize` waits for the device\n")
  lu.assertStrContains(out, ":9: `synchronize` waits for the device\n")
  lu.assertStrContains(out, "behind\n")
  lu.assertNotStrContains(out, "`item` waits") -- nothing is pending then
end

-- Both outcomes of the race, by steps taken where the script stands.
function TestSteps.test_the_device_is_stepped_forward_and_back_at_a_stop()
  local out, _, _, path = stepped(RACE, ":load FILE\n:continue\n:step c\nsum:peek():item()\n:back\n:run p\n:step c\n" ..
    "sum:peek():item()\nx:peek()\n:continue\n")
  lu.assertStrContains(out, "sum on stream `consumer` at " .. path .. ":8")
  lu.assertStrContains(out, "> 0.0\n")
  lu.assertStrContains(out, "1 step undone")
  lu.assertStrContains(out, "> 4.0\n")
  lu.assertStrContains(out, "[1., 1., 1., 1.]")
end

-- A place that is too long for its column keeps its line.
function TestSteps.test_the_pane_of_queues_shows_lines()
  local folder = os.tmpname()
  os.remove(folder)
  local inner = folder .. "/a_folder_with_a_long_name/and_another_one"
  assert(os.execute("mkdir -p " .. inner))
  for name, shown in pairs{ ["s.lua"] = "s.lua:6", ["a_script_with_a_long_name.lua"] = "…[^ ]*name%.lua:6" } do
    command.write(inner .. "/" .. name, RACE)
    for _, columns in ipairs{ 80, 120 } do
      local result = command.run{ "--step", inner .. "/" .. name, input = ":c\n:c\n:queues\n",
        environment = "export LC_ALL=C.UTF-8; export COLUMNS=" .. columns }
      lu.assertStrMatches(result.out, ".*fill_  *" .. shown .. " .*")
    end
  end
  os.execute("rm -r " .. folder)
end

function TestSteps.test_a_stop_is_left_by_the_words_that_leave_the_prompt()
  for _, word in ipairs { "quit", "exit()", ":quit" } do
    local out, err = stepped(RACE, ":load FILE\n" .. word .. "\n'at the prompt'\n")
    lu.assertStrContains(err, "the script was left")
    lu.assertStrContains(out, "at the prompt\n")
    lu.assertNotStrContains(out, "nil")
  end
end

function TestSteps.test_breakpoints()
  local out, err = stepped(RACE, ":break 8\n:break fill_\n:break 0\n:break\n:load FILE\n:c\n:c\n:c\n:c\n:c\n")
  lu.assertStrContains(out, "breakpoints: 8, fill_\n")
  lu.assertStrContains(err, ":break needs a line from 1 on")
  -- the line behind the one that submits it
  lu.assertStrContains(out, ":7: `fill_` was submitted\n")
  out = stepped(RACE, ":break 6\n:load FILE\n:c\nx.shape\n:c\n:c\n:c\n")
  lu.assertStrContains(out, ":6: a breakpoint\n") -- in a function that C has called
  lu.assertStrContains(out, "▶*   6    x:fill_(1)\n")
end

function TestSteps.test_a_line_that_cannot_be_stopped_at()
  local text = [[
#!/usr/bin/env millrace
local function f()
  -- a comment

  return 1,
    { 2 }
end
print(f())
]]
  local input = ":break 99999\n:break 1\n:break 3\n:break 4\n:break 6\n:break 7\n:c\n:c\n"
  local out, err, name = stepped(text, input, { step = true })
  lu.assertStrContains(err, (":break 99999: %s ends at line 8, before line 99999; the nearest line that it can stop " ..
    "at is 8\n"):format(name))
  for _, line in ipairs{ 1, 3, 4 } do
    lu.assertStrContains(err, (":break %d: line %d of %s has no code; the nearest line that it can stop at is 5\n"):
      format(line, line, name))
  end
  lu.assertStrContains(out, "breakpoints: 6\n")
  lu.assertStrContains(out, "breakpoints: 6, 7\n")
  lu.assertStrContains(out, ":6: a breakpoint\n") -- a function's lines
  -- before the script is there, nothing is known
  out, err, name = stepped("print(1)\n", ":break 7\n:load FILE\n")
  lu.assertStrContains(out, "breakpoints: 7\n")
  lu.assertStrContains(err, (":break 7: %s ends at line 1, before line 7; the nearest line that it can stop at is 1"):
    format(name))
end

function TestSteps.test_a_name_that_no_operation_has()
  local input = ":break fil_\n:break frobnicate\n:break off\n:break zeros\n:break sum\n:break spin\n"
  local out = stepped("", input, { columns = 110 })
  lu.assertStrContains(out, "millrace has no operation `fil_` (did you mean `fill_`?): it stops after a kernel")
  lu.assertStrContains(out, "millrace has no operation `frobnicate`: it stops after a kernel or an mr.op")
  lu.assertStrContains(out, "> breakpoints: spin, sum, zeros\n")
  lu.assertEquals(select(2, out:gsub("has no operation", "")), 2)
end

-- A script's places are those of its file, as if it was run by itself.
function TestSteps.test_places_have_the_name_of_the_file()
  local text = RACE .. "local function inner() error('broken') end\nlocal function outer() inner() end\nouter()\n"
  for _, chooser in ipairs{ "manual", "timed" } do
    local out, err, _, path = stepped(text, (":chooser %s\n:load FILE\n:c\n:queues\n:c\n:c\n??outer\n:hazards 1\n" ..
      ":tl 1\n:fix\n:c\n:c\n:c\n"):format(chooser))
    lu.assertStrContains(err, "fill_ writes x on stream producer at " .. path .. ":6\n")
    lu.assertStrContains(err, "fix: before line 8 add   c:wait_stream(p)\n")
    lu.assertStrContains(err, path .. ":11: broken\n    local function inner() error('broken') end\n")
    lu.assertStrContains(err, "\t" .. path .. ":12: in local 'outer'\n")
    lu.assertStrContains(err, "\t" .. path .. ":13: in main chunk\n")
    lu.assertNotStrContains(err, "mr:1:")
    lu.assertStrContains(out, "first=" .. path .. ":6")
    lu.assertStrContains(out, path .. " · ") -- the timeline's title, and its entry is found
    lu.assertStrContains(out, "the session has the fix; " .. path .. " is as it was\n")
    lu.assertStrContains(out, "      c:wait_stream(p)\n      local sum")
  end
  local _, err, _, path = stepped("local x =\n", ":load FILE\n")
  lu.assertStrContains(err, path .. ":1: unexpected symbol near <eof>")
end

-- What an entry finds in a file that became one: variables that it left, and the place of a kernel's text.
function TestSteps.test_the_file_is_an_entry_to_the_others()
  local text = [==[
local source = [[
  extern "C" __global__ void one(float *x) {
    nonsense;
  }]]
local s, x = mr.stream(), mr.zeros(4)
mr.synchronize()
]==]
  local _, err, _, path = stepped(text, ":chooser timed\n:load FILE\n:load FILE\ns:run(function() x:fill_(1) end)\n" ..
    "x:sum():item()\nmr.kernel(source)\n")
  lu.assertStrContains(err, "x:fill_(1)")
  lu.assertStrContains(err, "wait_stream(s)")
  lu.assertStrContains(err, path .. ":3")
end

function TestSteps.test_next_goes_from_line_to_line()
  local out = stepped("local a = 1\nlocal b = a + 1\nprint(a + b)\n", ":next\na\n\nb\n\n'end'\n", { step = true })
  lu.assertStrContains(out, ":1: the next line\n")
  lu.assertStrContains(out, ":2> 1\n")
  lu.assertStrContains(out, ":3> 2\n")
  lu.assertStrContains(out, "> 3\n")
  lu.assertStrContains(out, "> end\n")
end

-- A line that calls a function which is written in it has begun once.
function TestSteps.test_a_function_within_its_line()
  local text = "local s, x = mr.stream(), mr.zeros(4)\nmr.synchronize()\ns:run(function() x:fill_(1) end)\n" ..
    "local function f()\n  return 1\nend\nf()\n"
  local out = stepped(text, ":break 3\n:break 5\n:c\n:run\n:c\n:c\n:c\n'end'\n", { step = true })
  lu.assertEquals(select(2, out:gsub(":3: a breakpoint\n", "")), 1)
  lu.assertEquals(select(2, out:gsub(":5: a breakpoint\n", "")), 1)
end

-- In bodies of coroutines and of tasks, from both ways of making one.
function TestSteps.test_breakpoints_in_coroutines()
  local body = "  local y = k * 100\n  return y\nend\n"
  for _, call in ipairs{ "print(coroutine.wrap(f)(7))", "print(coroutine.resume(coroutine.create(f), 7))",
    "print(mr.run(function() return f(7) end))" } do
    local out = stepped("local function f(k)\n" .. body .. call .. "\nprint(coroutine.isyieldable())\n",
      ":break 3\n:c\ny + 7\n:c\n'end'\n", { step = true })
    lu.assertStrContains(out, ":3: a breakpoint\n")
    lu.assertStrContains(out, ":3> 707\n")
    lu.assertStrContains(out, "700\n")
    lu.assertStrContains(out, "false\n") -- what makes coroutines is as it was
    lu.assertStrContains(out, "> end\n")
  end
  -- left within a coroutine, which has kept the error
  local out, err = stepped("local co = coroutine.create(function()\n  local a = 1\nend)\ncoroutine.resume(co)\n" ..
    "print('went on')\n", ":break 2\n:c\n:q\n'behind'\n", { step = true })
  lu.assertStrContains(err, "the script was left")
  lu.assertNotStrContains(out, "went on\n")
  lu.assertStrContains(out, "behind\n")
end

function TestSteps.test_an_assignment_to_a_local_of_the_script()
  local out, err = stepped("local x, none = 1, nil\nprint(x, none)\n", ":n\nx = 5\nnone = 6\nother = 7\nx\n:c\nx\n",
    { step = true })
  lu.assertStrContains(err, "`x` is a global variable now; the script's own `x` is as it was\n")
  lu.assertStrContains(err, "`none` is a global variable now")
  lu.assertNotStrContains(err, "other")
  lu.assertStrContains(out, ":2> 1\n")
end

-- By its own name, also while nothing is pending on it.
function TestSteps.test_a_stream_without_pending_work()
  local _, err = stepped(RACE, ":c\n:run\n:step producer\n:step nosuch\n:c\n:run\n:c\n", { step = true })
  lu.assertNotStrContains(err, "`producer` is no stream")
  lu.assertStrContains(err, "`nosuch` is no stream: the streams are c, p\n")
end

-- Two entries at a stop are two places.
function TestSteps.test_reports_of_entries_at_a_stop()
  local _, err = stepped("local x = mr.zeros(4)\nmr.synchronize()\nprint(1)\n",
    ":c\na = mr.stream()\na:run(function() x:add_(1) end)\nx:add_(1)\n:c\n", { step = true })
  lu.assertStrMatches(err, ".*first=%S+:1 second=stop%-2:1.*")
  lu.assertStrMatches(err, ".*first=stop%-2:1 second=stop%-3:1.*")
end

-- A report of such an entry knows the variables of the stop, in a coroutine, too.
function TestSteps.test_reports_at_a_stop_name_variables()
  local body = "  local s, x = mr.stream(), mr.zeros(4)\n  local function a() return s end\n" ..
    "  mr.synchronize()\n  s:run(function() x:add_(1) end)\n  s:synchronize()\n"
  for _, text in ipairs{ body, "coroutine.wrap(function()\n" .. body .. "end)()\n" } do
    local _, err = stepped(text, ":c\n:c\nt = mr.stream()\nt:run(function() x:add_(1) end)\n:c\n", { step = true })
    lu.assertStrContains(err, "hazard: read-after-write on `x`")
    lu.assertStrContains(err, "nothing makes t wait for s.\nfix: before stop-2:1 add   t:wait_stream(s)\n")
  end
end

-- `copy` is a variable of a function around the one that runs, which does not use it.
function TestSteps.test_variables_of_the_functions_around()
  local text = "local x, y = mr.zeros(4), 'main'\nlocal function stage(copy, y)\n  local later = function(n)\n" ..
    "    return n\n  end\n  mr.with(copy, function()\n    x:add_(1)\n    print('in')\n  end)\n" ..
    "  return later(1)\nend\nmr.synchronize()\nstage(mr.stream{name = 'copy'}, 'argument')\n"
  local out, err = stepped(text, ":break 8\n:c\n:c\ny, copy, n\nmr.default_stream():run(function() x:add_(1) end)\n" ..
    ":c\n", { step = true })
  lu.assertStrMatches(out, ".*> argument\tstream `copy`\tnil\n.*")
  lu.assertStrContains(err, "fix: before stop-2:1 add   mr.default_stream():wait_stream(copy)\n")
end

-- If two of it run, nobody knows which one made the function within.
function TestSteps.test_variables_of_a_function_that_calls_itself()
  local text = "local function f(n, g)\n  if g then return g() end\n  return f(n + 1, function()\n    return 5\n" ..
    "  end) + n\nend\nprint(f(1))\n"
  local out = stepped(text, ":break 4\n:c\n{n}\n:c\n", { step = true })
  lu.assertStrContains(out, "> {}\n")
end

-- A host function touches the tensor, and runs when the script has ended.
function TestSteps.test_reports_after_the_end_name_variables()
  local text = "local x = mr.zeros(4, {pinned = true})\nlocal a, b = mr.stream{name = 'a'}, mr.stream{name = 'b'}\n" ..
    "mr.op{name = 'w', writes = {x}, stream = a}\nb:host_func(function()\n  return x:fill_(4), a\nend)\n"
  local input = ":c\n:c\n%s:run\n"
  local _, err = stepped(text, input:format "", { step = true })
  lu.assertStrContains(err, "fix: before line 4 add   b:wait_stream(a)\n")
  -- Another variable of that name, and another value.
  for more, typed in pairs{ ["local b = a\n"] = "", ["b = a\n"] = "", [" "] = "local b = a\n" } do
    _, err = stepped(text .. more, input:format(typed), { step = true })
    lu.assertStrContains(err, "fix: before line 4 add   mr.synchronize() -- b has no name here; use its variable\n")
  end
end

function TestSteps.test_watched_expressions_at_a_stop()
  local text = "local x = 1\nlocal function f(k)\n  x = x + k\n  return x\nend\nf(2)\n"
  local out = stepped(text, ":break 4\n:watch x * 1000\n:watch k\n:c\nx = 5\n'then'\n:next\n", { step = true })
  lu.assertStrContains(out, "x * 1000: 3000\nk: 2\n")
  lu.assertStrContains(out, "then\nx * 1000: 3000\nk: 2\n") -- x = 5 is a global variable
  lu.assertStrContains(out, "k: nil\n") -- at the first stop
end

function TestSteps.test_two_panes_on_a_wide_terminal()
  local out = stepped(RACE, ":c\n:c\n:c\n", { step = true, columns = 110 })
  lu.assertStrContains(out, "▶    9  c:synchronize() ")
  lu.assertStrContains(out, " │ stream `consumer`: 1 pending\n")
  for line in out:gmatch("[^\n]+") do
    if line:find("│") then lu.assertTrue(utf8.len(line) <= 110) end
  end
  out = stepped(RACE, ":c\n:c\n:c\n", { step = true, columns = 40 })
  lu.assertNotStrContains(out, "│")
  lu.assertStrContains(out, "    10  print(sum:item())\nstream `producer`: 1 pending\n")
end

function TestSteps.test_a_script_can_be_left()
  local out, err = stepped(RACE, ":c\n:q\n'be' .. 'hind'\nmr.current_stream():query()\n", { step = true })
  lu.assertStrContains(err, "the script was left")
  lu.assertStrContains(out, "behind\n")
  out, err = stepped(RACE, ":c\n", { step = true }) -- the input ends
  lu.assertStrContains(err, "the script was left")
  lu.assertNotStrContains(out, "4.0")
end

-- All is as it was when the script has ended, also by an error.
function TestSteps.test_nothing_stays_behind()
  local out, err = stepped("mr.zeros(3)\nerror('broken')",
    ":load FILE\nmr.synchronize()\nhelp(mr.synchronize)\n'al' .. 'ive'\n")
  lu.assertStrContains(err, "broken")
  lu.assertNotStrContains(out, "waits for the device\n")
  lu.assertStrContains(out, "mr.synchronize(")
  lu.assertStrContains(out, "alive\n")
end

function TestSteps.test_mistakes_at_a_stop()
  local out, err = stepped(RACE, ":c\nnothing.at\n1 +\n:nosuch\n:break x y\n:load FILE\nerror{}\n'still'\n:c\n:c\n",
    { step = true })
  lu.assertStrContains(err, "attempt to index a nil value (global 'nothing')")
  lu.assertStrContains(err, "there is no command :nosuch")
  lu.assertStrContains(err, "a script has stopped")
  lu.assertStrContains(out, "still\n")
  local _, message = stepped("1", ":next\n:continue\n")
  lu.assertStrContains(message, ":next: no script has stopped")
  lu.assertStrContains(message, ":continue: no script has stopped")
end

-- Under other choosers the device does not wait for steps.
function TestSteps.test_other_choosers_do_not_stop()
  local out = stepped(RACE, ":chooser timed\n:load FILE\n'end'\n")
  lu.assertNotStrContains(out, "waits for the device")
end

local OF_RANKS = [[
#!/usr/bin/env millrace
mr.dist.init()
mine = mr.dist.rank() * 10
local x = mr.ones(4) * (mr.dist.rank() + 1)
local work = mr.dist.all_reduce(x, {async = true})
x:mul_(1)
work:wait()
print("sum of", mr.dist.rank(), x:sum():item())
]]

-- A stop says which rank it is. Each has variables of its own; the device is that of all.
function TestSteps.test_ranks()
  local out, _, _, path = stepped(OF_RANKS, ":n\n:n\n:n\nmine\nmine = 5\n:c\nmine, mr.dist.rank()\n" ..
    "x:peek():totable()[1]\n:run\nx:peek():totable()[1]\n:back 3\n:c\nmine, mr.dist.rank()\n:c\n'behind'\n",
    { ranks = 2, columns = 120 })
  local name = path:match "[^/]*$"
  lu.assertStrContains(out, ("rank 0: %s:2: the next line"):format(name))
  lu.assertStrContains(out, ("rank 0: %s:4> "):format(name))
  lu.assertStrContains(out, "> 0\n")
  lu.assertStrContains(out, ("rank 1: %s:8: `item` waits for the device"):format(name))
  lu.assertStrMatches(out, ".*> 10\t1\n[^\n]*> 0%.0\n.*\n7 steps; nothing is pending\n[^\n]*> 3%.0\n.*")
  lu.assertStrMatches(out, ".*> 3 steps undone.*sum of\t1\t12.0\nrank 0: [^\n]*:8: `item` waits for the device.*")
  lu.assertStrMatches(out, ".*> 5\t0\n[^\n]*sum of\t0\t12.0\n.*behind\n.*")
end

-- Their functions are seen where the script starts ranks by itself; the prompt can fix, replay and save what ran.
function TestSteps.test_ranks_of_the_script_and_what_comes_after()
  local out = stepped("mr.dist.spawn(1, function(rank)\n  local x = mr.ones(2)\n  print(rank, x:sum():item())\nend)\n",
    ":break 2\n:c\n:c\n:c\n", { step = true })
  lu.assertStrMatches(out, ".*rank 0: [^\n]*:2: a breakpoint\n.*rank 0: [^\n]*:3: `item` waits for the device\n.*")
  local saved = os.tmpname()
  local input = ":break all_reduce\n:c\n:break off\n:c\n:c\n:c\n:fix 1\n:save " .. saved .. "\n"
  out = stepped(OF_RANKS, input, { ranks = 2 })
  lu.assertStrMatches(out, ".*rank 1: [^\n]*:6: `all_reduce` was submitted\n.*")
  lu.assertNotStrContains(out, "millrace has no operation")
  lu.assertStrMatches(out, ".*the session has the fix.*sum of\t1\t12.0\nsum of\t0\t12.0\n.*")
  local text = command.read(saved)
  lu.assertStrContains(text, "--device virtual:2 FILE")
  lu.assertStrContains(text, "mr.dist.spawn(2, function(...)\n")
  local result = command.run{ "--device", "virtual:2", "--check", saved }
  os.remove(saved)
  lu.assertStrContains(result.out, "sum of\t0\t12.0\n")
  lu.assertStrContains(result.err, "no hazards")
end

function TestSteps.test_a_script_of_ranks_is_left_or_fails()
  local out, err = stepped(OF_RANKS, ":n\n:quit\n1 + 1\n", { ranks = 2 })
  lu.assertStrContains(err, "rank 0: the script was left")
  lu.assertStrContains(out, "2\n")
  err = select(2, stepped("if mr.dist.rank() == 0 then\n  mr.dist.barrier()\nend\n", ":c\n", { ranks = 2 }))
  lu.assertStrContains(err, "deadlock of the ranks (R62)")
  lu.assertStrContains(err, "Let rank 1 make this call, too")
end

function TestSteps.test_the_option()
  for _, arguments in ipairs{ { "--step" }, { "--step", "--sandbox", "x.lua" }, { "--step", "--explore", "x.lua" } } do
    local result = command.run(arguments)
    lu.assertEquals(result.status, 2)
    lu.assertStrContains(result.err, "--step ")
  end
  local result = command.run{ "--step", "no_such_file.lua", input = "1\n" }
  lu.assertStrContains(result.err, "no_such_file.lua cannot be read")
  lu.assertEquals(result.status, 1)
  local _, err, name = stepped("local x = = 1\n", "1\n", { step = true, status = 1 })
  lu.assertStrContains(err, name .. ":1: unexpected symbol near '='")
end

os.exit(lu.LuaUnit.run())
