-- Races that the virtual GPU always has in one order, since it waits for more than CUDA guarantees. No schedule has
-- them the other way round, so the result is not complete and names them.
-- options: --device virtual:2
-- not checked: its programs race
-- virtual only: schedules are explored on the virtual GPU
-- not replayed: schedules are explored
local lu = require "luaunit"
local mr = require "millrace"

local LARGE = 1 << 21 -- elements: more than the host stages of a copy

local function pinned() return mr.zeros(1, { device = "cpu", pinned = true }) end
local function blocking(name) return mr.stream{ nonblocking = false, name = name } end

-- By what orders the two: a function that returns whether it races for certain, or is repaired.
local PROGRAMS = {
  ["R20, a large copy that blocks"] = function(repaired)
    local b, x, p = mr.stream(), mr.zeros(LARGE), mr.ones(LARGE, { device = "cpu" })
    mr.synchronize()
    mr.memcpy(x, p)
    if repaired then mr.synchronize() end
    b:run(function() x:mul_(3) end)
    mr.synchronize()
    return x[1]:item()
  end,
  ["R5, the default stream is waited for"] = function(repaired)
    local b, p, one = blocking "b", pinned(), mr.ones(1)
    mr.synchronize()
    mr.memcpy_async(p, one, { stream = b })
    if repaired then b:synchronize() end
    mr.default_stream():synchronize()
    return p:item()
  end,
  ["R30, an allocation on the default stream"] = function(repaired)
    local a, b, x = blocking "a", blocking "b", mr.ones(1)
    mr.synchronize()
    a:run(function() x:add_(1) end)
    local _ = mr.empty(1)
    if repaired then b:wait_stream(a) end
    b:run(function() x:mul_(3) end)
    mr.synchronize()
    return x:item()
  end,
  ["R23, a copy to pageable memory"] = function(repaired)
    local a, one, p = mr.stream(), mr.ones(1), pinned()
    local pageable = mr.zeros(1, { device = "cpu" })
    mr.synchronize()
    mr.memcpy_async(p, one, { stream = a })
    mr.memcpy_async(pageable, one, { stream = a })
    if repaired then a:synchronize() end
    return p:item()
  end,
}

TestStricter = {}

function TestStricter.test_a_race_that_only_the_virtual_gpu_orders()
  for name, fn in pairs(PROGRAMS) do
    local result = mr.explore(function() return fn(false) end)
    lu.assertEquals({ #result.hazards, result.complete, result.deterministic }, { 1, false, false }, name)
    lu.assertStrContains(result.incomplete, "explore_stricter.lua:", false, name)
    lu.assertStrContains(result.incomplete, "which CUDA does not guarantee", false, name)
  end
end

function TestStricter.test_the_same_with_the_wait()
  for name, fn in pairs(PROGRAMS) do
    local result = mr.explore(function() return fn(true) end)
    lu.assertEquals({ #result.hazards, result.complete, result.deterministic }, { 0, true, true }, name)
  end
end

-- With unspecified=true the copy of pageable memory may return early, and both orders are tried.
function TestStricter.test_what_is_tried_is_no_such_race()
  local result = mr.explore(function() return PROGRAMS["R23, a copy to pageable memory"](false) end,
    { unspecified = true })
  lu.assertEquals({ #result.outcomes, result.complete }, { 2, true })
end

-- A copy that waits by the settings alone: there is no race as long as it does.
function TestStricter.test_what_cuda_does_not_specify_is_a_condition()
  local function fn()
    local s, one, p = mr.stream(), mr.ones(1), mr.zeros(1, { device = "cpu" })
    mr.synchronize()
    mr.memcpy_async(p, one, { stream = s })
    return p:item()
  end
  local result = mr.explore(fn)
  lu.assertEquals({ #result.outcomes, result.claim, #result.not_followed }, { 1, "conditional", 1 })
  lu.assertStrContains(result.not_followed[1], "which CUDA does not specify")
  result = mr.explore(fn, { unspecified = true })
  lu.assertEquals({ #result.outcomes, result.claim, result.not_followed }, { 2, "every-legal-schedule", nil })
end

-- A copy from pageable memory reads it at once on the virtual GPU, in both ways. So the condition stays.
function TestStricter.test_a_late_read_of_pageable_memory_is_a_condition()
  local function fn()
    local s, x, p = mr.stream(), mr.zeros(1), mr.zeros(1, { device = "cpu" })
    mr.synchronize()
    mr.memcpy_async(x, p, { stream = s })
    p:fill_(3)
    s:synchronize()
    return x:item()
  end
  for _, unspecified in ipairs { false, true } do
    local result = mr.explore(fn, { unspecified = unspecified })
    lu.assertEquals({ #result.outcomes, result.claim, #result.not_followed }, { 1, "conditional", 1 })
    lu.assertStrContains(result.not_followed[1], "which CUDA does not specify")
  end
end

os.exit(lu.LuaUnit.run())
