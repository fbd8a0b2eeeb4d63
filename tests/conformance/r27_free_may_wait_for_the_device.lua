-- R27: cudaFree may synchronise the device.
-- May: CUDA Runtime API, cudaFree ("may perform implicit synchronization"); CUDA Programming Guide, 4.3.1.
-- Guaranteed: of cudaMallocAsync's pointers it does not, and the caller makes sure that all accesses are complete
-- (CUDA Runtime API, cudaFree; CUDA Driver API, cuMemFree; CUDA Programming Guide, 4.3).
-- Seen on an H200: cudaFree of cudaMalloc's memory waits for all streams, of cudaMallocAsync's it does not,
-- cudaMalloc does not wait. All tensors here are the latter's.
-- Setting: free_waits.
-- not checked: memory is freed while it is used, to see whether the free waits
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R27"

local user, other = mr.stream(), mr.stream()
mr.synchronize()

-- How long cudaFree keeps the host when another stream than the tensor's is busy.
local function took_free(busy)
  local t = mr.empty(1024, {stream = user})
  mr.op{writes = {t}, ms = 1, stream = user}
  mr.spin{ms = 10, stream = busy}
  local ms = T.took(function() t:free{sync = true} end)
  mr.synchronize()
  return ms
end

-- Every tensor here is freed by name: which memory a later one gets must not depend on the collector.
local early
T.less(T.took(function() early = mr.empty(1024) end), 5, "allocating does not wait")
early:free{sync = true}
T.less(took_free(other), 5, "cudaFree beside another stream")
T.less(took_free(user), 5, "cudaFree behind the tensor's own stream")
T.less(T.took(function() mr.empty(0):free{sync = true} end), 5, "nothing can be freed")

local t = mr.empty(1024)
t:free{sync = true}
T.check(not pcall(t.free, t), "freeing twice is an error")

-- What nobody waited for may find its memory with somebody else.
if mr.machine then
  local a = mr.empty(1024, {stream = user})
  local address = a.data_ptr
  mr.synchronize()
  mr.spin{ms = 10, stream = user}
  user:run(function() a:fill_(1) end)
  a:free{sync = true}
  local b = mr.empty(1024, {stream = other})
  T.equal(b.data_ptr, address, "another stream has the memory at once")
  other:run(function() b:fill_(2) end)
  mr.synchronize()
  T.equal(b:sum():item(), 1024, "and the work of before writes to it")
end

if mr.machine then
  mr.machine.settings{free_waits = true}
  T.at_least(took_free(other), 9, "with free_waits it waits for all streams")
  T.at_least(took_free(user), 9, "with free_waits it waits for its own")
  mr.spin{ms = 10, stream = other}
  T.less(T.took(function() mr.empty(1024):free() end), 5, "the stream-ordered free never waits")
end
