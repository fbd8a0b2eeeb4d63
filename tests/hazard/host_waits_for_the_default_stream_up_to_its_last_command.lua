-- Synchronising the default stream covers its own commands, and what blocking streams did before them (R3). GPUs were
-- seen to wait for their later work, too, but CUDA does not promise it (R5).
-- expect: kind=read-after-write reason=wait-on-wrong-stream first=11 second=14 fix=b:synchronize()
if require "hazard_pair" () then return end
local mr = require "millrace"

local b = mr.stream{nonblocking = false}
local x, y = mr.zeros(1, {pinned = true}), mr.zeros(1, {pinned = true})
mr.op{name = "produce", writes = {x}, stream = b}
mr.event():record(mr.default_stream())
mr.op{name = "produce", writes = {y}, stream = b}
mr.default_stream():synchronize()
-- fix: b:synchronize()
local _ = x:item() + y:item()
