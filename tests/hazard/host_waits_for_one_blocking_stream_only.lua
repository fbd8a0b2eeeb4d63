-- Synchronizing a blocking stream does not wait for another one (R2).
-- expect: kind=read-after-write reason=wait-on-wrong-stream first=10 second=13
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {device = "cpu", pinned = true, name = "x"})
mr.synchronize()
local b = mr.stream{name = "b", nonblocking = false}
local c = mr.stream{name = "c", nonblocking = false}
mr.op{name = "produce", writes = {x}, stream = b}
c:synchronize()
-- fix: b:synchronize()
local _ = x[1]:item()
