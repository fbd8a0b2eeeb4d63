-- R67: a communicator of one process has a rank on each of its devices, in the order in which these are named, and on
-- no device two. After close or abort it cannot be used.
-- options: --device virtual:2
-- Guaranteed: NCCL API, ncclCommInitAll, ncclCommDestroy, ncclCommAbort.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R67"
if mr.device_count() < 2 then T.skip("needs two devices") end

local comms = mr.nccl.comms{1, 0}
T.equal(comms[1].rank, 0, "the first one's rank")
T.equal(comms[1].device.index, 1, "the first one's device")
T.equal(comms[2].device.index, 0, "the second one's device")
T.raises("invalid-argument", mr.nccl.comms, {0, 0})

local x = mr.ones(1, {device = 0})
T.raises("invalid-argument", comms[1].all_reduce, comms[1], x) -- of another device
comms[2]:close()
T.raises("invalid-handle", comms[2].all_reduce, comms[2], x)
local others = mr.nccl.comms{0, 1}
others[2]:abort()
T.raises("invalid-handle", others[1].all_reduce, others[1], x)
