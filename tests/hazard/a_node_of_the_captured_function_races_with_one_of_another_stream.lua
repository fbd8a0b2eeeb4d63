-- The stream on which mr.graph captures a function has no variable: the fix gives it one.
-- expect: kind=read-after-write reason=no-path tensor=x first=15 second=17
-- proposed fix: none
if require "hazard_pair" () then return end
local mr = require "millrace"

local b = mr.stream{name = "b"}
local x = mr.ones(16, {name = "x"})
mr.synchronize()
mr.graph(function()
  -- fix: local s = mr.current_stream()
  local origin = mr.current_stream()
  b:wait_stream(origin)
  mr.op{name = "first"}
  x:add_(1)
  -- fix: b:wait_stream(s)
  b:run(function() x:mul_(2) end)
  origin:wait_stream(b)
end):launch()
