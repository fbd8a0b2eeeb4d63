-- R33: a tensor's memory goes back in the order of the stream that it was made on. record_stream makes that wait
-- for another stream too, as far as that stream has been given work when the tensor is freed.
-- Guaranteed (by PyTorch, whose name and meaning this is): torch.Tensor.record_stream.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R33"

local a, b = mr.stream(), mr.stream()
local y = mr.zeros(1)
mr.synchronize()

-- b reads a tensor of a, which a then uses again for something else.
local function program(record)
  local t = mr.empty(1, {stream = a})
  a:run(function() t:fill_(1) end)
  b:wait_stream(a)
  mr.spin{ms = 5, stream = b}
  b:run(function() y:copy_(t) end)
  if record then t:record_stream(b) end
  t:free()
  local u = mr.empty(1, {stream = a})
  a:run(function() u:fill_(2) end)
  mr.synchronize()
  u:free()
  return y:item()
end
T.always(1, function() return program(true) end, "with record_stream")
T.either({1, 2}, function() return program(false) end, "without it")

-- The address tells the same.
local function reused(record)
  local t = mr.empty(1 << 18, {stream = a})
  local address = t.data_ptr
  mr.spin{ms = 10, stream = b}
  if record then t:record_stream(b) end
  T.less(T.took(function() t:free() end), 5, "the free does not wait")
  local early = mr.empty(1 << 18, {stream = a})
  local same = early.data_ptr == address
  b:synchronize()
  if record then
    local late = mr.empty(1 << 18, {stream = a})
    T.equal(late.data_ptr, address, "the memory is back when b has got there")
    late:free()
  end
  early:free()
  mr.synchronize()
  return same
end
T.check(reused(false), "without record_stream a has the memory at once")
T.check(not reused(true), "with it, not while b is busy")

-- Work that b is given after the free is not waited for.
local t = mr.empty(1 << 18, {stream = a}):record_stream(b)
local address = t.data_ptr
t:free()
mr.spin{ms = 10, stream = b}
local u = mr.empty(1 << 18, {stream = a})
T.equal(u.data_ptr, address, "b was idle when the tensor was freed")
mr.synchronize()
