-- In front of the line a fix would come before both: the line has to be split.
-- expect: kind=read-after-write reason=no-path first=12 second=12 fix=b:wait_stream(a) place=within:12
-- expect: kind=read-after-write reason=no-path first=16 second=16 fix=b:wait_stream(a) place=within:16
-- proposed fix: none
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x = mr.zeros(8)
mr.synchronize()
-- fix: b = a
a:run(function() x:fill_(1) end) b:run(function() x:add_(1) end)
mr.synchronize()
for _ = 1, 1 do
  -- fix: b = a
  mr.with(a, function() x:add_(1) end); mr.with(b, function() x:add_(1) end)
end
