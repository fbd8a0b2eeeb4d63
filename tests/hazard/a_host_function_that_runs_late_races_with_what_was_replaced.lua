-- The first write races with the host function, though the second, which is ordered, has taken its place.
-- expect: kind=read-after-write reason=no-path first=9 second=11
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {device = "cpu", pinned = true, name = "x"})
local s, t = mr.stream{name = "s"}, mr.stream{name = "t"}
mr.synchronize()
mr.op{name = "early", writes = {x}, stream = t}
-- fix: s:wait_stream(t)
s:host_func(function() local _ = x[1]:item() end)
t:wait_stream(s)
mr.op{name = "late", writes = {x}, stream = t}
t:synchronize()
s:synchronize()
