-- R24: cudaMemset holds the host only for pinned host memory; cudaMemsetAsync never does. The former is work of
-- the default stream.
-- Guaranteed: CUDA Runtime API, API synchronization behavior (Memset).
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R24"

local zero = mr.default_stream()
local a, n = mr.stream{nonblocking = false}, mr.stream{nonblocking = true}
local x, y = mr.zeros(1, {dtype = "u8"}), mr.zeros(1, {dtype = "u8"})
local pinned = mr.zeros(1, {dtype = "u8", pinned = true})
mr.synchronize()

mr.spin{ms = 10, stream = a}
T.less(T.took(mr.memset, x, 1), 5, "device memory: the host does not wait")
T.check(not zero:query(), "the memset waits for a, as all work of the default stream does")
mr.synchronize()
T.equal(x:item(), 1, "every byte is set")

mr.spin{ms = 10, stream = a}
T.at_least(T.took(mr.memset, pinned, 2), 9, "pinned memory: the host waits")
T.equal(pinned:item(), 2, "it is set then")

mr.spin{ms = 10, stream = n}
T.less(T.took(mr.memset_async, x, 3, {stream = n}), 5, "device memory, async")
T.less(T.took(mr.memset_async, pinned, 4, {stream = n}), 5, "pinned memory, async")
n:synchronize()
T.equal(x:item() + pinned:item(), 3 + 4, "both are set after a wait")

local function set_then_read(stream)
  x:zero_()
  mr.synchronize()
  mr.memset(x, 9)
  stream:run(function() y:copy_(x) end)
  mr.synchronize()
  return y:item()
end
T.always(9, function() return set_then_read(a) end, "a blocking stream is behind the memset")
T.either({0, 9}, function() return set_then_read(n) end, "a non-blocking stream is not")
