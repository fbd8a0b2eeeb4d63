-- The all-reduce of a bucket runs on a stream of its own. The next batch writes the bucket, and nothing orders that.
-- options: --device virtual:2
-- expect: kind=write-after-write reason=no-path tensor=bucket first=17 second=21
if require "hazard_pair" () then return end
local mr = require "millrace"

local comms = mr.nccl.comms{0, 1}
local communicate, bucket, other = mr.stream{name = "communicate"}, mr.ones(64), mr.ones(64, {device = 1})
mr.synchronize(0)
mr.synchronize(1)
bucket:mul_(2)
communicate:wait_stream(mr.default_stream(0))
mr.nccl.group(function()
  -- Both ranks, in one group.
  local options = {stream = communicate}

  comms[1]:all_reduce(bucket, options)
  comms[2]:all_reduce(other)
end)
-- fix: mr.default_stream(0):wait_stream(communicate)
bucket:fill_(0)
mr.synchronize(0)
