-- If the copy waits (R23), only the function's writes that the copy reads are ordered.
-- expect: kind=write-after-write reason=host-did-not-wait tensor=pageable first=9 second=12
if require "hazard_pair" () then return end
local mr = require "millrace"

local s = mr.stream{name = "s"}
local x, pageable = mr.zeros(2, {name = "x"}), mr.zeros(4, {device = "cpu", name = "pageable"})
mr.synchronize()
s:host_func(function() pageable:fill_(9) end)
mr.with(s, function() x:copy_(pageable[{{1, 2}}], {non_blocking = true}) end)
-- fix: s:synchronize()
pageable:fill_(1)
mr.synchronize()
