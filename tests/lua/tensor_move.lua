-- Moving data: copies between memories and dtypes, what waits and what does not, Lua values.
local lu = require "luaunit"
local mr = require "millrace"
local naive = require "lua.support.naive"

TestCopy = {}

function TestCopy:test_between_all_memories_and_dtypes()
  local r = naive.random(1)
  local places = { { device = "cpu" }, { pinned = true }, { device = 0 } }
  local dtypes = { "f32", "f64", "i32", "i64", "u8" }
  for _, from in ipairs(places) do
    for _, to in ipairs(places) do
      for _ = 1, 4 do
        local a = naive.generate({ 3, 4 }, function() return r.integer(0, 100) end)
        from.dtype, to.dtype = r.pick(dtypes), r.pick(dtypes)
        local source = mr.tensor(naive.nested(a), from)
        local target = mr.zeros(3, 4, to)
        if r.integer(0, 1) == 1 then target = mr.zeros(4, 3, to):t() end
        lu.assertIs(target:copy_(source), target)
        naive.assert_same(target, a, 0, "copy_")
      end
    end
  end
end

function TestCopy:test_broadcasts()
  local t = mr.zeros(2, 3)
  t:copy_(mr.tensor({ 1, 2, 3 }))
  lu.assertEquals(t:totable(), { { 1, 2, 3 }, { 1, 2, 3 } })
  naive.assert_raises({}, t.copy_, t, mr.zeros(4))
end

function TestCopy:test_waits_for_its_own_stream_only()
  local busy, s = mr.stream(), mr.stream()
  mr.spin { ms = 50, stream = busy }
  local host = mr.empty(4, { pinned = true })
  s:run(function()
    local t = mr.ones(4)
    host:copy_(t)
    lu.assertTrue(s:query())
  end)
  lu.assertFalse(busy:query())
  lu.assertEquals(host:totable(), { 1, 1, 1, 1 })
end

function TestCopy:test_non_blocking_does_not_wait()
  local s = mr.stream()
  s:run(function()
    local t = mr.ones(4)
    mr.spin(5)
    t:add_(1)
    local host = mr.zeros(4, { pinned = true })
    host:copy_(t, { non_blocking = true })
    lu.assertFalse(s:query())
    s:synchronize()
    lu.assertEquals(host:totable(), { 2, 2, 2, 2 })
  end)
end

TestTo = {}

function TestTo:test_targets()
  local t = mr.tensor({ 1, 2 }, { device = "cpu" })
  lu.assertIs(t:to("cpu"), t)
  lu.assertIs(t:to("i64"), t)
  lu.assertIs(t:to(0).device, mr.device(0))
  lu.assertIs(t:to(mr.device(0)).device, mr.device(0))
  lu.assertIs(t:to("cuda").device, mr.device(0))
  lu.assertIs(t:to("cuda:0").device, mr.device(0))
  lu.assertEquals(t:to("f64").dtype, "f64")
  local both = t:to("cuda", "f32")
  lu.assertEquals(both.dtype, "f32")
  lu.assertIs(both.device, mr.device(0))
  local like = t:to(both)
  lu.assertEquals(like.dtype, "f32")
  lu.assertIs(like.device, mr.device(0))
  lu.assertIs(both:to(like), both)
  lu.assertEquals(both:to("i32"):totable(), { 1, 2 })
  lu.assertEquals(both:to("cpu", "f64"):totable(), { 1, 2 })
end

function TestTo:test_cpu_cuda_pin_memory()
  local t = mr.tensor({ 1.5, 2.5 })
  lu.assertIs(t:cuda(), t)
  lu.assertIs(t:cuda(0), t)
  local h = t:cpu()
  lu.assertEquals(h.device, "cpu")
  lu.assertFalse(h.pinned)
  lu.assertEquals(h:totable(), { 1.5, 2.5 })
  lu.assertIs(h:cpu(), h)
  local p = h:pin_memory()
  lu.assertTrue(p.pinned)
  lu.assertEquals(p:totable(), { 1.5, 2.5 })
  lu.assertIs(p:pin_memory(), p)
  lu.assertEquals(p:cuda({ non_blocking = true }):totable(), { 1.5, 2.5 })
  naive.assert_raises("only host tensors", t.pin_memory, t)
