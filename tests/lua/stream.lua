-- Streams as scripts see them: identity, properties, order, closing, what is current.
local lu = require "luaunit"
local mr = require "millrace"

TestStream = {}

function TestStream:test_the_same_stream_is_the_same_value()
  local s = mr.stream()
  mr.set_stream(s)
  lu.assertTrue(rawequal(mr.current_stream(), s))
  lu.assertEquals(mr.current_stream(), s)
  lu.assertNotEquals(mr.stream(), s)
  mr.set_stream(mr.default_stream())
  lu.assertTrue(rawequal(mr.default_stream(), mr.current_stream()))
end

function TestStream:test_properties()
  local s = mr.stream{name = "copy", priority = -100, nonblocking = false}
  local least, greatest = mr.priority_range()
  lu.assertTrue(greatest <= least)
  lu.assertEquals(s.priority, greatest)
  lu.assertEquals(mr.stream{priority = 100}.priority, least)
  lu.assertEquals(s.name, "copy")
  lu.assertFalse(s.nonblocking)
  lu.assertTrue(mr.stream().nonblocking)
  lu.assertTrue(rawequal(s.device, mr.current_device()))
  lu.assertEquals(tostring(s), "stream `copy`")
  lu.assertStrContains(tostring(mr.stream()), "stream #")
  lu.assertStrContains(tostring(mr.default_stream()), "the default stream") -- of several devices: with a number
  lu.assertNil(mr.stream().name)
  lu.assertEquals(mr.default_stream().name, "default")
  lu.assertEquals(mr.per_thread_stream().name, "per-thread")
  lu.assertNotEquals(mr.stream().id, s.id)
end

-- In turn, as torch.cuda.Stream() returns them.
function TestStream:test_a_pool_of_32()
  local streams, seen = {}, {}
  for i = 1, 32 do
    streams[i] = mr.stream{pool = true}
    lu.assertNil(seen[streams[i]])
    seen[streams[i]] = true
  end
  for i = 1, 40 do lu.assertTrue(rawequal(mr.stream{pool = true}, streams[(i - 1) % 32 + 1])) end
  lu.assertNil(seen[mr.stream()])
  local _, greatest = mr.priority_range()
  local high = mr.stream{pool = true, priority = greatest}
  lu.assertNil(seen[high]) -- a pool of its own
  lu.assertEquals(high.priority, greatest)
  for _ = 1, 31 do lu.assertFalse(rawequal(mr.stream{pool = true, priority = -1000}, high)) end
  lu.assertTrue(rawequal(mr.stream{pool = true, priority = -1000}, high)) -- clamped to the same
  lu.assertNil(seen[mr.stream{pool = true, nonblocking = false}])
  lu.assertErrorMsgContains("a stream of the pool has no name", mr.stream, { pool = true, name = "s" })
  lu.assertErrorMsgContains("pool", mr.stream, { pool = 1 })
end

-- Two streams of the pool are one in the 33rd call: work that nothing orders is in order then.
function TestStream:test_streams_of_a_pool_wait_for_their_own_work()
  local first, other
  local function next_one() return mr.stream{pool = true, nonblocking = false, priority = -1} end
  for _ = 1, 32 do next_one() end -- a GPU may finish all work before it makes a stream
  first = next_one()
  mr.spin{ms = 500, stream = first}
  for _ = 1, 32 do other = next_one() end
  lu.assertTrue(rawequal(other, first))
  lu.assertFalse(other:query())
  other:synchronize()
end

function TestStream:test_a_closed_stream_of_a_pool_is_made_anew()
  local kind = { pool = true, nonblocking = false }
  local first = mr.stream(kind)
  first:close()
  for _ = 1, 31 do mr.stream(kind) end
  local again = mr.stream(kind)
  lu.assertTrue(again:query())
  mr.reset()
  lu.assertTrue(mr.stream(kind):query())
  collectgarbage()
  lu.assertTrue(mr.stream{pool = true}:query())
end

function TestStream:test_query_and_synchronize()
  local s = mr.stream()
  lu.assertTrue(s:query())
  mr.spin{ms = 5, stream = s}
  lu.assertFalse(s:query())
  s:synchronize()
  lu.assertTrue(s:query())
end

