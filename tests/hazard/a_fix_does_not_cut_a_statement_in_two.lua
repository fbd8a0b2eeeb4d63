-- The second access is in the middle of a statement: the fix is before that.
-- expect: kind=read-after-write reason=no-path first=9 second=12 fix=b:wait_stream(a) place=before:11
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x = mr.zeros(8)
mr.synchronize()
a:run(function() x:fill_(1) end)
-- fix: b:wait_stream(a)
b:run(function() return
  x:sum() end)
