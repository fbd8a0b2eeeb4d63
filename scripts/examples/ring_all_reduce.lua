-- A ring all-reduce by hand: every rank gets the sum of all ranks' tensors, by messages between neighbours.
--
-- The tensor is cut into as many parts as there are ranks. In each step, a rank sends one part to the next rank and
-- receives another from the rank before it. After N - 1 steps each part is complete on one rank; after N - 1 more, all
-- ranks have all parts. So a rank moves 2 (N - 1) / N of its bytes, whatever N is. This is how NCCL does it.
--
-- The send and the recv of a step stand in one group. Without it, all ranks send, no rank receives, and nobody goes on.
-- options: --device virtual:4
-- virtual only: ranks in one process are those of virtual devices
-- not replayed: ranks have a clock each
local mr = require "millrace"
local dist = mr.dist

local function ring_all_reduce(t, group)
  local rank, n = dist.rank(), dist.world_size()
  local size = #t // n
  local function part(k) return t:narrow(1, k % n * size + 1, size) end
  local following, before = (rank + 1) % n, (rank - 1) % n
  local got = mr.zeros(size)

  for step = 0, n - 2 do -- parts become complete
    group(function()
      dist.send(part(rank - step), following)
      dist.recv(got, before)
    end)
    part(rank - step - 1):add_(got)
  end
  for step = 0, n - 2 do -- complete parts go round
    group(function()
      dist.send(part(rank + 1 - step), following)
      dist.recv(part(rank - step), before)
    end)
  end
  return t
end

local function run(group)
  return dist.spawn(4, function(rank)
    local t = mr.arange(1, 9, {dtype = "f32"}) * 10 ^ rank
    return ring_all_reduce(t, group):cpu():totable()
  end)
end

for rank, values in ipairs(run(mr.nccl.group)) do
  print(("rank %d: %s"):format(rank - 1, table.concat(values, " ")))
end

local ok, err = pcall(run, function(fn) fn() end)
print(("without the group: %s"):format(ok))
print((tostring(err):match("deadlock.*"):gsub("; ", ";\n  "):gsub("[%w_./]*ring_all", "ring_all")))
