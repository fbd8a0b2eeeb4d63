-- cat, stack and addmm against plain loops.
local lu = require "luaunit"
local mr = require "millrace"
local naive = require "lua.support.naive"

local PLACES = { "cpu", 0 }

TestCat = {}

function TestCat:test_along_every_dim()
  for _, device in ipairs(PLACES) do
    local a = mr.tensor({ { 1, 2 }, { 3, 4 } }, { device = device })
    local b = mr.tensor({ { 5, 6 } }, { device = device })
    lu.assertEquals(mr.cat({ a, b }):totable(), { { 1, 2 }, { 3, 4 }, { 5, 6 } })
    lu.assertEquals(mr.cat({ b, a, b }, 1):totable(), { { 5, 6 }, { 1, 2 }, { 3, 4 }, { 5, 6 } })
    lu.assertEquals(mr.cat({ a, a:t() }, 2):totable(), { { 1, 2, 1, 3 }, { 3, 4, 2, 4 } })
    lu.assertEquals(mr.cat({ a, a }, -1).shape, { 2, 4 })
    lu.assertEquals(mr.cat({ a }):totable(), a:totable())
    lu.assertEquals(mr.cat({ a, a:narrow(1, 1, 0) }):totable(), a:totable())
  end
end

function TestCat:test_undoes_chunk()
  local t = mr.randn(7, 3)
  lu.assertTrue(mr.equal(mr.cat(t:chunk(3)), t))
  lu.assertTrue(mr.equal(mr.cat(t:split({ 1, 2 }, 2), 2), t))
end

function TestCat:test_promotes()
  lu.assertEquals(mr.cat({ mr.ones(1, { dtype = "i32" }), mr.full({ 1 }, 0.5) }):totable(), { 1, 0.5 })
end

function TestCat:test_wrong_ones()
  local a, host = mr.zeros(2, 3):name("a"), mr.zeros(2, 3, { device = "cpu" }):name("host")
  naive.assert_raises("empty", mr.cat, {})
  naive.assert_raises("a list of tensors", mr.cat, a)
  naive.assert_raises("entry 2 is a number", mr.cat, { a, 3 })
  naive.assert_raises({ "entry 2", "2x4", "2x3" }, mr.cat, { a, mr.zeros(2, 4) })
  naive.assert_raises({ "entry 2", "3" }, mr.cat, { a, mr.zeros(3) })
  naive.assert_raises({ "`a`", "`host`" }, mr.cat, { a, host })
  naive.assert_raises("stack", mr.cat, { mr.zeros() })
  naive.assert_raises("cat", mr.cat, { a, a }, 3)
end

TestStack = {}

function TestStack:test_along_every_dim()
  for _, device in ipairs(PLACES) do
    local a, b = mr.tensor({ 1, 2 }, { device = device }), mr.tensor({ 3, 4 }, { device = device })
    lu.assertEquals(mr.stack({ a, b }):totable(), { { 1, 2 }, { 3, 4 } })
    lu.assertEquals(mr.stack({ a, b }, 2):totable(), { { 1, 3 }, { 2, 4 } })
    lu.assertEquals(mr.stack({ a, b }, -1):totable(), { { 1, 3 }, { 2, 4 } })
    lu.assertEquals(mr.stack({ a[1], b[1] }):totable(), { 1, 3 })
  end
  naive.assert_raises({ "stack", "3", "2" }, mr.stack, { mr.zeros(2), mr.zeros(3) })
  naive.assert_raises("stack", mr.stack, { mr.zeros(2) }, 3)
end

TestOut = {}

