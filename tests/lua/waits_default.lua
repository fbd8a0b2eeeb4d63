-- mr.waits and the implicit waits of devices: the default stream's barrier (R3, R5), and cudaFree (R27).
-- not checked: one of its programs has a race, and waits are left out
local lu = require "luaunit"
local mr = require "millrace"

local function line() return debug.getinfo(2, "l").currentline end

-- The verdict on the wait of a line.
local function at(result, where)
  for _, w in ipairs(result.waits) do
    if w.where:match(":(%d+)$") == tostring(where) then return w end
  end
  error("no wait at line " .. where .. " in\n" .. tostring(result), 2)
end

TestDefaultStream = {}

local function with_barrier()
  local x, host = mr.zeros(4, {name = "x"}), mr.zeros(4, {device = "cpu", pinned = true, name = "host"})
  mr.synchronize()
  return mr.stream{name = "blocking", nonblocking = false}, mr.default_stream(), x, host
end

function TestDefaultStream.test_a_host_that_waits_for_it_uses_what_a_blocking_stream_wrote()
  local blocking, default, x, host = with_barrier()
  local wait
  local result = mr.waits(function()
    blocking:run(function() host:copy_(x, {non_blocking = true}) end)
    default:synchronize() wait = line()
    host[1] = 2
  end)
  lu.assertEquals({result.hazards, at(result, wait).verdict}, {1, "redundant"})
  lu.assertEquals(at(result, wait).because, "without it, no access has a hazard that has none now")
end

function TestDefaultStream.test_its_record_is_behind_a_blocking_stream()
  local blocking, default, x, host = with_barrier()
  local wait
  local result = mr.waits(function()
    blocking:run(function() host:copy_(x, {non_blocking = true}) end)
    local event = default:record_event()
    assert(blocking:run(function() return x[1]:item() end) == 0) -- this, too, makes the host wait
    event:synchronize() wait = line()
    host[1] = 2
  end)
  lu.assertStrContains(at(result, wait).because, "the host's `fill_` at line " .. wait + 1 .. " comes after `copy_`")
end

function TestDefaultStream.test_it_comes_after_the_wait_of_a_blocking_stream()
  local blocking, default, x = with_barrier()
  local other, wait = mr.stream{name = "other"}, nil
  local result = mr.waits(function()
    other:run(function() x:fill_(1) end)
    blocking:wait_event(other:record_event()) wait = line()
    assert(other:run(function() return x[1]:item() end) == 1) -- this makes the host wait
    default:run(function() x:add_(1) end)
  end)
  lu.assertEquals(at(result, wait).verdict, "redundant")
  lu.assertStrContains(at(result, wait).because, "`add_` at line " .. wait + 2 .. " comes after `fill_`")
end

function TestDefaultStream.test_its_wait_for_an_idle_event_is_behind_a_blocking_stream()
  local blocking, default, x = with_barrier()
  local second, wait = mr.stream{name = "second", nonblocking = false}, nil
  local idle = mr.stream{name = "idle"}
  local result = mr.waits(function()
    local event = idle:record_event()
    assert(blocking:run(function() x:fill_(1) return x[1]:item() end) == 1) -- this makes the host wait
    default:wait_event(event) wait = line()
    second:run(function() x:add_(1) end)
  end)
  lu.assertEquals(at(result, wait).verdict, "redundant")
  lu.assertStrContains(at(result, wait).because, "`add_` at line " .. wait + 1 .. " comes after ")
end

function TestDefaultStream.test_its_query_asks_for_blocking_streams()
  local blocking, default, x = with_barrier()
  local wait
  local result = mr.waits(function()
    blocking:run(function() x:fill_(1) end)
    blocking:synchronize() wait = line()
    default:query()
  end)
  lu.assertEquals(at(result, wait).verdict, "unknown")
  lu.assertStrContains(at(result, wait).because, "may then answer no")
end

TestFree = {}

-- cudaFree may wait for the device.
function TestFree.test_a_free_at_once_may_make_the_host_wait()
  local compute, copy = mr.stream{name = "compute"}, mr.stream{name = "copy"}
  local x, host = mr.zeros(4, {name = "x"}), mr.zeros(4, {device = "cpu", pinned = true, name = "host"})
  local spare = mr.zeros(4)
  mr.synchronize()
  local wait
  local result = mr.waits(function()
    compute:run(function() host:copy_(x, {non_blocking = true}) end)
    copy:wait_stream(compute) wait = line()
    compute:synchronize()
    spare:free{sync = true}
    host[1] = 2
  end)
  lu.assertStrContains(at(result, wait).because, "the host's `fill_` at line " .. wait + 3 .. " comes after `copy_`")
end

os.exit(lu.LuaUnit.run())
