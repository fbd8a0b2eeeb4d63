-- Two streams may read at once.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
mr.synchronize()
local n = mr.stream{name = "n"}
local o = mr.stream{name = "o"}
mr.op{name = "consume", reads = {x}, stream = n}
mr.op{name = "consume", reads = {x}, stream = o}
