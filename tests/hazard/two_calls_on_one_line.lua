-- The operations are of other lines, and one line calls both.
-- expect: kind=write-after-write reason=no-path first=10 second=10 fix=b:wait_stream(a) place=within:14
-- expect: kind=write-after-write reason=no-path first=11 second=11 fix=b:wait_stream(a) place=within:16
-- proposed fix: none
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x = mr.zeros(8)
local function set(s) s:run(function() x:fill_(1) end) end
local function fill(s) s:run(function() x:fill_(2) end) return 1 end
mr.synchronize()
-- fix: b = a
set(a) set(b)
mr.synchronize()
assert(fill(a) + fill(b) == 2)
