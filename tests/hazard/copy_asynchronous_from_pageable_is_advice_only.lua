-- Overwriting the pageable source of an asynchronous copy is advice, no hazard (R23).
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local d = mr.zeros(64, {name = "d"})
local pageable = mr.zeros(64, {device = "cpu", name = "pageable"})
local s = mr.stream{name = "s"}
mr.synchronize()
mr.memcpy_async(d, pageable, {stream = s})
pageable:fill_(1)
