-- Gradients as scripts meet them: leaves and results, changes in place, what is freed, the messages, operations with
-- derivatives of their own. autograd_rows.lua tests each derivative, autograd_streams.lua streams.
local lu = require "luaunit"
local mr = require "millrace"

local function leaf(values, options) return mr.tensor(values, options):requires_grad_() end

local function says(text, f, ...)
  local ok, err = pcall(f, ...)
  lu.assertFalse(ok, "expected an error with: " .. text)
  lu.assertStrContains(tostring(err), text)
  return tostring(err)
end

local function here(offset) return "autograd.lua:" .. debug.getinfo(2, "l").currentline + (offset or 0) end

TestBasics = {}

-- A name that Lua does not know, such as False, is nil.
function TestBasics.test_only_true_and_false_say_what_is_required()
  local x = mr.ones(2)
  says("requires_grad: expected true or false, got nil", function() x.requires_grad = nil end)
  says("requires_grad_: argument 1: expected true or false, got nil", function() x:requires_grad_(nil) end)
  says("got a number", function() x.requires_grad = 1 end)
  lu.assertFalse(x.requires_grad)
end

function TestBasics.test_tostring_says_what_requires_gradients()
  local x = leaf { 1.0, 2.0 }
  lu.assertStrContains(tostring(x), ", requires_grad")
  local y = x * 2
  lu.assertStrContains(tostring(y), "grad_fn mul at")
  lu.assertNotStrContains(tostring(y:detach()), "grad_fn")
  x:free()
  lu.assertStrContains(tostring(x), "(freed)")
end

function TestBasics.test_messages_for_leaves_name_functions_that_exist()
  local x = leaf { 1.0, 2.0 }
  says("x = x:add(...)", function() x:add_(1) end)
  says("x = x:clone():zero_(...)", function() x:zero_() end)
  says("x = x:clone():uniform_(...)", function() x:uniform_() end)
  says("x = x:scatter(...)", function() x:scatter_(1, mr.tensor { 1 }, 0) end)
end

function TestBasics.test_facts_of_leaves_and_results()
  local x = mr.ones(3)
  lu.assertFalse(x.requires_grad)
  lu.assertTrue(x.is_leaf)
  lu.assertNil(x.grad)
  lu.assertNil(x.grad_fn)
  lu.assertTrue(rawequal(x:requires_grad_(), x))
  lu.assertTrue(x.requires_grad)
  lu.assertTrue(x.is_leaf)
  local y = x * 2
  lu.assertTrue(y.requires_grad)
  lu.assertFalse(y.is_leaf)
  lu.assertStrMatches(y.grad_fn, "mul at .*autograd.lua:%d+")
  lu.assertFalse(y:detach().requires_grad)
  lu.assertTrue(mr.equal(y:detach(), y))
  lu.assertFalse(x:gt(0).requires_grad)
  lu.assertFalse(x:argmax().requires_grad)
  x:requires_grad_(false)
  lu.assertFalse(x.requires_grad)
  lu.assertFalse((x * 2).requires_grad)
  x.requires_grad = true
  lu.assertTrue(x.requires_grad)
end

function TestBasics.test_gradients_add_up()
  local x = leaf { 1.0, 2.0 }
  for k = 1, 3 do
    (x * x):sum():backward()
    lu.assertEquals(x.grad:totable(), { 2.0 * k, 4.0 * k })
  end
  x.grad = nil
  lu.assertNil(x.grad)
  x.grad = mr.tensor { 10.0, 20.0 };
  (x * 3):sum():backward()
  lu.assertEquals(x.grad:totable(), { 13.0, 23.0 })
end

function TestBasics.test_a_gradient_of_any_shape_can_be_given()
  local x = leaf { 1.0, 2.0 }
  local y = x * x;
  y:backward(mr.tensor { 1.0, 10.0 })
  lu.assertEquals(x.grad:totable(), { 2.0, 40.0 })
end

function TestBasics.test_a_given_gradient_is_not_changed_and_not_kept()
  local x, z = leaf { 1.0, 2.0 }, leaf { 0.0, 0.0 }
  local g = mr.tensor { 1.0, 1.0 };
  (x + z + x):backward(g)
  x.grad:add_(5)
  lu.assertEquals(g:totable(), { 1.0, 1.0 })
  lu.assertEquals(z.grad:totable(), { 1.0, 1.0 })
  lu.assertEquals(x.grad:totable(), { 7.0, 7.0 })
end

