-- The wait for the later of the two covers the earlier one: no event of its own is proposed for that.
-- expect: kind=read-after-write tensor=y first=10 second=12 all=y,x fix=b:wait_stream(a)
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x, y = mr.zeros(8), mr.zeros(8)
mr.synchronize()
a:run(function() x:fill_(1) end)
a:run(function() y:fill_(2) end)
-- fix: b:wait_stream(a)
b:run(function() return x + y end)
