-- A <close> variable is freed by the script and not by the collector.
-- expect: kind=use-after-free reason=freed-without-record-stream first=11 second=12
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local function work()
  local t <close> = a:run(function() return mr.ones(100) end)
  b:wait_stream(a)
  -- fix: t:record_stream(b)
  b:run(function() return t:sum() end)
end
work()
mr.synchronize()
