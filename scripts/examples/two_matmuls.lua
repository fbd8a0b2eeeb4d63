-- Two matrix products on two streams.
--
-- A product of 512 x 512 matrices fills only a few of the device's multiprocessors, so two of them fit
-- side by side. A product of 4096 x 4096 fills the device alone, and a second stream would gain nothing.
local mr = require "millrace"

local s1, s2 = mr.stream{name = "s1"}, mr.stream{name = "s2"}
local REPEATS = 10

local function products(n, first, second)
  mr.manual_seed(1)
  local a, b = mr.randn(n, n), mr.randn(n, n)
  mr.synchronize()

  local began = mr.clock()
  local c, d
  for _ = 1, REPEATS do
    c = mr.with(first, a.matmul, a, b)
    d = mr.with(second, b.matmul, b, a)
  end
  mr.synchronize()
  local elapsed = mr.clock() - began
  -- The trace of ab is the trace of ba, whatever a and b are.
  local eye = mr.eye(n)
  return c:mul(eye):sum():item(), d:mul(eye):sum():item(), elapsed
end

local N = 512
local _, _, one = products(N, s1, s1)
local trace_ab, trace_ba, two = products(N, s1, s2)
print(("trace of ab: %.4g, trace of ba: %.4g"):format(trace_ab, trace_ba))
print("two streams are faster than one: " .. tostring(two < 0.9 * one))

return { fixed = function(n) return products(n, s1, s2) end } -- for the tests
