-- R30: another stream may have freed memory (1) when an event puts it behind the free, or (2) when the free is done.
-- (3) When memory is short, it is made to wait for the free. Otherwise the pool grows. Guaranteed that these are the
-- policies: CUDA Runtime API, cudaMemPoolAttr; CUDA Programming Guide, 4.3.8. (2) and (3) depend on timing. Seen on an
-- H200: all of the below. Settings: reuse_event, reuse_opportunistic, reuse_internal, memory_bytes.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R30"

local N = 1 << 18 -- 1 MiB
local a, b, c = mr.stream(), mr.stream(), mr.stream()
mr.synchronize()

-- Frees a tensor behind 10 ms of work of a; whether an allocation of b then gets its memory.
local function reused(between)
  local t = mr.empty(N, {stream = a})
  local address = t.data_ptr
  mr.spin{ms = 10, stream = a}
  t:free()
  between()
  local u = mr.empty(N, {stream = b})
  local same = u.data_ptr == address
  u:free()
  mr.synchronize()
  mr.memory.empty_cache()
  return same
end
local function nothing() end
local function event() b:wait_event(a:record_event()) end
local function time() -- passes, and the host hears of c alone
  mr.spin{ms = 20, stream = c}
  c:synchronize()
end

T.check(not reused(nothing), "the free is pending and not ordered: other memory")
T.check(reused(event), "an event puts b behind the free")
T.check(not reused(function() a:record_event() end), "a record alone does not")
T.check(not reused(function() b:wait_event(mr.event()) end), "an empty wait does not")
T.check(reused(function() c:wait_stream(a); b:wait_stream(c) end), "by way of another stream")
T.check(reused(time), "the free is done")

if mr.machine then
  mr.machine.settings{reuse_event = false}
  T.check(not reused(event), "without policy 1")
  mr.machine.settings{reuse_event = true, reuse_opportunistic = false}
  T.check(not reused(time), "without policy 2")
  T.check(reused(mr.synchronize), "what a synchronise has shown to be done needs no policy")

  -- Room for a single tensor. Both settings: the default, and with policy 3 off.
  mr.machine.settings{reuse_opportunistic = true, memory_bytes = 4 * N}
  local t = mr.empty(N, {stream = a})
  local address = t.data_ptr
  mr.spin{ms = 10, stream = a}
  local end_a = T.mark(a)
  t:free()
  local u
  T.less(T.took(function() u = mr.empty(N, {stream = b}) end), 5, "policy 3: the host does not wait")
  local end_b = T.mark(b)
  T.equal(u.data_ptr, address, "policy 3: the memory of the pending free")
  mr.synchronize()
  T.at_least(end_b - end_a, 0, "policy 3: b waits for a's free")
  u:free()
  mr.synchronize()

  mr.machine.settings{reuse_internal = false}
  t = mr.empty(N, {stream = a})
  mr.spin{ms = 10, stream = a}
  t:free()
  T.raises("out-of-memory", mr.empty, N, {stream = b})
  mr.synchronize()
  mr.empty(N, {stream = b}):free()
end
