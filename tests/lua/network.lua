-- Operations of networks as scripts call them: options, images without a batch, messages. tests/c/test_ops_conv.c compares
-- values with the definition.
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
  lu.assertEquals(mr.conv2d(x, w, { stride = { 1, 2 }, padding = { 0, 1 }, dilation = { 3, 1 } }).shape, { 1, 3, 6, 4 })
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
  lu.assertTrue(mr.equal(mr.conv1d(x[{ 1 }], w, { groups = 2 }), mr.conv1d(x, w, { groups = 2 })[{ 1 }]))
  assertFails("must have 3 dims", mr.conv1d, x, mr.rand(6, 2, 1, 3))
  assertFails("are numbers", mr.conv1d, x, w, { stride = { 1, 2 }, groups = 2 })
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
  assertFails("stride: expected a number or {rows, columns}, got a list of 3", mr.conv2d, x, w, { stride = { 1, 2, 3 } })
  assertFails("a stride of at least 1", mr.conv2d, x, w, { stride = 0 })
  assertFails("padding=-1", mr.conv2d, x, w, { padding = -1 })
  assertFails("groups=0", mr.conv2d, x, w, { groups = 0 })
  assertFails("did you mean `stride`", mr.conv2d, x, w, { strides = 2 })
  assertFails("not 2", mr.conv2d, x[{ 1, 1 }], w)
  assertFails("`photo`", mr.conv2d, x, mr.rand(4, 2, 3, 2))
  assertFails("arguments are too many", mr.conv2d, x, w, nil, 1)
  assertFails("a shape, such as", mr.conv2d_input, x, w, x)
  assertFails("must have 4 sizes", mr.conv2d_input, { 1, 2 }, w, x)
  assertFails("must have that of the result", mr.conv2d_weight, x, { 4, 3, 3, 2 }, x)
end

os.exit(lu.LuaUnit.run())
