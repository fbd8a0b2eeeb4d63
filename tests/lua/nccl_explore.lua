-- Communicators in functions that mr.explore calls: each run finds them as they were.
-- options: --device virtual:2
-- not checked: schedules are explored
-- virtual only: schedules are explored on the virtual GPU
-- not replayed: schedules are explored
local lu = require "luaunit"
local mr = require "millrace"
local collectives = require "lua.support.collectives"

local column, together = collectives.column, collectives.together

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

-- The root of a broadcast may go on before another rank has begun (R61). The explorer's schedules do not have that, so
-- where the checker finds a hazard there, the result says on what it rests.
function TestExplored.test_a_broadcast_orders_its_root_behind_nobody()
  local function fn(collective, repaired)
    local comms = mr.nccl.comms{ 0, 1 }
    local h = mr.zeros(4, { device = "cpu", pinned = true })
    local t = { mr.ones(4, { device = 0 }), mr.ones(4, { device = 1 }) }
    local s = { mr.stream{ device = 0 }, mr.stream{ device = 1 } }
    for k = 1, 2 do mr.synchronize(k - 1) end
    s[2]:run(function() h:copy_(t[2], { non_blocking = true }) end)
    together(comms, function(c, k) c[collective](c, t[k], { stream = s[k] }) end)
    if repaired then s[1]:wait_stream(s[2]) end
    local other = mr.full(4, 3.0, { device = 0 })
    s[1]:wait_stream(mr.default_stream(0))
    s[1]:run(function() h:copy_(other, { non_blocking = true }) end)
    for k = 1, 2 do mr.synchronize(k - 1) end
    comms[1]:close()
    return h[1]:item()
  end
  for _, program in ipairs{ { "broadcast", false, 1 }, { "broadcast", true, 0 }, { "all_reduce", false, 0 } } do
    local name, repaired, hazards = table.unpack(program)
    local result = mr.explore(function() return fn(name, repaired) end)
    lu.assertEquals({ #result.outcomes, #result.hazards, result.complete }, { 1, hazards, hazards == 0 }, name)
    lu.assertEquals((result.incomplete or ""):find("which CUDA does not guarantee", 1, true) ~= nil, hazards > 0, name)
  end
end

os.exit(lu.LuaUnit.run())
