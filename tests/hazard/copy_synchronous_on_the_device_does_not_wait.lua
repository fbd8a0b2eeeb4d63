-- cudaMemcpy within a device does not make the host wait (R21).
-- expect: kind=read-after-write reason=copy-still-pending tensor=d2 first=11 second=13
if require "hazard_pair" () then return end
local mr = require "millrace"

local d = mr.zeros(64, {name = "d"})
local s = mr.stream{name = "s"}
mr.synchronize()
local d2 = mr.zeros(64, {name = "d2"})
mr.synchronize()
mr.memcpy(d2, d)
-- fix: mr.default_stream():synchronize()
mr.op{name = "use", reads = {d2}, stream = s}
