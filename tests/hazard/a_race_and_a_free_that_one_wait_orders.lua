-- The caller uses the result too early, and the function's tensors are freed too early: one wait is missing.
-- expect: kind=read-after-write tensor=y first=14 second=19 fix=mr.default_stream():wait_stream(s)
if require "hazard_pair" () then return end
local mr = require "millrace"

local s = mr.stream{name = "s"}
local x, y, kept = mr.ones(8), mr.zeros(8), {}
local function work()
  local h = x * 2
  local k = h + 1 kept[1], kept[2] = h, k
  s:wait_stream(mr.default_stream())
  s:run(function()
    h:add_(k)
    y:add_(h)
  end)
end
work()
-- fix: mr.default_stream():wait_stream(s)
local z = y * 3
table.remove(kept) table.remove(kept) collectgarbage() collectgarbage()
z:add_(1)
