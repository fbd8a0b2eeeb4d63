-- All of them are named, whether they were written on one line or on several, and one fix serves them.
-- expect: kind=read-after-write tensor=x1 first=12 second=18 all=x1,x2,x3,y,z count=3
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x, y, z = {}, mr.zeros(8, {name = "y"}), mr.zeros(8, {name = "z"})
for i = 1, 3 do x[i] = mr.zeros(8, {name = "x" .. i}) end
mr.synchronize()
a:run(function()
  for i = 1, 3 do
    mr.op{name = "produce", writes = {x[i]}}
  end
  y:fill_(1)
  z:fill_(1)
end)
-- fix: b:wait_stream(a)
mr.op{name = "consume", reads = {x[1], x[2], x[3], y, z}, stream = b}
