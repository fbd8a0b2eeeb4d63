-- The statement runs again, but other work came between: a line after it runs before the free.
-- expect: kind=use-after-free reason=collected-while-pending first=13 second=collected fix=s:wait_stream(mr.default_stream()) place=after:13
if require "hazard_pair" () then return end
local mr = require "millrace"

local s = mr.stream{name = "s"}
local x, sum = mr.ones(8), mr.zeros(8)
mr.synchronize()
for _ = 1, 2 do
  mr.op{name = "more", stream = s}
  local y = s:run(function() return x * 2 end)
  s:synchronize()
  sum:add_(y)
  -- fix: s:wait_stream(mr.default_stream())
  y = nil -- luacheck: ignore y
  collectgarbage() collectgarbage()
end
