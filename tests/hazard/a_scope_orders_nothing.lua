-- Entering and leaving mr.with waits for nothing.
-- expect: kind=read-after-write reason=no-path first=10 second=14
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
mr.with(a, function()
  mr.op{name = "produce", writes = {x}}
end)
mr.with(b, function()
  -- fix: b:wait_stream(a)
  mr.op{name = "consume", reads = {x}}
end)
