-- Gradients of results that are kept, and recording inside mr.no_grad.
local lu = require "luaunit"
local mr = require "millrace"

TestKept = {}

function TestKept.test_retain_grad_keeps_the_gradient_of_a_result()
  local x = mr.tensor({ 1.0, 2.0 }):requires_grad_()
  local y = x * 3
  lu.assertIs(y:retain_grad(), y)
  local z = y * 2
  z:sum():backward()
  lu.assertEquals(y.grad:totable(), { 2.0, 2.0 })
  lu.assertNil(z.grad)
  lu.assertErrorMsgContains("does not require gradients", function() mr.ones(2):retain_grad() end)
end

function TestKept.test_enable_grad_inside_no_grad()
  local x = mr.tensor({ 1.0, 2.0 }):requires_grad_()
  mr.no_grad(function()
    lu.assertFalse((x * 2).requires_grad)
    lu.assertTrue(mr.enable_grad(function() return x * 2 end).requires_grad)
    lu.assertFalse(mr.is_grad_enabled())
  end)
  lu.assertTrue(mr.is_grad_enabled())
end

os.exit(lu.LuaUnit.run())
