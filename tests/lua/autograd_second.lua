-- Gradients of gradients, mr.autograd.grad(..., {create_graph=true}): of every row of the operation table and of the
-- functions that move, view and join tensors, beside central differences of the gradients in f64.
-- not replayed: differences of gradients are more calls than the recorder holds
local lu = require "luaunit"
local mr = require "millrace"
local gradients = require "lua.support.gradients"
local naive = require "lua.support.naive"
local cases = require "lua.support.derivative_cases"

TestRows = {}

function TestRows.setUp() mr.manual_seed(13) end

for _, row in ipairs(mr.ops()) do
  local form = cases.forms_of(row)[1]
  if form and row.derivative ~= "none" and not cases.RANDOM[row.name] then
    TestRows["test_" .. row.name] = function()
      for k, case in ipairs(cases.of(row)) do
        local n = math.max(#case, row.inputs or 1)
        gradients.check_second(("%s, case %d"):format(row.name, k), form, table.unpack(case, 1, n))
      end
    end
  end
end

for name, case in pairs(cases.functions) do
  TestRows["test_function_" .. name] = function() gradients.check_second(name, table.unpack(case)) end
end

TestGradients = {}

local grad = mr.autograd.grad
local function leaf(value) return mr.tensor(value, { dtype = "f64", requires_grad = true }) end

function TestGradients.test_third_derivative()
  local x = leaf { 0.5, 2 }
  local y = (x ^ 4):sum()
  for k, factor in ipairs { 4, 12, 24 } do
    local g = grad(y, x, { create_graph = true })
    lu.assertTrue(mr.allclose(g:detach(), x:detach() ^ (4 - k) * factor))
    y = g:sum()
  end
end

-- The slope of gelu is smooth at 0, too: its derivative there is 2 / sqrt(2 pi).
function TestGradients.test_gelu_at_zero()
  local x = leaf { 0 }
  local g = grad(x:gelu(), x, { create_graph = true })
  lu.assertAlmostEquals(grad(g, x):item(), 2 / math.sqrt(2 * math.pi), 1e-12)
end

-- A penalty of the norm of a gradient, the usual purpose. By hand: y is the sum of w x^2, and its gradient has the
-- norm 2 w |x|.
function TestGradients.test_a_gradient_in_a_loss()
  local w, x = leaf(1.5), leaf { 3, 4 }
  local g = grad((w * x * x):sum(), x, { create_graph = true })
  lu.assertTrue(g.requires_grad)
  g:norm():backward()
  lu.assertAlmostEquals(w.grad:item(), 10, 1e-12)
  lu.assertTrue(mr.allclose(x.grad, mr.tensor({ 1.8, 2.4 }, { dtype = "f64" })))
end

function TestGradients.test_a_function_of_the_scripts()
  local cube = mr.autograd.Function {
    forward = function(ctx, x)
      ctx:save_for_backward(x)
      return x * x * x
    end,
    backward = function(ctx, g)
      local x = ctx:saved_tensors()
      return g * 3 * x * x
    end,
  }
  local x = leaf { 2, -1 }
  local g = grad(cube(x):sum(), x, { create_graph = true })
  lu.assertEquals(grad(g:sum(), x):totable(), { 12, -6 })
end

-- No gradient is lost silently: its derivative is a kernel.
function TestGradients.test_a_kernel_has_no_second_derivative()
  local square = mr.elementwise("double x -> double z", "z = x * x", { derivative = { x = "2 * x * g" } })
  local x = leaf { 2 }
  naive.assert_raises({ "has no derivative of its own", "create_graph" }, function()
    grad(square(x), x, { create_graph = true })
  end)
  lu.assertEquals(grad(square(x), x):totable(), { 4 })
end

-- The graph stays unless it is said otherwise, and without create_graph nothing is recorded.
function TestGradients.test_what_stays()
  local x = leaf { 2 }
  local y = x * x * x
  lu.assertFalse(grad(y, x, { retain_graph = true }).requires_grad)
  grad(y, x, { create_graph = true })
  lu.assertEquals(grad(y, x, { create_graph = true, retain_graph = false }):totable(), { 12 })
  naive.assert_raises({ "freed", "retain_graph" }, function() grad(y, x) end)
  naive.assert_raises({ "create_graph", "true or false" }, function() grad(x * 2, x, { create_graph = 1 }) end)
  naive.assert_raises("create_graph", function() (x * 2):backward { create_graph = true } end)
  lu.assertNil(x.grad)
end

-- On the streams of forward, in both passes.
function TestGradients.test_streams()
  local a, b = mr.stream { name = "a" }, mr.stream { name = "b" }
  local x = leaf { 1, 2, 3 }
  local result
  local reports = mr.hazard.check(function()
    local main = mr.current_stream()
    mr.barrier { main, a, b }
    local left = a:run(function() return x * x end)
    local right = b:run(function() return x:exp() end)
    main:wait_stream(a)
    main:wait_stream(b)
    left:record_stream(main)
    right:record_stream(main)
    local g = grad((left * right):sum(), x, { create_graph = true })
    result = grad(g:sum(), x)
    mr.synchronize()
  end)
  lu.assertEquals(#reports, 0)
  local v = x:detach()
  lu.assertTrue(mr.allclose(result, (v * v + v * 4 + 2) * v:exp()))
end

os.exit(lu.LuaUnit.run())
