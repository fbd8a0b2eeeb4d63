-- mr.graph.auto: a function computes what it computes without it, whatever differs from call to call, and says why a
-- call was no launch of a graph.
local lu = require "luaunit"
local mr = require "millrace"

TestAuto = {}

local function counts(f)
  local _, c = mr.graph.why(f)
  return c
end

local function why(f)
  return (mr.graph.why(f))
end

-- ---------------------------------------------------------------- identical calls

function TestAuto.test_identical_calls_are_launches_from_the_second_on()
  local x = mr.zeros(4)
  local f = mr.graph.auto(function(...)
    x:add_(1)
    x:mul_(2)
    return ..., "out"
  end)
  lu.assertEquals(type(f), "function")
  lu.assertStrContains(why(f), "not been called")
  lu.assertEquals({f(7)}, {7, "out"})
  lu.assertStrContains(why(f), "recorded")
  lu.assertEquals(counts(f), {calls = 1, launches = 0, captures = 0, nodes = 0})
  for _ = 2, 5 do
    f()
    lu.assertNil(why(f))
  end
  lu.assertEquals(counts(f), {calls = 5, launches = 4, captures = 1, nodes = 2})
  lu.assertEquals(x[1]:item(), 62.0) -- 2 (x + 1), five times
end

function TestAuto.test_results_are_those_of_the_latest_call()
  local x = mr.ones(4)
  local f = mr.graph.auto(function()
    x:add_(1)
    local y = x * 10
    return y, y:sum()
  end)
  local first = f()
  for i = 2, 6 do
    local y, total = f()
    lu.assertEquals(y[1]:item(), 10.0 * (i + 1))
    lu.assertEquals(total:item(), 40.0 * (i + 1))
  end
  lu.assertEquals(counts(f).launches, 5)
  lu.assertEquals(first[1]:item(), 20.0) -- the first call was no launch, so its result has memory of its own
end

function TestAuto.test_a_result_of_an_earlier_call_is_an_error_and_no_wrong_value()
  local x = mr.ones(4)
  local f = mr.graph.auto(function() return x:add_(1) + 0 end)
  f()
  local second = f()
  local kept = second:clone()
  lu.assertEquals(second[1]:item(), 3.0)
  local third = f()
  lu.assertEquals(third[1]:item(), 4.0)
  lu.assertErrorMsgContains("mr.graph.auto", second.item, second)
  lu.assertErrorMsgContains("clone", function() return second + 1 end)
  lu.assertErrorMsgContains("graph_auto.lua:", function() return second:sum() end)
  lu.assertEquals(kept[1]:item(), 3.0)
end

-- ---------------------------------------------------------------- what differs

-- Calls fn with each of the values, with and without auto, and compares what it leaves in x and returns.
local function compare(fn, values)
  local function all(wrap)
    mr.manual_seed(5)
    local x = mr.arange(6, {dtype = "f32"})
    mr.synchronize()
    local call, out = wrap(fn), {}
    for i, v in ipairs(values) do
      local got = call(x, v)
      out[i] = {got and got:totable() or false, x:totable()}
    end
    return out, call
  end
  local eager = all(function(f) return f end)
  local auto, f = all(mr.graph.auto)
  lu.assertEquals(auto, eager)
  return f
end

function TestAuto.test_a_number_differs()
  local f = compare(function(x, v) x:add_(1); x:mul_(v); x:sub_(3) end, {1, 1, 1, 2, 2, 2, 3})
  lu.assertEquals(counts(f).launches, 4) -- calls 2, 3, 5, 6
  lu.assertStrContains(why(f), "submission 2")
  lu.assertStrContains(why(f), "`mul_` at ")
  lu.assertStrContains(why(f), "it was 2 ")
  lu.assertStrContains(why(f), "is 3")
end

