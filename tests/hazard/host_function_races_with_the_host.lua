-- The host goes on while a host function is pending.
-- expect: kind=write-after-read first=11 second=14
-- proposed fix: none
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {device = "cpu", pinned = true, name = "x"})
mr.synchronize()
local n = mr.stream{name = "n"}
n:host_func(function()
  local _ = x:sum()
end)
-- fix: n:synchronize()
x:fill_(1)
n:synchronize()
