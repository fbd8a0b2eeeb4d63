-- b has waited for a: who waits for b comes after both.
-- expect: kind=use-after-free reason=collected-while-pending first=15 second=collected fix=mr.default_stream():wait_stream(b) place=after:15
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local function work()
  local x, y = mr.ones(8), mr.ones(8)
  local z = mr.ones(8)
  a:wait_stream(mr.default_stream())
  a:run(function()
    x:add_(1)
  end)
  b:wait_stream(a)
  b:run(function() z:add_(y) end)
  -- fix: mr.default_stream():wait_stream(b)
end
work()
collectgarbage() collectgarbage()
mr.ones(1)
