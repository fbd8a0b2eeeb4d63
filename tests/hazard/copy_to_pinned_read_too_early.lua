-- An asynchronous copy to pinned memory is not done on return (R22).
-- expect: kind=read-after-write reason=host-did-not-wait tensor=pinned first=10 second=12
if require "hazard_pair" () then return end
local mr = require "millrace"

local d = mr.zeros(64, {name = "d"})
local pinned = mr.zeros(64, {device = "cpu", pinned = true, name = "pinned"})
local s = mr.stream{name = "s"}
mr.synchronize()
mr.memcpy_async(pinned, d, {stream = s})
-- fix: s:synchronize()
local _ = pinned[1]:item()
