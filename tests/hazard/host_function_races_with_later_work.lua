-- A stream that was given work after the host function was submitted is not ordered behind it.
-- expect: kind=write-after-read first=12 second=15
-- proposed fix: none
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {device = "cpu", pinned = true, name = "x"})
mr.synchronize()
local n = mr.stream{name = "n"}
local o = mr.stream{name = "o"}
n:host_func(function()
  local _ = x:sum()
end)
-- fix: o:wait_stream(n)
mr.op{name = "produce", writes = {x}, stream = o}
n:synchronize()
o:synchronize()
