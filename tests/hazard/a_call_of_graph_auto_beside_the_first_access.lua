-- The function on several lines is called on the line of the first access, and both do the same operation.
-- expect: kind=read-after-write reason=no-path tensor=x first=13 second=9 fix=mr.default_stream():wait_stream(a) place=within:13
-- proposed fix: none
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, x = mr.stream{name = "a"}, mr.zeros(8, {name = "x"})
local step = mr.graph.auto(function()
  x:add_(1)
end)
mr.synchronize()
-- fix: a = mr.default_stream()
a:run(function() x:add_(1) end) step()