function TestBasics.test_leaves_never_share_a_gradient()
  local x, y, w = leaf { 1.0, 2.0 }, leaf { 3.0, 4.0 }, leaf { { 1.0, 1.0 } };
  (x + y + w:view(2)):mul(2):sum():backward()
  x.grad:fill_(7)
  lu.assertEquals(y.grad:totable(), { 2.0, 2.0 })
  lu.assertEquals(w.grad:totable(), { { 2.0, 2.0 } })
  lu.assertTrue(w.grad.contiguous)
end

function TestBasics.test_a_diamond_and_a_shared_part()
  local x = leaf { 3.0 }
  local a = x * 2
  local b, c = a * a, a + 1
  (b * c + a):sum():backward() -- 4x^2 (2x + 1) + 2x
  lu.assertEquals(x.grad:item(), 24 * 9 + 8 * 3 + 2)
end

function TestBasics.test_functions_in_locals_are_recorded_too()
  local mul, tanh = mr.mul, mr.tanh
  local x = leaf { 0.5 }
  lu.assertTrue(tanh(mul(x, 2)).requires_grad)
end

function TestBasics.test_no_grad_and_enable_grad()
  local x = leaf { 1.0 }
  lu.assertTrue(mr.is_grad_enabled())
  local y, enabled, inner = mr.no_grad(function(t)
    return t * 2, mr.is_grad_enabled(), mr.enable_grad(function() return t * 2 end)
  end, x)
  lu.assertFalse(y.requires_grad)
  lu.assertFalse(enabled)
  lu.assertTrue(inner.requires_grad)
  lu.assertFalse(pcall(mr.no_grad, error))
  lu.assertTrue(mr.is_grad_enabled())
  mr.no_grad(function() x:sub_(0.5) end)
  lu.assertEquals(x:totable(), { 0.5 })
  says("no_grad: argument 1: expected a function, got a number", mr.no_grad, 5)
end

function TestBasics.test_retain_grad()
  local x = leaf { 1.0, 2.0 }
  local y = (x * 3):retain_grad()
  local z = y * y
  z:sum():backward()
  lu.assertEquals(y.grad:totable(), { 6.0, 12.0 })
  lu.assertNil(z.grad)
  says("does not require gradients", function() mr.ones(2):retain_grad() end)
end

function TestBasics.test_gradients_of_chosen_inputs_leave_grad_as_it_is()
  local x, w, unused = leaf { 2.0 }, leaf { 3.0 }, leaf { 1.0 }
  local h = x * w
  local y = h * h
  local gw, gh = mr.autograd.grad(y, { w, h }, { retain_graph = true })
  lu.assertEquals(gw:item(), 24)
  lu.assertEquals(gh:item(), 12)
  lu.assertNil(w.grad)
  local gx = mr.autograd.grad({ y, h }, x, { mr.tensor { 10.0 }, mr.tensor { 1.0 } }, { retain_graph = true })
  lu.assertEquals(gx:item(), 10 * 36 + 3)
  says("no output depends on input 2", mr.autograd.grad, y, { x, unused }, nil, { retain_graph = true })
  local first, second = mr.autograd.grad(y, { x, unused }, { allow_unused = true })
  lu.assertEquals(first:item(), 36)
  lu.assertNil(second)
end

-- Nothing is computed that the wanted inputs do not need.
function TestBasics.test_a_branch_that_is_not_wanted_is_left_out()
  local x, w = leaf { 2.0 }, leaf { 3.0 }
  local ran = 0
  local f = mr.autograd.Function { forward = function(_, t) return t * 1 end,
    backward = function(_, g) ran = ran + 1 return g end }
  local y = f(x) * w
  mr.autograd.grad(y, w, { retain_graph = true })
  lu.assertEquals(ran, 0)
  mr.autograd.grad(y, x)
  lu.assertEquals(ran, 1)
end

function TestBasics.test_a_chain_of_a_hundred_thousand_nodes()
  local x = mr.tensor({ 1.0 }, { device = "cpu" }):requires_grad_()
  local y = x
  for _ = 1, 100000 do y = y + 1 end
  y:backward()
  lu.assertEquals(x.grad:item(), 1)
end

function TestBasics.test_a_tensor_on_the_host()
  local x = mr.tensor({ 1.0, 2.0 }, { device = "cpu" }):requires_grad_()
  local y = (x:cuda() * 2):cpu() * x
  y:sum():backward()
  lu.assertEquals(x.grad.device, "cpu")
  lu.assertEquals(x.grad:totable(), { 4.0, 8.0 })
