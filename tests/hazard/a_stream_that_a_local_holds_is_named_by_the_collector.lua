-- A free by Lua's collector is reported out of a finalizer; the streams are still those of the script's variables.
-- expect: kind=use-after-free reason=collected-while-pending first=12 second=collected second_stream=s fix=s:wait_stream(mr.default_stream()) place=after:12
if require "hazard_pair" () then return end
local mr = require "millrace"

mr.synchronize()
local s = mr.stream()
local y = s:run(function() return mr.ones(100) end)
mr.current_stream():wait_stream(s)
do
  -- fix: y:record_stream(mr.current_stream())
  local _ = y:sum()
end
y = nil
collectgarbage() collectgarbage()
s:run(function() return mr.zeros(100) end)
