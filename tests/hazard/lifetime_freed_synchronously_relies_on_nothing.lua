-- cudaFree of a pool's memory waits for nothing (R27): the host has to have waited for all work on it.
-- expect: kind=use-after-free reason=host-did-not-wait first=9 second=13 fix=a:synchronize()
-- expect: kind=use-after-free reason=host-did-not-wait first=11 second=13 fix=b:synchronize()
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
local x = mr.zeros(64, {stream = a, name = "x"})
b:wait_stream(a)
mr.op{name = "use", reads = {x}, stream = b}
-- fix: b:synchronize()
x:free{sync = true}
