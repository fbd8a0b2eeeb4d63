-- The fix names a stream that a table holds.
-- expect: kind=read-after-write reason=no-path first=9 second=11 fix=streams[2]:wait_stream(streams[1])
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local streams = { mr.stream(), mr.stream() }
mr.synchronize()
mr.op{name = "produce", writes = {x}, stream = streams[1]}
-- fix: streams[2]:wait_stream(streams[1])
mr.op{name = "consume", reads = {x}, stream = streams[2]}
