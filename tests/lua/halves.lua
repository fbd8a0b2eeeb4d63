-- f16 and bf16 as a script meets them: values come back as they were written, and everything is
-- computed in f32 and rounded once. A value that the format cannot hold becomes infinite,
-- subnormal or 0 as IEEE 754 has it.
local lu = require "luaunit"
local mr = require "millrace"

local HALVES = { "f16", "bf16" }
local DIGITS = { f16 = 11, bf16 = 8 }      -- with the leading one
local LEAST = { f16 = -24, bf16 = -133 }   -- exponent of the smallest subnormal
local GREATEST = { f16 = 65504, bf16 = 0x1.FEp127 }
local INF, NAN = math.huge, 0 / 0

-- A number rounded to the nearest half, by arithmetic on doubles.
local function rounded(x, dtype)
  if x ~= x or x == INF or x == -INF or x == 0 then return x end
  local exponent = math.floor(math.log(math.abs(x), 2))
  if 2.0 ^ exponent > math.abs(x) then exponent = exponent - 1 end
  if 2.0 ^ (exponent + 1) <= math.abs(x) then exponent = exponent + 1 end
  local unit = 2.0 ^ math.max(exponent - DIGITS[dtype] + 1, LEAST[dtype])
  local steps, rest = math.modf(x / unit)
  if math.abs(rest) > 0.5 or (math.abs(rest) == 0.5 and steps % 2 ~= 0) then steps = steps + (x > 0 and 1 or -1) end
  local result = steps * unit
  return math.abs(result) <= GREATEST[dtype] and result or (x > 0 and INF or -INF)
end

local function places() return ipairs { "cpu", 0 } end

local function of(values, dtype, device) return mr.tensor(values, { dtype = dtype, device = device }) end

TestHalves = {}

