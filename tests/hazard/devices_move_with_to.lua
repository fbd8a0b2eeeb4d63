-- to() between devices waits on both sides for the tensors it uses.
-- options: --device virtual:2
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {device = 0, name = "x"})
mr.synchronize(0) mr.synchronize(1)
local y = x:to(1)
mr.with(mr.device(1), function() return y:sum() end)
