-- R20: cudaMemcpy from pageable memory returns when the source has been staged: it may be changed then, but the
-- copy on the device may still be under way. It is work of the default stream.
-- Guaranteed: CUDA Runtime API, API synchronization behavior (Memcpy). Seen on an H200: it first waits for busy
-- blocking streams, at every size, and not for non-blocking ones.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R20"

local a, n = mr.stream{nonblocking = false}, mr.stream{nonblocking = true}
local x, y = mr.zeros(1), mr.zeros(1)
local source = mr.zeros(1, {device = "cpu"})
mr.synchronize()

T.always(1, function()
  source[1] = 1
  mr.memcpy(x, source)
  source[1] = 2
  mr.synchronize()
  return x:item()
end, "the source as it was at the call")

local function copy_then_read(stream)
  x:zero_()
  source[1] = 1
  mr.synchronize()
  mr.memcpy(x, source)
  stream:run(function() y:copy_(x) end)
  mr.synchronize()
  return y:item()
end
T.always(1, function() return copy_then_read(a) end, "a blocking stream is behind the copy")
T.either({0, 1}, function() return copy_then_read(n) end, "a non-blocking stream is not")

local large = mr.zeros(4 << 20, {device = "cpu"})
local target = mr.empty(4 << 20)
mr.synchronize()
for from, to in pairs{ [source] = x, [large] = target } do
  mr.spin{ms = 20, stream = a}
  T.at_least(T.took(mr.memcpy, to, from), 19, "it waits for a busy blocking stream")
  mr.spin{ms = 40, stream = n}
  T.less(T.took(mr.memcpy, to, from), 20, "it does not wait for a non-blocking one")
  mr.synchronize()
end
