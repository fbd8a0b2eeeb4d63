-- R66: a send and its recv wait for each other, so two ranks that exchange data call all four in one group. Messages
-- of one rank to another match in the order of the calls. Here, a message without its peer is an error.
-- options: --device virtual:2
-- Guaranteed: NCCL user guide, point-to-point communication.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R66"
if mr.device_count() < 2 then T.skip("needs two devices") end

local comms, x, got = mr.nccl.comms{0, 1}, {}, {}
for k = 1, 2 do x[k], got[k] = mr.full(2, k + 0.0, {device = k - 1}), mr.zeros(2, {device = k - 1}) end
T.raises("deadlock", comms[1].send, comms[1], x[1], 1)
T.raises("deadlock", comms[2].recv, comms[2], x[2], 0)

mr.nccl.group(function()
  for k = 1, 2 do
    comms[k]:send(x[k], 2 - k)
    comms[k]:recv(got[k], 2 - k)
  end
end)
T.equal(got[1][1]:item(), 2, "rank 0 has what rank 1 sent")
T.equal(got[2][1]:item(), 1, "rank 1 has what rank 0 sent")

mr.nccl.group(function()
  comms[1]:send(x[1]:fill_(7):narrow(1, 1, 1), 1)
  comms[1]:send(mr.full(1, 8.0, {device = 0}), 1)
  comms[2]:recv(got[2]:narrow(1, 1, 1), 0)
  comms[2]:recv(got[2]:narrow(1, 2, 1), 0)
end)
T.equal(got[2][1]:item(), 7, "the first message")
T.equal(got[2][2]:item(), 8, "the second")
