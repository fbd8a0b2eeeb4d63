-- timeout: 240
-- prints figures of the device
-- Timing with events: matmul and relu_ of 2048 x 2048 matrices.
--
-- The host's clock says when the host submitted the work, which takes microseconds. Two events made
-- with timing=true say when the device was before it and behind it. The first run is a warm-up (a
-- real GPU loads kernels and raises its clocks then), and the events may be read only once the second
-- one is complete.
local mr = require "millrace"

local N = 2048
mr.manual_seed(1)
local a, b = mr.randn(N, N), mr.randn(N, N)

local function work() return a:matmul(b):relu_() end

work() -- warm-up
mr.synchronize()

local first, last = mr.event{timing = true}, mr.event{timing = true}
local host = mr.clock()
first:record()
local c = work()
last:record()
host = mr.clock() - host

print("read too early: " .. select(2, pcall(first.elapsed_time, first, last)).code)
last:synchronize()
local ms = first:elapsed_time(last) -- or: last - first
print("the host needed less than a quarter of the device's time: " .. tostring(host < ms / 4))
print(("the device: %.2f ms, %.1f TFLOP/s"):format(ms, 2 * N ^ 3 / ms / 1e9))

-- One element against the same sum on the host.
local right = a[{ 7, {} }]:cpu():mul(b[{ {}, 9 }]:cpu()):sum():relu():item()
print("an element agrees with the host: " .. tostring(math.abs(c[7][9]:item() - right) < 1e-2))
