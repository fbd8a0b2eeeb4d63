-- mr.hazard: a loop with a million hazards takes no more memory than one with two. `make check` has 200,000, and
-- `make check-long` the million.
-- not replayed: recording two million commands and their hazards takes more than a gigabyte
local lu = require "luaunit"
local mr = require "millrace"

TestMany = {}

function TestMany.test_many_hazards_are_two_reports()
  local before = collectgarbage("count")
  local x, a, b = mr.zeros(1), mr.stream(), mr.stream()
  mr.synchronize()
  local n = os.getenv("MILLRACE_LONG") and 1000000 or 200000
  local reports = mr.hazard.check(function()
    for i = 1, n do
      mr.op{name = "first", writes = {x}, stream = a}
      mr.op{name = "second", writes = {x}, stream = b}
      if i % 1000 == 0 then mr.synchronize() end
    end
  end)
  lu.assertEquals(#reports, 2)
  lu.assertEquals(reports[1].count, n)
  lu.assertTrue(collectgarbage("count") - before < 10000)
end

os.exit(lu.LuaUnit.run())