function TestStream:test_wait_takes_events_and_streams()
  local a, b = mr.stream(), mr.stream()
  local done = mr.event{timing = true}
  local began = a:record_event(mr.event{timing = true})
  mr.spin{ms = 5, stream = a}
  b:wait(a)
  b:record_event(done)
  done:synchronize()
  lu.assertTrue(done - began >= 4.9)
  mr.spin{ms = 5, stream = a}
  b:wait(a:record_event())
  b:record_event(done)
  done:synchronize()
  lu.assertTrue(done - began >= 9.8)
  lu.assertErrorMsgContains("expected an event or a stream", function() b:wait(3) end)
end

-- A second stream would not be waited for.
function TestStream:test_a_wait_takes_one_thing()
  local a, b, c = mr.stream(), mr.stream(), mr.stream()
  lu.assertErrorMsgContains("wait_stream: too many arguments: expected s:wait_stream(other", a.wait_stream, a, b, c)
  lu.assertErrorMsgContains("wait: too many arguments", a.wait, a, b, c)
  lu.assertErrorMsgContains("wait_event: too many arguments", a.wait_event, a, b:record_event(), {}, c)
  a:wait_stream(b, nil)
end

function TestStream:test_barrier_joins_all()
  local streams, ends = {}, {}
  for i = 1, 4 do streams[i] = mr.stream() end
  local began = streams[1]:record_event(mr.event{timing = true})
  mr.spin{ms = 8, stream = streams[3]}
  mr.barrier(streams)
  for i, s in ipairs(streams) do ends[i] = s:record_event(mr.event{timing = true}) end
  mr.synchronize()
  for i = 1, 4 do lu.assertTrue(ends[i] - began >= 7.9) end
  lu.assertErrorMsgContains("entry 2", function() mr.barrier{streams[1], 7} end)
end

function TestStream:test_closing()
  local s = mr.stream{name = "short"}
  local x = mr.zeros(4)
  mr.synchronize()
  mr.spin{ms = 5, stream = s}
  s:run(function() x:fill_(3) end)
  local before = mr.clock()
  s:close()
  lu.assertTrue(mr.clock() - before < 1)
  s:close()
  for _, use in ipairs{
    function() s:synchronize() end, function() s:query() end, function() s:record_event() end,
    function() mr.set_stream(s) end, function() s:run(print) end, function() mr.stream():wait(s) end,
  } do
    local ok, err = pcall(use)
    lu.assertFalse(ok)
    lu.assertStrContains(tostring(err), "stream `short` is closed")
    lu.assertEquals(err.code, "invalid-handle")
  end
  mr.synchronize()
  lu.assertEquals(x:sum():item(), 12)
  lu.assertErrorMsgContains("stays open", function() mr.default_stream():close() end)
end

function TestStream:test_a_closed_current_stream_gives_way()
  local s = mr.stream()
  mr.set_stream(s)
  s:close()
  lu.assertEquals(mr.current_stream(), mr.default_stream())
end

function TestStream:test_close_variable()
  local kept
  do
    local s <close> = mr.stream()
    kept = s
  end
  lu.assertTrue(kept.closed)
end

