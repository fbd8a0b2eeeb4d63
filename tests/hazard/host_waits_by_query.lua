-- A query that says yes orders like a wait (R10).
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {device = "cpu", pinned = true, name = "x"})
mr.synchronize()
local n = mr.stream{name = "n"}
mr.op{name = "produce", writes = {x}, stream = n}
while not n:query() do mr.spin{ms = 0.01, stream = mr.default_stream()} mr.default_stream():synchronize() end
local _ = x[1]:item()
