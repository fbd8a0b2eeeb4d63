-- R25: copies in different directions run at once, and beside kernels, where the device has the engines for it;
-- those in one direction follow each other. Host memory must be pinned.
-- Guaranteed that they can: CUDA Programming Guide, 3.1 (asyncEngineCount). Seen on an H200, which has three:
-- both directions at once, two in one direction one after the other.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R25"
if mr.current_device().async_engine_count < 2 then T.skip("this device has one copy engine") end

local SIZE = 16 << 20 -- 64 MiB: more than a millisecond over PCIe
local s1, s2, s3 = mr.stream(), mr.stream(), mr.stream()
local d1, d2 = mr.zeros(SIZE), mr.zeros(SIZE)
local h1, h2 = mr.zeros(SIZE, {pinned = true}), mr.zeros(SIZE, {pinned = true})
mr.synchronize()

local function to_device(stream, d, h) mr.memcpy_async(d, h, {stream = stream}) end
local function to_host(stream, d, h) mr.memcpy_async(h, d, {stream = stream}) end

-- From the start of the first to the end of both.
local function span(first, second)
  local start = T.mark(s1)
  s2:wait_event(start)
  first(s1, d1, h1)
  second(s2, d2, h2)
  local end1, end2 = T.mark(s1), T.mark(s2)
  mr.synchronize()
  return math.max(end1 - start, end2 - start)
end

local function nothing() end
for _ = 1, 2 do -- the first copies of a process, and of each memory, take longer on a real device
  span(to_device, to_host)
  span(to_host, to_device)
end
local alone, back = span(to_device, nothing), span(to_host, nothing)
T.at_least(alone, 0.1, "a copy takes time")
T.less(span(to_device, to_host), 1.5 * math.max(alone, back), "copies in both directions")
T.at_least(span(to_device, to_device), 1.8 * alone, "two copies to the device")
T.at_least(span(to_host, to_host), 1.8 * back, "two copies to the host")
T.less(span(to_device, function(stream) mr.spin{ms = alone, stream = stream} end), 1.5 * alone,
  "a copy beside a kernel")

-- All three at once.
local start = T.mark(s1)
s2:wait_event(start)
s3:wait_event(start)
to_device(s1, d1, h1)
to_host(s2, d2, h2)
mr.spin{ms = alone, stream = s3}
local ends = {T.mark(s1), T.mark(s2), T.mark(s3)}
mr.synchronize()
for i, finish in ipairs(ends) do
  T.less(finish - start, 1.5 * math.max(alone, back), "stream " .. i .. " of three")
end
