-- Advice that can be followed: a line is called superfluous only if it was at every occurrence, and not if it
-- orders something beside its purpose. (Random programs: tests/c/test_hazard_advice.c.)
local lu = require "luaunit"
local mr = require "millrace"
local support = require "lua.support.hazard"

local fresh = support.fresh

local function advice_of(fn)
  local kinds, reports = support.advice_of(fn)
  lu.assertEquals(#reports, 0)
  return kinds
end

local function pinned() return mr.zeros(64, {device = "cpu", pinned = true}) end

TestAdvice = { setUp = fresh, tearDown = fresh }

function TestAdvice.test_a_wait_that_is_needed_in_later_rounds()
  local a, b, free = mr.stream(), mr.stream(), mr.event()
  local x = mr.zeros(64)
  mr.synchronize()
  lu.assertEquals(advice_of(function()
    for _ = 1, 3 do
      a:wait_event(free) -- in the first round never recorded
      mr.op{name = "fill", writes = {x}, stream = a}
      b:wait_stream(a)
      mr.op{name = "use", reads = {x}, stream = b}
      free:record(b) -- the last one is used by nobody
    end
  end), {})
end

function TestAdvice.test_a_wait_that_is_superfluous_in_every_round_is_one_piece_of_advice()
  local a, b = mr.stream(), mr.stream()
  lu.assertEquals(advice_of(function()
    for _ = 1, 3 do
      mr.op{name = "w", stream = a}
      local e = a:record_event()
      b:wait_event(e)
      b:wait_event(e)
    end
  end), { "redundant-wait" })
  lu.assertEquals(mr.hazard.advice()[1].count, 3)
end

function TestAdvice.test_advice_is_taken_back_when_the_line_turns_out_to_be_needed()
  local a, b = mr.stream(), mr.stream()
  local late = mr.event()
  local function wait() b:wait_event(late) end
  lu.assertEquals(advice_of(wait), { "never-recorded-wait" })
  mr.op{name = "w", stream = a}
  late:record(a)
  wait()
  mr.op{name = "use", stream = b}
  lu.assertEquals(#mr.hazard.advice(), 0)
end

function TestAdvice.test_a_command_of_the_default_stream_is_a_barrier_for_blocking_streams()
  local a, b = mr.stream{nonblocking = false}, mr.stream{nonblocking = false}
  local e = mr.stream():record_event()
  local x = mr.zeros(64)
  mr.synchronize()
  lu.assertEquals(advice_of(function()
    mr.op{name = "first", writes = {x}, stream = a}
    mr.default_stream():wait_event(e)
    mr.op{name = "second", writes = {x}, stream = b}
    mr.event():record(mr.default_stream())
    mr.op{name = "third", writes = {x}, stream = a}
  end), {})
end

function TestAdvice.test_a_free_relies_on_a_device_synchronise()
  local a, b = mr.stream(), mr.stream()
  local p, t = pinned(), mr.ones(64, {stream = a})
  mr.synchronize()
  lu.assertEquals(advice_of(function()
    mr.op{name = "w", writes = {p}, stream = a}
    mr.op{name = "w", writes = {t}, stream = b}
    mr.synchronize()
    local _ = p[1]:item()
    t:free()
    mr.synchronize()
  end), {})
end

function TestAdvice.test_what_the_history_gives_up_relied_on_it_too()
  local a, b = mr.stream(), mr.stream()
  local p, x = pinned(), mr.zeros(64)
  mr.synchronize()
  lu.assertEquals(advice_of(function()
    mr.op{name = "w", writes = {p}, stream = a}
    for i = 1, 8 do mr.op{name = "w", writes = {x[i]}, stream = b} end
    mr.synchronize()
    local _ = p[1]:item()
    for i = 20, 50 do mr.op{name = "w", writes = {x[i]}, stream = a} end
    mr.op{name = "w", writes = {x[1]}, stream = a}
    mr.synchronize()
  end), {})
end

function TestAdvice.test_an_allocation_relies_on_it_too()
  local a, b = mr.stream(), mr.stream()
  local p = pinned()
  mr.synchronize()
  lu.assertEquals(advice_of(function()
    mr.op{name = "w", writes = {p}, stream = a}
    mr.op{name = "busy", stream = b}
    local t = mr.empty(64, {stream = b})
    mr.synchronize()
    local _ = p[1]:item()
    mr.op{name = "w", writes = {t}, stream = a}
    mr.synchronize()
  end), {})
end

function TestAdvice.test_a_read_that_takes_another_one_s_place_relies_on_it()
  local a, b = mr.stream(), mr.stream()
  local p, x = pinned(), mr.zeros(64)
  mr.synchronize()
  lu.assertEquals(advice_of(function()
    mr.op{name = "w", writes = {p}, stream = a}
    mr.op{name = "r", reads = {x}, stream = b}
    mr.synchronize()
    local _ = p[1]:item()
    mr.op{name = "r", reads = {x}, stream = a}
    mr.op{name = "w", writes = {x}, stream = a}
    mr.synchronize()
  end), {})
end

local function texts_of(fn)
  local texts = {}
  advice_of(fn)
  for i, r in ipairs(mr.hazard.advice()) do texts[i] = r.kind .. ": " .. r.why end
  return texts
end

function TestAdvice.test_a_wait_for_a_stream_that_has_done_nothing_since()
  local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
  local texts = texts_of(function()
    mr.op{name = "w", stream = a}
    b:wait_stream(a)
    b:wait_stream(a)
    mr.op{name = "use", stream = b}
  end)
  lu.assertEquals(texts, {
    "redundant-wait: the wait has no effect: b already comes after all that a has done by then." })
end

function TestAdvice.test_a_barrier_of_streams_that_have_done_nothing()
  local a, b, c = mr.stream(), mr.stream(), mr.stream()
  local texts = texts_of(function()
    mr.barrier{c, a, b}
    for _, s in ipairs { a, b, c } do mr.op{name = "w", stream = s} end
    mr.barrier{a, b, c}
    for _, s in ipairs { a, b, c } do mr.op{name = "use", stream = s} end
  end)
  lu.assertEquals(#texts, 1)
  lu.assertStrContains(texts[1], "redundant-wait: the barrier has no effect")
end

function TestAdvice.test_a_barrier_behind_a_barrier()
  local a, b, c = mr.stream(), mr.stream(), mr.stream()
  local function work(...) for _, s in ipairs { ... } do mr.op{name = "w", stream = s} end end
  local function texts_with(second, between)
    return texts_of(function()
      work(a, b, c)
      mr.barrier{a, b, c}
      if between then between() end
      second()
      work(a, b, c)
    end)
  end
  for _, second in ipairs { -- a line each, since a line is judged by all the times that it ran
    function() mr.barrier{a, b, c} end,
    function() mr.barrier{c, b, a} end,
    function() mr.barrier{b, c} end,
  } do
    local texts = texts_with(second)
    lu.assertEquals(#texts, 1)
    lu.assertStrContains(texts[1], "redundant-wait: the barrier has no effect")
    lu.assertEquals(texts_with(second, function() work(b) end), {})
  end
  local texts = texts_with(function() b:wait_stream(c) end)
  lu.assertEquals(#texts, 1)
  lu.assertStrContains(texts[1], "already comes after all that")
end

function TestAdvice.test_a_stream_that_does_nothing_after_its_wait()
  local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
  local function wait()
    mr.op{name = "w", stream = a}
    b:wait_stream(a)
  end
  lu.assertEquals(texts_of(wait), { "redundant-wait: the wait has no effect: b does nothing after it." })
  -- A stream that waits for b, and memory that b is said to use, come after a, too.
  local c = mr.stream{name = "c"}
  for _, use in ipairs { function() b:synchronize() end, function() c:wait_stream(b) mr.op{stream = c} end,
                         function() mr.op{stream = b} end } do
    for _, text in ipairs(texts_of(function() wait() use() end)) do
      lu.assertNotStrContains(text, "b does nothing")
    end
  end
  local texts = texts_of(function()
    local x = mr.zeros(64, {stream = a})
    mr.op{name = "w", stream = b, writes = {}}
    b:wait_stream(a)
    x:record_stream(b)
    x:free()
  end)
  lu.assertEquals(texts, { "redundant-wait: the wait has no effect: b does nothing after it." })
end

function TestAdvice.test_synchronises_in_a_row()
  local s = mr.stream()
  local texts = texts_of(function()
    mr.op{name = "w", stream = s}
    s:synchronize()
    s:synchronize()
    mr.synchronize()
    local e = mr.event{timing = true}:record(s)
    s:synchronize() -- for the time
    lu.assertTrue(e:query())
  end)
  lu.assertEquals(#texts, 2)
  for _, text in ipairs(texts) do lu.assertStrContains(text, "redundant-synchronize") end
end

function TestAdvice.test_a_copy_s_own_synchronise_is_not_the_script_s()
  lu.assertEquals(texts_of(function()
    local x = mr.zeros(4)
    local _ = x:sum():item()
    local _ = x:cpu()
    local _ = x:cpu()
  end), {})
end

-- Records and waits inside a launch are on no line that could go; the script's own lines are judged as before.
function TestAdvice.test_launches_of_graphs()
  local a, b = mr.stream(), mr.stream()
  local x = mr.zeros(4)
  mr.synchronize()
  local function program(twice)
    return function()
      local g = mr.graph(function() x:add_(1) end)
      g:launch(a)
      b:wait_stream(a)
      if twice then b:wait_stream(a) end
      g:launch(b)
      b:synchronize()
      local h, y = mr.graph(function() return x:add(1):mul(2) end)
      h:launch(b)
      b:synchronize()
      lu.assertEquals(y[1]:item() % 2, 0.0)
      h = mr.graph(function() return x:add(1) end) -- never launched
      h:close()
      collectgarbage()
    end
  end
  lu.assertEquals(advice_of(program(false)), {})
  lu.assertEquals(advice_of(program(true)), {"redundant-wait"})
end

-- R39: beside a capture on a non-blocking stream the default stream goes on, which is seldom what was meant.
function TestAdvice.test_work_of_the_default_stream_during_a_capture()
  local s, x = mr.stream{name = "s"}, mr.zeros(4)
  mr.synchronize()
  lu.assertEquals(advice_of(function()
    mr.graph.begin(s)
    for _ = 1, 2 do x:add_(1) end
    mr.graph.finish(s)
  end), { "uncaptured-work" })
  local advice = mr.hazard.advice()[1]
  lu.assertEquals(advice.count, 2)
  lu.assertStrContains(advice.why, "stream `s` captures (since ")
end

function TestAdvice.test_captures_without_work_of_the_default_stream()
  local s, t, x = mr.stream(), mr.stream(), mr.zeros(4)
  mr.synchronize()
  lu.assertEquals(advice_of(function()
    local step = mr.graph.auto(function() x:add_(1) end)
    for _ = 1, 3 do step() end
    mr.synchronize()
    mr.graph(function() x:add_(1) end):launch()
    mr.synchronize()
    mr.graph.begin(s)
    t:run(function() mr.spin{ms = 0.01} end)
    mr.graph.finish(s)
  end), {})
end

-- R63: nothing of a group is submitted before its end.
function TestAdvice.test_waits_in_a_group_of_collectives()
  local comm = mr.nccl.comms{ 0 }[1]
  local s, other = mr.stream{ name = "s" }, mr.stream()
  local x, y = mr.ones(4), mr.ones(4)
  mr.synchronize()
  local function group(wait)
    return function()
      mr.nccl.group(function()
        comm:all_reduce(x, { stream = s })
        if wait then wait() end
      end)
      s:synchronize()
    end
  end
  lu.assertEquals(advice_of(group()), {})
  for _, wait in ipairs{ function() s:synchronize() end, function() mr.synchronize() end } do
    lu.assertEquals(advice_of(group(wait)), { "wait-in-group" })
    local advice = mr.hazard.advice()[1]
    lu.assertStrContains(advice.second.where, "hazard_advice.lua:")
    lu.assertStrMatches(advice.why, ".*nothing of the group is submitted before it ends: `all_reduce` "
      .. "%(hazard_advice%.lua:%d+%) comes after this wait %(R63%).*")
  end
  -- A wait for something else.
  fresh()
  lu.assertEquals(advice_of(group(function()
    other:run(function() y:add_(1) end)
    other:synchronize()
    y:cpu()
  end)), {})
end

os.exit(lu.LuaUnit.run())
