-- A training step as a graph: forward pass, gradients and optimizer are captured once, and each step is then one call.
--
-- A graph reads and writes fixed tensors. So a batch is copied into the same tensor each time, and the numbers of the
-- step, such as the learning rate, are those of the capture.
local mr = require "millrace"

local STEPS = 60

local function new_training()
  mr.manual_seed(7)
  local net = mr.nn.Sequential(mr.nn.Linear(2, 16), mr.nn.Tanh(), mr.nn.Linear(16, 1)):to(0)
  local sgd = mr.optim.SGD(net:parameters(), {lr = 0.1, momentum = 0.9})
  local batch, wanted = mr.zeros(32, 2), mr.zeros(32, 1)
  local function step()
    sgd:zero_grad()
    local loss = net(batch):mse_loss(wanted)
    loss:backward()
    sgd:step()
    return loss:detach()
  end
  local function next_batch()
    batch:uniform_()
    wanted:copy_(batch:sum(2, true))
  end
  return step, next_batch
end

-- The losses of all steps. `launch` carries one out and returns its loss.
local function train(launch, next_batch)
  local losses = {}
  for i = 1, STEPS do
    next_batch()
    losses[i] = launch():item()
  end
  return losses
end

-- One call for each operation.
local step, next_batch = new_training()
local eager = train(step, next_batch)

-- The first step is made without a graph: it makes the state of the optimizer, which outlives the steps.
local captured, next_captured = new_training()
next_captured()
local first = captured():item()
local g, loss = mr.graph(captured)
local function launch()
  g:launch()
  return loss
end
local graph = {first}
for i = 2, STEPS do
  next_captured()
  graph[i] = launch():item()
end
print("one call for", g.node_count .. " nodes")

-- mr.graph.auto finds out by itself which calls can be launches.
local automatic, next_automatic = new_training()
local auto = mr.graph.auto(automatic)
local automatic_losses = train(auto, next_automatic)
local _, counts = mr.graph.why(auto)
print("launches of auto:", counts.launches, "of " .. counts.calls)

local same = true
for i = 1, STEPS do same = same and eager[i] == graph[i] and eager[i] == automatic_losses[i] end
print("all losses are equal to the last bit:", same)
print("the loss fell to less than a tenth: ", eager[STEPS] < eager[1] / 10)
