-- Operations of networks as scripts call them: options, images without a batch, messages. Values: network_torch.lua and
-- tests/c/test_ops_conv.c.
local lu = require "luaunit"
local mr = require "millrace"

local function assertFails(part, f, ...)
  local ok, message = pcall(f, ...)
  lu.assertFalse(ok, "no error where one with `" .. part .. "` was expected")
  lu.assertStrContains(tostring(message), part)
end

TestConvolution = {}

function TestConvolution.test_a_small_one_by_hand()
  local x = mr.tensor { { { { 1, 2, 3 }, { 4, 5, 6 }, { 7, 8, 9 } } } }
  local w = mr.tensor { { { { 1, 0 }, { 0, -1 } } } }
  lu.assertEquals(x:to("f32"):conv2d(w:to "f32"):totable(), { { { { -4.0, -4.0 }, { -4.0, -4.0 } } } })
  local padded = mr.conv2d(x:to "f32", w:to "f32", { padding = 1, stride = 2 })
  lu.assertEquals(padded:totable(), { { { { -1.0, -3.0 }, { -7.0, -4.0 } } } })
end

function TestConvolution.test_the_bias_is_an_argument_or_an_option()
  local x, w, b = mr.rand(2, 3, 6, 5), mr.rand(4, 3, 3, 2), mr.rand(4)
  local plain = x:conv2d(w) + b:view(4, 1, 1)
  lu.assertTrue(mr.allclose(x:conv2d(w, b), plain))
  lu.assertTrue(mr.equal(x:conv2d(w, b), x:conv2d(w, { bias = b })))
  lu.assertTrue(mr.equal(x:conv2d(w, nil, { padding = 1 }), mr.conv2d(x, w, { padding = { 1, 1 } })))
  assertFails("given twice", x.conv2d, x, w, b, { bias = b })
end

function TestConvolution.test_rows_and_columns_have_their_own_numbers()
  local x, w = mr.rand(1, 2, 9, 8), mr.rand(3, 2, 2, 3)
  local y = mr.conv2d(x, w, { stride = { 1, 2 }, padding = { 0, 1 }, dilation = { 3, 1 } })
  lu.assertEquals(y.shape, { 1, 3, 6, 4 })
end

function TestConvolution.test_one_image_needs_no_batch()
  local x, w = mr.rand(3, 6, 5), mr.rand(4, 3, 3, 2)
  local result = x:conv2d(w)
  lu.assertEquals(result.shape, { 4, 4, 4 })
  lu.assertTrue(mr.equal(result, x:unsqueeze(1):conv2d(w):squeeze(1)))
end

function TestConvolution.test_conv1d_is_conv2d_of_one_row()
  local x, w, b = mr.rand(2, 4, 11), mr.rand(6, 2, 3), mr.rand(6)
  local result = x:conv1d(w, b, { stride = 2, padding = 1, dilation = 2, groups = 2 })
  lu.assertEquals(result.shape, { 2, 6, 5 })
  local rows = x:unsqueeze(3):conv2d(w:unsqueeze(3), b,
    { stride = { 1, 2 }, padding = { 0, 1 }, dilation = { 1, 2 }, groups = 2 })
  lu.assertTrue(mr.equal(result, rows:squeeze(3)))
  lu.assertTrue(mr.equal(mr.conv1d(x[1], w, { groups = 2 }), mr.conv1d(x, w, { groups = 2 })[1]))
  assertFails("must have 3 dims", mr.conv1d, x, mr.rand(6, 2, 1, 3))
  assertFails("stride is a number", mr.conv1d, x, w, { stride = { 1, 2 }, groups = 2 })
end

-- The sum of the result times g has these derivatives.
function TestConvolution.test_gradients_are_those_of_the_sum()
  local options = { stride = 2, padding = 1, groups = 2 }
  local x, w = mr.rand({ 2, 4, 7, 6 }, { dtype = "f64" }), mr.rand({ 6, 2, 3, 3 }, { dtype = "f64" })
  local y = mr.conv2d(x, w, options)
  local g = mr.rand(y.shape, { dtype = "f64" })
  local of_x = mr.conv2d_input(x.shape, w, g, options)
  local of_w = mr.conv2d_weight(x, w.shape, g, options)
  lu.assertAlmostEquals((of_x * x):sum():item(), (y * g):sum():item(), 1e-9)
  lu.assertAlmostEquals((of_w * w):sum():item(), (y * g):sum():item(), 1e-9)
  local step = mr.rand(x.shape, { dtype = "f64" })
  lu.assertAlmostEquals((of_x * step):sum():item(), (mr.conv2d(step, w, options) * g):sum():item(), 1e-9)
end

