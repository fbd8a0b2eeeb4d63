-- cudaMemset of device memory is asynchronous (R24).
-- expect: kind=read-after-write reason=no-path tensor=d first=9 second=11
if require "hazard_pair" () then return end
local mr = require "millrace"

local d = mr.zeros(64, {name = "d"})
local s = mr.stream{name = "s"}
mr.synchronize()
mr.memset(d, 0)
-- fix: s:wait_stream(mr.default_stream())
mr.op{name = "use", reads = {d}, stream = s}
