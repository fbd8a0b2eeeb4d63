-- Work of the root before a broadcast comes before another rank's work after it.
-- options: --device virtual:2
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local comms = mr.nccl.comms{0, 1}
local shared, x, y = mr.ones(64, {device = "cpu", pinned = true}), mr.ones(64), mr.zeros(64, {device = 1})
local far, near = mr.stream{device = 1, name = "far"}, mr.stream{device = 0, name = "near"}
mr.synchronize(0)
mr.synchronize(1)
mr.memcpy_async(x, shared, {stream = near})
mr.nccl.group(function()
  comms[1]:broadcast(x, {stream = near})
  comms[2]:broadcast(y, {stream = far})
end)
mr.memcpy_async(shared, y, {stream = far})
mr.synchronize(0)
mr.synchronize(1)
