-- Fan-out: one event, two streams that wait for it.
--
--          s1: a x b = c --- event "ready"
--                              |-- s3: sum of c
--                              |-- s2: relu of c
--
-- s2 and s3 both start when c is there, and run side by side. That is only right while neither of
-- them changes c: look at the line marked (!), and at what the second run makes of it.
-- not checked: one of its programs races
local mr = require "millrace"

local s1, s2, s3 = mr.stream{name = "s1"}, mr.stream{name = "s2"}, mr.stream{name = "s3"}

local function fan_out(n, in_place)
  mr.manual_seed(1)
  local ready, c = mr.event(), nil
  mr.with(s1, function()
    local a, b = mr.randn(n, n), mr.randn(n, n)
    c = a:matmul(b)
    ready:record()
  end)

  s3:wait_event(ready) -- the event is recorded once; any number of streams may wait for it
  local sum = mr.with(s3, function()
    mr.spin{ms = 0.1} -- other work that s3 has to do first
    return c:sum()
  end)

  s2:wait_event(ready)
  local positive = mr.with(s2, function()
    local mine = in_place and c or c:clone() -- (!) relu_ writes where it reads: give it a copy
    return mine:relu_()
  end)

  mr.synchronize()
  mr.manual_seed(1)
  local a, b = mr.randn(n, n), mr.randn(n, n)
  local right = a:matmul(b)
  return sum:item(), right:sum():item(), positive:min():item()
end

local function report(title, sum, right, least)
  print(("%-39s sum %.4g, right is %.4g; least element after relu %g"):format(title, sum, right, least))
end
report("relu_ of a copy:", fan_out(1024, false))
report("relu_ of c itself, while s3 adds it up:", fan_out(1024, true))

return { -- for the tests
  fixed = function(n) return fan_out(n, false) end,
  racy = function(n) return fan_out(n, true) end,
}
