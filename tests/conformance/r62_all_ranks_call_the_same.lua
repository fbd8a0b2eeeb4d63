-- R62: the ranks of a communicator call the same operations in the same order, with the same count, dtype, reduction
-- and root. Here, what does not match is an error at the call, and nothing of it is submitted.
-- options: --device virtual:2
-- Guaranteed: NCCL user guide, collective operations. Here: an error in place of undefined behaviour.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R62"
if mr.device_count() < 2 then T.skip("needs two devices") end

local comms = mr.nccl.comms{0, 1}
local x = { mr.ones(4, {device = 0}), mr.ones(4, {device = 1}) }
local first, second = comms[1], comms[2]
local function fails(fn) T.raises("collective-mismatch", mr.nccl.group, fn) end

fails(function() first:all_reduce(x[1]) second:all_reduce(x[2]:narrow(1, 1, 2)) end)
fails(function() first:all_reduce(x[1]) second:all_reduce(mr.ones(4, {device = 1, dtype = "i32"})) end)
fails(function() first:all_reduce(x[1]) second:all_reduce(x[2], {op = "max"}) end)
fails(function() first:broadcast(x[1], {root = 0}) second:broadcast(x[2], {root = 1}) end)
fails(function()
  local y = { mr.ones(4, {device = 0}), mr.ones(4, {device = 1}) }
  first:all_reduce(x[1])
  first:broadcast(y[1])
  second:broadcast(y[2])
  second:all_reduce(x[2])
end)

mr.nccl.all_reduce(x)
T.equal(x[1]:sum():item(), 8, "only the last one was carried out")
