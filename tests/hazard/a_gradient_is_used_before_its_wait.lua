-- The optimiser uses a gradient on the compute stream before that waits for the all-reduce.
-- options: --device virtual:2
-- expect: kind=read-after-write reason=no-path tensor=gradient first=15 second=19
if require "hazard_pair" () then return end
local mr = require "millrace"

local comms = mr.nccl.comms{0, 1}
local communicate = mr.stream{name = "communicate"}
local weight, gradient, other = mr.zeros(64), mr.ones(64), mr.ones(64, {device = 1})
mr.synchronize(0)
mr.synchronize(1)
gradient:mul_(0.5)
communicate:wait_stream(mr.default_stream(0))
mr.nccl.group(function()
  comms[1]:all_reduce(gradient, {stream = communicate})
  comms[2]:all_reduce(other)
end)
-- fix: mr.default_stream(0):wait_stream(communicate)
weight:sub_(gradient)
mr.synchronize(0)
