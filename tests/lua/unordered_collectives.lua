-- R64a: collectives of two communicators that nothing orders on a device. With too little room, kernels that wait for
-- their peers wait for each other for ever. The verdict has a condition, and advice names the two.
-- options: --device virtual:3
-- virtual only: three devices
-- not replayed: ranks have a clock each
local lu = require "luaunit"
local mr = require "millrace"
local support = require "lua.support.hazard"

local fresh = support.fresh

TestUnordered = { setUp = fresh, tearDown = fresh }

local ROOM = "This holds if 1 communicator finds room on its GPUs beside the collectives of others (R64a, see " ..
  "--check=advice)."

-- Calls fn(streams, reduce) for two communicators, `a` and `b`, of these devices. reduce(k, streams) submits an
-- all_reduce of communicator k, on streams by device. Returns the advice about collectives, and whether the verdict
-- has the condition.
local function advice_of(devices, fn)
  local comms, x, streams = {}, {}, { {}, {} }
  for k = 1, 2 do
    comms[k], x[k] = mr.nccl.comms(devices[k], { name = ("ab"):sub(k, k) }), {}
    for i, d in ipairs(devices[k]) do x[k][i] = mr.ones(4, { device = d }) end
  end
  for d = 0, 2 do
    for k = 1, 2 do streams[k][d] = mr.stream{ device = d, name = ("ab"):sub(k, k) .. d } end
    mr.synchronize(d)
  end
  local function reduce(k, on)
    mr.nccl.group(function()
      for i, d in ipairs(devices[k]) do comms[k][i]:all_reduce(x[k][i], { stream = on[d] }) end
    end)
  end
  local list = {}
  support.advice_of(function() fn(streams, reduce) end)
  for _, r in ipairs(mr.hazard.advice()) do
    if r.kind == "unordered-collectives" then list[#list + 1] = r end
  end
  local conditional = false
  for _, clause in ipairs(select(2, mr.hazard.summary()).not_followed) do
    conditional = conditional or clause == ROOM
  end
  for d = 0, 2 do mr.synchronize(d) end
  fresh()
  return list, conditional
end

local BOTH = { { 0, 1 }, { 0, 1 } }

function TestUnordered.test_two_streams_on_each_device()
  local list, conditional = advice_of(BOTH, function(streams, reduce)
    reduce(1, streams[1])
    reduce(2, streams[2])
  end)
  lu.assertEquals(#list, 1)
  lu.assertTrue(conditional)
  lu.assertStrMatches(list[1].why, "on device 0 nothing orders it behind the `all_reduce` of communicator `a` " ..
    "%(unordered_collectives.lua:%d+%)%. Device 0 may begin it first, and device 1 the other one%. With too little " ..
    "room, both wait for ever %(R64a%)%. Before it, let b0 wait for a0; likewise on the other devices%.")
  lu.assertStrContains(list[1].second.where, "unordered_collectives.lua:")
end

function TestUnordered.test_a_wait_on_each_device_orders_them()
  for waits = 0, 2 do
    local list, conditional = advice_of(BOTH, function(streams, reduce)
      reduce(1, streams[1])
      for d = 0, waits - 1 do streams[2][d]:wait_stream(streams[1][d]) end
      reduce(2, streams[2])
    end)
    lu.assertEquals(#list, waits < 2 and 1 or 0)
    lu.assertEquals(conditional, waits < 2)
    if waits == 1 then
      lu.assertStrContains(list[1].why, "Device 1 may begin it first, and device 0 the other one.")
    end
  end
end

function TestUnordered.test_one_stream_on_each_device_orders_them()
  local list, conditional = advice_of(BOTH, function(streams, reduce)
    reduce(1, streams[1])
    reduce(2, streams[1])
  end)
  lu.assertEquals({ #list, conditional }, { 0, false })
end

function TestUnordered.test_one_communicator_is_serial()
  local list, conditional = advice_of(BOTH, function(streams, reduce)
    reduce(1, streams[1])
    reduce(1, streams[2])
  end)
  lu.assertEquals({ #list, conditional }, { 0, false })
end

-- No circle of two: the other peers do not meet. Three communicators could still make one, so the condition stays.
function TestUnordered.test_one_device_in_common()
  local list, conditional = advice_of({ { 0, 1 }, { 0, 2 } }, function(streams, reduce)
    reduce(1, streams[1])
    reduce(2, streams[2])
  end)
  lu.assertEquals({ #list, conditional }, { 0, true })
end

-- No access needs the wait between the two collectives, but the communicators may need it.
function TestUnordered.test_a_wait_that_puts_communicators_into_one_order()
  local clause = "This holds if 1 communicator finds room on its GPUs beside the collectives of others"
  local one, two = mr.nccl.comms{ 0, 1 }, mr.nccl.comms{ 0, 1 }
  local function all(comms, x, streams)
    mr.nccl.group(function()
      for k = 1, 2 do streams[k]:run(function() comms[k]:all_reduce(x[k]) end) end
    end)
  end
  local found = mr.waits(function()
    local x, y, s, u = {}, {}, {}, {}
    for k = 1, 2 do
      local on = { device = k - 1 }
      x[k], y[k], s[k], u[k] = mr.ones(4, on), mr.ones(4, on), mr.stream(on), mr.stream(on)
    end
    for k = 0, 1 do mr.synchronize(k) end
    all(one, x, s)
    for k = 1, 2 do u[k]:wait_stream(s[k]) end
    all(two, y, u)
    for k = 0, 1 do mr.synchronize(k) end
  end)
  lu.assertStrContains(tostring(found), clause)
  fresh()
end

function TestUnordered.test_groups_of_ranks()
  for _, waits in ipairs{ false, true } do
    local list = {}
    support.advice_of(function()
      mr.dist.spawn(2, function()
        local x, works = { mr.ones(4), mr.ones(4) }, {}
        for k = 1, 2 do
          works[k] = mr.dist.all_reduce(x[k], { group = mr.dist.new_group{ 0, 1 }, async = true })
          if waits then works[k]:wait() end
        end
        for k = 1, 2 do works[k]:wait() end
      end)
    end)
    for _, r in ipairs(mr.hazard.advice()) do
      if r.kind == "unordered-collectives" then list[#list + 1] = r.why end
    end
    lu.assertEquals(#list, waits and 0 or 1)
    if not waits then
      lu.assertStrMatches(list[1], "on device 0 .* of communicator `group 1 of ranks 0, 1` .* Before it, call " ..
        "wait%(%) of that one's work, or let group 2 of ranks 0, 1 wait for .*; likewise on the other devices%.")
    end
    fresh()
  end
end

os.exit(lu.LuaUnit.run())
