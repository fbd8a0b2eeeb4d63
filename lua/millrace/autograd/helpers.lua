-- Functions that the expressions of derivatives.lua call, beside the methods of tensors.
local mr = require "millrace"

local H = {}

function H.where(condition, y, z) return mr.where(condition, y, z) end
function H.zeros(g) return mr.zeros_like(g) end

-- Functions of a tensor or a number.
function H.log(x) return type(x) == "number" and math.log(x) or x:log() end
function H.is_zero(x) if type(x) == "number" then return x == 0 end return x:eq(0) end

-- g where the condition, a tensor or a boolean, holds, and 0 elsewhere.
function H.only(condition, g)
  if type(condition) ~= "boolean" then return mr.where(condition, g, 0) end
  return condition and g or mr.zeros_like(g)
end

-- x < y and so on, of two that are not both numbers.
function H.lt(x, y) if type(x) == "number" then return y:gt(x) end return x:lt(y) end
function H.ge(x, y) if type(x) == "number" then return y:le(x) end return x:ge(y) end

-- The gradient of the base: g * b * a ^ (b - 1), but 0 where b is 0, also at a = 0.
function H.pow_base(g, a, b)
  if type(b) == "number" then return b == 0 and mr.zeros_like(g) or g * (b * a ^ (b - 1)) end
  return mr.where(b:eq(0), 0, g * (b * a ^ (b - 1)))
end

-- The gradient of the exponent: g * out * log(a), but 0 where a is 0 and b at least 0.
function H.pow_exponent(g, a, b, out)
  local grad = (g * (out * H.log(a))):to(g.dtype) -- the logarithms of integers are f32
  if type(a) == "number" then return a == 0 and mr.where(b:ge(0), 0, grad) or grad end
  local zero = a:eq(0)
  if type(b) == "number" then return b >= 0 and mr.where(zero, 0, grad) or grad end
  return mr.where(zero * b:ge(0), 0, grad)
end

-- maximum and minimum: two that are equal share the gradient, and it is 0 for the one that loses. NaN loses to nothing.
function H.share(g, loses, ties) return mr.where(loses, 0, mr.where(ties, g * 0.5, g)) end
function H.gt(x, y) return H.lt(y, x) end
function H.eq(x, y) if type(x) == "number" then return y:eq(x) end return x:eq(y) end

-- clamp(a, least, greatest), where a bound may be nil: whether each bound was reached.
function H.below(a, least) return H.lt(a, least) end
function H.clamped(g, a, least, greatest)
  if least ~= nil then g = mr.where(a:ge(least), g, 0) end
  if greatest ~= nil then g = mr.where(a:le(greatest), g, 0) end
  return g
end
function H.clamped_least(g, a, least, greatest)
  g = mr.where(a:lt(least), g, 0)
  if greatest ~= nil then g = mr.where(H.lt(least, greatest), g, 0) end
  return g
end
function H.clamped_greatest(g, a, least, greatest)
  local over = a:gt(greatest)
  if least ~= nil then over = over + H.gt(least, greatest) end -- of bools: or
  return mr.where(over, g, 0)
end

-- The sum of g over the dims in which `shape` was broadcast to that of g; and in this dtype, if it is given.
function H.sum_to(g, shape, dtype)
  local have = g.shape
  local extra, dims = #have - #shape, {}
  for d = 1, #have do
    if d <= extra or (shape[d - extra] == 1 and have[d] ~= 1) then dims[#dims + 1] = d end
  end
  if #dims > 0 then g = g:sum(dims, true) end
  if extra ~= 0 then g = g:reshape(shape) end -- fewer dims: t[i] = x takes an x with dims of size 1 in front
  if dtype and g.dtype ~= dtype then g = g:to(dtype) end
  return g
end

-- The distribution function of the standard normal distribution, plus a times its density.
function H.gelu_slope(a)
  local zero = a:eq(0)
  local divisor = mr.where(zero, 1, a)
  -- gelu(a) = a * distribution(a); at 0 the tangent of the distribution, so that the slope has a derivative there, too
  local tail = mr.where(zero, a * 0.3989422804014327 + 0.5, divisor:gelu() / divisor)
  return tail + a * (a:square() * -0.5):exp() * 0.3989422804014327
end

function H.silu_slope(a)
  local s = a:sigmoid()
  return s * (a * (1 - s) + 1)
end

function H.trunc_of(a, b) return (a / b):trunc() end
function H.floor_of(a, b) return (a / b):floor() end

return H
