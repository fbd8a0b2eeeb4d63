-- The last use is in a return, and the variable is gone when it is reported: words have to do.
-- expect: kind=use-after-free reason=collected-while-pending first=12 second=collected place=none
-- proposed fix: none
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local function make()
  local t = a:run(function() return mr.ones(100) end)
  b:wait_stream(a)
  -- fix: t:record_stream(b)
  return b:run(function() return t:sum() end)
end
local _r = make()
collectgarbage() collectgarbage()
mr.zeros(1)
