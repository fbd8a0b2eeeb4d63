-- Functions that are made of several operations (amax, logsumexp, tile, diag ...), compared with plain loops, and their
-- gradients with difference quotients. Values that are easy to get wrong are PyTorch's.
local lu = require "luaunit"
local mr = require "millrace"
local gradients = require "lua.support.gradients"
local naive = require "lua.support.naive"

local inf, nan = math.huge, 0 / 0

local function distinct(r, shape)
  local values = {}
  for k = 1, naive.numel(shape) do values[k] = k * 0.25 - 3 end
  for k = #values, 2, -1 do
    local other = r.integer(1, k)
    values[k], values[other] = values[other], values[k]
  end
  return mr.tensor(values, { dtype = "f64", device = "cpu" }):reshape(shape)
end

TestReductions = {}

function TestReductions.test_amax_and_amin_are_max_and_min_without_positions()
  local r = naive.random(3)
  for _ = 1, 40 do
    local x = distinct(r, r.shape(r.integer(1, 3), 4))
    local dim = r.integer(1, x.ndim)
    for _, keepdim in ipairs { false, true } do
      lu.assertTrue(mr.equal(x:amax(dim, keepdim), (x:max(dim, keepdim))))
      lu.assertTrue(mr.equal(mr.amin(x, dim - x.ndim - 1, keepdim), (x:min(dim, keepdim))))
      lu.assertEquals(select("#", x:amax(dim, keepdim)), 1)
    end
    lu.assertEquals(x:amax():item(), x:max():item())
    gradients.check("amax", function(t) return t:amax(dim) end, x)
  end
  lu.assertEquals(mr.tensor({ { 1, 7 }, { 3, 4 } }):amax({ 1, 2 }):item(), 7)
  lu.assertEquals(mr.tensor(2.5):amin():item(), 2.5)
end

-- Of PyTorch 1.13: torch.amax(x, 0) of [[1, 5], [5, 5]] has the gradient [[0, .5], [1, .5]].
function TestReductions.test_equal_elements_share_the_gradient()
  local x = mr.tensor({ { 1.0, 5.0 }, { 5.0, 5.0 } }, { requires_grad = true })
  x:amax(1):sum():backward()
  lu.assertEquals(x.grad:totable(), { { 0, 0.5 }, { 1, 0.5 } })
end

function TestReductions.test_logsumexp()
  local r = naive.random(4)
  for _ = 1, 20 do
    local x = distinct(r, r.shape(r.integer(1, 3), 4))
    local dim = r.integer(1, x.ndim)
    lu.assertTrue(mr.allclose(x:logsumexp(dim), x:exp():sum(dim):log()))
    lu.assertEquals(x:logsumexp(dim, true).shape, x:sum(dim, true).shape)
    gradients.check("logsumexp", function(t) return t:logsumexp(dim) end, x)
  end
  -- PyTorch's values for rows without a finite greatest element, and for those that overflow.
  local x = mr.tensor { { -inf, -inf }, { inf, 1 }, { 1000, 1000 }, { nan, 0 }, { -inf, 2 } }
  local y = x:logsumexp(2):totable()
  lu.assertEquals({ y[1], y[2], y[5] }, { -inf, inf, 2 })
  lu.assertAlmostEquals(y[3], 1000.6931, 1e-3)
  lu.assertNotEquals(y[4], y[4])
  lu.assertAlmostEquals(mr.ones(2, 3):logsumexp():item(), 1 + math.log(6), 1e-6)
  lu.assertAlmostEquals(mr.tensor(0.5):logsumexp():item(), 0.5, 1e-7)
end

function TestReductions.test_wrong_arguments()
  local x = mr.ones(2, 3)
  naive.assert_raises({ "amax", "dim 3", "2x3" }, function() x:amax(3) end)
  naive.assert_raises({ "amax", "listed twice" }, function() x:amax { 1, -2 } end)
  naive.assert_raises({ "amin", "keepdim" }, function() x:amin(1, 1) end)
  naive.assert_raises({ "logsumexp", "i64" }, function() mr.tensor { 1 }:logsumexp(1) end)
  naive.assert_raises({ "amax", "expected a tensor" }, function() mr.amax(3) end)
end

TestShapes = {}

function TestShapes.test_tile()
  local x = mr.tensor { { 1, 2 }, { 3, 4 } }
  lu.assertEquals(x:tile(2):totable(), { { 1, 2, 1, 2 }, { 3, 4, 3, 4 } })
  lu.assertEquals(x:tile(2, 1):totable(), { { 1, 2 }, { 3, 4 }, { 1, 2 }, { 3, 4 } })
  lu.assertEquals(x:tile({ 2, 1, 1 }).shape, { 2, 2, 2 })
  lu.assertEquals(x:tile(0, 1).shape, { 0, 2 })
  lu.assertEquals(mr.tensor(7):tile(3):totable(), { 7, 7, 7 })
  local copy = x:tile(1, 1)
  copy:zero_()
  lu.assertEquals(x[1]:totable(), { 1, 2 })
  gradients.check("tile", function(t) return t:tile(2, 3) end, distinct(naive.random(1), { 2, 3 }))
  naive.assert_raises({ "tile", "argument 1" }, function() x:tile(-1) end)
