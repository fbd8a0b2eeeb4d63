-- copy_ with non_blocking returns before it is done.
-- expect: kind=read-after-write reason=host-did-not-wait first=10 second=12
if require "hazard_pair" () then return end
local mr = require "millrace"

local d = mr.zeros(64, {name = "d"})
local pinned = mr.zeros(64, {device = "cpu", pinned = true, name = "pinned"})
local s = mr.stream{name = "s"}
mr.synchronize()
mr.with(s, function() pinned:copy_(d, {non_blocking = true}) end)
-- fix: s:synchronize()
local _ = pinned[1]:item()
