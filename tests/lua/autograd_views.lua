-- Gradients where memory is shared: views older than the first recorded change, leaves that are views, and results
-- changed in place after their use. Also derivatives of tensors without elements.
local lu = require "luaunit"
local mr = require "millrace"

local function leaf(values) return mr.tensor(values):requires_grad_() end

local function says(text, f, ...)
  local ok, err = pcall(f, ...)
  lu.assertFalse(ok, "expected an error with: " .. text)
  lu.assertStrContains(tostring(err), text)
end

TestOldViews = {}

function TestOldViews.test_gradients_go_through_a_view_that_is_older_than_the_change()
  local x = leaf { 1.0, 2.0, 3.0 }
  local memory = mr.zeros(6)
  local y = memory:view(2, 3)
  y[1] = x * 3
  lu.assertTrue(memory.requires_grad)
  lu.assertTrue(y.requires_grad)
  lu.assertFalse(y.is_leaf)
  lu.assertStrContains(y.grad_fn, "view at");
  (y * mr.tensor { { 1.0, 2.0, 3.0 }, { 9.0, 9.0, 9.0 } }):sum():backward()
  lu.assertEquals(x.grad:totable(), { 3.0, 6.0, 9.0 })
end

function TestOldViews.test_a_change_of_the_base_reaches_its_older_views()
  local x = leaf { 2.0, 3.0 }
  local y = mr.ones(2)
  local second = y[2]
  y:mul_(x):mul_(x)
  second:backward()
  lu.assertEquals(x.grad:totable(), { 0.0, 6.0 })
end

function TestOldViews.test_siblings_of_the_changed_view_see_it()
  local x = leaf { 2.0, 3.0 }
  local memory = mr.zeros(4)
  local left, whole = memory[{ { 1, 2 } }], memory:view(2, 2)
  left:copy_(x);
  (whole * whole):sum():backward()
  lu.assertEquals(x.grad:totable(), { 4.0, 6.0 })
end

function TestOldViews.test_a_view_made_inside_no_grad_has_no_gradients()
  local x = leaf { 2.0, 3.0 }
  local y = mr.ones(2)
  y:mul_(x)
  local first = mr.no_grad(function() return y[1] end)
  lu.assertFalse(first.requires_grad)
  lu.assertTrue(first.is_leaf)
  says("does not require gradients", function() first:backward() end)
end

TestLeavesThatAreViews = {}

function TestLeavesThatAreViews.test_their_views_cannot_be_changed()
  local w = mr.zeros(6):view(2, 3):requires_grad_()
  says("a leaf that requires gradients", function() w[1]:fill_(2) end)
  says("a leaf that requires gradients", function() w[1] = 2 end)
  lu.assertEquals(w:detach():sum():item(), 0.0)
  w:requires_grad_(false)
  w[1] = 2
  lu.assertEquals(w:sum():item(), 6.0)
end

function TestLeavesThatAreViews.test_a_step_inside_no_grad_leaves_views_as_they_are()
  local w = mr.ones(3, 2):t():requires_grad_() -- not contiguous
  local row = w[2]
  mr.no_grad(function() w:mul_(2) end);
  (row * 3):sum():backward()
  lu.assertEquals(w.grad:totable(), { { 0.0, 0.0, 0.0 }, { 3.0, 3.0, 3.0 } })
end

TestChangedAfterUse = {}

-- f(x) -> what is changed in place; its gradient with respect to x, for x = {{1, 4}, {8, 2}}, is `expected`.
local function check(f, expected)
  local x = leaf { { 1.0, 4.0 }, { 8.0, 2.0 } }
  local y = f(x)
  y:mul_(2)
  y:sum():backward()
  lu.assertEquals(x.grad:totable(), expected)
end

function TestChangedAfterUse.test_a_quotient()
  check(function(x) return mr.full({ 2, 2 }, 12.0) / x end, { { -24.0, -1.5 }, { -0.375, -6.0 } })
end

function TestChangedAfterUse.test_the_greatest_and_the_least()
  check(function(x) return (x:max(2)) end, { { 0.0, 2.0 }, { 2.0, 0.0 } })
  check(function(x) return (x:min(1, true)) end, { { 2.0, 0.0 }, { 0.0, 2.0 } })
  check(function(x) return x:max() end, { { 0.0, 0.0 }, { 2.0, 0.0 } })
  check(function(x) return (x:max { dim = 2 }) end, { { 0.0, 2.0 }, { 2.0, 0.0 } })
end

function TestChangedAfterUse.test_the_input_of_a_greatest_along_a_dim()
  local x = leaf { 1.0, 5.0, 3.0 }
  local y = x * 2
  local most = y:max(1)
  y:zero_()
  most:backward()
  lu.assertEquals(x.grad:totable(), { 0.0, 2.0, 0.0 })
