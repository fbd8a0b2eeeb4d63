-- timeout: 300
-- own pace: what a person sees does not depend on a collector at each call
-- Four people's sessions of an hour (tests/host/sessions), typed again: what each of them sees behind each entry.
--
-- A session is a list of { what is typed, what the screen then shows ... [, prints = true: its own lines, which may be
-- too wide] }.
local lu = require "luaunit"
local command = require "host.support.command"
local terminal = require "host.support.terminal"

if command.run{ "doctor" }.out:find("built without readline", 1, true) then
  print("skipped: a build without readline")
  os.exit(77)
end

local COLUMNS, ROWS = 80, 120

-- The entry, and behind it a command that does not exist: when it is complained of, all of the entry is there.
local function steps_of(session)
  local steps = { rows = ROWS, columns = COLUMNS, environment = "PAGER=cat LC_ALL=C.UTF-8", { "wait", "mr:1>" } }
  for i, one in ipairs(session) do
    local is_last = i == #session
    if is_last then
      steps[#steps + 1] = { "send", one[1] .. "\r" }
      break
    end
    steps[#steps + 1] = { "enter", one[1] .. "\r" }
    steps[#steps + 1] = { "send", (":mark%d\r"):format(i) }
    steps[#steps + 1] = { "wait", ("there is no command :mark%d"):format(i) }
    steps[#steps + 1] = { "shot" }
  end
  steps[#steps + 1] = { "exit" }
  return steps
end

-- What the terminal showed behind each entry, up to the mark.
local function answers_of(result)
  local answers = {}
  for screen in result.out:gmatch("(|.-)\ncursor %d+ %d+\n") do
    local text = screen:gsub("\n|", "\n"):gsub("^|", ""):gsub("\n+$", "")
    answers[#answers + 1] = text:match("^(.*)\n[^\n]*:mark%d+\nthere is no command :mark") or text
  end
  return answers
end

-- Two rows between which a word is cut, behind the rows of the entry itself; nil: there are none.
local function torn(text, typed)
  local rows = {}
  for row in (text .. "\n"):gmatch("(.-)\n") do rows[#rows + 1] = row end
  for i = 2 + #typed // COLUMNS, #rows - 1 do
    local above, below = rows[i], rows[i + 1]
    if utf8.len(above) == COLUMNS and above:find("%w$") and below:find("^%w") then return above .. "\n" .. below end
  end
  return nil
end

local function flat(text) return (text:gsub("%s+", " ")) end

local function check(name, one, answer)
  local where = ("%s: %s\n%s"):format(name, one[1], answer)
  if not one.prints then lu.assertNil(torn(answer, one[1]), where) end
  for _, inner in ipairs{ "millrace.prompt", "lua/millrace", "[C]: in upvalue", "internal" } do
    lu.assertNil(answer:find(inner, 1, true), where)
  end
  for i = 2, #one do
    lu.assertNotNil(flat(answer):find(flat(one[i]), 1, true), ("%s\nlacks `%s`"):format(where, one[i]))
  end
end

TestPeople = {}

for _, name in ipairs{ "pytorch", "cuda", "student", "teacher" } do
  TestPeople["test_a_" .. name .. "_session"] = function()
    local session = dofile(("tests/host/sessions/%s.lua"):format(name))
    local result = terminal.run(steps_of(session))
    lu.assertStrMatches(result.out, ".*exit 0\n")
    local answers = answers_of(result)
    lu.assertEquals(#answers, #session - 1)
    for i, answer in ipairs(answers) do check(name, session[i], answer) end
  end
end

os.exit(lu.LuaUnit.run())
