-- Rows that are reduced or summed up side by side have the bits of each row by itself, for each dtype, length, number
-- of rows and layout in memory.
-- not replayed: more small calls than the recorder holds
local lu = require "luaunit"
local mr = require "millrace"

local DTYPES = { "f32", "f64", "f16", "bf16", "i32", "i64", "u8", "bool" }
local REDUCTIONS = { "sum", "mean", "prod", "max", "min", "argmax", "argmin", "any", "all", "norm", "var", "std" }

local function same(a, b) return a == b or (a ~= a and b ~= b) end

-- Values of both signs, some of them equal; floats have an infinity and a NaN.
local function values(rows, length, dtype)
  local x = mr.randn(rows, length, { device = "cpu" }):mul(3):to(dtype)
  if dtype:find "f" then
    x[1][length], x[rows][1] = math.huge, 0 / 0
  end
  return x
end

-- The same values as a view with other distances between rows, and between elements.
local function layouts(x)
  local rows, length = x:size(1), x:size(2)
  local wide = mr.zeros(rows, length + 3, { dtype = x.dtype, device = "cpu" }):narrow(2, 2, length):copy_(x)
  local cube = x:view(rows, 1, length):expand(rows, 3, length)
  return { dense = x, apart = wide, turned = x:t():contiguous():t(), cube = cube }
end

local function check_rows(what, name, x, of_rows)
  for k = 1, x:size(1) do
    local row = x[k]:contiguous():view(-1, x:size(-1))[1]:clone()
    local wanted, got = (row[name](row)), of_rows[k]
    if got.ndim > 0 then got = got[1] end
    if not same(wanted:item(), got:item()) then
      lu.fail(("%s: row %d: %s, by itself %s"):format(what, k, got:item(), wanted:item()))
    end
  end
end

TestRows = {}

for _, name in ipairs(REDUCTIONS) do
  TestRows["test_" .. name] = function()
    mr.manual_seed(1)
    for _, dtype in ipairs(DTYPES) do
      local takes = pcall(function() return mr.ones(2, { dtype = dtype, device = "cpu" })[name] and
        mr[name](mr.ones(2, { dtype = dtype, device = "cpu" })) end)
      for _, length in ipairs(takes and { 1, 2, 7, 33, 63, 64, 65, 150, 2048, 2049 } or {}) do
        for _, rows in ipairs(length < 1000 and { 2, 16, 19 } or { 3 }) do
          local all = layouts(values(rows, length, dtype))
          all.turned = nil -- columns are added up in another order
          for layout, x in pairs(all) do
            local ok, result = pcall(function() return (x[name](x, -1)) end)
            lu.assertTrue(ok, result)
            check_rows(("%s of %s, %d rows of %d, %s"):format(name, dtype, rows, length, layout), name, x, result)
          end
        end
      end
    end
  end
end

-- An output that is not dense, and one whose dtype is another.
function TestRows.test_into_a_view()
  local x, out = mr.randn(40, 5, { device = "cpu" }), mr.zeros(40, 2, { device = "cpu" })
  mr.sum(x, 2, { out = out:select(2, 2) })
  lu.assertEquals(out:select(2, 2):totable(), x:sum(2):totable())
  lu.assertEquals(out:select(2, 1):sum():item(), 0)
end

TestScans = {}

-- One element after the other, in double and rounded at each place.
local function naive_scan(row, product)
  local sum, result = product and 1 or 0, {}
  for i, v in ipairs(row:to("f64"):totable()) do
    sum = product and sum * v or sum + v
    result[i] = sum
  end
  return mr.tensor(result, { dtype = "f64", device = "cpu" })
end

for name, product in pairs { cumsum = false, cumprod = true } do
  TestScans["test_" .. name] = function()
    mr.manual_seed(2)
    for _, dtype in ipairs { "f32", "f64", "f16", "i32", "i64", "u8" } do
      for _, length in ipairs { 1, 3, 40, 700 } do
        for _, rows in ipairs { 1, 2, 17, 40 } do
          local small = mr.randn(rows, length, { device = "cpu" }):mul(1.3):to(dtype)
          if dtype:find "f" and length > 3 then
            small[1][length // 2], small[rows][3] = 0 / 0, -math.huge
            small[(rows + 1) // 2][length - 1] = math.huge
          end
          for layout, x in pairs(layouts(product and dtype:find "[iu]" and small:clamp(0, 1) or small)) do
            local got = x[name](x, -1)
            for k = 1, rows do
              local row, line = x[k], got[k]
              if row.ndim == 2 then row, line = row[2], line[2] end
              lu.assertTrue(mr.allclose(line:to "f64", naive_scan(row, product):to(line.dtype):to "f64",
                { rtol = 0, atol = 0, equal_nan = true }),
                ("%s of %s, row %d of %d with %d, %s"):format(name, dtype, k, rows, length, layout))
            end
          end
        end
      end
    end
  end
end

-- A NaN has the same bits whether its line went through the loop of dense lines or through a block.
function TestScans.test_bits_of_nan()
  for _, dtype in ipairs { "f32", "f64" } do
    for rows, nan in pairs { 0 / 0, -(0 / 0), [5] = 0 / 0, [6] = -(0 / 0) } do
      local x = mr.full({ rows, 40 }, nan, { dtype = dtype, device = "cpu" })
      for _, name in ipairs { "cumsum", "cumprod" } do
        local dense, turned = x[name](x, 2), x:t():contiguous():t()
        turned = turned[name](turned, 2)
        lu.assertEquals(string.pack("<d", dense[rows][40]:item()), string.pack("<d", turned[rows][40]:item()))
      end
    end
  end
end

TestSoftmax = {}

-- Elements that are -inf add exactly 0 to a row's sum. So a short row has the bits of the same row with many of them
-- behind it. That one is too long to be weighed with others.
for _, name in ipairs { "softmax", "log_softmax" } do
  TestSoftmax["test_" .. name] = function()
    mr.manual_seed(3)
    for _, dtype in ipairs { "f32", "f64", "f16", "bf16" } do
      for _, length in ipairs { 1, 2, 7, 16, 33, 63, 64, 65, 127, 128 } do
        for _, rows in ipairs { 1, 2, 16, 19, 40 } do
          local small = mr.randn(rows, length, { device = "cpu" }):mul(3):to(dtype)
          if length > 2 then
            small[1][length], small[rows][1] = -math.huge, math.huge
            small[(rows + 1) // 2]:fill_(-math.huge)
          end
          for layout, x in pairs(layouts(small)) do
            local behind = x.shape
            behind[#behind] = 300 - length
            local long = mr.cat({ x, mr.full(behind, -math.huge, { dtype = dtype, device = "cpu" }) }, -1)
            local got, wanted = x[name](x, -1), long[name](long, -1):narrow(-1, 1, length)
            lu.assertTrue(mr.allclose(got:to "f64", wanted:to "f64", { rtol = 0, atol = 0, equal_nan = true }),
              ("%s of %s, %d rows of %d, %s"):format(name, dtype, rows, length, layout))
            local turned = x.ndim == 2 and { length, rows } or { 3, rows, length }
            local out = mr.zeros(turned, { dtype = dtype, device = "cpu" }):transpose(1, 2)
            mr[name](x, -1, { out = out })
            lu.assertTrue(mr.allclose(got, out, { rtol = 0, atol = 0, equal_nan = true }), layout)
          end
        end
      end
    end
  end
end

os.exit(lu.LuaUnit.run())
