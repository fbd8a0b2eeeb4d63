-- Results to pinned host memory, on a copy stream, waited for only where they are used.
--
-- A copy with non_blocking to pinned memory returns before it is done, and the host goes on. The return of the call
-- says nothing about the values. Wait where they are first used, and wait for the copy's own event, not for the whole
-- device.
-- not checked: one of its programs races
local mr = require "millrace"

local copy = mr.stream{name = "copy"}

local function program(n, wait)
  local x = mr.ones(n)
  local result = mr.zeros(n, {pinned = true})
  mr.synchronize()

  mr.spin{ms = 5} -- the device is busy, as it is in real programs
  x:mul_(5)
  copy:wait_stream(mr.current_stream()) -- the copy comes after mul_
  local copied = mr.with(copy, function()
    result:copy_(x, {non_blocking = true})
    return mr.current_stream():record_event()
  end)

  mr.spin{ms = 20} -- the default stream goes on with other work; the copy does not wait for it
  local early = not copied:query()

  if wait then copied:synchronize() end -- here, where the values are used
  local sum = result:sum():item()       -- a host tensor: the host reads it now

  local still_busy = not mr.default_stream():query()
  mr.synchronize()
  return sum, 5 * n, early, still_busy
end

local sum, right, early, still_busy = program(4000000, true)
print("the host went on while the copy ran: " .. tostring(early))
print("other work was not waited for:       " .. tostring(still_busy))
print(("waited for where it is used: %d, right is %d"):format(sum, right))
print(("not waited for:              %d, right is %d"):format(program(4000000, false)))

return { -- for the tests
  fixed = function(n) return program(n, true) end,
  racy = function(n) return program(n, false) end,
}
