-- The programs of docs/autograd.md print what stands beside them.
-- virtual only: about the documentation, the same on every backend
local lu = require "luaunit"
local mr = require "millrace"

local file = assert(io.open("docs/autograd.md"))
local PAGE = file:read("a")
file:close()

TestPage = {}

-- What print(...) shows, without the line about dtype and device that follows the values of a tensor.
local function shown(...)
  local texts = table.pack(...)
  for i = 1, texts.n do
    local value = texts[i]
    texts[i] = type(value) == "userdata" and mr.format(value):match("^(.-)\n") or tostring(value)
  end
  return table.concat(texts, "\t", 1, texts.n)
end

local count = 0
for program in PAGE:gmatch("```lua\n(.-)```") do
  count = count + 1
  TestPage["test_program_" .. count] = function()
    local expected, printed = {}, {}
    for text in program:gmatch("%-%->%s*([^\n]*)") do expected[#expected + 1] = text end
    lu.assertTrue(#expected > 0)
    local env = setmetatable({ print = function(...) printed[#printed + 1] = shown(...) end }, { __index = _G })
    assert(load(program, "=autograd.md", "t", env))()
    mr.synchronize()
    lu.assertEquals(printed, expected)
  end
end

function TestPage.test_there_are_programs() lu.assertTrue(count >= 5) end

os.exit(lu.LuaUnit.run())
