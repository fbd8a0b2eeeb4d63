-- Results of several devices beside the host's: every collective of mr.nccl and of mr.dist on random values, groups,
-- messages. The losses of DataParallel and DistributedDataParallel are compared with those of one device.
--
--     millrace --device cuda tests/gpu/ranks.lua                    mr.nccl, DataParallel, and ranks of mr.dist.spawn
--     mpirun -n 2 millrace --device cuda tests/gpu/ranks.lua        ranks that are processes
--
-- options: --device virtual:2
-- not replayed: ranks have a clock each
local mr = require "millrace"
local nn, parallel, dist = mr.nn, mr.nn.parallel, mr.dist

local SMALL, LARGE = { 0, 1, 7, 1000 }, (1 << 20) + 3
local DTYPES = { "f32", "f64", "f16", "bf16", "i32", "i64", "u8" }
local OPS = { "sum", "prod", "min", "max", "avg" }

local in_processes = os.getenv "OMPI_COMM_WORLD_SIZE" or os.getenv "PMI_SIZE"
if not in_processes and mr.device_count() < 2 then
  print "skipped: there is one device only"
  os.exit(77)
end

-- Calls fn(dtype, size): large tensors of the usual dtype only.
local function each_case(fn)
  for _, dtype in ipairs(DTYPES) do
    for _, size in ipairs(SMALL) do fn(dtype, size) end
  end
  fn("f32", LARGE)
end

local checks = 0
local function check(ok, text, ...)
  checks = checks + 1
  if not ok then error(text:format(...), 2) end
end

-- What a rank gives to a collective: on the host, and the same everywhere.
local function given(rank, size, dtype)
  mr.manual_seed(1000 * rank + size)
  if dtype:sub(1, 1) == "f" or dtype == "bf16" then
    return mr.rand(size, { device = "cpu" }):sub(0.5):to(dtype)
  end
  return mr.randint(0, 8, { size }, { device = "cpu", dtype = dtype })
end

local function combined(ranks, size, dtype, op)
  local sum
  for rank = 0, ranks - 1 do
    local t = given(rank, size, dtype):to "f64"
    if not sum then sum = t
    elseif op == "prod" then sum = sum * t
    elseif op == "min" then sum = sum:minimum(t)
    elseif op == "max" then sum = sum:maximum(t)
    else sum = sum + t end
  end
  if op == "avg" then sum = sum / ranks end
  return sum
end

local MARGIN = { f32 = 1e-5, f64 = 1e-12, f16 = 4e-3, bf16 = 3e-2 }

local function same(t, expected, dtype)
  if expected.numel == 0 then return t.numel == 0 end
  return (t:cpu():to "f64" - expected):abs():max():item() <= (MARGIN[dtype] or 0)
end

local function joined(ranks, size, dtype)
  local parts = {}
  for rank = 0, ranks - 1 do parts[rank + 1] = given(rank, size, dtype) end
  return mr.cat(parts):to "f64"
end

-- ---------------------------------------------------------------- mr.nccl, one thread for all devices

local function check_nccl(ranks)
  local devices = {}
  for k = 1, ranks do devices[k] = k - 1 end
  local comms = mr.nccl.comms(devices)
  local function all(what, size, dtype, out_size, expected, call)
    local results = {}
    mr.nccl.group(function()
      for k, c in ipairs(comms) do
        local t = given(k - 1, size, dtype):to(k - 1)
        results[k] = out_size and mr.zeros(out_size, { dtype = dtype, device = k - 1 }) or t
        call(c, t, results[k])
      end
    end)
    for k = 1, ranks do
      check(same(results[k], expected(k - 1), dtype), "mr.nccl: %s of %d %s: rank %d has other values", what, size,
        dtype, k - 1)
    end
  end
  each_case(function(dtype, size)
    for _, op in ipairs(OPS) do
      if op ~= "avg" or MARGIN[dtype] then
        local sum = combined(ranks, size, dtype, op)
        all("all_reduce " .. op, size, dtype, nil, function() return sum end, function(c, t)
          c:all_reduce(t, { op = op })
        end)
      end
    end
    local whole = joined(ranks, size, dtype)
    all("all_gather", size, dtype, ranks * size, function() return whole end, function(c, t, out)
      c:all_gather(out, t)
    end)
    local second = given(1, size, dtype):to "f64"
    all("broadcast", size, dtype, nil, function() return second end, function(c, t) c:broadcast(t, { root = 1 }) end)
    local sum = combined(ranks, ranks * size, dtype, "sum")
    all("reduce_scatter", ranks * size, dtype, size,
      function(rank) return sum:narrow(1, rank * size + 1, size) end,
      function(c, t, out) c:reduce_scatter(out, t) end)
  end)
