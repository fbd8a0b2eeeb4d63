-- R28: memory is allocated and freed in the order of streams. The address is there at once, neither call waits;
-- every use must be ordered after the one and before the other.
-- Guaranteed: CUDA Runtime API, cudaMallocAsync and cudaFreeAsync; CUDA Programming Guide, 4.3.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R28"

local N = 1 << 18 -- 1 MiB
local a, b = mr.stream(), mr.stream()
local result = mr.zeros(1, {pinned = true})
mr.synchronize()

mr.spin{ms = 10, stream = a}
local t
T.less(T.took(function() t = mr.empty(N, {stream = a}) end), 5, "allocating behind work does not wait")
T.check(t.data_ptr ~= 0, "the address is there at once")
a:run(function() t:fill_(1) end)
mr.memcpy_async(result, t[{ {1, 1} }], {stream = a})
T.less(T.took(function() t:free() end), 5, "freeing behind work does not wait")
T.check(not a:query(), "the work goes on")
T.raises("invalid-handle", function() t:fill_(2) end)
a:synchronize()
T.equal(result:item(), 1, "work before the free had its memory")

-- Freed in another stream, whose later allocations have it at once, the tensor's own stream has not.
t = mr.empty(N, {stream = a})
local address = t.data_ptr
a:run(function() t:fill_(2) end)
b:wait_stream(a)
mr.spin{ms = 10, stream = b}
mr.memcpy_async(result, t[{ {1, 1} }], {stream = b})
t:free{stream = b}
local in_a, in_b = mr.empty(N, {stream = a}), mr.empty(N, {stream = b})
T.check(in_a.data_ptr ~= address, "the free is b's, and a is not behind it")
T.equal(in_b.data_ptr, address, "b is")
mr.synchronize()
T.equal(result:item(), 2, "b had the memory until its free")

-- A tensor of one stream, used in another between two events, is always safe.
T.always(7, function()
  local u = mr.empty(1, {stream = a})
  a:run(function() u:fill_(3) end)
  b:wait_stream(a)
  b:run(function() u:add_(4) end)
  mr.memcpy_async(result, u, {stream = b})
  a:wait_stream(b)
  u:free()
  local next_one = mr.empty(1, {stream = a})
  a:run(function() next_one:fill_(9) end)
  next_one:free()
  mr.synchronize()
  return result:item()
end, "alloc in a, use in b, free in a")
