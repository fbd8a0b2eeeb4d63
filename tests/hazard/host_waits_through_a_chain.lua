-- A stream that has waited for another carries its work to the host.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {device = "cpu", pinned = true, name = "x"})
mr.synchronize()
local n = mr.stream{name = "n"}
local o = mr.stream{name = "o"}
mr.op{name = "produce", writes = {x}, stream = n}
o:wait_stream(n)
o:synchronize()
local _ = x[1]:item()
