-- b has waited for a, but the event that c waits for was recorded in b before that.
-- expect: kind=read-after-write first=9 second=14
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b, c = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.stream{name = "c"}
mr.synchronize()
mr.op{name = "produce", writes = {x}, stream = a}
local e = b:record_event()
b:wait_stream(a)
-- fix: e:record(b)
c:wait_event(e)
mr.op{name = "consume", reads = {x}, stream = c}
