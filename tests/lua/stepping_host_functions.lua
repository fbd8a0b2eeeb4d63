-- virtual only: stepping forward and back
-- Steps that are host functions, and the way back from them.
-- not replayed: a recorded host function is one list of what it did, and here it runs twice
local lu = require "luaunit"
local mr = require "millrace"
local unchecked = require "lua.support.unchecked"

TestSteps = {}

function TestSteps:setUp()
  mr.machine.chooser("manual")
  self.p = mr.stream{name = "p"}
end

function TestSteps:tearDown()
  mr.synchronize()
  mr.machine.chooser("timed")
end

function TestSteps:test_a_host_function_runs_again_and_its_variables_stay()
  local h, runs = mr.zeros(4, {pinned = true, device = "cpu"}), 0
  self.p:host_func(function() runs = runs + 1; h:fill_(runs) end)
  mr.machine.step(self.p)
  lu.assertEquals(mr.machine.back(), 1)
  lu.assertEquals(h:totable(), {0, 0, 0, 0})
  mr.machine.step(self.p)
  lu.assertEquals(runs, 2)
  lu.assertEquals(h:totable(), {2, 2, 2, 2})
end

function TestSteps:test_tensors_that_it_made_stay_with_their_values()
  local made = {}
  self.p:host_func(function() made[#made + 1] = mr.full({3}, #made + 1, {device = "cpu"}) end)
  for i = 1, 3 do
    mr.machine.step(self.p)
    lu.assertEquals(mr.machine.back(), 1)
    collectgarbage()
    for k = 1, i do lu.assertEquals(made[k]:totable(), {k, k, k}) end
  end
end

function TestSteps:test_an_error_in_it_comes_again()
  self.p:host_func(function() error("oops") end)
  for _ = 1, 2 do
    lu.assertErrorMsgContains("oops", mr.machine.step, self.p)
    lu.assertEquals(mr.machine.back(), 1)
  end
  lu.assertErrorMsgContains("oops", mr.synchronize)
end

function TestSteps:test_it_cannot_go_back_itself()
  local message
  self.p:host_func(function() message = select(2, pcall(mr.machine.back)) end)
  mr.machine.step(self.p)
  lu.assertStrContains(tostring(message), "not permitted inside a host function")
end

unchecked(TestSteps, "a step is no wait",
  "test_a_host_function_runs_again_and_its_variables_stay", "test_tensors_that_it_made_stay_with_their_values")

os.exit(lu.LuaUnit.run())
