-- No line can follow a return, but the free waits for all work submitted before it.
-- expect: kind=use-after-free reason=freed-without-record-stream tensor=t first=10 second=14 fix=t:record_stream(b) place=before:14
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream(), mr.stream()
local t = a:run(function() return mr.ones(100) end)
b:wait_stream(a)
local function use()
  return b:run(function() return t:sum() end)
end
local _ = use()
-- fix: t:record_stream(b)
t:free()
