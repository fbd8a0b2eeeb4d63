-- item() copies in the current stream, which has not waited for the writer.
-- expect: kind=read-after-write reason=no-path first=9 second=11
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(1, {name = "x"})
mr.synchronize()
local n = mr.stream{name = "n"}
mr.op{name = "produce", writes = {x}, stream = n}
-- fix: n:synchronize()
local _ = x:item()
