-- The default stream reads x too early and then frees it too early: one wait is missing.
-- expect: kind=read-after-write tensor=x first=10 second=12 fix=mr.default_stream():wait_stream(s)
if require "hazard_pair" () then return end
local mr = require "millrace"

local s = mr.stream{name = "s"}
local x = mr.ones(8)
mr.synchronize()
local y = mr.zeros(8)
s:run(function() x:add_(1) end)
-- fix: mr.default_stream():wait_stream(s)
y:add_(x)
x:free()
