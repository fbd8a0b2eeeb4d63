-- Operations of networks on a GPU: random shapes, options and layouts, beside the CPU bodies. Convolutions and pools
-- add in the same order on both, so their bits are equal; what is allowed to differ says by how much.
-- timeout: 300
-- not replayed: it looks at device tensors only through copies
--
--     millrace --device cuda tests/gpu/network.lua [CASES [OPERATION]]
local mr = require "millrace"

local CASES = tonumber(arg and arg[1]) or 60
local only = arg and arg[2]

local random = math.random
math.randomseed(7)
mr.manual_seed(7)

-- A tensor on the host and the same one on the device, laid out in one of several ways.
local function pair(dtype, ...)
  local shape = { ... }
  local way = random(4)
  local function lay(t)
    if way == 1 then return t end
    if way == 2 then return t:transpose(1, #shape):contiguous():transpose(1, #shape) end
    if way == 3 then return mr.cat({ t, t }, #shape):narrow(#shape, 1, shape[#shape]) end
    local stepped = mr.stack({ t, t }, #shape + 1)
    return stepped:select(#shape + 1, 1)
  end
  local base = (mr.rand(shape, { device = "cpu" }) * 2 - 1):to(dtype)
  return { host = lay(base), device = lay(base:cuda()) }
end

-- `tolerance` 0: equal bits; else relative to the largest element.
local function same(what, host, device, tolerance)
  local got = device:cpu()
  assert(mr.equal(mr.tensor(host.shape), mr.tensor(got.shape)), what .. ": another shape")
  if host.numel == 0 then return end
  if tolerance == 0 then
    if not mr.equal(host, got) then
      error(("%s: differs by %g"):format(what, (host - got):abs():max():item()), 0)
    end
    return
  end
  local size = math.max(host:abs():max():item(), 1e-30)
  local difference = (host:to "f64" - got:to "f64"):abs():max():item()
  if difference ~= difference or difference > tolerance * size then
    error(("%s: differs by %g of %g"):format(what, difference, size), 0)
  end
end

local operations = {}

-- The sizes and options of a convolution that fits.
local function convolution()
  while true do
    local groups = random(3)
      local p = { images = random(0, 3), channels = groups * random(5), outputs = groups * random(6) }
    p.size, p.kernel = {}, {}
    local options = { stride = {}, padding = {}, dilation = {}, groups = groups }
    p.options, p.result = options, {}
    local fits = true
    for d = 1, 2 do
      p.size[d], p.kernel[d] = random(14), random(4)
      options.stride[d], options.padding[d], options.dilation[d] = random(4), random(0, 3), random(3)
      local room = p.size[d] + 2 * options.padding[d] - options.dilation[d] * (p.kernel[d] - 1) - 1
      p.result[d] = room // options.stride[d] + 1
      fits = fits and room >= 0
    end
    if fits then return p end
  end
end

-- What fills several tiles and slabs.
local function large_convolution()
  return {
    images = 3, channels = 20, outputs = 70, size = { 9, 11 }, kernel = { 3, 3 }, result = { 9, 11 },
    options = { stride = { 1, 1 }, padding = { 1, 1 }, dilation = { 1, 1 }, groups = 1 },
  }
end

-- The operands of a convolution, and conv2d and its gradients on both sides: `check` gets name, host's and device's.
local function each_convolution(p, operand, check)
  local o, kernel = p.options, p.kernel
  local input = { p.images, p.channels, p.size[1], p.size[2] }
  local weights = { p.outputs, p.channels // o.groups, kernel[1], kernel[2] }
  local x, w = operand(table.unpack(input)), operand(table.unpack(weights))
  local g = operand(p.images, p.outputs, p.result[1], p.result[2])
  local bias = random(2) == 1 and operand(p.outputs) or {}
  check("conv2d", mr.conv2d(x.host, w.host, bias.host, o), mr.conv2d(x.device, w.device, bias.device, o))
  check("conv2d_input", mr.conv2d_input(input, w.host, g.host, o), mr.conv2d_input(input, w.device, g.device, o))
  check("conv2d_weight", mr.conv2d_weight(x.host, weights, g.host, o), mr.conv2d_weight(x.device, weights, g.device, o))
end

function operations.conv2d(case, dtype)
  local near = dtype == "f64" and 1e-15 or 1e-6
  local p = case == 1 and large_convolution() or convolution()
  each_convolution(p, function(...) return pair(dtype, ...) end, function(name, host, device)
    same(name, host, device, name == "conv2d_weight" and near or 0)
  end)
end

-- Cases for which the kernels of src/cuda/family/conv.c were written, and their edges. Fields are images, channels,
-- outputs, groups, size, kernel, then stride, padding and dilation where they are not 1, 0 and 1.
local kernels = {
  { 2, 3, 64, 1, { 8, 8 }, { 3, 3 }, padding = 1 }, -- few channels in, vectors out; back: thin
  { 3, 70, 4, 1, { 7, 5 }, { 3, 3 }, padding = 1 }, -- thin, several groups of described taps; lines are no vectors
  { 2, 9, 9, 9, { 6, 8 }, { 3, 3 }, padding = 1 }, -- depthwise: thin with one output
  { 2, 6, 12, 6, { 9, 9 }, { 3, 2 }, padding = 2, stride = 2 },
  { 1, 40, 33, 1, { 12, 12 }, { 3, 3 }, padding = 1, stride = 2 }, -- a tile and one row
  { 2, 17, 31, 1, { 12, 9 }, { 5, 4 }, padding = 3, dilation = 2 }, -- a low tile that is not full
  { 1, 210, 6930, 210, { 4, 4 }, { 1, 1 } }, -- so many blocks that tiles are large
  { 1, 130, 210 * 5, 5, { 10, 12 }, { 3, 3 }, padding = 1 },
  { 1, 2, 3, 1, { 1, 20000 }, { 1, 2 }, dilation = 16400 }, -- coordinates that are not near
  { 1, 2, 40, 1, { 2, 17000 }, { 2, 1 } },
  { 0, 3, 64, 1, { 8, 8 }, { 3, 3 } }, -- no images
  { 1, 1, 5, 1, { 40, 1 }, { 33, 1 }, padding = 16 }, -- a window of one column, mostly outside
}

local function kernel_case(case)
  local images, channels, outputs, groups, size, kernel = table.unpack(kernels[(case - 1) % #kernels + 1])
  local o = kernels[(case - 1) % #kernels + 1]
  local stride, padding, dilation = o.stride or 1, o.padding or 0, o.dilation or 1
  local result = {}
  for d = 1, 2 do result[d] = (size[d] + 2 * padding - dilation * (kernel[d] - 1) - 1) // stride + 1 end
  return {
    images = images, channels = channels, outputs = outputs, size = size, kernel = kernel, result = result,
    options = { stride = stride, padding = padding, dilation = dilation, groups = groups },
  }
end

-- Small whole numbers: every sum is exact, in TF32 as well.
local function whole_numbers(...)
  local t = mr.randint(-4, 5, { ... }, { device = "cpu", dtype = "f32" })
  return { host = t, device = t:cuda() }
end

-- NaN and infinity here and there: a tile's empty places must not meet them.
local function special_numbers(...)
  local p = pair("f32", ...)
  local t, noise = p.host:contiguous(), mr.rand({ ... }, { device = "cpu" })
  t = mr.where(noise:lt(0.01), t:mul(math.huge), t)
  t = mr.where(noise:gt(0.99), t:mul(0 / 0), t)
  return { host = t, device = t:cuda() }
end

local function same_with_special(name, host, device)
  local got = device:cpu()
  for _, is in ipairs{ mr.isnan, mr.isinf } do
    assert(mr.equal(is(host), is(got)), name .. ": NaN or infinity elsewhere")
    host, got = mr.where(is(host), 0, host), mr.where(is(got), 0, got)
  end
  same(name, host, got, name == "conv2d_weight" and 1e-6 or 0)
end

function operations.convolution_kernels(case)
  local p = kernel_case(case)
  each_convolution(p, function(...) return pair("f32", ...) end, function(name, host, device)
    same(name, host, device, name == "conv2d_weight" and 1e-6 or 0)
  end)
  if p.outputs < 1000 then each_convolution(p, special_numbers, same_with_special) end
  mr.allow_tf32(true)
  each_convolution(p, whole_numbers, function(name, host, device) same(name .. ", tf32", host, device, 0) end)
  each_convolution(p, function(...) return pair("f32", ...) end, function(name, host, device)
    same(name .. ", tf32", host, device, 2e-3)
  end)
  mr.allow_tf32(false)
end

local function any_pool()
  local size, kernel = { random(9), random(9) }, {}
  local options = { stride = {}, padding = {}, dilation = {}, ceil_mode = random(2) == 1 }
  for d = 1, 2 do
    kernel[d], options.dilation[d] = random(3), random(2)
    options.stride[d] = random(3)
    options.padding[d] = random(0, ((kernel[d] - 1) * options.dilation[d] + 1) // 2)
    size[d] = size[d] + (kernel[d] - 1) * options.dilation[d]
  end
  return { random(0, 2), random(3), size[1], size[2] }, kernel, options
end

-- Pooling that halves the planes: there are kernels for it, in f32 where lines are whole vectors.
local function halving_pool()
  return { random(0, 3), random(3), 2 * random(7), 2 * random(7) }, { 2, 2 }, { stride = { 2, 2 } }
end

function operations.max_pool2d(case, dtype)
  local shape, kernel, options = (case % 2 == 0 and halving_pool or any_pool)()
  local x = pair(dtype, table.unpack(shape))
  same("max_pool2d", x.host:max_pool2d(kernel, options), x.device:max_pool2d(kernel, options), 0)
  options.return_indices = true
  local y, at = x.host:max_pool2d(kernel, options)
  local device_y, device_at = x.device:max_pool2d(kernel, options)
  same("max_pool2d", y, device_y, 0)
  same("positions of max_pool2d", at, device_at, 0)
  options.return_indices = nil
  local g = pair(dtype, table.unpack(y.shape))
  same("max_pool2d_backward", mr.max_pool2d_backward(shape, g.host, at, kernel, options),
    mr.max_pool2d_backward(shape, g.device, device_at, kernel, options), 0)
end

function operations.avg_pool2d(_, dtype)
  local shape, kernel, options = any_pool()
  for d = 1, 2 do options.padding[d] = math.min(options.padding[d], kernel[d] // 2) end
  options.dilation = nil
  options.count_include_pad = random(2) == 1
  options.divisor_override = random(3) == 1 and 7 or nil
  local x = pair(dtype, table.unpack(shape))
  local y = x.host:avg_pool2d(kernel, options)
  same("avg_pool2d", y, x.device:avg_pool2d(kernel, options), 0)
  local g = pair(dtype, table.unpack(y.shape))
  same("avg_pool2d_backward", mr.avg_pool2d_backward(shape, g.host, kernel, options),
    mr.avg_pool2d_backward(shape, g.device, kernel, options), 0)
end

function operations.adaptive_avg_pool2d(_, dtype)
  local shape, size = { random(0, 2), random(3), random(9), random(9) }, { random(6), random(6) }
  local x, g = pair(dtype, table.unpack(shape)), pair(dtype, shape[1], shape[2], size[1], size[2])
  same("adaptive_avg_pool2d", x.host:adaptive_avg_pool2d(size), x.device:adaptive_avg_pool2d(size), 0)
  same("adaptive_avg_pool2d_backward", mr.adaptive_avg_pool2d_backward(shape, g.host),
    mr.adaptive_avg_pool2d_backward(shape, g.device), 0)
end

function operations.nll_loss(case, dtype)
  local reductions = { "none", "mean", "sum" }
  local classes, shape = random(5), random(2) == 1 and { random(0, 400) } or { random(0, 9), random(5), random(4) }
  local options = { ignore_index = random(2) == 1 and 1 or nil, reduction = reductions[case % 3 + 1] }
  local function with(t, more)
    local copy = { weight = t }
    for key, value in pairs(options) do copy[key] = value end
    for key, value in pairs(more or {}) do copy[key] = value end
    return copy
  end
  local of_x = { shape[1], classes, table.unpack(shape, 2) }
  local x = pair(dtype, table.unpack(of_x))
  local weight = random(2) == 1 and pair(dtype, classes) or {}
  local target = mr.randint(1, classes + 1, shape, { device = "cpu" })
  local own = target:cuda()
  if case % 2 == 0 then target, own = target:to "i32", own:to "i32" end
  local asks = { return_total_weight = options.reduction ~= "none" }
  local y, total = x.host:nll_loss(target, with(weight.host, asks))
  local device_y, device_total = x.device:nll_loss(own, with(weight.device, asks))
  local near = dtype == "f64" and 1e-12 or 1e-6
  if y:has_nan() then return end -- nothing counts
  same("nll_loss", y, device_y, options.reduction == "none" and 0 or near)
  local g = options.reduction == "none" and pair(dtype, table.unpack(shape)) or { host = y, device = y:cuda() }
  same("nll_loss_backward",
    mr.nll_loss_backward(of_x, g.host, target, with(weight.host, { total_weight = total })),
    mr.nll_loss_backward(of_x, g.device, own, with(weight.device, { total_weight = device_total })), near)
end

local names = {}
for name in pairs(operations) do names[#names + 1] = name end
table.sort(names)
for _, name in ipairs(names) do
  if not only or only == name then
    for case = 1, CASES do
      operations[name](case, case % 3 == 0 and "f64" or "f32")
    end
    print(("%-20s %d cases"):format(name, CASES))
  end
end
print(("%d passed, 0 failed"):format(#names))
