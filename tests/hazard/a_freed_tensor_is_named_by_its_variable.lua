-- t:free() knows memory only; the variable is still in scope.
-- expect: kind=use-after-free reason=freed-without-record-stream tensor=t first=10 second=12 fix=t:record_stream(b) place=after:10
if require "hazard_pair" () then return end
local mr = require "millrace"

mr.synchronize()
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local t = a:run(function() return mr.ones(100) end)
b:wait_stream(a)
b:run(function() return t:sum() end)
-- fix: t:record_stream(b)
t:free()
