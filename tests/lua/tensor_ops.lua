-- Operations against plain Lua loops, on the host and on the device, over random shapes that broadcast,
-- views with strides, and numbers on either side.
local lu = require "luaunit"
local mr = require "millrace"
local naive = require "lua.support.naive"

local PLACES = { "cpu", 0 }

local function round(x)
  local below = math.floor(x)
  local rest = x - below
  if rest > 0.5 or (rest == 0.5 and below % 2 == 1) then return below + 1 end
  return below
end

local unary = {
  neg = function(x) return -x end,
  abs = math.abs,
  sign = function(x) return x > 0 and 1 or x < 0 and -1 or 0 end,
  exp = math.exp,
  sin = math.sin,
  cos = math.cos,
  tanh = function(x) local e = math.exp(2 * x) return e == math.huge and 1 or (e - 1) / (e + 1) end,
  sigmoid = function(x) return 1 / (1 + math.exp(-x)) end,
  relu = function(x) return math.max(x, 0) end,
  floor = math.floor,
  ceil = math.ceil,
  round = round,
  square = function(x) return x * x end,
  reciprocal = function(x) return 1 / x end,
  log = math.log,
  sqrt = math.sqrt,
  rsqrt = function(x) return 1 / math.sqrt(x) end,
}
local positive = { reciprocal = true, log = true, sqrt = true, rsqrt = true }

local binary = {
  add = function(x, y) return x + y end,
  sub = function(x, y) return x - y end,
  mul = function(x, y) return x * y end,
  div = function(x, y) return x / y end,
  maximum = function(x, y) return math.max(x, y) end,
  minimum = function(x, y) return math.min(x, y) end,
  eq = function(x, y) return x == y end,
  ne = function(x, y) return x ~= y end,
  lt = function(x, y) return x < y end,
  le = function(x, y) return x <= y end,
  gt = function(x, y) return x > y end,
  ge = function(x, y) return x >= y end,
}