-- What an operation takes by value, for each family of operations.
function TestAuto.test_an_argument_differs()
  local grid = mr.arange(12, {dtype = "f32"}):reshape(3, 4)
  local image, kernel = mr.arange(32, {dtype = "f32"}):reshape(1, 2, 4, 4), mr.ones(2, 2, 1, 1)
  local target, index = mr.tensor({1, 2, 3}, {dtype = "i64"}), mr.tensor({1, 2}, {dtype = "i64"})
  local bytes = mr.zeros(4, {dtype = "u8"})
  mr.synchronize()
  local cases = {
    number = function(x, v) return x:pow(v + 1) end,
    ["kind of number"] = function(x, v) return x:add(v == 1 and 1 or 1.0) end,
    value = function(x, v) return x:clone():fill_(v) end,
    arange = function(_, v) return mr.arange(v, v + 5) end,
    linspace = function(_, v) return mr.linspace(0, v, 5) end,
    uniform = function(_, v) return mr.empty(6):uniform_(0, v) end,
    normal = function(_, v) return mr.empty(6):normal_(0, v) end,
    bernoulli = function(_, v) return mr.empty(6):bernoulli_(v / 3) end,
    randint = function(_, v) return mr.randint(0, 10 * v, {6}) end,
    correction = function(x, v) return x:var{correction = v} end,
    ["a dim of softmax"] = function(_, v) return grid:softmax(v) end,
    ["a dim of a scan"] = function(_, v) return grid:cumsum(v) end,
    ["a dim of an index"] = function(_, v) return grid:index_select(v, index):sum() end,
    ["a number to scatter"] = function(x, v) return x:clone():scatter_(1, index, v) end,
    descending = function(x, v) return (x:sort{descending = v == 1}) end,
    flip = function(_, v) return grid:flip(v) end,
    shift = function(x, v) return x:roll(v, 1) end,
    diagonal = function(_, v) return grid:tril(v) end,
    ["tf32 of a product"] = function(_, v) mr.allow_tf32(v == 2) return grid:mm(grid:t()) end,
    ["tf32 of a convolution"] = function(_, v) mr.allow_tf32(v == 2) return mr.conv2d(image, kernel) end,
    window = function(_, v) return mr.max_pool2d(image, 2, {stride = 2, dilation = v}):sum() end,
    padding = function(_, v)
      return mr.avg_pool2d(image, 2, {padding = 1, count_include_pad = v == 1})
    end,
    divisor = function(_, v) return mr.avg_pool2d(image, 2, {divisor_override = v}) end,
    ["ignored target"] = function(_, v) return mr.nll_loss(grid, target, {ignore_index = v}) end,
    reduction = function(_, v) return mr.nll_loss(grid, target, {reduction = v == 1 and "mean" or "sum"}) end,
    byte = function(_, v) mr.memset_async(bytes, v) return bytes + 0 end,
    duration = function(x, v) mr.op{writes = {x}, ms = v} end,
  }
  for name, fn in pairs(cases) do
    local f = compare(fn, {1, 1, 1, 2, 2})
    lu.assertEquals(counts(f).launches, 3, name) -- calls 2, 3, 5
    mr.allow_tf32(false)
  end
end

function TestAuto.test_an_operand_differs()
  local a, b = mr.ones(6, {name = "a"}), mr.full({6}, 2.0, {name = "b"})
  local f = compare(function(x, v) x:add_(v); return x:sum() end, {a, a, b, b, b, a})
  lu.assertEquals(counts(f).launches, 3)
  lu.assertStrContains(why(f), "operand")
  lu.assertStrContains(why(f), "`b`")
  lu.assertStrContains(why(f), "`a`")
end

function TestAuto.test_a_view_differs()
  local f = compare(function(x, v) x:narrow(1, v, 2):add_(1) end, {1, 1, 1, 2, 2})
  lu.assertEquals(counts(f).launches, 3)
end

function TestAuto.test_one_more_and_one_less()
  local f = compare(function(x, v)
    x:add_(1)
    if v then x:mul_(2) end
  end, {false, false, true, true, true, false, false})
  lu.assertEquals(counts(f).launches, 4)
  f(mr.ones(6), false)
  lu.assertStrContains(why(f), "operand")
  local y = mr.ones(2)
  local n = 1
  local g = mr.graph.auto(function() for _ = 1, n do y:add_(1) end end)
  g() g() n = 2 g()
  lu.assertStrContains(why(g), "more than the 1 things")
  n = 1 g()
  lu.assertStrContains(why(g), "submits 1 things")
  lu.assertEquals(y[1]:item(), 6.0)
end

function TestAuto.test_other_sizes_of_what_it_makes()
  local f = compare(function(x, v)
    local y = mr.full({v}, 2.0)
    return x:narrow(1, 1, v) * y
  end, {2, 2, 2, 3, 3, 2, 2})
  lu.assertEquals(counts(f).launches, 4)
