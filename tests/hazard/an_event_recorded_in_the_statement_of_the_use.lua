-- The same where the statement has several lines.
-- expect: kind=read-after-write first=10 second=14 fix=mr.default_stream():wait_stream(s) place=before:12
if require "hazard_pair" () then return end
local mr = require "millrace"

local s = mr.stream{name = "s"}
local y = mr.zeros(8, {name = "y"})
mr.synchronize()
local e = mr.event{name = "e"}
s:run(function() y:fill_(1) end)
-- fix: mr.default_stream():wait_stream(s)
local _ = {
  e:record(s),
  y:add_(2),
}
