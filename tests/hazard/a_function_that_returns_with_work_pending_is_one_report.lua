-- Its tensors are collected together. The wait behind the last operation covers the others.
-- expect: kind=use-after-free reason=collected-while-pending first=17 second=collected fix=mr.default_stream():wait_stream(s) place=after:17
if require "hazard_pair" () then return end
local mr = require "millrace"

local s = mr.stream{name = "s"}
local function work()
  local x = mr.ones(8)
  local y = mr.ones(8)
  local all = mr.ones(4, 8)
  local row = all[2]
  s:wait_stream(mr.default_stream())
  s:run(function() -- three operations
    x:add_(1)
    y:mul_(2)
  end)
  s:run(function() row:add_(y) end)
  -- fix: mr.default_stream():wait_stream(s)
end
work()
collectgarbage() collectgarbage()
mr.ones(1)
