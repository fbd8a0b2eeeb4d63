-- The stream's name looks like a variable and is none where the fix goes.
-- expect: kind=read-after-write reason=no-path first_stream=worker first=10 second=15 fix=mr.synchronize()_--_no_variable_in_scope_here_leads_to_worker
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(100)
mr.synchronize()
do
  local a = mr.stream{name = "worker"}
  a:run(function() x:fill_(1) end)
  -- fix: a:synchronize()
end
local b = mr.stream{name = "b"}

b:run(function() x:mul_(2) end)
