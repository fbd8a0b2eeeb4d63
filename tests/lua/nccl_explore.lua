-- Communicators in functions that mr.explore calls: each run finds them as they were.
-- options: --device virtual:2
-- not checked: schedules are explored
-- virtual only: schedules are explored on the virtual GPU
-- not replayed: schedules are explored
local lu = require "luaunit"
local mr = require "millrace"

local function column(t) return t:cpu():totable() end

local function together(comms, fn)
  mr.nccl.group(function() for k, c in ipairs(comms) do fn(c, k) end end)
end

TestExplored = {}

-- Each run finds the communicators as they were: their last streams, whether they are closed.
function TestExplored.test_communicators_are_put_back()
  local function race(comms)
    local s = { mr.stream{ device = 0 }, mr.stream{ device = 1 } }
    local t = { mr.ones(4, { device = 0 }), mr.ones(4, { device = 1 }) }
    for k = 1, 2 do s[k]:wait_stream(mr.current_stream(k - 1)) end
    together(comms, function(c, k) c:all_reduce(t[k], { stream = s[k] }) end)
    t[1]:add_(1) -- nothing orders it and the collective
    together(comms, function(c, k) c:all_reduce(t[k]) end) -- another stream: waits for the first one
    for k = 1, 2 do mr.synchronize(k - 1) end
    comms[1]:close()
    return t[1]:cpu():totable()[1]
  end
  local inside = mr.explore(function() return race(mr.nccl.comms{ 0, 1 }) end)
  lu.assertEquals(inside.complete, true)
  lu.assertTrue(#inside.outcomes > 1)
  local comms = mr.nccl.comms{ 0, 1 }
  for _ = 1, 2 do
    local outside = mr.explore(function() return race(comms) end)
    lu.assertEquals(#outside.outcomes, #inside.outcomes)
    lu.assertEquals(outside.complete, true)
    local t = { mr.ones(1, { device = 0 }), mr.ones(1, { device = 1 }) }
    together(comms, function(c, k) c:all_reduce(t[k]) end) -- not closed, and no wait is left over
    lu.assertEquals(column(t[2]), { 2.0 })
  end
end

function TestExplored.test_all_ranks_in_one_call()
  local function fn()
    local t = { mr.ones(4, { device = 0 }), mr.ones(4, { device = 1 }) }
    mr.nccl.all_reduce(t)
    mr.nccl.all_reduce(t)
    return t[1]:cpu():totable()[1]
  end
  for _ = 1, 2 do
    local result = mr.explore(fn)
    lu.assertEquals({ #result.outcomes, result.complete }, { 1, true })
    lu.assertEquals(fn(), 4.0)
  end
end

os.exit(lu.LuaUnit.run())
