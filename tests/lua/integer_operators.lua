-- Lua's operators for integers, on tensors and numbers, beside the same in Lua; and mr.outer.
local lu = require "luaunit"
local mr = require "millrace"

local OPERATORS = {
  ["//"] = function(a, b) return a // b end,
  ["&"] = function(a, b) return a & b end,
  ["|"] = function(a, b) return a | b end,
  ["~"] = function(a, b) return a ~ b end,
  ["<<"] = function(a, b) return a << b end,
  [">>"] = function(a, b) return a >> b end,
}

TestOperators = {}

function TestOperators.test_two_operands()
  local left, right = { 12, 7, 1, 1000 }, { 5, 2, 3, 7 }
  for _, device in ipairs { "cpu", 0 } do
    local a, b = mr.tensor(left, { device = device }), mr.tensor(right, { device = device })
    for name, operator in pairs(OPERATORS) do
      local both, with_number, of_number = {}, {}, {}
      for i, x in ipairs(left) do
        both[i], with_number[i], of_number[i] = operator(x, right[i]), operator(x, 3), operator(100, right[i])
      end
      lu.assertEquals(operator(a, b):cpu():totable(), both, name)
      lu.assertEquals(operator(a, 3):cpu():totable(), with_number, name)
      lu.assertEquals(operator(100, b):cpu():totable(), of_number, name)
    end
    lu.assertEquals((~a):cpu():totable(), { ~12, ~7, ~1, ~1000 })
  end
end

function TestOperators.test_outer()
  local x, y = mr.tensor { 1, 2, 3 }, mr.tensor { 4, 5 }
  lu.assertEquals(mr.outer(x, y):totable(), { { 4, 5 }, { 8, 10 }, { 12, 15 } })
end

os.exit(lu.LuaUnit.run())
