-- One line, twice: the fix goes in front of it.
-- expect: kind=read-after-write reason=no-path first=11 second=11 fix=streams[i]:wait_stream(streams[1]) place=before:11
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(8)
local streams = { mr.stream(), mr.stream() }
mr.synchronize()
for i = 1, 2 do
  -- fix: streams[i]:wait_stream(streams[1])
  streams[i]:run(function() x:add_(i) end)
end
