-- mr.nn.parallel on four virtual devices: values and gradients beside one device, for random networks, batches and
-- schedules. Also scatter, gather and replicate alone, and work of the devices at the same time.
-- options: --device virtual:4
-- virtual only: four devices
-- not replayed: choosers are switched in the middle
local lu = require "luaunit"
local mr = require "millrace"
local nn, parallel = mr.nn, mr.nn.parallel

local CHOOSERS = { "timed", "random:5", "adversarial" }

local function values(t)
  local list = t:detach():flatten():cpu():totable()
  return type(list) == "table" and list or { list }
end

local function assert_same(a, b, what)
  lu.assertEquals(a.shape, b.shape, what)
  lu.assertEquals(values(a), values(b), what)
end

local function assert_close(a, b, what)
  lu.assertEquals(a.shape, b.shape, what)
  local x, y = values(a), values(b)
  for i = 1, #x do
    if math.abs(x[i] - y[i]) > 2e-5 * (1 + math.abs(y[i])) then
      lu.fail(("%s: element %d is %.9g, expected %.9g"):format(what, i, x[i], y[i]))
    end
  end
end

local function refused(pattern, fn, ...)
  local ok, err = pcall(fn, ...)
  lu.assertFalse(ok, pattern)
  lu.assertStrContains(tostring(err), pattern)
end

-- fn under the checker, which has nothing to report.
local function clean(fn)
  local reports = mr.hazard.check(fn)
  for d = 0, mr.device_count() - 1 do mr.synchronize(d) end
  lu.assertEquals(#reports, 0, reports[1] and reports[1].message)
end

local function devices(n)
  local list = {}
  for k = 1, n do list[k] = k - 1 end
  return list
end

-- ---------------------------------------------------------------- networks

local function linear(random)
  local inputs, hidden = random(1, 9), random(1, 17)
  return nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, random(1, 5))), { inputs }
end

