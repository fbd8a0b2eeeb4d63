-- R22: an async copy to or from pinned memory returns before it is done. Until then the host may neither rely on
-- the target nor change the source.
-- Guaranteed: CUDA Runtime API, API synchronization behavior (Memcpy async); CUDA Programming Guide, 2.3.2.3.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R22"

local s = mr.stream()
local x = mr.zeros(1)
local pinned = mr.zeros(1, {pinned = true})
mr.synchronize()

mr.spin{ms = 10, stream = s}
T.less(T.took(mr.memcpy_async, x, pinned, {stream = s}), 5, "to the device")
T.less(T.took(mr.memcpy_async, pinned, x, {stream = s}), 5, "to the host")
T.check(not s:query(), "the copies have not been done yet")
s:synchronize()

T.always(1, function()
  x:fill_(1)
  mr.synchronize()
  pinned[1] = 0
  mr.memcpy_async(pinned, x, {stream = s})
  s:synchronize()
  return pinned:item()
end, "the target after a wait")

T.either({0, 1}, function()
  pinned[1] = 0
  x:fill_(1)
  mr.synchronize()
  mr.memcpy_async(pinned, x, {stream = s})
  local seen = pinned:item()
  s:synchronize()
  return seen
end, "the target without a wait")

T.either({1, 2}, function()
  pinned[1] = 1
  mr.memcpy_async(x, pinned, {stream = s})
  pinned[1] = 2
  s:synchronize()
  return x:item()
end, "a source that is changed too early")
