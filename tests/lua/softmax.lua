-- softmax and log_softmax against plain Lua loops: any dim, shape, layout and dtype, and the values where a naive
-- body fails.
local lu = require "luaunit"
local mr = require "millrace"
local naive = require "lua.support.naive"

local PLACES = { "cpu", 0 }
local INF, NAN = math.huge, 0 / 0

-- One row.
local along = {}

function along.log_softmax(list)
  local greatest, sum, result = -INF, 0, {}
  for _, x in ipairs(list) do greatest = x ~= x and x or math.max(x, greatest) end
  for _, x in ipairs(list) do sum = sum + math.exp(x - greatest) end
  for i, x in ipairs(list) do result[i] = x - greatest - math.log(sum) end
  return result
end

function along.softmax(list)
  local result = along.log_softmax(list)
  for i, x in ipairs(result) do result[i] = math.exp(x) end
  return result
end

-- The same along dim `dim` of an array.
local function expected_of(name, a, dim)
  local stride, data = 1, {}
  for d = dim + 1, #a.shape do stride = stride * a.shape[d] end
  local length = a.shape[dim] or 1
  for first = 1, #a.data do
    if (first - 1) // stride % length == 0 then
      local list = {}
      for i = 1, length do list[i] = a.data[first + (i - 1) * stride] end
      for i, x in ipairs(along[name](list)) do data[first + (i - 1) * stride] = x end
    end
  end
  return data
end

local function is_close(got, wanted, relative, absolute)
  if wanted ~= wanted then return got ~= got end
  return got == wanted or math.abs(got - wanted) <= math.max(absolute or 1e-37, math.abs(wanted) * relative)
end

local function check(name, got, a, dim, relative, absolute)
  local wanted = expected_of(name, a, dim)
  lu.assertEquals(got.shape, a.shape)
  for i, x in ipairs(naive.flat({ got:totable() })) do
    if not is_close(x, wanted[i], relative, absolute) then
      lu.fail(("%s of %s along %d: element %d is %.9g, not %.9g"):format(name, table.concat(a.shape, "x"), dim, i, x,
        wanted[i]))
    end
  end
end

