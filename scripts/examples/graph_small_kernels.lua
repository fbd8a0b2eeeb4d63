-- A hundred small kernels: submitted one by one, the host is the bottleneck; as a graph, they are one call.
--
-- The times are those of the host's clock, which is virtual on the virtual GPU.
-- prints figures of the device
local mr = require "millrace"

local s = mr.stream{name = "s"}
local x = mr.zeros(256)
mr.synchronize()

local function small_kernels()
  for _ = 1, 100 do x:add_(1) end
end

-- Milliseconds of the host until the call returns.
local function call_ms(call)
  local began = mr.clock()
  call()
  local ms = mr.clock() - began
  s:synchronize()
  return ms
end

local one_by_one = call_ms(function() s:run(small_kernels) end)
print("after 100 kernels:  ", x[1]:item())

local g = mr.graph(small_kernels) -- captured, not carried out
print("after the capture:  ", x[1]:item(), g.node_count .. " nodes")

local launch = call_ms(function() g:launch(s) end)
print("after a launch:     ", x[1]:item())
print("the host is busy less than a tenth of the time:", launch < one_by_one / 10)
