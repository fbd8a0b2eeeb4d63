-- The examples' programs under the checker: the fixed ones are clean, and each racy one reports.
-- options: --device virtual:3
-- not checked: the checker is what is tested
local lu = require "luaunit"
local mr = require "millrace"
local T = require "millrace.testing"

local SIZE = 48

-- See tests/lua/examples_seeds.lua.
local examples, sources = {}, {}
local quiet = setmetatable({ print = function() end }, { __index = _G })
local listing = assert(io.popen("ls scripts/examples/*.lua"))
for path in listing:lines() do
  local source = assert(io.open(path)):read("a")
  sources[path] = source
  if source:find("-- for the tests", 1, true) then
    examples[path:match("([^/]+)%.lua$")] = assert(loadfile(path, "t", quiet))()
  end
end
listing:close()

-- Collects at every line, so that what could be freed too early is.
local function collecting(fn)
  return function(...)
    debug.sethook(function() collectgarbage() end, "l")
    local ok, err = pcall(fn, ...)
    debug.sethook()
    if not ok then error(err, 0) end
  end
end

TestExamples = {}
TestRacy = {}
TestChecked = {}

-- tests/run.lua runs an example under --check=error, unless it shows a race or explores schedules.
function TestChecked.test_examples_are_checked_unless_they_race()
  for path, source in pairs(sources) do
    local name = path:match("([^/]+)%.lua$")
    local needs = examples[name] and examples[name].racy or source:find("mr.explore", 1, true)
    lu.assertEquals(source:find("\n-- not checked: ", 1, true) ~= nil, needs ~= nil, path)
  end
end

-- A test for each, so that a failure names it.
for name, example in pairs(examples) do
  TestExamples["test_" .. name] = function() T.expect_clean(collecting(example.fixed), SIZE) end
  if example.racy then
    TestRacy["test_" .. name] = function()
      local reports = mr.hazard.check(example.racy, SIZE)
      lu.assertTrue(#reports > 0, name .. ": the racy program is reported clean")
      for _, r in ipairs(reports) do
        -- Lines to add to the script; a race inside a kernel has advice.
        lu.assertTrue(#r.fixes > 0 or (r.kind == "race-in-kernel" and r.fix ~= ""), r.message)
      end
    end
  end
end

os.exit(lu.LuaUnit.run())
