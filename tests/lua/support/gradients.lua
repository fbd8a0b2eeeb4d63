-- Gradients beside central differences, in f64: what the tests of autograd share.
local lu = require "luaunit"
local mr = require "millrace"

local M = {}

local STEP = 1e-5

-- The sum of all results, each weighted: every element counts, and no two alike.
local function weighted(results)
  local total
  for _, out in ipairs(results) do
    local weights = mr.arange(1, out.numel + 1, { dtype = "f64", device = out.device }):mul(0.37):sin():add(1.5)
    local part = (out:to("f64") * weights:view(out.shape)):sum()
    total = total and total + part or part
  end
  return total
end

local function is_float(t) return type(t) == "userdata" and (t.dtype == "f64" or t.dtype == "f32") end

local function loss_of(f, inputs) return weighted { f(table.unpack(inputs, 1, inputs.n)) } end

-- The central difference for element i of a contiguous host tensor.
local function difference(f, inputs, t, i)
  local element = t:view(-1)[i]
  local value = element:item()
  element:fill_(value + STEP)
  local above = loss_of(f, inputs):item()
  element:fill_(value - STEP)
  local below = loss_of(f, inputs):item()
  element:fill_(value)
  return (above - below) / (2 * STEP)
end

-- Checks the gradients of f(...) with respect to each argument that is a tensor of floats. Arguments are contiguous f64
-- tensors on the host, or anything else, which is handed on.
function M.check(what, f, ...)
  local inputs = table.pack(...)
  local leaves = { n = inputs.n }
  for i = 1, inputs.n do
    leaves[i] = is_float(inputs[i]) and inputs[i]:clone():requires_grad_() or inputs[i]
  end
  loss_of(f, leaves):backward()
  for i = 1, inputs.n do
    if is_float(inputs[i]) then
      local t, grad = inputs[i], leaves[i].grad
      lu.assertNotNil(grad, ("%s: input %d has no gradient"):format(what, i))
      lu.assertEquals(grad.shape, t.shape, what)
      lu.assertEquals(grad.dtype, t.dtype, what)
      for k = 1, t.numel do
        local wanted, got = difference(f, inputs, t, k), grad:reshape(-1)[k]:item()
        local distance = math.abs(got - wanted) / math.max(1, math.abs(wanted))
        if distance ~= distance or distance > 1e-6 then
          lu.fail(("%s: input %d, element %d: the gradient is %.9g, the difference quotient %.9g"):format(what, i, k,
            got, wanted))
        end
      end
    end
  end
end

-- The gradients of f(...) as a function, whose results are recorded; of an argument without one, 0.
local function gradients_of(f)
  return function(...)
    local inputs, floats = table.pack(...), {}
    for i = 1, inputs.n do
      if is_float(inputs[i]) then
        if not inputs[i].requires_grad then inputs[i] = inputs[i]:clone():requires_grad_() end
        floats[#floats + 1] = inputs[i]
      end
    end
    local found = table.pack(mr.autograd.grad(loss_of(f, inputs), floats, { create_graph = true, allow_unused = true }))
    local results = {}
    for i, t in ipairs(floats) do
      results[#results + 1] = found[i]
      results[#results + 1] = t * 0 -- a gradient of a gradient may be a constant
    end
    return table.unpack(results)
  end
end

-- Checks the gradients of the gradients of f(...).
function M.check_second(what, f, ...) M.check(what .. ", second derivative", gradients_of(f), ...) end

-- An argument on this device; of options, a copy with the tensors among them there.
local function placed(v, device)
  if type(v) == "userdata" then return v:to(device):clone() end
  if type(v) ~= "table" then return v end
  local copy = {}
  for key, entry in pairs(v) do copy[key] = type(entry) == "userdata" and entry:to(device) or entry end
  return copy
end

-- The same with device tensors has the same gradients, up to rounding.
function M.check_on_device(what, f, ...)
  local inputs = table.pack(...)
  local grads = {}
  for place, device in ipairs { "cpu", 0 } do
    local leaves = { n = inputs.n }
    for i = 1, inputs.n do
      local t = placed(inputs[i], device)
      leaves[i] = is_float(t) and t:requires_grad_() or t
    end
    loss_of(f, leaves):backward()
    grads[place] = {}
    for i = 1, inputs.n do grads[place][i] = is_float(inputs[i]) and leaves[i].grad:cpu() or nil end
  end
  for i = 1, inputs.n do
    if grads[1][i] then
      lu.assertTrue(mr.allclose(grads[1][i], grads[2][i], { rtol = 1e-12, atol = 1e-13 }), what .. " on the device")
    end
  end
end

-- Random f64 tensors on the host.
function M.between(low, high, ...) return mr.rand(..., { dtype = "f64", device = "cpu" }):mul(high - low):add(low) end

return M