end

-- ---------------------------------------------------------------- mr.dist, what one rank does

local function check_reductions(rank, ranks, size, dtype)
  for _, op in ipairs(OPS) do
    if op ~= "avg" or MARGIN[dtype] then
      for _, async in ipairs{ false, true } do
        local t = given(rank, size, dtype):to(mr.current_device())
        local work = dist.all_reduce(t, { op = op, async = async })
        if work then work:wait() end
        check(same(t, combined(ranks, size, dtype, op), dtype), "all_reduce %s of %d %s: rank %d has other values", op,
          size, dtype, rank)
      end
    end
  end
  local t = given(rank, size, dtype):to(mr.current_device())
  dist.reduce(t, ranks - 1)
  local expected = rank == ranks - 1 and combined(ranks, size, dtype, "sum") or given(rank, size, dtype):to "f64"
  check(same(t, expected, dtype), "reduce of %d %s: rank %d has other values", size, dtype, rank)
end

local function check_moves(rank, ranks, size, dtype)
  local here, options = mr.current_device(), { dtype = dtype, device = mr.current_device() }
  local t, all = given(rank, size, dtype):to(here), mr.zeros(ranks * size, options)
  dist.all_gather(all, t)
  check(same(all, joined(ranks, size, dtype), dtype), "all_gather of %d %s: rank %d", size, dtype, rank)
  dist.broadcast(t, 1)
  check(same(t, given(1, size, dtype):to "f64", dtype), "broadcast of %d %s: rank %d", size, dtype, rank)

  local wide, part = given(rank, ranks * size, dtype):to(here), mr.zeros(size, options)
  dist.reduce_scatter(part, wide)
  local sum = combined(ranks, ranks * size, dtype, "sum"):narrow(1, rank * size + 1, size)
  check(same(part, sum, dtype), "reduce_scatter of %d %s: rank %d", size, dtype, rank)
  dist.all_to_all(all, wide)
  local pieces = {}
  for k = 0, ranks - 1 do pieces[k + 1] = given(k, ranks * size, dtype):narrow(1, rank * size + 1, size) end
  check(same(all, mr.cat(pieces):to "f64", dtype), "all_to_all of %d %s: rank %d", size, dtype, rank)
end

local function check_messages(rank, ranks, size, dtype)
  local here = mr.current_device()
  local next_rank, previous = (rank + 1) % ranks, (rank - 1) % ranks
  local t, got = given(rank, size, dtype):to(here), mr.zeros(size, { dtype = dtype, device = here })
  mr.nccl.group(function()
    dist.send(t, next_rank)
    dist.recv(got, previous)
  end)
  check(same(got, given(previous, size, dtype):to "f64", dtype), "a message of %d %s to rank %d", size, dtype, rank)
end

local function check_groups(rank, ranks)
  local here = mr.current_device()
  local turned, alone = {}, {}
  for k = 0, ranks - 1 do turned[k + 1] = ranks - 1 - k end
  for k = 0, ranks - 1 do alone[k + 1] = dist.new_group{ k } end
  local group = dist.new_group(turned)
  local out, t = mr.zeros(ranks, { device = here }), mr.full(1, rank + 1.0, { device = here })
  dist.all_gather(out, t, { group = group, async = true }):wait()
  for k = 1, ranks do check(out[k]:item() == ranks - k + 1, "a group of ranks in another order: rank %d", rank) end
  dist.all_reduce(t, { group = alone[rank + 1] })
  check(t:item() == rank + 1, "a group of one rank: rank %d", rank)
  dist.barrier()