function TestHalves:test_values_are_rounded_when_written_and_exact_when_read()
  local values = { 0.1, -2.0, 1 / 3, 65503, 65519.9, 65520, 70000, -1e39, 6e-8, 2e-8, 1e-40, 1e-45, 2049, 257,
    258.99, INF }
  for _, device in places() do
    for _, dtype in ipairs(HALVES) do
      local t, expected = of(values, dtype, device), {}
      for i, x in ipairs(values) do expected[i] = rounded(x, dtype) end
      lu.assertEquals(t:totable(), expected)
      for i, x in ipairs(expected) do lu.assertEquals(t[i]:item(), x) end
      for i = 1, #values do t[i] = values[#values + 1 - i] end
      for i, x in ipairs(expected) do lu.assertEquals(t[#values + 1 - i]:item(), x) end
      lu.assertEquals({ t.dtype, t.itemsize, t.nbytes }, { dtype, 2, 2 * #values })
      local nan = of({ NAN }, dtype, device):item()
      lu.assertTrue(nan ~= nan)
    end
  end
  for alias, dtype in pairs { half = "f16", float16 = "f16", bfloat16 = "bf16" } do
    lu.assertEquals(mr.zeros(1, { dtype = alias }).dtype, dtype)
  end
end

function TestHalves:test_every_way_to_move_them_keeps_their_bits()
  for _, dtype in ipairs(HALVES) do
    local device = mr.randn(37, 53, { dtype = dtype })
    local host = device:cpu()
    lu.assertTrue(mr.equal(device:t():contiguous():cpu(), host:t()))
    lu.assertTrue(mr.equal(host:to(0), device))
    lu.assertTrue(mr.equal(device[{ { 1, 37, 3 }, { 2, 50, 5 } }]:clone():cpu(), host[{ { 1, 37, 3 }, { 2, 50, 5 } }]))
    lu.assertTrue(mr.equal(device:to("f32"):to(dtype), device))
    lu.assertTrue(mr.equal(device:to("f64"):cpu(), host:to("f64")))
    lu.assertTrue(mr.equal(device:to("i32"):cpu(), host:to("i32")))
    lu.assertTrue(mr.equal(mr.cat({ device, device }, 1):narrow(1, 38, 37), device))
    local raw = mr.empty(37, 53, { dtype = dtype })
    mr.memcpy(raw, device)
    lu.assertTrue(mr.equal(raw, device))
    lu.assertTrue(mr.equal(mr.zeros(5, 7, { dtype = dtype }):t():fill_(0.1), mr.full({ 7, 5 }, 0.1, { dtype = dtype })))
  end
end

function TestHalves:test_results_are_rounded_once_from_f32()
  local x, y = {}, {}
  for i = 1, 300 do
    x[i], y[i] = math.sin(i) * 2.0 ^ (i % 20 - 10), math.cos(3 * i) * 2.0 ^ (i % 7 - 3)
  end
  for _, device in places() do
    for _, dtype in ipairs(HALVES) do
      local a, b = of(x, dtype, device), of(y, dtype, device)
      local one, two = a:totable(), b:totable()
      local cases = {
        add = function(p, q) return p + q end, sub = function(p, q) return p - q end,
        mul = function(p, q) return p * q end, div = function(p, q) return p / q end,
      }
      for name, f in pairs(cases) do
        local expected = {}
        for i = 1, #x do expected[i] = rounded(f(one[i], two[i]), dtype) end
        lu.assertEquals(a[name](a, b):totable(), expected, name)
        lu.assertEquals(a:view(20, 15):t()[name](a:view(20, 15):t(), b:view(20, 15):t()):t():flatten():totable(),
          expected, name)
        local into = mr.empty(300, { dtype = dtype, device = device })
        a[name](a, b, { out = into })
        lu.assertEquals(into:totable(), expected, name)
        lu.assertEquals(a:clone()[name .. "_"](a:clone(), b):totable(), expected, name)
      end
      lu.assertEquals(a:gt(b).dtype, "bool")
      lu.assertEquals(mr.where(a:gt(b), a, b):totable(), a:maximum(b):totable())
      lu.assertEquals((2 - a).dtype, dtype)
    end
  end
end

function TestHalves:test_sums_are_wider_than_the_elements()
  for _, device in places() do
    local ones = mr.ones(70000, { dtype = "f16", device = device })
    lu.assertEquals(ones:sum():item(), INF)
    lu.assertEquals(ones:mean():item(), 1.0)
    lu.assertEquals(ones:norm():item(), rounded(70000 ^ 0.5, "f16"))
    lu.assertEquals(mr.ones(4096, { dtype = "bf16", device = device }):sum():item(), 4096.0)
    lu.assertEquals(mr.ones(3, 500, { dtype = "bf16", device = device }):sum(1):sum():item(), rounded(1500, "bf16"))
    local t = of({ { 1, 5, 5 }, { -3, NAN, 2 } }, "f16", device)
    local values, positions = t:max(2)
    lu.assertEquals(values[1]:item(), 5.0)
    lu.assertEquals(positions:totable(), { 2, 2 })
    lu.assertEquals(t:any().dtype, "bool")
    lu.assertEquals(of({ 2, 4, 4, 4, 5, 5, 7, 9 }, "bf16", device):var(1, false, { correction = 0 }):item(), 4.0)
  end
end

function TestHalves:test_softmax_and_products_are_those_of_f64_but_for_one_rounding()
  for _, device in places() do
    for _, dtype in ipairs(HALVES) do
      local unit = 2.0 ^ (1 - DIGITS[dtype])
      local function near(half, exact)
        lu.assertEquals(half.dtype, dtype)
        local off = (half:to("f64") - exact):abs() - exact:abs() * (0.5 * unit + 1e-5)
        lu.assertTrue(off:max():item() < 1e-6, tostring(off:max():item()))
      end
      local a = mr.randn(40, 300, { dtype = dtype, device = device })
      local b = mr.randn(300, 30, { dtype = dtype, device = device })
      near(a:softmax(2), a:to("f64"):softmax(2))
      near(a:softmax(1), a:to("f64"):softmax(1))
      near(a:log_softmax(2), a:to("f64"):log_softmax(2))
      -- Positive, so that nothing cancels.
      local p, q = a:abs(), b:abs()
      near(p:mm(q), p:to("f64"):mm(q:to("f64")))
      near(q:t():mm(p:t()), q:t():to("f64"):mm(p:t():to("f64")))
      near(p:mv(q:select(2, 1)), p:to("f64"):mv(q:select(2, 1):to("f64")))
      near(p[1]:dot(q:select(2, 3)), p[1]:to("f64"):dot(q:select(2, 3):to("f64")))
    end
  end
  lu.assertErrorMsgContains('to("f32")', function()
    return mr.ones(2, 2, { dtype = "f16" }):mm(mr.ones(2, 2, { dtype = "bf16" }))
  end)
end

function TestHalves:test_random_numbers_stay_below_their_bound()
  for _, dtype in ipairs(HALVES) do
    mr.manual_seed(7)
    local device = mr.rand(100000, { dtype = dtype })
    lu.assertTrue(device:max():item() < 1)
    mr.manual_seed(7)
    lu.assertTrue(mr.equal(mr.rand(100000, { dtype = dtype, device = "cpu" }), device:cpu()))
    lu.assertAlmostEquals(device:to("f64"):mean():item(), 0.5, 0.005)
    lu.assertAlmostEquals(mr.randn(100000, { dtype = dtype }):to("f64"):std():item(), 1, 0.02)
  end
  lu.assertErrorMsgContains("largest number is 65504", function() mr.zeros(2, { dtype = "f16" }):uniform_(0, 70000) end)
  lu.assertErrorMsgContains("f16 cannot hold", function() mr.randint(0, 70000, { 2 }, { dtype = "f16" }) end)
end

function TestHalves:test_kernels_take_pointers_to_them()
  for dtype, words in pairs { f16 = { "cuda_fp16.h", "__half" }, bf16 = { "cuda_bf16.h", "__nv_bfloat16" } } do
    local source = [[
      #include <HEADER>
      extern "C" __global__ void twice(TYPE *y, const TYPE *x, int n) {
        int i = threadIdx.x;
        if (i < n) y[i] = __hadd(x[i], x[i]);
      }]]
    local k = mr.kernel((source:gsub("HEADER", words[1]):gsub("TYPE", words[2])))
    local x, y = of({ 0.5, 1.5, 3 }, dtype), mr.zeros(3, { dtype = dtype })
    k[{ 1, 32 }](y, x, 3)
    lu.assertEquals(y:totable(), { 1.0, 3.0, 6.0 })
    lu.assertErrorMsgContains("expected a tensor of " .. dtype .. ", got one of f32", function()
      k[{ 1, 32 }](y, mr.zeros(3), 3)
    end)
  end
end

function TestHalves:test_an_abstract_operation_writes_numbers_below_one()
  for _, dtype in ipairs(HALVES) do
    local read, written = mr.rand(500, { dtype = dtype }), mr.zeros(500, { dtype = dtype })
    mr.op { name = "mix", reads = { read }, writes = { written } }
    lu.assertTrue(written:max():item() < 1 and written:min():item() >= 0)
    lu.assertTrue(written:std():item() > 0.2)
  end
end

os.exit(lu.LuaUnit.run())
