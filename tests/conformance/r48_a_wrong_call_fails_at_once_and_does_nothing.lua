-- R48: a call with wrong arguments, a bad handle or too large a request fails itself: nothing is enqueued and all
-- goes on.
-- Guaranteed: CUDA Runtime API, cudaError_t (1, 2, 9, 101, 400, 701).
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R48"

local s, closed = mr.stream(), mr.stream()
closed:close()
local x, freed = mr.ones(4), mr.empty(4)
freed:free()
mr.synchronize()
local live = mr.memory.stats().live

local wrong = {
  { "invalid-argument", function() mr.op{writes = {x}, ms = -1, stream = s} end },
  { "invalid-argument", function() mr.op{writes = {x}, blocks = 0, stream = s} end },
  { "invalid-argument", function() mr.op{writes = {1}, stream = s} end },
  { "invalid-argument", function() mr.op{writes = {mr.zeros(1, {device = "cpu"})}, stream = s} end },
  { "invalid-argument", function() mr.memcpy(x, mr.zeros(3, {device = "cpu"})) end },
  { "invalid-argument", function() mr.memset(x, 256) end },
  { "invalid-argument", function() x:add_(mr.ones(3, {device = "cpu"})) end },
  { "invalid-handle", function() mr.op{writes = {freed}, stream = s} end },
  { "invalid-handle", function() mr.op{writes = {x}, stream = closed} end },
  { "invalid-device", function() mr.device(mr.device_count()) end },
  { "out-of-memory", function() mr.empty(1 << 46) end },
}
for _, case in ipairs(wrong) do
  T.raises(case[1], case[2])
  T.check(s:query() and mr.default_stream():query(), "nothing was enqueued")
end

mr.spin{ms = 1, stream = s}
s:run(function() x:add_(1) end)
s:synchronize()
T.equal(x:sum():item(), 8, "the device is as it was, and goes on")
collectgarbage()
T.equal(mr.memory.stats().live, live, "nothing has been kept")
