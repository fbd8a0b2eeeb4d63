-- A wait in front of the first of the two orders both.
-- expect: kind=write-after-read first=11 second=14 fix=o:wait_stream(n)
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
mr.op{name = "first", writes = {x}, stream = o}
mr.op{name = "second", writes = {x}, stream = o}
n:synchronize()
o:synchronize()
