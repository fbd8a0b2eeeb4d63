-- timeout: 300
-- Each example, typed entry by entry, prints what it prints as a script. The same holds for the program of the README.
local lu = require "luaunit"
local command = require "host.support.command"

-- It reads its own file for the lines that it shows.
local READS_ITSELF = { race_tour = true }

local function lines_of(text)
  local lines = {}
  for line in text:gmatch("[^\n]+") do lines[#lines + 1] = line end
  return lines
end

-- Places are those of the entries, and their width moves what follows. An entry that has run cannot be changed: there a
-- fix is for the next time.
local function without_places(line)
  line = line:gsub("[%w_/]+%.lua:%d+", "PLACE"):gsub("mr:%d+:%d+", "PLACE")
  line = line:gsub("fix: next time, (%a+) PLACE enter", "fix: %1 line N add")
  return (line:gsub("line %d+", "line N"):gsub("%s+", " "):gsub(" $", ""))
end

-- The prompt also shows what expressions return: the lines of the script's own output stand among these, in order.
local function assert_in_order(expected, shown, name)
  local at = 1
  for _, line in ipairs(lines_of(shown)) do
    local wanted = without_places(expected[at] or "")
    if at <= #expected and without_places(line):sub(-#wanted) == wanted then at = at + 1 end
  end
  if at <= #expected then lu.fail(("%s: line %d is missing: %s\n%s"):format(name, at, expected[at], shown)) end
end

local function typed(text, options)
  local arguments = { "-i", input = text .. "\n" }
  for word in (options or ""):gmatch("%S+") do table.insert(arguments, 1 + #arguments, word) end
  local result = command.run(arguments)
  lu.assertEquals(result.status, 0)
  lu.assertNil(result.err:match("\n?(mr:%d+:%d+: [^\n]*)"), "an entry failed")
  return result.out
end

TestExamples = {}

-- `make check` has a third of them.
local listing, count = assert(io.popen("ls scripts/examples/*.lua")), 0
for path in listing:lines() do
  local name = path:match("([^/]+)%.lua$")
  count = count + 1
  if not READS_ITSELF[name] and not (os.getenv("MILLRACE_SHORT") == "all" and count % 3 ~= 2) then
    TestExamples["test_" .. name] = function()
      local text = command.read(path)
      local shown = typed(text, text:match("%-%- options: ([^\n]*)"))
      assert_in_order(lines_of(command.read("tests/examples/" .. name .. ".out")), shown, name)
    end
  end
end
listing:close()

function TestExamples.test_the_readme()
  local readme = command.read("README.md")
  assert_in_order({ "1024.0" }, typed(readme:match("```lua\n(.-)```")), "README.md")
end

-- The prompt's lines of the README, with the answers that stand there.
function TestExamples.test_the_prompt_of_the_readme()
  local block = command.read("README.md"):match("```\n(mr:1> .-)```")
  local entered, answers = {}, {}
  for line in block:gmatch("[^\n]+") do
    local text = line:match("^mr:%d+[^>]*> (.*)$") or line:match("^%.%.> ?(.*)$")
    table.insert(text and entered or answers, text or line)
  end
  lu.assertTrue(#entered > 3 and #answers > 1)
  assert_in_order(answers, typed(table.concat(entered, "\n")), "README.md")
end

os.exit(lu.LuaUnit.run())
