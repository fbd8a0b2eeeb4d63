-- A record behind a host function covers it.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {device = "cpu", pinned = true, name = "x"})
mr.synchronize()
local n = mr.stream{name = "n"}
local o = mr.stream{name = "o"}
n:host_func(function() x:fill_(2) end)
o:wait_event(n:record_event())
mr.op{name = "consume", reads = {x}, stream = o}
o:synchronize()
