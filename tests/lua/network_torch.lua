-- Operations of networks and their gradients beside PyTorch's (tests/data/network/make.py), on the host and on the
-- device.
local lu = require "luaunit"
local mr = require "millrace"

local folder = arg[0]:match "^(.*)/lua/" or "tests"
local device -- where tensors are made

local function T(dtype, shape, data)
  return mr.tensor(data, { dtype = dtype, device = device }):view(#shape > 0 and shape or {})
end
local cases = dofile(folder .. "/data/network/cases.lua")

-- Sums of squares and exponentials, in another order: in f64 that is all that may differ.
local function assertClose(what, expected, got)
  lu.assertEquals(got.shape, expected.shape, what)
  lu.assertEquals(got.dtype, expected.dtype, what)
  if got.dtype == "i64" then
    lu.assertTrue(mr.equal(got, expected), what)
    return
  end
  got, expected = got:cpu():reshape(-1), expected:cpu():reshape(-1)
  for i = 1, got.numel do
    local a, b = expected[i]:item(), got[i]:item()
    local same = a == b or a ~= a and b ~= b or math.abs(a - b) <= 1e-12 * math.max(1, math.abs(a))
    lu.assertTrue(same, ("%s: element %d is %.17g, PyTorch's is %.17g"):format(what, i, b, a))
  end
end

local function weighted(t)
  local weights = mr.arange(1, t.numel + 1, { dtype = "f64", device = device }):sin()
  return (t * weights:view(t.shape)):sum()
end

-- Tensors and options, those of the case and no others.
local function arguments_of(case)
  local arguments = {}
  for i, input in ipairs(case.inputs) do arguments[i] = case.gradients[i] and input:requires_grad_() or input end
  for _, value in ipairs(case.extra) do arguments[#arguments + 1] = value end
  if case.name == "einsum" then table.insert(arguments, 1, table.remove(arguments)) end
  return arguments
end

local function check(case, what)
  local got = table.pack(mr[case.name](table.unpack(arguments_of(case))))
  if case.name == "batch_norm" then got[2], got[3] = case.inputs[2], case.inputs[3] end
  for i, expected in ipairs(case.results) do assertClose(what .. ", result " .. i, expected, got[i]) end
  if not got[1].requires_grad then return end
  weighted(got[1]):backward()
  for i, gradient in ipairs(case.gradients) do
    if gradient then assertClose(what .. ", gradient " .. i, gradient, case.inputs[i].grad) end
  end
end

TestTorch = {}

local function check_all(where)
  device = where
  for k, case in ipairs(cases(T, 0 / 0, math.huge)) do check(case, ("%s, case %d"):format(case.name, k)) end
end

function TestTorch.test_on_the_host() check_all "cpu" end

function TestTorch.test_on_the_device() check_all(0) end

os.exit(lu.LuaUnit.run())