end

TestNoElements = {}

function TestNoElements.test_products_of_batches()
  local a, w = mr.zeros(2, 3, 0):requires_grad_(), mr.zeros(0, 4):requires_grad_()
  a:matmul(w):sum():backward()
  lu.assertEquals(a.grad.shape, { 2, 3, 0 })
  lu.assertEquals(w.grad.shape, { 0, 4 })
  a, w = mr.zeros(0, 3, 2):requires_grad_(), mr.ones(2, 4):requires_grad_()
  a:matmul(w):sum():backward()
  lu.assertEquals(w.grad:totable(), mr.zeros(2, 4):totable())
end

function TestNoElements.test_rows_without_columns()
  local rows = mr.zeros(3, 0):requires_grad_()
  mr.embedding(mr.tensor { 1, 2 }, rows):sum():backward()
  lu.assertEquals(rows.grad.shape, { 3, 0 })
end

TestAssignment = {}

function TestAssignment.test_dims_of_size_1_in_front_of_the_value_do_not_count()
  local x = mr.tensor({ { { 1.0, 2.0 } } }):requires_grad_()
  local y = mr.zeros(3, 2)
  y[2] = x
  lu.assertEquals(y:detach():totable(), { { 0.0, 0.0 }, { 1.0, 2.0 }, { 0.0, 0.0 } });
  (y * y):sum():backward()
  lu.assertEquals(x.grad:totable(), { { { 2.0, 4.0 } } })
  local z = mr.zeros(2)
  z[1] = mr.tensor { { 5.0 } }
  lu.assertEquals(z:totable(), { 5.0, 0.0 })
  says("does not broadcast", function() z[1] = mr.tensor { { 5.0, 6.0 } } end)
end

TestKeptGradients = {}

function TestKeptGradients.test_a_result_that_is_changed_keeps_the_gradient_of_its_newest_value()
  local x = leaf { 1.0, 2.0 }
  local y = x * 2
  y:retain_grad()
  y:mul_(3)
  y:sum():backward()
  lu.assertEquals(y.grad:totable(), { 1.0, 1.0 })
  lu.assertEquals(x.grad:totable(), { 6.0, 6.0 })
end

function TestKeptGradients.test_and_so_do_views_and_bases()
  local x = leaf { 1.0, 2.0 }
  local y = x * 2
  local first = y[1]
  y:retain_grad()
  first:retain_grad()
  y[2] = 7
  first:mul_(5);
  (y * mr.tensor { 10.0, 100.0 }):sum():backward()
  lu.assertEquals(y.grad:totable(), { 10.0, 100.0 })
  lu.assertEquals(first.grad:item(), 10.0)
  lu.assertEquals(x.grad:totable(), { 100.0, 0.0 })
end

TestFailures = {}

function TestFailures.test_grad_of_a_freed_graph_says_so()
  local x = leaf { 2.0 }
  local y = x * x
  mr.autograd.grad(y, x)
  says("the graph of mul", function() mr.autograd.grad(y, x) end)
end

function TestFailures.test_a_freed_grad_is_found_before_others_change()
  local v, w = leaf { 1.0 }, leaf { 1.0 };
  (v * w):backward()
  w.grad:free()
  local y = v * w
  says("was freed", function() y:backward() end)
  lu.assertEquals(v.grad:totable(), { 1.0 })
  w.grad = nil
  y:backward()
  lu.assertEquals(v.grad:totable(), { 2.0 })
end

function TestFailures.test_an_expanded_grad_is_refused()
  local x = leaf { 1.0, 2.0 }
  says("expanded view", function() x.grad = mr.zeros(1):expand(2) end)
  lu.assertNil(x.grad)
end

function TestFailures.test_nested_backward_functions_name_the_innermost()
  local y
  local again = mr.autograd.Function {
    forward = function(_, x) return x * 2 end,
    backward = function() y:backward() end,
  }
  y = again(leaf { 1.0 })
  local _, err = pcall(y.backward, y)
  local _, count = tostring(err):gsub("backward of", "")
  lu.assertEquals(count, 1)
end

function TestFailures.test_recording_is_on_after_a_reset_in_the_middle()
  local reset = mr.autograd.Function {
    forward = function(_, x) return x * 2 end,
    backward = function(_, g)
      mr.reset()
      return g
    end,
  }
  local y = reset(leaf { 1.0 } * 3)
  says("mr.reset()", function() y:backward() end)
  lu.assertTrue(mr.is_grad_enabled())
  local x = leaf { 1.0 };
  (x * 2):backward()
  lu.assertEquals(x.grad:totable(), { 2.0 })
end

os.exit(lu.LuaUnit.run())
