-- R10: a query tells without waiting; a stream's synchronize waits for what it was given so far, and the device's for
-- all of its streams. The host has seen all work that is done. Guaranteed: CUDA Runtime API, cudaStreamQuery,
-- cudaStreamSynchronize, cudaDeviceSynchronize; CUDA Programming Guide, 2.3.2.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R10"

local s, other = mr.stream(), mr.stream()
local x, result = mr.zeros(1), mr.zeros(1, {pinned = true})
mr.synchronize()

T.check(s:query(), "a stream without work is done")
mr.spin{ms = 10, stream = s}
mr.spin{ms = 40, stream = other}
local done
T.less(T.took(function() done = s:query() end), 5, "a query does not wait")
T.check(not done, "there is work")
T.at_least(T.took(function() s:synchronize() end), 9, "synchronize waits for the stream")
T.check(s:query(), "it is done then")
T.check(not other:query(), "another stream was not waited for")
T.at_least(T.took(mr.synchronize), 25, "the device's synchronize waits for all streams")
T.check(other:query(), "the other stream is done then")

-- Polling comes to an end, and then the values are there.
T.always(1, function()
  result[1] = 0
  s:run(function() x:fill_(1) end)
  mr.memcpy_async(result, x, {stream = s})
  repeat until s:query()
  return result:item()
end, "a query that says true orders like a wait")

T.always(2, function()
  result[1] = 0
  s:run(function() x:fill_(2) end)
  mr.memcpy_async(result, x, {stream = s})
  s:synchronize()
  return result:item()
end, "values after synchronize")
