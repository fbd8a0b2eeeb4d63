-- Recurrent modules, transposed convolution, other sizes, padding, attention and losses: values beside PyTorch
-- (tests/data/nn/make.py), gradients beside central differences; shapes and views; misuse.
-- not replayed: differences of gradients are more calls than the recorder holds
local lu = require "luaunit"
local mr = require "millrace"
local gradients = require "lua.support.gradients"
local refused = require "lua.support.naive".assert_raises

local nn = mr.nn
local DATA = mr.load "tests/data/nn/more.safetensors"

local function data(name) return DATA[name]:to "device" end
local function any(...) return gradients.between(-2, 2, { ... }) end

local function near(actual, name)
  lu.assertEquals(actual.shape, DATA[name].shape, name)
  lu.assertTrue(mr.allclose(actual:detach():cpu(), DATA[name], { rtol = 2e-5, atol = 2e-6 }), name)
end

local function part(prefix)
  local found = {}
  for name, t in pairs(DATA) do
    if name:sub(1, #prefix) == prefix then found[name:sub(#prefix + 1)] = t end
  end
  return found
end

TestRecurrent = {}

local MODULES = {
  lstm = function() return nn.LSTM(3, 4) end,
  lstm_deep = function() return nn.LSTM(3, 4, { num_layers = 2, bidirectional = true, batch_first = true }) end,
  gru = function() return nn.GRU(3, 4, { bias = false }) end,
  gru_deep = function() return nn.GRU(3, 4, { num_layers = 2, bidirectional = true }) end,
}

for name, make in pairs(MODULES) do
  TestRecurrent["test_" .. name] = function()
    local m = make():to "device"
    lu.assertEquals({ m:load_state_dict(part(name .. ".p.")) }, { {}, {} })
    local x = data(name .. ".x"):requires_grad_()
    local lstm = DATA[name .. ".c0"] ~= nil
    local y, last = m(x, lstm and { data(name .. ".h0"), data(name .. ".c0") } or data(name .. ".h0"))
    near(y, name .. ".y")
    near(lstm and last[1] or last, name .. ".h")
    if lstm then near(last[2], name .. ".c") end
    local total = (y * data(name .. ".w")):sum()
    total:backward()
    near(x.grad, name .. ".g")
    for parameter, p in m:named_parameters() do near(p.grad, name .. ".d." .. parameter) end
  end
end

function TestRecurrent.test_without_a_state_it_is_zero()
  local m, x = nn.GRU(3, 4), mr.rand(5, 2, 3)
  lu.assertTrue(mr.equal(m(x):detach(), m(x, mr.zeros(1, 2, 4)):detach()))
  refused({ "LSTM", "the state has the shape 1x2x4, expected 2x2x4" }, nn.LSTM(3, 4, { num_layers = 2 }), x,
    { mr.zeros(1, 2, 4), mr.zeros(1, 2, 4) })
  local state = mr.zeros(1, 2, 4)
  refused({ "GRU: argument 2, the state, is a table, expected one tensor" }, m, x, { state, state })
  local lstm = nn.LSTM(3, 4)
  local list = "expected a list {h, c} of two tensors"
  refused({ "LSTM: argument 2, the state, is a tensor, " .. list }, lstm, x, state)
  refused({ "is a list whose element 2 is nil, " .. list }, lstm, x, { state })
  refused({ "is a list whose element 3 is a tensor, " .. list }, lstm, x, { state, state, state })
  refused({ "is a number, " .. list }, lstm, x, 3)
  refused({ "GRU", "expected (steps, sequences, 3)" }, m, mr.rand(5, 2, 4))
  refused({ "there is no option `layers`" }, nn.GRU, 3, 4, { layers = 2 })
end

TestImages = {}

function TestImages.test_transposed_convolution()
  local x, w, b = data "up.x", data "up.w", data "up.b"
  near(x:conv_transpose2d(w, b, { stride = 2, padding = 1, output_padding = { 1, 0 }, groups = 2 }), "up.transposed")
  near(x:conv_transpose2d(w:narrow(2, 1, 2):contiguous(), { stride = { 1, 3 }, dilation = 2 }),
    "up.transposed_dilated")
  gradients.check("conv_transpose2d", function(a, k, c)
    return a:conv_transpose2d(k, c, { stride = 2, padding = 1 })
  end, any(1, 2, 3, 3), any(2, 2, 2, 3), any(2))
  local m = nn.ConvTranspose2d(4, 6, { 3, 2 }, { stride = 2, padding = 1, output_padding = { 1, 0 }, groups = 2 })
  m:load_state_dict { weight = w, bias = b }
  near(m:to "device"(x), "up.transposed")
  refused({ "output_padding is 2" }, mr.conv_transpose2d, x, w, { stride = 2, output_padding = 2, groups = 2 })
  refused({ "needs weights of shape" }, mr.conv_transpose2d, x, mr.ones(3, 2, 2, 2))
end

function TestImages.test_other_sizes()
  local x = data "up.x"
  near(x:interpolate { scale_factor = 2.5 }, "up.nearest")
  near(x:interpolate { size = { 2, 7 } }, "up.nearest_size")
  near(mr.interpolate(x, { size = { 2, 7 } }), "up.nearest_size")
  near(nn.Upsample { scale_factor = 2, mode = "bilinear" }(x), "up.bilinear")
  near(x:interpolate { size = { 2, 8 }, mode = "bilinear", align_corners = true }, "up.bilinear_size")
  near(x[1]:interpolate { size = 9, mode = "linear" }, "up.linear")
  for _, options in ipairs { { size = 5 }, { scale_factor = 1.5, mode = "bilinear" } } do
    gradients.check("interpolate", function(a) return a:interpolate(options) end, any(1, 2, 3, 4))
  end
  refused({ "either size= or scale_factor=" }, x.interpolate, x, {})
  refused({ "mode=cubic" }, x.interpolate, x, { size = 3, mode = "cubic" })
end

function TestImages.test_padding()
  local x = data "up.x"
  for _, mode in ipairs { "constant", "reflect", "replicate", "circular" } do
    near(x:pad({ 2, 1, 1, 2 }, mode), "pad." .. mode)
    gradients.check("pad, " .. mode, function(a) return a:pad({ 2, 1, 1, 2 }, { mode = mode }) end, any(2, 3, 4))
  end
  near(mr.pad(x, { 1, -2, -1, 3 }, "constant", 1.5), "pad.value")
  lu.assertEquals(mr.tensor({ 1, 2 }):pad({ 1, 0 }).dtype, "i64")
  refused({ "pad", "needs more than 3 elements in dim 3" }, x.pad, x, { 0, 0, 3, 0 }, "reflect")
  refused({ "pad", "at most 8 numbers" }, x.pad, x, { 1 })
  refused({ "would remove more elements than" }, x.pad, x, { -3, -3 })
end

TestAttention = {}

function TestAttention.test_values_and_gradients()
  local q, k, v = data "attention.q", data "attention.k", data "attention.v"
  local f = mr.scaled_dot_product_attention
  near(f(q, k, v), "attention.plain")
  near(q:scaled_dot_product_attention(k, v), "attention.plain")
  near(f(q, k, v, { is_causal = true }), "attention.causal")
  near(f(q, k, v, { attn_mask = data "attention.mask" }), "attention.masked")
  near(f(q, k, v, { attn_mask = mr.ones(4, 6, { dtype = "bool" }):tril() }), "attention.causal")
  gradients.check("attention", function(a, b, c) return f(a, b, c, { is_causal = true, scale = 0.7 }) end, any(2, 3, 4),
    any(2, 3, 4), any(2, 3, 2))
  refused({ "attention", "need keys" }, f, q, v, k)
end

TestLosses = {}

function TestLosses.test_binary_cross_entropy()
  local p, target = data "bce.p":requires_grad_(), data "bce.target"
  local loss = p:binary_cross_entropy(target, { reduction = "none" })
  near(loss, "bce.y")
  loss:sum():backward()
  near(p.grad, "bce.g")
  lu.assertAlmostEquals(nn.BCELoss()(p, target):item(), DATA["bce.y"]:mean():item(), 1e-4)
  gradients.check("binary_cross_entropy", mr.binary_cross_entropy, gradients.between(0.1, 0.9, { 4 }),
    gradients.between(0.1, 0.9, { 4 }))
  gradients.check("l1_loss", mr.l1_loss, any(2, 3), any(2, 3))
end

TestInit = {}

function TestInit.test_first_values()
  local t = mr.empty(400, 100)
  lu.assertEquals(nn.init.zeros_(t):abs():sum():item(), 0)
  lu.assertEquals(nn.init.ones_(t):mean():item(), 1)
  mr.manual_seed(1)
  lu.assertAlmostEquals(nn.init.kaiming_normal_(t):std():item(), math.sqrt(2 / 100), 0.003)
end

TestOptions = {}

function TestOptions.test_alpha_of_a_sum()
  local x, y = mr.tensor { 1.0, 2.0 }, mr.tensor { 10.0, 20.0 }
  lu.assertEquals(x:add(y, { alpha = 0.5 }):totable(), { 6, 12 })
  lu.assertEquals(mr.sub(x, y, { alpha = 2 }):totable(), { -19, -38 })
  lu.assertEquals(mr.tensor({ 1, 2 }):add(3, { alpha = 2 }):totable(), { 7, 8 })
  lu.assertEquals(x:clone():add_(y, { alpha = 0.5 }):totable(), { 6, 12 })
  gradients.check("add with alpha", function(a, b) return a:add(b, { alpha = -2.5 }) end, any(2, 3), any(3))
  gradients.check("sub_ with alpha", function(a, b) return (a * 1):sub_(b, { alpha = 3 }) end, any(2, 3), any(3))
  refused({ "add", "alpha is 0.5, expected an integer" }, mr.add, mr.tensor { 1 }, mr.tensor { 2 }, { alpha = 0.5 })
  refused({ "add", "alpha is a string" }, mr.add, x, y, { alpha = "2" })
end

function TestOptions.test_rounding_of_a_quotient()
  local x, y = mr.tensor { -7, 7, -8, 9 }, mr.tensor { 2, -2, 3, 3 }
  local floor, trunc = { rounding_mode = "floor" }, { rounding_mode = "trunc" }
  lu.assertEquals(x:div(y, floor):totable(), { -4, -4, -3, 3 })
  lu.assertEquals(x:div(y, trunc):totable(), { -3, -3, -2, 3 })
  lu.assertEquals(x:div(y, trunc).dtype, "i64")
  lu.assertEquals(x:to "f32":div(y, trunc):totable(), { -3, -3, -2, 3 })
  lu.assertEquals(mr.div(x, 2.5, floor):totable(), { -3, 2, -4, 3 })
  lu.assertEquals(x:clone():div_(y, trunc):totable(), { -3, -3, -2, 3 })
  lu.assertEquals(x:to "f32":div_(2, floor):totable(), { -4, 3, -4, 4 })
  refused({ "div", "rounding_mode=up" }, mr.div, x, y, { rounding_mode = "up" })
end

TestShapes = {}

function TestShapes.test_functions_that_are_methods()
  local x = mr.arange(1, 7):view(2, 3)
  lu.assertEquals(mr.flatten(x):totable(), { 1, 2, 3, 4, 5, 6 })
  lu.assertEquals(mr.reshape(x, 3, 2).shape, { 3, 2 })
  lu.assertEquals(#mr.split(x, 1, 2), 3)
  lu.assertTrue(mr.equal(mr.clone(x), x))
  lu.assertEquals(mr.transpose(x, 1, 2).shape, { 3, 2 })
  lu.assertEquals(mr.t(x):totable(), { { 1, 4 }, { 2, 5 }, { 3, 6 } })
  lu.assertEquals(mr.narrow(x, 2, 2, 2):totable(), { { 2, 3 }, { 5, 6 } })
  lu.assertEquals(mr.select(x, 2, -1):totable(), { 3, 6 })
  lu.assertEquals(mr.permute(x:view(1, 2, 3), 3, 1, 2):totable(), { { { 1, 4 } }, { { 2, 5 } }, { { 3, 6 } } })
  lu.assertEquals(mr.unsqueeze(x, 2).shape, { 2, 1, 3 })
  lu.assertEquals(mr.unsqueeze(x, -1).shape, { 2, 3, 1 })
  lu.assertEquals(mr.squeeze(x:view(1, 2, 1, 3)).shape, { 2, 3 })
  lu.assertEquals(mr.squeeze(x:view(1, 2, 1, 3), 3).shape, { 1, 2, 3 })
end

-- A value written through a view is read through the tensor.
function TestShapes.test_functions_that_return_views()
  local x = mr.zeros(2, 3)
  mr.t(x)[3][1] = 1
  mr.narrow(x, 2, 1, 1):fill_(2)
  mr.select(x, 1, 2):add_(10)
  mr.unbind(x, 2)[2]:add_(5)
  mr.chunk(x, 2, 2)[2]:mul_(-1)
  lu.assertEquals(x:totable(), { { 2, 5, -1 }, { 12, 15, -10 } })
end

function TestShapes.test_lists_of_views()
  local x = mr.arange(1, 7, { dtype = "f32" }):view(2, 3)
  local columns = x:unbind(2)
  lu.assertEquals(#columns, 3)
  columns[2]:fill_(0)
  lu.assertEquals(x:totable(), { { 1, 0, 3 }, { 4, 0, 6 } })
  local rows_of = mr.unbind(x)
  lu.assertEquals({ rows_of[1]:totable(), rows_of[2]:totable() }, { { 1, 0, 3 }, { 4, 0, 6 } })
  local parts = mr.chunk(x, 2, 2)
  lu.assertEquals({ parts[1]:totable(), parts[2]:totable() }, { { { 1, 0 }, { 4, 0 } }, { { 3 }, { 6 } } })
  gradients.check("unbind", function(a) return table.unpack(a:unbind(-1)) end, any(2, 3))
  local rows, across = table.unpack(mr.meshgrid(mr.tensor { 1, 2 }, mr.tensor { 3, 4, 5 }))
  lu.assertEquals(rows:totable(), { { 1, 1, 1 }, { 2, 2, 2 } })
  lu.assertEquals(across:totable(), { { 3, 4, 5 }, { 3, 4, 5 } })
  local xy = mr.meshgrid({ mr.tensor { 1, 2 }, mr.tensor { 3, 4, 5 } }, { indexing = "xy" })
  lu.assertEquals(xy[1]:totable(), { { 1, 2 }, { 1, 2 }, { 1, 2 } })
end

function TestShapes.test_a_range_ends_where_the_dim_does()
  local x = mr.arange(1, 6)
  lu.assertEquals(x[{ { 2, 100 } }]:totable(), { 2, 3, 4, 5 })
  lu.assertEquals(x[{ { -100, 2 } }]:totable(), { 1, 2 })
  lu.assertEquals(x[{ { 4, 2 } }].shape, { 0 })
  lu.assertEquals(x[{ { 9, 12 } }].shape, { 0 })
  lu.assertEquals(x[{ { -9, -8 } }].shape, { 0 })
  lu.assertEquals(x[{ { 2, 99, 3 } }]:totable(), { 2, 5 })
  refused({ "outside" }, function() return x[{ { 6 } }] end)
  refused({ "count from 1" }, function() return x[{ { 0, 2 } }] end)
end

-- The dims of the index stand where the dim was.
function TestShapes.test_a_tensor_among_the_entries()
  local x = mr.arange(1, 25):view(2, 3, 4)
  local index, mask = mr.tensor { 3, 1 }, mr.tensor { true, false, true }
  lu.assertEquals(x[{ {}, index }].shape, { 2, 2, 4 })
  lu.assertTrue(mr.equal(x[{ {}, index }], x:index_select(2, index)))
  lu.assertTrue(mr.equal(x[{ 2, index, { 2, 3 } }], x[2]:index_select(1, index):narrow(2, 2, 2)))
  lu.assertTrue(mr.equal(x[{ {}, {}, mr.tensor { { 1, 2 }, { 4, 3 } } }][2][3],
    mr.tensor({ { 21, 22 }, { 24, 23 } })))
  lu.assertTrue(mr.equal(x[{ {}, mask }], x:index_select(2, mr.tensor { 1, 3 })))
  local y = x:clone()
  y[{ {}, index, 4 }] = mr.tensor { 50, 60 }
  lu.assertEquals(y[{ {}, {}, 4 }]:totable(), { { 60, 8, 50 }, { 60, 20, 50 } })
  y[{ 1, mask }] = 0
  lu.assertEquals(y[1]:sum(2):totable(), { 0, 26, 0 })
  gradients.check("an index among the entries", function(a) return a[{ {}, index:cpu() }] end, any(2, 3))
  refused({ "one tensor among the entries" }, function() return x[{ index, index }] end)
  refused({ "the mask for dim 1" }, function() return x[{ mask, 1 }] end)
end

os.exit(lu.LuaUnit.run())
