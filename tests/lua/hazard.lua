-- mr.hazard as a library: modes, reports, check, ignore, advice, why; misuse; bounds. What is and what is not
-- a hazard is in tests/hazard/.
local lu = require "luaunit"
local mr = require "millrace"
local T = require "millrace.testing"

local function fresh()
  mr.synchronize()
  mr.hazard.mode("off")
  mr.hazard.clear()
  mr.hazard.ignore()
end

-- Two streams that write one tensor with nothing between; `times` times.
local function race(times)
  local x, a, b = mr.zeros(16, {name = "x"}), mr.stream{name = "a"}, mr.stream{name = "b"}
  mr.synchronize()
  for _ = 1, times or 1 do
    mr.op{name = "first", writes = {x}, stream = a}
    mr.op{name = "second", writes = {x}, stream = b}
  end
  mr.synchronize()
end

TestModes = {}
TestModes.setUp = fresh
TestModes.tearDown = fresh

function TestModes.test_mode_returns_the_mode_of_before()
  lu.assertEquals(mr.hazard.mode(), "off")
  lu.assertEquals(mr.hazard.mode("collect"), "off")
  lu.assertEquals(mr.hazard.mode("error"), "collect")
end

function TestModes.test_unknown_mode_names_the_known_ones()
  lu.assertErrorMsgContains("collect", mr.hazard.mode, "loud")
end

