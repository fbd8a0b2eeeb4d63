-- Random numbers stay inside their range, whatever the bounds and the dtype, and are the same on the host and on
-- the device.
local lu = require "luaunit"
local mr = require "millrace"

local N = 1 << 16

-- The same call on the host and on the device: one list of values.
local function both(make)
  mr.manual_seed(11)
  local host = make("cpu")
  mr.manual_seed(11)
  lu.assertTrue(host:eq(make(0):cpu()):all():item(), "the device gives other numbers than the host")
  return host
end

local function uniform(dtype, low, high, n)
  return both(function(device) return mr.empty(n or N, { dtype = dtype, device = device }):uniform_(low, high) end)
end

local function extremes(t)
  t = t:to("f64")
  return t:min():item(), t:max():item()
end

TestUniform = {}

function TestUniform:test_the_upper_bound_is_never_returned()
  for _, dtype in ipairs { "f32", "f64" } do
    for _, range in ipairs {
      { 0, 1 }, { 1e6, 1e6 + 1 }, { -1e6 - 1, -1e6 }, { 1e6, 1e6 + 0.0625 }, { 16777215, 16777216 }, { -1, 0 },
      { -1e-38, 0 }, { 0, 1e-40 }, { 0.1, 0.7 }, { 0.7, 0.70001 }, { -3e38, 3e37 }, { 0, 3.4e38 }, { 1e8, 1e8 + 1 },
      { -1e30, -9.99e29 },
    } do
      local text = ("%s from %.17g to %.17g"):format(dtype, range[1], range[2])
      local low, high = extremes(uniform(dtype, range[1], range[2]))
      lu.assertTrue(low >= range[1], text .. " gives " .. low)
      lu.assertTrue(high < range[2], text .. " gives " .. high)
    end
  end
  local low, high = extremes(uniform("f64", -8e307, 9e307))
  lu.assertTrue(low < -7e307 and high > 8e307)
end

-- 16 numbers of f32 lie in this range; rounding takes those next to the upper bound to the lower one.
function TestUniform:test_all_numbers_of_a_narrow_range_are_equally_probable()
  local t = uniform("f32", 1e6, 1e6 + 1)
  for i = 0, 15 do
    lu.assertAlmostEquals(t:eq(1e6 + i / 16):sum():item(), N / 16, 6 * math.sqrt(N / 16))
  end
end

function TestUniform:test_bounds_that_are_no_range_are_refused()
  local inf, nan = math.huge, 0 / 0
  for _, device in ipairs { "cpu", 0 } do
    for _, c in ipairs {
      { "f32", 1, 0 }, { "f32", 1, 1 }, { "f64", 2.5, 2.5 }, { "f32", nan, 1 }, { "f32", 0, nan }, { "f32", 0, inf },
      { "f64", -inf, 0 }, { "f64", -inf, inf }, { "f32", 0, 1e39 }, { "f32", -3e38, 3e38 }, { "f64", -1e308, 1e308 },
      { "f32", 1e8 + 1, 1e8 + 2 }, { "f32", 1e300, 1e301 },
    } do
      local t = mr.zeros(3, { dtype = c[1], device = device })
      lu.assertErrorMsgContains("uniform_: ", t.uniform_, t, c[2], c[3])
      lu.assertEquals(t:totable(), { 0, 0, 0 })
    end
  end
end

function TestUniform:test_rand_is_below_1()
  for _, dtype in ipairs { "f32", "f64" } do
    local low, high = extremes(both(function(device) return mr.rand(1 << 20, { dtype = dtype, device = device }) end))
    lu.assertTrue(low >= 0 and high < 1)
  end
end

TestBernoulli = {}

local function ones(p, dtype)
  return both(function(device) return mr.empty(1 << 20, { dtype = dtype, device = device }):bernoulli_(p) end)
    :sum():item()
end

