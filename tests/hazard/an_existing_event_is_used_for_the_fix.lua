-- Where an event covers the write already, the fix is to wait for it.
-- expect: kind=read-after-write reason=no-path fix=b:wait_event(ready) first=9 second=14
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
mr.op{name = "produce", writes = {x}, stream = a}
local ready = a:record_event()
mr.op{name = "more", stream = a}
assert(ready)
-- fix: b:wait_event(ready)
mr.op{name = "consume", reads = {x}, stream = b}
