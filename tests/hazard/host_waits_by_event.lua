-- Synchronizing an event that covers the work is enough.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {device = "cpu", pinned = true, name = "x"})
mr.synchronize()
local n = mr.stream{name = "n"}
mr.op{name = "produce", writes = {x}, stream = n}
local e = n:record_event()
mr.op{name = "more", stream = n}
e:synchronize()
local _ = x[1]:item()