end

function TestShapes.test_repeat_interleave()
  local x = mr.tensor { { 1, 2 }, { 3, 4 } }
  lu.assertEquals(x:repeat_interleave(2):totable(), { 1, 1, 2, 2, 3, 3, 4, 4 })
  lu.assertEquals(x:repeat_interleave(2, 1):totable(), { { 1, 2 }, { 1, 2 }, { 3, 4 }, { 3, 4 } })
  lu.assertEquals(x:repeat_interleave(2, -1):totable(), { { 1, 1, 2, 2 }, { 3, 3, 4, 4 } })
  gradients.check("repeat_interleave", function(t) return t:repeat_interleave(3, 2) end,
    distinct(naive.random(2), { 2, 3 }))
  naive.assert_raises({ "repeat_interleave", "a tensor" }, function() x:repeat_interleave(x) end)
end

function TestShapes.test_diag_agrees_with_loops()
  local r = naive.random(7)
  for _ = 1, 40 do
    local rows, columns, k = r.integer(1, 5), r.integer(1, 5), r.integer(-5, 5)
    local x, expected = distinct(r, { rows, columns }), {}
    for i = 1, rows do
      if i + k >= 1 and i + k <= columns then expected[#expected + 1] = x[{ i, i + k }]:item() end
    end
    lu.assertEquals(x:diag(k):totable(), expected)
    gradients.check("diag", function(t) return t:diag(k) end, x)
    local v = x[1]:clone()
    local m = v:diag(k)
    lu.assertEquals(m.shape, { columns + math.abs(k), columns + math.abs(k) })
    lu.assertTrue(mr.equal(m:diag(k), v))
    lu.assertEquals(m:sum():item(), v:sum():item())
    gradients.check("diag of a vector", function(t) return t:diag(k) end, v)
  end
  naive.assert_raises({ "diag", "2x2x2" }, function() mr.ones(2, 2, 2):diag() end)
end

function TestShapes.test_like_another()
  local x = mr.arange(6)
  lu.assertEquals(x:view_as(mr.ones(2, 3)):totable(), { { 0, 1, 2 }, { 3, 4, 5 } })
  lu.assertEquals(mr.ones(3, 1):expand_as(mr.ones(3, 4)).stride, { 1, 0 })
  lu.assertEquals(mr.ones(1):view_as(mr.ones()).ndim, 0)
  naive.assert_raises({ "view_as", "expected a tensor" }, function() x:view_as(3) end)
end

function TestShapes.test_one_hot()
  local x = mr.tensor { { 1, 3 }, { 2, 1 } }
  lu.assertEquals(x:one_hot():totable(), { { { 1, 0, 0 }, { 0, 0, 1 } }, { { 0, 1, 0 }, { 1, 0, 0 } } })
  lu.assertEquals(x:one_hot(5).shape, { 2, 2, 5 })
  lu.assertEquals(x:one_hot().dtype, "i64")
  lu.assertEquals(mr.tensor(2):one_hot(3):totable(), { 0, 1, 0 })
  naive.assert_raises({ "one_hot", "f32" }, function() mr.ones(2):one_hot(3) end)
  naive.assert_raises({ "one_hot", "at least 1" }, function() x:one_hot(0) end)
  naive.assert_raises("out of range", function() x:cpu():one_hot(2) end)
end

TestComparing = {}

function TestComparing.test_isclose()
  local a = mr.tensor { 1, inf, -inf, nan, 1e-9, 100, inf }
  local b = mr.tensor { 1.000001, inf, inf, nan, 0, 101, 1 }
  lu.assertEquals(a:isclose(b):totable(), { true, true, false, false, true, false, false })
  lu.assertTrue(a:isclose(b, { equal_nan = true })[4]:item())
  lu.assertTrue(a:isclose(b, { rtol = 0.1 })[6]:item())
  lu.assertEquals(mr.tensor({ 1, 2 }, { dtype = "u8" }):isclose(mr.tensor({ 2, 2 }, { dtype = "u8" })):totable(),
    { false, true })
  naive.assert_raises("rtol", function() a:isclose(b, { rtol = "1" }) end)
end

-- Dense tensors have a loop of their own in equal and allclose; strided ones go element by element.
function TestComparing.test_dense_tensors_compare_as_strided_ones()
  local r = naive.random(9)
  local special = { 0, -0.0, inf, -inf, nan, 1e300, 1e-300, 1, 1.000001, -1, 3e38 }
  for round = 1, 300 do
    local n, same = r.integer(1, 3000), r.integer(1, 3)
    local dtype = ({ "f32", "f64", "f16", "bf16" })[round % 4 + 1]
    local a, b = {}, {}
    for k = 1, n do
      a[k] = 1
      b[k] = 1
    end
    for _ = 1, same do
      local k = r.integer(1, n)
      a[k], b[k] = special[r.integer(1, #special)], special[r.integer(1, #special)]
    end
    local host = { dtype = dtype, device = "cpu" }
    local x, y = mr.tensor(a, host), mr.tensor(b, host)
    local wide = mr.stack({ y, y }, 2):select(2, 1)
    lu.assertFalse(n > 1 and wide.contiguous)
    lu.assertEquals(mr.equal(x, y), mr.equal(x, wide))
    lu.assertEquals(x:equal(y), mr.equal(x, y))
    for _, options in ipairs { { rtol = 1e-5 }, { rtol = 0, atol = 0 }, { equal_nan = true },
      { rtol = 1e300, atol = inf } } do
      lu.assertEquals(mr.allclose(x, y, options), mr.allclose(x, wide, options))
      lu.assertEquals(x:allclose(y, options), mr.allclose(x, y, options))
    end
  end
  local i, k = mr.tensor { 1, 2 }, mr.tensor { 1, 3 }
  lu.assertFalse(mr.equal(i, k))
  lu.assertTrue(mr.equal(i, i:clone()))
  lu.assertTrue(mr.equal(mr.ones(0), mr.zeros(0)))
end

TestCreation = {}

function TestCreation.test_gradients_can_be_required_at_creation()
  local options = { requires_grad = true }
  local made = { mr.zeros(2, options), mr.tensor({ 1.0 }, options), mr.rand(3, options), mr.randn({ 3 }, options),
    mr.full({ 2 }, 0.5, options), mr.ones_like(mr.zeros(2), options), mr.linspace(0, 1, 3, options),
    mr.tensor({ 1.0 }, { requires_grad = true, device = "cpu" }), mr.empty(2, options), mr.eye(2, options) }
  for k, t in ipairs(made) do
    lu.assertTrue(t.requires_grad, k)
    lu.assertTrue(t.is_leaf, k)
  end
  made[1]:sum():backward()
  lu.assertEquals(made[1].grad:totable(), { 1, 1 })
  lu.assertFalse(mr.zeros(2, { requires_grad = false }).requires_grad)
  naive.assert_raises({ "requires_grad", "i64" }, function() mr.tensor({ 1 }, options) end)
  naive.assert_raises("requires_grad", function() mr.zeros(2, { requires_grad = 1 }) end)
end

TestBounds = {}

function TestBounds.test_bounds_of_clamp_can_be_named()
  local x = distinct(naive.random(8), { 3, 4 })
  for _, o in ipairs { { min = -1.1 }, { max = 0.6 }, { min = -1.1, max = 0.6 } } do
    lu.assertTrue(mr.equal(x:clamp(o), x:clamp(o.min, o.max)))
    lu.assertTrue(mr.equal(mr.clamp(x, o), x:clone():clamp_(o)))
    gradients.check("clamp", function(t) return t:clamp(o) end, x)
  end
  gradients.check("clamp", function(t, least) return t:clamp { min = least } end, x, x[1] * 0.3 + 0.01)
  naive.assert_raises("a least or a greatest value", function() x:clamp {} end)
  naive.assert_raises("`least`", function() x:clamp { least = 1 } end)
  naive.assert_raises("too many", function() x:clamp({ min = 1 }, 2) end)
end

TestMemory = {}

function TestMemory.test_the_peak_begins_again()
  local kept = mr.zeros(1000)
  do
    local big <close> = mr.zeros(100000)
    lu.assertTrue(big.nbytes > 0)
  end
  lu.assertTrue(mr.memory.max_allocated() >= 400000)
  mr.memory.reset_peak()
  lu.assertEquals(mr.memory.max_allocated(), mr.memory.allocated())
  lu.assertTrue(mr.memory.allocated() >= kept.nbytes)
  local more <close> = mr.zeros(5000)
  mr.memory.reset_peak(0)
  lu.assertTrue(mr.memory.max_allocated(0) >= more.nbytes + kept.nbytes)
end

-- Each is a function as well as a method.
TestForms = {}

function TestForms.test_functions_are_the_methods()
  local x = mr.tensor({ { 1.0, 2.0 }, { 3.0, 4.0 } }, { device = "cpu" })
  local same = function(a, b) lu.assertTrue(mr.equal(a, b)) end
  same(mr.logsumexp(x, 1), x:logsumexp(1))
  same(mr.isclose(x, x + 1e-9), x:isclose(x + 1e-9))
  same(mr.expand_as(x[1], x), x[1]:expand_as(x))
  same(mr.view_as(x, mr.zeros({ 4 }, { device = "cpu" })), x:view(4))
  same(mr.tile(x, 2, 1), x:tile(2, 1))
  same(mr.repeat_interleave(x, 2, 1), x:repeat_interleave(2, 1))
  same(mr.diag(x), x:diag())
  local classes = mr.tensor({ 2, 1 }, { dtype = "i64", device = "cpu" })
  same(mr.one_hot(classes, 3), classes:one_hot(3))
end

os.exit(lu.LuaUnit.run())
