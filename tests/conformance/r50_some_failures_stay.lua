-- R50: after an illegal address, a failed assert and their like every call fails in the same way; pending work does
-- not complete.
-- Guaranteed: CUDA Runtime API, cudaError_t (700, 702, 710, 714 to 719). CUDA needs a new process then; here
-- mr.reset() gives a fresh device.
-- not checked: host memory is read that a copy was to write before the device failed
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R50"
if not mr.machine then T.skip("only the virtual GPU can fail on purpose") end

for code in ("illegal-address launch-timeout assert misaligned-address launch-failure"):gmatch("%S+") do
  local s, e = mr.stream(), mr.event()
  local x = mr.zeros(1)
  local pinned = mr.zeros(1, {pinned = true})
  mr.synchronize()

  mr.machine.fault(code, s)
  mr.memcpy_async(pinned, mr.ones(1, {stream = s}), {stream = s})
  T.raises(code, function() s:synchronize() end)

  for name, call in pairs{
    wait = function() mr.synchronize() end,
    query = function() mr.default_stream():query() end,
    launch = function() x:fill_(1) end,
    record = function() e:record(s) end,
    create = function() mr.stream() end,
    allocate = function() mr.empty(1) end,
    free = function() x:free() end,
    copy = function() mr.memcpy(pinned, x) end,
    again = function() mr.synchronize() end,
  } do
    T.equal(T.raises(code, call).code, code, name)
  end
  T.equal(pinned:item(), 0, "work behind the failure was not done; host memory can still be read")

  mr.reset()
  T.raises("invalid-handle", function() s:synchronize() end)
  T.raises("invalid-handle", function() e:record() end)
  T.raises("invalid-handle", function() x:item() end)
  T.equal(mr.ones(3):sum():item(), 3, "a fresh device")
  T.equal(pinned:item(), 0, "host tensors keep their values")
end
