-- A wait on an event never recorded, as a double buffer begins: it is done with before the race.
-- expect: kind=read-after-write reason=no-path first=15 second=17
if require "hazard_pair" () then return end
local mr = require "millrace"

local copy, compute = mr.stream{name = "copy"}, mr.stream{name = "compute"}
local x, y = mr.zeros(8), mr.zeros(8)
local free = mr.event{name = "free"}
mr.synchronize()
copy:wait_event(free)
copy:run(function() x:fill_(1) end)
free:record(compute)
copy:wait_event(free)
mr.synchronize()
compute:run(function() y:fill_(3) end)
-- fix: copy:wait_stream(compute)
copy:run(function() return y:sum() end)
