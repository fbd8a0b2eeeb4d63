-- The checks of millrace.testing pass for what was followed, and name what was not.
-- virtual only: schedules are explored on the virtual GPU
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: its programs race on purpose
local lu = require "luaunit"
local mr = require "millrace"
local T = require "millrace.testing"

TestClaims = { tearDown = function() mr.hazard.ignore() mr.synchronize() end }

local function assert_fails(text, check, ...)
  local ok, problem = pcall(check, ...)
  lu.assertFalse(ok)
  lu.assertStrContains(tostring(problem), text)
end

local FOLLOW = [[extern "C" __global__ void follow(float **list) { list[0][threadIdx.x] = 1; }]]
local STORE = [[extern "C" __global__ void store(int *a, int n) { a[n] = 1; }]]

local function with_a_pointer()
  local y = mr.zeros(32)
  local p = mr.tensor({ y.data_ptr }, { dtype = "i64" })
  mr.kernel(FOLLOW)[{ 1, 32 }](p)
  mr.synchronize()
  return y:sum():item()
end

local function race(first, second)
  local a, b, x = mr.stream(), mr.stream(), mr.zeros(1, { name = "x" })
  mr.synchronize()
  a:run(function() x[first](x, 1) end)
  b:run(function() x[second](x, 3) end)
  mr.synchronize()
  return x:item()
end

function TestClaims.test_a_pointer_as_data_fails_each_check()
  for _, check in ipairs { T.expect_deterministic, T.expect_clean, T.expect_minimal } do
    assert_fails("pointer that it was given as data", check, with_a_pointer)
  end
  assert_fails("pointer that it was given as data", T.expect_outcomes, with_a_pointer, { 32.0 })
end

function TestClaims.test_an_ignored_race_is_not_clean()
  mr.hazard.ignore { tensor = "x" }
  assert_fails("mr.hazard.ignore hides", T.expect_clean, race, "fill_", "fill_")
end

function TestClaims.test_a_caught_fault_is_not_clean()
  local ok, problem = pcall(T.expect_clean, function()
    mr.kernel(STORE)[{ 1, 1 }](mr.zeros(4, { dtype = "i32" }), 1 << 28)
    assert(not pcall(mr.synchronize))
    mr.reset()
  end)
  lu.assertFalse(ok)
  lu.assertStrContains(tostring(problem), "the run failed")
end

function TestClaims.test_nothing_is_not_clean()
  assert_fails("no operation was submitted", T.expect_clean, function() end)
end

-- The value that the host reads changes nothing here, for which the script answers.
function TestClaims.test_a_condition_passes()
  T.expect_clean(function() return mr.ones(4):sum():item() end)
end

-- New memory reads as zero here, and as anything elsewhere: one outcome is not enough.
function TestClaims.test_memory_that_nothing_has_written()
  local function early()
    local a, b, t = mr.stream(), mr.stream(), mr.empty(1)
    mr.synchronize()
    a:run(function() t:zero_() end)
    local y = b:run(function() return t + 1 end)
    mr.synchronize()
    return y:item()
  end
  assert_fails("memory that nothing has written", T.expect_deterministic, early)
  assert_fails("memory that nothing has written", T.expect_deterministic, function() return mr.empty(1) end)
  local result = mr.explore(early)
  lu.assertStrContains(tostring(result.hazards[1]:witness()), "memory that nothing has written reads as zero here")
end

function TestClaims.test_outcomes_are_exactly_these()
  T.expect_outcomes(function() return race("fill_", "fill_") end, { 3.0, 1.0 })
  assert_fails("there are", T.expect_outcomes, function() return race("fill_", "fill_") end, { 3.0 })
  assert_fails("no schedule gives", T.expect_outcomes, function() return race("fill_", "fill_") end, { 3.0, 1.0, 2.0 })
  assert_fails("is listed twice", T.expect_outcomes, function() return race("fill_", "fill_") end, { 3.0, 3.0 })
end

function TestClaims.test_all_values_are_compared()
  local function two() return "loss", race("fill_", "fill_") end
  T.expect_outcomes(two, { { "loss", 1.0 }, { "loss", 3.0 } })
  assert_fails("no schedule gives", T.expect_outcomes, two, { "loss" })
  assert_fails("no schedule gives", T.expect_outcomes, two, { { "loss", 1.0 }, { "loss", 2.0 } })
  lu.assertEquals({ T.expect_deterministic(function() return mr.ones(1):item(), nil, "x" end) }, { 1.0, nil, "x" })
end

os.exit(lu.LuaUnit.run())
