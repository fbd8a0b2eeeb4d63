-- The program of tests/cuda/mpirun.lua for several processes: each rank checks its results.
local mr = require "millrace"
local dist = mr.dist
local rank, ranks = dist.rank(), dist.world_size()

local function expect(t, values, what)
  local got = t:cpu():totable()
  assert(#got == #values, what)
  for i, value in ipairs(values) do
    assert(got[i] == value, ("%s: rank %d: element %d is %s, expected %s"):format(what, rank, i, got[i], value))
  end
end

local function filled(value, n)
  local list = {}
  for i = 1, n do list[i] = value end
  return list
end

local function own(n) return mr.full(n, rank + 1.0) end

-- Rank 0 gives 1, rank 1 gives 2, and so on.
local SUM, PRODUCT = ranks * (ranks + 1) / 2, ranks == 2 and 2 or 6
for _, row in ipairs{ { "sum", SUM }, { "prod", PRODUCT }, { "min", 1 }, { "max", ranks }, { "avg", SUM / ranks } } do
  local op, value = row[1], row[2]
  for _, async in ipairs{ false, true } do
    local t = own(5)
    local work = dist.all_reduce(t, { op = op, async = async })
    if work then work:wait() end
    expect(t, filled(value, 5), "all_reduce " .. op)
  end
end

local t = own(3)
dist.reduce(t, 1)
expect(t, filled(rank == 1 and SUM or rank + 1, 3), "reduce")
t = own(3)
dist.broadcast(t, 1)
expect(t, { 2, 2, 2 }, "broadcast")

local all, parts = mr.zeros(2 * ranks), {}
dist.all_gather(all, own(2))
for k = 0, ranks - 1 do
  parts[2 * k + 1], parts[2 * k + 2] = k + 1, k + 1
end
expect(all, parts, "all_gather")

local wide = mr.arange(2 * ranks, { dtype = "f32" }) + 100 * rank
local part = mr.zeros(2)
dist.reduce_scatter(part, wide)
local others = 100 * ranks * (ranks - 1) / 2
expect(part, { 2 * rank * ranks + others, (2 * rank + 1) * ranks + others }, "reduce_scatter")
dist.all_to_all(all, wide)
for k = 0, ranks - 1 do
  parts[2 * k + 1], parts[2 * k + 2] = 100 * k + 2 * rank, 100 * k + 2 * rank + 1
end
expect(all, parts, "all_to_all")

local before, after = (rank - 1) % ranks, (rank + 1) % ranks
local got = mr.zeros(4)
mr.nccl.group(function()
  dist.send(own(4), after)
  dist.recv(got, before)
end)
expect(got, filled(before + 1, 4), "a ring of messages")
if rank == 0 then dist.send(own(2), 1) end -- the others are not in it
if rank == 1 then
  local from = mr.zeros(2)
  dist.recv(from, 0)
  expect(from, { 1, 1 }, "one message")
end

-- A tensor without elements, and other dtypes.
dist.all_reduce(mr.zeros(0))
t = mr.full({ 3 }, rank + 1, { dtype = "i64" })
dist.all_reduce(t)
expect(t, filled(SUM, 3), "all_reduce of i64")

-- Groups: the first two ranks in the other order, and one of the last rank alone.
local pair, last = dist.new_group{ 1, 0 }, dist.new_group{ ranks - 1 }
if rank < 2 then
  t = mr.zeros(2)
  dist.all_gather(t, own(1), { group = pair })
  expect(t, { 2, 1 }, "all_gather of a group")
  t = own(2)
  dist.broadcast(t, 0, { group = pair, async = true }):wait()
  expect(t, { 1, 1 }, "broadcast of a group")
end
if rank == ranks - 1 then
  t = own(2)
  dist.all_reduce(t, { group = last })
  expect(t, filled(ranks, 2), "a group of one")
end
assert(not pcall(dist.all_reduce, t, { group = rank == ranks - 1 and {} or last }))
dist.barrier()

-- Training: the ranks' mean loss is that of the whole batch on one device.
local nn, ROWS = mr.nn, 2
local function train(wrap, first, count)
  mr.manual_seed(3)
  local net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)):to(mr.current_device())
  local x, y = mr.rand(ROWS * ranks, 3):narrow(1, first, count), mr.rand(ROWS * ranks, 1):narrow(1, first, count)
  local model, losses = wrap(net), {}
  local optimiser = mr.optim.SGD(model:parameters(), { lr = 0.1 })
  for step = 1, 3 do
    optimiser:zero_grad()
    local loss = model(x):mse_loss(y)
    loss:backward()
    optimiser:step()
    losses[step] = loss:item()
  end
  return losses
end
local losses = train(function(net)
  return nn.parallel.DistributedDataParallel(net, { bucket_mb = 0.00002, first_bucket_mb = 0.00001 })
end, rank * ROWS + 1, ROWS)
local one = train(function(net) return net end, 1, ROWS * ranks)
local mean = mr.tensor(losses)
dist.all_reduce(mean, { op = "avg" })
for step, loss in ipairs(mean:cpu():totable()) do
  assert(math.abs(loss - one[step]) < 1e-5, ("DDP: loss %d is %g, and %g on one device"):format(step, loss, one[step]))
end
mr.synchronize()
print(("rank %d of %d on device %d is done"):format(rank, ranks, mr.current_device().index))
