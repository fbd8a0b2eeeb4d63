-- timeout: 240
-- The look of a line while it is typed: colours, hints, brackets, and texts that are wider or taller than the screen.
local lu = require "luaunit"
local command = require "host.support.command"
local terminal = require "host.support.terminal"

if command.run{ "doctor" }.out:find("built without readline", 1, true) then
  print("skipped: a build without readline")
  os.exit(77)
end

local CTRL_U, ESCAPE = "\21", "\27"
local UP, LEFT = ESCAPE .. "[A", ESCAPE .. "[D"

-- The screen at the end of the steps, all that was printed by steps, and where the cursor was.
local function screen_after(steps)
  table.insert(steps, 1, { "wait", "mr:1>" })
  steps[#steps + 1] = { "shot" }
  local result = terminal.run(steps)
  lu.assertNil(result.failed)
  local row, column = result.out:match("cursor (%d+) (%d+)\n$")
  return result.text, result.out, tonumber(row), tonumber(column)
end

-- How often the program wrote a code until the screen showed the text.
local function codes_written(code, steps)
  steps[#steps + 1] = { "count", code, 0 }
  local _, out = screen_after(steps)
  return tonumber(out:match("count (%d+)"))
end

TestColours = {}

function TestColours.test_words_of_lua_and_of_millrace()
  local typed = "local x = 'a' .. 12 .. mr.version --c"
  for code, text in pairs{ ["\27[35m"] = "local", ["\27[32m"] = "'a'", ["\27[36m"] = "12", ["\27[1m"] = "mr.version",
    ["\27[2m"] = "--c" } do
    lu.assertTrue(codes_written(code .. text, { { "send", typed }, { "wait", "--c" } }) > 0)
  end
end

function TestColours.test_none_where_they_are_not_wanted()
  for _, options in ipairs{ { environment = "NO_COLOR=1" }, { term = "dumb" } } do
    local steps = { { "send", "local x = mr.zeros(3" }, { "wait", "zeros(3" }, term = options.term,
      environment = options.environment }
    lu.assertEquals(codes_written("\27[35m", steps), 0)
    steps = { { "send", "mr.zeros(" }, { "wait", "zeros(" }, term = options.term, environment = options.environment }
    lu.assertNotStrContains(screen_after(steps), "sizes")
  end
  lu.assertEquals(codes_written("\27[", { { "send", "local x = mr.zeros(3" }, { "wait",
    "zeros(3" }, term = "dumb" }), 0)
end

function TestColours.test_the_pair_of_a_bracket()
  lu.assertTrue(codes_written("\27[1;4m(", { { "send", "f({1, ')'})" }, { "wait", "')'})" } }) > 0)
  lu.assertEquals(codes_written("\27[1;4m", { { "send", "f({1, ')'" }, { "wait", "')'" } }), 0)
  -- the cursor before the first bracket
  lu.assertTrue(codes_written("\27[1;4m]", { { "send", "t[1]" .. LEFT:rep(3) }, { "wait", "t[1]" } }) > 0)
end

TestHints = {}

function TestHints.test_a_call_shows_its_arguments_until_it_is_entered()
  local text = screen_after{ columns = 100, { "send", "mr.zeros(" }, { "wait", "zeros(sizes: integer" } }
  lu.assertStrContains(text, "mr.zeros(sizes: integer... [, {dtype: string")
  text = screen_after{ columns = 100, { "send", "mr.zeros(3, " }, { "wait", "mr.zeros(sizes" }, { "send", "4)" },
    { "gone", "sizes" }, { "send", ".dtype\r" }, { "wait", "mr:2" } }
  lu.assertStrContains(text, "mr:1> mr.zeros(3, 4).dtype\nf32\nmr:2")
  lu.assertNotStrContains(text, "sizes")
end

-- It never makes another row, and goes where the cursor is not at the end.
function TestHints.test_they_are_cut()
  for _, size in ipairs{ { 24, 80 }, { 12, 40 }, { 50, 200 } } do
    local text, _, row = screen_after{ rows = size[1], columns = size[2], { "send", "mr.zeros(" },
      { "wait", "zeros(sizes" } }
    local last = text:match("[^\n]*$")
    lu.assertStrContains(last, "mr:1> mr.zeros(sizes")
    lu.assertTrue(#last < size[2])
    lu.assertEquals(row, select(2, text:gsub("\n", "")) + 1)
  end
  lu.assertNotStrContains(screen_after{ columns = 100, { "send", "mr.zeros(" }, { "wait", "sizes" }, { "send", LEFT },
    { "gone", "sizes" } }, "sizes")
end

function TestHints.test_only_functions_of_millrace_and_nothing_is_called()
  local text = screen_after{ { "send", "f = setmetatable({}, {__index = function() error('called') end})\r" },
    { "wait", "mr:2>" }, { "send", "f.x(" }, { "wait", "f.x(" }, { "send", CTRL_U .. "'mr.zeros('" },
      { "wait", "'mr.zeros('" } }
  lu.assertNotStrContains(text, "called\n")
  lu.assertNotStrContains(text, "sizes")
end

TestRows = {}

local function numbers(count)
  local lines = { "t = {" }
  for i = 1, count do lines[#lines + 1] = ("  %d, -- line %d"):format(i, i) end
  lines[#lines + 1] = "}"
  return table.concat(lines, "\n")
end

-- It is shown in part, without a row that is there twice; then it stays as a whole.
function TestRows.test_a_paste_that_is_taller_than_the_screen()
  for _, size in ipairs{ { 24, 80 }, { 12, 40 } } do
    command.with_file(numbers(60), function(path)
      local text = screen_after{ rows = size[1], columns = size[2], { "paste", path }, { "wait", "mr:2>" },
        { "send", UP }, { "wait", "}" }, { "shot" }, { "send", UP:rep(40) }, { "wait", "-- line 21" } }
      local before
      for number in text:gmatch("%-%- line (%d+)") do
        if before then lu.assertEquals(tonumber(number), before + 1) end
        before = tonumber(number)
      end
      lu.assertEquals(select(2, text:gsub("\n", "")) + 1, size[1])
      text = screen_after{ rows = size[1], columns = size[2], { "paste", path }, { "wait", "mr:2>" },
        { "send", "#t\r" },
        { "wait", "mr:3>" } }
      lu.assertStrContains(text, "  59, -- line 59\n  60, -- line 60\n}\nmr:2> #t\n60\nmr:3>")
    end)
  end
end

function TestRows.test_up_through_a_tall_entry_leaves_nothing_behind()
  command.with_file(numbers(60), function(path)
    local text = screen_after{ { "send", "'fir' .. 'st'\r" }, { "wait", "mr:2>" }, { "paste", path }, { "wait",
      "mr:3>" },
      { "send", "'sh' .. 'ort'\r" }, { "wait", "mr:4>" }, { "send", UP .. UP }, { "wait", "}" },
      { "send", UP:rep(62) }, { "wait", "mr:4> 'fir'" }, { "send", "\r" }, { "wait", "mr:5>" } }
    -- If the tall entry was drawn meanwhile, it took the whole screen, and what was above has left it.
    local last = "mr:4> 'fir' .. 'st'\nfirst\nmr:5>"
    if text ~= last then lu.assertEquals(text:sub(-#last - 6), "short\n" .. last) end
  end)
end

function TestRows.test_long_lines_and_wide_characters()
  local text, _, row, column = screen_after{ columns = 40, environment = "LC_ALL=C.UTF-8",
    { "send", "x = '" .. ("日本語"):rep(10) .. "'" }, { "wait", "語'" } }
  lu.assertStrContains(text, "mr:1> x = '日本語日本語日本語日本語日本\n語日本語日本語日本語日本語日本語'")
  lu.assertEquals({ row, column }, { select(2, text:gsub("\n", "")) + 1, 34 })
  -- exactly as wide as the screen
  text, _, row, column = screen_after{ columns = 40, { "send", "x = " .. ("1"):rep(30) }, { "wait", "111" } }
  lu.assertEquals({ row, column }, { select(2, text:gsub("\n", "")) + 2, 1 })
  text = screen_after{ columns = 40, { "send", "x = " .. ("1"):rep(30) .. "\r" }, { "wait", "mr:2>" } }
  lu.assertStrContains(text, "mr:1> x = " .. ("1"):rep(30) .. "\nmr:2>")
end

function TestRows.test_a_change_in_the_middle()
  local text = screen_after{ columns = 40, { "send", "x = '" .. ("a"):rep(60) .. "' -- end" }, { "wait", "end" },
    { "send", LEFT:rep(60) .. "bcd" .. "\r" }, { "wait", "mr:2>" }, { "send", "#x\r" }, { "wait", "mr:3>" } }
  lu.assertStrContains(text, "mr:2> #x\n63\nmr:3>")
  lu.assertStrContains((text:gsub("\n", "")), "x = 'aaaaaaaabcdaaaaa")
end

-- Where the terminal lays long lines out anew by itself, as tmux does, the cursor has gone down with them.
function TestRows.test_the_size_changes_while_a_text_of_several_rows_is_typed()
  local typed = "x = {" .. ("1, "):rep(30) .. "}"
  for _, size in ipairs{ { 24, 40 }, { 10, 120 } } do
    local text = screen_after{ { "send", "'be' .. 'fore'\r" }, { "wait", "mr:2>" }, { "send", typed }, { "wait", "}" },
      { "size", size[1], size[2] }, { "send", " " }, { "wait", "}" }, { "send", "\r" }, { "wait", "mr:3>" },
      { "send", "#x\r" }, { "wait", "mr:4>" } }
    lu.assertStrContains(text, "before\nmr:2> x = {1, 1")
    lu.assertStrContains(text, "mr:3> #x\n30\nmr:4>")
    lu.assertEquals(select(2, text:gsub("x = {1", "")), 1)
  end
end

function TestRows.test_control_l_clears_the_screen()
  local text = screen_after{ { "send", "'a' .. 'b'\r" }, { "wait", "mr:2>" }, { "send", "x = 1" }, { "wait", "x = 1" },
    { "send", "\12" }, { "gone", "mr:1>" } }
  lu.assertEquals(text, "mr:2> x = 1")
end

function TestRows.test_searching_backwards()
  local text = screen_after{ { "send", "first = 1\r" }, { "wait", "mr:2>" }, { "send", "second = 2\r" },
    { "wait", "mr:3>" }, { "send", "\18fir" }, { "wait", "`fir': first = 1" }, { "send", "\r" }, { "wait", "mr:4>" } }
  lu.assertStrContains(text, "mr:3> first = 1\nmr:4>")
end

TestTimes = {}

-- Times of the virtual GPU's clocks, which do not depend on this computer.
function TestTimes.test_a_long_entry_says_how_long()
  local text = screen_after{ { "send", "mr.spin{ms = 20} mr.synchronize()\r" }, { "wait", "mr:2>" },
    { "send", "x = 1\r" }, { "wait", "mr:3>" }, { "send", ":set times off\r" }, { "send",
      "mr.spin{ms = 20} mr.synchronize()\r" },
    { "wait", "mr:4>" } }
  lu.assertStrContains(text,
    "mr:1> mr.spin{ms = 20} mr.synchronize()\n-- host 20 ms, device 20 ms (virtual)\nmr:2> x = 1\nmr:3> ")
  lu.assertEquals(select(2, text:gsub("%-%- host", "")), 1)
end

-- A computation of Lua takes none of the virtual time.
function TestTimes.test_seconds_and_those_of_this_computer()
  local busy = "local t = os.clock() while os.clock() - t < 1.2 do end"
  local text = screen_after{ { "send", busy .. "\r" }, { "wait", "mr:2>" },
    { "send", "mr.spin{ms = 1570} mr.synchronize()\r" }, { "wait", "mr:3>" } }
  lu.assertStrMatches(text, ".*\n%-%- [%d.]+ s of this computer\nmr:2> .*")
  lu.assertStrContains(text, "\n-- host 1.57 s, device 1.57 s (virtual)\nmr:3>")
end

TestAbove = {}

local PENDING = "p, c = mr.stream{name = 'prod'}, mr.stream{name = 'cons'} x = mr.zeros(9) mr.synchronize() " ..
  "p:run(function() x:fill_(1) x:add_(1) end) c:wait_stream(p)\r"

-- It stands above the prompt while something is pending, in one row, and nothing of it stays.
function TestAbove.test_what_is_pending()
  for _, columns in ipairs{ 40, 80, 200 } do
    local text = screen_after{ columns = columns, arguments = "--chooser manual", { "send", PENDING },
      { "wait", "mr:2 [" } }
    local row = text:match("\n([^\n]*)\nmr:2 %[")
    lu.assertStrContains(row, "prod: fill_ can run")
    lu.assertTrue(#row <= columns)
    if columns == 200 then lu.assertStrContains(row, "; cons: wait_stream waits for ") end
  end
  local text = screen_after{ columns = 120, { "send", PENDING }, { "wait", "mr:2 [" }, { "send", "mr.synchronize()\r" },
    { "wait", "mr:3>" } }
  lu.assertNotStrContains(text, "prod: ")
  text = screen_after{ columns = 120, { "send", ":set live off\r" }, { "send", PENDING }, { "wait", "mr:2 [" } }
  lu.assertNotStrContains(text, "prod: ")
end

function TestAbove.test_none_where_the_cursor_cannot_go_up()
  lu.assertNotStrContains(screen_after{ term = "dumb", { "send", PENDING }, { "wait", "mr:2 [" } }, "prod: ")
end

os.exit(lu.LuaUnit.run())
