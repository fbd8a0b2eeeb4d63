-- options: --device virtual:3
-- Tensors on several devices: placement, copies between them, and what does not mix.
local lu = require "luaunit"
local mr = require "millrace"
local naive = require "lua.support.naive"

TestPlacement = {}

function TestPlacement:test_by_option_and_by_what_is_current()
  lu.assertIs(mr.zeros(2, { device = 1 }).device, mr.device(1))
  lu.assertIs(mr.zeros(2, { device = "cuda:2" }).device, mr.device(2))
  mr.with(mr.device(2), function()
    lu.assertIs(mr.zeros(2).device, mr.device(2))
    lu.assertIs(mr.zeros(2, { device = "cuda" }).device, mr.device(2))
    lu.assertIs(mr.tensor({ 1 }).device, mr.device(2))
  end)
  lu.assertIs(mr.zeros(2).device, mr.device(0))
  local s = mr.stream { device = 1 }
  lu.assertIs(mr.ones(2, { stream = s }).device, mr.device(1))
  naive.assert_raises({ "stream", "device 1", "0" }, mr.zeros, 2, { stream = s, device = 0 })
end

function TestPlacement:test_results_stay_where_the_operands_are()
  local t = mr.ones(3, { device = 1 })
  lu.assertIs((t + 1).device, mr.device(1))
  lu.assertIs(t:sum().device, mr.device(1))
  lu.assertIs(t:clone().device, mr.device(1))
  lu.assertIs(mr.zeros_like(t).device, mr.device(1))
  lu.assertEquals((t * 2):sum():item(), 6)
end

TestMoving = {}

function TestMoving:test_between_devices()
  local t = mr.tensor({ { 1, 2 }, { 3, 4 } }, { device = 1 })
  for _, to in ipairs { 0, 2, mr.device(0), "cuda:2" } do
    local moved = t:to(to)
    lu.assertEquals(moved:totable(), { { 1, 2 }, { 3, 4 } })
    lu.assertNotIs(moved.device, t.device)
  end
  lu.assertEquals(t:t():to(2, "f32"):totable(), { { 1, 3 }, { 2, 4 } })
  lu.assertIs(t:cuda(2).device, mr.device(2))
  lu.assertIs(t:to(1), t)
  local far = mr.zeros(2, 2, { device = 2 })
  far:copy_(t)
  lu.assertEquals(far:totable(), { { 1, 2 }, { 3, 4 } })
  far[1] = t[2]
  lu.assertEquals(far:totable(), { { 3, 4 }, { 3, 4 } })
end

-- R58.
function TestMoving:test_a_memcpy_in_the_stream_of_another_device()
  local s = mr.stream { device = 2 }
  local x, y, far = mr.ones(4, { device = 1 }), mr.zeros(4, { device = 1 }), mr.zeros(4, { device = 0 })
  local pinned = mr.full({ 4 }, 3, { dtype = "f32", device = "cpu", pinned = true })
  for i = 0, 2 do mr.synchronize(i) end
  mr.memcpy_async(y, x, { stream = s })
  s:synchronize()
  lu.assertEquals(y:totable(), { 1, 1, 1, 1 })
  mr.memcpy_async(x, pinned, { stream = s })
  mr.memcpy_async(far, x, { stream = s })
  mr.memcpy_async(pinned, y, { stream = s })
  s:synchronize()
  lu.assertEquals({ far:totable(), pinned:totable() }, { { 3, 3, 3, 3 }, { 1, 1, 1, 1 } })
  naive.assert_raises({ "memset_async", "device 1", "device 2" }, mr.memset_async, x, 0, { stream = s })
end

function TestMoving:test_devices_do_not_mix()
  local a, b = mr.zeros(2, { device = 0 }):name("a"), mr.zeros(2, { device = 1 }):name("b")
  naive.assert_raises({ "`a`", "`b`" }, function() return a + b end)
  naive.assert_raises({ "`a`", "`b`" }, function() return mr.equal(a, b) end)
  naive.assert_raises({ "`a`", "`b`" }, function() return mr.cat({ a, b }) end)
end

TestMemory = {}

function TestMemory:test_each_device_has_an_account()
  collectgarbage()
  collectgarbage()
  local before = mr.memory.stats()
  local t = mr.zeros(1000, { device = 2 })
  local after = mr.memory.stats()
  lu.assertEquals(#after.devices, 3)
  lu.assertEquals(after.devices[3].live, before.devices[3].live + 4000)
  lu.assertEquals(after.devices[1].live, before.devices[1].live)
  lu.assertEquals(after.live, before.live + 4000)
  lu.assertEquals(mr.memory.stats(2).live, after.devices[3].live)
  lu.assertEquals(mr.memory.allocated(mr.device(2)), after.devices[3].live)
  t:free()
end

os.exit(lu.LuaUnit.run())
