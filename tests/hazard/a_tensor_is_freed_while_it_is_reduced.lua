-- Memory goes back to the stream of its allocation, while the all-reduce on another stream still uses it.
-- options: --device virtual:2
-- expect: kind=use-after-free tensor=gone first=14 second=16
if require "hazard_pair" () then return end
local mr = require "millrace"

local comms = mr.nccl.comms{0, 1}
local communicate, gone, other = mr.stream{name = "communicate"}, mr.ones(64), mr.ones(64, {device = 1})
mr.synchronize(0)
mr.synchronize(1)
gone:mul_(2)
communicate:wait_stream(mr.default_stream(0))

mr.nccl.group(function() comms[1]:all_reduce(gone, {stream = communicate}) comms[2]:all_reduce(other) end)
-- fix: mr.default_stream(0):wait_stream(communicate)
gone:free()
mr.synchronize(0)
