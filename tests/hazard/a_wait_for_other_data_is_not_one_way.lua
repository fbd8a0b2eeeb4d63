-- The reader waited for the writer, but for other data.
-- expect: kind=write-after-read reason=no-path first=11 second=13
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x, y = mr.zeros(8), mr.zeros(8)
mr.synchronize()
a:run(function() y:fill_(1) end)
b:wait_stream(a)
b:run(function() return x:sum() + y:sum() end)
-- fix: a:wait_stream(b)
a:run(function() x:fill_(1) end)
