-- virtual only: choosers, steps and settings of the simulator
-- The machine: devices, stepping, settings, failures of the device and the way out of them.
-- options: --device virtual:2
local lu = require "luaunit"
local mr = require "millrace"

TestDevices = {}

function TestDevices:tearDown() mr.set_device(0) end

function TestDevices:test_devices_are_objects()
  lu.assertEquals(mr.device_count(), 2)
  local d = mr.device(1)
  lu.assertTrue(rawequal(d, mr.device(1)))
  lu.assertEquals(d.index, 1)
  lu.assertEquals(d.backend, mr.backend)
  lu.assertTrue(d.sm_count > 0 and d.total_memory > 0)
  lu.assertStrContains(tostring(d), "device 1: ")
  lu.assertErrorMsgContains("there is no device 2", mr.device, 2)
  lu.assertErrorMsgContains("there is no device -1", mr.device, -1)
  lu.assertErrorMsgContains("an integer", mr.device, 0.5)
  lu.assertErrorMsgContains("an integer", mr.device, 0 / 0)
  lu.assertErrorMsgContains("a device or its ordinal", mr.set_device, "one")
end

function TestDevices:test_with_a_device()
  mr.with(mr.device(1), function()
    lu.assertEquals(mr.current_device().index, 1)
    lu.assertEquals(mr.zeros(2).device, mr.device(1))
    lu.assertEquals(mr.stream().device.index, 1)
  end)
  mr.with(1, function() lu.assertEquals(mr.current_device().index, 1) end)
  lu.assertEquals(mr.current_device().index, 0)
  lu.assertEquals(tostring(mr.default_stream(1)), "the default stream of device 1")
end

function TestDevices:test_a_stream_brings_its_device()
  local s = mr.stream{device = 1}
  s:run(function() lu.assertEquals(mr.current_device().index, 1) end)
  lu.assertEquals(mr.current_device().index, 0)
end

function TestDevices:test_events_belong_to_the_device_of_their_first_record()
  local e = mr.event{name = "e"}
  e:record(mr.stream{device = 1})
  local ok, err = pcall(e.record, e, mr.stream{device = 0})
  lu.assertFalse(ok)
  lu.assertEquals(err.code, "invalid-handle")
  lu.assertStrContains(err.message, "device 1")
  e:wait(mr.stream{device = 0})
end

function TestDevices:test_synchronize_is_for_one_device()
  mr.spin{ms = 20, stream = mr.default_stream(1)}
  mr.synchronize(0)
  lu.assertFalse(mr.default_stream(1):query())
  mr.synchronize(1)
  lu.assertTrue(mr.default_stream(1):query())
end

function TestDevices:test_peer_access()
  local a, b = mr.device(0), mr.device(1)
  if not a:can_access_peer(b) then return end
  lu.assertFalse(a:can_access_peer(a))
  a:enable_peer_access(b)
  local ok, err = pcall(a.enable_peer_access, a, b)
  lu.assertFalse(ok)
  lu.assertEquals(err.code, "peer-access-already-enabled")
  lu.assertError(a.enable_peer_access, a, a)
end

-- C leaves open in which order a call's arguments are checked; a script's user expects the first one that is wrong.
function TestDevices:test_the_first_wrong_argument_is_named()
  for _, call in ipairs { mr.device(0).can_access_peer, mr.device(0).enable_peer_access } do
    lu.assertErrorMsgContains("argument 1", call, "no device", "no peer")
    lu.assertErrorMsgContains("argument 2", call, mr.device(0), {})
  end
end

TestFailure = {}

function TestFailure:tearDown() mr.reset() end

function TestFailure:test_a_failure_shows_later_and_names_its_line()
  local s = mr.stream{name = "work"}
  local x = mr.zeros(4)
  mr.synchronize()
  local line = debug.getinfo(1, "l").currentline + 1
  mr.machine.fault("illegal-address", s)
  local ok, err = pcall(s.synchronize, s)
  lu.assertFalse(ok)
  lu.assertEquals(err.code, "illegal-address")
  lu.assertEquals(err.op, "fault")
  lu.assertEquals(err.stream, "work")
  lu.assertStrMatches(err.where, ".*machine%.lua:" .. line)
  for _, use in ipairs{
    function() mr.zeros(1) end, function() x:add_(1) end, mr.synchronize, function() s:query() end,
    function() mr.stream() end, function() mr.event() end, function() x:cpu() end,
  } do
    local again, sticky = pcall(use)
    lu.assertFalse(again)
    lu.assertEquals(sticky.code, "illegal-address")
  end
end

function TestFailure:test_reset_gives_a_fresh_device()
  local s, e, x = mr.stream(), mr.event(), mr.ones(3)
  local host = mr.ones(3, {device = "cpu"})
  e:record(s)
  mr.machine.fault("assert", s)
  lu.assertError(mr.synchronize)
  mr.reset()
  lu.assertEquals(mr.memory.stats().live, 0)
  for _, use in ipairs{
    function() s:synchronize() end, function() e:wait() end, function() e:query() end,
    function() x:sum() end, function() x:free() end,
  } do
    local ok, err = pcall(use)
    lu.assertFalse(ok)
    lu.assertEquals(err.code, "invalid-handle")
    lu.assertStrContains(err.message, "mr.reset()")
  end
  lu.assertEquals(host:sum():item(), 3)
  lu.assertEquals(mr.ones(3):sum():item(), 3)
end

