-- The fix of the first use orders all later uses of memory that was allocated on that stream.
-- expect: kind=use-before-alloc reason=alloc-not-ordered tensor=x first=7 second=10 first_stream=default second_stream=s
if require "hazard_pair" () then return end
local mr = require "millrace"
local s = mr.stream { name = "s" }
local h = mr.ones(4, { pinned = true })
local x, y = mr.empty(4), mr.empty(4)
s:run(function()
  -- fix: s:wait_stream(mr.default_stream())
  x:copy_(h, { non_blocking = true })
  y:copy_(x)
  y:mul_(2)
end)
s:synchronize()
