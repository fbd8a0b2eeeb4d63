-- Operations of networks on a GPU: random shapes, options and layouts, beside the CPU bodies. Convolutions add in the same
-- order on both, so their bits are equal; what is allowed to differ says by how much.
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
  if not (difference <= tolerance * size) then
    error(("%s: differs by %g of %g"):format(what, difference, size), 0)
  end
end

local operations = {}

-- The sizes and options of a convolution that fits.
local function convolution()
  while true do
    local groups = random(3)
    local p = { images = random(0, 3), channels = groups * random(5), outputs = groups * random(6), size = {}, kernel = {} }
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

function operations.conv2d(case, dtype)
  local p = case == 1 and large_convolution() or convolution()
  local o = p.options
  local x = pair(dtype, p.images, p.channels, p.size[1], p.size[2])
  local w = pair(dtype, p.outputs, p.channels // o.groups, p.kernel[1], p.kernel[2])
  local g = pair(dtype, p.images, p.outputs, p.result[1], p.result[2])
  local bias = random(2) == 1 and pair(dtype, p.outputs) or {}
  same("conv2d", mr.conv2d(x.host, w.host, bias.host, o), mr.conv2d(x.device, w.device, bias.device, o), 0)
  local input = { p.images, p.channels, p.size[1], p.size[2] }
  same("conv2d_input", mr.conv2d_input(input, w.host, g.host, o), mr.conv2d_input(input, w.device, g.device, o), 0)
  local weights = { p.outputs, p.channels // o.groups, p.kernel[1], p.kernel[2] }
  same("conv2d_weight", mr.conv2d_weight(x.host, weights, g.host, o), mr.conv2d_weight(x.device, weights, g.device, o),
    dtype == "f64" and 1e-13 or 1e-5)
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
