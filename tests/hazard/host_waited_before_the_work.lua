-- The host synchronized, then submitted more, and did not wait again.
-- expect: kind=read-after-write reason=synchronized-before first=10 second=12
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {device = "cpu", pinned = true, name = "x"})
mr.synchronize()
local n = mr.stream{name = "n"}
n:synchronize()
mr.op{name = "produce", writes = {x}, stream = n}
-- fix: n:synchronize()
local _ = x[1]:item()
