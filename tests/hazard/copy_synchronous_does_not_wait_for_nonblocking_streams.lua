-- cudaMemcpy does not come after non-blocking streams (R4).
-- expect: kind=read-after-write reason=no-path tensor=d first=10 second=12
if require "hazard_pair" () then return end
local mr = require "millrace"

local d = mr.zeros(64, {name = "d"})
local pinned = mr.zeros(64, {device = "cpu", pinned = true, name = "pinned"})
local s = mr.stream{name = "s"}
mr.synchronize()
mr.op{name = "produce", writes = {d}, stream = s}
-- fix: s:synchronize()
mr.memcpy(pinned, d)
