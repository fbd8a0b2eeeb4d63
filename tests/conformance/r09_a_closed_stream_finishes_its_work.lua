-- R9: closing a stream returns at once; its pending work completes all the same. Later use is an error.
-- Guaranteed: CUDA Runtime API, cudaStreamDestroy; CUDA Programming Guide, 2.3.2.1. (Later use is undefined
-- there; here it is always caught.)
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R9"

local x = mr.zeros(1)
mr.synchronize()

local s = mr.stream()
mr.spin{ms = 10, stream = s}
s:run(function() x:fill_(1) end)
local e = s:record_event()
T.less(T.took(function() s:close() end), 5, "closing waits for nothing")
T.check(not e:query(), "the work goes on")
T.at_least(T.took(mr.synchronize), 9, "the device is busy with it")
T.equal(x:item(), 1, "it has completed")

T.raises("invalid-handle", function() s:synchronize() end)
T.raises("invalid-handle", function() s:query() end)
T.raises("invalid-handle", function() mr.spin{ms = 1, stream = s} end)
T.raises("invalid-handle", function() s:record_event() end)
T.raises("invalid-handle", function() mr.stream():wait_stream(s) end)
s:close() -- again: nothing

T.always(2, function()
  local t <close> = mr.stream()
  t:run(function() x:fill_(1); x:mul_(2) end)
  t:close()
  mr.synchronize()
  return x:item()
end, "work of a closed stream")
