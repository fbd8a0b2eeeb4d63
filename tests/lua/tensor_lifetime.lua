-- Who holds memory, and when it goes: free, <close>, the collector, record_stream, mr.memory.
local lu = require "luaunit"
local mr = require "millrace"
local naive = require "lua.support.naive"

local function collect()
  collectgarbage()
  collectgarbage()
end

local function live() return mr.memory.stats().live end

TestFree = {}

function TestFree:setUp()
  collect()
  mr.synchronize()
  self.before = live()
end

function TestFree:tearDown()
  collect()
  mr.synchronize()
  lu.assertEquals(live(), self.before)
end

function TestFree:test_free_gives_memory_back_at_once()
  local t = mr.zeros(1000)
  lu.assertEquals(live(), self.before + 4000)
  t:free()
  lu.assertEquals(live(), self.before)
end

function TestFree:test_free_on_a_stream_and_synchronously()
  local s = mr.stream()
  for _, options in ipairs { { stream = s }, { sync = true }, {} } do
    local x = mr.zeros(1000)
    mr.synchronize()
    x:free(options)
  end
  naive.assert_raises("not both", function() mr.zeros(4):free({ stream = s, sync = true }) end)
end

function TestFree:test_free_with_views()
  local t = mr.zeros(10, 10)
  local v = t[3]
  v:free()
  naive.assert_raises("freed", function() return t:sum() end)
end

function TestFree:test_close()
  do
    local t <close> = mr.zeros(1000)
    lu.assertEquals(t:sum():item(), 0)
  end
  collect()
  lu.assertEquals(live(), self.before)
  do
    local t <close> = mr.zeros(1000)
    t:free()
  end
  lu.assertEquals(live(), self.before)
end

function TestFree:test_close_keeps_memory_that_a_view_still_shows()
  local row
  do
    local t <close> = mr.ones(10, 10)
    row = t[1]
  end
  lu.assertEquals(row:sum():item(), 10)
end

function TestFree:test_the_collector_frees()
  for _ = 1, 100 do mr.zeros(1000) end
  collect()
  lu.assertEquals(live(), self.before)
end

function TestFree:test_views_keep_the_memory()
  local v = mr.ones(10, 10)[2]
  collect()
  lu.assertEquals(v:totable(), { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 })
end

function TestFree:test_memory_that_lua_does_not_see_is_collected_in_time()
  -- On a GPU, garbage may take a 32nd of the memory.
  local peak, most = 0, math.max(10 * (64 << 20), mr.device(0).total_memory // 32) + 10 * (64 << 20)
  if mr.backend == "virtual" then most = 20 * (64 << 20) end
  for _ = 1, 2 * most // (64 << 20) do
    mr.empty(16 << 20)
    peak = math.max(peak, live() - self.before)
  end
  lu.assertTrue(peak < most, "live memory went up to " .. peak)
end

function TestFree:test_record_stream()
  local s = mr.stream()
  local t = mr.zeros(100)
  lu.assertIs(t:record_stream(s), t)
  t:record_stream(s):record_stream(mr.default_stream())
  lu.assertIs(mr.zeros(2, { device = "cpu" }):record_stream(s).device, "cpu")
end

function TestFree:test_metatables_are_locked()
  lu.assertEquals(getmetatable(mr.zeros(1)), "millrace.tensor")
  lu.assertFalse(pcall(setmetatable, mr.zeros(1), {}))
end

function TestFree:test_closing_in_a_finalizer_in_the_middle_of_a_call()
  for _ = 1, 200 do
    local t = mr.ones(4)
    setmetatable({}, { __gc = function() local _ <close> = t end })
    collectgarbage("step")
    pcall(function() return t + t, t:sum(), t:view(2, 2), t[1], t:clone() end)
  end
end

TestMemory = {}

function TestMemory:test_stats()
  collect()
  local t = mr.zeros(1000)
  local all, one = mr.memory.stats(), mr.memory.stats(0)
  lu.assertEquals(all.live, one.live)
  lu.assertEquals(#all.devices, mr.device_count())
  lu.assertEquals(all.devices[1].live, one.live)
  lu.assertTrue(all.peak >= all.live and all.reserved >= all.live)
  lu.assertEquals(mr.memory.allocated(), all.live)
  lu.assertEquals(mr.memory.allocated(0), all.live)
  lu.assertEquals(mr.memory.reserved(), all.reserved)
  lu.assertEquals(mr.memory.max_allocated(mr.device(0)), all.peak)
  local host = mr.zeros(1000, { device = "cpu" })
  lu.assertEquals(mr.memory.stats().host.live, all.host.live + 4000)
  lu.assertEquals(mr.memory.stats().host.allocations, all.host.allocations + 1)
  lu.assertEquals({ t.nbytes, host.nbytes }, { 4000, 4000 })
  t:free()
  mr.synchronize()
  mr.memory.empty_cache()
  mr.memory.empty_cache(0)
  lu.assertEquals(mr.memory.allocated(), all.live - 4000)
end

function TestMemory:test_out_of_memory_leaves_everything_usable()
  collect()
  local before = live()
  local total = mr.device(0).total_memory
  local ok, err = pcall(mr.empty, total // 2, { dtype = "i32" })
  lu.assertFalse(ok)
  lu.assertEquals(err.code, "out-of-memory")
  lu.assertEquals({ err.op, err.stream }, { "empty", "default" })
  lu.assertStrMatches(err.where, ".*tensor_lifetime%.lua:%d+")
  lu.assertEquals(live(), before)
  lu.assertEquals(mr.ones(3):sum():item(), 3)
end

os.exit(lu.LuaUnit.run())
