-- The wait was given to the current stream, which was not the one that reads.
-- expect: kind=read-after-write reason=wait-on-wrong-stream first=9 second=14
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
mr.op{name = "produce", writes = {x}, stream = a}
local e = a:record_event()
e:wait()
mr.with(b, function()
  -- fix: e:wait()
  mr.op{name = "consume", reads = {x}}
end)
