-- In front of it a fix would come once and too early, and there is no line in its body.
-- expect: kind=read-after-write reason=no-path first=11 second=11 fix=streams[2]:wait_stream(streams[1]) place=within:11
-- proposed fix: none
if require "hazard_pair" () then return end
local mr = require "millrace"

local streams = { mr.stream(), mr.stream() }
local x = mr.zeros(8)
mr.synchronize()
-- fix: streams[2] = streams[1]
for _, s in ipairs(streams) do s:run(function() x:add_(1) end) end
