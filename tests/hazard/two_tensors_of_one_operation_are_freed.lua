-- Each tensor needs a record_stream of its own: the places are the same, the lines are not.
-- expect: kind=use-after-free tensor=x first=12 second=13 fix=x:record_stream(b)_y:record_stream(b) place=after:12,after:12
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
for _ = 1, 3 do
  local x, y = a:run(function() return mr.ones(8) end), a:run(function() return mr.ones(8) end)
  b:wait_stream(a)
  -- fix: x:record_stream(b)
  -- fix: y:record_stream(b)
  b:run(function() local _ = x + y end)
  x:free() y:free()
end
