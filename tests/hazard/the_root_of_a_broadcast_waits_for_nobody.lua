-- What comes behind a broadcast on the root has no order after what another rank did before it: the root may be done
-- before the other rank has begun. The other way round the data carry the order.
-- options: --device virtual:2
-- expect: kind=write-after-read reason=no-path tensor=shared first=13 second=19
if require "hazard_pair" () then return end
local mr = require "millrace"

local comms = mr.nccl.comms{0, 1}
local shared, x, y = mr.ones(64, {device = "cpu", pinned = true}), mr.ones(64), mr.zeros(64, {device = 1})
local far, near = mr.stream{device = 1, name = "far"}, mr.stream{device = 0, name = "near"}
mr.synchronize(0)
mr.synchronize(1)
mr.memcpy_async(y, shared, {stream = far})
mr.nccl.group(function()
  comms[1]:broadcast(x, {stream = near})
  comms[2]:broadcast(y, {stream = far})
end)
-- fix: near:wait_stream(far)
mr.memcpy_async(shared, x, {stream = near})
mr.synchronize(0)
mr.synchronize(1)
