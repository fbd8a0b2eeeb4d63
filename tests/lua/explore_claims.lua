-- Claims of mr.explore's result where one run does not show everything: updates that mix, races inside launches, memory
-- that is short.
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
    "This holds if the atomic updates of 1 pair of launches do not mix: each launch was carried out as a whole.")
  lu.assertNotStrContains(clauses(r), "depends on the order")
end

-- Both orders of each pair are tried, so no condition says that the order makes no difference.
function TestUpdates.test_outcomes_that_depend_on_their_order()
  local add = mr.kernel[[extern "C" __global__ void add(float *x, float v) { atomicAdd(x, v); }]]
  local r = mr.explore(function()
    local x = mr.zeros(1)
    mr.synchronize()
    for _, value in ipairs { 1e8, -1e8, 1.5 } do add[{1, 1, stream = mr.stream()}](x, value) end
    mr.synchronize()
    return x:item()
  end)
  lu.assertEquals({ #r.outcomes, r.claim }, { 2, "conditional" })
  lu.assertStrContains(clauses(r), "the atomic updates of 3 pairs of launches do not mix")
  lu.assertNotStrContains(clauses(r), "depends on the order")
end

function TestUpdates.test_they_commute()
  local r = explore_updates("up_down", "add")
  lu.assertEquals({ #r.outcomes, r.deterministic, r.claim }, { 1, true, "every-legal-schedule" })
end

TestRaces = {}

-- A launch runs in one order of its threads.
function TestRaces.test_a_race_inside_a_launch()
  local last = mr.kernel[[extern "C" __global__ void last(int *x, int n) { if (blockIdx.x < n) x[0] = blockIdx.x; }]]
  local function explore_last(n)
    return mr.explore(function()
      local x = mr.zeros(1, {dtype = "i32"})
      last[{2, 1}](x, n)
      mr.synchronize()
      return x
    end)
  end
  local r = explore_last(2)
  lu.assertStrContains(tostring(r), "1 schedule, 1 outcome: deterministic but for races inside launches")
  lu.assertEquals({ r.deterministic, r.claim, clauses(r) },
    { false, "none", "not explored: the orders of threads in 1 race inside launches" })
  r = explore_last(1)
  lu.assertEquals({ r.deterministic, r.claim, r.not_followed }, { true, "every-legal-schedule" })
end

TestMemory = {}

function TestMemory.setUp() mr.machine.settings{ memory_bytes = 64 << 20 } end
function TestMemory.tearDown() mr.machine.settings{ memory_bytes = 0 } end

local MB = 1 << 18 -- floats

-- Explores a function that allocates and frees, with two streams. Its memory is gone when the next call begins.
local function explore_memory(fn)
  collectgarbage()
  return mr.explore(function()
    local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
    local fine = pcall(fn, a, b)
    mr.synchronize()
    return fine
  end)
end

-- The free on another stream gives the memory back in time, or not.
function TestMemory.test_whether_an_allocation_fails_may_depend_on_the_order()
  mr.machine.settings{ reuse_internal = false }
  local r = explore_memory(function(a, b)
    mr.zeros(40 * MB, {stream = a}):free()
    mr.empty(40 * MB, {stream = b}):free()
  end)
  mr.machine.settings{ reuse_internal = true }
  lu.assertEquals({ r.complete, r.deterministic }, { false, false })
  lu.assertStrMatches(r.incomplete, "memory is short, so the order may decide whether the allocation at "
    .. ".*explore_claims.lua:%d+ fails; only what it did was followed")
end

-- The second tensor takes the memory of the first one, which grows, if that free is complete.
function TestMemory.test_one_stream_whether_an_allocation_fails_may_depend_on_when_a_free_is_complete()
  local r = explore_memory(function(a)
    mr.zeros(16 * MB, {stream = a}):free()
    local _ <close> = mr.zeros(24 * MB, {stream = a})
    mr.empty(32 * MB, {stream = a}):free()
  end)
  lu.assertEquals({ r.complete, r.deterministic }, { false, false })
end

function TestMemory.test_where_the_order_does_not_matter()
  local r = explore_memory(function(a, b) -- there is room for all
    mr.zeros(20 * MB, {stream = a}):free()
    mr.empty(20 * MB, {stream = b}):free()
  end)
  lu.assertEquals({ r.complete, r.incomplete }, { true })
  r = explore_memory(function(a) -- one stream has its own memory back
    for _ = 1, 4 do mr.zeros(40 * MB, {stream = a}):free() end
  end)
  lu.assertEquals({ r.complete, r.incomplete }, { true })
  r = explore_memory(function(a, b) -- nothing is freed before
    local _ <close> = mr.zeros(40 * MB, {stream = a})
    mr.empty(40 * MB, {stream = b})
  end)
  lu.assertEquals({ r.complete, r.incomplete, r.outcomes[1].value }, { true, nil, false })
  r = explore_memory(function(a, b) -- more than there is
    mr.zeros(4, {stream = a}):free()
    mr.empty(65 * MB, {stream = b})
  end)
  lu.assertEquals({ r.complete, r.incomplete, r.outcomes[1].value }, { true, nil, false })
end

os.exit(lu.LuaUnit.run())
