-- Graphs with collectives on ranks: each rank launches its own, and the launches meet; also under mr.explore.
-- options: --device virtual:3
-- virtual only: several devices
-- not checked: one test races, and two explore
-- not replayed: ranks have a clock each
local lu = require "luaunit"
local mr = require "millrace"
local dist = mr.dist

local function refused(code, pattern, fn, ...)
  local ok, err = pcall(fn, ...)
  lu.assertFalse(ok, pattern)
  if code then lu.assertEquals(type(err) == "table" and err.code, code) end
  lu.assertStrContains(tostring(err), pattern)
  return err
end

TestRanks = {}

local function step_of(x, y)
  x:mul_(2)
  local work = dist.all_reduce(x, { async = true })
  y:add_(1)
  work:wait()
  y:add_(x)
end

function TestRanks.test_each_rank_launches_its_own()
  local function run(in_graph)
    return dist.spawn(3, function(rank)
      local x, y = mr.full(4, rank + 1.0), mr.zeros(4)
      local s = mr.stream()
      mr.synchronize()
      local step = function() step_of(x, y) end
      local g = in_graph and mr.graph(step, { stream = s })
      for _ = 1, 3 do
        if g then g:launch(s) else s:run(step) end
      end
      s:synchronize()
      return x:sum():item() + y:sum():item() / 7
    end)
  end
  lu.assertEquals(run(true), run(false))
end

-- A launch and a call meet, too, like launches of graphs that differ elsewhere.
function TestRanks.test_a_launch_meets_a_call()
  local came = dist.spawn(2, function(rank)
    local x = mr.full(4, rank + 1.0)
    local s = mr.stream()
    mr.synchronize()
    if rank == 0 then
      local g = mr.graph(function()
        dist.all_reduce(x)
        x:add_(1)
        dist.broadcast(x, 0)
      end, { stream = s })
      g:launch(s)
    else
      s:run(function()
        dist.all_reduce(x)
        dist.broadcast(x, 0)
      end)
    end
    s:synchronize()
    return x:sum():item()
  end)
  lu.assertEquals(came, { 16.0, 16.0 })
end

function TestRanks.test_mistakes_name_the_captured_line_and_the_launch()
  local err = refused("collective-mismatch", "dist_graph.lua:", dist.spawn, 2, function(rank)
    local x = mr.zeros(rank == 0 and 4 or 3)
    local s = mr.stream()
    mr.synchronize()
    local g = mr.graph(function() dist.all_reduce(x) end, { stream = s })
    g:launch(s)
  end)
  lu.assertStrMatches(tostring(err), ".*rank %d submits all_reduce of %d elements %(%S*dist_graph.lua:%d+, launched " ..
    "at %S*dist_graph.lua:%d+%), and rank %d one of %d %(%S*dist_graph.lua:%d+, launched at.*")
  err = refused("deadlock", "dist_graph.lua:", dist.spawn, 2, function(rank)
    local x, s = mr.zeros(4), mr.stream()
    mr.synchronize()
    local g = mr.graph(function() dist.all_reduce(x) end, { stream = s })
    if rank == 0 then g:launch(s) end
  end)
  lu.assertStrMatches(tostring(err), ".*rank 0 waits in `all_reduce` at %S*dist_graph.lua:%d+, launched at " ..
    "%S*dist_graph.lua:%d+, in communicator `world`, for rank 1; rank 1 has ended.*")
end

