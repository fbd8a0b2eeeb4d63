-- The programs of docs/autograd.md and docs/tensors.md print what stands beside them.
-- virtual only: about the documentation, the same on every backend
local lu = require "luaunit"
local mr = require "millrace"

TestPages = {}

-- What print(...) shows, without the line about dtype and device that follows the values of a tensor.
local function shown(...)
  local texts = table.pack(...)
  for i = 1, texts.n do
    local value = texts[i]
    texts[i] = type(value) == "userdata" and mr.format(value):match("^(.-)\n") or tostring(value)
  end
  return table.concat(texts, "\t", 1, texts.n)
end

local function run(program, page)
  local expected, printed = {}, {}
  for text in program:gmatch("%-%->%s*([^\n]*)") do expected[#expected + 1] = text end
  lu.assertTrue(#expected > 0)
  local env = setmetatable({ print = function(...) printed[#printed + 1] = shown(...) end }, { __index = _G })
  assert(load(program, "=" .. page, "t", env))()
  mr.synchronize()
  lu.assertEquals(printed, expected)
end

for _, page in ipairs { "autograd", "tensors" } do
  local file, count = assert(io.open("docs/" .. page .. ".md")), 0
  local text = file:read("a")
  file:close()
  for program in text:gmatch("```lua\n(.-)```") do
    count = count + 1
    TestPages[("test_%s_program_%d"):format(page, count)] = function() run(program, page) end
  end
  TestPages[("test_%s_has_programs"):format(page)] = function() lu.assertTrue(count >= 5) end
end

os.exit(lu.LuaUnit.run())
