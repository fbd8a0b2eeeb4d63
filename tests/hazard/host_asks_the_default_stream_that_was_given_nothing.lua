-- The same for a query that says true: one answer for both (R5).
-- expect: kind=read-after-write reason=wait-on-wrong-stream first=9 second=12 fix=b:synchronize()
if require "hazard_pair" () then return end
local mr = require "millrace"

local default = mr.default_stream()
local b = mr.stream{nonblocking = false}
local x = mr.zeros(1, {pinned = true})
mr.op{name = "produce", writes = {x}, stream = b}
repeat until default:query()
-- fix: b:synchronize()
local _ = x:item()
