-- Between two functions of one table no line is ever run; what calls them is a loop on one line.
-- expect: kind=read-after-write reason=no-path first=10 second=11 fix=b:wait_stream(a) place=within:15
-- proposed fix: none
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x = mr.zeros(8)
local stages = {
  function() a:run(function() x:fill_(1) end) end,
  function() b:run(function() x:add_(2) end) end,
}
mr.synchronize()
-- fix: stages[2] = stages[1]
for _, stage in ipairs(stages) do stage() end
