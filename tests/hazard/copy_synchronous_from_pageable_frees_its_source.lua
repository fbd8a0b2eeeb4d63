-- The source of a staged copy may be used again on return (R20).
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local d = mr.zeros(64, {name = "d"})
local pageable = mr.zeros(64, {device = "cpu", name = "pageable"})
mr.synchronize()
mr.memcpy(d, pageable)
pageable:fill_(1)
