-- Two fixes of one script each make an event: the second local does not hide the first.
-- expect: kind=read-after-write reason=no-path tensor=x first=12 second=18 fix=local_e_=_a:record_event()_b:wait_event(e)
-- expect: kind=read-after-write reason=no-path tensor=y first=14 second=20 fix=local_ready_=_c:record_event()_b:wait_event(ready)
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b, c = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.stream{name = "c"}
local x, y, z = mr.zeros(64, {name = "x"}), mr.zeros(64, {name = "y"}), mr.zeros(64)
local w = mr.zeros(64)
mr.synchronize()

mr.op{name = "produce", writes = {x}, stream = a}

mr.op{name = "produce", writes = {y}, stream = c}
mr.op{name = "other", writes = {z}, stream = a}
mr.op{name = "other", writes = {w}, stream = c}
-- fix: b:wait_stream(a) b:wait_stream(c)
mr.op{name = "consume", reads = {x}, stream = b}

mr.op{name = "consume", reads = {y}, stream = b}