function TestOut:test_writes_there()
  for _, device in ipairs(PLACES) do
    local a, b = mr.tensor({ 1, 2 }, { device = device }), mr.tensor({ 3, 4 }, { device = device })
    local flat, both = mr.zeros(4, { device = device }), mr.zeros(2, 2, { device = device })
    lu.assertEquals(mr.cat({ a, b }, { out = flat }).data_ptr, flat.data_ptr)
    lu.assertEquals(flat:totable(), { 1, 2, 3, 4 })
    mr.cat({ b, a }, 1, { out = flat })
    lu.assertEquals(flat:totable(), { 3, 4, 1, 2 })
    lu.assertEquals(mr.stack({ a, b }, 2, { out = both }).data_ptr, both.data_ptr)
    lu.assertEquals(both:totable(), { { 1, 3 }, { 2, 4 } })
    mr.stack({ a, b }, { out = both:t() })
    lu.assertEquals(both:totable(), { { 1, 3 }, { 2, 4 } })
    local narrow = mr.zeros(2, { dtype = "i32", device = device })
    naive.assert_raises({ "cat", "4", "2" }, mr.cat, { a, b }, { out = narrow })
    naive.assert_raises({ "stack", "2x2", "4" }, mr.stack, { a, b }, 1, { out = flat })
    naive.assert_raises({ "f32", "i32" }, mr.cat, { mr.ones(2, { device = device }) }, { out = narrow })
    naive.assert_raises("entry 2", mr.cat, { a, flat:narrow(1, 1, 2) }, { out = flat })
    lu.assertEquals(flat:totable(), { 3, 4, 1, 2 })
    if device == 0 then mr.synchronize() end
  end
end

function TestOut:test_is_not_recorded()
  local w, out = mr.ones(2, { requires_grad = true }), mr.zeros(4)
  naive.assert_raises("out= cannot be recorded", mr.cat, { w, w }, { out = out })
  naive.assert_raises("out= cannot be recorded", mr.stack, { w, w }, 1, { out = mr.zeros(2, 2) })
end

function TestOut:test_options_that_are_not_there()
  local a = mr.ones(2)
  naive.assert_raises("bogus", mr.cat, { a }, 1, { bogus = a })
  naive.assert_raises("bogus", mr.stack, { a }, { bogus = a })
  naive.assert_raises("a table of options", mr.cat, { a }, 1, 5)
  naive.assert_raises("too many arguments: expected mr.cat(", mr.cat, { a }, 1, nil, 6)
  naive.assert_raises("too many arguments: expected mr.stack(", mr.stack, { a }, {}, 1)
  naive.assert_raises("clone: too many arguments: expected t:clone()", a.clone, a, { device = "cpu" })
  naive.assert_raises("contiguous: too many arguments", a.contiguous, a, { copy = true })
  naive.assert_raises("equal: too many arguments", mr.equal, a, a, { atol = 1 })
  lu.assertTrue(mr.equal(a, a:clone(nil), nil))
end

TestAddmm = {}

function TestAddmm:test_values()
  for _, device in ipairs(PLACES) do
    local a, b = mr.randn(3, 4, { device = device }), mr.randn(4, 2, { device = device })
    local x, row = mr.randn(3, 2, { device = device }), mr.randn(2, { device = device })
    local close = { atol = 1e-5 }
    lu.assertTrue(mr.allclose(x:addmm(a, b), x + a:mm(b), close))
    lu.assertTrue(mr.allclose(mr.addmm(row, a, b), row + a:mm(b), close))
    lu.assertTrue(mr.allclose(x:addmm(a, b, { beta = 0.5, alpha = 2 }), x * 0.5 + a:mm(b) * 2, close))
    local nan = mr.full_like(x, 0 / 0)
    lu.assertTrue(mr.allclose(nan:addmm(a, b, { beta = 0 }), a:mm(b), close))
  end
end

function TestAddmm:test_wrong_ones()
  local a = mr.zeros(3, 3)
  local s = mr.current_stream()
  mr.synchronize()
  naive.assert_raises({ "addmm", "3x3", "2" }, a.addmm, mr.zeros(2, { device = 0 }), a, a)
  naive.assert_raises("mm", a.addmm, a, a, mr.zeros(3))
  naive.assert_raises("f64", a.addmm, mr.zeros(3, 3, { dtype = "f64" }), a, a)
  local i = mr.ones(3, 3, { dtype = "i32" })
  naive.assert_raises("alpha", i.addmm, i, i, i, { alpha = 2 })
  lu.assertEquals(i:addmm(i, i):totable()[1], { 4, 4, 4 })
  s:synchronize()
end

os.exit(lu.LuaUnit.run())
