-- A blocking stream may use memory that the default stream allocates (R3), and so may one that waits for that. Freeing
-- it there comes after both.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, c = mr.stream{name = "a", nonblocking = false}, mr.stream{name = "c"}
local x = mr.empty(64, {name = "x"})
mr.op{name = "fill", writes = {x}, stream = a}
c:wait_stream(a)
mr.op{name = "use", reads = {x}, stream = c}
a:wait_stream(c)
x:free()
