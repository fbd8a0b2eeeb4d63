-- R21: cudaMemcpy between device tensors does not hold the host: it is work of the default stream like any.
-- Guaranteed: CUDA Runtime API, API synchronization behavior (Memcpy).
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R21"

local zero = mr.default_stream()
local a, n = mr.stream{nonblocking = false}, mr.stream{nonblocking = true}
local x, y, z = mr.zeros(1), mr.zeros(1), mr.zeros(1)
mr.synchronize()

mr.spin{ms = 10, stream = a}
T.less(T.took(mr.memcpy, y, x), 5, "the host does not wait")
T.check(not zero:query(), "the copy waits for a, as all work of the default stream does")
T.at_least(T.took(function() zero:synchronize() end), 9, "it is done after a")

local function copy_then_read(stream)
  x:fill_(1)
  y:zero_()
  mr.synchronize()
  mr.memcpy(y, x)
  stream:run(function() z:copy_(y) end)
  mr.synchronize()
  return z:item()
end
T.always(1, function() return copy_then_read(a) end, "a blocking stream is behind the copy")
T.either({0, 1}, function() return copy_then_read(n) end, "a non-blocking stream is not")

-- To the host, pinned or not, it waits until the values are there.
for _, host in ipairs{ mr.zeros(1, {device = "cpu"}), mr.zeros(1, {pinned = true}) } do
  T.always(5, function()
    host[1] = 0
    a:run(function() x:fill_(5) end)
    mr.memcpy(host, x)
    return host:item()
  end, "cudaMemcpy to the host")
end
