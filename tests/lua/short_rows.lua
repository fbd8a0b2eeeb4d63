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

os.exit(lu.LuaUnit.run())
