-- R61: a collective is submitted as work of each rank's stream. It begins on a rank after the earlier work of that
-- stream. It ends on no rank before all have begun whose data it needs. The host does not wait for it.
-- options: --device virtual:2
-- Guaranteed: NCCL user guide, CUDA stream semantics.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R61"
if mr.device_count() < 2 then T.skip("needs two devices") end

local comms = mr.nccl.comms{0, 1}
local s = { mr.stream{device = 0}, mr.stream{device = 1} }
local x = { mr.zeros(1, {device = 0}), mr.zeros(1, {device = 1}) }
mr.synchronize(0)
mr.synchronize(1)

local function reduce()
  mr.nccl.group(function() for k = 1, 2 do comms[k]:all_reduce(x[k], {stream = s[k]}) end end)
end

-- On real GPUs the first call connects them, which takes the host tens of milliseconds.
reduce()
mr.synchronize(0)
mr.synchronize(1)

-- Rank 1 is late: rank 0 waits for it, the host for nobody.
mr.spin{ms = 20, stream = s[2]}
T.less(T.took(reduce), 10, "the host does not wait")
T.at_least(T.took(function() s[1]:synchronize() end), 10, "rank 0 waits until rank 1 has begun")
mr.synchronize(1)

-- Work of the streams before and behind it.
T.always(3 + 4, function()
  for k = 1, 2 do s[k]:run(function() x[k]:fill_(k + 2) end) end
  reduce()
  for k = 1, 2 do s[k]:run(function() x[k]:mul_(1) end) end
  s[1]:synchronize()
  s[2]:synchronize()
  return x[1]:item()
end, "the work before it, of both ranks")
