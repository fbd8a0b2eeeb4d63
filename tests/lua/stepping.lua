-- virtual only: stepping forward and back, and looking into memory
-- Steps of the device by hand: what one was, why there is none, the way back, and what ends it.
-- options: --device virtual:2
local lu = require "luaunit"
local mr = require "millrace"

local function line() return debug.getinfo(2, "l").currentline end

TestSteps = {}

function TestSteps:setUp()
  mr.machine.chooser("manual")
  self.p, self.c = mr.stream{name = "p"}, mr.stream{name = "c"}
  self.x = mr.zeros(4000, {name = "x"})
  mr.synchronize()
end

function TestSteps:tearDown()
  mr.synchronize()
  collectgarbage("restart")
  mr.machine.chooser("timed")
  mr.machine.history{steps = 4096, bytes = 1 << 28, always = false}
end

function TestSteps:test_a_step_says_which_part_it_was()
  mr.with(self.p, function() self.x:fill_(1) end)
  local first = mr.machine.step(self.p)
  local parts = first:match("part 1 of (%d+)$")
  lu.assertNotNil(parts)
  local last, why, done = mr.machine.step(self.p, 1000)
  lu.assertStrContains(last, ("part %s of %s"):format(parts, parts))
  lu.assertEquals(why, "nothing is pending on stream `p`")
  lu.assertEquals(done, tonumber(parts) - 1)
  local what, why_not, none = mr.machine.step()
  lu.assertNil(what)
  lu.assertEquals(why_not, "nothing is pending")
  lu.assertEquals(none, 0)
end

function TestSteps:test_a_stream_that_waits_for_an_event_says_so_with_its_line()
  local done = mr.event{name = "done"}
  mr.with(self.p, function() self.x:fill_(1) end)
  self.p:record_event(done)
  local recorded = line() - 1
  self.c:wait_event(done)
  local what, why = mr.machine.step(self.c)
  lu.assertNil(what)
  lu.assertStrContains(why, "wait_event of event `done` on stream `c`")
  lu.assertStrMatches(why, ".* waits for event `done`, recorded on stream `p` at .*stepping%.lua:" .. recorded ..
    " %(#%d+%)")
end

function TestSteps:test_other_things_to_wait_for()
  local blocking = mr.stream{nonblocking = false, name = "b"}
  self.x:fill_(1)
  mr.with(blocking, function() mr.op{name = "work", ms = 1} end)
  lu.assertStrContains(select(2, mr.machine.step(blocking)), "waits for fill_ on the default stream")
  lu.assertStrContains(select(2, mr.machine.step(blocking)), "(R3)")
end

function TestSteps:test_queues_say_why()
  local done = mr.event{name = "done"}
  mr.with(self.p, function() self.x:fill_(1) end)
  self.p:record_event(done)
  self.c:wait_event(done)
  mr.machine.step(self.p, 3)
  local queues = mr.machine.queues()
  local fill, record, wait = queues[1].pending[1], queues[1].pending[2], queues[2].pending[1]
  lu.assertEquals(fill.part, 3)
  lu.assertTrue(fill.parts > 3)
  lu.assertNil(fill.why)
  lu.assertStrContains(record.why, "before it in its stream")
  lu.assertStrContains(wait.why, "event `done`")
  lu.assertEquals(wait.waits_for, record.seq)
end

