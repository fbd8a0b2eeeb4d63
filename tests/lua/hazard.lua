-- mr.hazard as a library: modes, reports, check, ignore, advice, why; misuse; bounds. tests/hazard/ has programs with
-- and without hazards.
-- not checked: the checker is what is tested
local lu = require "luaunit"
local mr = require "millrace"
local T = require "millrace.testing"
local support = require "lua.support.hazard"

local fresh, advice_of = support.fresh, support.advice_of

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

function TestModes.test_print_shows_the_text_of_reports()
  mr.hazard.mode("collect")
  lu.assertEquals(tostring(mr.hazard.reports()), "no reports")
  race()
  local reports = mr.hazard.reports()
  lu.assertEquals(tostring(reports[1]) .. "\n", reports[1].message)
  reports[2] = reports[1]
  lu.assertEquals(tostring(reports) .. "\n", reports[1].message:rep(2))
end

-- A script knows a graph's nodes by the streams on which they were captured.
function TestModes.test_nodes_of_a_graph_are_named_by_what_was_captured()
  local x, b = mr.zeros(16, {name = "x"}), mr.stream{name = "b"}
  local a = mr.stream{name = "a"}
  mr.synchronize()
  local function race_of(first, second)
    local r = mr.hazard.check(function()
      mr.graph(function()
        local origin = mr.current_stream()
        a:wait_stream(origin)
        b:wait_stream(origin)
        mr.with(first and a or origin, function() x:add_(1) end)
        mr.with(second and b or origin, function() x:mul_(2) end)
        origin:wait_stream(a)
        origin:wait_stream(b)
      end):launch()
      mr.synchronize()
    end)[1]
    return r.first.stream, r.second.stream, r.fix, r.message
  end
  local from, to, fix, message = race_of(true, true)
  lu.assertEquals({ from, to, fix }, { "a", "b", "b:wait_stream(a)" })
  lu.assertStrContains(message, "mul_ reads and writes x, captured on stream b at hazard.lua:")
  from, to, fix = race_of(false, true)
  lu.assertEquals({ from, to }, { "capture", "b" })
  lu.assertStrMatches(fix, "before hazard.lua:%d+ add   b:wait_stream%(origin%), where `origin` is " ..
    "mr.current_stream%(%) at the beginning of the captured function")
  from, to, fix = race_of(true, false)
  lu.assertEquals({ from, to }, { "a", "capture" })
  lu.assertEquals(fix, "mr.current_stream():wait_stream(a)")
end

function TestModes.test_error_raises_before_the_command_is_carried_out()
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

function TestModes.test_a_refused_command_leaves_no_trace()
  local x, a, b = mr.zeros(4), mr.stream(), mr.stream()
  mr.synchronize()
  mr.hazard.mode("error")
  mr.with(a, function() x:fill_(1) end)
  lu.assertError(function() mr.with(b, function() x:fill_(2) end) end)
  mr.with(a, function() x:fill_(3) end) -- only in order with a's first
  lu.assertError(function() mr.with(b, function() x:fill_(4) end) end)
end

function TestModes.test_what_was_refused_is_not_amended_nor_remembered()
  local x, a, b = mr.zeros(4, {name = "x"}), mr.stream{name = "a"}, mr.stream{name = "b"}
  mr.synchronize()
  mr.hazard.mode("error")
  mr.with(a, function() x:fill_(1) end)
  lu.assertError(function() mr.with(b, function() x:sum() end) end)
  b:wait_stream(a)
  mr.with(b, function() x:sum() end)
  local r = mr.hazard.reports()[1]
  lu.assertEquals({ r.reason, r.amended, r.count }, { "no-path", false, 1 })
  lu.assertStrContains((mr.hazard.why(r.first, r.second)), "was refused")
  lu.assertEquals(select(2, mr.hazard.summary()).hazards, 1)
end

