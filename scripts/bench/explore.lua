-- How long mr.explore takes: a random program without hazards beside mr.hazard.check, and n races that the host reads.
--
--     build/millrace scripts/bench/explore.lua [OPERATIONS [SHARE]]   -- SHARE: per cent that make new tensors
-- Processor seconds. For counts of instructions: valgrind --tool=callgrind, with REPEATS, and WHAT=check or explore.
local mr = require "millrace"

local OPERATIONS, SHARE = tonumber(arg[1] or 1000), tonumber(arg[2] or 0)
local WHAT, REPEATS = os.getenv("WHAT"), tonumber(os.getenv("REPEATS") or 20)

-- Each operation comes after those in other streams that used its tensors last.
local function free_of_hazards()
  local state = 1
  local function draw(n)
    state = (state * 1103515245 + 12345) % 2147483648
    return (state >> 8) % n + 1
  end
  local streams, tensors, last = {}, {}, {}
  for i = 1, 4 do streams[i] = mr.stream() end
  for i = 1, 8 do tensors[i] = mr.zeros(4) end
  mr.synchronize()
  for _ = 1, OPERATIONS do
    local s, a, b = streams[draw(4)], draw(8), draw(8)
    for _, k in ipairs{ a, b } do
      if last[k] and last[k] ~= s then s:wait_stream(last[k]) end
    end
    s:run(function()
      if draw(100) > SHARE then return tensors[a]:add_(tensors[b]) end
      tensors[a]:record_stream(s)
      tensors[a] = tensors[a]:add(tensors[b])
    end)
    last[a], last[b] = s, s
  end
  mr.synchronize()
  local sum = 0
  for i = 1, 8 do sum = sum + tensors[i]:sum():item() end
  return sum
end

local function races(n)
  return function()
    local a, b, x, values = mr.stream(), mr.stream(), {}, {}
    for i = 1, n do x[i] = mr.zeros(1) end
    mr.synchronize()
    for i = 1, n do
      a:run(function() x[i]:add_(1) end)
      b:run(function() x[i]:mul_(3) end)
    end
    mr.synchronize()
    for i = 1, n do values[i] = x[i]:item() end
    return table.unpack(values)
  end
end

local ways = { check = mr.hazard.check, explore = mr.explore }

local function measure(what)
  local began = os.clock()
  for _ = 1, REPEATS do ways[what](free_of_hazards) end
  local seconds = (os.clock() - began) / REPEATS
  print(("%-10s %8.2f ms"):format(what, 1000 * seconds))
  return seconds
end

if WHAT then
  measure(WHAT)
else
  local checked = measure("check")
  print(("           %8.2f times that"):format(measure("explore") / checked))
  for n = 2, 12, 2 do
    local began = os.clock()
    local r = mr.explore(races(n), { time = 60 })
    print(("%2d races   %6d schedules, %5d outcomes, %6.2f s"):format(n, r.schedules, #r.outcomes, os.clock() - began))
  end
end
