-- R41: captured work takes no place in the order of its stream. What comes after the end of the capture follows what
-- came before its beginning.
-- Guaranteed: CUDA Runtime API, cudaStreamBeginCapture.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R41"

local a = mr.stream{name = "a"}
local x = mr.zeros(4)
mr.synchronize()
local before, after = mr.event{timing = true}, mr.event{timing = true}

local g
T.always(1, function()
  x:zero_()
  mr.synchronize()
  a:run(function() mr.spin{ms = 10}; x:fill_(1) end)
  mr.graph.begin(a)
  a:run(function() mr.spin{ms = 50}; x:fill_(5) end)
  g = mr.graph.finish(a)
  local y = a:run(function() return x:clone() end)
  a:synchronize()
  return y[1]:item()
end, "behind the work of before, and not behind what was captured")

a:record_event(before)
mr.graph.begin(a)
a:run(function() mr.spin{ms = 50} end)
mr.graph.finish(a)
a:record_event(after)
a:synchronize()
T.less(after - before, 20, "the captured delay takes no time")

-- An event recorded before the capture is not of it, and one that was recorded in it orders nothing outside.
local e = a:record_event()
mr.graph.begin(a)
T.raises("stream-capture-isolation", function() a:wait_event(e) end)
T.raises("stream-capture-invalidated", mr.graph.finish, a)
g:launch(a)
a:synchronize()
