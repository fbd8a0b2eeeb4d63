-- R64: the operations of one communicator run one after the other, on whatever streams they are. Several communicators
-- need one order on all devices. In another order their collectives get through as long as each device has room for
-- all that wait there. Without room they wait for each other's multiprocessors for ever (R64a), and the host's wait is
-- an error.
-- options: --device virtual:2
-- virtual only: a GPU may hang
-- Guaranteed: NCCL user guide, using multiple NCCL communicators concurrently.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R64"
if mr.device_count() < 2 then T.skip("needs two devices") end

local function on_both(make) return { make(0), make(1) } end

local function new_streams() return on_both(function(d) return mr.stream{device = d} end) end

local function synchronize()
  mr.synchronize(0)
  mr.synchronize(1)
end

local function reduce(comms, x, streams)
  mr.nccl.group(function() for k = 1, 2 do comms[k]:all_reduce(x[k], {stream = streams[k]}) end end)
end

local comms, a, b = mr.nccl.comms{0, 1}, new_streams(), new_streams()
T.always(6, function()
  local x = on_both(function(d) return mr.full(1, d + 1.0, {device = d}) end)
  synchronize()
  reduce(comms, x, a)
  reduce(comms, x, b)
  synchronize()
  return x[1]:item()
end, "the second operation has the result of the first")

-- 2 * half communicators. Device 0 comes to the first half first, device 1 to the second half.
local function crossed(half)
  local streams, x = {}, {}
  for i = 1, 2 * half do
    streams[i], x[i] = new_streams(), on_both(function(d) return mr.ones(1, {device = d}) end)
  end
  synchronize()
  for i = 1, 2 * half do mr.spin{ms = 50, stream = streams[i][i <= half and 2 or 1]} end
  for i = 1, 2 * half do reduce(mr.nccl.comms{0, 1}, x[i], streams[i]) end
  synchronize()
  return x[2 * half][1]:item()
end

T.equal(crossed(2), 2, "there is room for all")
mr.machine.chooser "timed" -- it alone counts multiprocessors
T.raises("deadlock", crossed, 40)
mr.reset()
T.equal(crossed(2), 2, "mr.reset() ends it")
