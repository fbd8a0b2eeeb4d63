-- The second launch writes what another stream still reads. The launch has to wait, and not the captured line.
-- expect: kind=write-after-read tensor=y first=12 second=8 fix=s:wait_stream(z) place=before:14
if require "hazard_pair" () then return end
local mr = require "millrace"

local s, z = mr.stream{name = "s"}, mr.stream{name = "z"}
local x = mr.ones(16)
local g, y = mr.graph(function() return x + 1 end)
mr.synchronize()
g:launch(s)
z:wait_stream(s)
local sum = z:run(function() return y:sum() end)
-- fix: s:wait_stream(z)
g:launch(s)
print(sum.numel)
