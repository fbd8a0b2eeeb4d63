-- Half of the buffer is written; the sum reads all of it.
-- expect: kind=uninitialised-read reason=never-written tensor=x first=7 second=12
-- proposed fix: none
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.empty(8, {name = "x"})
local s = mr.stream{name = "s"}
x:narrow(1, 1, 4):fill_(1)
-- fix: x:narrow(1, 5, 4):fill_(2)
s:wait_stream(mr.default_stream())
mr.with(s, function() return x:sum() end)
s:synchronize()
