-- R65: the result of a collective may be its input: the same tensor, of all_gather and reduce_scatter the rank's own
-- part of the larger one. Other overlaps are not allowed; here they are errors.
-- options: --device virtual:2
-- Guaranteed: NCCL user guide, in-place operations.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R65"
if mr.device_count() < 2 then T.skip("needs two devices") end

local comms = mr.nccl.comms{0, 1}
local function each(fn) mr.nccl.group(function() for k = 1, 2 do fn(comms[k], k) end end) end
local x, part = {}, {}
for k = 1, 2 do
  x[k] = mr.full(2, k, {device = k - 1})
  part[k] = x[k]:narrow(1, k, 1)
end

each(function(c, k) c:all_gather(x[k], part[k]) end)
T.equal(x[1][2]:item(), 2, "all_gather of each rank's own part")
each(function(c, k) c:reduce_scatter(part[k], x[k]) end)
T.equal(part[1]:item(), 2, "reduce_scatter, rank 0")
T.equal(part[2]:item(), 4, "reduce_scatter, rank 1")
each(function(c, k) c:all_reduce(part[k]) end)
T.equal(part[1]:item(), 6, "all_reduce")
T.raises("invalid-argument", comms[2].all_gather, comms[2], x[2], x[2]:narrow(1, 1, 1))
T.raises("invalid-argument", comms[1].reduce_scatter, comms[1], x[1]:narrow(1, 2, 1), x[1])
