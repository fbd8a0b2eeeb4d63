-- cudaMemcpy from pinned memory waits: the source may be used again.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local d = mr.zeros(64, {name = "d"})
local pinned = mr.zeros(64, {device = "cpu", pinned = true, name = "pinned"})
local s = mr.stream{name = "s"}
mr.synchronize()
mr.memcpy(d, pinned)
pinned:fill_(1)
mr.op{name = "use", reads = {d}, stream = s}