end

function TestBasics.test_halves()
  local x, w = leaf({ 1.0, 2.0 }, { dtype = "f16" }), leaf { 3.0, 4.0 }
  local v = leaf({ 0.5, 0.25 }, { dtype = "bf16" });
  (x * w + (v * v):to("f32")):sum():backward()
  lu.assertEquals({ x.grad.dtype, w.grad.dtype, v.grad.dtype }, { "f16", "f32", "bf16" })
  lu.assertEquals(x.grad:totable(), { 3.0, 4.0 })
  lu.assertEquals(w.grad:totable(), { 1.0, 2.0 })
  lu.assertEquals(v.grad:totable(), { 1.0, 0.5 })
end

-- ---------------------------------------------------------------- memory

TestMemory = {}

-- Live device memory, in bytes.
local function live()
  collectgarbage()
  collectgarbage()
  return mr.memory.allocated()
end

function TestMemory.test_the_graph_goes_with_backward()
  local x = leaf { 1.0 }
  local function train()
    local y = mr.zeros(1000) + x
    for _ = 1, 10 do y = y:tanh() end
    y:sum():backward()
    x.grad = nil
  end
  local before
  for round = 1, 3 do
    train()
    mr.synchronize()
    if round == 1 then before = live() else lu.assertEquals(live(), before) end
  end
end

function TestMemory.test_a_graph_without_backward_goes_too()
  local x = leaf { 1.0 }
  local before = live()
  do
    local y = mr.zeros(1000) + x
    for _ = 1, 10 do y = y:tanh() end
  end
  lu.assertEquals(live(), before)
end

function TestMemory.test_what_no_derivative_reads_is_not_kept()
  local x = leaf { 1.0 }
  local before = live()
  local y = mr.zeros(100000) + x
  for _ = 1, 5 do y = y + 1 end
  lu.assertTrue(live() - before < 900000)
  y:sum():backward()
end

-- ---------------------------------------------------------------- changes in place

TestInPlace = {}

function TestInPlace.test_of_a_leaf_is_refused()
  local x = leaf { 1.0, 2.0 }
  x:name("x")
  says("add_: `x` is a leaf that requires gradients", function() x:add_(1) end)
  says("t[i]=: ", function() x[1] = 5 end)
  says("mul_: ", function() x[1]:mul_(2) end)
  says("zero_: ", function() x:view(1, 2):zero_() end)
  says("copy_: ", function() x:copy_(mr.ones(2)) end)
  lu.assertEquals(x:totable(), { 1.0, 2.0 })
end

function TestInPlace.test_a_view_of_a_leaf_made_without_recording_is_refused_too()
  local x = leaf { 1.0, 2.0 }
  local v = mr.no_grad(function() return x[1] end)
  says("is a view of", function() v:mul_(2) end)
end

function TestInPlace.test_a_kept_value_that_was_changed_names_both_lines()
  local x = leaf { 1.0, 2.0 }
  local w = mr.tensor { 3.0, 4.0 }
  w:name("w")
  local y = x * w
  local kept = here(-1)
  w:add_(1)
  local changed = here(-1)
  local err = says("changed them in place", function() y:sum():backward() end)
  lu.assertStrContains(err, "mul at tests/lua/" .. kept)
  lu.assertStrContains(err, "add_ at tests/lua/" .. changed)
  lu.assertStrContains(err, "`w`")
  lu.assertNil(x.grad)
  w:sub_(1) -- the values are back, but nobody knows that
  says("changed them in place", function() y:sum():backward() end)
end

function TestInPlace.test_of_what_was_not_kept_is_allowed()
  local x = leaf { 1.0, 2.0 }
  local w = mr.tensor { 3.0, 4.0 }
  local y = x + w
  w:add_(1)
  y:sum():backward()
  lu.assertEquals(x.grad:totable(), { 1.0, 1.0 })
end

function TestInPlace.test_by_kernels_copies_and_views_is_noticed()
  local writers = {
    function(w) w:copy_(mr.ones(2)) end,
    function(w) w:view(1, 2):zero_() end,
    function(w) w[1] = 3 end,
    function(w) mr.memset(w, 0) end,
    function(w) mr.memcpy(w, mr.ones(2)) end,
    function(w) mr.op { writes = { w } } end,
    function(w) mr.ones(2):mul(2, { out = w }) end,
  }
  for k, write in ipairs(writers) do
    local x, w = leaf { 1.0, 2.0 }, mr.tensor { 3.0, 4.0 }
    local y = (x * w):sum()
    write(w)
    says("changed them in place", function() y:backward() end)
    lu.assertNil(x.grad, "writer " .. k)
  end
