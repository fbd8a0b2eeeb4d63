-- Four training loops that are wrong, and one that is right.
--
-- Each loop trains the same small model. Each leaves out one thing that orders two streams. The loss still falls, so
-- nobody notices: a gradient, a parameter or an input is only sometimes that of another step. The checker names each of
-- them, and the line that mends it.
local mr = require "millrace"
local nn, optim = mr.nn, mr.optim

local compute, side = mr.stream{name = "compute"}, mr.stream{name = "side"}
local STEPS, BATCH = 4, 32

-- y = 2 x - 1, with two inputs a point.
local function batch(n)
  local x = mr.rand(BATCH, n, {name = "x"})
  return x, (x:mul(2)):sum(2, true):sub(1)
end

local function model(n)
  mr.manual_seed(1)
  local net = nn.Linear(n, 1)
  return net, optim.SGD(net:parameters(), {lr = 0.05})
end

local function step(net, optimiser, x, y)
  optimiser:zero_grad()
  local loss = net(x):mse_loss(y)
  loss:backward()
  return loss
end

-- ---------------------------------------------------------------- the four

local graves = {}

-- The norm of a gradient is computed on `side`, while backward still writes the gradient on `compute`.
graves[1] = {"a gradient is read before it is there", function(n, fixed)
  local norms = {}
  local net, optimiser = model(n)
  local x, y = batch(n)
  for i = 1, STEPS do
    step(net, optimiser, x, y)
    if fixed then side:wait_stream(compute) end
    norms[i] = mr.with(side, function() return net.weight.grad:norm() end)
    compute:wait_stream(side)
    optimiser:step()
  end
  return norms[STEPS]
end}

-- The optimiser runs on `side`: it reads gradients that backward has not finished, and forward reads parameters that
-- it has not finished.
graves[2] = {"the optimiser steps on another stream", function(n, fixed)
  local net, optimiser = model(n)
  local x, y = batch(n)
  local loss
  for _ = 1, STEPS do
    loss = step(net, optimiser, x, y)
    if fixed then side:wait_stream(compute) end
    mr.with(side, function() optimiser:step() end)
    if fixed then compute:wait_stream(side) end
  end
  return loss
end}

-- One buffer for the inputs: the next batch is written over the one that is in use.
graves[3] = {"the input is overwritten", function(n, fixed)
  local net, optimiser = model(n)
  local x, y = batch(n)
  local batches = {}
  for i = 1, STEPS do batches[i] = mr.rand(BATCH, n, {name = "batch " .. i}) end
  side:wait_stream(compute)
  local loss
  for i = 1, STEPS do
    mr.with(side, function() x:copy_(batches[i], {non_blocking = true}) end)
    compute:wait_stream(side)
    loss = step(net, optimiser, x, y)
    optimiser:step()
    if fixed then side:wait_stream(compute) end
  end
  return loss
end}

-- A copy of the weights is freed while `side` still reads it: its memory is the next tensor's.
graves[4] = {"a parameter is freed while another stream reads it", function(n, fixed)
  local net, optimiser = model(n)
  local x, y = batch(n)
  local sum
  for _ = 1, STEPS do
    step(net, optimiser, x, y)
    optimiser:step()
    local kept = net.weight:detach():clone()
    side:wait_stream(compute)
    sum = mr.with(side, function()
      mr.spin{ms = 0.5}
      return kept:square():sum()
    end)
    if fixed then kept:record_stream(side) end
    kept:free()
  end
  return sum
end}

-- ---------------------------------------------------------------- what becomes of them

-- What loop `i` ends with. Nobody reads it here, so no race can change what is printed.
local function run(i, n, fixed)
  local result = mr.with(compute, graves[i][2], n, fixed)
  mr.synchronize()
  return result
end

for i, grave in ipairs(graves) do
  print(("%d. %s"):format(i, grave[1]))
  local report = mr.hazard.check(run, i, 8, false)[1]
  print("   " .. report.kind)
  print(("   %s on `%s` at line %d, %s on `%s` at line %d"):format(
    report.first.op, report.first.stream, report.first.where:match(":(%d+)$"),
    report.second.op, report.second.stream, report.second.where:match(":(%d+)$")))
  print("   fix: " .. tostring(report.fix):gsub("\n.*", ""))
  print(("   with what is missing: %d hazards\n"):format(#mr.hazard.check(run, i, 8, true)))
end
