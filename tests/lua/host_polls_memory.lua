-- A loop that reads memory of the host until the device has written it: it ends, as on a GPU.
-- virtual only: its clock stands still between calls
-- not checked: nothing orders the reads and the writes
local lu = require "luaunit"
local mr = require "millrace"

local BEFORE_POLLING = 1000 -- reads in a row that take no time

local ONE = mr.ones(1)

TestPolling = {}

-- Something on a stream writes 1 to pinned memory after a millisecond.
local function begin(write)
  local s = mr.stream{ name = "s" }
  local h = mr.zeros(1, { device = "cpu", pinned = true })
  mr.synchronize()
  mr.with(s, function() mr.spin{ ms = 1 } end)
  if write then s:host_func(function() h:fill_(1) end)
  else mr.with(s, function() h:copy_(ONE, { non_blocking = true }) end) end
  return h
end

local function poll(h)
  local reads = 0
  repeat reads = reads + 1 until h:item() ~= 0
  return reads
end

-- How long the function takes by the host's clock.
local function time_of(fn)
  local began = mr.clock()
  fn()
  return mr.clock() - began
end

function TestPolling.test_it_ends_under_every_chooser()
  local chooser = mr.machine.chooser()
  for _, name in ipairs { "timed", "adversarial", "random:1", "random:2" } do
    for _, write in ipairs { false, true } do
      mr.synchronize()
      mr.machine.chooser(name)
      poll(begin(write))
      mr.synchronize()
    end
  end
  mr.machine.chooser(chooser)
end

-- The reads that take time take that of a query.
function TestPolling.test_times()
  local h = begin()
  local took = time_of(function()
    for _ = 1, BEFORE_POLLING do lu.assertEquals(h:item(), 0) end
  end)
  lu.assertEquals(took, 0)
  local query = time_of(function() mr.default_stream():query() end)
  took = time_of(function()
    for _ = 1, BEFORE_POLLING do h:item() end
  end)
  lu.assertEquals(took, 0) -- the query has made time pass
  local reads
  took = time_of(function() reads = poll(h) end)
  lu.assertAlmostEquals(took, reads * query, 1e-9)
  lu.assertTrue(reads > 1000)
  mr.synchronize()
  took = time_of(function()
    for _ = 1, 3 * BEFORE_POLLING do h:item() end
  end)
  lu.assertEquals(took, 0) -- nothing is pending
end

function TestPolling.test_the_checker_reports_the_place_once()
  local reports = mr.hazard.check(function() poll(begin()) end)
  lu.assertEquals(#reports, 1)
  lu.assertEquals(reports[1].kind, "read-after-write")
end

os.exit(lu.LuaUnit.run())