end

function TestInPlace.test_out_is_refused()
  local x = leaf { 1.0, 2.0 }
  says("out= cannot be recorded", function() x:mul(2, { out = mr.zeros(2) }) end)
  says("out= cannot be recorded", function() x:sum({ out = mr.zeros({}) }) end)
  says("out= cannot be recorded", function() mr.ones(2):mul(2, { out = x * 1 }) end)
  mr.no_grad(function() x:mul(2, { out = mr.zeros(2) }) end)
end

-- ---------------------------------------------------------------- misuse

TestMisuse = {}

function TestMisuse.test_of_backward()
  local x = leaf { 1.0, 2.0 }
  x:name("x")
  local y = x * x
  y:name("y")
  says("backward: `y` has 2 elements", function() y:backward() end)
  says("expected f32 of shape {2}", function() y:backward(mr.ones(3)) end)
  says("is f64 of shape {2}", function() y:backward(mr.ones(2, { dtype = "f64" })) end)
  says("is on cpu", function() y:backward(mr.ones(2, { device = "cpu" })) end)
  says("expected a tensor, got a string", function() y:backward("g") end)
  says("there is no option `retain`", function() y:backward(nil, { retain = true }) end)
  says("option `retain_graph`: expected true or false", function() y:backward(nil, { retain_graph = 1 }) end)
  says("does not require gradients", function() mr.ones(1):backward() end)
  says("outside of mr.no_grad", function() mr.no_grad(function() mr.ones(1):backward() end) end)
  lu.assertNil(x.grad)
  y:sum():backward()
  lu.assertEquals(x.grad:totable(), { 2.0, 4.0 })
end

function TestMisuse.test_twice()
  local x = leaf { 1.0, 2.0 }
  local y = (x * x):sum()
  y:backward(nil, { retain_graph = true })
  y:backward()
  local freed = here(-1)
  local err = says("set retain_graph=true", function() y:backward() end)
  lu.assertStrContains(err, freed)
  lu.assertEquals(x.grad:totable(), { 4.0, 8.0 })
end

function TestMisuse.test_a_freed_tensor_in_the_graph()
  local x, w = leaf { 1.0, 2.0 }, mr.tensor { 3.0, 4.0 }
  w:name("w")
  local y = (x * w):sum()
  w:free()
  local freed = here(-1)
  local err = says("backward: mul at", function() y:backward() end)
  lu.assertStrContains(err, "`w`")
  lu.assertStrContains(err, "was freed at")
  lu.assertStrContains(err, freed)
  lu.assertNil(x.grad)
end

function TestMisuse.test_a_closed_tensor_in_the_graph()
  local x = leaf { 1.0, 2.0 }
  local y
  do
    local w <close> = mr.tensor { 3.0, 4.0 }
    y = (x * w):sum()
  end
  says("was closed at", function() y:backward() end)
end

-- A pass that fails has changed nothing, and can be repeated.
function TestMisuse.test_a_pass_that_fails()
  local broken = true
  local f = mr.autograd.Function {
    forward = function(_, t) return t * 2 end,
    backward = function(_, g)
      if broken then error("no luck") end
      return g * 2
    end,
  }
  local side = mr.stream()
  local x, w = leaf { 1.0, 2.0 }, leaf { 3.0, 4.0 }
  local y = side:run(function() return (f(x * w) * w):sum() end)
  says("no luck", function() y:backward() end)
  lu.assertNil(x.grad)
  lu.assertNil(w.grad)
  lu.assertTrue(mr.is_grad_enabled())
  lu.assertTrue(rawequal(mr.current_stream(), mr.default_stream()))
  broken = false
  y:backward()
  lu.assertEquals(x.grad:totable(), { 18.0, 32.0 })
end

function TestMisuse.test_the_stream_of_forward_was_closed()
  local x = leaf { 1.0 }
  local y
  do
    local gone <close> = mr.stream { name = "gone" }
    y = gone:run(function() return x * x end)
  end
  mr.synchronize()
  local err = says("stream `gone` is closed", function() y:backward() end)
  lu.assertStrContains(err, "backward of mul at")
  lu.assertNil(x.grad)
end

