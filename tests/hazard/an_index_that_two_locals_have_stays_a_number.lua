-- The value of the index says nothing when two indices have it.
-- expect: kind=read-after-write reason=no-path first=12 second=15 fix=b:wait_stream(streams[1]) place=before:15
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local streams, b = { mr.stream() }, mr.stream{name = "b"}
mr.synchronize()
for i = 1, 1 do
  local k = i
  assert(streams[k] == streams[i])
  streams[i]:run(function() x:fill_(1) end)
  -- fix: b:wait_stream(streams[1])

  b:run(function() return x:sum() end)
end
