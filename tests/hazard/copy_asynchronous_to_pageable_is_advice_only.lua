-- Whether an asynchronous copy to pageable memory waits is open (R23): advice, no hazard.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local d = mr.zeros(64, {name = "d"})
local pageable = mr.zeros(64, {device = "cpu", name = "pageable"})
local s = mr.stream{name = "s"}
mr.synchronize()
mr.memcpy_async(pageable, d, {stream = s})
local _ = pageable[1]:item()
