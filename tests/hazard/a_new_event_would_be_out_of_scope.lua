-- A local event of the inner block could not be waited for outside of it, so the fix declares one in front of the block.
-- expect: kind=read-after-write reason=no-path first=10 second=15 fix=local_done_=_mr.event()_done:record(a)_b:wait_event(done)
if require "hazard_pair" () then return end
local mr = require "millrace"

local x, y = mr.zeros(64, {name = "x"}), mr.zeros(64, {name = "y"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
do
  mr.op{name = "produce", writes = {x}, stream = a}
  mr.op{name = "unrelated", writes = {y}, stream = a}
end

-- fix: b:wait_stream(a)
mr.op{name = "consume", reads = {x}, stream = b}
