-- copy_ without non_blocking waits for its stream.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local d = mr.zeros(64, {name = "d"})
local pinned = mr.zeros(64, {device = "cpu", pinned = true, name = "pinned"})
local s = mr.stream{name = "s"}
mr.synchronize()
mr.with(s, function() pinned:copy_(d) end)
local _ = pinned[1]:item()
