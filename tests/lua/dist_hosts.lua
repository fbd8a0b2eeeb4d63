-- Ranks are hosts of their own: what one has waited for, another has not (hazard/find/hosts.c). Here they share memory
-- of the host that was there before them.
-- options: --device virtual:3
-- virtual only: three devices
-- not checked: some of its programs race
-- not replayed: ranks have a clock each
local lu = require "luaunit"
local mr = require "millrace"
local dist = mr.dist

local function stream(name) return mr.stream{ nonblocking = true, name = name } end

local function streams() return stream "a", stream "b" end

local function reports_of(fn, ...) return mr.hazard.check(fn, ...) end

local function assert_clean(fn)
  local reports = reports_of(fn)
  lu.assertEquals(#reports, 0, reports[1] and reports[1].message)
end

local function on(s, fn) s:run(fn) end

TestHosts = {}

-- Rank 1 waits for a collective, which comes after what rank 0's stream `a` did. Rank 0 has not waited.
local function one_waits(waiting)
  dist.spawn(2, function(rank)
    local a, b = streams()
    local x, y, z = mr.zeros(4, { name = "x" }), mr.zeros(4), mr.zeros(4)
    mr.synchronize()
    if rank == 0 then on(a, function() x:add_(1) end) end
    on(a, function() dist.all_reduce(y) end)
    if waiting[rank] then mr.synchronize() end
    dist.all_reduce(z)
    if rank == 0 then on(b, function() x:mul_(2) end) end
  end)
end

function TestHosts.test_another_ranks_wait_orders_nothing()
  local reports = reports_of(one_waits, { [1] = true })
  lu.assertEquals(#reports, 1)
  lu.assertEquals(reports[1].tensor, "x")
  lu.assertStrContains(mr.hazard.why(reports[1].first.seq, reports[1].second.seq), "nothing orders")
  lu.assertEquals(#reports_of(one_waits, { [0] = true }), 0)
  lu.assertEquals(#reports_of(one_waits, { [0] = true, true }), 0)
end

-- Work that a host has waited for comes before its later work, and before work that gets the data of that.
function TestHosts.test_a_collective_passes_on_what_a_host_knows()
  local p = mr.zeros(4, { device = "cpu", pinned = true, name = "p" })
  for i = 0, 3 do
    local writer, same_stream = i // 2, i % 2 == 1
    local function run(waits)
      dist.spawn(2, function(rank)
        local a, b = streams()
        local x, y = mr.ones(4), mr.zeros(4)
        local group = dist.new_group{ 1, 0 } -- the rank that comes last is the first member
        mr.synchronize()
        if rank == writer then
          on(b, function() p:copy_(x, { non_blocking = true }) end)
          if waits then b:synchronize() end
        end
        on(same_stream and b or a, function() dist.all_reduce(y, { group = group }) end)
        if same_stream and rank ~= writer then a = b end
        if rank ~= writer then on(a, function() y:copy_(p, { non_blocking = true }) end) end
        mr.synchronize()
      end)
    end
    lu.assertEquals(#reports_of(run, true), 0)
    lu.assertEquals(#reports_of(run, false) > 0, not same_stream)
  end
end

-- The host that started the ranks goes on behind all of them, and knows what they knew.
function TestHosts.test_what_ranks_waited_for_is_known_behind_them()
  local p = mr.zeros(4, { device = "cpu", pinned = true, name = "p" })
  local function world(who, waits, writes)
    dist.spawn(3, function(rank)
      local a = streams()
      local x = mr.ones(4)
      mr.synchronize()
      if rank == who then
        local to, from = x, p
        if writes then to, from = p, x end
        on(a, function() to:copy_(from, { non_blocking = true }) end)
        if waits then a:synchronize() end
      end
    end)
  end
  local function read() mr.zeros(4):copy_(p, { non_blocking = true }) end
  assert_clean(function() world(1, true, true) read() end)
  assert_clean(function() world(1, true, true) world(2, true, false) end)
  lu.assertTrue(#reports_of(function() world(1, false, true) read() end) > 0)
  lu.assertTrue(#reports_of(function() world(1, false, true) world(2, true, false) end) > 0)
end

-- Lua collects what one rank made while another one runs.
function TestHosts.test_memory_of_another_rank_is_collected()
  for _, waits in ipairs{ true, false } do
    local reports = reports_of(function()
      dist.spawn(2, function(rank)
        do
          local a = streams()
          local x = mr.zeros(4)
          mr.synchronize()
          if rank == 0 then on(a, function() x:add_(1) end) end
          if waits then mr.synchronize() end
        end
        if rank == 1 then
          collectgarbage()
          collectgarbage()
        end
        dist.barrier()
      end)
    end)
    lu.assertEquals(#reports, waits and 0 or 1)
  end
end

-- The calls of a rank follow its own calls. Those of ranks whose clocks stand elsewhere are no part of its path.
function TestHosts.test_a_critical_path_stays_with_its_host()
  local trace = mr.timeline(function()
    dist.spawn(3, function(rank)
      local a = streams()
      for i = 1, rank == 1 and 4 or 2 do
        mr.op{ name = rank .. "_" .. i, ms = 3, stream = a }
        a:synchronize()
      end
    end)
    mr.op{ name = "behind", ms = 1 }
    mr.synchronize()
  end)
  local at, met = 0.0, {}
  for _, link in ipairs(trace:critical_path()) do
    lu.assertTrue(link.start >= at - 1e-9, link.name)
    at = link.finish
    met[link.name:match "^(%d)_" or link.name] = true
  end
  lu.assertTrue(met["1"] and met.behind)
  lu.assertNil(met["0"] or met["2"])
end

-- Accesses of two ranks to one older tensor came in the order of this run: nothing is claimed about them.
function TestHosts.test_ranks_that_share_a_tensor_are_counted()
  local fixed = { device = "cpu", pinned = true }
  -- The use of `x` by the ranks, its place, and whether it counts.
  local programs = {
    { function(x, rank) x:fill_(rank) end, {}, 1 },
    { function(x, rank) if rank == 0 then x:add_(1) else mr.sum(x) end end, {}, 1 },
    { function(x, rank) if rank == 1 then x:add_(1) else mr.sum(x) end end, {}, 1 },
    { function(x, rank) if rank == 1 then x:free() else mr.sum(x) end end, {}, 1, worlds = 1 },
    { function(x, rank) x:fill_(rank) end, fixed, 1 },
    { function(x, rank) if rank == 0 then x:fill_(1) else x:item() end end, fixed, 1 },
    { function(x) mr.sum(x) end, {}, 0 },
    { function(x, rank) x[rank + 1]:fill_(1) end, fixed, 0 },
    { function(x, rank) if rank == 1 then x:add_(1) x:add_(1) end end, {}, 0 },
    { function(_, rank) mr.zeros(4):fill_(rank) end, {}, 0 },
  }
  for i, program in ipairs(programs) do
    local act, options, count = table.unpack(program)
    local totals = select(2, mr.hazard.check(function()
      local x = mr.zeros(i == 6 and 1 or 4, options)
      mr.synchronize()
      x:add_(1)
      for _ = 1, program.worlds or 2 do
        dist.spawn(2, function(rank) act(x, rank) end)
      end
    end))
    lu.assertEquals(totals.order_of_ranks, count * (program.worlds or 2), "program " .. i)
  end
end

os.exit(lu.LuaUnit.run())
