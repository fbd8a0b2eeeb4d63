-- Waits of the virtual GPU for the default stream, which CUDA makes without a promise (R5, R20): the explorer knows
-- that the work is over then.
-- virtual only: schedules are explored on the virtual GPU
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: schedules are explored
local lu = require "luaunit"
local mr = require "millrace"

TestSeen = {}

local function schedules(fn)
  local result = mr.explore(fn)
  lu.assertTrue(result.complete)
  return result
end

-- A query behind it can only say yes.
function TestSeen.test_a_synchronize_of_the_default_stream_covers_blocking_streams()
  local blocking, free = mr.stream{nonblocking = false}, mr.stream()
  local x, y = mr.zeros(2), mr.zeros(2)
  mr.synchronize()
  local of = {}
  for name, s in pairs{blocking = blocking, free = free} do
    of[name] = schedules(function()
      s:run(function() if s == free then y:add_(1) else x:add_(1) end end)
      mr.default_stream():synchronize()
      return s:query()
    end)
  end
  lu.assertEquals(#of.blocking.outcomes, 1)
  lu.assertEquals(of.blocking.outcomes[1].value, true)
  lu.assertEquals(#of.free.outcomes, 2)
end

-- cudaMemcpy from pageable memory waits for blocking streams before it reads the source.
function TestSeen.test_a_copy_from_pageable_memory_covers_blocking_streams()
  local blocking, free = mr.stream{nonblocking = false}, mr.stream()
  local x, y, q, to = mr.zeros(2), mr.zeros(2), mr.zeros(2, {device = "cpu"}), mr.zeros(2)
  mr.synchronize()
  for _, case in ipairs{{blocking, x, 1}, {free, y, 2}, {mr.default_stream(), x, 1}} do
    local s, t, outcomes = table.unpack(case)
    local result = schedules(function()
      s:run(function() t:add_(1) end)
      local added = s:record_event()
      mr.memcpy(to, q)
      return added:query()
    end)
    lu.assertEquals(#result.outcomes, outcomes)
  end
end

os.exit(lu.LuaUnit.run())
