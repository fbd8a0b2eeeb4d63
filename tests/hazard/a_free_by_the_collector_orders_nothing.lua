-- The collector frees in the default stream, in between. When it does so is nothing to rely on: no order
-- between blocking streams follows from it, though every other command there is a barrier (R3, R28).
-- expect: kind=write-after-write reason=no-path first=11 second=15
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local garbage = mr.zeros(4) -- luacheck: ignore garbage
mr.synchronize()
local a, b = mr.stream{name = "a", nonblocking = false}, mr.stream{name = "b", nonblocking = false}
mr.op{name = "first", writes = {x}, stream = a}
garbage = nil
collectgarbage() collectgarbage()
-- fix: b:wait_stream(a)
mr.op{name = "second", writes = {x}, stream = b}
