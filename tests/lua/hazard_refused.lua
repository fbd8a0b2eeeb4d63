-- Refusals in mode "error": of a collective, which all its ranks get, and of a graph's launch at one of its nodes.
-- options: --device virtual:3
-- virtual only: three devices
-- not checked: the checker is what is tested
-- not replayed: ranks have a clock each
local lu = require "luaunit"
local mr = require "millrace"
local fresh = require "lua.support.hazard".fresh
local dist = mr.dist

-- {ok, error's text or result}
local function try(fn, ...)
  local ok, result = pcall(fn, ...)
  return { ok, not ok and tostring(result) or result }
end

local function assert_refused(came, ...)
  lu.assertFalse(came[1])
  lu.assertEquals(came[2]:match "hazard: [%w-]+", "hazard: read-after-write")
  for _, text in ipairs{ ... } do lu.assertStrContains(came[2], text) end
end

TestCollectives = { setUp = fresh, tearDown = fresh }

-- On `racing`, x is still in use by another stream. Calls each(x, rank) of each rank twice, with a wait of the host in
-- between. Returns what these gave, and the values of x after each.
local function twice(n, racing, each)
  local came = {}
  mr.hazard.mode("error")
  dist.spawn(n, function(rank)
    local s, x = mr.stream{ name = "other" }, mr.ones(4)
    mr.synchronize()
    if rank == racing then s:run(function() x:mul_(2) end) end
    local mine = {}
    came[rank + 1] = mine
    mine.first = try(each, x, rank)
    mr.synchronize()
    mine.kept = x[1]:item()
    mine.second = try(each, x, rank)
    mr.synchronize()
    mine.after = x[1]:item()
  end)
  return came
end

-- The call is refused on all ranks, whichever comes last, and has no effect; then all of them go on.
local function assert_all_refused(n, racing, each)
  local came = twice(n, racing, each)
  for rank = 0, n - 1 do
    local mine = came[rank + 1]
    assert_refused(mine.first, ("rank %d: "):format(racing), "on stream other")
    lu.assertEquals(mine.kept, rank == racing and 2.0 or 1.0)
    lu.assertEquals({ mine.second[1], mine.after }, { true, n + 1.0 }, mine.second[2])
  end
end

function TestCollectives.test_each_rank_gets_the_error()
  for racing = 0, 2 do
    assert_all_refused(3, racing, function(x) dist.all_reduce(x) end)
    assert_all_refused(3, racing, function(x) dist.all_reduce(x, { async = true }):wait() end)
  end
end

-- The one that races has twice its value.
function TestCollectives.test_messages()
  local came = {}
  mr.hazard.mode("error")
  for racing = 0, 1 do
    dist.spawn(2, function(rank)
      local s, x = mr.stream{ name = "other" }, mr.full(4, 5.0 + rank)
      mr.synchronize()
      if rank == racing then s:run(function() x:mul_(2) end) end
      local function move() if rank == 0 then dist.send(x, 1) else dist.recv(x, 0) end end
      local first = try(move)
      mr.synchronize()
      local kept = x[1]:item()
      move()
      mr.synchronize()
      came[rank + 1] = { first, kept, x[1]:item() }
    end)
    for rank = 0, 1 do
      lu.assertFalse(came[rank + 1][1][1])
      lu.assertStrContains(came[rank + 1][1][2], ("rank %d: %s"):format(racing, racing == 0 and "send" or "recv"))
    end
    local sent = racing == 0 and 10.0 or 5.0
    lu.assertEquals({ came[1][2], came[1][3], came[2][2], came[2][3] },
      { sent, sent, racing == 1 and 12.0 or 6.0, sent })
  end
end

function TestCollectives.test_of_a_graph()
  for racing = 0, 1 do
    local graphs = {}
    assert_all_refused(2, racing, function(x, rank)
      graphs[rank] = graphs[rank] or mr.graph(function() dist.all_reduce(x) end)
      graphs[rank]:launch()
    end)
  end
end

-- Rank 2 takes no part in it. The others try again before a rank that was parked has been woken.
function TestCollectives.test_the_others_are_not_concerned()
  local came = {}
  mr.hazard.mode("error")
  dist.spawn(3, function(rank)
    local pair = dist.new_group{ 0, 1 }
    local s, x, y = mr.stream(), mr.ones(4), mr.ones(4)
    mr.synchronize()
    if rank == 0 then s:run(function() x:mul_(2) end) end
    local refused = rank < 2 and try(dist.all_reduce, x, { group = pair })
    mr.synchronize()
    if rank < 2 then dist.all_reduce(x, { group = pair }) end
    dist.all_reduce(y)
    mr.synchronize()
    came[rank + 1] = { refused, x[1]:item(), y[1]:item() }
  end)
  for rank = 0, 1 do assert_refused(came[rank + 1][1], "rank 0: ") end
  lu.assertEquals({ came[1][2], came[2][2], came[3][2] }, { 3.0, 3.0, 1.0 })
  for rank = 0, 2 do lu.assertEquals(came[rank + 1][3], 3.0) end
end

-- One rank's call of the group was carried out; the other one, and what follows it, on none.
function TestCollectives.test_the_rest_of_a_group()
  local came = {}
  mr.hazard.mode("error")
  dist.spawn(2, function(rank)
    local s, x, y, z = mr.stream(), mr.ones(4), mr.ones(4), mr.ones(4)
    mr.synchronize()
    if rank == 0 then s:run(function() y:mul_(2) end) end
    local refused = try(mr.nccl.group, function()
      for _, t in ipairs{ x, y, z } do dist.all_reduce(t) end
    end)
    mr.synchronize()
    came[rank + 1] = { refused, x[1]:item(), y[1]:item(), z[1]:item() }
  end)
  for rank = 0, 1 do
    local refused, x, y, z = table.unpack(came[rank + 1])
    assert_refused(refused, "rank 0: ")
    lu.assertEquals({ x, y, z }, { 2.0, rank == 0 and 2.0 or 1.0, 1.0 })
  end
end

-- The error that the script does not catch is that of the hazard.
function TestCollectives.test_an_error_that_ends_the_ranks()
  mr.hazard.mode("error")
  local came = try(dist.spawn, 2, function(rank)
    local s, x = mr.stream(), mr.ones(4)
    mr.synchronize()
    if rank == 0 then s:run(function() x:mul_(2) end) end
    dist.all_reduce(x)
  end)
  assert_refused(came, "rank 0: all_reduce")
end

TestLaunches = { setUp = fresh, tearDown = fresh }

-- A launch is refused at a node: those before it were carried out, and the error says how many.
function TestLaunches.test_the_nodes_before_are_counted()
  for before = 0, 2 do
    local a, b = mr.stream{ name = "a" }, mr.stream{ name = "b" }
    local x, y = mr.zeros(4), mr.zeros(4)
    mr.synchronize()
    local g = mr.graph(function()
      for _ = 1, before do y:add_(1) end
      x:add_(1)
      y:add_(10)
    end, { stream = a })
    mr.hazard.mode("error")
    b:run(function() x:add_(3) end)
    local came = try(g.launch, g, a)
    assert_refused(came, "in a graph launched at")
    local said = ("\nThe launch was carried out in part: %d of its nodes %s submitted."):format(before,
      before == 1 and "was" or "were")
    lu.assertEquals(came[2]:find(said, 1, true) ~= nil, before > 0, came[2])
    mr.synchronize()
    lu.assertEquals({ x[1]:item(), y[1]:item() }, { 3.0, before + 0.0 })
    g:launch(a)
    mr.synchronize()
    lu.assertEquals({ x[1]:item(), y[1]:item() }, { 4.0, 2 * before + 10.0 })
    mr.hazard.mode("off")
  end
end

-- The nodes that were carried out are a launch like any other (R42). Later work of the stream and the next launch
-- come after them, also after those of another lane.
function TestLaunches.test_what_was_carried_out_keeps_its_order()
  local x, y, z = mr.zeros(4), mr.zeros(4), mr.zeros(4)
  mr.synchronize()
  local function assert_later(work)
    local a, b, c, other = mr.stream{ name = "a" }, mr.stream{ name = "b" }, mr.stream{ name = "c" }, mr.stream()
    local g = mr.graph(function()
      other:wait_stream(a)
      other:run(function() mr.spin{ ms = 4 } x:fill_(1) end)
      z:fill_(2)
      y:add_(1) -- refused
      a:wait_stream(other)
    end, { stream = a })
    g:launch(b)
    b:synchronize()
    mr.hazard.mode("error")
    c:run(function() y:fill_(6) end)
    local before = mr.clock()
    assert_refused(try(g.launch, g, a), "in a graph launched at")
    c:synchronize()
    local done = work(g, a, b)
    done:synchronize()
    lu.assertEquals(mr.clock() - before >= 4 * (done == a and 1 or 2), true)
    mr.hazard.mode("off")
    mr.synchronize()
  end
  assert_later(function(_, a)
    a:run(function() x:add_(1) z:add_(1) end)
    return a
  end)
  lu.assertEquals({ x[1]:item(), y[1]:item(), z[1]:item() }, { 2.0, 6.0, 3.0 })
  assert_later(function(g, _, b)
    g:launch(b)
    return b
  end)
  lu.assertEquals({ x[1]:item(), y[1]:item(), z[1]:item() }, { 1.0, 7.0, 2.0 })
end

os.exit(lu.LuaUnit.run())