local function conv(random)
  local channels, rows = random(1, 3), random(4, 7)
  local outputs = random(1, 4)
  return nn.Sequential(nn.Conv2d(channels, outputs, 3, { padding = 1 }), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    nn.Linear(outputs * (rows // 2) * (rows // 2), 3)), { channels, rows, rows }
end

-- Two branches on streams of their own, on whichever device the replica runs.
local TwoBranches = nn.Module.class "TwoBranches"
function TwoBranches:init(inputs, outputs)
  self.left = nn.Sequential(nn.Linear(inputs, 8), nn.ReLU(), nn.Linear(8, outputs))
  self.right = nn.Sequential(nn.Linear(inputs, 5), nn.Sigmoid(), nn.Linear(5, outputs))
end
function TwoBranches:forward(x)
  local main, side = mr.current_stream(), mr.stream()
  side:wait_stream(main)
  x:record_stream(side)
  for _, p in ipairs(self.right:parameters()) do p:record_stream(side) end
  local right = mr.with(side, self.right, x)
  local left = self.left(x)
  main:wait_stream(side)
  right:record_stream(main)
  return left + right
end

local function two_branches(random)
  local inputs = random(1, 6)
  return TwoBranches(inputs, random(1, 4)), { inputs }
end

local NETWORKS = { linear = linear, conv = conv, two_branches = two_branches }
local NAMES = { "linear", "conv", "two_branches" }

local function generator(seed)
  local state = seed
  return function(low, high)
    state = (state * 1103515245 + 12345) % 2147483648
    return low + (state >> 8) % (high - low + 1)
  end
end

-- A network, and a copy of it on the same device.
local function pair_of(name, seed)
  mr.manual_seed(seed)
  local one, shape = NETWORKS[name](generator(seed))
  local other = NETWORKS[name](generator(seed))
  other:load_state_dict(one:state_dict())
  return one, other, shape
end

local function batch_of(size, shape) return mr.randn(table.unpack { size, table.unpack(shape) }) end

-- Trains both side by side; calls compare after each step.
local function train(one, other, optimiser, shape, random, compare)
  local first = optimiser(one:parameters())
  local second = optimiser(other:parameters())
  for step = 1, 3 do
    local x = batch_of(random(1, 11), shape)
    local losses = {}
    for i, side in ipairs { { one, first }, { other, second } } do
      side[2]:zero_grad()
      losses[i] = side[1](x):square():mean()
      losses[i]:backward()
    end
    compare(("step %d, batch of %d: loss"):format(step, x:size(1)), losses[1], losses[2])
    local expected = other:parameters()
    for i, p in ipairs(one:parameters()) do
      compare(("step %d, gradient %d"):format(step, i), p.grad, expected[i].grad)
    end
    first:step()
    second:step()
    for i, p in ipairs(one:parameters()) do compare(("step %d, parameter %d"):format(step, i), p, expected[i]) end
  end
end

local OPTIMISERS = {
  SGD = function(list) return mr.optim.SGD(list, { lr = 0.05, momentum = 0.9 }) end,
  Adam = function(list) return mr.optim.Adam(list, { lr = 0.01 }) end,
}

TestTraining = {}

function TestTraining.tearDown() mr.machine.chooser "timed" end

local ROUNDS = tonumber(os.getenv "PARALLEL_ROUNDS") or 1

function TestTraining.test_random_networks_beside_one_device()
  for round = 1, ROUNDS do
    for c, chooser in ipairs(CHOOSERS) do
      mr.machine.chooser(chooser)
      for n, name in ipairs(NAMES) do
        for kind, optimiser in pairs(OPTIMISERS) do
          local seed = round * 100 + c * 10 + n
          local random = generator(seed + #kind)
          local net, plain, shape = pair_of(name, seed)
          local count = random(2, 4)
          local dp = parallel.DataParallel(net, { devices = devices(count) })
          clean(function()
            train(dp, plain, optimiser, shape, random, function(what, a, b)
              assert_close(a, b, ("%s, %s, %s, %d devices, seed %d: %s"):format(chooser, name, kind, count, seed, what))
            end)
          end)
        end
      end
    end
  end
end

function TestTraining.test_one_device_is_the_plain_network_to_the_last_bit()
  for n, name in ipairs(NAMES) do
    local net, plain, shape = pair_of(name, n)
    local dp = parallel.DataParallel(net, { devices = { 0 } })
    train(dp, plain, OPTIMISERS.Adam, shape, generator(n), function(what, a, b) assert_same(a, b, what) end)
  end
end

-- The same program gives the same bits under every schedule.
function TestTraining.test_schedules_change_no_bit()
  local seen = {}
  for _, chooser in ipairs(CHOOSERS) do
    mr.machine.chooser(chooser)
    local net, _, shape = pair_of("two_branches", 3)
    local dp = parallel.DataParallel(net)
    dp(batch_of(7, shape)):square():sum():backward()
    local list = {}
    for i, p in ipairs(net:parameters()) do list[i] = values(p.grad) end
    seen[#seen + 1] = list
  end
  for i = 2, #seen do lu.assertEquals(seen[i], seen[1], CHOOSERS[i]) end
end

-- Streams that are current in forward and not any more in backward.
function TestTraining.test_streams_of_the_script()
  local net, plain, shape = pair_of("linear", 8)
  local x = batch_of(6, shape):requires_grad_()
  local dp = parallel.DataParallel(net)
  for d = 0, 3 do mr.synchronize(d) end
  clean(function()
    local streams, run = {}, function() return dp(x):square():sum() end
    for k = 1, 4 do
      local stream, inner = mr.stream { device = k - 1 }, run
      streams[k] = stream
      stream:wait_stream(mr.current_stream(k - 1))
      run = function()
        mr.spin { ms = 0.2, stream = stream }
        return mr.with(stream, inner)
      end
    end
    local loss = run()
    for k = 1, 4 do mr.current_stream(k - 1):wait_stream(streams[1]) end
    loss:backward()
  end)
  local expected = x:detach():requires_grad_()
  plain(expected):square():sum():backward()
  assert_close(x.grad, expected.grad, "input")
  for i, p in ipairs(plain:parameters()) do assert_close(net:parameters()[i].grad, p.grad, "parameter " .. i) end
end

TestModules = {}

function TestModules.test_few_rows_use_few_devices()
  local net = nn.Linear(2, 2)
  local counts = {}
  net.forward = function(m, x)
    counts[#counts + 1] = { x.device.index, x:size(1) }
    return x:linear(m.weight, m.bias)
  end
  local dp = parallel.DataParallel(net)
  for _, case in ipairs {
    { 1, { { 0, 1 } } },
    { 3, { { 0, 1 }, { 1, 1 }, { 2, 1 } } },
    { 5, { { 0, 2 }, { 1, 2 }, { 2, 1 } } },
    { 8, { { 0, 2 }, { 1, 2 }, { 2, 2 }, { 3, 2 } } },
  } do
    counts = {}
    lu.assertEquals(dp(mr.ones(case[1], 2)).shape, { case[1], 2 })
    lu.assertEquals(counts, case[2])
  end
end

function TestModules.test_a_shared_parameter_has_one_gradient()
  local function shared()
    local net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
    net[3].weight = net[1].weight
    return net
  end
  local net, plain = shared(), shared()
  plain:load_state_dict(net:state_dict())
  local dp, x = parallel.DataParallel(net), mr.randn(6, 3)
  lu.assertEquals(#dp:parameters(), 3)
  dp(x):square():sum():backward()
  plain(x):square():sum():backward()
  for i, p in ipairs(plain:parameters()) do assert_close(net:parameters()[i].grad, p.grad, "parameter " .. i) end
  local replicas = parallel.replicate(net, { 0, 1 })
  lu.assertTrue(rawequal(replicas[2][1].weight, replicas[2][3].weight))
end

-- As in PyTorch: what the first replica writes stays, which has seen the first part of the batch.
function TestModules.test_buffers_are_those_of_the_first_replica()
  local net, plain = nn.Sequential(nn.BatchNorm1d(3), nn.BatchNorm1d(3)), nn.Sequential(nn.BatchNorm1d(3),
    nn.BatchNorm1d(3))
  local dp, x = parallel.DataParallel(net), mr.randn(8, 3)
  for _ = 1, 2 do
    clean(function() dp(x):square():sum():backward() end)
    plain(x:narrow(1, 1, 2))
  end
  for _, name in ipairs { "running_mean", "running_var", "num_batches_tracked" } do
    assert_same(net[1][name], plain[1][name], name)
    assert_same(net[2][name], plain[2][name], name)
  end
  dp:eval()
  lu.assertFalse(net[2].training)
  assert_close(dp(x), net(x), "eval")
  assert_same(net[1].running_mean, plain[1].running_mean, "unchanged in eval mode")
end

function TestModules.test_frozen_and_unused_parameters_have_no_gradient()
  local net = nn.Module()
  net.a, net.b, net.c = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)
  net.a:requires_grad_(false)
  net.forward = function(m, x) return m.b(m.a(x)) end
  parallel.DataParallel(net)(mr.ones(4, 2)):sum():backward()
  lu.assertNil(net.a.weight.grad)
  lu.assertNil(net.c.weight.grad)
  lu.assertNotNil(net.b.weight.grad)
end

-- A parameter that only one replica uses: zeros of the others.
function TestModules.test_a_parameter_that_one_replica_uses()
  local net = nn.Module()
  net.a, net.b = nn.Linear(2, 1), nn.Linear(2, 1)
  net.forward = function(m, x) return x.device.index == 1 and m.a(x) + m.b(x) or m.a(x) end
  local x = mr.tensor { { 1.0, 2.0 }, { 3.0, 4.0 } }
  parallel.DataParallel(net)(x):sum():backward()
  lu.assertEquals(values(net.a.weight.grad), { 4.0, 6.0 })
  lu.assertEquals(values(net.b.weight.grad), { 3.0, 4.0 })
end

function TestModules.test_dtypes_tables_and_other_arguments()
  local net = nn.Module()
  net.a = nn.Linear(2, 2)
  net.b = nn.Linear(2, 2, { dtype = "f64" })
  net:register_buffer("mask", mr.tensor({ true, false }, { dtype = "bool" }))
  net.forward = function(m, inputs, scale)
    local x = inputs.x * scale
    return { f32 = m.a(x), more = { m.b(x:to "f64"), m.mask:to "f32" }, sum = x:sum() }
  end
  local x = mr.randn(5, 2)
  local y = parallel.DataParallel(net, { devices = { 0, 1 } })({ x = x, nothing = "text" }, 2)
  assert_close(y.f32, net.a(x * 2), "f32")
  assert_close(y.more[1], net.b((x * 2):to "f64"), "f64")
  lu.assertEquals(values(y.more[2]), { 1.0, 0.0, 1.0, 0.0 })
  lu.assertEquals(y.sum.shape, { 2 })
  y.more[1]:sum():backward()
  lu.assertEquals(net.b.weight.grad.dtype, "f64")
end

function TestModules.test_without_gradients_and_state()
  local net = nn.Linear(3, 2)
  local dp = parallel.DataParallel(net)
  lu.assertFalse(mr.no_grad(dp, mr.ones(4, 3)).requires_grad)
  local names = {}
  for name in pairs(dp:state_dict()) do names[#names + 1] = name end
  table.sort(names)
  lu.assertEquals(names, { "module.bias", "module.weight" })
  local y = parallel.DataParallel(net, { output_device = 2 })(mr.ones(4, 3))
  lu.assertEquals(y.device.index, 2)
end

TestFunctions = {}

function TestFunctions.test_scatter_and_gather_are_inverse()
  local x = mr.randn(7, 2):requires_grad_()
  clean(function()
    local parts = parallel.scatter(x, { 1, 3 })
    lu.assertEquals({ parts[1].shape, parts[2].shape }, { { 4, 2 }, { 3, 2 } })
    lu.assertEquals({ parts[1].device.index, parts[2].device.index }, { 1, 3 })
    local y = parallel.gather({ parts[1] * 2, parts[2] * 3 }, 2)
    lu.assertEquals(y.device.index, 2)
    y:sum():backward()
  end)
  lu.assertEquals(values(x.grad), { 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3 })
end

-- The gradient is made on the stream of the forward pass, which is not current in the backward pass.
function TestFunctions.test_an_input_of_another_device_and_stream()
  local x = mr.ones(4, { device = 3 }):requires_grad_()
  clean(function()
    local s = mr.stream { device = 3 }
    s:wait_stream(mr.current_stream(3))
    local parts = mr.with(s, parallel.scatter, x, { 0, 1 })
    parallel.gather({ parts[1] * 2, parts[2] * 3 }, 0):sum():backward()
    lu.assertEquals(values(x.grad), { 2.0, 2.0, 3.0, 3.0 })
  end)
end

-- Gradients of gradients: d2/dx2 of sum(x^3) is 6x, and of a weight used on both devices likewise.
function TestFunctions.test_second_derivatives()
  local x = mr.tensor { 1.0, 2.0, 3.0 }:requires_grad_()
  local parts = parallel.scatter(x, { 0, 1 })
  local y = parallel.gather({ parts[1] ^ 3, parts[2] ^ 3 }, 0):sum()
  local g = mr.autograd.grad(y, x, { create_graph = true })
  lu.assertEquals(values(mr.autograd.grad(g:sum(), x)), { 6.0, 12.0, 18.0 })

  local net = nn.Module()
  net.w = nn.Parameter(mr.tensor { 2.0 })
  local replicas = parallel.replicate(net, { 0, 1 })
  y = parallel.gather({ replicas[1].w ^ 3, replicas[2].w ^ 3 * 2 }, 0):sum()
  g = mr.autograd.grad(y, net.w, { create_graph = true })
  lu.assertEquals(values(g), { 36.0 })
  lu.assertEquals(values(mr.autograd.grad(g:sum(), net.w)), { 36.0 })
end

function TestFunctions.test_scatter_leaves_other_values()
  lu.assertEquals(parallel.scatter("text", { 0, 1 }), { "text", "text" })
  local parts = parallel.scatter({ 1, { x = mr.ones(4), on = true } }, { 0, 1 })
  lu.assertEquals({ parts[2][1], parts[2][2].on, parts[2][2].x.device.index }, { 1, true, 1 })
end

function TestFunctions.test_parallel_apply()
  local replicas = parallel.replicate(nn.Linear(2, 2), { 0, 2 })
  local outputs = parallel.parallel_apply(replicas, parallel.scatter(mr.ones(4, 2), { 0, 2 }))
  lu.assertEquals({ outputs[1].device.index, outputs[2].device.index }, { 0, 2 })
end

function TestFunctions.test_what_is_refused()
  local net = nn.Linear(2, 2)
  refused("expected a module, got a number", parallel.DataParallel, 3)
  refused("no option `device`", parallel.DataParallel, net, { device = 0 })
  refused("device 1 is in the list twice", parallel.DataParallel, net, { devices = { 1, 1 } })
  refused("an empty list", parallel.DataParallel, net, { devices = {} })
  refused("this machine has 4", parallel.DataParallel, net, { devices = { 7 } })
  refused("`weight` of the module is on device 0", parallel.DataParallel, net, { devices = { 1, 0 } })
  refused("no tensor among the arguments", parallel.DataParallel(net), 5)
  refused("without dims", parallel.scatter, mr.ones {}, { 0 })
  refused("field `b` gives 1 parts", parallel.scatter, { a = mr.ones(2), b = mr.ones(1) }, { 0, 1 })
  refused("2 replicas and 1 inputs", parallel.parallel_apply, { net, net }, { 1 })
  refused("got a module and a table", parallel.parallel_apply, net, {})
  refused("output 2 is a number", parallel.gather, { mr.ones(1), 5 }, 0)
  refused("output 1 is on the host", parallel.gather, { mr.ones(1):cpu() }, 0)
  refused("expected a device or its number, got nil", parallel.gather, { mr.ones(1) })
  refused("no field `y`", parallel.gather, { { y = mr.ones(1) }, { z = mr.ones(1) } }, 0)
  refused("got a tensor", parallel.replicate, mr.ones(1), { 0 })
  net.forward = function() return "text" end
  refused("output 1 is a string", parallel.DataParallel(net), mr.ones(4, 2))
end

TestTime = {}

-- The milliseconds in which operations of at least two devices run; each device has one stream here.
local function overlap(trace)
  local edges = {}
  for _, span in ipairs(trace.spans) do
    if span.kind == "op" then
      edges[#edges + 1] = { span.start, 1, span.stream }
      edges[#edges + 1] = { span.finish, -1, span.stream }
    end
  end
  table.sort(edges, function(a, b) return a[1] < b[1] or a[1] == b[1] and a[2] < b[2] end)
  local busy, total, last = {}, 0, 0
  for _, edge in ipairs(edges) do
    local count = 0
    for _, n in pairs(busy) do count = count + (n > 0 and 1 or 0) end
    if count >= 2 then total = total + edge[1] - last end
    last = edge[1]
    busy[edge[3]] = (busy[edge[3]] or 0) + edge[2]
  end
  return total
end

function TestTime.test_devices_work_at_the_same_time()
  local net = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))
  local dp, x = parallel.DataParallel(net), mr.randn(512, 256)
  local forward, backward, y
  forward = mr.timeline(function() y = dp(x):square():mean() end)
  backward = mr.timeline(function() y:backward() end)
  lu.assertTrue(overlap(forward) > 0)
  lu.assertTrue(overlap(backward) > 0)
end

os.exit(lu.LuaUnit.run())
