-- A forgotten record_stream is found without a call of collectgarbage: garbage is collected before the host waits.
-- expect: kind=use-after-free reason=collected-while-pending first=11 second=collected
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
for _ = 1, 3 do
  local x = mr.zeros(64, {stream = a, name = "x"})
  b:wait_stream(a)
  mr.op{name = "use", reads = {x}, stream = b}
  -- fix: x:record_stream(b)
end
mr.synchronize()
mr.op{name = "more", stream = a}
