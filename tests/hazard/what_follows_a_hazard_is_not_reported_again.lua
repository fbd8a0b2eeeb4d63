-- One missing wait is one report, however often its lack is met.
-- expect: kind=read-after-write first=9 second=11
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
mr.op{name = "produce", writes = {x}, stream = a}
-- fix: b:wait_stream(a)
mr.op{name = "consume", reads = {x}, stream = b}
mr.op{name = "again", reads = {x}, stream = b}
mr.op{name = "overwrite", writes = {x}, stream = b}
