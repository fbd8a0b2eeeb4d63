-- Each of them is looked at, wherever it stands.
-- expect: kind=read-after-write tensor=x2 first=10 second=13 all=x2,x34,x66,x80 count=4
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x = {}
for i = 1, 80 do x[i] = mr.zeros(8, {name = "x" .. i}) end
mr.synchronize()
mr.op{name = "produce", writes = {x[2], x[34], x[66], x[80]}, stream = a}
-- fix: b:wait_stream(a)
local sum = mr.zeros(8, {stream = b})
mr.op{name = "consume", reads = x, writes = {sum}, stream = b}