function TestStream:test_host_functions_run_in_order()
  local s, seen = mr.stream(), {}
  local x = mr.zeros(8, {pinned = true, device = "cpu"})
  local zero = x[1]:item()
  s:host_func(function() seen[#seen + 1] = "first" end)
  mr.op{name = "write", writes = {x}, ms = 1, stream = s}
  s:host_func(function() seen[#seen + 1] = x[1]:item() ~= zero end)
  if mr.backend == "virtual" then lu.assertEquals(seen, {}) end -- a real device goes on by itself
  s:synchronize()
  lu.assertEquals(seen, {"first", true})
end

function TestStream:test_a_host_function_may_not_use_the_device()
  local s, code = mr.stream(), nil
  s:host_func(function()
    local ok, err = pcall(mr.zeros, 3)
    code = not ok and err.code
  end)
  s:synchronize()
  lu.assertEquals(code, "not-permitted")
end

function TestStream:test_a_failing_host_function_raises_at_the_wait()
  local s = mr.stream()
  s:host_func(function() error("broken on purpose") end)
  local ok, err = pcall(s.synchronize, s)
  lu.assertFalse(ok)
  lu.assertEquals(err.code, "host-function")
  lu.assertStrContains(tostring(err), "broken on purpose")
  s:synchronize()
end

function TestStream:test_host_functions_drop_tensors_safely()
  local s = mr.stream()
  local kept = {mr.zeros(100)}
  local before = mr.memory.stats().live
  s:host_func(function() table.remove(kept); collectgarbage() end)
  s:synchronize()
  lu.assertTrue(mr.memory.stats().live < before)
end

function TestStream:test_bad_arguments()
  local s = mr.stream()
  lu.assertErrorMsgContains("did you mean `priority`", function() mr.stream{priorty = 1} end)
  lu.assertErrorMsgContains("option `name`", function() mr.stream{name = 3} end)
  lu.assertErrorMsgContains("NUL", function() mr.stream{name = "a\0b"} end)
  lu.assertErrorMsgContains("did you mean `synchronize`", function() s:synchronise() end)
  lu.assertErrorMsgContains("no fields that can be assigned", function() s.name = "x" end)
  lu.assertErrorMsgContains("expected an event, got a stream: did you mean wait_stream?",
    function() s:wait_event(s) end)
  lu.assertErrorMsgContains("expected a stream, got an event: did you mean wait_event?",
    function() s:wait_stream(mr.event()) end)
  lu.assertErrorMsgContains("expected a function", function() s:run(nil) end)
  lu.assertErrorMsgContains("expected a function", function() s:host_func(3) end)
  lu.assertError(function() s.wait_event() end)
  lu.assertEquals(getmetatable(s), "millrace.stream")
end

TestCurrent = {}

function TestCurrent:tearDown() mr.set_stream(mr.default_stream()) end

function TestCurrent:test_with_restores_also_on_error()
  local s = mr.stream()
  local a, b, c = mr.with(s, function(...)
    lu.assertEquals(mr.current_stream(), s)
    return ..., nil
  end, 1, 2, 3)
  lu.assertEquals({a, b, c}, {1, nil, nil})
  lu.assertEquals(select("#", mr.with(s, function() return nil, nil end)), 2)
  lu.assertEquals(mr.current_stream(), mr.default_stream())
  local marker = {}
  local ok, err = pcall(mr.with, s, function() error(marker) end)
  lu.assertFalse(ok)
  lu.assertTrue(rawequal(err, marker))
  lu.assertEquals(mr.current_stream(), mr.default_stream())
end

function TestCurrent:test_with_waits_for_nothing()
  local s = mr.stream()
  local before = mr.clock()
  s:run(function() mr.spin{ms = 50} end)
  lu.assertTrue(mr.clock() - before < 25)
  lu.assertFalse(s:query())
  s:synchronize()
end

function TestCurrent:test_scope()
  local s, t = mr.stream(), mr.stream()
  do
    local _ <close> = s:scope()
    lu.assertEquals(mr.current_stream(), s)
    do
      local _ <close> = t:scope()
      lu.assertEquals(mr.current_stream(), t)
    end
    lu.assertEquals(mr.current_stream(), s)
  end
  lu.assertEquals(mr.current_stream(), mr.default_stream())
  local ok = pcall(function()
    local _ <close> = s:scope()
    error "out"
  end)
  lu.assertFalse(ok)
  lu.assertEquals(mr.current_stream(), mr.default_stream())
end

function TestCurrent:test_a_stream_closed_inside_its_scope()
  local s = mr.stream()
  s:run(function() s:close() end)
  lu.assertEquals(mr.current_stream(), mr.default_stream())
  local outer = mr.stream()
  outer:run(function()
    s = mr.stream()
    s:run(function() outer:close() end)
    lu.assertEquals(mr.current_stream(), mr.default_stream(), "the stream to go back to is closed")
  end)
  lu.assertEquals(mr.current_stream(), mr.default_stream())
  local a, b, c = mr.stream(), mr.stream(), mr.stream()
  mr.with(a, function()
    local _ <close> = b:scope()
    mr.with(c, function() b:close() end)
    lu.assertEquals(mr.current_stream(), mr.default_stream())
    lu.assertError(function() mr.with(c, function() a:close() error "out" end) end)
    lu.assertEquals(mr.current_stream(), mr.default_stream())
  end)
  lu.assertEquals(mr.current_stream(), mr.default_stream())
end

os.exit(lu.LuaUnit.run())
