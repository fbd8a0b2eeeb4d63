-- The line that adds calls the function that multiplies: a line in front of it would come before both.
-- expect: kind=read-after-write reason=no-path first=8 second=11 fix=mr.default_stream():wait_stream(b) place=within:11
-- proposed fix: none
if require "hazard_pair" () then return end
local mr = require "millrace"

local b, x = mr.stream{name = "b"}, mr.zeros(8)
local function twice(t) return b:run(function() return t * 2 end) end
mr.synchronize()
-- fix: b = mr.default_stream()
local _ = x + twice(x)
