-- The default streams compared: legacy, per-thread, and what they do to other streams.
--
-- The legacy default stream is a barrier: its work waits for all earlier work of the *blocking* streams
-- of the device, and their later work waits for it. Streams made with nonblocking=true (the default
-- here and in PyTorch; in CUDA one asks for it) take no part. The per-thread default stream is an
-- ordinary blocking stream: no barrier of its own, but the legacy stream's barrier holds for it.
-- not checked: one of its programs races
local mr = require "millrace"

local legacy, per_thread = mr.default_stream(), mr.per_thread_stream()
local blocking = mr.stream{name = "blocking", nonblocking = false}
local another = mr.stream{name = "another", nonblocking = false}
local free = mr.stream{name = "non-blocking"}

local function order(a, b)
  mr.synchronize()
  local began = mr.clock()
  mr.spin{ms = 10, stream = a}
  mr.spin{ms = 10, stream = b}
  mr.synchronize()
  return mr.clock() - began > 15 and "one after the other" or "side by side"
end

print("10 ms of work in each of two streams:")
print("  legacy, blocking          " .. order(legacy, blocking))
print("  blocking, legacy          " .. order(blocking, legacy))
print("  legacy, non-blocking      " .. order(legacy, free))
print("  per-thread, blocking      " .. order(per_thread, blocking))
print("  per-thread, legacy        " .. order(per_thread, legacy))
print("  blocking, another         " .. order(blocking, another))

-- The barrier orders values as well, with no event in sight; where it does not reach, there is a race.
local function fill_then_sum(n, reader)
  local x = mr.zeros(n)
  mr.synchronize()
  mr.spin{ms = 1}
  x:fill_(1) -- on the legacy default stream
  local sum = mr.with(reader, function() return x:sum() end)
  mr.synchronize()
  return sum:item(), n
end

print("filled on the legacy stream, summed on another one:")
print(("  blocking                  %g, right is %g"):format(fill_then_sum(1000, blocking)))
print(("  non-blocking              %g, right is %g"):format(fill_then_sum(1000, free)))

return { -- for the tests
  fixed = function(n) return fill_then_sum(n, blocking) end,
  racy = function(n) return fill_then_sum(n, free) end,
}