end

local function check_rank(rank, ranks)
  each_case(function(dtype, size)
    check_reductions(rank, ranks, size, dtype)
    check_moves(rank, ranks, size, dtype)
    check_messages(rank, ranks, size, dtype)
  end)
  check_groups(rank, ranks)
end

-- ---------------------------------------------------------------- training

local BATCH, STEPS = 16, 5

local TwoBranches = nn.Module.class "TwoBranches"
function TwoBranches:init()
  local function branch()
    return nn.Sequential(nn.Conv2d(3, 8, 3, { padding = 1 }), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
      nn.Linear(8 * 8 * 8, 32), nn.Tanh(), nn.Linear(32, 10))
  end
  self.image, self.motion = branch(), branch()
end
function TwoBranches:forward(image, motion) return self.image(image) + self.motion(motion) end

-- Trains on part `part` of `parts` of each batch. All begin with the same numbers.
local function train(wrap, part, parts)
  mr.manual_seed(1)
  local here, size = mr.current_device(), BATCH // parts
  local net = TwoBranches():to(here)
  local function mine(t) return t:narrow(1, part * size + 1, size):to(here) end
  local function images() return mr.rand(BATCH, 3, 16, 16, { device = "cpu" }) end
  local image, motion = mine(images()), mine(images())
  local labels = mine(mr.randint(1, 11, { BATCH }, { dtype = "i64", device = "cpu" }))
  local model = wrap(net)
  local optimiser = mr.optim.SGD(model:parameters(), { lr = 0.05, momentum = 0.9 })
  local losses = {}
  for step = 1, STEPS do
    optimiser:zero_grad()
    local loss = model(image, motion):cross_entropy(labels)
    loss:backward()
    optimiser:step()
    losses[step] = loss:item()
  end
  return losses
end

local function plain(net) return net end
local function ddp(net) return parallel.DistributedDataParallel(net, { bucket_mb = 0.05, first_bucket_mb = 0.01 }) end

local function check_losses(what, got, expected)
  for step = 1, STEPS do
    check(math.abs(got[step] - expected[step]) < 1e-4, "%s: the loss of step %d is %.6f, and %.6f on one device", what,
      step, got[step], expected[step])
  end
  check(expected[STEPS] < expected[1], "%s: the loss does not fall", what)
end

-- The mean of the ranks' losses is the loss of the whole batch.
local function check_ddp(rank, ranks)
  local losses = train(ddp, rank, ranks)
  local mean = mr.tensor(losses, { dtype = "f64", device = mr.current_device() })
  dist.all_reduce(mean, { op = "avg" })
  mean = mean:cpu():totable()
  check_losses("DDP, rank " .. rank, mean, train(plain, 0, 1))
end

local function all_of_a_rank()
  local rank, ranks = dist.rank(), dist.world_size()
  check_rank(rank, ranks)
  check_ddp(rank, ranks)
  dist.barrier()
end

if in_processes then
  all_of_a_rank()
  if dist.rank() == 0 then
    print(("%d processes: %d values checked on rank 0"):format(dist.world_size(), checks))
    print "1 passed, 0 failed"
  end
else
  local ranks = math.min(mr.device_count(), 4)
  check_nccl(ranks)
  print(("mr.nccl on %d devices: %d values checked"):format(ranks, checks))
  local one = train(plain, 0, 1)
  check_losses("DataParallel", train(parallel.DataParallel, 0, 1), one)
  print "DataParallel has the losses of one device"
  local before = checks
  dist.spawn(ranks, all_of_a_rank)
  print(("mr.dist.spawn(%d): %d values checked on all ranks"):format(ranks, checks - before))
  print "3 passed, 0 failed"
end
