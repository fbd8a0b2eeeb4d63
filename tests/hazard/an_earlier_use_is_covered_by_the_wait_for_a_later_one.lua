-- Lua collects the two at different times. The wait behind the later use covers both.
-- expect: kind=use-after-free reason=collected-while-pending first=13 second=collected place=after:13
if require "hazard_pair" () then return end
local mr = require "millrace"

local s = mr.stream{name = "s"}
local x = mr.ones(8)
do
  local y = mr.ones(8)
  s:wait_stream(mr.default_stream())
  mr.op{name = "first", reads = {x}, stream = s}
  -- the two are on one stream
  mr.op{name = "second", reads = {y}, stream = s}
  -- fix: mr.default_stream():wait_stream(s)
end
collectgarbage() collectgarbage()
local more = mr.ones(1)
x = nil
collectgarbage() collectgarbage()
more:add_(1)
