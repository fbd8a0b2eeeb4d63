-- R56: a stream holds a bounded number of launches; the next one holds the host until a place is free.
-- Guaranteed that there is a bound: CUDA Programming Guide, 5.2 (CUDA_SCALE_LAUNCH_QUEUES). Seen on an H200: the
-- 1,022nd launch behind a long kernel waits, 100,000 event records do not. Setting: launch_queue_depth.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R56"

local LONG = 500
local s, e = mr.stream(), mr.event()
local x = mr.zeros(1)
mr.synchronize()

-- How many launches behind a long kernel return at once.
local function launches_until_blocked()
  mr.spin{ms = LONG, stream = s}
  local count = 0
  s:run(function()
    while T.took(x.add_, x, 1) < LONG / 4 do
      count = count + 1
      if count > 100000 then break end
    end
  end)
  s:synchronize()
  return count
end

local depth = launches_until_blocked()
T.at_least(depth, 100, "many launches fit")
T.less(depth, 100000, "but not any number")
T.equal(x:item(), depth + 1, "the one that waited was done too")

mr.spin{ms = LONG, stream = s}
local records = T.took(function()
  for _ = 1, 20000 do e:record(s) end
end)
T.less(records, LONG / 2, "records take no place")
s:synchronize()

if mr.machine then
  T.equal(mr.machine.settings().launch_queue_depth, 1022, "the default")
  T.equal(depth + 1, 1022, "with the long kernel: the next one waits")
  mr.machine.settings{launch_queue_depth = 8}
  T.equal(launches_until_blocked() + 1, 8, "as it is set")
end
