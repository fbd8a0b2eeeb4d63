-- In front of the loop a wait would order the first turn only, so the fix is in the function that the body calls.
-- expect: kind=read-after-write reason=no-path tensor=x fix=b:wait_stream(a) place=after:10
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x, n = mr.full({4}, 3), 0
mr.synchronize()
local function step()
  a:run(function() x:sub_(1) end)
  -- fix: b:wait_stream(a)
end
step()
while b:run(function() return x:min():item() end) > 0 and n < 4 do
  n = n + 1
  step()
end
mr.synchronize()