function TestBernoulli:test_probabilities_at_the_ends()
  for _, dtype in ipairs { "bool", "u8", "f32", "i64" } do
    lu.assertEquals(ones(0, dtype), 0)
    lu.assertEquals(ones(-0.0, dtype), 0)
    lu.assertEquals(ones(1, dtype), 1 << 20)
  end
  lu.assertEquals(ones(1e-300, "bool"), 0)
  lu.assertEquals(ones(2 ^ -34, "bool"), 0)
  lu.assertEquals(ones(1 - 2 ^ -40, "bool"), 1 << 20)
end

-- Below 2^-24, what f32 numbers between 0 and 1 can tell apart: 0.06 of a million are to be expected.
function TestBernoulli:test_small_probabilities_are_not_rounded_up()
  local total = 0
  for seed = 1, 20 do
    mr.manual_seed(seed)
    total = total + mr.empty(1 << 20, { dtype = "bool", device = "cpu" }):bernoulli_(1e-9):sum():item()
  end
  lu.assertEquals(total, 0)
end

function TestBernoulli:test_what_is_no_probability_is_refused()
  for _, p in ipairs { -1e-9, 1 + 1e-9, 2, math.huge, -math.huge, 0 / 0 } do
    local t = mr.zeros(2)
    lu.assertErrorMsgContains("bernoulli_: the probability", t.bernoulli_, t, p)
  end
end

TestOthers = {}

function TestOthers:test_normal_takes_numbers_of_the_type_only()
  local inf = math.huge
  for _, c in ipairs { { 0, -1 }, { 0, inf }, { inf, 1 }, { 0 / 0, 1 }, { 0, 0 / 0 }, { 1e39, 1 }, { 0, 1e39 } } do
    local t = mr.zeros(2)
    lu.assertErrorMsgContains("normal_: the ", t.normal_, t, c[1], c[2])
  end
  lu.assertEquals(mr.zeros(2, { dtype = "f64" }):normal_(1e39, 0):totable(), { 1e39, 1e39 })
end

function TestOthers:test_randint_stays_inside_the_dtype()
  for _, c in ipairs { { 0, 257, "u8" }, { -1, 3, "u8" }, { 0, 3, "bool" }, { 0, (1 << 31) + 1, "i32" } } do
    lu.assertErrorMsgContains("randint: " .. c[3] .. " cannot hold", mr.randint, c[1], c[2], { 3 }, { dtype = c[3] })
  end
  local low, high = extremes(both(function(device)
    return mr.randint(0, 256, { N }, { dtype = "u8", device = device })
  end))
  lu.assertEquals({ low, high }, { 0, 255 })
  low, high = extremes(mr.randint(math.mininteger, math.maxinteger, { N }))
  lu.assertTrue(low < -9e18 and high > 9e18)
end

function TestOthers:test_randperm_has_no_number_twice()
  for dtype, most in pairs { u8 = 255, bf16 = 256, f16 = 2048 } do
    local order = mr.randperm(most, { dtype = dtype }):to("i64"):sort()
    lu.assertTrue(mr.equal(order, mr.arange(1, most + 1)))
    lu.assertErrorMsgContains("randperm: " .. dtype .. " does not have all integers from 1 to " .. most + 1,
      mr.randperm, most + 1, { dtype = dtype })
  end
end

-- However the call is wrong, its message says which function it was.
function TestOthers:test_absurd_arguments_name_the_function()
  for _, bound in ipairs { 1e300, math.huge, 0 / 0, 0.5, "7", {}, 2 ^ 63 } do
    for _, call in ipairs {
      { "randint", bound, { 2 } }, { "randint", 0, bound, { 2 } }, { "randint_like", mr.zeros(2), bound },
      { "randperm", bound },
    } do
      local ok, problem = pcall(mr[call[1]], table.unpack(call, 2))
      lu.assertFalse(ok)
      lu.assertStrContains(problem, call[1] .. ": ")
    end
  end
end

os.exit(lu.LuaUnit.run())
