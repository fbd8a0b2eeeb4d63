-- Priorities: who gets the next free multiprocessor.
--
-- The device is filled by a kernel of many waves of blocks. A small kernel that comes later starts when
-- a wave ends, if its stream has a higher priority (a smaller number); otherwise after the whole kernel.
-- Blocks that run are never interrupted, and a priority is a hint: it never orders memory.
local mr = require "millrace"

local least, greatest = mr.priority_range()
print(("priorities go from %d, the least, to %d; asked for -100, one gets %d"):format(
  least, greatest, mr.stream{priority = -100}.priority))

local WAVES = 4

-- Milliseconds from the start of the big kernel to the end of the small one, and of the big one.
local function small_beside_big(priority)
  local low, other = mr.stream{priority = least}, mr.stream{priority = priority}
  local began = mr.event{timing = true}
  local small, big = mr.event{timing = true}, mr.event{timing = true}
  mr.synchronize()
  began:record(low)
  mr.op{name = "big", ms = 2 * WAVES, blocks = WAVES * mr.device(0).sm_count, stream = low}
  big:record(low)
  mr.op{name = "small", ms = 0.1, blocks = 1, stream = other}
  small:record(other)
  mr.synchronize()
  return small - began, big - began
end

local small, big = small_beside_big(greatest)
print("a small kernel of high priority is done before the big one: " .. tostring(small < big))
small, big = small_beside_big(least)
print("a small kernel of the same priority:                        " .. tostring(small < big))
