-- The producer has been given other work since: an event of its own holds the consumer up for less.
-- expect: kind=read-after-write reason=no-path first=9 second=14 fix=local_e_=_a:record_event()_b:wait_event(e)
if require "hazard_pair" () then return end
local mr = require "millrace"

local x, y = mr.zeros(64, {name = "x"}), mr.zeros(64, {name = "y"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
mr.op{name = "produce", writes = {x}, stream = a}
-- fix: local written = a:record_event()
mr.op{name = "unrelated", writes = {y}, stream = a}
for _ = 1, 1 do
  -- fix: b:wait_event(written)
  mr.op{name = "consume", reads = {x}, stream = b}
end
