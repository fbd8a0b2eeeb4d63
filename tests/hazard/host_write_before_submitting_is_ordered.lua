-- The work reads the values that the host wrote before the submission.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {device = "cpu", pinned = true, name = "x"})
mr.synchronize()
local n = mr.stream{name = "n"}
x:fill_(3)
mr.op{name = "consume", reads = {x}, stream = n}