function TestModes.test_off_sees_nothing()
  race()
  lu.assertEquals(#mr.hazard.reports(), 0)
end

function TestModes.test_collect_keeps_reports_until_clear()
  mr.hazard.mode("collect")
  race()
  local reports = mr.hazard.reports()
  lu.assertEquals(#reports, 1)
  local r = reports[1]
  lu.assertEquals({ r.kind, r.reason, r.tensor, r.first.stream, r.second.stream, r.first.access },
    { "write-after-write", "no-path", "x", "a", "b", "write" })
  lu.assertEquals(r.bytes, { 0, 63 })
  lu.assertStrContains(r.message, "hazard: write-after-write on `x`")
  lu.assertStrContains(r.fix, "b:wait_stream(a)")
  lu.assertStrMatches(r.first.where, ".*hazard.lua:%d+")
  mr.hazard.clear()
  lu.assertEquals(#mr.hazard.reports(), 0)
end

function TestModes.test_error_raises_before_the_action_is_carried_out()
  local x, a, b = mr.zeros(4, {name = "x"}), mr.stream(), mr.stream()
  mr.synchronize()
  mr.hazard.mode("error")
  mr.with(a, function() x:fill_(1) end)
  local err = T.raises("hazard", function() mr.with(b, function() x:fill_(2) end) end)
  lu.assertStrContains(tostring(err), "write-after-write")
  a:synchronize()
  b:synchronize()
  lu.assertEquals(mr.hazard.check(function() return x:totable() end), {})
  lu.assertEquals(x:totable(), { 1.0, 1.0, 1.0, 1.0 })
end

function TestModes.test_a_refused_action_leaves_no_trace()
  local x, a, b = mr.zeros(4), mr.stream(), mr.stream()
  mr.synchronize()
  mr.hazard.mode("error")
  mr.with(a, function() x:fill_(1) end)
  lu.assertError(function() mr.with(b, function() x:fill_(2) end) end)
  mr.with(a, function() x:fill_(3) end) -- only in order with a's first
  lu.assertError(function() mr.with(b, function() x:fill_(4) end) end)
end

function TestModes.test_switching_on_counts_earlier_work_as_ordered()
  local x, a, b = mr.zeros(4), mr.stream(), mr.stream()
  mr.synchronize()
  mr.with(a, function() x:fill_(1) end)
  mr.hazard.mode("collect")
  mr.with(b, function() x:fill_(2) end)
  lu.assertEquals(#mr.hazard.reports(), 0)
  mr.with(a, function() x:fill_(1) end)
  lu.assertEquals(#mr.hazard.reports(), 1)
end

function TestModes.test_reset_forgets_pending_work()
  local x = mr.zeros(4, {device = "cpu", pinned = true})
  mr.hazard.mode("collect")
  mr.op{name = "w", writes = {x}, stream = mr.stream()}
  mr.reset()
  x:fill_(1)
  lu.assertEquals(#mr.hazard.reports(), 0)
end

TestCheck = {}
TestCheck.setUp = fresh
TestCheck.tearDown = fresh

function TestCheck.test_check_returns_its_own_reports()
  mr.hazard.mode("collect")
  race()
  lu.assertEquals(#mr.hazard.check(race), 1)
  lu.assertEquals(#mr.hazard.reports(), 1)
  lu.assertEquals(mr.hazard.mode(), "collect")
end

function TestCheck.test_check_passes_arguments()
  local got
  mr.hazard.check(function(...) got = { ... } end, 1, "two")
  lu.assertEquals(got, { 1, "two" })
end

function TestCheck.test_an_error_inside_comes_out_and_the_mode_is_put_back()
  lu.assertErrorMsgContains("inside", mr.hazard.check, function() race() error("inside") end)
  lu.assertEquals(mr.hazard.mode(), "off")
  lu.assertEquals(#mr.hazard.reports(), 0)
end

function TestCheck.test_check_within_check_is_refused()
  lu.assertErrorMsgContains("another check", mr.hazard.check, function() mr.hazard.check(race) end)
end

function TestCheck.test_mode_inside_a_check_holds_afterwards()
  mr.hazard.check(function() mr.hazard.mode("collect") end)
  lu.assertEquals(mr.hazard.mode(), "collect")
end

function TestCheck.test_expect_hazard_and_expect_clean()
  local r = T.expect_hazard(race, { kind = "write-after-write", tensor = "x", reason = "no-path" })
  lu.assertEquals(r.count, 1)
  lu.assertErrorMsgContains("expected no hazard", T.expect_clean, race)
  lu.assertErrorMsgContains("kind=read-after-write", T.expect_hazard, race, { kind = "read-after-write" })
  T.expect_clean(function() return mr.zeros(4) end)
end

function TestCheck.test_reports_outlive_the_tensor()
  local reports = mr.hazard.check(race)
  collectgarbage() collectgarbage()
  lu.assertEquals(reports[1].tensor, "x")
end

function TestCheck.test_a_million_hazards_are_two_reports()
  local before = collectgarbage("count")
  local x, a, b = mr.zeros(1), mr.stream(), mr.stream()
  mr.synchronize()
  local n = 1000000
  local reports = mr.hazard.check(function()
    for i = 1, n do
      mr.op{name = "first", writes = {x}, stream = a}
      mr.op{name = "second", writes = {x}, stream = b}
      if i % 1000 == 0 then mr.synchronize() end
    end
  end)
  lu.assertEquals(#reports, 2)
  lu.assertEquals(reports[1].count, n)
  lu.assertTrue(collectgarbage("count") - before < 10000)
end

TestIgnore = {}
TestIgnore.setUp = fresh
TestIgnore.tearDown = fresh

function TestIgnore.test_by_tensor_kind_and_place()
  for _, rule in ipairs { { tensor = "x" }, { kind = "write-after-write" }, { where = "hazard.lua" },
    { tensor = "x", kind = "write-after-write", where = "hazard.lua" } } do
    fresh()
    mr.hazard.ignore(rule)
    lu.assertEquals(#mr.hazard.check(race), 0)
    lu.assertEquals(select(2, mr.hazard.summary()).ignored, 1)
    lu.assertStrContains((mr.hazard.summary()), "ignored 1:")
  end
end

function TestIgnore.test_what_does_not_match_is_reported()
  for _, rule in ipairs { { tensor = "y" }, { kind = "read-after-write" }, { where = "other.lua" },
    { where = "hazard.lua:1" } } do
    fresh()
    mr.hazard.ignore(rule)
    lu.assertEquals(#mr.hazard.check(race), 1)
  end
end

function TestIgnore.test_misuse()
  lu.assertErrorMsgContains("no kind", mr.hazard.ignore, { kind = "read-before-write" })
  lu.assertErrorMsgContains("nothing to match", mr.hazard.ignore, {})
  lu.assertError(mr.hazard.ignore, { tensr = "x" })
end

TestAdvice = {}
TestAdvice.setUp = fresh
function TestAdvice.tearDown()
  mr.hazard.advice(false)
  fresh()
end

local function advice_of(fn)
  mr.hazard.mode("collect")
  mr.hazard.advice()
  fn()
  local kinds = {}
  for i, r in ipairs(mr.hazard.advice()) do kinds[i] = r.kind end
  return kinds, mr.hazard.reports()
end

function TestAdvice.test_a_wait_that_adds_nothing()
  lu.assertEquals(advice_of(function()
    local a, b = mr.stream(), mr.stream()
    mr.op{name = "w", stream = a}
    local e = a:record_event()
    b:wait_event(e)
    b:wait_event(e)
  end), { "redundant-wait" })
end

function TestAdvice.test_a_wait_on_an_event_never_recorded()
  lu.assertEquals(advice_of(function() mr.stream():wait_event(mr.event()) end), { "never-recorded-wait" })
end

function TestAdvice.test_a_record_that_nobody_waits_for()
  local kept
  local kinds = advice_of(function() kept = mr.stream():record_event() end)
  kept:close()
  lu.assertEquals(kinds, { "unused-record" })
end

function TestAdvice.test_a_device_synchronise_for_one_stream()
  lu.assertEquals(advice_of(function()
    local x, y = mr.zeros(4, {device = "cpu", pinned = true}), mr.zeros(4, {device = "cpu", pinned = true})
    local a, b = mr.stream(), mr.stream()
    mr.op{name = "w", writes = {x}, stream = a}
    mr.op{name = "w", writes = {y}, stream = b}
    mr.synchronize()
    local _ = x:totable()
    mr.synchronize()
  end), { "device-synchronize" })
end

function TestAdvice.test_asynchronous_copies_of_pageable_memory()
  local kinds, reports = advice_of(function()
    local x, host = mr.zeros(4), mr.zeros(4, {device = "cpu"})
    mr.synchronize()
    mr.memcpy_async(host, x)
    local _ = host:totable()
  end)
  lu.assertEquals(kinds, { "pageable-copy", "unspecified-synchrony" })
  lu.assertEquals(#reports, 0)
end

function TestAdvice.test_nothing_unless_asked_for()
  mr.hazard.mode("collect")
  mr.stream():wait_event(mr.event())
  lu.assertEquals(#mr.hazard.advice(), 0)
end

TestWhy = {}
TestWhy.setUp = fresh
TestWhy.tearDown = fresh

function TestWhy.test_the_chain_or_that_there_is_none()
  local x, a, b = mr.zeros(4), mr.stream(), mr.stream()
  mr.synchronize()
  mr.hazard.mode("collect")
  mr.op{name = "first", writes = {x}, stream = a}
  mr.op{name = "second", writes = {x}, stream = b}
  local r = mr.hazard.reports()[1]
  local text, ordered = mr.hazard.why(r.first, r.second)
  lu.assertFalse(ordered)
  lu.assertStrContains(text, "nothing orders")
  b:wait_stream(a)
  mr.op{name = "third", writes = {x}, stream = b}
  local here = debug.getinfo(1, "l").currentline - 1
  text, ordered = mr.hazard.why(r.first, ":" .. here)
  lu.assertTrue(ordered)
  lu.assertStrContains(text, "by event")
  lu.assertErrorMsgContains("no operation", mr.hazard.why, ":1", r.first)
  lu.assertErrorMsgContains("expected", mr.hazard.why, {}, r.first)
end

TestSummary = {}
TestSummary.setUp = fresh
TestSummary.tearDown = fresh

function TestSummary.test_a_clean_run_says_what_is_proven()
  mr.hazard.mode("collect")
  mr.zeros(4):add_(1)
  lu.assertStrContains((mr.hazard.summary()), "no hazards: every legal schedule")
end

function TestSummary.test_hazards_are_counted()
  mr.hazard.mode("collect")
  race(3)
  local text, totals = mr.hazard.summary()
  lu.assertEquals(totals.hazards, 5)
  lu.assertStrContains(text, "5 hazards at 2 pairs of places")
end

TestHostFunctions = {}
TestHostFunctions.setUp = fresh
TestHostFunctions.tearDown = fresh

function TestHostFunctions.test_a_hazard_inside_a_host_function_in_error_mode()
  local x = mr.zeros(4, {device = "cpu", pinned = true})
  local a, b = mr.stream(), mr.stream()
  mr.synchronize()
  mr.hazard.mode("error")
  mr.op{name = "w", writes = {x}, stream = a}
  b:host_func(function() x:fill_(1) end)
  local ok, err = pcall(b.synchronize, b)
  lu.assertFalse(ok)
  lu.assertStrContains(tostring(err), "write-after-write")
end

os.exit(lu.LuaUnit.run())
