-- A tensor without a name is called by the variable that holds it.
-- expect: kind=read-after-write tensor=weights first=9 second=11 first_stream=a second_stream=b
if require "hazard_pair" () then return end
local mr = require "millrace"

local weights = mr.zeros(64)
local a, b = mr.stream(), mr.stream()
mr.synchronize()
mr.op{name = "produce", writes = {weights}, stream = a}
-- fix: b:wait_stream(a)
mr.op{name = "consume", reads = {weights}, stream = b}
