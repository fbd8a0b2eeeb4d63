-- The function `both` did the first operation and has ended when the second runs. So a line in front of line 14 would
-- come before both operations. A line after the function's own line would not run at its call.
-- expect: kind=read-after-write reason=no-path first=11 second=10 place=none
-- proposed fix: none
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b, x = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.zeros(8)
mr.synchronize()
local function consume() b:run(function() x:mul_(2) end) end
local function both() a:run(function() x:add_(1) end) return consume() end

-- fix: b = a
both()
