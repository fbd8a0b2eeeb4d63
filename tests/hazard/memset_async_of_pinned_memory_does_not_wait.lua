-- cudaMemsetAsync of pinned memory does not wait (R24).
-- expect: kind=read-after-write reason=host-did-not-wait first=9 second=11
if require "hazard_pair" () then return end
local mr = require "millrace"

local pinned = mr.zeros(64, {device = "cpu", pinned = true, name = "pinned"})
local s = mr.stream{name = "s"}
mr.synchronize()
mr.memset_async(pinned, 1, {stream = s})
-- fix: s:synchronize()
local _ = pinned[1]:item()
