-- The function that did the first operation has ended by a tail call, so only the text tells where it did that.
-- expect: kind=read-after-write reason=no-path first=11 second=9 fix=b:wait_stream(a) place=after:11
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b, x = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.zeros(8)
mr.synchronize()

local function consume() b:run(function() x:mul_(2) end) end
local function both()
  a:run(function() x:add_(1) end)
  -- fix: b:wait_stream(a)
  return consume()
end
both()
