-- A network of two branches, trained on one device and on two: the losses are the same.
--
-- DataParallel: one process cuts each batch, copies the module to both devices, and joins the outputs.
-- DistributedDataParallel: two ranks have a copy each and half of the batch. Their gradients are reduced while backward
-- still computes others, so all ranks take the same steps.
-- options: --device virtual:2
-- virtual only: ranks in one process are those of virtual devices
-- not replayed: ranks have a clock each
local mr = require "millrace"
local nn, parallel = mr.nn, mr.nn.parallel

local STEPS, BATCH = 4, 8

mr.set_device(0) -- in a process of mpirun, that of its rank is current

local TwoBranches = nn.Module.class "TwoBranches"
function TwoBranches:init()
  self.image = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 4))
  self.motion = nn.Sequential(nn.Linear(32, 48), nn.Tanh(), nn.Linear(48, 4))
end
function TwoBranches:forward(image, motion) return self.image(image) + self.motion(motion) end

-- Rows `first` to `last` of each batch. Returns the losses and the network.
local function train(wrap, first, last)
  mr.manual_seed(1)
  local net = TwoBranches():to(mr.current_device())
  local image, motion = mr.randn(BATCH, 32), mr.randn(BATCH, 32)
  local labels = mr.randint(1, 5, {BATCH}, {dtype = "i64"})
  local function mine(t) return t:narrow(1, first, last - first + 1) end
  local module = wrap(net)
  local optimiser = mr.optim.SGD(module:parameters(), {lr = 0.1, momentum = 0.9})
  local losses = {}
  for step = 1, STEPS do
    optimiser:zero_grad()
    local loss = module(mine(image), mine(motion)):cross_entropy(mine(labels))
    loss:backward()
    optimiser:step()
    losses[step] = loss:item()
  end
  return losses
end

local function plain(net) return net end
local function ddp(net) return parallel.DistributedDataParallel(net, {bucket_mb = 0.01, first_bucket_mb = 0.001}) end

local one = train(plain, 1, BATCH)
local two = train(parallel.DataParallel, 1, BATCH)
local ranks = mr.dist.spawn(2, function(rank)
  local half = BATCH // 2
  return train(ddp, rank * half + 1, (rank + 1) * half)
end)

print("step  one device  DataParallel  DDP: the mean of both ranks")
for step = 1, STEPS do
  local mean = (ranks[1][step] + ranks[2][step]) / 2
  print(("%4d  %10.4f  %12.4f  %9.4f"):format(step, one[step], two[step], mean))
end

-- The mistake: each rank trains alone, on its own half. Nothing fails, and the ranks drift apart.
local alone = mr.dist.spawn(2, function(rank)
  local half = BATCH // 2
  return train(plain, rank * half + 1, (rank + 1) * half)
end)
local mean = (alone[1][STEPS] + alone[2][STEPS]) / 2
print(("without DDP, the last losses are those of one device: %s"):format(math.abs(mean - one[STEPS]) < 1e-4))
print(("with DDP, they are:                                   %s"):format(
  math.abs((ranks[1][STEPS] + ranks[2][STEPS]) / 2 - one[STEPS]) < 1e-4))
