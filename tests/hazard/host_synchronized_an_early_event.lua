-- The event that the host waits for was recorded before the write.
-- expect: kind=read-after-write reason=recorded-before-write first=10 second=13
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {device = "cpu", pinned = true, name = "x"})
mr.synchronize()
local n = mr.stream{name = "n"}
local e = n:record_event()
mr.op{name = "produce", writes = {x}, stream = n}
-- fix: e:record(n)
e:synchronize()
local _ = x[1]:item()
