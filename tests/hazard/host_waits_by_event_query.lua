-- A query of an event that says yes orders like a wait (R10).
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {device = "cpu", pinned = true, name = "x"})
mr.synchronize()
local n = mr.stream{name = "n"}
mr.op{name = "produce", writes = {x}, stream = n}
local e = n:record_event()
while not e:query() do mr.spin{ms = 0.01} mr.default_stream():synchronize() end
local _ = x[1]:item()