-- Without the collector: a tensor of another test that it frees between two steps takes the device time.
function TestSteps:test_back_is_exact()
  collectgarbage()
  mr.synchronize()
  collectgarbage("stop")
  mr.with(self.p, function() self.x:fill_(1); self.x:mul_(3) end)
  local sums, clocks = {}, {}
  while true do
    sums[#sums + 1], clocks[#clocks + 1] = self.x:peek():sum():item(), mr.machine.time()
    if not mr.machine.step(self.p) then break end
  end
  lu.assertEquals(sums[#sums], 12000)
  for i = #sums - 1, 1, -1 do
    lu.assertEquals(mr.machine.back(), 1)
    lu.assertEquals(self.x:peek():sum():item(), sums[i])
    lu.assertEquals(mr.machine.time(), clocks[i])
  end
  lu.assertEquals(mr.machine.back(), 0)
  mr.machine.step(self.p, #sums)
  lu.assertEquals(self.x:peek():sum():item(), 12000)
  lu.assertEquals(mr.machine.back(3), 3)
end

function TestSteps:test_what_ends_the_history_is_named()
  mr.with(self.p, function() self.x:fill_(1) end)
  mr.machine.step(self.p, 2)
  mr.with(self.c, function() mr.op{name = "work", ms = 1} end)
  local at = line() - 1
  local undone, why = mr.machine.back()
  lu.assertEquals(undone, 0)
  lu.assertStrContains(why, "`work`")
  lu.assertStrContains(why, "stepping.lua:" .. at)
  mr.machine.step(self.p, 2)
  undone, why = mr.machine.back(5)
  lu.assertEquals(undone, 2)
  lu.assertStrContains(why, "stepping.lua:" .. at)
  mr.machine.step(self.p)
  self.p:synchronize()
  lu.assertStrContains(select(2, mr.machine.back()), "`synchronize`")
end

function TestSteps:test_tensors_of_the_host_and_the_collector_do_not_end_it()
  mr.with(self.p, function() self.x:fill_(2) end)
  mr.machine.step(self.p)
  local seen = self.x:peek()
  local sum = seen:sum()
  mr.zeros(100, {device = "cpu"})
  mr.machine.step(self.p)
  self.c = nil
  collectgarbage()
  collectgarbage()
  lu.assertEquals(mr.machine.history().kept, 2)
  lu.assertEquals(mr.machine.back(2), 2)
  lu.assertEquals(seen:sum():item(), sum:item())
  lu.assertEquals(self.x:peek():sum():item(), 0)
end

function TestSteps:test_device_tensors_that_are_collected_are_freed_later()
  collectgarbage()
  mr.synchronize()
  mr.with(self.p, function() self.x:fill_(2) end)
  mr.machine.step(self.p)
  local live = mr.memory.stats().allocations
  self.x = nil
  collectgarbage()
  collectgarbage()
  lu.assertEquals(mr.memory.stats().allocations, live)
  lu.assertEquals(mr.machine.back(), 1)
  mr.synchronize()
  mr.op{name = "work", ms = 1}
  mr.synchronize()
  lu.assertEquals(mr.memory.stats().allocations, live - 1)
end

function TestSteps:test_a_failure_can_be_undone()
  mr.machine.fault("assert", self.p)
  lu.assertError(mr.machine.step, self.p)
  lu.assertErrorMsgContains("mr.reset", mr.zeros, 3)
  lu.assertEquals(mr.machine.back(), 1)
  lu.assertEquals(mr.zeros(3).numel, 3)
  lu.assertError(mr.synchronize)
  mr.reset()
end

function TestSteps:test_pass()
  mr.machine.chooser("timed")
  mr.machine.history{always = true}
  mr.with(self.p, function() mr.spin{ms = 2}; self.x:fill_(1) end)
  local before = mr.clock()
  mr.machine.pass(1)
  lu.assertAlmostEquals(mr.clock(), before + 1, 1e-9)
  lu.assertFalse(self.p:query())
  mr.machine.pass(2)
  lu.assertEquals(self.x:peek():sum():item(), 4000)
  lu.assertEquals(mr.machine.back(), 1)
  lu.assertEquals(self.x:peek():sum():item(), 0)
  mr.synchronize()
  local now = mr.machine.time()
  mr.machine.pass(5) -- with nothing to do
  lu.assertTrue(mr.machine.time() >= now + 5)
  lu.assertEquals(mr.machine.time(), mr.clock())
  lu.assertErrorMsgContains("milliseconds", mr.machine.pass, -1)
  lu.assertErrorMsgContains("milliseconds", mr.machine.pass, 0 / 0)
  lu.assertErrorMsgContains("milliseconds", mr.machine.pass, "1")
end

function TestSteps:test_limits()
  mr.machine.history{steps = 3}
  mr.with(self.p, function() self.x:fill_(1) end)
  mr.machine.step(self.p, 10)
  local undone, why = mr.machine.back(10)
  lu.assertEquals(undone, 3)
  lu.assertStrContains(why, "3 steps")
  mr.machine.history{steps = 0}
  mr.machine.step(self.p, 2)
  lu.assertEquals(mr.machine.back(), 0)
  lu.assertErrorMsgContains("from 0 on", mr.machine.history, {steps = -1})
  lu.assertErrorMsgContains("did you mean", mr.machine.history, {step = 1})
  lu.assertErrorMsgContains("a number of steps", mr.machine.back, 0)
  lu.assertErrorMsgContains("a number of steps", mr.machine.step, nil, -3)
end

TestPeek = {}

function TestPeek:test_views_and_dtypes()
  for _, dtype in ipairs{"f32", "f64", "i32", "i64", "u8", "bool"} do
    local t = mr.randint(0, 2, {6, 5}, {dtype = "i64"}):to(dtype)
    mr.synchronize()
    for _, view in ipairs{t, t:t(), t:narrow(1, 2, 3), t[{ {1, 6, 2}, {2, 5, 3} }], t[3], t:unsqueeze(2),
      t[1][1]:expand(4)} do
      local seen = view:peek()
      lu.assertEquals(seen.device, "cpu")
      lu.assertEquals(seen.dtype, dtype)
      lu.assertEquals(seen:size(), view:size())
      lu.assertTrue(mr.equal(seen, view:cpu()))
      lu.assertTrue(seen.contiguous)
    end
  end
  lu.assertEquals(mr.empty(0, 3):peek():size(), {0, 3})
  lu.assertEquals(mr.tensor(7):peek():item(), 7)
  lu.assertEquals(mr.ones(2, {device = 1}):peek().device, "cpu")
end

function TestPeek:test_it_is_no_access_and_waits_for_nothing()
  local s = mr.stream{name = "s"}
  local x = mr.zeros(1000, {name = "x"})
  mr.synchronize()
  local reports = mr.hazard.check(function()
    mr.with(s, function() mr.spin{ms = 5}; x:fill_(1) end)
    local before = mr.clock()
    lu.assertEquals(x:peek():sum():item(), 0)
    lu.assertTrue(mr.clock() - before < 1)
    s:synchronize()
  end)
  lu.assertEquals(#reports, 0)
  lu.assertEquals(x:peek():sum():item(), 1000)
end

function TestPeek:test_what_cannot_be_seen()
  local t = mr.zeros(3, {name = "t"})
  t:free()
  lu.assertErrorMsgContains("was freed at", t.peek, t)
  local closed
  do
    local u <close> = mr.zeros(3)
    closed = u
  end
  lu.assertErrorMsgContains("was closed", closed.peek, closed)
end

os.exit(lu.LuaUnit.run())
