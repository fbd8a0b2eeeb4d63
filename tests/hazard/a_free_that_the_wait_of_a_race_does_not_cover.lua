-- The stream goes on behind the race: its wait covers neither what is freed nor what is collected afterwards.
-- expect: kind=read-after-write tensor=x first=12 second=14 fix=mr.default_stream():wait_stream(s)
-- expect: kind=use-after-free reason=freed-without-record-stream tensor=z first=15 second=18
-- expect: kind=use-after-free reason=collected-while-pending first=16 second=collected place=after:16
if require "hazard_pair" () then return end
local mr = require "millrace"

local s = mr.stream{name = "s"}
local x = mr.ones(8)
local y, z, w = mr.zeros(8), mr.zeros(8), mr.zeros(8)
mr.synchronize()
s:run(function() x:add_(1) end)
-- fix: mr.default_stream():wait_stream(s)
y:add_(x)
mr.op{name = "first", reads = {z}, stream = s}
mr.op{name = "second", reads = {w}, stream = s}
-- fix: mr.default_stream():wait_stream(s)
z:free()
w = nil
collectgarbage() collectgarbage()
y:add_(1)
