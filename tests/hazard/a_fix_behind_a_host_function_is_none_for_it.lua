-- The wait that "later" needs stands behind the host function, which needs one of its own.
-- expect: kind=write-after-write first=9 second=15 fix=n:wait_stream(o) place=before:15
-- expect: kind=read-after-write first=9 second=12 fix=n:wait_stream(o)
if require "hazard_pair" () then return end
local mr = require "millrace"
local x = mr.zeros(64, {device = "cpu", pinned = true, name = "x"})
mr.synchronize()
local n, o = mr.stream{name = "n"}, mr.stream{name = "o"}
mr.op{name = "first", writes = {x}, stream = o}
-- fix: n:wait_stream(o)
n:host_func(function()
  local _ = x:sum()
end)
-- fix: n:wait_stream(o)
mr.op{name = "later", writes = {x}, stream = n}
n:synchronize()
o:synchronize()
