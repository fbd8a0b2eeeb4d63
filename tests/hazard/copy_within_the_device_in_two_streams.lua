-- Two copies in two streams race like kernels.
-- expect: kind=read-after-write tensor=d2 reason=no-path first=12 second=14
if require "hazard_pair" () then return end
local mr = require "millrace"

local d = mr.zeros(64, {name = "d"})
local pinned = mr.zeros(64, {device = "cpu", pinned = true, name = "pinned"})
local s = mr.stream{name = "s"}
mr.synchronize()
local t, d2 = mr.stream{name = "t"}, mr.zeros(64, {name = "d2"})
mr.synchronize()
mr.memcpy_async(d2, d, {stream = s})
-- fix: t:wait_stream(s)
mr.memcpy_async(pinned, d2, {stream = t})
