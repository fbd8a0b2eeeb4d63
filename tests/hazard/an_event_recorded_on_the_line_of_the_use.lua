-- A wait in front of the line would come before the record on it: the stream is waited for.
-- expect: kind=read-after-write first=11 second=13 fix=mr.default_stream():wait_stream(s) place=before:13
if require "hazard_pair" () then return end
local mr = require "millrace"

local s = mr.stream{name = "s"}
local y = mr.zeros(8, {name = "y"})
mr.synchronize()
local e = mr.event{name = "e"}
e:record(s)
s:run(function() y:fill_(1) end)
-- fix: mr.default_stream():wait_stream(s)
e:record(s); y:add_(2)
