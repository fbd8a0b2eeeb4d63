-- NVIDIA's driver waits in such a copy, but that is not guaranteed: it orders no other memory (R23).
-- expect: kind=read-after-write tensor=pinned first=11 second=14
if require "hazard_pair" () then return end
local mr = require "millrace"

local d = mr.zeros(64, {name = "d"})
local pinned = mr.zeros(64, {device = "cpu", pinned = true, name = "pinned"})
local pageable = mr.zeros(64, {device = "cpu", name = "pageable"})
local s = mr.stream{name = "s"}
mr.synchronize()
mr.op{name = "produce", writes = {pinned}, stream = s}
mr.memcpy_async(pageable, d, {stream = s})
-- fix: s:synchronize()
local _ = pinned[1]:item()