function TestModes.test_what_was_refused_explains_nothing_in_another_mode()
  local x, a, b = mr.zeros(4, {name = "x"}), mr.stream{name = "a"}, mr.stream{name = "b"}
  mr.synchronize()
  mr.hazard.mode("error")
  mr.with(a, function() x:fill_(1) end)
  lu.assertError(function() mr.with(b, function() x:sum() end) end)
  mr.hazard.mode("collect")
  mr.with(b, function() x:mean() end)
  lu.assertEquals({ #mr.hazard.reports(), select(2, mr.hazard.summary()).follow_ups }, { 2, 0 })
end

function TestModes.test_a_free_that_was_refused_can_be_tried_again()
  local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
  mr.synchronize()
  mr.hazard.mode("error")
  local x = mr.with(a, function() return mr.ones(4) end)
  b:wait_stream(a)
  mr.with(b, function() x:sum() end)
  T.raises("hazard", x.free, x)
  lu.assertStrContains(mr.hazard.reports()[1].message, "use-after-free")
  a:wait_stream(b)
  mr.with(a, function() x:add_(1) end)
  x:free()
  lu.assertEquals(#mr.hazard.reports(), 1)
end

-- Each race is of another kind, and one wait orders them: the second time, too.
function TestModes.test_an_error_names_all_tensors_of_the_command()
  local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
  local x, y, z = mr.zeros(4, {name = "x"}), mr.zeros(4, {name = "y"}), mr.zeros(4, {name = "z"})
  mr.synchronize()
  mr.hazard.mode("error")
  mr.op{name = "first", writes = {x, z}, reads = {y}, stream = a}
  for _ = 1, 2 do
    local err = T.raises("hazard", mr.op, {name = "second", reads = {x}, writes = {y, z}, stream = b})
    lu.assertStrContains(tostring(err), "read-after-write on `x`")
    lu.assertStrContains(tostring(err), "and 2 more: y, z\n")
  end
  lu.assertEquals(#mr.hazard.reports(), 1)
  lu.assertEquals(mr.hazard.reports()[1].tensors, { "x", "y", "z" })
  local _, totals = mr.hazard.summary()
  lu.assertEquals({ totals.hazards, totals.follow_ups }, { 2, 4 })
end

-- The wait for the event that there is would not order the other race. The fix that orders both is proposed.
function TestModes.test_an_error_names_only_what_its_fix_orders()
  local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
  local x, y = mr.zeros(4, {name = "x"}), mr.zeros(4, {name = "y"})
  mr.synchronize()
  mr.hazard.mode("error")
  mr.op{name = "first", writes = {x}, stream = a}
  local done = a:record_event()
  mr.op{name = "later", reads = {y}, stream = a}
  T.raises("hazard", mr.op, {name = "second", reads = {x}, writes = {y}, stream = b})
  lu.assertEquals(#mr.hazard.reports(), 1)
  lu.assertStrContains(mr.hazard.reports()[1].fix, "b:wait_stream(a)")
  lu.assertEquals(mr.hazard.reports()[1].tensors, { "y", "x" })
  done:synchronize()
  mr.synchronize() -- or the collector frees y while `later` is pending
end

function TestModes.test_an_error_at_known_places_describes_the_hazard_at_hand()
  local a, b, c = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.stream{name = "c"}
  local x, y = mr.zeros(4, {name = "x"}), mr.zeros(8, {name = "y"})
  mr.synchronize()
  mr.hazard.mode("error")
  local function bump(s, t) mr.with(s, function() t:add_(1) end) end
  local function refused(first, second, t)
    bump(first, t)
    return tostring(select(2, pcall(bump, second, t)))
  end
  lu.assertStrContains(refused(a, b, x), "on `x` (f32[4]")
  local text = refused(a, c, y)
  lu.assertStrContains(text, "on `y` (f32[8], bytes 0..31)")
  lu.assertStrContains(text, "nothing makes c wait for a")
  lu.assertEquals(#mr.hazard.reports(), 1)
  lu.assertEquals(mr.hazard.reports()[1].count, 2)
end

function TestModes.test_what_is_ignored_in_error_mode_counts_once()
  mr.hazard.ignore{ tensor = "x" }
  mr.hazard.mode("error")
  race()
  lu.assertEquals(select(2, mr.hazard.summary()).ignored, 1)
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

function TestCheck.test_why_answers_for_the_reports_of_a_check()
  local r = mr.hazard.check(race)[1]
  lu.assertEquals(mr.hazard.mode(), "off")
  local text, ordered = mr.hazard.why(r.first, r.second)
  lu.assertFalse(ordered)
  lu.assertStrContains(text, "nothing orders `first` by stream a at ")
  lu.assertStrContains(text, " before `second` by stream b at ")
end

function TestCheck.test_neither_hazards_nor_operations_of_a_check_are_in_the_summary()
  mr.hazard.mode("collect")
  mr.zeros(4)
  local before = select(2, mr.hazard.summary())
  mr.hazard.check(race, 2)
  local _, after = mr.hazard.summary()
  lu.assertTrue(after.checked_apart >= 5)
  after.checked_apart = before.checked_apart
  lu.assertEquals(after, before)
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

function TestIgnore.test_ignoring_by_a_name_as_long_as_names_can_be()
  local name = ("n"):rep(198) .. "\u{e9}"
  local x, a, b = mr.zeros(4, { name = name }), mr.stream(), mr.stream()
  mr.synchronize()
  mr.hazard.mode("collect")
  mr.hazard.ignore{ tensor = name }
  a:run(function() x:fill_(1) end)
  b:run(function() x:fill_(2) end)
  mr.synchronize()
  lu.assertEquals(select(2, mr.hazard.summary()).ignored, 1)
  lu.assertEquals(#mr.hazard.reports(), 0)
end

function TestIgnore.test_misuse()
  lu.assertErrorMsgContains("no kind", mr.hazard.ignore, { kind = "read-before-write" })
  lu.assertErrorMsgContains("expected a line number from 1", mr.hazard.ignore, { where = "hazard.lua:4294967301" })
  lu.assertErrorMsgContains("expected a line number from 1", mr.hazard.ignore, { where = "hazard.lua:0" })
  lu.assertErrorMsgContains("expected a line number from 1", mr.hazard.ignore, { where = ":99999999999999999999" })
  lu.assertErrorMsgContains("expected at least one of tensor=", mr.hazard.ignore, {})
  lu.assertError(mr.hazard.ignore, { tensr = "x" })
end

TestAdvice = {}
TestAdvice.setUp = fresh
TestAdvice.tearDown = fresh

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

function TestAdvice.test_a_record_that_nobody_waits_for_also_before_a_device_synchronise()
  local kept
  local kinds = advice_of(function()
    kept = mr.stream():record_event()
    mr.synchronize()
  end)
  kept:close()
  lu.assertEquals(kinds, { "unused-record", "redundant-synchronize" })
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
  end), { "device-synchronize", "redundant-synchronize" })
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
  lu.assertErrorMsgContains("expected", mr.hazard.why, ":" .. here + (1 << 32), r.first)
end

function TestWhy.test_it_names_streams_events_and_lines()
  local x, named, held = mr.zeros(4), mr.stream{name = "named"}, mr.stream()
  mr.synchronize()
  mr.hazard.mode("collect")
  mr.op{name = "first", writes = {x}, stream = named}
  local ready = named:record_event()
  held:wait_event(ready)
  mr.op{name = "last", writes = {x}, stream = held}
  local here = debug.getinfo(1, "l").currentline - 1
  local text, ordered = mr.hazard.why(":" .. here - 3, ":" .. here)
  lu.assertTrue(ordered)
  lu.assertStrContains(text, "`first` by stream named at ")
  lu.assertStrContains(text, "`last` by stream held at ")
  lu.assertStrContains(text, "`record_event` of event `ready` by stream named at ")
  text, ordered = mr.hazard.why(":" .. here - 2, ":" .. here - 1) -- lines of the chain itself
  lu.assertTrue(ordered)
  lu.assertStrContains(text, "`record_event` of event `ready` by stream named at ")
  lu.assertStrContains(text, "is ordered before `wait_event` of event `ready` by stream held at ")
end

-- Follow-ups are exactly the pairs that the fix orders.
TestReach = {}
TestReach.setUp = fresh
TestReach.tearDown = fresh

-- x is written, then y, in `a`, and an event recorded in the middle or behind; `b` reads x, then y. -> reports,
-- follow-ups
local function two_products(in_the_middle, times)
  local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
  local x, y = mr.zeros(4, {name = "x"}), mr.zeros(4, {name = "y"})
  mr.synchronize()
  mr.hazard.clear()
  mr.hazard.mode("collect")
  local e = mr.event()
  for _ = 1, times or 1 do
    mr.op{name = "x", writes = {x}, stream = a}
    if in_the_middle then e:record(a) end
    mr.op{name = "y", writes = {y}, stream = a}
    if not in_the_middle then e:record(a) end
    mr.op{name = "reads x", reads = {x}, stream = b}
    mr.op{name = "reads y", reads = {y}, stream = b}
    a:wait_stream(b)
  end
  return mr.hazard.reports(), select(2, mr.hazard.summary()).follow_ups
end

function TestReach.test_a_wait_for_the_stream_covers_what_was_submitted()
  local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
  local x, y = mr.zeros(4, {name = "x"}), mr.zeros(4, {name = "y"})
  mr.synchronize()
  mr.hazard.mode("collect")
  load('local mr, a, x = ... mr.op{name = "x", writes = {x}, stream = a}', "=text")(mr, a, x) -- no place for an event
  mr.op{name = "y", writes = {y}, stream = a}
  mr.op{name = "reads x", reads = {x}, stream = b}
  mr.op{name = "reads y", reads = {y}, stream = b}
  local reports = mr.hazard.reports()
  lu.assertEquals({ #reports, reports[1].fix }, { 1, "b:wait_stream(a)" })
  lu.assertEquals(select(2, mr.hazard.summary()).follow_ups, 1)
end

function TestReach.test_an_event_covers_what_was_recorded()
  local reports, follow_ups = two_products(true)
  lu.assertStrContains(reports[1].fix, "b:wait_event(e)")
  lu.assertEquals({ #reports, reports[2].tensor, follow_ups }, { 2, "y", 0 })
  reports, follow_ups = two_products(false)
  lu.assertStrContains(reports[1].fix, "b:wait_event(e)")
  lu.assertEquals({ #reports, follow_ups }, { 1, 1 })
end

function TestReach.test_in_a_loop_too()
  local reports, follow_ups = two_products(false, 3)
  lu.assertEquals({ #reports, reports[1].count, follow_ups }, { 1, 3, 3 })
  reports, follow_ups = two_products(true, 3)
  lu.assertEquals({ #reports, reports[1].count, reports[2].count, follow_ups }, { 2, 3, 3, 0 })
end

function TestReach.test_a_new_event_covers_the_first_access()
  local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
  local x, y = mr.zeros(4, {name = "x"}), mr.zeros(4, {name = "y"})
  mr.synchronize()
  mr.hazard.mode("collect")
  mr.op{name = "x", writes = {x}, stream = a}
  mr.op{name = "y", writes = {y}, stream = a}
  mr.op{name = "reads x", reads = {x}, stream = b}
  mr.op{name = "reads y", reads = {y}, stream = b}
  local reports = mr.hazard.reports()
  lu.assertStrContains(reports[1].fix, ":record_event()")
  lu.assertEquals({ #reports, reports[2].tensor }, { 2, "y" })
end

TestStreams = {}
TestStreams.setUp = fresh
TestStreams.tearDown = fresh

function TestStreams.test_a_pair_of_places_says_between_how_many_streams()
  local streams, x = {}, mr.zeros(4, {name = "x"})
  for i = 1, 30 do streams[i] = mr.stream{name = "s" .. i} end
  local function all(n)
    mr.synchronize()
    return mr.hazard.check(function()
      for i = 1, n do mr.op{name = "w", writes = {x}, stream = streams[i]} end
    end)[1]
  end
  local r = all(2)
  lu.assertEquals({ r.count, r.stream_pairs, r.amended }, { 1, 1, false })
  lu.assertNotStrContains(r.message, "other streams")
  r = all(4)
  lu.assertEquals({ r.stream_pairs, r.amended }, { r.count, true })
  lu.assertStrContains(r.message, "The same happens between other streams, too (s4 after s3)")
  lu.assertStrContains(r.message, ("): %d times so far, for %d pairs of streams. Add all lines of the fix.")
    :format(r.count, r.count))
  r = all(30)
  lu.assertEquals(r.stream_pairs, 16)
  lu.assertStrContains(r.message, "16 or more pairs of streams. Other pairs may need other fixes.")
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
