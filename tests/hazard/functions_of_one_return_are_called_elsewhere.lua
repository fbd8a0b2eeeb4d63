-- Two functions on one line each, of one statement: the fix is where the second is called.
-- expect: kind=read-after-write reason=no-path first=10 second=11 fix=b:wait_stream(a) place=before:17
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x = mr.zeros(8)
local function make()
  local own = b
  return function() a:run(function() x:add_(1) end) end,
         function() own:run(function() x:add_(2) end) end
end
local first, second = make()
mr.synchronize()
first()
-- fix: b:wait_stream(a)
second()
