-- A blocking stream's reading is ordered by the default stream's barrier, the non-blocking one's is not.
-- expect: kind=write-after-read reason=no-path first=11 second=13
if require "hazard_pair" () then return end
local mr = require "millrace"

local s, blocking = mr.stream{name = "s"}, mr.stream{name = "blocking", nonblocking = false}
local x = mr.zeros(100)
x:normal_()
mr.synchronize()
blocking:run(function() return x:sum() end)
s:run(function() return x:sum() end)
-- fix: mr.default_stream():wait_stream(s)
x:fill_(3)
