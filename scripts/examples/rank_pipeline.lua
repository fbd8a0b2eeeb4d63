-- Pipeline parallelism in two stages: rank 0 has the first half of a network, rank 1 the second.
--
-- A batch is cut into micro-batches. Rank 0 sends the outputs of its stage, and rank 1 sends back their gradients. So
-- rank 0 computes one micro-batch while rank 1 computes the one before it. Gradients add up over the micro-batches, and
-- are those of one device that has the whole network and the whole batch.
--
-- Both ranks must send and receive in orders that fit: all forward passes first, then all backward passes. If rank 0
-- waits for each gradient before it sends the next output, while rank 1 wants all outputs first, nobody goes on.
-- options: --device virtual:2
-- virtual only: ranks in one process are those of virtual devices
-- not replayed: ranks have a clock each
local mr = require "millrace"
local nn, dist = mr.nn, mr.dist

local PARTS, ROWS, WIDTH = 4, 4, 16

local function network()
  mr.manual_seed(3)
  return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()), nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh())
end

local function batch() return mr.randn(PARTS * ROWS, WIDTH) end

-- Rank 0: `one_by_one` is the mistake.
local function first_stage(net, x, one_by_one)
  local outputs, gradient = {}, mr.zeros(ROWS, WIDTH)
  local function back(k)
    dist.recv(gradient, 1)
    outputs[k]:backward(gradient)
  end
  for k = 1, PARTS do
    outputs[k] = net(x:narrow(1, (k - 1) * ROWS + 1, ROWS))
    dist.send(outputs[k]:detach(), 1)
    if one_by_one then back(k) end
  end
  for k = 1, one_by_one and 0 or PARTS do back(k) end
end

-- Rank 1.
local function second_stage(net)
  local inputs = {}
  for k = 1, PARTS do
    inputs[k] = mr.zeros(ROWS, WIDTH)
    dist.recv(inputs[k], 0)
  end
  for k = 1, PARTS do
    inputs[k]:requires_grad_()
    local loss = net(inputs[k]):square():mean() / PARTS
    loss:backward()
    dist.send(inputs[k].grad, 0)
  end
end

-- The norm of the gradient of each stage's weight.
local function on_two_ranks(one_by_one)
  return dist.spawn(2, function(rank)
    local first, second = network()
    local x = batch()
    if rank == 0 then first_stage(first, x, one_by_one) else second_stage(second) end
    return (rank == 0 and first or second)[1].weight.grad:norm():item()
  end)
end

local function on_one_device()
  local first, second = network()
  local loss = second(first(batch())):square():mean()
  loss:backward()
  return {first[1].weight.grad:norm():item(), second[1].weight.grad:norm():item()}
end

local one, two = on_one_device(), on_two_ranks(false)
for stage = 1, 2 do
  print(("gradient of stage %d: %.5f on one device, %.5f in the pipeline"):format(stage, one[stage], two[stage]))
end
local _, err = pcall(on_two_ranks, true)
print((tostring(err):match("deadlock.*"):gsub("; ", ";\n  "):gsub("[%w_./]*rank_pipeline", "rank_pipeline")))
