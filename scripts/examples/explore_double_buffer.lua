-- Every schedule of a double buffer: right, without the event that says that a buffer is free again, and with a wait
-- that is too strong. The last two differ in a way that values cannot show: the strong wait is right and slow.
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: schedules are explored
local mr = require "millrace"

local BATCHES = 3

-- `back`: "event" (one a buffer), "stream" (a wait for all of `compute`), or nil: forgotten.
local function pipeline(back)
  local copy, compute = mr.stream{name = "copy"}, mr.stream{name = "compute"}
  local buffers, free = { mr.zeros(1, {name = "buffer 1"}), mr.zeros(1, {name = "buffer 2"}) }, {}
  local inputs, sum = {}, mr.zeros(1, {name = "sum"})
  for i = 1, BATCHES do inputs[i] = mr.full(1, 10 ^ (i - 1)) end
  mr.synchronize()
  for i = 1, BATCHES do
    local k = (i - 1) % 2 + 1
    if back == "event" and free[k] then copy:wait_event(free[k]) end
    if back == "stream" then copy:wait_stream(compute) end
    mr.with(copy, function() buffers[k]:copy_(inputs[i]) end)
    compute:wait_stream(copy)
    mr.with(compute, function() sum:add_(buffers[k]) end)
    free[k] = compute:record_event()
  end
  mr.synchronize()
  return sum:item()
end

local function show(title, r)
  local values = {}
  for _, o in ipairs(r.outcomes) do values[#values + 1] = ("%g"):format(o.value) end
  print(("%-28s schedules: %d, values: %s"):format(title, r.schedules, table.concat(values, ", ")))
end

show("one event a buffer:", mr.explore(function() return pipeline("event") end))
show("without the way back:", mr.explore(function() return pipeline() end))
show("a wait for the whole stream:", mr.explore(function() return pipeline("stream") end))