-- It would wait for ranks that come after the capture.
function TestRanks.test_a_call_beside_a_capture()
  dist.spawn(2, function()
    local x, s = mr.zeros(4), mr.stream()
    mr.synchronize()
    mr.graph.begin(s, { mode = "relaxed" })
    refused("stream-capture-unsupported", "is not capturing, but another stream is", dist.all_reduce, x)
    mr.with(s, dist.all_reduce, x)
    local g = mr.graph.finish(s)
    lu.assertEquals(#g:nodes(), 1)
    lu.assertEquals(g:nodes()[1].name, "all_reduce")
    g:launch(s)
    s:synchronize()
  end)
end

-- A whole step of data-parallel training, as a graph: the same losses.
function TestRanks.test_a_training_step()
  local function train(rank, in_graph)
    mr.manual_seed(3)
    local net = mr.nn.Sequential(mr.nn.Linear(8, 16), mr.nn.Tanh(), mr.nn.Linear(16, 1)):to(mr.current_device())
    local ddp = mr.nn.parallel.DistributedDataParallel(net, { bucket_mb = 0.0001 })
    local sgd = mr.optim.SGD(ddp:parameters(), { lr = 0.1 })
    local x, y, s, loss = mr.randn(4, 8) * (rank + 1), mr.randn(4, 1), mr.stream(), nil
    local function step()
      sgd:zero_grad()
      loss = ddp(x):mse_loss(y)
      loss:backward()
      sgd:step()
    end
    s:wait_stream(mr.current_stream())
    s:run(function()
      step()
      step() -- buckets have their order now
    end)
    s:synchronize()
    local g = in_graph and mr.graph(step, { stream = s })
    for _ = 1, 5 do
      if g then g:launch(s) else s:run(step) end
    end
    s:synchronize()
    return loss:item()
  end
  local came
  local reports = mr.hazard.check(function()
    came = dist.spawn(2, function(rank) return { train(rank, false), train(rank, true) } end)
  end)
  lu.assertEquals(#reports, 0)
  for _, losses in ipairs(came) do lu.assertEquals(losses[1], losses[2]) end
end

function TestRanks.test_a_launch_after_the_ranks_have_left()
  local came = dist.spawn(2, function()
    local x, s = mr.ones(4), mr.stream()
    mr.synchronize()
    local g = mr.graph(function() dist.all_reduce(x) end, { stream = s })
    dist.destroy()
    refused("invalid-handle", "make new ones with mr.dist.init", g.launch, g, s)
    dist.init()
    g:launch(s)
    s:synchronize()
    return x:sum():item()
  end)
  lu.assertEquals(came, { 8.0, 8.0 })
end

function TestRanks.test_other_operands()
  local came = dist.spawn(2, function(rank)
    local x, y, s = mr.full(4, rank + 1.0), mr.full(4, rank + 10.0), mr.stream()
    mr.synchronize()
    local g = mr.graph(function() dist.all_reduce(x) end, { stream = s })
    g:set(1, function() dist.all_reduce(y) end)
    refused(nil, "another call of a collective", g.set, g, 1, function() dist.all_reduce(y, { op = "max" }) end)
    g:launch(s)
    s:synchronize()
    return x:sum():item() + y:sum():item()
  end)
  lu.assertEquals(came, { 4 + 84.0, 8 + 84.0 })
end

function TestRanks.test_every_schedule()
  local r = mr.explore(function()
    return table.concat(dist.spawn(2, function(rank)
      local x, s = mr.full(2, rank + 1.0), mr.stream()
      mr.synchronize()
      local g = mr.graph(function()
        x:add_(1)
        dist.all_reduce(x)
      end, { stream = s })
      g:launch(s)
      s:synchronize()
      return x:sum():item()
    end), " ")
  end)
  lu.assertEquals(#r.outcomes, 1)
  lu.assertEquals(r.outcomes[1].values[1], "10.0 10.0")
end

function TestRanks.test_every_schedule_of_one_process()
  local comms, x = mr.nccl.comms{ 0, 1 }, { mr.ones(2, { device = 0 }), mr.ones(2, { device = 1 }) }
  mr.synchronize(0)
  mr.synchronize(1)
  local s = { mr.stream{ device = 0 }, mr.stream{ device = 1 } }
  local g = mr.graph(function()
    s[2]:wait_stream(s[1])
    for k = 1, 2 do s[k]:run(function() x[k]:add_(k) end) end
    mr.nccl.group(function()
      for k = 1, 2 do comms[k]:all_reduce(x[k], { stream = s[k] }) end
    end)
    s[1]:wait_stream(s[2])
  end, { stream = s[1] })
  g:launch(s[1])
  mr.synchronize(0)
  mr.synchronize(1)
  local function run(waits)
    return mr.explore(function()
      g:launch(s[1])
      if waits then s[1]:synchronize() end
      local other = mr.stream()
      other:run(function() x[1]:mul_(10) end)
      other:synchronize()
      s[1]:synchronize()
      return x[1]:cpu()[1]:item()
    end)
  end
  lu.assertEquals(#run(true).outcomes, 1)
  lu.assertTrue(#run(false).outcomes > 1)
end

-- The work of another rank is no part of the call, and no reason.
function TestRanks.test_a_function_of_graph_auto_says_why_it_has_no_graph()
  local reasons = mr.dist.spawn(2, function()
    local step = mr.graph.auto(function(x)
      x:add_(1)
      mr.dist.all_reduce(x)
    end)
    local x = mr.ones(3)
    for _ = 1, 3 do step(x) end
    lu.assertEquals(x:sum():item(), 66.0)
    return (mr.graph.why(step))
  end)
  lu.assertStrMatches(reasons[1], "`all_reduce` at %S+ is a collective, for which other ranks may not come")
  lu.assertStrContains(reasons[2], "another rank was in a function of mr.graph.auto: the ranks of a process have one")
end

os.exit(lu.LuaUnit.run())
