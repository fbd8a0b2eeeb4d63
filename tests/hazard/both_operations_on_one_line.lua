-- A fix in front of the line would come before both: the line has to be split.
-- expect: kind=read-after-write reason=no-path first=10 second=10 fix=mr.default_stream():wait_stream(s) place=within:10
-- proposed fix: none
if require "hazard_pair" () then return end
local mr = require "millrace"

local s, x = mr.stream{name = "s"}, mr.zeros(8)
mr.synchronize()
-- fix: local y; s:run(function() y = x:sum() end) mr.default_stream():wait_stream(s) s = {run = function() return y end}
local _ = s:run(function() return x:sum() end):item()
