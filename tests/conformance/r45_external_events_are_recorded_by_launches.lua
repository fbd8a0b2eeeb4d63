-- R45: a record or a wait with external=true in a capture is a node: each launch records the event, or waits for it.
-- Guaranteed: CUDA Runtime API, cudaEventRecordWithFlags, cudaStreamWaitEvent.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R45"

local s, t = mr.stream{name = "s"}, mr.stream{name = "t"}
local x = mr.zeros(4)
local middle = mr.event{name = "middle"}
mr.synchronize()
local g = mr.graph(function()
  mr.spin{ms = 5}
  x:fill_(1)
  middle:record(nil, {external = true})
  mr.spin{ms = 20}
end)
T.equal(g:nodes()[3].kind, "record", "a node")
T.check(middle:query(), "it has not been recorded yet")
g:launch(s)
T.check(not middle:query(), "the launch has recorded it, and it is not complete")
local ms = T.took(function() middle:synchronize() end)
T.less(ms, 20, "it is complete before the graph is")
T.equal(t:run(function() return x:sum():item() end), 4.0, "it orders")
s:synchronize()

-- A launch waits for the record that it finds.
local ready = mr.event{name = "ready"}
local w = mr.graph(function()
  mr.current_stream():wait_event(ready, {external = true})
  x:add_(1)
end)
T.always(11, function()
  t:run(function() mr.spin{ms = 5}; x:fill_(10) end)
  t:record_event(ready)
  w:launch(s)
  s:synchronize()
  return x[1]:item()
end, "after what was recorded before the launch")
