-- Memory is allocated in the order of a stream; another one must come after that (R28).
-- expect: kind=use-before-alloc reason=alloc-not-ordered first=8 second=10
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
local x = mr.empty(64, {stream = a, name = "x"})
-- fix: b:wait_stream(a)
mr.op{name = "use", writes = {x}, stream = b}
