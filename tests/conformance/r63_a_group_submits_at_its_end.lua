-- R63: one thread that calls the operations of several ranks does so in a group. Nothing of a group is in a stream
-- before the outermost one ends. Here, a call without the other ranks' is an error.
-- options: --device virtual:2
-- Guaranteed: NCCL user guide, group calls.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R63"
if mr.device_count() < 2 then T.skip("needs two devices") end

local comms = mr.nccl.comms{0, 1}
local x = { mr.ones(1, {device = 0}), mr.ones(1, {device = 1}) }
T.raises("deadlock", comms[1].all_reduce, comms[1], x[1])

mr.nccl.group(function()
  mr.nccl.group(function() for k = 1, 2 do comms[k]:all_reduce(x[k]) end end)
  T.equal(x[1]:item(), 1, "the inner group submits nothing")
end)
T.equal(x[1]:item(), 2, "the outer one does")
T.equal(x[2]:item(), 2, "for all ranks")