function TestFailure:test_a_reset_drops_pending_work()
  local s = mr.stream()
  local called = false
  for _ = 1, 100 do mr.spin{ms = 100, stream = s} end
  s:host_func(function() called = true end)
  mr.reset()
  mr.synchronize()
  lu.assertFalse(called)
end

function TestFailure:test_launch_blocking_reports_at_the_call()
  lu.assertFalse(mr.launch_blocking(true))
  mr.spin{ms = 3}
  lu.assertTrue(mr.default_stream():query())
  lu.assertTrue(mr.launch_blocking(false))
  lu.assertErrorMsgContains("true or false", mr.launch_blocking, 1)
end

function TestFailure:test_unknown_faults()
  lu.assertErrorMsgContains("is not a failure of a kernel", mr.machine.fault, "out-of-memory")
  lu.assertErrorMsgContains("is not a failure of a kernel", mr.machine.fault, "nonsense")
end

TestSimulator = {}

function TestSimulator:tearDown() mr.machine.chooser("timed"); mr.synchronize() end

function TestSimulator:test_choosers()
  lu.assertEquals(mr.machine.chooser(), "timed")
  lu.assertEquals(mr.machine.chooser("random:7"), "timed")
  lu.assertEquals(mr.machine.chooser("adversarial"), "random:7")
  lu.assertErrorMsgContains("timed", mr.machine.chooser, "clever")
  lu.assertErrorMsgContains("random", mr.machine.chooser, "random:x")
  lu.assertEquals(mr.machine.chooser(), "adversarial")
end

function TestSimulator:test_manual_stepping()
  mr.machine.chooser("manual")
  local s1, s2 = mr.stream{name = "one"}, mr.stream{name = "two"}
  local x = mr.zeros(1, {pinned = true, device = "cpu"})
  mr.op{name = "a", writes = {x}, stream = s1, ms = 0.001}
  s2:wait(s1)
  mr.op{name = "b", reads = {x}, writes = {x}, stream = s2, ms = 0.001}
  local queues = mr.machine.queues()
  lu.assertEquals(#queues, 2)
  lu.assertTrue(rawequal(queues[1].stream, s1))
  lu.assertEquals(queues[1].pending[1].op, "a")
  lu.assertEquals(queues[1].pending[1].state, "ready")
  lu.assertStrMatches(queues[1].pending[1].where, ".*machine%.lua:%d+")
  local last = queues[2].pending[#queues[2].pending]
  lu.assertEquals(last.op, "b")
  lu.assertEquals(last.state, "waiting")
  lu.assertNil(mr.machine.step(s2)) -- it waits for s1
  lu.assertStrContains(mr.machine.step(s1), "a")
  local steps = 0
  while mr.machine.step() do steps = steps + 1 end
  lu.assertEquals(steps, 1) -- waits and records are no steps: they have no effect of their own
  lu.assertEquals(#mr.machine.queues(), 0)
end

-- Two operations of one name on one line: the number tells which has moved.
function TestSimulator:test_a_step_names_the_line_and_the_number_of_its_operation()
  mr.machine.chooser("manual")
  local s, x = mr.stream{name = "one"}, mr.zeros(1, {pinned = true, device = "cpu"})
  while mr.machine.step() do end
  for _ = 1, 2 do mr.op{name = "a", writes = {x}, stream = s, ms = 0.001} end
  local pending = mr.machine.queues()[1].pending
  for i = 1, 2 do
    lu.assertEquals(mr.machine.step(), ("a on stream `one` at %s (#%d)"):format(pending[i].where, pending[i].seq))
  end
  mr.synchronize()
end

function TestSimulator:test_settings()
  local settings = mr.machine.settings()
  lu.assertEquals(settings.launch_queue_depth, 1022)
  lu.assertEquals(mr.machine.settings{launch_queue_depth = 5}.launch_queue_depth, 5)
  lu.assertErrorMsgContains("there is no setting `depth`", mr.machine.settings, {depth = 1})
  lu.assertErrorMsgContains("expected an integer", mr.machine.settings, {launch_queue_depth = "x"})
  mr.machine.settings(settings)
  lu.assertEquals(mr.machine.settings(), settings)
end

function TestSimulator:test_models()
  mr.synchronize()
  collectgarbage()
  collectgarbage()
  local before = mr.machine.model()
  lu.assertEquals(before, "h200")
  mr.machine.model("t4")
  lu.assertEquals(mr.device(0).sm_count, 40)
  mr.machine.model(before)
  lu.assertEquals(mr.device(0).sm_count, 132)
  lu.assertErrorMsgContains("h200", mr.machine.model, "h9000")
  local x = mr.zeros(3)
  lu.assertErrorMsgContains("", mr.machine.model, "t4")
  lu.assertEquals(x:sum():item(), 0)
end

function TestSimulator:test_the_clock_is_virtual()
  local before = mr.clock()
  mr.spin{ms = 10000}
  mr.synchronize()
  lu.assertTrue(mr.clock() - before >= 10000)
  lu.assertTrue(mr.machine.time() >= 10000)
end

-- Its memory is gone with the device; a recording meets the object for the first time when the collector takes it.
function TestSimulator:test_a_stream_of_before_a_reset_is_collected_in_a_recording()
  local old = mr.stream()
  mr.reset()
  local waits = mr.waits(function()
    old = nil
    collectgarbage()
    collectgarbage()
    local a, x = mr.stream(), mr.zeros(4)
    mr.synchronize()
    a:run(function() x:add_(1) end)
    a:synchronize()
  end)
  lu.assertNil(old)
  lu.assertTrue(waits.total >= 1)
  mr.reset()
end

os.exit(lu.LuaUnit.run())
