-- mr.elementwise by hand: a program that writes kernels.
--
-- A kernel's source is a string, so Lua can write it. `elementwise` below makes a function of tensors from a formula,
-- as mr.elementwise does: it puts the formula into a kernel, compiles it once, and launches it with enough blocks. The
-- whole formula is then one kernel, which reads each input once; tensor operations would write a temporary for each
-- step. mr.elementwise also broadcasts, takes other types and any strides, and checks what it is given.
local mr = require "millrace"

local SOURCE = [[
extern "C" __global__ void %s(float *result, %s, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) result[i] = %s;
}]]

-- elementwise("name", {"x", "y"}, "x + y"): in the formula, x means x[i].
local function elementwise(name, inputs, formula)
  local parameters, loads = {}, formula
  for k, input in ipairs(inputs) do
    parameters[k] = "const float *" .. input
    loads = loads:gsub("%f[%w_]" .. input .. "%f[^%w_]", input .. "[i]")
  end
  local kernel = mr.kernel(SOURCE:format(name, table.concat(parameters, ", "), loads), name)
  return function(...)
    local result = mr.empty_like((...))
    local arguments = { ... }
    arguments[#arguments + 1] = result.numel
    kernel[{(result.numel + 255) // 256, 256}](result, table.unpack(arguments))
    return result
  end
end

local by_hand = elementwise("smooth_step", { "x" }, "x * x * (3 - 2 * x)")
local built_in = mr.elementwise("float x -> float z", "z = x * x * (3 - 2 * x)", "smooth_step")

local x = mr.arange(65, {dtype = "f32"}) / 64
local right = x * x * (3 - 2 * x)
print("by hand:        " .. tostring(mr.equal(by_hand(x), right)))
print("mr.elementwise: " .. tostring(mr.equal(built_in(x), right)))

-- What the built-in one can do beyond that: numbers as inputs, shapes that broadcast, several results, any view.
local split = mr.elementwise("float x, float limit -> float below, float above",
  "below = x < limit ? x : limit; above = x - below", "split")
local table_of = mr.arange(12, {dtype = "f32"}):view(3, 4)
local below, above = split(table_of:t(), 5)
print("the parts add up: " .. tostring(mr.equal(below + above, table_of:t())))

return { -- for the tests
  fixed = function(n)
    local t = mr.arange(n, {dtype = "f32"})
    local low, high = split(t, 10)
    return low:sum():item() + high:sum():item(), n * (n - 1) // 2
  end,
}
