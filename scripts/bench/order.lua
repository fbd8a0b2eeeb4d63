-- The cost of the rules of order: commands of two streams that wait for each other, with the default stream now and
-- then; or, with a second argument, an exploration. Count it in instructions, which other processes do not change:
--
--     valgrind --tool=callgrind millrace [--check] scripts/bench/order.lua N [explore]
--
-- The difference between two N is free of what the start costs.
local mr = require "millrace"
local n, explores = tonumber(arg[1] or 1000), arg[2] == "explore"

local function commands()
  local a, b = mr.stream{nonblocking = false}, mr.stream()
  local x, y, e = mr.zeros(4), mr.zeros(4), mr.event()
  mr.synchronize()
  for i = 1, n do
    a:run(function() x:add_(1) end)
    e:record(a)
    b:wait_event(e)
    b:run(function() y:copy_(x) end)
    a:wait_stream(b)
    if i % 50 == 0 then
      mr.default_stream():run(function() x:add_(1) end)
      mr.synchronize()
    end
  end
  mr.synchronize()
end

local function schedules()
  local streams, x = {mr.stream(), mr.stream{nonblocking = false}, mr.stream()}, mr.zeros(4)
  mr.synchronize()
  return mr.explore(function()
    for i = 1, n do streams[i % 3 + 1]:run(function() x:add_(i):mul_(2) end) end
    for _, s in ipairs(streams) do s:synchronize() end
    return x
  end, {max = 100000}).schedules
end

if explores then print(schedules() .. " schedules") else commands() end
