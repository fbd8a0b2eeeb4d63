-- `step` has the value, too, but is not used as an index.
-- expect: kind=read-after-write reason=no-path first=13 second=13 fix=streams[i]:wait_stream(streams[1])_streams[i]:wait_stream(streams[2]) place=before:13,before:13
-- proposed fix: none
if require "hazard_pair" () then return end
local mr = require "millrace"

local streams = { mr.stream(), mr.stream() }
local x = mr.zeros(8)
mr.synchronize()
for step = 1, 2 do
  for i = 1, 2 do
    -- fix: mr.synchronize()
    streams[i]:run(function() x:add_(step) end)
  end
end