function TestConvolution.test_messages()
  local x, w = mr.rand(2, 3, 6, 5), mr.rand(4, 3, 3, 2)
  x:name "photo"
  assertFails("stride: expected a number or {rows, columns}, got a list of 3", mr.conv2d, x, w,
    { stride = { 1, 2, 3 } })
  assertFails("a stride of at least 1", mr.conv2d, x, w, { stride = 0 })
  assertFails("padding=-1", mr.conv2d, x, w, { padding = -1 })
  assertFails("groups=0", mr.conv2d, x, w, { groups = 0 })
  assertFails("did you mean `stride`", mr.conv2d, x, w, { strides = 2 })
  assertFails("not 2", mr.conv2d, x[1][1], w)
  assertFails("`photo`", mr.conv2d, x, mr.rand(4, 2, 3, 2))
  assertFails("a table of options", mr.conv2d, x, w, nil, 1)
  assertFails("arguments are too many", mr.conv2d, x, w, nil, {}, 1)
  assertFails("a shape, such as", mr.conv2d_input, x, w, x)
  assertFails("must have 4 sizes", mr.conv2d_input, { 1, 2 }, w, x)
  assertFails("must have that of the result", mr.conv2d_weight, x, { 4, 3, 3, 2 }, x)
end

-- ---------------------------------------------------------------- pools

TestPools = {}

function TestPools.test_positions_count_from_1_in_a_channel()
  local x = mr.tensor { { 1, 5, 2, 0 }, { 3, 4, 9, 8 } }:to("f32"):view(1, 1, 2, 4)
  local y, positions = x:max_pool2d(2, { return_indices = true })
  lu.assertEquals(y:totable(), { { { { 5.0, 9.0 } } } })
  lu.assertEquals(positions:totable(), { { { { 2, 7 } } } })
  lu.assertEquals(select("#", x:max_pool2d(2)), 1)
end

function TestPools.test_one_image_needs_no_batch()
  local x = mr.rand(3, 6, 5)
  local y, positions = x:max_pool2d({ 2, 1 }, { return_indices = true })
  lu.assertEquals({ y.shape, positions.shape }, { { 3, 3, 5 }, { 3, 3, 5 } })
  lu.assertEquals(x:avg_pool2d(2).shape, { 3, 3, 2 })
  lu.assertEquals(x:adaptive_avg_pool2d({ 1, 4 }).shape, { 3, 1, 4 })
end

function TestPools.test_no_images()
  local x = mr.zeros(0, 3, 6, 6)
  lu.assertEquals(x:max_pool2d(2).shape, { 0, 3, 3, 3 })
  lu.assertEquals(x:avg_pool2d(2).shape, { 0, 3, 3, 3 })
  lu.assertEquals(x:adaptive_avg_pool2d(2).shape, { 0, 3, 2, 2 })
end

function TestPools.test_messages()
  local x = mr.rand(1, 3, 6, 5)
  assertFails("the window's size", x.max_pool2d, x)
  assertFails("more than half of the window", x.max_pool2d, x, 2, { padding = 2 })
  assertFails("a window of 7x7", x.avg_pool2d, x, 7)
  assertFails("divisor_override must not be 0", x.avg_pool2d, x, 2, { divisor_override = 0 })
  assertFails("takes floats", mr.max_pool2d, x:to "i32", 2)
  assertFails("there is no option", x.avg_pool2d, x, 2, { dilation = 2 })
  assertFails("must have that of the result", mr.avg_pool2d_backward, { 1, 3, 6, 5 }, x, 2)
  assertFails("positions are i64", mr.max_pool2d_backward, { 1, 3, 6, 5 }, x:max_pool2d(2), x:max_pool2d(2), 2)
end

-- ---------------------------------------------------------------- losses

TestLosses = {}

function TestLosses.test_a_target_out_of_range()
  local x = mr.rand(2, 3, { device = "cpu" })
  local target = mr.tensor({ 1, 4 }, { device = "cpu" })
  assertFails("has the value 4 at element 2, expected 1 to 3", x.nll_loss, x, target)
  assertFails("has the value 0", x.nll_loss, x, mr.tensor({ 0, 1 }, { device = "cpu" }), { reduction = "none" })
end

