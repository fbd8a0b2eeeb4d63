-- The rows of ranks.sh with millrace on several GPUs: lines of name, value, unit. After the script:
--
--   spawn      mr.nccl and DataParallel in one thread, then ranks of mr.dist.spawn
--   processes  the ranks' part, where each process is a rank (mpirun)
--
-- ranks.py has the same with PyTorch.
local mr = require "millrace"
local nn, dist = mr.nn, mr.dist

local GIB, BATCH = 1 << 30, 64
local SIZES = { { "1 GiB", GIB, 4 }, { "16 MiB", 16 << 20, 50 }, { "1 KiB", 1024, 200 } }
local RANKS = 2

local function median(list)
  table.sort(list)
  return list[#list // 2 + 1]
end

local function say(name, value, unit)
  print(("%s\t%.6g\t%s"):format(name, value, unit))
  io.flush()
end

-- Seconds a call, with the devices' work: the median and the least of batches. `wait` waits for all of it, and for the
-- other ranks.
local function seconds(work, calls, wait)
  local times = {}
  for batch = 1, 11 + 3 do
    wait()
    local began = mr.clock()
    for _ = 1, calls do work() end
    wait()
    if batch > 3 then times[#times + 1] = (mr.clock() - began) * 1e-3 / calls end
  end
  return median(times), times[1]
end

local function say_reduction(what, name, bytes, time)
  local row = ("all-reduce %s%s"):format(name, what)
  if bytes < 1 << 20 then say(row, 1e6 * time, "us")
  else say(row, 2 * (RANKS - 1) / RANKS * bytes / time * 1e-9, "GB/s") end
end

-- ---------------------------------------------------------------- one thread

local function wait_for_all()
  for k = 0, RANKS - 1 do mr.synchronize(k) end
end

local function reductions_of_one_thread()
  local comms = mr.nccl.comms{ 0, 1 }
  for _, row in ipairs(SIZES) do
    local name, bytes, calls = table.unpack(row)
    local x = { mr.rand(bytes // 4, { device = 0 }), mr.rand(bytes // 4, { device = 1 }) }
    local function reduce()
      comms[1]:all_reduce(x[1], { op = "avg" })
      comms[2]:all_reduce(x[2], { op = "avg" })
    end
    local time = seconds(function() mr.nccl.group(reduce) end, calls, wait_for_all)
    say_reduction(", one thread", name, bytes, time)
    for _, t in ipairs(x) do t:free() end
  end
end

-- As in scripts/examples/two_branch_net.lua.
local TwoBranches = nn.Module.class "TwoBranches"
function TwoBranches:init()
  local function branch()
    return nn.Sequential(
      nn.Conv2d(3, 64, 3, { padding = 1 }), nn.ReLU(), nn.MaxPool2d(2),
      nn.Conv2d(64, 128, 3, { padding = 1 }), nn.ReLU(), nn.MaxPool2d(2),
      nn.Flatten(), nn.Linear(128 * 8 * 8, 512), nn.ReLU(), nn.Dropout(0.5), nn.Linear(512, 10))
  end
  self.image, self.motion = branch(), branch()
end
function TwoBranches:forward(image, motion) return self.image(image) + self.motion(motion) end

-- A step of the network on the current device, with what `wrap` makes of it.
local function step_of(wrap, batch)
  local here = mr.current_device()
  local model = wrap(TwoBranches():to(here))
  local image, motion = mr.rand(batch, 3, 32, 32), mr.rand(batch, 3, 32, 32)
  local labels = mr.randint(1, 11, { batch }, { dtype = "i64" })
  local optimiser = mr.optim.SGD(model:parameters(), { lr = 0.01, momentum = 0.9 })
  return function()
    optimiser:zero_grad()
    model(image, motion):cross_entropy(labels):backward()
    optimiser:step()
  end
end

local function plain(net) return net end

local function one_thread()
  reductions_of_one_thread()
  say("step, one device", 1e3 * seconds(step_of(plain, BATCH), 20, wait_for_all), "ms")
  local parallel = step_of(function(net) return nn.parallel.DataParallel(net) end, RANKS * BATCH)
  say("step, DataParallel", 1e3 * seconds(parallel, 20, wait_for_all), "ms")
end

-- ---------------------------------------------------------------- ranks

-- As ranks.py does it. Each rank has a token of its own, also where ranks share the script's variables.
local function new_wait_for_ranks()
  local token = mr.zeros(1)
  return function()
    dist.all_reduce(token)
    mr.synchronize()
  end
end

local function reductions_of_ranks(rank, wait_for_ranks)
  for _, row in ipairs(SIZES) do
    local name, bytes, calls = table.unpack(row)
    local x = mr.rand(bytes // 4)
    local time = seconds(function() dist.all_reduce(x, { op = "avg" }) end, calls, wait_for_ranks)
    if rank == 0 then say_reduction("", name, bytes, time) end
    x:free()
  end
end

local function settle()
  dist.barrier()
  mr.synchronize()
end

-- The part of the all-reduces' time that lies before the end of backward. That end is the steps' last work that begins
-- before the last all-reduce ends, as the optimiser waits for all of them. Work before the last barrier does not count.
local function share_under_backward(trace)
  local reductions, others, total, hidden = {}, {}, 0, 0
  for _, span in ipairs(trace.spans) do
    if span.name == "barrier" then reductions, others = {}, {} end
    if span.kind == "op" and span.start and span.finish and span.finish > span.start then
      table.insert(span.name == "all_reduce" and reductions or others, span)
    end
  end
  local last, backward = 0, 0
  for _, span in ipairs(reductions) do last = math.max(last, span.finish) end
  for _, span in ipairs(others) do
    if span.start < last then backward = math.max(backward, span.finish) end
  end
  for _, span in ipairs(reductions) do
    total = total + span.finish - span.start
    hidden = hidden + math.max(0, math.min(span.finish, backward) - span.start)
  end
  return total > 0 and hidden / total or nil
end

-- `traced` returns a trace.
local function say_share(rank, rounds, traced)
  local shares = {}
  for round = 1, rounds do shares[round] = share_under_backward(traced()) end
  if rank == 0 and #shares == rounds then say("all-reduce under backward", 100 * median(shares), "%") end
end

local function ddp(net) return nn.parallel.DistributedDataParallel(net) end

local function ranks(rank)
  mr.synchronize() -- the context is there
  local began = mr.clock()
  local x = mr.rand(256)
  dist.all_reduce(x)
  mr.synchronize()
  local start = mr.clock() - began
  local wait_for_ranks = new_wait_for_ranks()
  reductions_of_ranks(rank, wait_for_ranks)
  local alone = seconds(step_of(plain, BATCH), 20, wait_for_ranks)
  local step = step_of(ddp, BATCH)
  local together, least = seconds(step, 20, wait_for_ranks)
  if rank == 0 then
    say("step, each rank alone", 1e3 * alone, "ms")
    say("step, DDP", 1e3 * together, "ms")
    say("step, DDP, least batch", 1e3 * least, "ms")
    if arg[1] == "processes" then say("start beyond contexts", start, "ms") end
  end
  return step
end

if arg[1] == "processes" then
  local rank = dist.rank()
  local step = ranks(rank)
  say_share(rank, 5, function()
    settle()
    return mr.timeline(step)
  end)
else
  one_thread()
  mr.synchronize(1)
  local began = mr.clock()
  dist.spawn(RANKS, function()
    dist.all_reduce(mr.rand(256))
    mr.synchronize()
  end)
  say("start of mr.dist.spawn", mr.clock() - began, "ms")
  dist.spawn(RANKS, ranks)
  say_share(0, 3, function()
    return mr.timeline(function()
      dist.spawn(RANKS, function()
        local step = step_of(ddp, BATCH)
        for _ = 1, 3 do
          step()
          settle()
        end
        step()
      end)
    end)
  end)
end
