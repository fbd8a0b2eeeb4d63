-- A halo exchange between ranks: heat flows along a rod that is cut into a piece for each rank.
--
-- In each step a point becomes the mean of itself and its neighbours. The first and the last point of a piece need a
-- point of the neighbouring rank. Each rank keeps a copy of it, the halo, and gets a new one before each step.
--
--     rank 0    [ 0 | a b c d | e ]
--     rank 1            [ d | e f g h | i ]
--     rank 2                    [ h | i j k l | 0 ]
--
-- Sends and receives of a step stand in one group. The exchange runs on a stream of its own, beside the inner points,
-- which need no halo; the outer ones wait for it. Without that wait they use the halo of an earlier step.
-- options: --device virtual:3
-- virtual only: ranks in one process are those of virtual devices
-- not replayed: ranks have a clock each
local mr = require "millrace"
local dist = mr.dist

local RANKS = 3

-- The mean of each inner point of t and its neighbours.
local function smooth(t)
  local n = #t - 2
  return t:narrow(1, 1, n) * 0.25 + t:narrow(1, 2, n) * 0.5 + t:narrow(1, 3, n) * 0.25
end

local function on_ranks(n, steps, wait)
  local size = n // RANKS
  local pieces = dist.spawn(RANKS, function(rank)
    local main, side = mr.current_stream(), mr.stream{name = "halo"}
    local now = mr.zeros(size + 2)
    if rank == 1 then now:narrow(1, 2, size):fill_(1024) end
    for _ = 1, steps do
      side:wait_stream(main) -- the points to send are ready, and the old halo is not needed any more
      mr.with(side, mr.nccl.group, function()
        for _, at in ipairs{{rank - 1, 2, 1}, {rank + 1, size + 1, size + 2}} do -- neighbour, edge, halo
          local neighbour, edge, halo = table.unpack(at)
          if neighbour >= 0 and neighbour < RANKS then
            dist.send(now:narrow(1, edge, 1), neighbour)
            dist.recv(now:narrow(1, halo, 1), neighbour)
          end
        end
      end)
      local following = mr.zeros(size + 2)
      following:narrow(1, 3, size - 2):copy_(smooth(now:narrow(1, 2, size))) -- needs no halo
      if wait then main:wait_stream(side) end
      following:narrow(1, 2, 1):copy_(smooth(now:narrow(1, 1, 3)))
      following:narrow(1, size + 1, 1):copy_(smooth(now:narrow(1, size, 3)))
      now:record_stream(side)
      now = following
    end
    return now:narrow(1, 2, size):cpu():totable()
  end)
  local all = {}
  for _, piece in ipairs(pieces) do table.move(piece, 1, #piece, #all + 1, all) end
  return all
end

local function on_one_device(n, steps)
  local now = mr.zeros(n + 2)
  now:narrow(1, 2 + n // RANKS, n // RANKS):fill_(1024)
  for _ = 1, steps do
    local following = mr.zeros(n + 2)
    following:narrow(1, 2, n):copy_(smooth(now))
    now = following
  end
  return now:narrow(1, 2, n):cpu():totable()
end

-- How far the pieces are from one rod, at the point where they differ most.
local function difference(n, steps, wait)
  local whole, worst = on_one_device(n, steps), 0
  for i, value in ipairs(on_ranks(n, steps, wait)) do worst = math.max(worst, math.abs(value - whole[i])) end
  return worst
end

print("with the wait, the pieces equal one rod:", difference(48, 5, true) == 0)
local reports = mr.hazard.check(difference, 48, 5, false)
print("without it, the checker says:")
print((reports[1].message:match("^(.-)\n[^\n]*fix:"):gsub("[%w_./]*rank_halo", "rank_halo")))
