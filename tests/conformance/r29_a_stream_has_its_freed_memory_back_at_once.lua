-- R29: memory freed in a stream may serve that stream's next allocation at once: their uses are in order anyhow.
-- Guaranteed that it may: CUDA Programming Guide, 4.3. Seen on an H200: the same address.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R29"

local N = 1 << 18 -- 1 MiB
local s = mr.stream()
local result = mr.zeros(2, {pinned = true})
mr.synchronize()

mr.spin{ms = 10, stream = s}
local first = mr.empty(N, {stream = s})
local address = first.data_ptr
s:run(function() first:fill_(1) end)
mr.memcpy_async(result[{ {1, 1} }], first[{ {1, 1} }], {stream = s})
local second
T.less(T.took(function()
  first:free()
  second = mr.empty(N, {stream = s})
end), 5, "the host does not wait")
T.equal(second.data_ptr, address, "the same memory, although the stream has not got there yet")
s:run(function() second:fill_(2) end)
mr.memcpy_async(result[{ {2, 2} }], second[{ {1, 1} }], {stream = s})
T.check(not s:query(), "the stream is still busy")
s:synchronize()
T.equal(result[1]:item(), 1, "the first tensor had its values")
T.equal(result[2]:item(), 2, "so had the second")

T.always(1, function()
  local t = mr.empty(1, {stream = s})
  s:run(function() t:fill_(1) end)
  mr.memcpy_async(result[{ {1, 1} }], t, {stream = s})
  t:free()
  local u = mr.empty(1, {stream = s})
  s:run(function() u:fill_(2) end)
  u:free()
  s:synchronize()
  return result[1]:item()
end, "reuse in one stream is in order")
