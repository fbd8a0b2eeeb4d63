-- A communicator's operations run one after the other, on whatever streams. Nothing orders what the script submits
-- between two of them to the stream of the first.
-- options: --device virtual:2
-- expect: kind=read-after-write reason=no-path tensor=next first=20 second=23
if require "hazard_pair" () then return end
local mr = require "millrace"

local comms = mr.nccl.comms{0, 1}
local compute, communicate = mr.stream{name = "compute"}, mr.stream{name = "communicate"}
local first, next, other = mr.ones(64), mr.ones(64), mr.ones(64, {device = 1})
mr.synchronize(0)
mr.synchronize(1)
mr.nccl.group(function()
  comms[1]:all_reduce(first, {stream = compute})
  comms[2]:all_reduce(other)
end)

compute:run(function()

  next:mul_(3)
end)
-- fix: communicate:wait_stream(compute)
mr.nccl.group(function() comms[1]:all_reduce(next, {stream = communicate}) comms[2]:all_reduce(other) end)
mr.synchronize(0)
