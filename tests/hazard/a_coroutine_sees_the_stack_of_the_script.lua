-- A variable that only the main chunk's stack holds: not found, and not said to be absent.
-- expect: kind=read-after-write fix=mr.synchronize()_--_no_variable_in_scope_here_leads_to_a place=before:12
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x = mr.zeros(8)
mr.synchronize()
a:run(function() x:add_(1) end)
local go = coroutine.wrap(function()
  -- fix: mr.synchronize()
  b:run(function() x:add_(1) end)
end)
go()
