-- DistributedDataParallel under every schedule: a step of two branches on streams of their own, whose gradients share
-- buckets, has one outcome. Without the last wait it has several.
-- options: --device virtual:2
-- virtual only: two devices
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: schedules are explored
local lu = require "luaunit"
local mr = require "millrace"
local nn = mr.nn

local TwoBranches = nn.Module.class "TwoBranches"
function TwoBranches:init() self.left, self.right = nn.Linear(2, 1), nn.Linear(2, 1) end
function TwoBranches:forward(x)
  local main, side = mr.current_stream(), mr.stream { name = "side" }
  side:wait_stream(main)
  local right = mr.with(side, self.right, x)
  local left = self.left(x)
  main:wait_stream(side)
  return left + right
end

local function step(bucket_mb, wait)
  local norms = mr.dist.spawn(2, function(rank)
    mr.manual_seed(2)
    local net = TwoBranches():to(mr.current_device())
    local ddp, x = nn.parallel.DistributedDataParallel(net, { bucket_mb = bucket_mb }), mr.full({ 1, 2 }, rank + 1.0)
    local loss = ddp(x):sum()
    loss:backward()
    local s = mr.stream { name = "s" }
    if wait then s:wait_stream(mr.current_stream()) end
    local norm = mr.with(s, function() return (net.right.weight.grad + net.left.weight.grad):norm() end)
    s:synchronize()
    mr.synchronize()
    return ("%.5f"):format(norm:item())
  end)
  return table.concat(norms, " ")
end

TestSchedules = {}

function TestSchedules.test_a_step_has_one_outcome()
  for _, mb in ipairs { 0, 0.00001, 25 } do
    local result = mr.explore(function() return step(mb, true) end)
    lu.assertTrue(result.complete, result.incomplete)
    lu.assertEquals(#result.outcomes, 1)
    lu.assertEquals(#result.hazards, 0)
  end
end

function TestSchedules.test_a_gradient_that_is_used_before_its_reduction()
  local result = mr.explore(function() return step(25, false) end, { max = 50 })
  lu.assertTrue(#result.outcomes > 1)
  lu.assertTrue(#result.hazards > 0)
end

-- The others go on meanwhile, so their calls are made once.
function TestSchedules.test_a_rank_explores_what_meets_no_other()
  local function meet() return mr.dist.all_reduce(mr.ones(2)) end
  local ALONE = "mr.dist: the other ranks take part once, and this one runs again and again. Call mr.explore, " ..
    "mr.replay or mr.stress around mr.dist.spawn, or use --ranks N --explore"
  mr.dist.spawn(2, function()
    lu.assertStrContains(tostring(select(2, pcall(mr.explore, meet))), "the function calls " .. ALONE)
    lu.assertStrContains(tostring(mr.stress(meet, { runs = 2 })), ALONE)
    lu.assertEquals(mr.explore(function() return mr.ones(2):sum():item() end).outcomes[1].value, 2.0)
    meet()
  end)
  lu.assertEquals(#mr.explore(function() mr.dist.spawn(2, meet) end).outcomes, 1)
end

-- R64: on GPUs with room for both it may get through.
function TestSchedules.test_communicators_in_another_order_may_get_through_on_gpus()
  local result = mr.explore(function()
    return mr.dist.spawn(2, function(rank)
      local groups = { mr.dist.new_group{0, 1}, mr.dist.new_group{0, 1} }
      local x = { mr.ones(1), mr.ones(1) }
      mr.synchronize()
      for i = 1, 2 do
        local k = rank == 0 and i or 3 - i
        mr.dist.all_reduce(x[k], {group = groups[k], async = true})
      end
      mr.synchronize()
    end)
  end)
  lu.assertEquals(#result.outcomes, 1)
  lu.assertStrContains(result.outcomes[1].error, "R64")
  lu.assertEquals(result.claim, "conditional")
  lu.assertStrContains(table.concat(result.not_followed, "\n"), "This holds if no GPU has room for collectives of two")
end

os.exit(lu.LuaUnit.run())
