-- A copy between two memories of the host is done when its call returns, but a graph's launch waits for none of its nodes.
-- expect: kind=write-after-write tensor=q first=8 second=12 fix=mr.default_stream():synchronize() place=before:12
if require "hazard_pair" () then return end
local mr = require "millrace"

local p, q = mr.ones(16, {pinned = true}), mr.zeros(16, {pinned = true})
local g = mr.graph.capture(function()
  mr.memcpy_async(q, p, {stream = mr.current_stream()})
end):instantiate()
g:launch()
-- fix: mr.default_stream():synchronize()
q:fill_(2)
mr.synchronize()
print(q[1]:item())
