-- A view holds the memory: the tensor may go before it.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
local v
do
  local x = mr.zeros(64, {stream = a})
  v = x:narrow(1, 1, 8)
end
collectgarbage() collectgarbage()
b:wait_stream(a)
mr.op{name = "use", reads = {v}, stream = b}
b:synchronize()
