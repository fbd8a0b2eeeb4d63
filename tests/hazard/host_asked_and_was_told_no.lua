-- A query that says no orders nothing (R10).
-- expect: kind=read-after-write reason=host-did-not-wait first=9 second=12
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {device = "cpu", pinned = true, name = "x"})
mr.synchronize()
local n = mr.stream{name = "n"}
mr.op{name = "produce", writes = {x}, ms = 50, stream = n}
assert(not n:query())
-- fix: n:synchronize()
local _ = x[1]:item()