function TestMisuse.test_integers_have_no_gradients()
  says("is i64; only tensors of floats", function() mr.arange(3):requires_grad_() end)
  says("expected true or false", function() mr.ones(3):requires_grad_(1) end)
  local x = leaf { 1.0 }
  says("so its requires_grad cannot be set", function() (x * 2):requires_grad_(false) end)
end

function TestMisuse.test_of_grad()
  local x = leaf { 1.0, 2.0 }
  x:name("x")
  says("expected f32 of shape {2}", function() x.grad = mr.ones(3) end)
  says("expected a tensor, got a number", function() x.grad = 5 end)
  says("is not a leaf", function() (x * 2).grad = mr.ones(2) end)
  says("field `gard`", function() x.gard = mr.ones(2) end)
  says("inputs: expected a tensor or a list", mr.autograd.grad, (x * x):sum(), {})
  says("entry 1 is a number", mr.autograd.grad, (x * x):sum(), { 1 })
end

function TestMisuse.test_in_a_host_function()
  local x = leaf { 1.0 }
  local y = x * 2
  local s = mr.stream()
  local err
  s:host_func(function()
    local _
    _, err = pcall(y.backward, y)
  end)
  s:synchronize()
  lu.assertStrContains(tostring(err), "host function")
  lu.assertNil(x.grad)
  y:backward()
  lu.assertEquals(x.grad:item(), 2)
end

function TestMisuse.test_after_a_reset()
  local x = leaf { 1.0 }
  local y = x * x
  mr.reset()
  says("mr.reset()", function() y:backward() end)
end

-- ---------------------------------------------------------------- operations of the script's

TestFunction = {}

local function cube()
  return mr.autograd.Function {
    name = "cube",
    forward = function(ctx, x)
      ctx:save_for_backward(x)
      return x ^ 3
    end,
    backward = function(ctx, g)
      local x = ctx:saved_tensors()
      return 3 * g * x:square()
    end,
  }
end

function TestFunction.test_has_its_own_derivative()
  local x = leaf { 1.0, 2.0 }
  local y = cube()(x)
  lu.assertStrContains(y.grad_fn, "cube")
  y:sum():backward()
  lu.assertEquals(x.grad:totable(), { 3.0, 12.0 })
  lu.assertFalse(cube()(mr.ones(2)).requires_grad)
  lu.assertFalse(mr.no_grad(cube(), x).requires_grad)
end

function TestFunction.test_of_several_results_and_arguments()
  local f = mr.autograd.Function {
    forward = function(ctx, x, factor, y)
      ctx.factor = factor
      return x * factor, y + x, x:gt(0)
    end,
    backward = function(ctx, g, h) return g * ctx.factor + h, nil, h end,
  }
  local x, y = leaf { 1.0, 2.0 }, leaf { 3.0, 4.0 }
  local p, q, r = f(x, 5, y)
  lu.assertFalse(r.requires_grad)
  p:sum():backward(nil, { retain_graph = true })
  lu.assertEquals(x.grad:totable(), { 5.0, 5.0 })
  lu.assertEquals(y.grad:totable(), { 0.0, 0.0 });
  (p * 2 + q):sum():backward()
  lu.assertEquals(x.grad:totable(), { 16.0, 16.0 })
  lu.assertEquals(y.grad:totable(), { 1.0, 1.0 })
end

function TestFunction.test_misused()
  says("forward: expected a function", mr.autograd.Function, {})
  says("there is no field `forwards`", mr.autograd.Function,
    { forward = print, backward = print, forwards = print })
  local x = leaf { 1.0, 2.0 }
  local function with(forward, backward)
    return mr.autograd.Function { forward = forward, backward = backward or function(_, g) return g end }
  end
  says("forward returned nothing", with(function() end), x)
  says("expected a tensor", with(function() return 5 end), x)
  says("has the memory of argument 1", with(function(_, t) return t end), x)
  local function back(result) return with(function(_, t) return t * 1 end, function() return result end)(x):sum() end
  says("gradient 1", function() back(mr.ones(3)):backward() end)
  says("gradient 1", function() back(5):backward() end)
  local many = with(function(_, t) return t * 1 end, function(_, g) return g, g end)
  says("returned 2 gradients for 1", function() many(x):sum():backward() end)
  local w = mr.ones(2)
  local f = with(function(ctx, t)
    ctx:save_for_backward(w)
    return t * 1
  end)
  local y = f(x)
  w:add_(1)
  says("changed them in place", function() y:sum():backward() end)
  lu.assertNil(x.grad)
end

os.exit(lu.LuaUnit.run())
