-- Work that the host waited for in between needs no wait: a later one is for something else.
-- expect: kind=read-after-write reason=no-path amended=false first=10 second=13
if require "hazard_pair" () then return end
local mr = require "millrace"

local other = mr.stream{name = "other"}
local x = mr.zeros(8)
local function once(wait)
  mr.synchronize()
  x:fill_(1)
  -- fix: other:wait_stream(mr.default_stream())
  if wait then other:wait_stream(mr.default_stream()) end
  other:run(function() return x:sum() end)
end
once(false)
once(true)
