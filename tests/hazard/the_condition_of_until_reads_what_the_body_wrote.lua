-- The condition is the last statement of the body: the fix stands in front of it and runs at each turn.
-- expect: kind=read-after-write reason=no-path tensor=x fix=b:wait_stream(a) place=before:13
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x, n = mr.full({4}, 3), 0
mr.synchronize()
repeat
  n = n + 1
  a:run(function() x:sub_(1) end)
  -- fix: b:wait_stream(a)
until b:run(function() return x:min():item() end) <= 0 or n == 4
mr.synchronize()
