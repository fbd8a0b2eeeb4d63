-- virtual only: the simulator's limits of memory and its choosers
-- Actions of a script at an awkward moment, which must do no harm. They are coroutines and odd errors in host
-- functions, finalizers in the middle of an allocation, tables that answer with a function.
local lu = require "luaunit"
local mr = require "millrace"
local unchecked = require "lua.support.unchecked"

TestHostFunctions = {}

function TestHostFunctions:test_a_coroutine_of_one_is_not_the_thread_of_the_next()
  local s, co, seen = mr.stream(), nil, {}
  s:host_func(function()
    co = coroutine.create(function() mr.current_stream(); coroutine.yield() end)
    coroutine.resume(co)
  end)
  s:host_func(function() seen[1] = coroutine.status(co); seen[2] = coroutine.resume(co) end)
  s:synchronize()
  lu.assertEquals(seen, {"suspended", true})
  lu.assertEquals(coroutine.status(co), "dead")
end

function TestHostFunctions:test_a_collected_coroutine_is_not_missed()
  local s = mr.stream()
  s:host_func(function() coroutine.wrap(function() mr.current_stream(); coroutine.yield() end)() end)
  s:host_func(function() collectgarbage(); collectgarbage() end)
  local called = false
  s:host_func(function() called = true end)
  s:synchronize()
  lu.assertTrue(called)
end

function TestHostFunctions:test_an_error_that_cannot_be_shown()
  local s = mr.stream()
  s:host_func(function() error(setmetatable({}, {__tostring = function() error "boo" end})) end)
  local ok, err = pcall(s.synchronize, s)
  lu.assertFalse(ok)
  lu.assertEquals(err.code, "host-function")
  lu.assertStrContains(tostring(err), "cannot be shown")
  lu.assertEquals(mr.ones(3):sum():item(), 3) -- the device is not taken for busy with it
end

TestFinalizers = {}

function TestFinalizers:tearDown()
  collectgarbage("restart")
  collectgarbage(); collectgarbage()
  mr.reset()
  mr.machine.settings{memory_bytes = 0}
end

local function at_collection(fn) setmetatable({}, {__gc = fn}) end

function TestFinalizers:test_a_reset_in_the_middle_of_an_allocation_is_refused()
  collectgarbage(); collectgarbage()
  mr.synchronize()
  mr.machine.settings{memory_bytes = 16 << 20}
  local x, code = mr.ones(1 << 20), nil
  local kept = {}
  collectgarbage("stop") -- until an allocation fails, and collects
  at_collection(function() local ok, err = pcall(mr.reset); code = not ok and err.code end)
  pcall(function() for _ = 1, 100 do table.insert(kept, x + x) end end)
  lu.assertEquals(code, "not-permitted")
  lu.assertEquals(x[1]:item(), 1)
end

function TestFinalizers:test_a_stream_closed_in_the_middle_of_an_allocation()
  collectgarbage(); collectgarbage()
  mr.synchronize()
  mr.machine.settings{memory_bytes = 16 << 20}
  local s, kept, message = mr.stream{name = "s"}, {}, nil
  collectgarbage("stop")
  at_collection(function() s:close() end)
  s:run(function()
    local ok, err = pcall(function()
      for _ = 1, 100 do table.insert(kept, mr.ones(1 << 20, {stream = s})) end
    end)
    message = not ok and tostring(err)
  end)
  lu.assertStrContains(message, "stream `s` is closed")
end

TestTables = {}

function TestTables:test_options_are_read_raw()
  local calls = 0
  local options = setmetatable({writes = {mr.zeros(4)}, ms = 0.01}, {__index = function() calls = calls + 1 end})
  mr.op(options)
  lu.assertEquals(calls, 0)
  mr.synchronize()
end

function TestTables:test_a_barrier_believes_no_length()
  mr.barrier(setmetatable({}, {__len = function() return math.maxinteger end}))
  mr.barrier{}
  mr.barrier{mr.stream()}
end

function TestTables:test_a_list_of_tensors_has_no_options()
  local x = mr.ones(2, 2)
  lu.assertErrorMsgContains("field `dim`", mr.cat, {x, x, dim = 2})
end

TestAsking = {}

function TestAsking:tearDown() mr.machine.chooser("timed") end

-- Asking for the chooser does not set it again, which would start its seed anew.
function TestAsking:test_asking_changes_nothing()
  local x = mr.zeros(64)
  lu.assertEquals(mr.machine.model(), "h200") -- a tensor is live, its fill pending
  mr.synchronize()
  local function run(ask)
    mr.machine.chooser("random:7")
    x:zero_()
    mr.synchronize()
    local streams = {}
    for i = 1, 6 do
      streams[i] = mr.stream()
      mr.op{name = "n" .. i, stream = streams[i], reads = {x}, writes = {x}}
      if ask then mr.machine.chooser() end
      if i == 3 then mr.machine.step() end
    end
    mr.synchronize()
    return x[1]:item()
  end
  lu.assertEquals(run(false), run(true))
end

function TestAsking:test_tf32_is_remembered()
  lu.assertFalse(mr.allow_tf32(true))
  lu.assertTrue(mr.allow_tf32())
  lu.assertTrue(mr.allow_tf32(false))
  lu.assertErrorMsgContains("true or false", mr.allow_tf32, 1)
end

function TestAsking:test_shape_errors_name_the_tensors()
  local a, b = mr.zeros(3, {name = "alpha"}), mr.zeros(4, {name = "beta"})
  lu.assertErrorMsgContains("(tensors: `alpha`, `beta`)", function() return a + b end)
end

unchecked(TestAsking, "its streams race, so that the chooser decides", "test_asking_changes_nothing")

os.exit(lu.LuaUnit.run())
