-- The derivative of every row of the operation table, and of every function that moves, views and joins tensors, beside
-- central differences in f64. A row without a derivative, or without a case here, fails.
local lu = require "luaunit"
local mr = require "millrace"
local gradients = require "lua.support.gradients"

local cases = require "lua.support.derivative_cases"

local check, cases_of, forms_of, any = gradients.check, cases.of, cases.forms_of, cases.any
local RANDOM, ONLY_IN_PLACE = cases.RANDOM, cases.ONLY_IN_PLACE

TestRows = {}

function TestRows.setUp() mr.manual_seed(11) end

function TestRows.test_every_row_has_a_derivative_or_says_none()
  for _, row in ipairs(mr.ops()) do
    lu.assertTrue(type(row.derivative) == "string" and row.derivative ~= "", row.name .. " has no derivative")
  end
end

for _, row in ipairs(mr.ops()) do
  if row.derivative and row.derivative ~= "none" and not RANDOM[row.name] then
    TestRows["test_" .. row.name] = function()
      local list = cases_of(row)
      lu.assertNotNil(list, "no case for the row " .. row.name)
      for k, case in ipairs(list) do
        local n = case.n or math.max(#case, row.inputs or 1)
        local what = ("%s, case %d"):format(row.name, k)
        for _, form in ipairs(forms_of(row)) do check(what, form, table.unpack(case, 1, n)) end
        if row.forms.method then gradients.check_on_device(what, forms_of(row)[1], table.unpack(case, 1, n)) end
      end
    end
  end
  if row.derivative and row.derivative ~= "none" and row.forms.in_place and not RANDOM[row.name] then
    TestRows["test_" .. row.name .. "_in_place"] = function()
      for k, case in ipairs(cases_of(row)) do
        local x = case[1]
        local n = math.max(#case, row.inputs or 1)
        local fits = type(x) == "userdata" and x.dtype == "f64"
        for i = 2, ONLY_IN_PLACE[row.name] and 1 or n do
          local t = case[i]
          if type(t) == "userdata" and t.ndim > 0 then -- must broadcast to x
            fits = fits and #t.shape <= #x.shape
            for d = 1, #t.shape do
              local size = x.shape[#x.shape - #t.shape + d]
              fits = fits and (t.shape[d] == size or t.shape[d] == 1)
            end
          end
        end
        if fits then
          check(("%s_, case %d"):format(row.name, k), function(t, ...)
            local y = t * 1
            return y[row.name .. "_"](y, ...)
          end, table.unpack(case, 1, n))
        end
      end
    end
  end
end

function TestRows.test_random_values_have_no_gradient()
  for name in pairs(RANDOM) do
    local x = any(4):requires_grad_()
    local y = x * 2
    y[name .. "_"](y)
    y:sum():backward()
    lu.assertTrue(mr.equal(x.grad, mr.zeros_like(x)), name)
  end
end

TestFunctions = {}

function TestFunctions.setUp() mr.manual_seed(12) end

for name, case in pairs(cases.functions) do
  TestFunctions["test_" .. name] = function()
    check(name, table.unpack(case))
    if name ~= "pin_memory" then gradients.check_on_device(name, table.unpack(case)) end
  end
end

-- ---------------------------------------------------------------- ties and edges, as PyTorch has them

TestEdges = {}

local function gradient_of(f, values)
  local x = mr.tensor(values, { dtype = "f64" }):requires_grad_()
  f(x):sum():backward()
  return x.grad:totable()
end

function TestEdges.test_where_the_derivative_jumps()
  lu.assertEquals(gradient_of(function(x) return x:abs() end, { -1, 0, 2 }), { -1, 0, 1 })
  lu.assertEquals(gradient_of(function(x) return x:relu() end, { -1, 0, 2 }), { 0, 0, 1 })
  lu.assertEquals(gradient_of(function(x) return x:clamp(-1, 1) end, { -2, -1, 0, 1, 2 }), { 0, 1, 1, 1, 0 })
  lu.assertEquals(gradient_of(function(x) return x:norm() end, { 0, 0 }), { 0, 0 })
  lu.assertEquals(gradient_of(function(x) return x:pow(0) end, { 0, 2 }), { 0, 0 })
  lu.assertEquals(gradient_of(function(x) return x:sqrt() end, { 0 }), { math.huge })
end

function TestEdges.test_ties()
  lu.assertEquals(gradient_of(function(x) return x:max() end, { 3, 1, 3 }), { 0.5, 0, 0.5 })
  lu.assertEquals(gradient_of(function(x) return (x:max(1)) end, { 3, 1, 3 }), { 1, 0, 0 })
  lu.assertEquals(gradient_of(function(x) return x:maximum(mr.tensor({ 3, 3, 3 }, { dtype = "f64" })) end, { 2, 3, 4 }),
    { 0, 0.5, 1 })
  lu.assertEquals(gradient_of(function(x) return x:minimum(mr.tensor({ 3, 3, 3 }, { dtype = "f64" })) end, { 2, 3, 4 }),
    { 1, 0.5, 0 })
end

function TestEdges.test_a_gradient_has_the_dtype_of_its_tensor()
  local x = mr.tensor({ 1, 2 }, { dtype = "f32" }):requires_grad_()
  local y = mr.tensor({ 3, 4 }, { dtype = "f64" }):requires_grad_()
  local z = x:to("f64") * y + x * y
  z:sum():backward()
  lu.assertEquals(x.grad.dtype, "f32")
  lu.assertEquals(y.grad.dtype, "f64")
  lu.assertEquals(x.grad:totable(), { 6, 8 })
  lu.assertFalse(x:to("i32").requires_grad)
end

-- With operands of all dtypes, also integers: what a derivative makes of them has a dtype of its own.
function TestEdges.test_a_gradient_has_the_dtype_of_its_leaf_whatever_the_other_operand_is()
  local others = { 2, 2.5, mr.tensor(2), mr.tensor(2.5), mr.tensor({ 2, 3 }), mr.tensor({ 2, 3 }, { dtype = "u8" }),
    mr.tensor(2.5, { dtype = "f64" }), mr.tensor({ 2.5, 3 }, { dtype = "bf16" }) }
  for _, name in ipairs { "add", "sub", "mul", "div", "pow", "maximum", "minimum", "remainder", "fmod", "atan2" } do
    for k, other in ipairs(others) do
      for _, dtype in ipairs { "f16", "bf16", "f32", "f64" } do
        for turned = 1, 2 do
          local x = mr.tensor({ 1, 2 }, { dtype = dtype }):requires_grad_()
          local y
          if turned == 1 then y = mr[name](x, other) else y = mr[name](other, x) end
          y:sum():backward()
          lu.assertEquals(x.grad.dtype, dtype, ("%s with operand %d in place %d"):format(name, k, 3 - turned))
        end
      end
    end
  end
end

-- NaN is neither greater nor less, so no gradient stops there.
function TestEdges.test_nan_passes_gradients_on()
  local nan = 0 / 0
  local function three(name) return function(x) return x[name](x) end end
  lu.assertEquals(gradient_of(three "relu", { 1, nan, -3 }), { 1, 1, 0 })
  for _, name in ipairs { "max", "min", "amax", "amin", "median" } do
    lu.assertEquals(gradient_of(three(name), { 1, nan, 3 }), { 0, 1, 0 }, name)
  end
  lu.assertEquals(gradient_of(function(x) return x:amax(2) end, { { 1, nan }, { nan, nan }, { 2, 3 } }),
    { { 0, 1 }, { 0.5, 0.5 }, { 0, 1 } })
  local one = mr.tensor(1, { dtype = "f64" })
  for _, name in ipairs { "maximum", "minimum" } do
    lu.assertEquals(gradient_of(function(x) return x[name](x, one) end, { nan, 1 }), { 1, 0.5 }, name)
    lu.assertEquals(gradient_of(function(x) return one[name](one, x) end, { nan, 1 }), { 1, 0.5 }, name)
  end
end

function TestEdges.test_products_with_zeros()
  lu.assertEquals(gradient_of(function(x) return x:prod() end, { 2, 0, 3 }), { 0, 6, 0 })
  lu.assertEquals(gradient_of(function(x) return x:prod() end, { 2, 0, 0 }), { 0, 0, 0 })
  lu.assertEquals(gradient_of(function(x) return x:prod(2) end, { { 2, 0 }, { 2, 4 } }), { { 0, 2 }, { 4, 2 } })
end

os.exit(lu.LuaUnit.run())