end

function TestAuto.test_the_current_stream_differs()
  local s, x = mr.stream{name = "side"}, mr.zeros(1)
  mr.synchronize()
  local f = mr.graph.auto(function() x:add_(1) end)
  f() f()
  s:wait_stream(mr.default_stream())
  s:run(f)
  lu.assertStrContains(why(f), "the stream")
  lu.assertStrContains(why(f), "`side`")
  s:run(f)
  lu.assertNil(why(f))
  s:synchronize()
  lu.assertEquals(x:item(), 4.0)
end

-- ---------------------------------------------------------------- what no graph can do

local function objection(fn, text)
  local f = compare(fn, {1, 1, 1, 1, 1, 1})
  lu.assertEquals(counts(f).launches, 0)
  lu.assertStrContains(why(f), text)
  lu.assertStrContains(why(f), "graph_auto.lua:")
end

function TestAuto.test_the_host_reads_inside()
  objection(function(x) x:add_(1); local v = x[1]:item(); x:add_(v) end, "item")
  objection(function(x) x:add_(1); mr.synchronize() end, "synchronize")
  objection(function(x) x:add_(1); mr.current_stream():query() end, "query")
  objection(function(x) x:add_(1); return mr.tensor{1, 2, 3, 4, 5, 6} + x end, "tensor")
end

function TestAuto.test_only_some_calls_read()
  local n = 0
  local f = compare(function(x)
    n = n + 1
    x:add_(1)
    if n % 8 == 5 then x:add_(x[2]:item()) end
    x:mul_(0.5)
  end, {1, 1, 1, 1, 1, 1, 1, 1})
  lu.assertTrue(counts(f).launches >= 3)
end

function TestAuto.test_host_functions_events_of_before_and_frees()
  local s, seen = mr.stream(), 0
  local before = mr.event()
  before:record()
  objection(function(x) x:add_(1); mr.current_stream():host_func(function() seen = seen + 1 end) end, "host function")
  lu.assertTrue(seen > 0)
  objection(function(x) mr.current_stream():wait_event(before); x:add_(1) end, "before the call")
  objection(function(x) local y = x + 1; x:add_(y); y:free() end, "frees memory")
  objection(function(x)
    s:wait_event(before)
    s:run(function() mr.spin{ms = 0.01} end)
    x:add_(1)
  end, "graph_auto.lua")
end

function TestAuto.test_streams_that_are_not_forked()
  local s = mr.stream()
  local y = mr.zeros(1)
  mr.synchronize()
  objection(function(x) x:add_(1); s:run(function() y:add_(1) end) end, "did not wait")
  s:synchronize()
  lu.assertEquals(y:item(), 12.0) -- without auto and with it
end

function TestAuto.test_graphs_inside()
  local y = mr.zeros(1)
  mr.synchronize()
  local g = mr.graph(function() y:add_(1) end)
  objection(function(x) x:add_(1); g:launch() end, "g:launch() outside")
  lu.assertEquals(y:item(), 12.0)
  objection(function(x) x:add_(1); mr.graph(function() y:add_(1) end):launch() end, "launch")
  lu.assertEquals(y:item(), 24.0)
end

