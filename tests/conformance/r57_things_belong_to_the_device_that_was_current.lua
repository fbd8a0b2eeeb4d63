-- R57: streams and tensors belong to the device that was current when they were made; making a device current
-- waits for nothing.
-- options: --device virtual:2
-- Guaranteed: CUDA Runtime API, cudaSetDevice; CUDA C++ Programming Guide 12.x, 6.2.9.1.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R57"
if mr.device_count() < 2 then T.skip("needs two devices") end

T.equal(mr.current_device(), mr.device(0), "at the start")
local s0, x0 = mr.stream(), mr.zeros(1)
mr.synchronize()
mr.zeros(1, {device = 1}) -- a real device's context is made when it is first used, which takes a while
mr.synchronize(1)
mr.spin{ms = 10, stream = s0}
T.less(T.took(mr.set_device, 1), 5, "making a device current waits for nothing")
T.check(not s0:query(), "the other device goes on")
T.equal(mr.current_device(), mr.device(1), "now")
local s1, x1 = mr.stream(), mr.zeros(1)

T.equal(s0.device, mr.device(0), "a stream made before")
T.equal(x0.device, mr.device(0), "a tensor made before")
T.equal(s1.device, mr.device(1), "a stream made after")
T.equal(x1.device, mr.device(1), "a tensor made after")
T.equal(mr.current_stream(), mr.default_stream(1), "each device has its own current stream")
T.check(mr.default_stream(0) ~= mr.default_stream(1), "and its own default stream")
T.check(mr.per_thread_stream(0) ~= mr.per_thread_stream(1), "and its own per-thread stream")

T.less(T.took(mr.synchronize), 5, "synchronize is about the current device")
T.check(not s0:query(), "and not about the other")
T.at_least(T.took(mr.synchronize, 0), 9, "unless it is named")

T.equal(mr.with(mr.device(0), function() return mr.empty(1).device end), mr.device(0), "for a while")
T.equal(mr.current_device(), mr.device(1), "and back")
