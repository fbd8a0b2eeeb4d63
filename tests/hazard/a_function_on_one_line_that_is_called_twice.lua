-- Both operations are of one line, which is a whole function: the fix is where it is called for the second time.
-- expect: kind=write-after-write reason=no-path tensor=x fix=b:wait_stream(a) place=before:12
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b, x = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.zeros(64, {name = "x"})
local function set(s, v) mr.with(s, function() x:fill_(v) end) end
mr.synchronize()

set(a, 1)
-- fix: b:wait_stream(a)
set(b, 2)