end

function TestTo:test_to_the_host_without_waiting_gives_pinned_memory()
  local s = mr.stream()
  s:run(function()
    local t = mr.ones(3)
    mr.spin(5)
    local a, b = t:to("cpu", { non_blocking = true }), t:cpu({ non_blocking = true })
    lu.assertTrue(a.pinned and b.pinned)
    lu.assertFalse(s:query())
    s:synchronize()
    lu.assertEquals(a:totable(), { 1, 1, 1 })
    lu.assertEquals(b:totable(), { 1, 1, 1 })
  end)
end

TestValues = {}

function TestValues:test_item()
  lu.assertEquals(mr.tensor({ 3 }):item(), 3)
  lu.assertEquals(math.type(mr.tensor({ 3 }):item()), "integer")
  lu.assertEquals(math.type(mr.tensor({ 3.0 }):item()), "float")
  lu.assertEquals(mr.tensor({ { true } }):item(), true)
  naive.assert_raises({ "item", "2x3" }, function() return mr.zeros(2, 3):item() end)
end

function TestValues:test_totable()
  lu.assertEquals(mr.tensor({ { 1, 2 }, { 3, 4 } }):t():totable(), { { 1, 3 }, { 2, 4 } })
  lu.assertEquals(mr.tensor(4):totable(), 4)
  lu.assertEquals(mr.zeros(2, 0):totable(), { {}, {} })
  lu.assertEquals(math.type(mr.tensor({ 1 }, { dtype = "u8" }):totable()[1]), "integer")
end

function TestValues:test_format_and_print()
  local text = mr.format(mr.tensor({ { 1.0, 2.0 }, { 3.0, 4.5 } }))
  lu.assertStrContains(text, "4.5")
  lu.assertStrContains(text, "f32")
  lu.assertIs(print, mr.print)
  lu.assertEquals(select("#", print("a line from", 1, nil, true)), 0)
  print(mr.tensor({ 1, 2 }))
  mr.print(mr.zeros(2))
end

function TestValues:test_values_at_the_moment_of_the_copy()
  local t = mr.zeros(3)
  local h = t:cpu()
  t:add_(1)
  lu.assertEquals(h:totable(), { 0, 0, 0 })
end

TestNaN = {}

function TestNaN:test_has_nan()
  for _, dtype in ipairs { "f16", "bf16", "f32", "f64" } do
    for _, device in ipairs { "cpu", mr.current_device() } do
      local t = mr.zeros(300, 7, { dtype = dtype, device = device })
      lu.assertIs(t:has_nan(), false)
      t:narrow(1, 211, 1):narrow(2, 3, 1):fill_(0 / 0)
      lu.assertIs(t:has_nan(), true)
      lu.assertIs(t:t():has_nan(), true)
      lu.assertIs(t[210]:has_nan(), false)
      lu.assertIs(mr.tensor({ math.huge, -math.huge }, { dtype = dtype, device = device }):has_nan(), false)
      lu.assertIs(mr.zeros(0, { dtype = dtype, device = device }):has_nan(), false)
      lu.assertIs(mr.tensor(0 / 0, { dtype = dtype, device = device }):has_nan(), true)
    end
  end
end

function TestNaN:test_integers_are_not_waited_for()
  local t = mr.ones(4, { dtype = "i32" })
  mr.spin { ms = 5 }
  lu.assertIs(t:has_nan(), false)
  lu.assertFalse(mr.current_stream():query())
end

function TestNaN:test_leaves_nothing()
  local t = mr.ones(4)
  collectgarbage()
  mr.synchronize()
  local before = mr.memory.stats().live
  collectgarbage("stop")
  t:has_nan()
  lu.assertEquals(mr.memory.stats().live, before)
  collectgarbage("restart")
  naive.assert_raises({ "expected a tensor" }, t.has_nan, 3)
end

os.exit(lu.LuaUnit.run())
