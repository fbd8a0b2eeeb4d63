-- The first collected tensor is reported first. The wait after its use does not cover later work of the stream.
-- expect: kind=use-after-free reason=collected-while-pending first=11 second=collected place=after:11
-- expect: kind=use-after-free reason=collected-while-pending first=16 second=collected place=after:16
if require "hazard_pair" () then return end
local mr = require "millrace"

local s = mr.stream{name = "s"}
do
  local x = mr.ones(8)
  s:wait_stream(mr.default_stream())
  mr.op{name = "first", reads = {x}, stream = s}
  -- fix: mr.default_stream():wait_stream(s)
end
collectgarbage() collectgarbage()
local y = mr.ones(8); s:wait_stream(mr.default_stream())
mr.op{name = "second", reads = {y}, stream = s}
-- fix: mr.default_stream():wait_stream(s)
y = nil
collectgarbage() collectgarbage()
mr.ones(1)
