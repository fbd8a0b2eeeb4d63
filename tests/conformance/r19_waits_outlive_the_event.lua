-- R19: closing an event returns at once; waits that were submitted before stay valid. Later use is an error.
-- Guaranteed: CUDA Runtime API, cudaEventDestroy. (Later use is undefined there; here it is always caught.)
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R19"

local a, b = mr.stream(), mr.stream()
local x = mr.zeros(1)
mr.synchronize()

local e = mr.event()
local start = T.mark(a)
mr.spin{ms = 10, stream = a}
e:record(a)
b:wait_event(e)
T.less(T.took(function() e:close() end), 5, "closing waits for nothing")
mr.spin{ms = 1, stream = b}
local end_b = T.mark(b)
mr.synchronize()
T.at_least(end_b - start, 10.9, "b still waits")

T.raises("invalid-handle", function() e:record(a) end)
T.raises("invalid-handle", function() e:query() end)
T.raises("invalid-handle", function() e:synchronize() end)
T.raises("invalid-handle", function() b:wait_event(e) end)
e:close() -- again: nothing

T.always((0 + 3) * 2, function()
  x:zero_()
  mr.synchronize()
  a:run(function() x:add_(3) end)
  do
    local done <close> = a:record_event()
    b:wait_event(done)
  end
  b:run(function() x:mul_(2) end)
  mr.synchronize()
  return x:item()
end, "a wait for an event that is gone")
