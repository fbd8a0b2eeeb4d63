-- An asynchronous copy between devices is ordered by its stream only (R60).
-- options: --device virtual:2
-- expect: kind=read-after-write reason=no-path tensor=y first=12 second=14
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {device = 0, name = "x"})
local a, b = mr.stream{device = 0, name = "a"}, mr.stream{device = 1, name = "b"}
mr.synchronize(0) mr.synchronize(1)
local y = mr.zeros(64, {device = 1, name = "y"})
mr.synchronize(1)
mr.memcpy_async(y, x, {stream = a})
-- fix: b:wait_stream(a)
mr.op{name = "use", reads = {y}, stream = b}
