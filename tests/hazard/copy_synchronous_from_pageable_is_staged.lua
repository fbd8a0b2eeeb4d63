-- cudaMemcpy from pageable memory returns when the source is staged (R20):
-- no order for a non-blocking stream.
-- expect: kind=read-after-write reason=copy-still-pending tensor=d first=11 second=13
if require "hazard_pair" () then return end
local mr = require "millrace"

local d = mr.zeros(64, {name = "d"})
local pageable = mr.zeros(64, {device = "cpu", name = "pageable"})
local s = mr.stream{name = "s"}
mr.synchronize()
mr.memcpy(d, pageable)
-- fix: s:wait_stream(mr.default_stream())
mr.op{name = "use", reads = {d}, stream = s}
