-- Line 18 makes the tensor and calls the code that uses it: a line after it runs too late, also to record an event. The
-- helper is on one line and is called as the last action of another, so the stack does not show what called it.
-- expect: kind=read-after-write reason=no-path tensor=t first=18 second=9 fix=s:wait_stream(mr.default_stream()) place=before:13
if require "hazard_pair" () then return end
local mr = require "millrace"

local s = mr.stream{name = "s"}
mr.synchronize()
local function twice(t) return t * 2 end
local function forward(t)
  local a = twice(t)
  -- fix: s:wait_stream(mr.default_stream())
  local b = mr.with(s, function() return twice(t) end)
  s:synchronize()
  return a, b
end

local _, y = forward(mr.ones(8))
print(y:sum():item())
