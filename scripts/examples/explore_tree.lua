-- Every schedule of a sum in a tree over four streams, with a flag that two of them set without an order. Both write
-- the same value, so the race is benign: there are several classes of schedules and one outcome.
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: schedules are explored
local mr = require "millrace"

local function tree()
  local streams, parts = {}, {}
  for i = 1, 4 do
    streams[i] = mr.stream{name = "s" .. i}
    parts[i] = mr.zeros(1, {name = "part " .. i})
  end
  local ready = mr.zeros(1, {name = "ready"})
  mr.synchronize()
  for i = 1, 4 do mr.with(streams[i], function() parts[i]:fill_(i) end) end
  for i = 1, 3, 2 do -- 1 and 2, 3 and 4
    streams[i]:wait_stream(streams[i + 1])
    mr.with(streams[i], function()
      parts[i]:add_(parts[i + 1])
      ready:fill_(1) -- by two streams
    end)
  end
  streams[1]:wait_stream(streams[3])
  mr.with(streams[1], function() parts[1]:add_(parts[3]) end)
  mr.synchronize()
  return {sum = parts[1]:item(), ready = ready:item()}
end

local r = mr.explore(tree)
print(r)
print(r.hazards[1].tensor .. " is written by two streams, without an order:")
print(r.hazards[1]:witness())
