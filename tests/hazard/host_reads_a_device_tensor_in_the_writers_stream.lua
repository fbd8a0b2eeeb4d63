-- item() in the stream of the writer is in order, and waits.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(1, {name = "x"})
mr.synchronize()
local n = mr.stream{name = "n"}
mr.op{name = "produce", writes = {x}, stream = n}
mr.with(n, function() return x:item() end)
