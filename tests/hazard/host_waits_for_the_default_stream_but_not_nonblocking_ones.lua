-- Synchronizing the default stream does not wait for non-blocking streams (R4).
-- expect: kind=read-after-write reason=wait-on-wrong-stream first=9 second=12
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {device = "cpu", pinned = true, name = "x"})
mr.synchronize()
local n = mr.stream{name = "n"}
mr.op{name = "produce", writes = {x}, stream = n}
mr.default_stream():synchronize()
-- fix: n:synchronize()
local _ = x[1]:item()
