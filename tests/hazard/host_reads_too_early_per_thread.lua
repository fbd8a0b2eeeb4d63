-- The host touches pinned memory while the per-thread stream works on it (R22).
-- expect: kind=read-after-write reason=host-did-not-wait first=9 second=11 second_stream=host
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {device = "cpu", pinned = true, name = "x"})
mr.synchronize()
local p = mr.per_thread_stream()
mr.op{name = "produce", writes = {x}, stream = p}
-- fix: mr.synchronize()
local _ = x[1]:item()
