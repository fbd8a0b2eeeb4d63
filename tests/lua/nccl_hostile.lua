-- Collectives between hostile calls: what changes between a call and the end of its group, errors in the middle, memory
-- that two operations share, and multiprocessors that run out (R64a).
-- options: --device virtual:2
-- virtual only: two devices
-- not replayed: the machine is lost and reset, and choosers are switched
-- not checked: some of its programs race
local lu = require "luaunit"
local mr = require "millrace"

local comms, t

local function both(options)
  mr.nccl.group(function() for k = 1, 2 do comms[k]:all_reduce(t[k], options) end end)
end

local function synchronize()
  mr.synchronize(0)
  mr.synchronize(1)
end

local function setup()
  comms = mr.nccl.comms({ 0, 1 }, { name = "pair" })
  t = { mr.ones(8, { device = 0 }), mr.ones(8, { device = 1 }) }
  synchronize()
end

local function refused(pattern, fn, ...)
  local ok, err = pcall(fn, ...)
  lu.assertFalse(ok)
  lu.assertStrContains(tostring(err), pattern)
  return err
end

local function assert_first(expected)
  lu.assertEquals({ t[1][1]:item(), t[2][1]:item() }, { expected, expected })
end

TestGroups = { setUp = setup }

function TestGroups.test_an_error_in_a_nested_group_leaves_the_outer_one_whole()
  mr.nccl.group(function()
    comms[1]:all_reduce(t[1])
    refused("stop", mr.nccl.group, function()
      comms[2]:broadcast(t[2])
      error "stop"
    end)
    refused("named twice", mr.nccl.all_reduce, { t[1], t[1] })
    comms[2]:all_reduce(t[2])
  end)
  assert_first(2)
  refused("rank 1 has no call", comms[1].all_reduce, comms[1], t[1])
end

function TestGroups.test_what_changes_before_the_end_of_the_group()
  local function changed(pattern, change)
    setup()
    refused(pattern, mr.nccl.group, function()
      for k = 1, 2 do comms[k]:all_reduce(t[k]) end
      change()
    end)
    local fine = pcall(synchronize)
    lu.assertTrue(fine)
  end
  changed("was freed", function() t[2]:free() end)
  changed("is closed", function() comms[1]:close() end)
  changed("was aborted", function() comms[2]:abort() end)
  changed("mr.reset()", mr.reset)
  setup()
  local s = mr.stream{device = 1}
  refused("is closed", mr.nccl.group, function()
    comms[1]:all_reduce(t[1])
    comms[2]:all_reduce(t[2], { stream = s })
    s:close()
  end)
  both()
  assert_first(2)
end

function TestGroups.test_the_collector_does_not_take_what_a_group_has()
  mr.nccl.group(function()
    comms[1]:all_reduce(mr.full(1 << 16, 1.5, { device = 0 }))
    comms[2]:all_reduce(mr.full(1 << 16, 1.5, { device = 1 }))
    collectgarbage()
    collectgarbage()
  end)
  both()
  assert_first(2)
end

function TestGroups.test_operations_of_a_group_share_no_memory_that_one_writes()
  refused("nothing orders the operations of a group", mr.nccl.group, function()
    for k = 1, 2 do
      comms[k]:send(t[k], 2 - k)
      comms[k]:recv(t[k], 2 - k)
    end
  end)
  refused("nothing orders the operations of a group", function()
    mr.nccl.group(function() both() both() end)
  end)
  mr.nccl.group(function() -- both read
    comms[1]:send(t[1], 1)
    comms[1]:send(t[1], 1)
    for _ = 1, 2 do comms[2]:recv(mr.zeros(8, { device = 1 }), 0) end
  end)
  both()
  assert_first(2)
end

TestErrors = { setUp = setup }

-- The first member is submitted when the error of a host function comes up: the second must follow.
function TestErrors.test_a_failed_host_function_leaves_no_half_meeting()
  for _, chooser in ipairs{ "timed", "random:1", "adversarial" } do
    setup()
    mr.machine.chooser(chooser)
    local s, failed = mr.stream{device = 0}, 0
    for _ = 1, 20 do
      s:host_func(function() error "stop" end)
      failed = failed + (pcall(both, nil) and 0 or 1)
      pcall(mr.machine.pass, 1)
    end
    pcall(synchronize)
    both()
    assert_first(2.0 ^ 21)
    mr.machine.chooser "timed"
  end
end

function TestErrors.test_launch_blocking()
  mr.spin{ms = 20, stream = mr.default_stream(1)}
  local before = mr.clock()
  mr.launch_blocking(true)
  both()
  mr.launch_blocking(false)
  lu.assertTrue(mr.clock() - before >= 20)
  assert_first(2)
end

-- 16 blocks of 512 threads a member: so many communicators, on a stream each, fill a device. Device 0 takes the first
-- half of them, device 1 the second half.
local function fill_both_devices(half)
  local all, streams, x = {}, { {}, {} }, { {}, {} }
  for i = 1, 2 * half do
    all[i] = mr.nccl.comms({ 0, 1 }, { name = "c" .. i })
    for k = 1, 2 do streams[k][i], x[k][i] = mr.stream{device = k - 1}, mr.ones(4, { device = k - 1 }) end
  end
  synchronize()
  for i = 1, half do
    mr.spin{ms = 50, stream = streams[2][i]}
    mr.spin{ms = 50, stream = streams[1][half + i]}
  end
  for i = 1, 2 * half do
    mr.nccl.group(function() for k = 1, 2 do all[i][k]:all_reduce(x[k][i], { stream = streams[k][i] }) end end)
  end
  return x
end

TestResidency = { setUp = setup }

function TestResidency.test_a_deadlock_is_reported_and_reset_ends_it()
  fill_both_devices(40)
  local err = refused("wait for each other's multiprocessors (R64a)", mr.synchronize, 0)
  lu.assertEquals(err.code, "deadlock")
  lu.assertStrMatches(tostring(err),
    ".*all_reduce #1 of communicator `c1`: rank 0 %(.-nccl_hostile.lua:%d+%) holds its " ..
    "multiprocessors and waits for rank 1 %(.-nccl_hostile.lua:%d+%);.*and %d+ more in the same way.*")
  refused("R64a", both)
  mr.reset()
  setup()
  both()
  assert_first(2)
end

function TestResidency.test_fewer_communicators_get_through()
  local x = fill_both_devices(10)
  synchronize()
  for i = 1, 20 do lu.assertEquals(x[1][i][1]:item(), 2.0) end
end

-- A switch begins anew what has begun, also a member that has only some of its multiprocessors.
function TestResidency.test_the_chooser_is_switched_while_members_wait()
  for _, chooser in ipairs{ "random:2", "adversarial", "manual" } do
    for _ = 1, 3 do -- leaves room for a part of a member
      mr.op{name = "busy", ms = 5, blocks = 131, stream = mr.stream{device = 1}}
    end
    local x = fill_both_devices(40)
    mr.machine.chooser(chooser)
    synchronize()
    for i = 1, 80 do lu.assertEquals(x[1][i][1]:item(), 2.0) end
    mr.machine.chooser "timed"
    both()
    synchronize()
  end
end

os.exit(lu.LuaUnit.run())
