-- The end of a <close> variable frees like t:free().
-- expect: kind=use-after-free first=11
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
do
  local x <close> = mr.zeros(64, {stream = a, name = "x"})
  b:wait_stream(a)
  mr.op{name = "use", reads = {x}, stream = b}
  -- fix: x:record_stream(b)
end
mr.op{name = "more", stream = a}
