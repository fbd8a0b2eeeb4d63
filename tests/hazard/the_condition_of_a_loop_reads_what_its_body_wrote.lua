-- In front of the loop a wait would come too early, so the fix is after the work submitted in its body.
-- expect: kind=read-after-write reason=host-did-not-wait tensor=p fix=a:synchronize() place=after:13
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, p = mr.stream{name = "a"}, mr.zeros(4, {name = "p", pinned = true})
local d, n = mr.zeros(4), 0
mr.synchronize()
while p[1]:item() < 3 and n < 4 do
  n = n + 1
  mr.with(a, function()
    d:add_(1)
    p:copy_(d, {non_blocking = true}) end)
  -- fix: a:synchronize()
end
