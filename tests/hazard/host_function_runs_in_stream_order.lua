-- A host function comes after the work before it and before the work behind it (R46).
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {device = "cpu", pinned = true, name = "x"})
mr.synchronize()
local n = mr.stream{name = "n"}
mr.op{name = "produce", writes = {x}, stream = n}
n:host_func(function() x:fill_(2) end)
mr.op{name = "consume", reads = {x}, stream = n}
n:synchronize()