-- A script cannot tell whether its call is held.
function TestAuto.test_a_held_call_is_no_capture()
  local x, seen = mr.zeros(1), {}
  local f = mr.graph.auto(function()
    x:add_(1)
    local s = mr.current_stream()
    seen[#seen + 1] = tostring(s:is_capturing()) .. s:capture_info().status .. tostring(s == mr.default_stream())
  end)
  for _ = 1, 3 do f() end
  lu.assertEquals(seen, {"falsenonetrue", "falsenonetrue", "falsenonetrue"})
  lu.assertEquals(counts(f).launches, 2)
end

-- ---------------------------------------------------------------- errors, nesting

function TestAuto.test_an_error_inside()
  local x, fail = mr.zeros(1), false
  local f = mr.graph.auto(function()
    x:add_(1)
    if fail then error("stop here") end
    x:add_(10)
  end)
  f() f()
  fail = true
  lu.assertErrorMsgContains("stop here", f)
  lu.assertEquals(x:item(), 23.0) -- what came before the error was submitted
  lu.assertStrContains(why(f), "raised an error")
  lu.assertErrorMsgContains("stop here", f)
  fail = false
  for _ = 1, 3 do f() end
  lu.assertNil(why(f))
  lu.assertEquals(x:item(), 57.0)
end

function TestAuto.test_misuse_inside_a_held_call()
  local x, wrong = mr.zeros(3), false
  local f = mr.graph.auto(function()
    x:add_(1)
    if wrong then pcall(x.add_, x, mr.ones(5)) end
    x:add_(1)
  end)
  f() f()
  wrong = true
  f() f() f()
  lu.assertEquals(x[1]:item(), 10.0)
end

function TestAuto.test_nested()
  local x = mr.zeros(1)
  local inner = mr.graph.auto(function() x:add_(1) end)
  local outer = mr.graph.auto(function() inner(); x:mul_(2); inner() end)
  for _ = 1, 4 do outer() end
  lu.assertEquals(counts(outer).launches, 3)
  lu.assertEquals(counts(inner), {calls = 8, launches = 0, captures = 0, nodes = 0})
  lu.assertStrContains(why(inner), "inside another function")
  lu.assertEquals(x:item(), 45.0)
  local g = mr.graph(function() inner() end)
  lu.assertEquals(g.node_count, 1)
  lu.assertStrContains(why(inner), "while a stream captures")
  local n = 0
  local again
  again = mr.graph.auto(function()
    n = n + 1
    x:add_(1)
    if n % 2 == 1 then again() end
  end)
  for _ = 1, 3 do again() end
  lu.assertEquals(x:item(), 51.0)
  lu.assertEquals(counts(again).launches, 2)
end

function TestAuto.test_reset_inside_and_between()
  local x, reset = mr.zeros(1), false
  local f = mr.graph.auto(function()
    x:add_(1)
    if reset then mr.reset() end
  end)
  f() f()
  reset = true
  f()
  lu.assertStrContains(why(f), "mr.reset")
  reset = false
  x = mr.zeros(1)
  f() f()
  lu.assertNil(why(f))
  mr.reset()
  x = mr.zeros(1)
  f() f() f()
  lu.assertEquals(x:item(), 3.0)
end

function TestAuto.test_wrong_arguments()
  lu.assertErrorMsgContains("expected a function", mr.graph.auto, 5)
  lu.assertErrorMsgContains("mr.graph.auto returned", mr.graph.why, print)
  lu.assertErrorMsgContains("mr.graph.auto returned", mr.graph.why, {})
end

-- ---------------------------------------------------------------- streams

-- Work before and after the call on a stream that the function uses comes before and after it, as without a graph.
function TestAuto.test_the_order_of_the_streams_around_it()
  local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
  local x, y, z = mr.zeros(64), mr.zeros(64), mr.zeros(64)
  mr.synchronize()
  local done = mr.event()
  local step = mr.graph.auto(function()
    b:wait_stream(a)
    b:run(function() mr.spin{ms = 0.05}; y:add_(x); done:record(b) end)
    a:run(function() mr.spin{ms = 0.02}; z:add_(1) end)
    a:wait_stream(b)
  end)
  local reports = mr.hazard.check(function()
    a:run(function()
      for i = 1, 5 do
        b:run(function() mr.spin{ms = 0.1}; y:add_(i) end)
        step()
        b:run(function() y:mul_(2) end) -- ordered by stream b alone
        a:wait_event(done)
        a:wait_stream(b)
        x:add_(1)
      end
    end)
  end)
  lu.assertEquals(reports[1] and reports[1].message, nil)
  lu.assertEquals(counts(step).launches, 4)
  mr.synchronize()
  local expect, value = 0, 0
  for i = 1, 5 do expect = (expect + i + value) * 2; value = value + 1 end
  lu.assertEquals(y[1]:item(), expect + 0.0)
end

function TestAuto.test_an_unjoined_stream_and_an_event_for_outside()
  local a, b, c = mr.stream(), mr.stream(), mr.stream()
  local x, y = mr.zeros(8), mr.zeros(8)
  mr.synchronize()
  local step = mr.graph.auto(function()
    x:add_(1)
    local ready = mr.current_stream():record_event()
    b:wait_event(ready)
    b:run(function() y:add_(x) end)
    return b:record_event()
  end)
  for _ = 1, 4 do
    local done = a:run(step)
    c:wait_event(done)
    c:run(function() y:add_(1); x:add_(1) end)
    a:wait_stream(c)
    b:wait_stream(c)
    a:wait_stream(b)
  end
  lu.assertEquals(counts(step).launches, 3)
  mr.synchronize()
  lu.assertEquals(y[1]:item(), 1 + 3 + 5 + 7 + 4.0)
end

function TestAuto.test_an_event_that_is_closed_inside()
  local a, b = mr.stream(), mr.stream()
  local x, more = mr.zeros(2), false
  mr.synchronize()
  local step = mr.graph.auto(function()
    a:run(function() x:add_(1) end)
    do
      local e <close> = a:record_event()
      b:wait_event(e)
    end
    b:run(function() x:mul_(2) end)
    a:wait_stream(b)
    if more then a:run(function() x:add_(1) end) end
  end)
  for i = 1, 6 do
    more = i > 3
    a:run(step)
  end
  mr.synchronize()
  local value = 0
  for i = 1, 6 do value = (value + 1) * 2 + (i > 3 and 1 or 0) end
  lu.assertEquals(x[1]:item(), value + 0.0)
end

-- ---------------------------------------------------------------- random numbers

function TestAuto.test_random_numbers_are_those_without_it()
  local f = compare(function(x) x:uniform_(); return mr.rand(6) + x end, {1, 1, 1, 1, 1})
  lu.assertEquals(counts(f).launches, 4)
  local n = 0
  compare(function(x, v)
    n = n + 1
    x:normal_()
    if v then return mr.rand(6) * x end
    x:uniform_()
  end, {false, false, false, true, true, false, true, true, true})
  objection(function(x) x:uniform_(); mr.manual_seed(3); x:add_(mr.rand(6)) end, "seed")
  compare(function(x) x:uniform_(); mr.manual_seed(3) end, {1, 1, 1, 1})
end

-- ---------------------------------------------------------------- training

local function train(wrap, steps, change)
  mr.manual_seed(11)
  local x = mr.rand(32, 2)
  local y = x:sum(2, true)
  local net = mr.nn.Sequential(mr.nn.Linear(2, 8), mr.nn.Tanh(), mr.nn.Linear(8, 1)):to(0)
  local sgd = mr.optim.SGD(net:parameters(), {lr = 0.1, momentum = 0.9})
  local step = wrap(function()
    sgd:zero_grad()
    local loss = net(x):mse_loss(y)
    loss:backward()
    sgd:step()
    return loss
  end)
  local losses = {}
  for i = 1, steps do
    if change then change(i, x) end
    losses[i] = string.pack("f", step():item())
  end
  return losses, step
end

function TestAuto.test_a_training_step_has_the_same_losses_to_the_last_bit()
  local eager = train(function(f) return f end, 30)
  local auto, step = train(mr.graph.auto, 30)
  lu.assertEquals(auto, eager)
  lu.assertTrue(counts(step).launches >= 27)
  lu.assertNotEquals(eager[1], eager[30])
end

function TestAuto.test_a_training_step_with_other_batches_in_the_same_tensor()
  local function change(_, x) x:copy_(mr.rand(32, 2)) end
  local eager = train(function(f) return f end, 20, change)
  local auto, step = train(mr.graph.auto, 20, change)
  lu.assertEquals(auto, eager)
  lu.assertTrue(counts(step).launches >= 17)
end

-- A forward pass as a graph, and its gradients outside of it: the launch is no change of what was saved.
function TestAuto.test_backward_outside_of_the_call()
  local w = mr.ones(4):requires_grad_()
  local x = mr.arange(4, {dtype = "f32"})
  local forward = mr.graph.auto(function() return (w * x):exp():sum() end)
  local first
  for i = 1, 5 do
    w.grad = nil
    forward():backward()
    local grad = w.grad:totable()
    first = first or grad
    lu.assertEquals(grad, first)
    lu.assertEquals(counts(forward).launches, i - 1)
  end
end

-- ---------------------------------------------------------------- random programs

local function random_step(seed)
  math.randomseed(seed)
  local steps = {}
  for i = 1, math.random(2, 12) do
    steps[i] = {stream = math.random(3), kind = math.random(8), a = math.random(3), b = math.random(3),
                number = math.random(3), rare = math.random(9) == 1}
  end
  return steps
end

local function carry_out(steps, streams, tensors, odd)
  local first, last, made = streams[1], streams[1], {}
  for i = 2, 3 do streams[i]:wait_stream(first) end
  for _, p in ipairs(steps) do
    local s = streams[p.stream]
    if last ~= s then s:wait_event(last:record_event()) end
    last = s
    if odd or not p.rare then
      s:run(function()
        local a, b = tensors[p.a], tensors[p.b]
        if p.kind == 1 then a:add_(p.number)
        elseif p.kind == 2 then a:add_(b)
        elseif p.kind == 3 then a:copy_(b)
        elseif p.kind == 4 then made[#made + 1] = a * b + 1
        elseif p.kind == 5 then a:uniform_()
        elseif p.kind == 6 and p.rare then a:add_(b[1]:item())
        elseif p.kind == 7 and p.rare then s:synchronize()
        elseif made[1] then a:copy_(made[#made]) end
      end)
    end
  end
  if last ~= first then first:wait_stream(last) end
  -- The collector may free what was made from here on, in the order of the stream that it was made in.
  for i = 2, 3 do streams[i]:wait_stream(first) end
  return made[#made]
end

function TestAuto.test_random_programs_compute_the_same()
  local streams = {mr.stream(), mr.stream(), mr.stream()}
  local launches = 0
  for seed = 1, 400 do
    local steps = random_step(seed)
    local function all(wrap)
      local tensors = {}
      for i = 1, 3 do tensors[i] = mr.full({5}, i, {dtype = "f32"}) end
      mr.manual_seed(seed)
      mr.synchronize()
      local out = {}
      local call = wrap(function(odd) return carry_out(steps, streams, tensors, odd) end)
      for i = 1, 7 do
        local made = streams[1]:run(call, i % 4 == 3)
        streams[1]:run(function() out[#out + 1] = made and made:totable() or false end)
      end
      mr.synchronize()
      for i = 1, 3 do out[#out + 1] = tensors[i]:totable() end
      return out, call
    end
    local eager = all(function(f) return f end)
    local auto, call = all(mr.graph.auto)
    lu.assertTrue(lu.prettystr(auto) == lu.prettystr(eager), "program " .. seed)
    launches = launches + counts(call).launches
  end
  lu.assertTrue(launches > 400)
end

function TestAuto.test_nothing_is_left_over()
  local x = mr.zeros(16)
  mr.synchronize()
  local function use()
    local f = mr.graph.auto(function() return (x + 1):sum() end)
    for _ = 1, 5 do f() end
    pcall(mr.graph.auto(function() local _ = x + 1; error("stop") end))
  end
  use()
  collectgarbage() collectgarbage()
  mr.synchronize()
  local live = mr.memory.allocated()
  for _ = 1, 200 do use() end
  collectgarbage() collectgarbage()
  mr.synchronize()
  lu.assertEquals(mr.memory.allocated(), live)
end

-- ---------------------------------------------------------------- with the checker and mr.waits

-- A launch waits before and after for the streams that the function uses: these waits are none of the script's.
function TestAuto.test_waits_of_launches_are_not_judged()
  local x, y, b = mr.zeros(4), mr.zeros(4), mr.stream{name = "b"}
  mr.synchronize()
  local result = mr.waits(function()
    local f = mr.graph.auto(function()
      b:wait_stream(mr.current_stream())
      b:run(function() y:add_(10) end)
      x:mul_(3)
      mr.current_stream():wait_stream(b)
    end)
    for _ = 1, 3 do f() end
    return y[1]:item()
  end)
  lu.assertEquals(result.total, 2)
  lu.assertNotStrContains(tostring(result), "unknown line")
end

-- ---------------------------------------------------------------- the page

function TestAuto.test_the_program_of_the_page()
  local file <close> = assert(io.open("docs/graphs.md"))
  local text = file:read("a"):match("## Functions that become graphs by themselves\n\n```lua\n(.-)```")
  local out, env = {}, setmetatable({}, {__index = _G})
  function env.print(v) out[#out + 1] = tostring(v) end
  assert(load(text, "=auto.lua", "t", env))()
  lu.assertEquals({out[1], out[2], out[3]}, {"3072.0", "nil", "5120.0"})
  lu.assertStrContains(out[4], text:match("submission 1, .-it was 1"))
end

os.exit(lu.LuaUnit.run())
