-- timeout: 240
-- The prompt at a terminal: typing, several lines, pasting, history, completion, Ctrl-C, resizing.
local lu = require "luaunit"
local command = require "host.support.command"
local terminal = require "host.support.terminal"

if command.run{ "doctor" }.out:find("built without readline", 1, true) then
  print("skipped: a build without readline")
  os.exit(77)
end

local CTRL_A, CTRL_C, CTRL_D, CTRL_U, ESCAPE = "\1", "\3", "\4", "\21", "\27"
local UP, DOWN, END = ESCAPE .. "[A", ESCAPE .. "[B", ESCAPE .. "[F"

-- The lines of the screen below the banner at the end of the steps; the prompt then ends with status 0.
local function screen_after(steps)
  table.insert(steps, 1, { "wait", steps.at or "mr:1>" })
  steps[#steps + 1] = { "shot" }
  steps[#steps + 1] = { "send", CTRL_U .. CTRL_D }
  steps[#steps + 1] = { "exit" }
  local result = terminal.run(steps)
  lu.assertNil(result.failed)
  lu.assertStrContains(result.out, "exit 0\n")
  local text = result.text:match("goes on when you wait for it%.\n(.*)$") or result.text
  return text, result
end

TestTyping = {}

function TestTyping.test_entries_of_one_line()
  lu.assertEquals(screen_after{
    { "send", "'a' .. 'b'\r" }, { "wait", "mr:2>" }, { "send", "x = 1\r" }, { "wait", "mr:3>" },
  }, "mr:1> 'a' .. 'b'\nab\nmr:2> x = 1\nmr:3>")
end

function TestTyping.test_an_entry_of_several_lines_is_edited_as_one()
  lu.assertEquals(screen_after{
    { "send", "for i = 1, 2 do\rprint(i)\rend" },
    { "send", UP .. UP .. END .. CTRL_A .. UP .. CTRL_A }, -- to its beginning
    { "send", "do end " .. DOWN .. DOWN .. END .. "\r" },
    { "wait", "mr:2>" },
  }, "mr:1> do end for i = 1, 2 do\n  print(i)\n  end\n1\n2\nmr:2>")
end

function TestTyping.test_lines_are_indented()
  lu.assertEquals(screen_after{
    { "send", "for i = 1, 2 do\rif i > 1 then\rprint(i)\relse\rprint(0)\rend\rend\r" }, { "wait", "mr:2>" },
    { "send", "t = {\r{\r2\r},\r}\r" }, { "wait", "mr:3>" },
  }, "mr:1> for i = 1, 2 do\n  if i > 1 then\n    print(i)\n  else\n    print(0)\n  end\nend\n0\n2\n" ..
    "mr:2> t = {\n  {\n    2\n  },\n}\nmr:3>")
end

-- The text of a string is nobody's but the user's.
function TestTyping.test_long_strings_are_not_indented()
  lu.assertEquals(screen_after{
    { "send", "s = [[\r  a {\rb\r]]\r" }, { "wait", "mr:2>" }, { "send", "s == '  a {\\nb\\n'\r" }, { "wait", "mr:3>" },
  }, "mr:1> s = [[\n  a {\nb\n]]\nmr:2> s == '  a {\\nb\\n'\ntrue\nmr:3>")
end

function TestTyping.test_utf8()
  lu.assertEquals(screen_after{
    { "send", "mr.stream{name = 'größe→'}\r" }, { "wait", "mr:2>" },
    { "send", "'é' .. 'x'\127y'\r" }, { "wait", "mr:3>" },
  }, "mr:1> mr.stream{name = 'größe→'}\nstream `größe→`\nmr:2> 'é' .. 'xy'\néxy\nmr:3>")
end

function TestTyping.test_a_character_of_several_bytes_is_deleted_as_one()
  lu.assertEquals(screen_after{ environment = "LC_ALL=C.UTF-8",
    { "send", "#'grö\127'\r" }, { "wait", "mr:2>" },
  }, "mr:1> #'gr'\n2\nmr:2>")
end

function TestTyping.test_the_end_of_the_input()
  lu.assertEquals(screen_after{
    { "send", "function f(\r" .. CTRL_D .. ") end\r" }, { "wait", "mr:2>" },
    { "send", "'o' .. 'ne'\r" }, { "wait", "mr:3>" },
  }, "mr:1> function f(\n) end\nmr:2> 'o' .. 'ne'\none\nmr:3>")
end

-- At a stop of a script, entries are read inside of the script's call: what is typed is completed, and tells what is
-- pending, as everywhere.
function TestTyping.test_a_script_that_stops()
  local path = os.tmpname()
  command.write(path, 'local mr = require "millrace"\nlocal s, alone = mr.stream{ name = "s" }, mr.zeros(4)\n' ..
    's:run(function() alone:fill_(1) end)\nmr.synchronize()\nprint(alone:sum():item())\n')
  local text = screen_after{ arguments = "--step " .. path, at = ":1>",
    { "send", ":break 4\r" }, { "wait", "breakpoints: 4" }, { "send", ":c\r" }, { "wait", ":4>" },
    { "send", "alo\t" }, { "wait", "alone" }, { "send", ".numel * 1111\r" }, { "wait", "4444" },
    { "send", "for i = 1, 2 do\rprint('number', i)\rend\r" }, { "wait", "number  2" },
    { "send", ":c\r" }, { "wait", "waits for the device" }, { "send", ":run\r" }, { "wait", "nothing is pending" },
    { "send", ":c\r" }, { "wait", "item" }, { "send", ":run\r" }, { "send", ":c\r" }, { "wait", "4.0" },
    { "wait", "mr:" }, -- Ctrl-D is for this prompt: before, the terminal takes it away
  }
  os.remove(path)
  lu.assertNotStrContains(text, "attempt to")
end

-- Where the cursor cannot go up, each line is read alone.
function TestTyping.test_a_dumb_terminal()
  local text = screen_after{ term = "dumb",
    { "send", "function f(\r" }, { "wait", "..>" }, { "send", CTRL_D }, { "wait", "mr:2>" },
    { "send", "'o' .. 'ne'\r" }, { "wait", "mr:3>" }, { "send", "'t' .. 'wo'\r" }, { "wait", "mr:4>" },
  }
  lu.assertEquals(text, "mr:1> function f(\n..>\nmr:1:1: <name> or '...' expected near <eof>\n" ..
    "mr:2> 'o' .. 'ne'\none\nmr:3> 't' .. 'wo'\ntwo\nmr:4>")
end

function TestTyping.test_the_state_in_the_prompt()
  lu.assertEquals(screen_after{ columns = 120, rows = 20,
    { "send", "copy = mr.stream()\r" }, { "wait", "mr:2>" },
    { "send", "mr.set_stream(copy)\r" }, { "wait", "mr:3 [copy]>" },
    { "send", "mr.spin{ms = 1}\r" }, { "wait", "1 pending" },
    { "send", "mr.synchronize()\r" }, { "wait", "mr:5 [copy]>" },
  }, "mr:1> copy = mr.stream()\nmr:2> mr.set_stream(copy)\nmr:3 [copy]> mr.spin{ms = 1}\n" ..
    "mr:4 [copy; 1 pending at 0.009 ms]> mr.synchronize()\nmr:5 [copy]>")
end

-- A timeline has a frame of lines or of ASCII characters.
function TestTyping.test_characters_of_drawings()
  local line = "mr.timeline(function() mr.spin{ms = 1} mr.synchronize() end):print()\r"
  for arguments, mark in pairs { ["--ascii"] = "+---", ["--chooser timed"] = "┬───" } do
    lu.assertStrContains(screen_after{ rows = 20, columns = 100, environment = "LC_ALL=C.UTF-8", arguments = arguments,
      { "send", line }, { "wait", "mr:2>" } }, mark)
  end
end

-- The line that is being typed is drawn anew for the new width.
function TestTyping.test_a_smaller_and_a_larger_terminal()
  local text, result = screen_after{ rows = 12,
    { "send", "x = '0123456789 0123456789 0123456789'" }, { "wait", "6789'" }, { "size", 12, 30 },
    { "send", " " }, { "wait", "0123456789'" }, { "shot" }, { "size", 12, 100 },
    { "send", "y = 1\r" }, { "wait", "mr:2>" }, { "send", "#x, y\r" }, { "wait", "mr:3>" },
  }
  local narrow = result.out:match("^(.-)cursor")
  lu.assertStrContains(narrow, "|mr:1> x = '0123456789 01234567\n|89 0123456789'")
  lu.assertStrContains(text, "mr:2> #x, y\n32      1\nmr:3>")
end

-- Lines that are wider than the terminal end between words, and go on with an indent.
function TestTyping.test_reports_of_hazards_are_wrapped()
  local text = screen_after{ rows = 40, columns = 60,
    { "send", "s = mr.stream{name = 'side'}\r" }, { "wait", "mr:2>" },
    { "send", "x = mr.zeros(8)\r" }, { "wait", "mr:3 " },
    { "send", "y = s:run(function() return x:sum() end)\r" }, { "wait", "1 new hazard" },
  }
  local report = text:match "nothing makes side.-\nfix:"
  lu.assertEquals(report, "nothing makes side wait for default: side is non-blocking,\n" ..
    "    so it does not wait for the default stream.\nfix:")
  lu.assertStrContains(text, "first=mr:2:1\n    second=mr:3:1\n")
end

TestPasting = {}

local function pasted(text, steps)
  return command.with_file(text, function(path)
    table.insert(steps, 1, { "paste", path })
    return screen_after(steps)
  end)
end

function TestPasting.test_a_program_is_one_entry()
  local text = pasted("local function f(x)\n  -- twice\n  return 2 * x\nend\n\nprint(f(4))", { { "wait", "mr:2>" } })
  lu.assertEquals(text, "mr:1> local function f(x)\n  -- twice\n  return 2 * x\nend\n\nprint(f(4))\n8\nmr:2>")
end

function TestPasting.test_a_row_of_entries()
  local text = pasted("x = 20\nx\nfor i = 1, 2 do\n  print(i)\nend\nlocal y = x + 1\ny", { { "wait", "mr:6>" } })
  lu.assertStrContains(text, "y\n20\n1\n2\n21\nmr:6>")
end

function TestPasting.test_a_session_with_its_prompts()
  local text = pasted("mr:7> x = 20\nmr:8 [copy]> x\n20\nmr:9> do\n  print(x + 1)\nend\n21\nmr:10>",
    { { "wait", "mr:4>" } })
  lu.assertStrContains(text, "\n20\n21\nmr:4>")
end

-- Each is an entry of its own, with a number and a place in the history; what was answered is left out.
function TestPasting.test_entries_of_a_session_run_one_by_one()
  local text = pasted("millrace 0.1\n\nmr:1> x = 5\nmr:2> y = 6\nmr:3> f32 foo\nmr> x + y\n11\nsome answer\nmr> ",
    { { "wait", "mr:4>" }, { "send", "1\r" }, { "wait", "mr:5>" },
      { "send", UP .. UP .. UP }, { "wait", "mr:5> y = 6" },
      { "send", CTRL_U } })
  lu.assertStrContains(text, "syntax error near 'foo'\nthe rest of the pasted text was not run\nmr:4> 1")
  text = pasted("mr> x = 5\nmr> y = 6\nmr> x + y\n11\nsome answer\nmr> ", { { "wait", "mr:4>" } })
  lu.assertStrContains(text, "\n11\nmr:4>")
end

-- `x = 5` and `x` below it are no chunk of Lua, since it could go on.
function TestPasting.test_a_program_that_ends_in_a_name()
  lu.assertStrContains(pasted("x = 5\nx", { { "wait", "mr:3>" } }), "x = 5\nx\n5\nmr:3>")
  local text = pasted("function f()\n  return 7\nend\ny = f()\n\ny", { { "wait", "mr:4>" } })
  lu.assertStrContains(text, "y\n7\nmr:4>")
end

function TestPasting.test_what_stands_behind_a_failure_is_not_run()
  local text = pasted("1\nerror('x')\nprint('not', 'run')\n2", { { "wait", "mr:3>" } })
  lu.assertStrContains(text, "mr:2:1: x\nthe rest of the pasted text was not run\nmr:3>")
  lu.assertNil(text:find("not\trun", 1, true))
end

function TestPasting.test_200_lines()
  local lines = { "local sum = 0" }
  for i = 1, 198 do lines[#lines + 1] = "sum = sum + " .. i .. " -- line " .. i end
  lines[#lines + 1] = "print('sum ' .. sum)"
  local text = pasted(table.concat(lines, "\n"), { { "wait", "mr:2>" } })
  lu.assertStrContains(text, "sum 19701\nmr:2>")
end

-- A table of 10 MB: it must come to an end, and the prompt must go on.
function TestPasting.test_10_megabytes()
  local lines = { "t = {" }
  for i = 1, 100000 do lines[i + 1] = ("%d, -- %s"):format(i, ("x"):rep(90)) end
  lines[#lines + 1] = "}"
  local text = pasted(table.concat(lines, "\n"), { { "wait", "mr:2>" }, { "send", "#t\r" }, { "wait", "mr:3>" } })
  lu.assertStrContains(text, "mr:2> #t\n100000\nmr:3>")
end

TestHistory = {}

function TestHistory.test_whole_entries_also_after_a_restart()
  local home = os.tmpname()
  os.remove(home)
  os.execute("mkdir " .. home)
  screen_after{ home = home,
    { "send", "for i = 1, 1 do\rprint('a\\\\n' .. i)\rend\r" }, { "wait", "mr:2>" },
    { "send", "'last' .. 'line'\r" }, { "wait", "mr:3>" },
  }
  lu.assertEquals(command.read(home .. "/.local/state/millrace/history"),
    "for i = 1, 1 do\\n  print('a\\\\\\\\n' .. i)\\nend\n'last' .. 'line'\n")
  local text = screen_after{ home = home, { "send", UP .. UP .. END .. "\r" }, { "wait", "mr:2>" } }
  lu.assertEquals(text, "mr:1> for i = 1, 1 do\n  print('a\\\\n' .. i)\nend\na\\n1\nmr:2>")
  os.execute("rm -rf " .. home)
end

-- Entries of a session that is open at the same time as one that shortens the file.
function TestHistory.test_10000_entries_are_kept_and_none_is_lost()
  local home = os.tmpname()
  os.remove(home)
  os.execute("mkdir -p " .. home .. "/.local/state/millrace")
  local path, lines = home .. "/.local/state/millrace/history", {}
  for i = 1, 9000 do lines[i] = "x = " .. i .. "\n" end
  command.write(path, table.concat(lines))
  local grow = "f = io.open('" .. path .. "', 'a') for i = 9001, 20001 do f:write('x = ' .. i .. '\\n') end f:close()"
  local program = command.host:match("^(.*)/[^/]*$") .. "/terminal"
  command.write(home .. "/steps", "wait mr:1>\nsend \\x04\nexit\n")
  screen_after{ home = home, columns = 200,
    { "send", grow .. "\r" }, { "wait", "mr:2>" },
    -- another terminal opens and closes a prompt, which shortens the file
    { "send", ("os.execute('%s 24 80 %s/steps %s')\r"):format(program, home, command.host) },
    { "wait", "mr:3>" }, { "send", "'af' .. 'ter'\r" }, { "wait", "mr:4>" },
  }
  local text, count = command.read(path), 0
  for _ in text:gmatch("\n") do count = count + 1 end
  lu.assertNotStrContains(text, "x = 9000\n")
  lu.assertStrContains(text, "x = 20001\n")
  lu.assertStrContains(text, "\n'af' .. 'ter'\n")
  lu.assertTrue(count <= 10010)
  os.execute("rm -rf " .. home)
end

TestCompletion = {}

local function completed(typed, shown)
  local text = screen_after{ columns = 100, { "send", typed .. "\t" }, { "wait", shown } }
  return text
end

function TestCompletion.test_modules_and_optimisers()
  local net = "net = mr.nn.Sequential(mr.nn.Linear(2, 3))\r"
  lu.assertStrContains(completed(net .. "net:named_par", "net:named_parameters"), "net:named_parameters")
  lu.assertStrContains(completed(net .. "net[1].weig", "net[1].weight"), "net[1].weight")
  local sgd = "o = mr.optim.SGD({mr.zeros(1)})\r"
  lu.assertStrContains(completed(sgd .. "o:zero_", "o:zero_grad"), "o:zero_grad")
end

function TestCompletion.test_names()
  lu.assertEquals(completed("mr.hazard.rep", "mr.hazard.reports"), "mr:1> mr.hazard.reports")
  lu.assertEquals(completed("'':rev", "'':reverse"), "mr:1> '':reverse")
  lu.assertEquals(completed("loca", "local"), "mr:1> local")
  lu.assertEquals(completed("help('wait_ev", "wait_event"), "mr:1> help('wait_event")
  lu.assertEquals(completed("help('no-", "no-path"), "mr:1> help('no-path")
  lu.assertEquals(completed("help('freed-", "freed-without-record-stream"), "mr:1> help('freed-without-record-stream")
  lu.assertStrContains(completed("help('R1", "R13"), "R13")
end

function TestCompletion.test_a_list_has_usage_lines()
  local text = completed("mr.memory.all", "mr.memory.allocated")
  lu.assertEquals(text, "mr:1> mr.memory.allocated")
  lu.assertStrContains(completed("mr.zeros_like", "mr.zeros_like("), "zeros_like  mr.zeros_like(t: tensor")
end

function TestCompletion.test_objects_options_and_arguments()
  local text = screen_after{ columns = 100, rows = 40,
    { "send", "local side, done = mr.stream(), mr.event()\r" }, { "wait", "mr:2>" },
    { "send", "side:wait_e\t" }, { "wait", "side:wait_event" }, { "send", "(\t" }, { "wait", "side:wait_event(done" },
    { "send", ")\r" }, { "wait", "mr:3" },
    { "send", "mr.zeros(3, {dt\t'f64', st\t" }, { "wait", "stream =" },
    { "send", "si\t}).dtype\r" }, { "wait", "mr:4" },
  }
  lu.assertStrContains(text, "mr.zeros(3, {dtype = 'f64', stream = side}).dtype\nf64\n")
end

function TestCompletion.test_values_of_options_and_arguments()
  lu.assertEquals(completed('mr.zeros(3, {dtype = "bf', "bf16"), 'mr:1> mr.zeros(3, {dtype = "bf16')
  lu.assertEquals(completed("mr.machine.chooser('adv", "adversarial"), "mr:1> mr.machine.chooser('adversarial")
  lu.assertEquals(completed("mr.hazard.mode('col", "collect"), "mr:1> mr.hazard.mode('collect")
  lu.assertEquals(completed("mr.zeros(3, {device = 'cp", "'cpu"), "mr:1> mr.zeros(3, {device = 'cpu")
end

-- Nothing is called for it.
function TestCompletion.test_what_a_call_returns()
  lu.assertEquals(completed("mr.stream():wait_ev", "wait_event"), "mr:1> mr.stream():wait_event")
  lu.assertEquals(completed("mr.stream{name = 's'}:wait_ev", "wait_event"), "mr:1> mr.stream{name = 's'}:wait_event")
  lu.assertEquals(completed("mr.zeros(3, {dtype = 'f32'}):sum():record_str", "record_stream"),
    "mr:1> mr.zeros(3, {dtype = 'f32'}):sum():record_stream")
  lu.assertEquals(completed("mr.zeros(2):size(1):x", "x"), "mr:1> mr.zeros(2):size(1):x")
end

function TestCompletion.test_files_of_commands()
  lu.assertEquals(completed(":load scripts/examples/fan_", "fan_out.lua"), "mr:1> :load scripts/examples/fan_out.lua")
end

function TestCompletion.test_names_of_files()
  local text = completed("dofile('scripts/examples/fan_", "fan_out.lua")
  lu.assertEquals(text, "mr:1> dofile('scripts/examples/fan_out.lua")
end

-- As readline asks; Ctrl-C means no, and the line goes.
function TestCompletion.test_a_long_list_is_asked_about()
  local asks = "Display all 1200 possibilities? (y or n)"
  local many = { "send", "for i = 1, 1200 do _G['name_' .. i] = i end\r" }
  local text = screen_after{ many, { "wait", "mr:2>" }, { "send", "name_\t" }, { "wait", asks },
    { "send", "n" }, { "rows", "mr:2> name_", 2 }, { "send", "7 * 11\r" }, { "wait", "mr:3>" } }
  lu.assertStrContains(text, "\nmr:2> name_\n" .. asks .. "\nmr:2> name_7 * 11\n77\n")
  text = screen_after{ many, { "wait", "mr:2>" }, { "send", "name_\t" }, { "wait", asks },
    { "send", "y" }, { "gone", asks }, { "wait", "mr:2> name_" }, { "send", "7 * 11\r" }, { "wait", "mr:3>" } }
  lu.assertStrContains(text, "77")
  text = screen_after{ many, { "wait", "mr:2>" }, { "send", "name_\t" }, { "wait", asks },
    { "send", CTRL_C }, { "rows", "mr:2>", 3 }, { "send", "'al' .. 'ive'\r" }, { "wait", "alive" } }
  lu.assertStrContains(text, "mr:2> 'al' .. 'ive'\nalive")
end

TestInterrupting = {}

function TestInterrupting.test_a_line_and_what_runs()
  local text = screen_after{
    { "send", "print('go' .. 'ing') while true do pcall(function() while true do end end) end\r" },
    { "wait", "going" }, { "send", CTRL_C }, { "wait", "mr:2>" },
    { "send", "print('not run')" }, { "wait", "mr:2> print" }, { "send", CTRL_C }, { "rows", "mr:2", 2 },
    { "send", "x = {\r1,\r2" }, { "wait", "  2" }, { "send", CTRL_C }, { "rows", "mr:2", 3 },
    { "send", "'al' .. 'ive'\r" }, { "wait", "mr:3>" },
  }
  lu.assertStrContains(text, "interrupted at mr:1:1\n")
  lu.assertStrContains(text, "mr:2> print('not run')\nmr:2> x = {\n  1,\n  2\nmr:2> 'al' .. 'ive'\nalive\nmr:3>")
end

function TestInterrupting.test_a_wait()
  local text = screen_after{
    { "send", "s = mr.stream() s:host_func(function() print('wai' .. 'ting') while true do end end)\r" },
    { "wait", "mr:2" },
    { "send", "s:synchronize()\r" }, { "wait", "waiting" }, { "send", CTRL_C }, { "wait", "mr:3" },
  }
  lu.assertStrContains(text, "interrupted at mr:1:1")
end

function TestInterrupting.test_a_replay_does_not_run_what_was_stopped()
  local text = screen_after{
    { "send", "print('wai' .. 'ting') while true do end\r" }, { "wait", "waiting" }, { "send", CTRL_C },
    { "wait", "mr:2" }, { "send", "6 * 7\r" }, { "wait", "mr:3" }, { "send", ":replay\r'al' .. 'ive'\r" },
    { "wait", "alive" },
  }
  lu.assertStrContains(text, "it was stopped, so it is not run again\nmr:2| 6 * 7\n42\n")
end

function TestInterrupting.test_an_entry_with_a_close_variable()
  local text = screen_after{
    { "send", "c = setmetatable({}, {__close = function() print('clo' .. 'sed') end})\r" }, { "wait", "mr:2>" },
    { "send", "local x <close> = c print('go' .. 'ing') while true do end\r" }, { "wait", "going" }, { "send", CTRL_C },
    { "wait", "mr:3>" },
  }
  lu.assertStrContains(text, "closed\ninterrupted at mr:2:1\nmr:3>")
end

TestPages = {}

function TestPages.test_a_long_page_goes_through_the_pager()
  local text = screen_after{ environment = "PAGER='sed -n 1s/^/paged:/p'", rows = 12,
    { "send", "help('tensor')\r" }, { "wait", "mr:2>" } }
  lu.assertStrContains(text, "help('tensor')\npaged:")
  text = screen_after{ environment = "PAGER='sed -n 1s/^/paged:/p'", { "send", "help('R13')\r" }, { "wait", "mr:2>" } }
  lu.assertStrContains(text, "help('R13')\nR13 ")
  text = screen_after{ environment = "PAGER=/no/such/program", rows = 12,
    { "send", "help('hazards')\r" }, { "wait", "mr:2>" } }
  lu.assertNotNil(text:find("mr:2>$"))
end

os.exit(lu.LuaUnit.run())