-- Views of the same values that lie differently.
local layouts = {
  dense = function(t) return t end,
  transposed = function(t)
    return t.ndim < 2 and t or t:transpose(1, t.ndim):contiguous():transpose(1, t.ndim)
  end,
  stepped = function(t)
    if t.ndim == 0 then return t end
    local shape = t.shape
    shape[#shape] = shape[#shape] * 2
    local wide = mr.zeros(shape, { dtype = t.dtype, device = t.device })
    local index = {}
    for d = 1, #shape do index[d] = {} end
    index[#shape] = { 1, shape[#shape], 2 }
    return wide[index]:copy_(t)
  end,
}

local SHAPES = { {}, { 1 }, { 7 }, { 200 }, { 3, 5 }, { 64, 3 }, { 2, 1, 4 }, { 5, 3, 6 }, { 9, 33 }, { 2, 3, 2, 70 } }
local BOUNDS = { f32 = 4e-6, f64 = 1e-12 }

TestSoftmax = {}

for name in pairs(along) do
  TestSoftmax["test_" .. name .. "_any_dim_and_layout"] = function()
    local random = 1
    for _, shape in ipairs(SHAPES) do
      local a = naive.generate(shape, function()
        random = random * 48271 % 2147483647
        return (random % 4001 - 2000) / 256
      end)
      for dtype, bound in pairs(BOUNDS) do
        for _, place in ipairs(PLACES) do
          for _, lay in pairs(layouts) do
            for dim = 1, math.max(#shape, 1) do
              local x = lay(mr.tensor(naive.nested(a), { dtype = dtype, device = place }))
              check(name, x[name](x, dim), a, dim, bound, 1e-15)
              local negative = dim - math.max(#shape, 1) - 1
              lu.assertTrue(mr.equal(mr[name](x, negative), mr[name](x, dim)))
            end
          end
        end
      end
    end
  end

  TestSoftmax["test_" .. name .. "_of_hostile_rows"] = function()
    local rows = { { INF, 1, 2, 3 }, { -INF, -INF, -INF, -INF }, { -INF, 1, -INF, 2 }, { NAN, 1, 2, 3 },
      { 1, 2, 3, NAN }, { 3e38, -3e37, 0, 1 }, { 1000, 999, 998, -1000 }, { -1000, -1001, -1000, -999 },
      { 0, 0, 0, 0 }, { -INF, NAN, 0, INF }, { INF, INF, 0, 0 }, { 88, 88, 88, 89 } }
    local a = { shape = { #rows, 4 }, data = naive.flat(rows) }
    for dtype in pairs(BOUNDS) do
      for _, place in ipairs(PLACES) do
        local x = mr.tensor(rows, { dtype = dtype, device = place })
        check(name, x[name](x, 2), a, 2, 4e-6)
        -- The same rows as columns.
        local turned = x:t():contiguous()
        check(name, turned[name](turned, 1):t(), a, 2, 4e-6)
      end
    end
  end

  TestSoftmax["test_" .. name .. "_of_long_rows"] = function()
    for _, place in ipairs(PLACES) do
      for _, shape in ipairs{ { 3000 }, { 2, 70001 }, { 131072 }, { 66000, 5 } } do
        local dim = shape[1] > 1000 and 1 or 2
        local x = mr.randn(shape, { dtype = "f64", device = place })
        local e = (x - x:max(dim, true)):exp()
        local wanted = e / e:sum(dim, true)
        if name == "log_softmax" then wanted = wanted:log() end
        lu.assertTrue(mr.allclose(x[name](x, dim), wanted, { rtol = 1e-9, atol = 0 }))
        local narrow = x:to("f32")
        local got = narrow[name](narrow, dim)
        lu.assertTrue(mr.allclose(got:to("f64"), wanted, { rtol = 1e-5, atol = 0 }))
        -- However it lies, and in place: the same bits.
        local stepped = layouts.stepped(narrow)
        lu.assertTrue(mr.equal(stepped[name](stepped, dim), got))
        narrow[name](narrow, dim, { out = narrow })
        lu.assertTrue(mr.equal(narrow, got))
      end
    end
  end

  TestSoftmax["test_" .. name .. "_of_a_long_row_with_parts_of_minus_infinity"] = function()
    for _, place in ipairs(PLACES) do
      local x = mr.full({ 100000 }, -INF, { device = place })
      lu.assertTrue(x[name](x, 1):ne(x):all():item()) -- NaN
      x:narrow(1, 70000, 2):fill_(5)
      local y = x[name](x, 1)
      lu.assertAlmostEquals(y[70001]:item(), name == "softmax" and 0.5 or -math.log(2), 1e-6)
      lu.assertEquals(y[1]:item(), name == "softmax" and 0 or -INF)
      x:narrow(1, 50, 1):fill_(NAN)
      local broken = x[name](x, 1)
      lu.assertTrue(broken:ne(broken):all():item())
    end
  end

  TestSoftmax["test_" .. name .. "_dtypes"] = function()
    local a = { shape = { 2, 3 }, data = { 0, 1, 1, 1, 1, 0 } }
    for _, place in ipairs(PLACES) do
      for _, dtype in ipairs{ "bool", "u8", "i32", "i64", "f32", "f64" } do
        local x = mr.tensor(naive.nested(a), { dtype = "i32", device = place }):to(dtype)
        for dim = 1, 2 do
          local y = x[name](x, dim)
          lu.assertEquals(y.dtype, dtype == "f64" and "f64" or "f32")
          check(name, y, a, dim, 4e-6)
        end
      end
    end
  end

  TestSoftmax["test_" .. name .. "_out"] = function()
    for _, place in ipairs(PLACES) do
      local x = mr.randn(6, 8, { device = place })
      for dim = 1, 2 do
        local wanted = x[name](x, dim)
        local turned, wide = mr.zeros(8, 6, { device = place }):t(), mr.zeros(6, 8, { device = place, dtype = "f64" })
        lu.assertTrue(rawequal(x[name](x, dim, { out = turned }), turned))
        lu.assertTrue(mr.allclose(turned, wanted)) -- other layouts may add in another order
        lu.assertTrue(mr.allclose(mr[name](x, dim, { out = wide }):to("f32"), wanted))
        -- Every second column, and nothing between them.
        local around = mr.full({ 6, 16 }, 7.0, { device = place })
        x[name](x, dim, { out = around[{ {}, { 1, 16, 2 } }] })
        lu.assertTrue(mr.allclose(around[{ {}, { 1, 16, 2 } }], wanted))
        lu.assertTrue(around[{ {}, { 2, 16, 2 } }]:eq(7):all():item())
        -- In place, by the same tensor and by another view that is the same.
        local own, viewed = x:clone(), x:clone()
        lu.assertTrue(mr.equal(own[name](own, dim, { out = own }), wanted))
        viewed[name](viewed, dim, { out = viewed:view(6, 8) })
        lu.assertTrue(mr.equal(viewed, wanted))
      end
      -- An expanded input has each element several times.
      local row = mr.randn(1, 8, { device = place })
      local tall = row:expand(6, 8)
      lu.assertTrue(mr.equal(tall[name](tall, 2), row[name](row, 2):expand(6, 8)))
      check(name, tall[name](tall, 1), naive.of(tall), 1, 4e-6)
    end
  end

  TestSoftmax["test_" .. name .. "_of_nothing"] = function()
    for _, place in ipairs(PLACES) do
      for _, shape in ipairs{ { 0 }, { 0, 3 }, { 3, 0 }, { 2, 0, 3 } } do
        local x = mr.zeros(shape, { device = place })
        for dim = 1, #shape do lu.assertEquals(x[name](x, dim).shape, shape) end
      end
    end
  end

  TestSoftmax["test_" .. name .. "_misused"] = function()
    local function says(text, f, ...)
      local ok, err = pcall(f, ...)
      lu.assertFalse(ok)
      lu.assertStrContains(tostring(err), text)
    end
    local x = mr.zeros(2, 3)
    local f = mr[name]
    says(name .. ": dimension 3 of a tensor with 2 dimensions (1 to 2, or -1 to -2)", f, x, 3)
    says(name .. ": dimension -3 of a tensor with 2 dimensions", f, x, -3)
    says(name .. ": dimension 2 of a tensor with no dimensions", f, mr.tensor(1), 2)
    says("there is no dim 0", f, x, 0)
    says("expected an integer, got", f, x)
    says("expected an integer, got", f, x, 1.5)
    says("expected an integer, got", f, x, "1")
    says("expected an integer, got", f, x, {})
    says("expected a tensor", f, 5, 1)
    says("expected a tensor", f)
    says("too many", f, x, 1, { out = x }, 2)
    says("there is no option `dtype` here", f, x, 1, { dtype = "f64" })
    says("option `out`: expected a tensor", f, x, 1, { out = 5 })
    says("the result is", f, x, 1, { out = mr.zeros(3, 2) })
    says("cannot be written to", f, x, 1, { out = mr.zeros(2, 3, { dtype = "i32" }) })
    says("share one memory location", f, x, 1, { out = mr.zeros(1, 3):expand(2, 3) })
    local wide = mr.zeros(3, 4)
    says("share memory", f, wide:narrow(2, 1, 3), 1, { out = wide:narrow(2, 2, 3) })
    local square = mr.zeros(3, 3)
    says("share memory", f, square, 1, { out = square:t() })
    says("move one of them", f, x, 1, { out = mr.zeros(2, 3, { device = "cpu" }) })
    x:free()
    says("freed", f, x, 1)
  end

  TestSoftmax["test_" .. name .. "_in_streams"] = function()
    local producer, consumer = mr.stream(), mr.stream()
    local x = mr.zeros(64, 100)
    mr.synchronize()
    mr.with(producer, function()
      mr.spin{ ms = 0.1 }
      x:copy_(mr.arange(0, 6400):view(64, 100):to("f32"):mul(0.01))
    end)
    consumer:wait_stream(producer)
    local y = mr.with(consumer, function() return x[name](x, 2) end)
    consumer:synchronize()
    check(name, y, naive.of(x), 2, 1e-5)
    producer:synchronize()
  end
end

-- The hazard checker sees that the input is read and the output written; in place, both of one tensor.
function TestSoftmax.test_accesses()
  local a, b = mr.stream(), mr.stream()
  local x, y = mr.zeros(8, 8), mr.zeros(8, 8)
  mr.synchronize()
  local reports = mr.hazard.check(function()
    mr.with(a, function() x:softmax(2, { out = y }) end)
    mr.with(b, function() x:log_softmax(2) end)
  end)
  lu.assertEquals(#reports, 0)
  mr.synchronize()
  reports = mr.hazard.check(function()
    mr.with(a, function() x:softmax(2, { out = y }) end)
    mr.with(b, function() y:log_softmax(2) end)
  end)
  lu.assertEquals(#reports, 1)
  lu.assertEquals(reports[1].kind, "read-after-write")
  mr.synchronize()
  reports = mr.hazard.check(function()
    mr.with(a, function() x:softmax(2) end)
    mr.with(b, function() x:softmax(2, { out = x }) end)
  end)
  lu.assertEquals(#reports, 1)
  lu.assertEquals(reports[1].kind, "write-after-read")
  mr.synchronize()
end

os.exit(lu.LuaUnit.run())
