-- The host touches pinned memory while the per-thread stream works on it (R22).
-- expect: kind=write-after-read reason=host-did-not-wait first=9 second=11 second_stream=host
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {device = "cpu", pinned = true, name = "x"})
mr.synchronize()
local p = mr.per_thread_stream()
mr.op{name = "consume", reads = {x}, stream = p}
-- fix: mr.synchronize()
x:fill_(1)