function TestLosses.test_messages()
  local x, target = mr.rand(2, 3), mr.tensor { 1, 2 }
  assertFails("reduction=\"all\"", x.nll_loss, x, target, { reduction = "all" })
  assertFails("targets are i64 or i32", x.nll_loss, x, target:to "f32")
  assertFails("must have the shape 2", x.nll_loss, x, mr.tensor { 1, 2, 3 })
  assertFails("must have the shape 3", x.nll_loss, x, target, { weight = mr.rand(2) })
  assertFails("there is no total weight", x.nll_loss, x, target, { reduction = "none", return_total_weight = true })
  assertFails("total_weight is the second result", mr.nll_loss_backward, { 2, 3 }, mr.tensor(1.0), target)
  assertFails("targets must have the shape 2", mr.cross_entropy, x, mr.tensor { 1, 2, 3 })
  assertFails("label_smoothing must be a number from 0 to 1", mr.cross_entropy, x, target, { label_smoothing = 2 })
  assertFails("cross_entropy: reduction=all", mr.cross_entropy, x, target, { reduction = "all" })
  assertFails("ignore_index is 1.5", mr.cross_entropy, x, target, { ignore_index = 1.5 })
  assertFails("no option `weights` here: did you mean `weight`?", mr.cross_entropy, x, target, { weights = 1 })
  assertFails("expected \"none\", \"mean\"", mr.mse_loss, x, x, { reduction = "all" })
end

-- ---------------------------------------------------------------- layers

TestLayers = {}

function TestLayers.test_dropout_keeps_the_mean()
  mr.manual_seed(4)
  local x = mr.ones(100, 100)
  local y = x:dropout(0.25)
  local kept = y:gt(0):to("f32"):mean():item()
  lu.assertAlmostEquals(kept, 0.75, 0.02)
  lu.assertTrue(mr.equal(y, y:gt(0):to "f32" * (1 / 0.75)))
  lu.assertTrue(rawequal(x:dropout(0.25, false), x))
  lu.assertTrue(rawequal(x:dropout { p = 0.5, training = false }, x))
  lu.assertEquals(x:dropout(1):sum():item(), 0)
  assertFails("p must be a number from 0 to 1", x.dropout, x, 1.5)
end

function TestLayers.test_methods_and_functions_are_the_same()
  local x, w = mr.rand(4, 3), mr.rand(2, 3)
  local mean, var = mr.zeros(3), mr.ones(3)
  local calls = {
    linear = { w }, conv1d = { mr.rand(2, 4, 2) }, layer_norm = { 3 }, batch_norm = { mean, var },
    cross_entropy = { mr.tensor { 1, 3, 2, 2 } }, mse_loss = { mr.rand(4, 3) }, dropout = { 0.5, false },
  }
  for name, arguments in pairs(calls) do
    lu.assertTrue(mr.equal(x[name](x, table.unpack(arguments)), mr[name](x, table.unpack(arguments))), name)
  end
end

function TestLayers.test_what_dropout_drops_has_no_gradient()
  local x = mr.rand(50):add(1):requires_grad_()
  local y = x:dropout(0.5)
  y:sum():backward()
  lu.assertTrue(mr.equal(x.grad, y:detach():gt(0):to "f32" * 2))
end

function TestLayers.test_messages()
  local x = mr.rand(2, 3)
  assertFails("weights of shape (outputs, 3), got 4x2", mr.linear, x, mr.rand(4, 2))
  assertFails("the bias must have the shape 4", mr.linear, x, mr.rand(4, 3), mr.rand(3))
  assertFails("does not end in the shape 2", mr.layer_norm, x, 2)
  assertFails("needs a running mean", mr.batch_norm, x)
  assertFails("more than one value a channel", mr.batch_norm, mr.rand(1, 3), nil, nil, { training = true })
  assertFails("the weight is f64", mr.layer_norm, x, 3, { weight = mr.ones(3, { dtype = "f64" }) })
end

-- ---------------------------------------------------------------- halves

TestHalves = {}

-- Computed in f32 and rounded once.
function TestHalves.test_the_result_is_that_of_f32_rounded()
  for _, dtype in ipairs { "f16", "bf16" } do
    local x, w, b = mr.rand(2, 3, 6, 6):to(dtype), mr.rand(4, 3, 3, 3):to(dtype), mr.rand(4):to(dtype)
    local function wide(t) return t:to "f32" end
    local y = x:conv2d(w, b)
    lu.assertTrue(mr.equal(y, wide(x):conv2d(wide(w), wide(b)):to(dtype)))
    lu.assertTrue(mr.equal(mr.conv2d_weight(x, w.shape, y), mr.conv2d_weight(wide(x), w.shape, wide(y)):to(dtype)))
    lu.assertTrue(mr.equal(x:avg_pool2d(3), wide(x):avg_pool2d(3):to(dtype)))
    lu.assertTrue(mr.equal(x:max_pool2d(3), wide(x):max_pool2d(3):to(dtype)))
    local scores, target = mr.rand(5, 4):to(dtype), mr.tensor { 1, 4, 2, 2, 3 }
    lu.assertTrue(mr.equal(scores:nll_loss(target), wide(scores):nll_loss(target):to(dtype)))
  end
end

os.exit(lu.LuaUnit.run())
