-- options: --device virtual
-- R55: streams that share a hardware queue delay each other, and nothing else changes.
-- virtual only: how many connections there are is a setting of the virtual GPU
local lu = require "luaunit"
local mr = require "millrace"

TestConnections = {}

function TestConnections:setUp()
  mr.reset()
  mr.machine.chooser("timed")
end

function TestConnections:tearDown() mr.machine.settings{ connections = 0 } end

-- How many ms `count` streams with `each` kernels of 10 ms take, of one thread each.
local function takes(connections, count, each)
  mr.machine.settings{ connections = connections }
  local streams = {}
  for i = 1, count do streams[i] = mr.stream() end
  mr.synchronize()
  local began = mr.clock()
  for _, s in ipairs(streams) do
    for _ = 1, each do mr.spin{ ms = 10, stream = s } end
  end
  mr.synchronize()
  return math.floor((mr.clock() - began) / 10 + 0.5) * 10
end

-- As an H200 was seen to do it (docs/semantics.md).
function TestConnections:test_64_streams_of_two_kernels()
  lu.assertEquals(takes(8, 64, 2), 90)
  lu.assertEquals(takes(32, 64, 2), 30)
  lu.assertEquals(takes(0, 64, 2), 20)
end

function TestConnections:test_with_one_kernel_each_no_stream_delays_another()
  lu.assertEquals(takes(8, 64, 1), 10)
end

-- Only the beginning of the one before counts.
function TestConnections:test_one_queue()
  mr.machine.settings{ connections = 1 }
  local n, m = mr.stream{ name = "n" }, mr.stream{ name = "m" }
  mr.synchronize()
  local began = mr.clock()
  mr.spin{ ms = 10, stream = n }
  mr.spin{ ms = 10, stream = n }
  mr.spin{ ms = 10, stream = m }
  m:synchronize()
  lu.assertAlmostEquals(mr.clock() - began, 20, 0.1)
end

function TestConnections:test_it_is_said()
  mr.machine.settings{ connections = 1 }
  local n, m = mr.stream{ name = "n" }, mr.stream{ name = "m" }
  mr.synchronize()
  mr.spin{ ms = 10, stream = n }
  mr.spin{ ms = 10, stream = n }
  mr.spin{ ms = 10, stream = m }
  mr.machine.pass(1)
  local queues = mr.machine.queues()
  lu.assertEquals(queues[2].stream, m)
  lu.assertStrContains(queues[2].pending[1].why, "hardware queue")
  mr.synchronize()
end

-- Nothing waits for ever: what stands in front in its queue never waits for what stands behind.
function TestConnections:test_events_across_streams_of_one_queue()
  mr.machine.settings{ connections = 1 }
  local a, b = mr.stream(), mr.stream()
  local x = mr.zeros(8)
  mr.synchronize()
  for _ = 1, 20 do
    mr.with(a, function() x:add_(1) end)
    b:wait_stream(a)
    mr.with(b, function() x:add_(1) end)
    a:wait_stream(b)
  end
  mr.synchronize()
  lu.assertEquals(x:sum():item(), 320)
end

-- The setting may change, and the chooser, while kernels stand in a queue.
function TestConnections:test_changes_while_kernels_wait()
  for _, change in ipairs{ function() mr.machine.settings{ connections = 0 } end,
    function() mr.machine.chooser("adversarial") end, function() mr.machine.settings{ connections = 32 } end,
    function() mr.reset() end } do
    mr.machine.chooser("timed")
    mr.machine.settings{ connections = 1 }
    local streams = {}
    for i = 1, 4 do streams[i] = mr.stream() end
    for _, s in ipairs(streams) do
      for _ = 1, 3 do mr.spin{ ms = 1, stream = s } end
    end
    mr.machine.pass(0.5)
    change()
    mr.synchronize()
    lu.assertEquals(#mr.machine.queues(), 0)
  end
end

function TestConnections:test_values_of_the_setting()
  lu.assertErrorMsgContains("expected at least 0", mr.machine.settings, { connections = -1 })
  mr.machine.settings{ connections = 1000 }
  lu.assertEquals(mr.machine.settings().connections, 32) -- beyond the greatest: as many as there are
end

os.exit(lu.LuaUnit.run())
