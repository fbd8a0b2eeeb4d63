-- Every schedule of memory that is freed while another stream reads it: the next tensor may get the same memory.
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: schedules are explored
local mr = require "millrace"

local function program(tell)
  local main, side = mr.stream{name = "main"}, mr.stream{name = "side"}
  local sum
  mr.with(main, function()
    local x = mr.full(4, 2)
    side:wait_stream(main)
    sum = mr.with(side, function() return x:sum() end)
    if tell then x:record_stream(side) end
    x:free()
    mr.full(4, 100) -- may lie where x was
  end)
  mr.synchronize()
  return sum:item()
end

print("without record_stream:", mr.explore(function() return program(false) end))
print("with it:", mr.explore(function() return program(true) end))
