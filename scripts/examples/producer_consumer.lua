-- Producer and consumer: the event is recorded inside the producer's block.
--
-- ready:record() captures what the *current* stream has been given so far. Inside the block that is
-- the producer. One line further down, outside, it is the default stream, which has nothing to do
-- with x: the event is complete at once, and the consumer's wait waits for nothing.
-- not checked: one of its programs races
local mr = require "millrace"

local producer, consumer = mr.stream{name = "producer"}, mr.stream{name = "consumer"}

local function program(n, inside)
  local x = mr.zeros(n)
  mr.synchronize()

  local ready = mr.event()
  mr.with(producer, function()
    mr.spin{ms = 1} -- a kernel that takes its time
    x:fill_(3)
    if inside then ready:record() end -- right: on the producer's stream, after fill_
  end)
  if not inside then ready:record() end -- wrong: the same words, on the default stream

  local doubled = mr.with(consumer, function()
    ready:wait()
    return x:mul(2)
  end)
  mr.synchronize()
  return doubled:sum():item(), 6 * n
end

print(("recorded inside the producer's block: %g, right is %g"):format(program(1000, true)))
print(("recorded after it:                    %g, right is %g"):format(program(1000, false)))

return { -- for the tests
  fixed = function(n) return program(n, true) end,
  racy = function(n) return program(n, false) end,
}
