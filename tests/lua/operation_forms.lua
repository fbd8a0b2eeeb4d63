-- All forms of an operation are one operation. The method, the function in `mr`, the in-place method and out= give the
-- same values, for every row of the operation table that has them.
local lu = require "luaunit"
local mr = require "millrace"

-- Operands on which the rows are tried; most take anything.
local function operands(name)
  if name == "matmul" or name == "mm" then return mr.rand(3, 4), mr.rand(4, 2) end
  if name == "mv" then return mr.rand(3, 4), mr.rand(4) end
  if name == "dot" then return mr.rand(5), mr.rand(5) end
  if name == "bmm" then return mr.rand(2, 3, 4), mr.rand(2, 4, 5) end
  if name == "addmm" then return mr.rand(3, 2), mr.rand(3, 4), mr.rand(4, 2) end
  if name == "softmax" or name == "log_softmax" then return mr.rand(3, 4), 2 end
  if name == "conv2d" then return mr.rand(2, 3, 5, 6), mr.rand(4, 3, 2, 3) end
  if name:find "pool2d" then return mr.rand(2, 3, 6, 7), 2 end
  if name == "nll_loss" then return mr.rand(2, 3), mr.tensor { 3, 1 } end
  if name == "logical_not" or name:match "^is%l+$" then return mr.rand(6):gt(0.5) end
  if name:match "^logical" then return mr.rand(6):gt(0.5), mr.rand(6):gt(0.5) end
  if name:match "^bitwise" then return mr.randint(90, {6}), mr.randint(5, {6}) end
  if name == "cumsum" or name == "cumprod" or name == "flip" or name == "roll" or name == "topk" then
    return mr.rand(6), 1
  end
  if name == "tril" or name == "triu" then return mr.rand(3, 4) end
  if name == "masked_select" then return mr.rand(6), mr.rand(6):gt(0.5) end
  if name == "index_select" then return mr.rand(6), 1, mr.tensor {3, 1} end
  if name == "gather" then return mr.rand(6), 1, mr.tensor {3, 1} end
  if name == "asin" or name == "acos" then return mr.rand(6) end
  if name == "masked_fill" then return mr.rand(6), mr.rand(6):gt(0.5), 3 end
  if name == "where" then return mr.rand(6):gt(0.5), mr.rand(6), mr.rand(6) end
  if name == "clamp" then return mr.rand(6), 0.25, 0.75 end
  return mr.rand(6):add(0.5), mr.rand(6):add(0.5), mr.rand(6)
end

-- How many operands a row takes besides the tensor itself: "x:lerp(y, w [, {out=}])" takes two.
local function count_of(usage)
  local inside, n = usage:match("%((.-)%s*[%[%)]"), 0
  for _ in (inside or ""):gmatch("[%a_]+") do n = n + 1 end
  return n
end

TestForms = {}

function TestForms.setUp() mr.manual_seed(3) end

for _, row in ipairs(mr.ops()) do
  local name = row.name
  if row.forms.method then
    TestForms["test_" .. name] = function()
      local x, y, z = operands(name)
      local arguments = table.pack(y, z)
      arguments.n = count_of(row.usage)
      local function rest() return table.unpack(arguments, 1, arguments.n) end

      local expected = x[name](x, rest())
      lu.assertEquals(tostring(expected.device), tostring(x.device))
      if row.forms.mr then
        lu.assertTrue(mr.equal(mr[name](x, rest()), expected), "mr." .. name)
      end
      if row.usage:find("out=", 1, true) then
        local out = mr.zeros_like(expected)
        arguments[arguments.n + 1] = {out = out}
        lu.assertTrue(rawequal(x[name](x, table.unpack(arguments, 1, arguments.n + 1)), out), name .. " returns out")
        lu.assertTrue(mr.equal(out, expected), name .. " with out=")
      end
      if row.forms.in_place then
        local mine = x:clone()
        lu.assertTrue(rawequal(mine[name .. "_"](mine, rest()), mine), name .. "_ returns its tensor")
        lu.assertTrue(mr.equal(mine, expected), name .. "_")
      end
    end
  end
end

function TestForms.test_there_are_rows() lu.assertTrue(#mr.ops() > 50) end

os.exit(lu.LuaUnit.run())
