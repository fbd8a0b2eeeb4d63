-- `p` holds the stream, but is declared behind the method that the fix goes into.
-- expect: kind=write-after-write reason=no-path first=12 second=12 fix=mr.synchronize()_--_no_variable_in_scope_here_leads_to_p:_hand_over_`p.stream`_of_line_17 place=before:12
if require "hazard_pair" () then return end
local mr = require "millrace"

local Worker = {}
Worker.__index = Worker
local x, out = mr.ones(64), mr.zeros(64)
function Worker.new(name) return setmetatable({stream = mr.stream{name = name}}, Worker) end
function Worker:go()
  -- fix: self.stream:wait_stream(mr.default_stream()) mr.synchronize()
  self.stream:run(function() out:copy_(x) end)
end
mr.synchronize()
local p, q = Worker.new("p"), Worker.new("q")
p:go()
q:go()
