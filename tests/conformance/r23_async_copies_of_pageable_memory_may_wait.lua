-- R23: an async copy to or from pageable memory may be synchronous: rely on neither.
-- May: CUDA Runtime API, API synchronization behavior (Memcpy async). Seen on an H200: to the device it returns
-- when the source has been staged, if it is small; to the host it returns when done.
-- Settings: pageable_h2d_async, pageable_d2h_async, staging_bytes.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R23"

local s = mr.stream()
local x, large = mr.zeros(1), mr.zeros(4 << 20)
local host, large_host = mr.zeros(1, {device = "cpu"}), mr.zeros(4 << 20, {device = "cpu"})
mr.synchronize()

-- What each form must do however it waits.
local function check_values()
  T.always(1, function()
    host[1] = 1
    mr.memcpy_async(x, host, {stream = s})
    host[1] = 2
    s:synchronize()
    return x:item()
  end, "a staged source may be changed")

  T.always(3, function()
    host[1] = 0
    x:fill_(3)
    mr.synchronize()
    mr.memcpy_async(host, x, {stream = s})
    s:synchronize()
    return host:item()
  end, "the target after a wait")
end

-- How long each keeps the host behind 10 ms of work.
local function took(to, from)
  mr.spin{ms = 10, stream = s}
  local ms = T.took(mr.memcpy_async, to, from, {stream = s})
  s:synchronize()
  return ms
end

check_values()
T.less(took(x, host), 5, "to the device, small")
T.at_least(took(large, large_host), 9, "to the device, more than can be staged")
T.at_least(took(host, x), 9, "to the host")

if mr.machine then
  mr.machine.settings{pageable_h2d_async = false, pageable_d2h_async = true}
  check_values()
  T.at_least(took(x, host), 9, "to the device, when that waits")
  T.less(took(host, x), 5, "to the host, when that does not")
  T.either({0, 3}, function()
    host[1] = 0
    x:fill_(3)
    mr.synchronize()
    mr.memcpy_async(host, x, {stream = s})
    local seen = host:item()
    s:synchronize()
    return seen
  end, "then the target is not there yet")

  mr.machine.settings{pageable_h2d_async = true, staging_bytes = 64 << 20}
  T.less(took(large, large_host), 9, "to the device, when all of it can be staged")
end
