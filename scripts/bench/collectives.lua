-- The cost of a collective of eight virtual devices: an all_reduce of 16 elements, from one thread and by eight ranks.
--
--     millrace --device virtual:8 scripts/bench/collectives.lua [COUNT]
--
-- Prints microseconds of processor time for each collective, all eight members together.
local mr = require "millrace"
local RANKS, count = 8, tonumber(arg[1] or 20000)

local function report(what, fn)
  local began = os.clock()
  fn()
  print(("%-12s %6.1f us"):format(what, (os.clock() - began) / count * 1e6))
end

report("one thread", function()
  local devices, tensors = {}, {}
  for k = 1, RANKS do
    devices[k] = k - 1
    tensors[k] = mr.ones(16, { device = k - 1 })
  end
  local comms = mr.nccl.comms(devices)
  for _ = 1, count do
    mr.nccl.group(function()
      for k = 1, RANKS do comms[k]:all_reduce(tensors[k], { op = "max" }) end
    end)
  end
  for k = 1, RANKS do mr.synchronize(k - 1) end
end)

report("ranks", function()
  mr.dist.spawn(RANKS, function()
    local x = mr.ones(16)
    for _ = 1, count do mr.dist.all_reduce(x, { op = "max" }) end
    mr.synchronize()
  end)
end)
