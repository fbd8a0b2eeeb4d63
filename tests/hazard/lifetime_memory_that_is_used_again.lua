-- The next tensor has the same memory, and the free that gave it was in order.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local a = mr.stream{name = "a"}
mr.synchronize()
for _ = 1, 4 do
  local x = mr.zeros(64, {stream = a})
  mr.op{name = "use", reads = {x}, stream = a}
  x:free()
end
