-- The host touches pinned memory while a blocking stream works on it (R22).
-- expect: kind=read-after-write reason=host-did-not-wait first=9 second=11 second_stream=host
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {device = "cpu", pinned = true, name = "x"})
mr.synchronize()
local b = mr.stream{name = "b", nonblocking = false}
mr.op{name = "produce", writes = {x}, stream = b}
-- fix: b:record_event():synchronize()
local _ = x[1]:item()
