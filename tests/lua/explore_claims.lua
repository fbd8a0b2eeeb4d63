-- What the result of mr.explore claims where one run is not all that there is: updates that mix, races inside launches,
-- memory that is short.
-- virtual only: schedules are explored on the virtual GPU
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: schedules are explored
local lu = require "luaunit"
local mr = require "millrace"

local function clauses(r)
  return table.concat(r.not_followed or {}, "\n")
end

TestUpdates = {}

local updates = mr.module[=[
extern "C" __global__ void up_down(int *x) { atomicAdd(x, 1); atomicAdd(x, -1); }
extern "C" __global__ void at_least(int *x) { atomicMax(x, 1); }
extern "C" __global__ void add(int *x) { atomicAdd(x, 3); }
]=]

local function explore_updates(on_a, on_b)
  return mr.explore(function()
    local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
    local x = mr.zeros(1, {dtype = "i32"})
    mr.synchronize()
    updates:get(on_a)[{1, 1, stream = a}](x)
    updates:get(on_b)[{1, 1, stream = b}](x)
    mr.synchronize()
    return x
  end)
end

-- Launches are carried out as wholes. So the value 0, where one update comes between two others, is not met.
function TestUpdates.test_they_may_mix()
  local r = explore_updates("up_down", "at_least")
  lu.assertEquals({ #r.outcomes, r.deterministic, r.claim }, { 1, true, "conditional" })
  lu.assertStrContains(clauses(r),
    "the atomic updates of 1 pair of launches, which nothing orders, may come in any order, also mixed")
end

function TestUpdates.test_they_commute()
  local r = explore_updates("up_down", "add")
  lu.assertEquals({ #r.outcomes, r.deterministic, r.claim }, { 1, true, "every-legal-schedule" })
end

os.exit(lu.LuaUnit.run())