-- An array of random values, and the tensor that holds it: dense, transposed, or every second column of
-- something wider.
local function random_tensor(r, shape, device, make)
  local a = naive.generate(shape, make or r.quarter)
  local options = { dtype = "f32", device = device }
  local kind = r.integer(1, 3)
  if kind == 2 and #shape == 2 then
    local flipped = naive.generate({ shape[2], shape[1] }, function(i)
      local row, column = (i - 1) // shape[1], (i - 1) % shape[1]
      return a.data[column * shape[2] + row + 1]
    end)
    return a, mr.tensor(naive.nested(flipped), options):t()
  elseif kind == 3 and #shape >= 1 then
    local wide = { table.unpack(shape) }
    wide[#wide] = 2 * wide[#wide]
    local data = naive.generate(wide, function(i) return i % 2 == 1 and a.data[(i + 1) // 2] or 99 end)
    local index = {}
    for d = 1, #shape - 1 do index[d] = {} end
    index[#shape] = { 1, wide[#wide], 2 }
    return a, mr.tensor(naive.nested(data), options)[index]
  end
  return a, mr.tensor(naive.nested(a), options)
end

-- A shape that broadcasts with `shape`.
local function partner(r, shape)
  local other = {}
  for d = r.integer(1, #shape + 1), #shape do
    other[#other + 1] = r.integer(1, 3) == 1 and 1 or shape[d]
  end
  return other
end

TestElementwise = {}

function TestElementwise:test_unary()
  local r = naive.random(1)
  for name, f in pairs(unary) do
    for _, device in ipairs(PLACES) do
      local make = positive[name] and function() return r.real(0.25, 4) end or function() return r.real(-4, 4) end
      for dims = 0, 3 do
        local _, t = random_tensor(r, r.shape(dims, 5), device, make)
        local expected = naive.map(f, naive.of(t)) -- of what f32 made of the values
        naive.assert_same(t[name](t), expected, 1e-5, name)
        naive.assert_same(mr[name](t), expected, 1e-5, name)
        local own = t:clone()
        lu.assertIs(own[name .. "_"](own), own)
        naive.assert_same(own, expected, 1e-5, name .. "_")
        local out = mr.empty_like(t)
        lu.assertIs(t[name](t, { out = out }), out)
        naive.assert_same(out, expected, 1e-5, name .. " out=")
      end
    end
  end
end

function TestElementwise:test_gelu_and_logical_not()
  naive.assert_same(mr.tensor({ -1.0, 0.0, 2.0 }):gelu(), naive.array({ 3 }, { -0.158655, 0, 1.954500 }), 1e-4)
  local t = mr.tensor({ -1.0, 2.0 })
  lu.assertIs(t:gelu_(), t)
  lu.assertEquals(mr.tensor({ true, false }):logical_not():totable(), { false, true })
end

function TestElementwise:test_binary_broadcasts()
  local r = naive.random(2)
  for name, f in pairs(binary) do
    for _, device in ipairs(PLACES) do
      for _ = 1, 8 do
        local shape = r.shape(r.integer(0, 3), 4)
        local make = name == "div" and function() return r.pick { -4, -2, -1, 1, 2, 8 } end or r.quarter
        local a, ta = random_tensor(r, shape, device, make)
        local b, tb = random_tensor(r, partner(r, shape), device, make)
        if r.integer(0, 1) == 1 then a, b, ta, tb = b, a, tb, ta end
        local expected = naive.map(f, a, b)
        naive.assert_same(ta[name](ta, tb), expected, 1e-6, name)
        naive.assert_same(mr[name](ta, tb), expected, 1e-6, name)
        naive.assert_same(mr[name](ta, 2), naive.map(f, a, 2), 1e-6, name .. " number")
        naive.assert_same(mr[name](2, ta), naive.map(f, 2, a), 1e-6, "number " .. name)
      end
    end
  end
end

function TestElementwise:test_binary_in_place()
  local r = naive.random(3)
  for _, name in ipairs { "add", "sub", "mul", "maximum", "minimum" } do
    for _, device in ipairs(PLACES) do
      local shape = r.shape(2, 5)
      local a, t = random_tensor(r, shape, device)
      local b, u = random_tensor(r, partner(r, shape), device)
      lu.assertIs(t[name .. "_"](t, u), t)
      local expected = naive.map(binary[name], a, b)
      naive.assert_same(t, expected, 0, name .. "_")
      t[name .. "_"](t, 3)
      naive.assert_same(t, naive.map(binary[name], expected, 3), 0, name .. "_ number")
    end
  end
end

function TestElementwise:test_pow_and_remainder()
  local a, b = mr.tensor({ 1.0, 2.0, 3.0 }), mr.tensor({ 2.0, 3.0, 0.5 })
  naive.assert_same(a:pow(b), naive.array({ 3 }, { 1, 8, math.sqrt(3) }), 1e-6)
  naive.assert_same(a ^ 2, naive.array({ 3 }, { 1, 4, 9 }), 1e-6)
  naive.assert_same(2 ^ a, naive.array({ 3 }, { 2, 4, 8 }), 1e-6)
  lu.assertEquals((mr.tensor({ 7, -7, 6 }) % 3):totable(), { 1, 2, 0 })
  lu.assertEquals(mr.remainder(mr.tensor({ 5.5 }), 2):item(), 1.5)
end

function TestElementwise:test_operators()
  local r = naive.random(4)
  for _, device in ipairs(PLACES) do
    local a, t = random_tensor(r, { 3, 4 }, device)
    local b, u = random_tensor(r, { 4 }, device)
    naive.assert_same(t + u, naive.map(binary.add, a, b))
    naive.assert_same(t - 1, naive.map(binary.sub, a, 1))
    naive.assert_same(1 - t, naive.map(binary.sub, 1, a))
    naive.assert_same(2 * t, naive.map(binary.mul, a, 2))
    naive.assert_same(t / 4, naive.map(binary.div, a, 4))
    naive.assert_same(-t, naive.map(unary.neg, a))
  end
end

function TestElementwise:test_equality_is_identity()
  local t = mr.zeros(2)
  lu.assertTrue(t == t)
  lu.assertFalse(t == t:clone())
  naive.assert_raises({}, function() return t < t end)
end

function TestElementwise:test_ternary()
  local r = naive.random(5)
  for _, device in ipairs(PLACES) do
    local a, t = random_tensor(r, { 3, 4 }, device)
    local b, u = random_tensor(r, { 4 }, device)
    local mask = t:gt(0)
    local where = naive.map(function(x, y) return x > 0 and x or y end, a, b)
    naive.assert_same(mr.where(mask, t, u), where, 0, "where")
    naive.assert_same(mask:where(t, u), where, 0, "where")
    naive.assert_same(mr.where(mask, t, 0), naive.map(unary.relu, a), 0, "where number")
    local function clamp(low, high)
      return function(x) return math.min(math.max(x, low), high) end
    end
    naive.assert_same(t:clamp(-2, 3), naive.map(clamp(-2, 3), a), 0, "clamp")
    naive.assert_same(t:clamp(nil, 3), naive.map(clamp(-1e9, 3), a), 0, "clamp greatest")
    naive.assert_same(t:clamp(-2), naive.map(clamp(-2, 1e9), a), 0, "clamp least")
    naive.assert_same(t:clone():clamp_(-2, 3), naive.map(clamp(-2, 3), a), 0, "clamp_")
    naive.assert_same(mr.clamp(t, -2, 3, { out = mr.empty_like(t) }), naive.map(clamp(-2, 3), a), 0, "clamp out")
    local lerp = naive.map(function(x, y) return x + 0.25 * (y - x) end, a, b)
    naive.assert_same(t:lerp(u, 0.25), lerp, 1e-6, "lerp")
    naive.assert_same(t:clone():lerp_(u, 0.25), lerp, 1e-6, "lerp_")
  end
end

TestDtypes = {}

function TestDtypes:test_promotion()
  local function of(dtype) return mr.ones(2, { dtype = dtype }) end
  local cases = {
    { "u8", "i32", "i32" }, { "i32", "i64", "i64" }, { "i64", "f32", "f32" }, { "f32", "f64", "f64" },
    { "bool", "u8", "u8" }, { "bool", "f32", "f32" },
  }
  for _, c in ipairs(cases) do
    lu.assertEquals((of(c[1]) + of(c[2])).dtype, c[3])
    lu.assertEquals((of(c[2]) + of(c[1])).dtype, c[3])
  end
  lu.assertEquals((of "i32" + 1).dtype, "i32")
  lu.assertEquals((of "i32" + 1.5).dtype, "f32")
  lu.assertEquals((of "f64" + 1.5).dtype, "f64")
  lu.assertEquals((of "i32" / 2).dtype, "f32")
  lu.assertEquals(of("i32"):exp().dtype, "f32")
  lu.assertEquals(of("i32"):sum().dtype, "i64")
  lu.assertEquals(of("bool"):sum():item(), 2)
  lu.assertEquals(of("i32"):mean().dtype, "f32")
  lu.assertEquals(of("i32"):gt(0).dtype, "bool")
end

function TestDtypes:test_integers_are_exact()
  local big = 2 ^ 53 | 0
  lu.assertEquals((mr.tensor({ big }) + 1):item(), big + 1)
  lu.assertEquals((mr.tensor({ 250 }, { dtype = "u8" }) + 10):item(), 4)
  lu.assertEquals((mr.tensor({ math.maxinteger }) + 1):item(), math.mininteger)
end

TestReductions = {}

local function fold(f, start)
  return function(list)
    local value = start
    for _, x in ipairs(list) do value = value == nil and x or f(value, x) end
    return value
  end
end
local sum = fold(function(x, y) return x + y end, 0)
local function mean(list) return sum(list) / #list end
local function variance(list)
  local m, s = mean(list), 0
  for _, x in ipairs(list) do s = s + (x - m) ^ 2 end
  return s / (#list - 1)
end

local reductions = {
  sum = sum,
  mean = mean,
  prod = fold(function(x, y) return x * y end, 1),
  max = fold(math.max),
  min = fold(math.min),
  norm = function(list) return math.sqrt(fold(function(s, x) return s + x * x end, 0)(list)) end,
  var = variance,
  std = function(list) return math.sqrt(variance(list)) end,
  any = function(list) for _, x in ipairs(list) do if x ~= 0 then return true end end return false end,
  all = function(list) for _, x in ipairs(list) do if x == 0 then return false end end return true end,
}

function TestReductions:test_over_everything_one_dim_and_several()
  local r = naive.random(6)
  for name, f in pairs(reductions) do
    for _, device in ipairs(PLACES) do
      local shape = { r.integer(2, 4), r.integer(2, 4), r.integer(2, 4) }
      local a, t = random_tensor(r, shape, device, function() return r.pick { -2, -1, -0.5, 0.5, 1, 2 } end)
      naive.assert_same(t[name](t), naive.reduce(f, a), 1e-5, name)
      naive.assert_same(mr[name](t), naive.reduce(f, a), 1e-5, name)
      for _, dim in ipairs { 1, 2, 3, -1, -3 } do
        naive.assert_same((t[name](t, dim)), naive.reduce(f, a, { dim }), 1e-5, name .. " dim " .. dim)
        naive.assert_same((t[name](t, dim, true)), naive.reduce(f, a, { dim }, true), 1e-5, name .. " keepdim")
        naive.assert_same((t[name](t, { dim = dim, keepdim = true })), naive.reduce(f, a, { dim }, true), 1e-5, name)
      end
      naive.assert_same(t[name](t, { 1, -1 }), naive.reduce(f, a, { 1, 3 }), 1e-5, name .. " dims")
      local dtype = (name == "any" or name == "all") and "bool" or "f32"
      local out = mr.empty(shape[1], shape[3], { device = device, dtype = dtype })
      lu.assertIs((t[name](t, 2, false, { out = out })), out)
      naive.assert_same(out, naive.reduce(f, a, { 2 }), 1e-5, name .. " out=")
    end
  end
end

function TestReductions:test_positions_count_from_1()
  for _, device in ipairs(PLACES) do
    local t = mr.tensor({ { 1.0, 9.0, 3.0 }, { 7.0, 2.0, 8.0 } }, { device = device })
    lu.assertEquals(t:argmax():item(), 2)
    lu.assertEquals(t:argmin():item(), 1)
    lu.assertEquals(t:argmax(2):totable(), { 2, 3 })
    lu.assertEquals(t:argmin(1):totable(), { 1, 2, 1 })
    local values, positions = t:max(2)
    lu.assertEquals(values:totable(), { 9, 8 })
    lu.assertEquals(positions:totable(), { 2, 3 })
    values, positions = mr.min(t, 1, true)
    lu.assertEquals(values:totable(), { { 1, 2, 3 } })
    lu.assertEquals(positions:totable(), { { 1, 2, 1 } })
    lu.assertEquals(select("#", t:max()), 1)
    lu.assertEquals(t:max(t:neg()):totable(), t:totable())
    lu.assertEquals(t[1][positions:flatten()[2]:item()]:item(), 9)
  end
end

function TestReductions:test_correction()
  local t = mr.tensor({ 1.0, 2.0, 3.0, 4.0 })
  lu.assertAlmostEquals(t:var({ correction = 0 }):item(), 1.25, 1e-6)
  lu.assertAlmostEquals(t:std({ correction = 0 }):item(), math.sqrt(1.25), 1e-6)
end

function TestReductions:test_of_nothing()
  local t = mr.zeros(0, 3)
  lu.assertEquals(t:sum():item(), 0)
  lu.assertEquals(t:prod():item(), 1)
  lu.assertEquals(t:sum(1):totable(), { 0, 0, 0 })
  lu.assertEquals(t:any():item(), false)
  lu.assertEquals(t:all():item(), true)
  naive.assert_raises("max", t.max, t)
end

TestProducts = {}

function TestProducts:test_matrices()
  local r = naive.random(7)
  for _, device in ipairs(PLACES) do
    for _ = 1, 10 do
      local m, k, n = r.integer(1, 6), r.integer(1, 6), r.integer(1, 6)
      local a, t = random_tensor(r, { m, k }, device)
      local b, u = random_tensor(r, { k, n }, device)
      local expected = naive.matmul(a, b)
      naive.assert_same(t:mm(u), expected, 1e-6, "mm")
      naive.assert_same(mr.matmul(t, u), expected, 1e-6, "matmul")
      naive.assert_same(t:mm(u, { out = mr.empty(m, n, { device = device }) }), expected, 1e-6, "mm out=")
      naive.assert_same(t:unsqueeze(1):bmm(u:unsqueeze(1)):squeeze(1), expected, 1e-6, "bmm")
      local column = naive.array({ k }, naive.of(u:select(2, 1)).data)
      naive.assert_same(t:mv(u:select(2, 1)),
        { shape = { m }, data = naive.matmul(a, naive.array({ k, 1 }, column.data)).data }, 1e-6, "mv")
      local dot = mr.dot(u:select(2, 1), u:select(2, 1))
      lu.assertAlmostEquals(dot:item(), sum(naive.map(unary.square, column).data), 1e-3)
    end
  end
end

function TestProducts:test_batches_broadcast()
  local a, b = mr.randn(2, 1, 3, 4), mr.randn(5, 4, 2)
  local c = a:matmul(b)
  lu.assertEquals(c.shape, { 2, 5, 3, 2 })
  lu.assertTrue(mr.allclose(c[{ 2, 3 }], a[{ 2, 1 }]:mm(b[3]), { atol = 1e-5 }))
end

function TestProducts:test_shapes_are_checked()
  naive.assert_raises({ "matmul", "3x2" }, function() return mr.zeros(3, 2):matmul(mr.zeros(3, 2)) end)
  naive.assert_raises("mm", function() return mr.zeros(3):mm(mr.zeros(3)) end)
  naive.assert_raises("mv", function() return mr.zeros(3, 3):mv(mr.zeros(3, 3)) end)
  naive.assert_raises("dot", function() return mr.zeros(3):dot(mr.zeros(2)) end)
  naive.assert_raises("bmm", function() return mr.zeros(3):bmm(mr.zeros(3)) end)
end

TestFilling = {}

function TestFilling:test_fills()
  for _, device in ipairs(PLACES) do
    local t = mr.empty(2, 3, { device = device })
    lu.assertEquals(t:fill_(2):totable(), { { 2, 2, 2 }, { 2, 2, 2 } })
    t:t()[2]:zero_()
    lu.assertEquals(t:totable(), { { 2, 0, 2 }, { 2, 0, 2 } })
    mr.manual_seed(1)
    lu.assertIs(t:uniform_(), t)
    local u = mr.empty(1000, { device = device }):uniform_(2, 3)
    lu.assertTrue(u:min():item() >= 2 and u:max():item() < 3)
    local n = mr.empty(4000, { device = device }):normal_(5, 2)
    lu.assertAlmostEquals(n:mean():item(), 5, 0.2)
    lu.assertAlmostEquals(n:std():item(), 2, 0.2)
    lu.assertEquals(mr.empty(9, { device = device }):bernoulli_(1):sum():item(), 9)
    lu.assertEquals(mr.empty(9, { device = device }):bernoulli_(0):sum():item(), 0)
    local half = mr.empty(1000, { device = device, dtype = "bool" }):bernoulli_()
    lu.assertAlmostEquals(half:sum():item(), 500, 100)
  end
end

TestComparing = {}

function TestComparing:test_equal()
  for _, device in ipairs(PLACES) do
    local t = mr.tensor({ { 1, 2 }, { 3, 4 } }, { device = device })
    lu.assertTrue(mr.equal(t, t:clone()))
    lu.assertTrue(mr.equal(t:t(), t:t():clone()))
    lu.assertFalse(mr.equal(t, t + 1))
    lu.assertFalse(mr.equal(t, t:view(4)))
    lu.assertTrue(mr.equal(t, t:to("f32")))
    local nan = mr.full({ 2 }, 0 / 0, { device = device })
    lu.assertFalse(mr.equal(nan, nan))
    lu.assertTrue(mr.equal(mr.zeros(0), mr.zeros(0)))
  end
end

function TestComparing:test_allclose()
  local t = mr.tensor({ 1.0, 2.0 })
  lu.assertTrue(mr.allclose(t, t + 1e-6))
  lu.assertFalse(mr.allclose(t, t + 1e-3))
  lu.assertTrue(mr.allclose(t, t + 1e-3, { atol = 1e-2 }))
  lu.assertTrue(mr.allclose(t, t * 1.01, { rtol = 0.02 }))
  lu.assertTrue(mr.allclose(mr.ones(2, 3), mr.ones(3)))
  local nan = mr.full({ 2 }, 0 / 0)
  lu.assertFalse(mr.allclose(nan, nan))
  lu.assertTrue(mr.allclose(nan, nan, { equal_nan = true }))
  local inf = mr.full({ 2 }, math.huge)
  lu.assertTrue(mr.allclose(inf, inf))
  lu.assertFalse(mr.allclose(inf, -inf))
  naive.assert_raises("broadcast", mr.allclose, mr.zeros(2), mr.zeros(3))
end

-- Numbers and single elements are repeated in blocks of 4 KB, which serve again and again.
function TestSingleElements_in_blocks()
  for _, dtype in ipairs{ "u8", "i32", "f32", "f64" } do
    for _, n in ipairs{ 1, 63, 511, 513, 1025, 4095, 4097, 9001 } do
      local x = mr.arange(n, { dtype = "i64" }):remainder(97):add(1):to(dtype)
      local dense, one = mr.full({ n }, 3, { dtype = dtype }), mr.full({ 1 }, 3, { dtype = dtype })
      local odd = x:remainder(2):eq(1)
      for _, name in ipairs{ "add", "sub", "mul", "pow", "remainder", "floor_divide", "maximum", "lt" } do
        local label = ("%s %s %d"):format(name, dtype, n)
        lu.assertTrue(mr.equal(x[name](x, dense), x[name](x, 3)), label)
        lu.assertTrue(mr.equal(x[name](x, dense), x[name](x, one)), label)
        lu.assertTrue(mr.equal(x[name](dense, x), x[name](one, x)), label)
        -- a column and a row beside a matrix
        local matrix, column = x:view(1, n):repeat_interleave(3, 1), mr.full({ 3, 1 }, 3, { dtype = dtype })
        local all = mr.full({ 3, n }, 3, { dtype = dtype })
        lu.assertTrue(mr.equal(x[name](matrix, all), x[name](matrix, column)), label)
        lu.assertTrue(mr.equal(x[name](matrix, all), x[name](x, all)), label)
      end
      lu.assertTrue(mr.equal(mr.where(odd, x, dense), mr.where(odd, x, 3)))
      lu.assertTrue(mr.equal(mr.where(odd, dense, x), mr.where(odd, one, x)))
      lu.assertTrue(mr.equal(x:maximum(dense):minimum(mr.full({ n }, 50, { dtype = dtype })), x:clamp(3, 50)))
      -- rows of which each has one value, and an element of the tensor beside it
      local rows = mr.arange(3, { dtype = "i64" }):to(dtype):view(3, 1):expand(3, n)
      lu.assertTrue(mr.equal(rows:contiguous():add(rows:contiguous()), rows:add(rows)))
      local last = x:narrow(1, n, 1)
      lu.assertTrue(mr.equal(x:add(last:clone():expand(n)), x:add(last)))
    end
  end
end

os.exit(lu.LuaUnit.run())
