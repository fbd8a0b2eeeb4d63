-- `count` has the value of the last index, but is not used as one.
-- expect: kind=read-after-write reason=no-path first=11 second=15 fix=mr.default_stream():wait_stream(streams[i]) place=before:15
if require "hazard_pair" () then return end
local mr = require "millrace"

local count = 2
local streams, x = {}, {}
for i = 1, count do streams[i] = mr.stream{name = "s" .. i} x[i] = mr.zeros(8) end
mr.synchronize()
for i = count, count do
  streams[i]:run(function() x[i]:add_(1) end)
end
for i = count, count do
  -- fix: mr.default_stream():wait_stream(streams[i])
  x[i]:mul_(2)
end
