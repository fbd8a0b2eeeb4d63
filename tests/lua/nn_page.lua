-- The programs of docs/nn.md, one after the other, print what stands beside them.
-- virtual only: about the documentation, the same on every backend
local lu = require "luaunit"
local mr = require "millrace"

local file = assert(io.open("docs/nn.md"))
local PAGE = file:read("a")
file:close()

TestPage = {}

local function trimmed(line) return (line:gsub("^%s+", ""):gsub("%s+$", "")) end

function TestPage.test_programs()
  local programs, expected, printed = {}, {}, {}
  for program in PAGE:gmatch("```lua\n(.-)```") do
    programs[#programs + 1] = program
    for text in program:gmatch("%-%->([^\n]*)") do expected[#expected + 1] = trimmed(text) end
  end
  local function show(...)
    local texts = table.pack(...)
    for i = 1, texts.n do texts[i] = tostring(texts[i]) end
    for line in (table.concat(texts, "\t") .. "\n"):gmatch("(.-)\n") do printed[#printed + 1] = trimmed(line) end
  end
  local env = setmetatable({ print = show }, { __index = _G })
  assert(load(table.concat(programs), "=nn.md", "t", env))()
  mr.synchronize()
  lu.assertTrue(#programs >= 5)
  lu.assertEquals(printed, expected)
end

os.exit(lu.LuaUnit.run())
