-- mr.hazard: reading bytes that nothing has written, exact to the byte; what counts as a read, and what as a write.
-- not checked: the checker is what is tested
local lu = require "luaunit"
local mr = require "millrace"
local fresh = require "lua.support.hazard".fresh

local function kinds(fn)
  local found = {}
  for i, report in ipairs(mr.hazard.check(fn)) do found[i] = report.kind end
  return found
end

local function assert_clean(fn) lu.assertEquals(kinds(fn), {}) end
local function assert_read(fn, bytes)
  local reports = mr.hazard.check(fn)
  lu.assertEquals(#reports, 1)
  lu.assertEquals({ reports[1].kind, reports[1].reason }, { "uninitialised-read", "never-written" })
  if bytes then lu.assertEquals(reports[1].bytes, bytes) end
  return reports[1]
end

TestUninitialised = { setUp = fresh, tearDown = fresh }

function TestUninitialised.test_each_memory()
  assert_read(function() mr.empty(4):sum() end, { 0, 15 })
  assert_read(function() mr.empty(4, {pinned = true}):sum() end, { 0, 15 })
  assert_read(function() mr.empty(4, {device = "cpu"}):sum() end, { 0, 15 })
  assert_read(function() mr.empty_like(mr.zeros(4)):add_(1) end, { 0, 15 })
end

function TestUninitialised.test_what_the_host_reads()
  assert_read(function() mr.empty(1):item() end)
  assert_read(function() mr.empty(3):totable() end)
  assert_clean(function() tostring(mr.empty(3)) end) -- which shows no values
  assert_read(function() mr.empty(1, {device = "cpu"}):item() end)
end

function TestUninitialised.test_values_are_written()
  assert_clean(function()
    local t = mr.tensor({ 1, 2, 3 }, {device = "cpu"})
    local all = mr.tensor { 1, 2, 3 } + mr.ones(3) + mr.arange(1, 4) + t:cuda()
    lu.assertEquals(#(all:totable()), 3)
    lu.assertEquals(t:sum():item(), 6)
    mr.cat({ mr.ones(3), mr.zeros(2) }, 1):sum()
    mr.zeros(4, 4):t():contiguous():sum()
  end)
end

function TestUninitialised.test_views_to_the_byte()
  assert_clean(function()
    local t = mr.empty(4, 4)
    t:select(2, 1):fill_(1)
    t:select(2, 3):fill_(1)
    t:select(2, 1):sum()
    t:select(2, 3):sum()
  end)
  assert_read(function()
    local t = mr.empty(4, 4)
    t:select(2, 1):fill_(1)
    t:narrow(2, 1, 2):sum()
  end, { 4, 55 })
  assert_clean(function()
    local t = mr.empty(4, 4)
    for i = 1, 4 do t:select(2, i):fill_(i) end
    t:sum()
  end)
end

function TestUninitialised.test_pages_and_their_edges()
  for _, n in ipairs { 1023, 1024, 1025, 5000 } do
    assert_clean(function()
      local t = mr.empty(n)
      t:narrow(1, 1, n - 1):fill_(1)
      t:narrow(1, 1, n - 1):sum()
      t:narrow(1, n, 1):fill_(1)
      t:sum()
    end)
    assert_read(function()
      local t = mr.empty(n)
      t:narrow(1, 1, n - 1):fill_(1)
      t:sum()
    end, { 4 * n - 4, 4 * n - 1 })
  end
end

function TestUninitialised.test_copies_hand_on()
  local source = "memory that was allocated at"
  assert_clean(function()
    local t = mr.empty(8)
    t:narrow(1, 1, 4):fill_(1)
    local c = t:clone()
    local host = mr.empty(8, {pinned = true})
    mr.memcpy(host, c)
    host:narrow(1, 1, 4):sum()
    c:to("f64"):narrow(1, 1, 4):sum()
    c:reshape(2, 4):t():contiguous():select(2, 1):sum()
    mr.cat({ c, c }, 1):narrow(1, 9, 4):sum()
  end)
  for _, copy in ipairs {
    function(t) return t:clone() end, function(t) return t:cpu() end, function(t) return t:to("f64") end,
    function(t) return mr.cat({ t, t }, 1) end, function(t) return t:reshape(2, 4):t():contiguous() end,
    function(t) return mr.zeros(8):copy_(t) end, function(t) return t:cpu():clone() end,
    function(t) local h = mr.zeros(8, {pinned = true}) mr.memcpy(h, t) return h end,
  } do
    local report = assert_read(function()
      local t = mr.empty(8)
      t:narrow(1, 1, 7):fill_(1)
      copy(t):sum()
    end)
    lu.assertStrContains(report.why, source)
  end
end

function TestUninitialised.test_a_copy_can_take_values_away()
  assert_read(function()
    local t = mr.zeros(8)
    t:narrow(1, 3, 2):copy_(mr.empty(2))
    t:sum()
  end, { 8, 15 })
end

function TestUninitialised.test_fills_and_operations_of_the_scripts_own()
  assert_clean(function()
    local a, b = mr.empty(4), mr.empty(4)
    mr.memset(a, 0)
    mr.op{name = "mine", reads = {a}, writes = {b}}
    b:sum()
  end)
  assert_read(function()
    local a, b = mr.empty(4), mr.empty(4)
    mr.op{name = "mine", reads = {a}, writes = {b}}
  end)
end

function TestUninitialised.test_a_race_is_reported_as_a_race()
  lu.assertEquals(kinds(function()
    local t, s = mr.empty(4), mr.stream()
    t:fill_(1)
    mr.with(s, function() t:sum() end)
    mr.synchronize()
  end), { "read-after-write" })
end

function TestUninitialised.test_reported_once_until_made_anew()
  lu.assertEquals(#mr.hazard.check(function()
    local t = mr.empty(4)
    t:sum()
    t:mean()
  end), 1)
end

-- Whether a function has run by then is chance; what it writes is judged at its place in the order.
function TestUninitialised.test_host_functions_under_every_chooser()
  local before = mr.machine and mr.machine.chooser()
  for _, chooser in ipairs(mr.machine and { "timed", "adversarial", "random:1", "random:2" } or { false }) do
    if chooser then mr.machine.chooser(chooser) end
    assert_clean(function()
      local s, P, d = mr.stream(), mr.empty(4, {pinned = true}), mr.zeros(4)
      s:wait_stream(mr.default_stream())
      s:host_func(function() P:fill_(1) end)
      mr.memcpy_async(d, P, {stream = s})
      mr.with(s, function() d:sum() end)
      mr.synchronize()
    end)
    assert_read(function()
      local s, P, d = mr.stream(), mr.empty(4, {pinned = true}), mr.zeros(4)
      s:wait_stream(mr.default_stream())
      s:host_func(function() P:narrow(1, 1, 3):fill_(1) end)
      mr.memcpy_async(d, P, {stream = s})
      mr.with(s, function() d:sum() end)
      mr.synchronize()
    end, { 12, 15 })
    assert_read(function()
      local s, P = mr.stream(), mr.empty(4, {pinned = true})
      s:host_func(function() P:sum() end)
      mr.memset_async(P, 0, {stream = s})
      mr.synchronize()
    end)
  end
  if before then mr.machine.chooser(before) end
end

-- A read that waits for a host function holds its tensor; when the checker is switched off, that is the last holder.
function TestUninitialised.test_switching_off_with_reads_that_wait()
  if not mr.machine then lu.skip("only the virtual GPU is stepped by hand") end
  mr.machine.chooser("manual")
  mr.hazard.mode("collect")
  local s = mr.stream()
  for _ = 1, 3 do
    s:host_func(function() end)
    mr.empty(4, {pinned = true}):sum()
    collectgarbage()
    mr.hazard.mode("off")
    mr.hazard.mode("collect")
    mr.zeros(4, {pinned = true}):add_(1)
  end
  mr.hazard.mode("off")
  s:synchronize()
  mr.machine.chooser("timed")
end

function TestUninitialised.test_error_mode_refuses_the_read()
  mr.hazard.mode("error")
  local t = mr.empty(4)
  local ok, message = pcall(t.sum, t)
  lu.assertFalse(ok)
  lu.assertStrContains(tostring(message), "uninitialised-read")
  lu.assertTrue(pcall(t.fill_, t, 1))
  lu.assertEquals(t:sum():item(), 4)
end

function TestUninitialised.test_memory_of_before_counts_as_written()
  local t, host = mr.empty(4), mr.empty(4, {device = "cpu"})
  assert_clean(function() t:sum() host:sum() end)
end

os.exit(lu.LuaUnit.run())
