-- R18: an event takes no time unless it is made with timing; `blocking` says how the host waits (it sleeps and does
-- not spin). Neither changes any order.
-- Guaranteed: CUDA Runtime API, cudaEventCreateWithFlags. An event of several processes takes no time.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R18"

local a, b = mr.stream(), mr.stream()
local x = mr.zeros(1)
mr.synchronize()

T.equal(mr.event().timing, false, "events are not timed by default")
T.raises("invalid-argument", mr.event, {interprocess = true, timing = true})

for _, flags in ipairs{ {}, {timing = true}, {blocking = true}, {timing = true, blocking = true} } do
  local e = mr.event(flags)
  T.equal(e.timing, flags.timing == true, "the event says whether it is timed")
  mr.spin{ms = 10, stream = a}
  e:record(a)
  T.check(not e:query(), "not complete yet")
  T.at_least(T.took(function() e:synchronize() end), 9, "the host waits for it")
  T.check(e:query(), "complete then")

  T.always((0 + 3) * 2, function()
    x:zero_()
    mr.synchronize()
    a:run(function() x:add_(3) end)
    b:wait_event(e:record(a))
    b:run(function() x:mul_(2) end)
    mr.synchronize()
    return x:item()
  end, "the order that the event makes")
end
