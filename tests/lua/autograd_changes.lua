-- No gradient is silently wrong: backward raises an error or computes the right gradient. This holds for any overwrite
-- between the forward pass and backward, and for any memory that operands of an operation in place share. Every row of
-- the operation table and every function of support/derivative_cases.lua is tried.
local lu = require "luaunit"
local mr = require "millrace"

local cases = require "lua.support.derivative_cases"

local STEP = 1e-6

local function is_tensor(t) return type(t) == "userdata" end
local function is_float(t) return is_tensor(t) and t.dtype == "f64" end

-- The sum of all results, weighted.
local function loss_of(...)
  local total = 0
  for _, out in ipairs { ... } do
    local weights = mr.arange(1, out.numel + 1, { dtype = "f64", device = out.device }):mul(0.37):sin():add(1.5)
    total = total + (out:to("f64") * weights:view(out.shape)):sum():cpu()
  end
  return total
end

-- Copies of the arguments; tensors of floats require gradients. Then the tensors among them, also those in tables.
local function prepared(arguments)
  local list, found = { n = arguments.n }, {}
  local function copy(v)
    if not is_tensor(v) then return v end
    v = v:clone()
    found[#found + 1] = v
    return v
  end
  for i = 1, arguments.n do
    local v = arguments[i]
    if type(v) == "table" then
      list[i] = {}
      for key, entry in pairs(v) do list[i][key] = copy(entry) end
    else
      list[i] = copy(v)
      if is_float(v) then list[i]:requires_grad_() end
    end
  end
  return list, found
end

local function gradients_of(list)
  local grads = {}
  for i = 1, list.n do grads[i] = is_float(list[i]) and list[i].grad or nil end
  return grads
end

-- Other values, which are still good positions and in the domain of every function.
local function overwrite(t)
  t = t:detach()
  for d = 1, t.ndim do
    if t.stride[d] == 0 then t = t:narrow(d, 1, 1) end -- expanded
  end
  if t.dtype == "bool" then t:copy_(t:logical_not())
  elseif t.dtype == "f64" then t:mul_(0.875):add_(0.03125)
  else t:sub_(t):add_(1) end
end

local function is_refusal(err) return err:find("changed them in place", 1, true) ~= nil end

local counts = { refused = 0, right = 0 }

-- Carries out f, lets `change` overwrite something, and compares the gradients with those of a run without.
local function try(what, f, arguments, change)
  local clean = prepared(arguments)
  loss_of(f(table.unpack(clean, 1, clean.n))):backward()
  local wanted = gradients_of(clean)

  local list, tensors = prepared(arguments)
  local results = table.pack(f(table.unpack(list, 1, list.n)))
  local loss = loss_of(table.unpack(results, 1, results.n))
  mr.no_grad(change, tensors, results)
  local ok, err = pcall(loss.backward, loss)
  if not ok then
    lu.assertTrue(is_refusal(err), ("%s: %s"):format(what, err))
    counts.refused = counts.refused + 1
    return
  end
  for i, grad in pairs(gradients_of(list)) do
    if not mr.equal(grad, wanted[i]) then
      lu.fail(("%s: the gradient of input %d is silently wrong: %s, not %s"):format(what, i, mr.format(grad),
        mr.format(wanted[i])))
    end
  end
  counts.right = counts.right + 1
end

local function try_all(what, f, arguments)
  local _, tensors = prepared(arguments)
  for k = 1, #tensors do
    try(("%s, operand %d overwritten"):format(what, k), f, arguments, function(list) overwrite(list[k]) end)
  end
  try(what .. ", result overwritten", f, arguments, function(_, results) overwrite(results[1]) end)
end

TestOverwritten = {}

function TestOverwritten.setUp() mr.manual_seed(5) end

for _, row in ipairs(mr.ops()) do
  if row.derivative ~= "none" and not cases.RANDOM[row.name] then
    TestOverwritten["test_" .. row.name] = function()
      for k, case in ipairs(cases.of(row)) do
        case.n = case.n or math.max(#case, row.inputs or 1)
        for _, form in ipairs(cases.forms_of(row)) do try_all(("%s, case %d"):format(row.name, k), form, case) end
        if row.forms.in_place and is_float(case[1]) then
          local whole = pcall(function()
            mr.no_grad(function() case[1]:clone()[row.name .. "_"](case[1]:clone(), table.unpack(case, 2, case.n)) end)
          end)
          if whole then
            try_all(("%s_, case %d"):format(row.name, k), function(x, ...)
              local y = x * 1
              return y[row.name .. "_"](y, ...)
            end, case)
          end
        end
      end
    end
  end
end

TestFunctions = {}

function TestFunctions.setUp() mr.manual_seed(6) end

for name, case in pairs(cases.functions) do
  TestFunctions["test_" .. name] = function()
    try_all(name, case[1], table.pack(table.unpack(case, 2)))
  end
end

-- ---------------------------------------------------------------- operands that share memory with the target

-- Each makes an operand of `h`, in its memory; `moves` says whether gradients go through it.
local aliases = {
  itself = { moves = true, make = function(h) return h end },
  ["a view of itself"] = { moves = true, make = function(h) return h:view(h.shape) end },
  ["its first row"] = { moves = true, make = function(h) return h.ndim > 0 and h[1] or h end },
  ["its last row, with the dim"] = { moves = true, make = function(h) return h.ndim > 0 and h[{ { -1 } }] or h end },
  ["itself, detached"] = { make = function(h) return h:detach() end },
  ["its first row, detached"] = { make = function(h) return h.ndim > 0 and h:detach()[1] or h:detach() end },
}

-- The derivative of f in element k of x from both sides; nil where it jumps.
local function difference(f, x, k)
  local element = x:view(-1)[k]
  local value, here = element:item(), f(x)
  element:fill_(value + STEP)
  local above = (f(x) - here) / STEP
  element:fill_(value - STEP)
  local below = (here - f(x)) / STEP
  element:fill_(value)
  if math.abs(above - below) > 1e-3 * math.max(1, math.abs(above)) then return nil end
  return (above + below) / 2
end

-- y:name_(..., alias of y, ...), with the alias in place of operand i.
local function try_alias(what, name, case, i, alias)
  local x = case[1]:abs():add(0.3)
  local function call(y, operand)
    local arguments = { table.unpack(case, 2, case.n) }
    arguments[i - 1] = operand
    y[name](y, table.unpack(arguments, 1, case.n - 1))
    return y
  end
  local function apart(t) -- the same without shared memory
    local operand = alias.make((alias.moves and t or x) * 1)
    return loss_of(call(t * 1, operand:clone())):item()
  end
  local fits, value = pcall(mr.no_grad, apart, x)
  if not fits then return end
  local leaf = x:clone():requires_grad_()
  local y, loss
  local is_there = pcall(function() -- otherwise this form of overlap is refused
    y = leaf * 1
    loss = loss_of(call(y, alias.make(y)))
  end)
  if not is_there then return end
  lu.assertAlmostEquals(loss:item(), value, 1e-9 * math.max(1, math.abs(value)), what)
  local ok, err = pcall(loss.backward, loss)
  if not ok then
    lu.assertTrue(is_refusal(err), ("%s: %s"):format(what, err))
    counts.refused = counts.refused + 1
    return
  end
  for k = 1, x.numel do
    local wanted = mr.no_grad(difference, apart, x:clone(), k)
    local got = leaf.grad:view(-1)[k]:item()
    local distance = wanted and math.abs(got - wanted) / math.max(1, math.abs(wanted)) or 0
    if distance ~= distance or distance > 1e-4 then
      lu.fail(("%s: element %d: the gradient is silently wrong: %.6g, the difference quotient is %.6g"):format(what, k,
        got, wanted))
    end
  end
  counts.right = counts.right + 1
end

TestShared = {}

function TestShared.setUp() mr.manual_seed(7) end

for _, row in ipairs(mr.ops()) do
  if row.derivative ~= "none" and row.forms.in_place and not cases.RANDOM[row.name] then
    TestShared["test_" .. row.name] = function()
      for k, case in ipairs(cases.of(row)) do
        case.n = case.n or math.max(#case, row.inputs or 1)
        for i = 2, is_float(case[1]) and case.n or 1 do
          if is_float(case[i]) or type(case[i]) == "number" then
            for name, alias in pairs(aliases) do
              local what = ("%s_, case %d, operand %d is %s"):format(row.name, k, i, name)
              try_alias(what, row.name .. "_", case, i, alias)
            end
          end
        end
      end
    end
  end
end

function TestShared.test_the_error_names_the_operation_in_place()
  local x = mr.tensor({ 1.0, 2, 3 }):requires_grad_()
  local h = (x * 1):name "h"
  h:mul_(h)
  lu.assertErrorMsgContains("needs the values of `h` for its gradient, but mul_ at", function() h:sum():backward() end)
end

-- ---------------------------------------------------------------- options, and what a function of the script keeps

TestKept = {}

function TestKept.test_the_weight_of_a_loss()
  for _, name in ipairs { "nll_loss", "cross_entropy" } do
    local x, weight = mr.rand(2, 3):requires_grad_(), mr.ones(3)
    local target = mr.tensor({ 1, 2 }, { dtype = "i64" })
    local loss = x[name](x, target, { weight = weight })
    weight:fill_(9)
    lu.assertErrorMsgContains("changed them in place", function() loss:backward() end)
    lu.assertErrorMsgContains("requires gradients, and its derivative is not known", function()
      x[name](x, target, { weight = mr.ones(3):requires_grad_() })
    end)
  end
end

function TestKept.test_the_weight_is_read_by_the_derivative_of_the_derivative()
  local x, weight = mr.rand(2, 3):requires_grad_(), mr.ones(3)
  local loss = x:nll_loss(mr.tensor({ 1, 2 }, { dtype = "i64" }), { weight = weight }) * x:sum()
  local grad = mr.autograd.grad(loss, x, { create_graph = true })
  weight:fill_(9)
  lu.assertErrorMsgContains("changed them in place", function() grad:sum():backward() end)
end

function TestKept.test_what_forward_saves_and_then_changes()
  local double = mr.autograd.Function {
    forward = function(ctx, x)
      local kept = x:clone()
      ctx:save_for_backward(kept)
      kept:zero_()
      return x * x
    end,
    backward = function(ctx, g) return g * 2 * ctx:saved_tensors() end,
  }
  local x = mr.ones(2):requires_grad_()
  local y = double(x)
  lu.assertErrorMsgContains("but zero_ at", function() y:sum():backward() end)
end

TestZ = {}

-- Runs last: both answers occur, so neither is given blindly.
function TestZ.test_both_answers_were_given()
  lu.assertTrue(counts.refused > 100 and counts.right > 400, ("%d refused, %d right"):format(counts.refused,
    counts.right))
end

os.exit(lu.LuaUnit.run())
