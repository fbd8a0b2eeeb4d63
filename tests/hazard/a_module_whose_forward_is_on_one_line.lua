-- Line 20 makes the input and calls the function whose line calls the module: a line after it runs too late.
-- expect: kind=read-after-write reason=no-path tensor=x first=20 second=9 fix=s:wait_stream(mr.default_stream()) place=before:15
if require "hazard_pair" () then return end
local mr = require "millrace"

local s = mr.stream{name = "s"}
local Net, y = mr.nn.Module.class("Net"), nil
function Net:init() self.l = mr.nn.Linear(8, 8) end
function Net:forward(x) return self.l(x):relu() end
local net = Net()
mr.synchronize()

local function eval(x)
  -- fix: s:wait_stream(mr.default_stream())
  mr.with(s, function() y = net(x) end)
  s:synchronize()
  return y
end

print(eval(mr.ones(4, 8)):sum():item() >= 0)
