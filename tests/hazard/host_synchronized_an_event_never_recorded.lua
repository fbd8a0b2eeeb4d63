-- Synchronizing an event that was never recorded returns at once (R13).
-- expect: kind=read-after-write reason=never-recorded first=10 second=13
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {device = "cpu", pinned = true, name = "x"})
mr.synchronize()
local n = mr.stream{name = "n"}
local e = mr.event()
mr.op{name = "produce", writes = {x}, stream = n}
-- fix: e:record(n)
e:synchronize()
local _ = x[1]:item()
