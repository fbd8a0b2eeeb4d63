-- R4: a non-blocking stream neither waits for the default stream nor holds it up.
-- Guaranteed: CUDA Runtime API, cudaStreamCreateWithFlags; CUDA Driver API, Stream synchronization behavior.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R4"

local zero = mr.default_stream()
local n = mr.stream{nonblocking = true}
local x = mr.zeros(1)
mr.synchronize()
T.check(n.nonblocking, "the stream says that it is non-blocking")
T.check(mr.stream().nonblocking, "a stream is non-blocking unless it is asked not to be")

local start = T.mark(n)
mr.spin{ms = 10, stream = n}
mr.spin{ms = 10, stream = zero}
local end_zero = T.mark(zero)
mr.spin{ms = 10, stream = n}
local end_n = T.mark(n)
mr.synchronize()
T.less(end_zero - start, 15, "the default stream does not wait for it")
T.less(end_n - start, 25, "it does not wait for the default stream")

T.either({1, 2}, function()
  n:run(function() x:fill_(1) end)
  zero:run(function() x:fill_(2) end)
  mr.synchronize()
  return x:item()
end, "first the non-blocking stream")

T.either({1, 2}, function()
  zero:run(function() x:fill_(1) end)
  n:run(function() x:fill_(2) end)
  mr.synchronize()
  return x:item()
end, "first the default stream")
