-- timeout: 300
-- Words of the prompt at a terminal: whole words in any width, one screen at a time, no codes where none belong. Names
-- that were nearly right, and how one leaves.
local lu = require "luaunit"
local command = require "host.support.command"
local terminal = require "host.support.terminal"

if command.run{ "doctor" }.out:find("built without readline", 1, true) then
  print("skipped: a build without readline")
  os.exit(77)
end

-- The screen at the end of the steps, and all that was printed.
local function screen_after(steps)
  table.insert(steps, 1, { "wait", "mr:1>" })
  for _, step in ipairs{ { "shot" }, { "send", "\21\4" }, { "exit" } } do steps[#steps + 1] = step end
  local result = terminal.run(steps)
  lu.assertNil(result.failed)
  return result.text, result.out
end

-- Through a pipe: what was shown, without prompts, and what was complained of.
local function said(input, environment)
  local result = command.run{ "-i", input = input, environment = environment }
  lu.assertEquals(result.status, 0)
  return (result.out:gsub("mr:%d+[^\n>]*> ", "")), result.err
end

-- Two rows between which the terminal has cut a word; nil: there are none. An entry is cut where it ends, and the line
-- of what is pending begins where it begins.
local function torn(text, columns)
  local above = ""
  for row in (text .. "\n"):gmatch("(.-)\n") do
    if utf8.len(above) == columns and above:find("%w$") and row:find("^%w")
      and not (above .. "\n" .. row):find("%f[^\n\0]mr:%d") and not row:find("^side: ") then
      return above .. "\n" .. row
    end
    above = row
  end
  return nil
end

local RACE = {
  { "send", "x, s = mr.zeros(4, {name = 'x'}), mr.stream{name = 'side'}\r" }, { "wait", "mr:2 " },
  { "send", "y = s:run(function() return x:sum() end)\r" }, { "wait", "reason=" }, { "wait", "mr:3" },
}

local function after_race(steps, options)
  local all = table.move(RACE, 1, #RACE, 1, {})
  table.move(steps, 1, #steps, #all + 1, all)
  for name, value in pairs(options) do all[name] = value end
  return screen_after(all)
end

TestWords = {}

function TestWords.test_are_whole()
  for _, columns in ipairs{ 40, 80 } do
    local text = after_race({
      { "send", "x\r" }, { "wait", "mr:4" }, { "send", "mr.zeros(3):ad_(1)\r" }, { "wait", "`add_`?" },
      { "send", ":who\r" }, { "wait", "who can read" }, { "send", ":hazards\r" }, { "wait", "shows one in full" },
      { "send", ":queues\r" }, { "wait", "chooser timed" }, { "send", "help()\r" }, { "wait", "mr:6" },
      { "send", "help('no-path')\r" }, { "wait", "explains all of" }, { "send", "1\r" }, { "wait", "mr:8" },
    }, { columns = columns, rows = 150 })
    lu.assertNil(torn(text, columns))
    lu.assertStrContains((text:gsub("%s+", " ")), "pending work goes on when you wait for it.")
    lu.assertStrContains((text:gsub("%s+", " ")), "last written by zeros at mr:1:1")
  end
end

-- In each size and locale that people have: whole words, and ASCII alone where the locale has no more.
function TestWords.test_in_every_size_and_locale()
  local typed = {
    "x, s = mr.zeros(4, {name = 'x'}), mr.stream{name = 'side'}", "y = s:run(function() return x:sum() end)", ":queues",
    "x", ":who", ":tl", ":hazards 1", "mr.zeros(3):ad_(1)", "print(mr.arange(40))", "help('no-path')",
  }
  for _, size in ipairs{ { 24, 80 }, { 12, 40 }, { 50, 200 } } do
    for _, locale in ipairs{ "C", "C.UTF-8" } do
      local steps = { { "wait", "mr:1>" }, rows = size[1], columns = size[2],
        environment = "PAGER=cat LC_ALL=" .. locale }
      for _, entry in ipairs(typed) do
        steps[#steps + 1] = { "enter", entry .. "\r" }
        steps[#steps + 1] = { "shot" }
      end
      steps[#steps + 1] = { "send", "\4" }
      steps[#steps + 1] = { "exit" }
      local result = terminal.run(steps)
      local where = ("%dx%d, %s"):format(size[1], size[2], locale)
      lu.assertNil(result.failed, where)
      local shots = 0
      for shot in result.out:gmatch("(|.-)\ncursor %d+ %d+\n") do
        lu.assertNil(torn(shot:gsub("\n|", "\n"):gsub("^|", ""), size[2]), where)
        shots = shots + 1
      end
      lu.assertEquals(shots, #typed, where)
      lu.assertEquals(result.out:find("▶", 1, true) ~= nil, locale == "C.UTF-8", where)
      if locale == "C" then lu.assertNil(result.out:find("[\128-\255]"), where) end
    end
  end
end

-- The texts about a whole script, too: its verdicts and its error.
function TestWords.test_verdicts_and_errors_of_a_script()
  local script = os.tmpname()
  command.write(script, [[
    local mr = require "millrace"
    local a, b, x = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.zeros(4)
    a:run(function() x:add_(1) end)
    b:run(function() x:add_(1) end)
    mr.synchronize()
    if not (...) then error("a message that is longer than the terminal is wide, as many are by their nature") end]])
  for option, ending in pairs{ ["--explore"] = " with", ["--waits"] = "the host", [""] = "main chunk" } do
    local arguments = ("%s %s %s"):format(option, script, option == "" and "" or "once")
    local result = terminal.run{ columns = 53, rows = 60, arguments = arguments, { "wait", ending }, { "exit" },
      { "shot" } }
    lu.assertNil(torn(result.text, 53), arguments)
  end
  os.remove(script)
end

-- The names that the examples use most come first, then the tables; each is there once.
function TestWords.test_the_names_of_mr()
  local out = said("mr\n", "export COLUMNS=80")
  local used = out:match("\nused most:\n(.-)\ntables of functions:\n")
  for _, name in ipairs{ "stream", "zeros", "synchronize" } do lu.assertStrContains(used, name) end
  lu.assertTrue(select(2, used:gsub("\n", "")) < 12)
  local rest = out:match("\nthe others, by name:\n(.*)")
  lu.assertStrContains(rest, "adaptive_avg_pool2d")
  lu.assertNil(rest:find("%f[%w_]synchronize%f[^%w_]"))
end

-- The first steps stand in two columns; what is too wide goes on in the second one.
function TestWords.test_the_first_steps()
  local text = screen_after{ rows = 60, { "send", "help()\r" }, { "wait", "mr:2>" } }
  local columns = {}
  for row in text:gmatch("[^\n]+") do
    local column = row:match("^  +%S[^\n]-  +()%S") or row:match("^       +()%S")
    if column then columns[column] = (columns[column] or 0) + 1 end
  end
  lu.assertEquals(select(2, next(columns)), 12) -- eight rows; four of them have two lines
  lu.assertNil(next(columns, (next(columns))))
end

-- Typed text has room behind the prompt; values stand in rows of the terminal's width; and a timeline is drawn.
function TestWords.test_on_a_narrow_terminal()
  local text = screen_after{ columns = 40, rows = 150, environment = "PAGER=cat LC_ALL=C.UTF-8",
    { "send", "p, c = mr.stream{name = 'producer'}, mr.stream{name = 'a long name'}\r" }, { "wait", "mr:2>" },
    { "send", "x = mr.zeros(64, {name = 'x'})\r" }, { "wait", "mr:3" }, { "send", "mr.synchronize()\r" },
    { "wait", "mr:4>" }, { "send", "p:run(function() x:fill_(1) end)\r" }, { "wait", "mr:5 [1 pending]>" },
    { "send", "s = c:run(function() return x:sum() end)\r" }, { "wait", "mr:6 [2 pending; !1]>" },
    { "send", "mr.set_stream(c)\r" }, { "wait", "mr:7 [a long na…; 2 pending]>" },
    { "send", "w = mr.waits(mr.synchronize)\r" }, { "wait", "mr:8" },
    { "send", "print(w)\r" }, { "wait", "mr:9" }, { "send", "print(mr.rand(2, 20))\r" }, { "wait", "mr:10" },
    { "send", "mr.rand(20):cpu()\r" }, { "wait", "mr:11" }, { "send", ":tl all\r" }, { "wait", "busy" },
    { "send", "1\r" }, { "wait", "mr:12" } }
  lu.assertNil(torn(text, 40))
  for row in (text .. "\n"):gmatch("(.-)\n") do
    lu.assertFalse(row:find("^[%d.]+[,%]]") ~= nil and row:find("0.", 1, true) == nil, row) -- half a number
  end
  lu.assertStrContains(text, "synchronize: re")
  lu.assertStrContains(text, "producer")
  lu.assertStrContains(text, "[[0.")
end

function TestWords.test_tables_of_pages_fit()
  for _, columns in ipairs{ 40, 80 } do
    local text = screen_after{ columns = columns, rows = 199, environment = "PAGER='cat' LC_ALL=C.UTF-8",
      { "send", "help('prompt')\r" }, { "wait", "mr:2>" } }
    local history = "\n`~/.local/state/millrace/history`"
    lu.assertNotStrContains(text, "|")
    lu.assertStrContains(text, columns == 40 and history .. "\n    the last 10000 entries of all\n" or
      history .. "  the last 10000")
    lu.assertStrContains(text, "\nUp, Down  ")
  end
end

-- Wide characters take two columns.
function TestWords.test_of_wide_characters()
  local out = said(("mr.stream{name = %q}\n"):format(("流れ "):rep(20):sub(1, -2)) .. ":who nothing\n")
  lu.assertStrContains(out, "流れ 流れ")
  local text = screen_after{ columns = 40, environment = "LC_ALL=C.UTF-8",
    { "send", "error('" .. ("流れ "):rep(12) .. "', 0)\r" }, { "wait", "mr:2>" } }
  lu.assertStrContains(text, "\n" .. ("流れ "):rep(7) .. "流れ\n    流れ 流れ 流れ 流れ\nmr:2>")
end

-- The editor knows the size of a terminal that was resized while an entry ran.
function TestWords.test_a_size_that_changes_while_an_entry_runs()
  local text = screen_after{ rows = 12,
    { "send", "print('go' .. 'ing') os.execute('sleep 0.5')\r" }, { "wait", "going" }, { "size", 12, 40 },
    { "wait", "mr:2>" }, { "send", "x = '0123456789 0123456789 0123456789 01'" }, { "wait", "01'" },
    { "send", "\1y = 1; \5\r" }, { "wait", "mr:3>" }, { "send", "y, #x\r" }, { "wait", "mr:4>" },
  }
  lu.assertStrContains(text,
    "\nmr:2> y = 1; x = '0123456789 0123456789\n0123456789 01'\nmr:3> y, #x\n1       35\nmr:4>")
end

TestPages = {}

function TestPages.test_the_names_of_a_table_and_commands_are_paged()
  for entry, first in pairs{ mr = "mr: ", [":help"] = ":step " } do
    local text = screen_after{ rows = 12, environment = "PAGER='sed -n 1s/^/paged:/p'",
      { "send", entry .. "\r" }, { "count", "mr:", 3 }, { "wait", "paged:" } }
    lu.assertStrContains(text, "mr:1> " .. entry .. "\npaged:" .. first)
  end
end

function TestPages.test_apropos_shows_one_screen()
  local text = screen_after{ { "send", ":apropos wait\r" }, { "wait", "more:" }, { "rows", "mr:1>", 2 } }
  local shown, more = text:match("mr:1> :apropos wait\n(.*\n)(%d+ more: :apropos wait all)\n")
  lu.assertNotNil(more)
  local _, lines = shown:gsub("\n", "")
  lu.assertTrue(lines <= 21)
end

-- Names come first, and of these, what is used most.
function TestPages.test_apropos_is_ranked()
  local out = said(":apropos wait\n")
  local places = {}
  for _, usage in ipairs{ "s:wait(", "s:wait_stream(", "s:wait_event(", "mr.print(" } do
    places[#places + 1] = out:find("\n" .. usage, 1, true) or out:find(usage, 1, true)
  end
  lu.assertEquals(#places, 4)
  for i = 2, #places do lu.assertTrue(places[i - 1] < places[i]) end
  lu.assertStrContains(select(2, said(":apropos\n")), ":apropos needs a word")
end

function TestPages.test_apropos_knows_names_of_other_libraries()
  lu.assertStrContains(said(":apropos ddp\n"), "`ddp` of PyTorch or CUDA\n  write mr.nn.parallel.")
  lu.assertStrContains(said(":apropos gather_into\n"), "write mr.dist.all_gather(out, t)")
end

TestCodes = {}

local DRAWINGS = {
  { "send", "tr = mr.timeline(function() mr.spin{ms = 1} mr.synchronize() end) tr:print()\r" }, { "wait", "mr:4" },
  { "send", ":queues\r" }, { "send", ":tl all\r" }, { "wait", "busy" },
  { "send", "1 + 1\r" }, { "wait", "mr:5" },
}

-- A search of a second says how far it is, where a line can be written anew.
local SEARCH = {
  { "send", "a, b = mr.stream(), mr.stream() z = mr.zeros(1)\r" },
  { "send", "r = mr.explore(function() for i = 1, 8 do a:run(function() z:add_(i) end) " ..
    "b:run(function() z:mul_(2) end) end mr.synchronize() return z:item() end, {time = 2})\r" },
  { "wait", "mr:7" },
}

function TestCodes.test_a_dumb_terminal_gets_none()
  local steps = table.move(DRAWINGS, 1, #DRAWINGS, 1, {})
  table.move(SEARCH, 1, #SEARCH, #steps + 1, steps)
  steps[#steps + 1] = { "count", "\27", 0 }
  steps[#steps + 1] = { "count", "\rexplore:", 0 }
  local _, out = after_race(steps, { term = "dumb", rows = 40 })
  lu.assertStrContains(out, "count 0\ncount 0\n")
end

function TestCodes.test_no_colours()
  local steps = table.move(DRAWINGS, 1, #DRAWINGS, 1, {})
  for digit = 0, 9 do steps[#steps + 1] = { "count", "\27[" .. digit .. "m", 0 } end
  steps[#steps + 1] = { "count", "\27[0;", 0 }
  local _, out = after_race(steps, { environment = "NO_COLOR=1", rows = 40 })
  lu.assertStrContains(out, ("count 0\n"):rep(11))
end

TestLeaving = {}

function TestLeaving.test_words()
  for _, word in ipairs{ ":q", ":quit", ":exit", ":ex", "quit", "exit", "quit()", "exit();" } do
    local out, err = said(word .. "\n'still ' .. 'there'\n")
    lu.assertNotStrContains(out, "still there")
    lu.assertEquals(err, "")
  end
end

function TestLeaving.test_a_variable_of_that_name_is_shown()
  lu.assertStrContains((said("quit = 5\nquit\n'still ' .. 'there'\n")), "5\nstill there\n")
end

TestNearlyRight = {}

local function hint(input)
  return (select(2, said(input .. "\n")))
end

-- Two names may be equally near: the one of the same kind is meant.
function TestNearlyRight.test_names_of_the_same_kind()
  lu.assertStrContains(hint("mr.zeros(3):ad_(1)"), "did you mean `add_`?")
  lu.assertStrContains(hint("mr.zeros(3):ad(1)"), "did you mean `add`?")
  lu.assertStrContains(hint("mr.nn.Linea(1, 1)"), "did you mean `mr.nn.Linear`?")
  lu.assertStrContains(hint(":exot"), "did you mean :quit?")
  lu.assertStrContains(hint(":hazrds"), "did you mean :hazards?")
end

-- A called variable is a function, an indexed one has fields.
function TestNearlyRight.test_variables_of_the_kind_that_the_use_needs()
  lu.assertStrContains(hint("prinx = 5\nprin(1)"), "did you mean `print`?")
  lu.assertStrContains(hint("function tensos() end tensor = mr.zeros(1)\ntensoo:sum()"), "did you mean `tensor`?")
  lu.assertStrContains(hint("counter = 1\ncountr + 1"), "did you mean `counter`?")
end

os.exit(lu.LuaUnit.run())
