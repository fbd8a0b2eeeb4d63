-- Backward on the streams of forward: its order, the races that the checker names, and equal bits with any streams and
-- schedules.
-- virtual only: schedules are explored on the virtual GPU
-- not replayed: schedules are explored, by a chooser that no name tells
local lu = require "luaunit"
local mr = require "millrace"
local unchecked = require "lua.support.unchecked"

local N = 257

local function leaf(name, value)
  local t = mr.full({ N }, value):requires_grad_()
  t:name(name)
  return t
end

-- Two branches on the streams a and b, joined on the stream that is current.
local function two_branches(a, b, x, w, v)
  local main = mr.current_stream()
  a:wait_stream(main)
  b:wait_stream(main)
  local left = a:run(function()
    mr.spin { ms = 0.05 }
    return (x * w):tanh() * w
  end)
  local right = b:run(function()
    mr.spin { ms = 0.1 }
    return (x * v + w):sigmoid()
  end)
  main:wait_stream(a)
  main:wait_stream(b)
  left:record_stream(main)
  right:record_stream(main)
  return (left * right):sum()
end

local function reports_of(fn)
  local reports = mr.hazard.check(fn)
  mr.synchronize()
  return reports
end

local function expect_clean(fn)
  local reports = reports_of(fn)
  lu.assertEquals(#reports, 0, reports[1] and reports[1].message)
end

local function expect_hazard(kind, tensor, fn)
  local reports = reports_of(fn)
  lu.assertTrue(#reports >= 1, "no hazard")
  lu.assertEquals(reports[1].kind, kind, reports[1].message)
  if tensor then lu.assertStrContains(reports[1].message, tensor) end
end

TestStreams = {}

function TestStreams.setUp()
  mr.set_stream(mr.default_stream())
  mr.synchronize()
end

local a, b, side = mr.stream { name = "a" }, mr.stream { name = "b" }, mr.stream { name = "side" }

-- The stream on which each operation of `fn` ran, for those that are called `name`.
local function streams_of(name, fn)
  local names = {}
  for _, span in ipairs(mr.timeline(fn).spans) do
    if span.name == name then names[#names + 1] = span.stream end
  end
  return names
end

function TestStreams.test_each_gradient_is_computed_where_its_operation_ran()
  local x, y = leaf("x", 0.5), leaf("y", 0.25)
  mr.synchronize()
  local p = a:run(function() return x:sin() end)
  local q = b:run(function() return y:sin() end)
  mr.synchronize()
  local loss = (p + q):sum()
  mr.synchronize()
  local streams = streams_of("cos", function()
    loss:backward()
    mr.synchronize()
  end)
  table.sort(streams)
  lu.assertEquals(streams, { "a", "b" })
  lu.assertEquals(tostring(mr.current_stream()), tostring(mr.default_stream()))
end

function TestStreams.test_gradients_are_ready_on_the_callers_stream()
  expect_clean(function()
    local x, w, v = leaf("x", 0.5), leaf("w", 0.25), leaf("v", 0.75)
    for _ = 1, 3 do -- the gradients add up
      two_branches(a, b, x, w, v):backward()
      local _ = x.grad + w.grad + v.grad
    end
    mr.synchronize()
  end)
end

function TestStreams.test_the_caller_may_be_on_any_stream()
  expect_clean(function()
    local x, w, v = leaf("x", 0.5), leaf("w", 0.25), leaf("v", 0.75)
    local loss = two_branches(a, b, x, w, v)
    side:wait_stream(mr.current_stream())
    side:run(function()
      loss:backward()
      local _ = w.grad:sum()
    end)
    mr.current_stream():wait_stream(side)
    local _ = w.grad:sum()
    mr.synchronize()
  end)
end

function TestStreams.test_a_gradient_read_on_another_stream_without_a_wait()
  expect_hazard("read-after-write", "w.grad", function()
    local x, w, v = leaf("x", 0.5), leaf("w", 0.25), leaf("v", 0.75)
    local loss = two_branches(a, b, x, w, v)
    loss:backward()
    side:run(function() local _ = w.grad:sum() end)
    mr.synchronize()
  end)
end

function TestStreams.test_backward_on_a_side_stream_that_nobody_waits_for()
  expect_hazard("read-after-write", "w.grad", function()
    local x, w, v = leaf("x", 0.5), leaf("w", 0.25), leaf("v", 0.75)
    local loss = two_branches(a, b, x, w, v)
    side:wait_stream(mr.current_stream())
    side:run(function() loss:backward() end)
    local _ = w.grad:sum()
    mr.synchronize()
  end)
end

function TestStreams.test_the_first_gradient_must_be_ordered_before_backward()
  local function program(wait)
    return function()
      local x = leaf("x", 0.5)
      side:wait_stream(mr.current_stream())
      local y = side:run(function() return x * x end)
      local g = mr.full({ N }, 2.0)
      g:name("g")
      side:run(function()
        if wait then side:wait_stream(mr.default_stream()) end
        g:record_stream(side)
        y:backward(g)
      end)
      mr.synchronize()
    end
  end
  expect_hazard("read-after-write", "`g`", program(false))
  expect_clean(program(true))
end

function TestStreams.test_a_step_on_another_stream_races_with_the_next_forward()
  local function step(wait)
    return function()
      local x, w = mr.full({ N }, 0.5), leaf("w", 0.25)
      for _ = 1, 2 do
        (x * w):tanh():sum():backward()
        side:wait_stream(mr.current_stream())
        side:run(function()
          mr.no_grad(function() w:sub_(w.grad * 0.1) end)
          w.grad:zero_()
        end)
        if wait then mr.current_stream():wait_stream(side) end
      end
      mr.synchronize()
    end
  end
  expect_hazard("read-after-write", "`w`", step(false))
  expect_clean(step(true))
end

function TestStreams.test_the_next_batch_must_not_overwrite_what_backward_reads()
  local function program(wait)
    return function()
      local input, w = mr.full({ N }, 0.5), leaf("w", 0.25)
      input:name("input")
      side:wait_stream(mr.current_stream())
      local loss = (input * w):sum()
      loss:backward()
      if wait then side:wait_stream(mr.current_stream()) end
      side:run(function() input:copy_(mr.ones(N)) end)
      mr.synchronize()
    end
  end
  expect_hazard("write-after-read", "`input`", program(false))
  expect_clean(program(true))
end

-- ---------------------------------------------------------------- values

local function gradients(first, second)
  mr.manual_seed(5)
  local x, w, v = mr.randn(N):requires_grad_(), mr.randn(N):requires_grad_(), mr.randn(N):requires_grad_()
  two_branches(first, second, x, w, v):backward()
  local result = { x.grad:totable(), w.grad:totable(), v.grad:totable() }
  mr.synchronize()
  return result
end

function TestStreams.test_the_same_bits_with_one_stream_and_with_several()
  local one = gradients(mr.default_stream(), mr.default_stream())
  lu.assertEquals(gradients(a, b), one)
  lu.assertEquals(gradients(b, b), one)
  lu.assertEquals(side:run(gradients, a, side), one)
  for seed = 1, 20 do
    local before = mr.machine.chooser(seed == 1 and "adversarial" or "random:" .. seed)
    local got = gradients(a, b)
    mr.machine.chooser(before)
    lu.assertEquals(got, one)
  end
end

function TestStreams.test_one_outcome_under_every_schedule()
  local r = mr.explore(function()
    local x, w = mr.full({ 4 }, 0.5):requires_grad_(), mr.full({ 4 }, 0.25):requires_grad_()
    local main = mr.current_stream()
    a:wait_stream(main)
    b:wait_stream(main)
    local p = a:run(function() return x * w end)
    local q = b:run(function() return x + w end)
    main:wait_stream(a)
    main:wait_stream(b)
    p:record_stream(main)
    q:record_stream(main)
    local loss = (p * q):sum()
    loss:backward()
    return (x.grad + w.grad):totable()
  end)
  lu.assertTrue(r.complete, r.incomplete)
  lu.assertEquals(#r.outcomes, 1)
end

function TestStreams.test_a_race_has_several_outcomes()
  local r = mr.explore(function()
    local x = mr.full({ 1 }, 0.5):requires_grad_()
    local y = x * 3
    y:backward()
    return side:run(function() return (x.grad * 1):item() end)
  end)
  lu.assertTrue(#r.outcomes > 1)
end

-- Memory that another stream has used is not given away before that stream is done.
function TestStreams.test_temporaries_are_recorded_on_the_streams_that_use_them()
  expect_clean(function()
    local w, main = leaf("w", 0.5), mr.current_stream()
    local function step()
      a:wait_stream(main)
      local p = a:run(function() return w * w end)
      main:wait_stream(a)
      p:record_stream(main);
      (p * w):sum():backward()
    end
    for _ = 1, 20 do
      step()
      collectgarbage()
    end
    mr.synchronize()
  end)
end

unchecked(TestStreams, "schedules are explored",
  "test_one_outcome_under_every_schedule", "test_a_race_has_several_outcomes")

os.exit(lu.LuaUnit.run())
