-- Closing a stream waits for nothing (R9).
-- expect: kind=read-after-write reason=no-path first=9 second=14
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
mr.op{name = "produce", writes = {x}, stream = a}
local e = a:record_event()
a:close()
assert(e)
-- fix: b:wait_event(e)
mr.op{name = "consume", reads = {x}, stream = b}
