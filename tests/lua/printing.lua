-- print(t) shows values as PyTorch does: texts that PyTorch made for the same tensors (tests/data/print/make.py).
local lu = require "luaunit"
local mr = require "millrace"

local CASES = dofile("tests/data/print/expected.lua")

-- The tensor of a case; values are in row-major order.
local function make(dtype, shape, values)
  local divisor = type(values) == "string" and values:match("arange / (%w+)")
  local numel = 1
  for _, n in ipairs(shape) do numel = numel * n end
  local t
  if divisor == "even" then t = mr.arange(numel):remainder(2):eq(0)
  elseif divisor then t = mr.arange(numel, { dtype = "f64" }) / tonumber(divisor)
  elseif #shape == 0 then t = mr.tensor(values[1], { dtype = dtype })
  elseif numel == 0 then t = mr.zeros(shape, { dtype = dtype })
  else t = mr.tensor(values, { dtype = dtype }) end
  return t:to(dtype):view(shape)
end

TestPrinting = {}

for number, case in ipairs(CASES) do
  TestPrinting[("test_%03d_%s"):format(number, case[1])] = function()
    local t = make(case[1], case[2], case[3])
    local text = mr.format(t)
    lu.assertEquals(text:match("^(.*)\n[^\n]*$"), case[4])
    lu.assertStrContains(text:match("[^\n]*$"), case[1] .. "[" .. table.concat(case[2], ",") .. "]")
  end
end

function TestPrinting.test_layouts_show_the_same()
  local t = mr.arange(12, { dtype = "f32" }):view(3, 4)
  lu.assertEquals(mr.format(t:t():contiguous()), mr.format(t:t()))
  lu.assertStrContains(mr.format(mr.tensor(1.5):expand(2, 2)), "[[1.5000, 1.5000],\n [1.5000, 1.5000]]")
end

-- The last line says whether gradients go through it, and which operation made it.
function TestPrinting.test_gradients_show()
  local x = mr.tensor({ 1.0 }, { device = "cpu", requires_grad = true })
  lu.assertEquals(mr.format(x), "[1.]\nf32[1] on cpu, requires_grad")
  lu.assertStrMatches(mr.format(x * 2), "%[2%.%]\nf32%[1%] on cpu, grad_fn mul at [^\n]*printing%.lua:%d+")
  lu.assertEquals(mr.format(x:detach()), "[1.]\nf32[1] on cpu")
end

os.exit(lu.LuaUnit.run())
