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

-- The names of docs/from_pytorch.md: those of PyTorch and CUDA are here, or are in the table that errors and help have;
-- those of the last column are here.
TestNames = {}

local function rows_of(page)
  local file, rows = assert(io.open("docs/" .. page .. ".md")), {}
  for line in file:lines() do
    local first, second, here = line:match("^|([^|]*)|([^|]*)|([^|]*)|$")
    if here and not line:find "^|%-" and not line:find "^| PyTorch" then
      rows[#rows + 1] = { there = first .. " " .. second, here = here }
    end
  end
  file:close()
  return rows
end

local function known_names()
  local here, there = {}, {}
  local entries, _, _, foreign = mr.docs()
  for _, e in ipairs(entries) do here[e.name], there[e.name] = true, true end
  for _, row in ipairs(foreign) do there[row.name] = true end
  for _, name in ipairs { "forward", "init" } do here[name] = true end -- of a class of modules
  return here, there
end

function TestNames.test_of_other_libraries_are_advised()
  local _, there = known_names()
  local rows, count = rows_of "from_pytorch", 0
  for _, row in ipairs(rows) do
    for code in row.there:gmatch "`([^`]+)`" do
      local name = code:match "[%w_]+%.([%w_%.]+)" or code:match "^[%w_]+"
      name = name:match "[%w_]+$"
      if not code:find "^def " and not code:find "^del " then
        lu.assertTrue(there[name], code .. " is nowhere: " .. name)
        count = count + 1
      end
    end
  end
  lu.assertTrue(#rows >= 40 and count > #rows)
end

function TestNames.test_of_ours_are_here()
  local here = known_names()
  for _, row in ipairs(rows_of "from_pytorch") do
    for code in row.here:gmatch "`([^`]+)`" do
      for chain in code:gmatch "%f[%w_]mr%.[%w_%.]+" do
        local value = mr
        for name in chain:sub(4):gmatch "[^.]+" do
          value = type(value) == "table" and rawget(value, name) or here[name]
          lu.assertTrue(value ~= nil and value ~= false, chain)
        end
      end
      for name in code:gsub("mr%.[%w_%.]+", ""):gmatch "%f[%a]%a+[.:]([%a_]+)" do lu.assertTrue(here[name], code) end
    end
  end
end

os.exit(lu.LuaUnit.run())
