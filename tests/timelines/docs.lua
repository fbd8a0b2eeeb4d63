-- docs/timelines.md: its program says what the page shows.
-- not replayed: it starts other programs
-- not recorded: it starts other programs
local lu = require "luaunit"
local command = require "host.support.command"

local page = command.read "docs/timelines.md"
local program = page:match("```lua\n(.-)```")

local function words(text) return (text:gsub("%s+", " "):gsub("^ ", ""):gsub(" $", "")) end

-- What the program prints with these lines behind it, in a file of the page's name.
local function said(more)
  local folder = os.tmpname()
  os.remove(folder)
  assert(os.execute("mkdir " .. folder))
  local path = folder .. "/batches.lua"
  command.write(path, program:gsub("tr:print%(%)\n", ""):gsub("tr:save[^\n]*\n", "") .. more)
  local result = command.run{ "--device", "virtual", path }
  os.execute("rm -r " .. folder)
  lu.assertEquals(result.status, 0, result.err)
  return result.out
end

TestPage = {}

function TestPage.test_why()
  local typed, answer = page:match("\n> (ms, gaps = [^\n]*\n> [^\n]*)\n(.-)```")
  lu.assertEquals(words(said(typed:gsub("\n> ", "\n"))), words(answer))
end

os.exit(lu.LuaUnit.run())
