-- Accesses of a host function belong to its stream: another stream is not ordered with it (R46).
-- expect: kind=read-after-write first=11 second=14
-- proposed fix: none
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {device = "cpu", pinned = true, name = "x"})
mr.synchronize()
local n = mr.stream{name = "n"}
local o = mr.stream{name = "o"}
mr.op{name = "produce", writes = {x}, stream = o}
-- fix: n:wait_stream(o)
n:host_func(function()
  local _ = x:sum()
end)
n:synchronize()
