-- Two streams, and the host waiting for both.
--
-- Work in one stream runs in the order in which it was given. Work in two streams has no order
-- between them, and overlaps when the device has room. mr.synchronize() is torch.cuda.synchronize(),
-- cudaDeviceSynchronize(): the host waits for every stream of the device.
local mr = require "millrace"

local s1, s2 = mr.stream{name = "s1"}, mr.stream{name = "s2"}

local function program(n)
  local x, y = mr.zeros(n), mr.zeros(n)
  mr.synchronize() -- x and y are made on the default stream, which s1 and s2 know nothing of

  local began = mr.clock()
  mr.with(s1, function() -- with torch.cuda.stream(s1):
    mr.spin{ms = 5}      -- a long kernel
    x:add_(1)            -- in one stream: first this,
    x:mul_(3)            -- then this
  end)
  mr.with(s2, function()
    mr.spin{ms = 5}
    y:add_(2)
  end)
  local submitted, busy = mr.clock() - began, not s1:query() and not s2:query()

  mr.synchronize() -- from here on the host may look at everything
  local elapsed = mr.clock() - began
  return x:sum():item() + y:sum():item(), 5 * n, submitted, busy, elapsed
end

local sum, right, submitted, busy, elapsed = program(1000)
print("the host was free again at once:   " .. tostring(submitted < 5))
print("and both streams were still busy:  " .. tostring(busy))
print("5 ms and 5 ms took less than 8 ms: " .. tostring(elapsed < 8))
print(("the sum of x and y is %g, right is %g"):format(sum, right))

return { fixed = program } -- for the tests
