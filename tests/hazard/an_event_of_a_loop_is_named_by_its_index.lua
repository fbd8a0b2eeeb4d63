-- Two events cover the read; the fix takes the earlier one, by the index that it has in the loop.
-- expect: kind=write-after-read reason=one-way first=15 second=12 fix=copy:wait_event(free[k]) place=before:12
if require "hazard_pair" () then return end
local mr = require "millrace"

local copy, compute = mr.stream{name = "copy"}, mr.stream{name = "compute"}
local buffer, free, host = {}, {}, mr.ones(64, {device = "cpu", pinned = true})
for k = 1, 2 do buffer[k], free[k] = mr.zeros(64), mr.event() end
mr.synchronize()
for i = 1, 4 do
  local k = (i - 1) % 2 + 1
  copy:run(function() buffer[k]:copy_(host, {non_blocking = true}) end)
  -- fix: copy:wait_stream(compute)
  compute:wait_stream(copy)
  compute:run(function() mr.spin(1) return buffer[k]:sum() end)
  -- fix: copy:wait_stream(compute)
  free[k]:record(compute)
end
