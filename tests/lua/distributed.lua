-- DistributedDataParallel on virtual ranks: losses, gradients and parameters beside one device that has the whole
-- batch, for random networks, dtypes, buckets and schedules. The reduction beside backward, its order, and refused
-- calls.
-- options: --device virtual:4
-- virtual only: four devices
-- not replayed: ranks have a clock each
local lu = require "luaunit"
local mr = require "millrace"
local nn, dist, DDP = mr.nn, mr.dist, mr.nn.parallel.DistributedDataParallel

local CHOOSERS = { "timed", "random:5", "adversarial" }

local function values(t)
  local list = t:detach():to "f64":flatten():cpu():totable()
  return type(list) == "table" and list or { list }
end

local function assert_close(a, b, error, what)
  lu.assertEquals(#a, #b, what)
  for i = 1, #a do
    local is_near = math.abs(a[i] - b[i]) <= error * (1 + math.abs(b[i])) -- false for NaN, too
    if not is_near then
      lu.fail(("%s: element %d is %.9g, expected %.9g"):format(what, i, a[i], b[i]))
    end
  end
end

local function refused(pattern, fn, ...)
  local ok, err = pcall(fn, ...)
  lu.assertFalse(ok, pattern)
  lu.assertStrContains(tostring(err), pattern)
  return err
end

-- fn under the checker, which has nothing to report.
local function clean(fn, ...)
  local results, arguments = nil, table.pack(...)
  local reports = mr.hazard.check(function() results = table.pack(fn(table.unpack(arguments, 1, arguments.n))) end)
  for d = 0, mr.device_count() - 1 do mr.synchronize(d) end
  lu.assertEquals(#reports, 0, reports[1] and reports[1].message)
  return table.unpack(results, 1, results.n)
end

local function generator(seed)
  local state = seed
  return function(low, high)
    state = (state * 1103515245 + 12345) % 2147483648
    return low + (state >> 8) % (high - low + 1)
  end
end

-- ---------------------------------------------------------------- networks

local function deep(random)
  local inputs, layers = random(1, 6), {}
  local size = inputs
  for _ = 1, random(1, 4) do
    local following = random(1, 12)
    layers[#layers + 1] = nn.Linear(size, following)
    layers[#layers + 1] = random(1, 2) == 1 and nn.Tanh() or nn.Sigmoid()
    size = following
  end
  return nn.Sequential(table.unpack(layers)), { inputs }
end

local function conv(random)
  local channels, rows, outputs = random(1, 3), random(4, 6), random(1, 3)
  return nn.Sequential(nn.Conv2d(channels, outputs, 3, { padding = 1 }), nn.Tanh(), nn.Flatten(),
    nn.Linear(outputs * rows * rows, 2)), { channels, rows, rows }
end

-- Two branches on streams of their own: a bucket has gradients of both.
local TwoBranches = nn.Module.class "TwoBranches"
function TwoBranches:init(inputs, outputs)
  self.left = nn.Sequential(nn.Linear(inputs, 8), nn.Tanh(), nn.Linear(8, outputs))
  self.right = nn.Sequential(nn.Linear(inputs, 5), nn.Sigmoid(), nn.Linear(5, outputs))
end
function TwoBranches:forward(x)
  local main = mr.current_stream()
  local side = mr.stream { device = x.device, name = "side" }
  side:wait_stream(main)
  x:record_stream(side)
  for _, p in ipairs(self.right:parameters()) do p:record_stream(side) end
  local right = mr.with(side, function()
    mr.spin { ms = 0.2 }
    return self.right(x)
  end)
  local left = self.left(x)
  main:wait_stream(side)
  right:record_stream(main)
  return left + right
end

local function two_branches(random)
  local inputs = random(1, 6)
  return TwoBranches(inputs, random(1, 4)), { inputs }
end

-- A layer that is used twice, one whose weight is another's, and one that is frozen.
local function shared(random)
  local size, net = random(2, 5), nn.Module()
  net.first, net.again, net.tied, net.fixed = nn.Linear(size, size), nn.Linear(size, size), nn.Linear(size, size),
    nn.Linear(size, size)
  net.tied.weight = net.first.weight
  net.fixed:requires_grad_(false)
  net.forward = function(m, x) return m.tied(m.fixed(m.again(m.again(m.first(x)):tanh()))) end
  return net, { size }
end

local NETWORKS = { deep = deep, conv = conv, two_branches = two_branches, shared = shared }
local NAMES = { "deep", "conv", "two_branches", "shared" }
local DTYPES = { f32 = 3e-5, f64 = 1e-12, f16 = 0.02, bf16 = 0.1 }

local OPTIMISERS = {
  SGD = function(list) return mr.optim.SGD(list, { lr = 0.05, momentum = 0.9 }) end,
  Adam = function(list) return mr.optim.Adam(list, { lr = 0.01 }) end,
  none = function(list) -- optimisers take f32 and f64
    return { step = function() end, zero_grad = function() for _, p in ipairs(list) do p.grad = nil end end }
  end,
}

local function row_of(seed, step, shape) -- a row of the whole batch is the same for everyone
  mr.manual_seed(seed * 100 + step)
  return mr.randn(table.unpack(shape))
end

-- Trains on rows `first` to `last` of each step's batch; returns losses, gradients and parameters of each step.
local function train(net, call, case, first, last, before)
  local optimiser = OPTIMISERS[case.optimiser](net:parameters())
  local seen = {}
  for step = 1, case.steps do
    local whole = row_of(case.seed, step, { case.rows, table.unpack(case.shape) }):to(case.dtype)
    if before then before(step) end
    optimiser:zero_grad(step % 2 == 0)
    local loss = call(whole:narrow(1, first, last - first + 1)):square():mean()
    loss:backward()
    seen[#seen + 1] = values(loss)
    for _, p in ipairs(net:parameters()) do if p.grad then seen[#seen + 1] = values(p.grad) end end
    optimiser:step()
    for _, p in ipairs(net:parameters()) do seen[#seen + 1] = values(p) end
  end
  return seen
end

local function make(case)
  local random = generator(case.seed)
  mr.manual_seed(case.seed)
  local net, shape = NETWORKS[case.name](random)
  case.shape = shape
  return net:to(mr.current_device()):to(case.dtype)
end

-- What the ranks see beside what one device sees.
local function compare(case)
  local n = case.ranks
  case.rows = n * case.each
  local net = make(case)
  local one = train(net, net, case, 1, case.rows)
  local all = clean(dist.spawn, n, function(rank)
    local own = make(case)
    if rank > 0 then mr.no_grad(function() for _, p in ipairs(own:parameters()) do p:add_(rank) end end) end
    local ddp = DDP(own, case.options)
    return train(own, ddp, case, rank * case.each + 1, (rank + 1) * case.each, function(step)
      if rank == step % n then mr.spin { ms = 0.3 } end -- one of them is late
    end)
  end)
  local what = ("%s, %s, %d ranks, seed %d"):format(case.name, case.dtype, n, case.seed)
  for i, expected in ipairs(one) do
    local mean = {}
    for k = 1, #expected do mean[k] = 0 end
    for rank = 1, n do
      local got = all[rank][i]
      if #got == 1 then mean[1] = mean[1] + got[1] / n -- a loss, of this rank's rows
      else assert_close(got, expected, DTYPES[case.dtype], ("%s, rank %d, entry %d"):format(what, rank - 1, i)) end
      if rank > 1 and #got > 1 then lu.assertEquals(got, all[1][i], what) end -- to the last bit
    end
    if #expected == 1 then assert_close(mean, expected, DTYPES[case.dtype], what .. ", entry " .. i) end
  end
end

TestTraining = {}

function TestTraining.tearDown() mr.machine.chooser "timed" end

local ROUNDS = tonumber(os.getenv "DISTRIBUTED_ROUNDS") or 1

function TestTraining.test_random_networks_beside_one_device()
  local kinds = { "Adam", "SGD" }
  for round = 1, ROUNDS do
    for c, chooser in ipairs(CHOOSERS) do
      mr.machine.chooser(chooser)
      for k, name in ipairs(NAMES) do
        local seed = round * 100 + c * 10 + k
        local random = generator(seed)
        local options = ({ { bucket_mb = 0 }, { bucket_mb = 0.0001, first_bucket_mb = 0 }, {},
          { bucket_mb = 0.0002, first_bucket_mb = 0.0001 } })[random(1, 4)]
        compare { name = name, seed = seed, dtype = random(1, 2) == 1 and "f32" or "f64", ranks = random(1, 4),
          each = random(1, 4), steps = 3, options = options, optimiser = kinds[random(1, 2)] }
      end
    end
  end
end

function TestTraining.test_every_dtype()
  for dtype in pairs(DTYPES) do
    for k, name in ipairs(NAMES) do
      compare { name = name, seed = k, dtype = dtype, ranks = 2, each = 2, steps = 2, options = { bucket_mb = 0.0001 },
        optimiser = dtype:find "16" and "none" or "SGD" }
    end
  end
end

-- One rank: gradients are those of the plain module, to the last bit.
function TestTraining.test_one_rank()
  for k, name in ipairs(NAMES) do
    local case = { name = name, seed = k, dtype = "f32", rows = 4, steps = 3, optimiser = "Adam" }
    local net, same = make(case), make(case)
    lu.assertEquals(train(net, DDP(net, { bucket_mb = 0 }), case, 1, 4), train(same, same, case, 1, 4))
  end
end

-- The same program gives the same bits under every schedule.
function TestTraining.test_schedules_change_no_bit()
  local seen = {}
  for i, chooser in ipairs(CHOOSERS) do
    mr.machine.chooser(chooser)
    local case = { name = "two_branches", seed = 3, dtype = "f32", rows = 6, steps = 2, optimiser = "SGD" }
    seen[i] = dist.spawn(2, function(rank)
      local net = make(case)
      return train(net, DDP(net, { bucket_mb = 0.0001 }), case, rank * 3 + 1, rank * 3 + 3)
    end)
    lu.assertEquals(seen[i], seen[1], chooser)
  end
end

-- Several dtypes in one module: a bucket has one.
function TestTraining.test_mixed_dtypes()
  local function mixed()
    mr.manual_seed(4)
    local net = nn.Module()
    net.a, net.b, net.c = nn.Linear(3, 4), nn.Linear(4, 4, { dtype = "f64" }), nn.Linear(4, 2)
    net.forward = function(m, x) return m.c(m.b(m.a(x):to "f64"):to "f32") end
    return net:to(mr.current_device())
  end
  local case = { seed = 1, dtype = "f32", rows = 4, steps = 3, optimiser = "SGD", shape = { 3 } }
  local net = mixed()
  local one = train(net, net, case, 1, 4)
  for _, mb in ipairs { 0, 25 } do
    local all = clean(dist.spawn, 2, function(rank)
      local own = mixed()
      local ddp = DDP(own, { bucket_mb = mb })
      if mb > 0 then lu.assertEquals(ddp.reducer.buckets[1].row.dtype, "f64") end -- complete before the other one
      return train(own, ddp, case, rank * 2 + 1, rank * 2 + 2)
    end)
    for i, expected in ipairs(one) do
      if #expected > 1 then assert_close(all[1][i], expected, 3e-5, "entry " .. i) end
    end
  end
end

-- ---------------------------------------------------------------- order and time

TestOrder = {}

local function spans_of(trace, pattern)
  local list = {}
  for _, span in ipairs(trace.spans) do
    if span.kind == "op" and span.name:find(pattern) then list[#list + 1] = span end
  end
  return list
end

local function big()
  local layers = {}
  for k = 1, 8, 2 do layers[k], layers[k + 1] = nn.Linear(256, 256), nn.Tanh() end
  return nn.Sequential(table.unpack(layers)):to(mr.current_device())
end

-- How much of the time of the reductions lies under the work of backward, and how many there are.
local function overlap(options, network)
  local trace = mr.timeline(function()
    dist.spawn(2, function()
      local ddp, x = DDP((network or big)(), options), mr.randn(256, 256)
      local loss = ddp(x):square():mean()
      loss:backward()
      mr.synchronize()
    end)
  end)
  local reduced, last = spans_of(trace, "^all_reduce$"), 0
  for _, span in ipairs(spans_of(trace, "")) do
    if span.stream ~= "world" then last = math.max(last, span.finish) end
  end
  local under, all = 0, 0
  for _, span in ipairs(reduced) do
    all = all + span.finish - span.start
    under = under + math.max(0, math.min(span.finish, last) - span.start)
  end
  return under / all, #reduced
end

function TestOrder.test_reductions_run_beside_backward()
  local part, count = overlap { bucket_mb = 0.3, first_bucket_mb = 0.1 }
  lu.assertEquals(count, 6)
  lu.assertTrue(part > 0.3, part)
  part, count = overlap { bucket_mb = 25, first_bucket_mb = 25 }
  lu.assertEquals({ part, count }, { 0, 2 })
end

-- The last reduction has nothing to run beside, so it is small: one large layer more is not in it.
function TestOrder.test_the_last_reduction_is_small()
  local function wide()
    return nn.Sequential(nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 2048),
      nn.Tanh(), nn.Linear(2048, 256)):to(mr.current_device())
  end
  local part, count = overlap({}, wide)
  lu.assertEquals(count, 6)
  lu.assertTrue(part > 0.5, part)
  dist.spawn(2, function()
    local buckets = DDP(wide(), {}).reducer.buckets
    lu.assertEquals(#buckets, 3)
    lu.assertEquals(#buckets[3].parameters, 4)
    lu.assertEquals(#DDP(wide(), { first_bucket_mb = 0.1 }).reducer.buckets, 2)
  end)
end

-- The host waits for nothing, and the current stream for everything: a use right behind backward is ordered.
function TestOrder.test_the_stream_waits_and_not_the_host()
  clean(dist.spawn, 2, function()
    local net = big()
    local ddp, x = DDP(net, { bucket_mb = 0.3 }), mr.randn(256, 256)
    mr.synchronize()
    local loss = ddp(x):square():mean()
    loss:backward()
    lu.assertFalse(mr.current_stream():query())
    mr.no_grad(function() for _, p in ipairs(net:parameters()) do p:sub_(p.grad) end end)
  end)
end

-- Backward on a stream of the script's: that one waits.
function TestOrder.test_a_stream_of_the_script()
  clean(dist.spawn, 2, function()
    local net, s = big(), mr.stream { name = "s" }
    local ddp, x = DDP(net, { bucket_mb = 0.3 }), mr.randn(4, 256)
    s:wait_stream(mr.current_stream())
    for _ = 1, 2 do
      s:run(function()
        x:record_stream(s)
        local loss = ddp(x):square():mean()
        loss:backward()
        mr.no_grad(function() for _, p in ipairs(net:parameters()) do p:sub_(p.grad) end end)
      end)
    end
    mr.current_stream():wait_stream(s)
  end)
end

-- The memory of buckets goes back while the stream that backward was called on still uses it.
function TestOrder.test_buckets_that_are_dropped()
  local net, s, x = big(), mr.stream { name = "s" }, mr.randn(4, 256)
  clean(function()
    local ddp = DDP(net)
    s:wait_stream(mr.current_stream())
    s:run(function()
      mr.spin { ms = 1 }
      local loss = ddp(x):square():mean()
      loss:backward()
      net:zero_grad()
      DDP(net) -- takes the parameters over
    end)
    ddp = nil
    collectgarbage()
    collectgarbage()
    local again = {}
    for k = 1, 4 do again[k] = mr.ones(4 * 256 * 257) end
    s:synchronize()
    lu.assertEquals(#again, 4)
  end)
end

-- A gradient that another stream uses without a wait is the script's mistake.
function TestOrder.test_a_use_without_a_wait_is_a_hazard()
  local reports = mr.hazard.check(function()
    dist.spawn(2, function()
      local net, s = big(), mr.stream { name = "s" }
      local ddp, x = DDP(net), mr.randn(4, 256)
      local loss = ddp(x):square():mean()
      loss:backward()
      s:run(function() return net[1].weight.grad:norm() end)
      mr.synchronize()
    end)
  end)
  lu.assertTrue(#reports > 0)
  lu.assertStrContains(reports[1].message, "all_reduce")
end

-- Ranks whose gradients come in another order still reduce the same buckets in the same order.
function TestOrder.test_ranks_in_another_order()
  local sums = clean(dist.spawn, 2, function(rank)
    local net = nn.Module()
    for k = 1, 4 do net["w" .. k] = nn.Parameter(mr.full(3, k + 0.0)) end
    net.forward = function(m, x)
      local y = x
      for k = 1, 4 do y = y * m["w" .. (rank == 0 and k or 5 - k)] end
      return y
    end
    local ddp, list = DDP(net, { bucket_mb = 0 }), {}
    for step = 1, 3 do
      net:zero_grad()
      ddp(mr.full(3, rank + 1.0)):sum():backward()
      list[step] = {}
      for k = 1, 4 do list[step][k] = net["w" .. k].grad[1]:item() end
    end
    return list
  end)
  local expected = { 36.0, 18.0, 12.0, 9.0 } -- (1 + 2) / 2 * 24 / k
  lu.assertEquals(sums, { { expected, expected, expected }, { expected, expected, expected } })
end

-- The parameter that is used first is assigned last: after the first pass, buckets are reduced in the order in which
-- they come.
function TestOrder.test_buckets_follow_the_order_of_use()
  local seen = dist.spawn(2, function(rank)
    local net = nn.Module()
    net.late = nn.Linear(4, 4)
    net.early = nn.Linear(4, 4)
    net.to_side = nn.Linear(4, 4)
    net.forward = function(m, x) return m.late(m.to_side(m.early(x))) end
    net:to(mr.current_device())
    local ddp, order = DDP(net, { bucket_mb = 0 }), {}
    for step = 1, 2 do
      net:zero_grad()
      ddp(mr.ones(2, 4)):sum():backward()
      order[step] = {}
      for i, bucket in ipairs(ddp.reducer.buckets) do order[step][i] = ddp.reducer.names[bucket.parameters[1]] end
    end
    local grads = {}
    for name, p in net:named_parameters() do grads[name] = values(p.grad) end
    return { order, grads, rank }
  end)
  lu.assertEquals(seen[1][1], seen[2][1])
  lu.assertEquals(seen[1][2], seen[2][2])
  lu.assertEquals(seen[1][1][1][1], "to_side.bias")
  lu.assertStrContains(seen[1][1][2][1], "late.")
  lu.assertStrContains(seen[1][1][2][6], "early.")
end

-- ---------------------------------------------------------------- passes

TestPasses = {}

-- Two parts of a batch, the first without a reduction, are one large batch.
function TestPasses.test_no_sync_accumulates()
  local case = { name = "deep", seed = 5, dtype = "f32", rows = 8, steps = 1, optimiser = "SGD" }
  local net = make(case)
  local one = train(net, net, case, 1, 8)
  local all = clean(dist.spawn, 2, function(rank)
    local own = make(case)
    local ddp, local_gradient = DDP(own, { bucket_mb = 0.0001 }), nil
    local whole = row_of(case.seed, 1, { 8, table.unpack(case.shape) })
    local function part(k) return ddp(whole:narrow(1, rank * 4 + k * 2 - 1, 2)):square():mean() / 2 end
    local a, b = ddp:no_sync(function(...)
      local loss = part(1)
      loss:backward()
      local_gradient = values(own:parameters()[1].grad)
      return ...
    end, rank, "x")
    lu.assertEquals({ a, b }, { rank, "x" })
    local loss = part(2)
    loss:backward()
    local list = { local_gradient }
    for i, p in ipairs(own:parameters()) do list[i + 1] = values(p.grad) end
    return list
  end)
  lu.assertNotEquals(all[1][1], all[2][1])
  for i = 2, #all[1] do
    lu.assertEquals(all[1][i], all[2][i])
    assert_close(all[1][i], one[i], 3e-5, "gradient " .. i - 1)
  end
end

function TestPasses.test_no_sync_ends_with_an_error()
  dist.spawn(2, function(rank)
    local net = nn.Linear(2, 1):to(mr.current_device())
    local ddp = DDP(net)
    refused("boo", ddp.no_sync, ddp, function() error "boo" end)
    ddp(mr.full({ 1, 2 }, rank + 1.0)):sum():backward()
    lu.assertEquals(values(net.weight.grad), { 1.5, 1.5 })
  end)
end

-- Ranks of two, each with the input of its number, so that its own gradient is { rank + 1, rank + 1 }.
local function on_two(fn)
  return clean(dist.spawn, 2, function(rank)
    local net = nn.Linear(2, 1):to(mr.current_device())
    local ddp, x = DDP(net, { bucket_mb = 0 }), mr.full({ 1, 2 }, rank + 1.0)
    return fn(ddp, net, x, rank) or values(net.weight.grad)
  end)
end

-- As in PyTorch, whose hooks do nothing unless a forward pass of the wrapper has prepared them.
function TestPasses.test_the_module_itself_reduces_nothing()
  local own, mean = { { 1.0, 1.0 }, { 2.0, 2.0 } }, { { 1.5, 1.5 }, { 1.5, 1.5 } }
  lu.assertEquals(on_two(function(_, net, x) net(x):sum():backward() end), own)
  lu.assertEquals(on_two(function(ddp, net, x)
    mr.no_grad(ddp, x)
    net(x):sum():backward()
  end), own)
  lu.assertEquals(on_two(function(ddp, net, x)
    local loss = ddp(x):sum()
    mr.no_grad(ddp, x) -- an evaluation takes nothing back
    loss:backward()
    net:zero_grad()
    net(x):sum():backward()
  end), own)
  lu.assertEquals(on_two(function(ddp, net, x)
    net(x):sum():backward()
    net:zero_grad()
    ddp(x):sum():backward()
  end), mean)
end

function TestPasses.test_a_pass_that_fails_prepares_nothing()
  lu.assertEquals(on_two(function(ddp, net, x)
    refused("", ddp, mr.ones(1, 3))
    net(x):sum():backward()
  end), { { 1.0, 1.0 }, { 2.0, 2.0 } })
end

-- The first backward pass uses up what both calls have prepared, as in PyTorch.
function TestPasses.test_two_calls_and_two_backward_passes()
  lu.assertEquals(on_two(function(ddp, _, x)
    local a, b = ddp(x):sum(), ddp(x):sum()
    a:backward()
    b:backward()
  end), { { 2.5, 2.5 }, { 3.5, 3.5 } })
end

-- Unlike PyTorch, which lets the pass in no_sync reduce.
function TestPasses.test_no_sync_after_a_call_without_backward()
  lu.assertEquals(on_two(function(ddp, _, x)
    ddp(x)
    ddp:no_sync(function() ddp(x):sum():backward() end)
  end), { { 1.0, 1.0 }, { 2.0, 2.0 } })
end

function TestPasses.test_a_second_backward()
  clean(dist.spawn, 2, function(rank)
    local net = nn.Linear(2, 1):to(mr.current_device())
    local ddp = DDP(net, { bucket_mb = 0 })
    local loss = ddp(mr.full({ 1, 2 }, rank + 1.0)):sum()
    loss:backward { retain_graph = true }
    lu.assertEquals(values(net.weight.grad), { 1.5, 1.5 })
    loss:backward() -- no call has prepared it: the rank's own gradient is added
    lu.assertEquals(values(net.weight.grad), { rank + 2.5, rank + 2.5 })
    local both = ddp(mr.full({ 1, 2 }, rank + 1.0)):sum() + ddp(mr.full({ 1, 2 }, 1.0)):sum()
    both:backward() -- two forward passes, and one pass back
    lu.assertEquals(values(net.weight.grad), { 5.5, 5.5 })
    net.weight.grad = mr.full({ 1, 2 }, 10.0 * rank) -- a tensor of the script's
    ddp(mr.full({ 1, 2 }, rank + 1.0)):sum():backward()
    lu.assertEquals(values(net.weight.grad), { 6.5, 6.5 })
  end)
end

function TestPasses.test_gradients_are_views_of_buckets()
  dist.spawn(2, function()
    local net = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2)):to(mr.current_device())
    local ddp, memory = DDP(net), {}
    for _ = 1, 3 do
      net:zero_grad()
      ddp(mr.ones(1, 3)):sum():backward()
      for _, p in ipairs(net:parameters()) do memory[p.grad.storage_id] = true end
    end
    local count = 0
    for _ in pairs(memory) do count = count + 1 end
    lu.assertEquals(count, 1)
  end)
end

function TestPasses.test_a_parameter_without_a_gradient_is_named()
  local function run(n, uses)
    return pcall(dist.spawn, n, function(rank)
      local net = nn.Module()
      net.a = nn.Linear(2, 2)
      net.b = nn.Linear(2, 2)
      net.forward = function(m, x) return uses(rank) and m.b(m.a(x)) or m.a(x) end
      net:to(mr.current_device())
      DDP(net, { bucket_mb = 0 })(mr.ones(1, 2)):sum():backward()
    end)
  end
  local names = "`DistributedDataParallel.module.b.bias`, `DistributedDataParallel.module.b.weight`" -- as in reports
  for n = 1, 3 do
    local ok, err = run(n, function() return false end)
    lu.assertFalse(ok)
    lu.assertStrContains(tostring(err), names .. " of rank ")
    lu.assertStrContains(tostring(err), "distributed.lua")
  end
  local ok, err = run(3, function(rank) return rank ~= 1 end) -- the others wait for it
  lu.assertFalse(ok)
  lu.assertStrContains(tostring(err), names .. " of rank 1 got no gradient in this pass")
end

-- The state after the error is in order, and the next pass is a whole one.
function TestPasses.test_after_a_pass_that_failed()
  clean(dist.spawn, 2, function(rank)
    local net, fails = nn.Module(), true
    net.a, net.b = nn.Linear(2, 1), nn.Linear(2, 1)
    net.forward = function(m, x) return fails and m.a(x) or m.a(x) + m.b(x) end
    net:to(mr.current_device())
    local ddp = DDP(net, { bucket_mb = 0 })
    local x = mr.full({ 1, 2 }, rank + 1.0)
    local y = ddp(x):sum()
    refused("got no gradient", y.backward, y)
    local boom = mr.autograd.Function {
      forward = function(_, t) return t * 1 end,
      backward = function() error "boom" end,
    }
    fails = false
    net:zero_grad()
    y = (ddp(boom(x:requires_grad_())) * 1):sum()
    refused("boom", y.backward, y) -- all parameters have their gradients by then
    net:zero_grad()
    ddp(x:detach()):sum():backward()
    lu.assertEquals({ values(net.a.weight.grad), values(net.b.weight.grad) }, { { 1.5, 1.5 }, { 1.5, 1.5 } })
  end)
end

function TestPasses.test_without_gradients()
  dist.spawn(2, function(rank)
    local net = nn.Linear(2, 1):to(mr.current_device())
    local ddp = DDP(net)
    if rank == 0 then mr.no_grad(ddp, mr.ones(1, 2)) end -- the others need not take part
    ddp:eval()
    lu.assertFalse(net.training)
  end)
end

-- ---------------------------------------------------------------- modules

TestModules = {}

function TestModules.test_all_begin_with_the_values_of_the_first()
  local seen = clean(dist.spawn, 3, function(rank)
    mr.manual_seed(rank)
    local net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)):to(mr.current_device())
    net[1].weight:requires_grad_(false)
    net[1].weight:t():fill_(rank + 1.0)
    net:register_buffer("mask", mr.tensor({ rank == 0, true }, { dtype = "bool" }))
    net:register_buffer("count", mr.full({}, rank + 7, { dtype = "i64" }), false)
    net[2].running_mean:fill_(rank)
    DDP(net)
    local list = { net.mask:to "f32":cpu():totable(), net.count:item() }
    for name, t in net:named_parameters() do list[name] = values(t) end
    for name, t in net:named_buffers() do list[name] = values(t:to "f64") end
    return list
  end)
  lu.assertEquals(seen[2], seen[1])
  lu.assertEquals(seen[3], seen[1])
  lu.assertEquals({ seen[3][1], seen[3][2] }, { { 1.0, 1.0 }, 7 })
end

-- In each training step, buffers are those of the first rank; with broadcast_buffers=false each has its own.
function TestModules.test_buffers()
  for _, sends in ipairs { true, false } do
    local seen = clean(dist.spawn, 2, function(rank)
      local net = nn.BatchNorm1d(2):to(mr.current_device())
      local ddp = DDP(net, { broadcast_buffers = sends })
      for step = 1, 2 do
        net:zero_grad()
        ddp(mr.full({ 4, 2 }, rank * 10.0 + step)):sum():backward()
      end
      return values(net.running_mean)[1]
    end)
    assert_close({ seen[1] }, { 0.29 }, 1e-6, "rank 0") -- 0.9 * 0.1 * 1 + 0.1 * 2
    assert_close({ seen[2] }, { sends and 1.29 or 2.19 }, 1e-6, "rank 1")
  end
end

function TestModules.test_state_and_names()
  local ddp = DDP(nn.Linear(3, 2))
  local names = {}
  for name in pairs(ddp:state_dict()) do names[#names + 1] = name end
  table.sort(names)
  lu.assertEquals(names, { "module.bias", "module.weight" })
  lu.assertEquals(#ddp:parameters(), 2)
  lu.assertEquals(ddp:forward(mr.ones(4, 3)).shape, { 4, 2 })
  lu.assertEquals(ddp.module.in_features, 3)
end

function TestModules.test_a_group()
  clean(dist.spawn, 4, function(rank)
    local odd, even = dist.new_group { 3, 1 }, dist.new_group { 0, 2 }
    local net = nn.Linear(2, 1):to(mr.current_device())
    mr.no_grad(function() net.weight:fill_(rank) end)
    local ddp = DDP(net, { group = rank % 2 == 1 and odd or even })
    lu.assertEquals(values(net.weight), rank % 2 == 1 and { 3.0, 3.0 } or { 0.0, 0.0 })
    ddp(mr.full({ 1, 2 }, rank + 1.0)):sum():backward()
    lu.assertEquals(values(net.weight.grad), rank % 2 == 1 and { 3.0, 3.0 } or { 2.0, 2.0 })
  end)
end

function TestModules.test_the_last_one_made_has_the_parameters()
  dist.spawn(2, function(rank)
    local net = nn.Linear(2, 1):to(mr.current_device())
    local first = DDP(net)
    local second = DDP(net)
    refused("another one was made of the same parameters", first, mr.ones(1, 2))
    second(mr.full({ 1, 2 }, rank + 1.0)):sum():backward()
    lu.assertEquals(values(net.weight.grad), { 1.5, 1.5 })
  end)
end

function TestModules.test_modules_that_differ()
  local function with(rank_1)
    return dist.spawn(2, function(rank)
      local net = nn.Sequential(nn.Linear(2, 3), nn.Tanh()):to(mr.current_device())
      if rank == 1 then net = rank_1(net):to(mr.current_device()) end
      DDP(net)
    end)
  end
  refused("parameter 1 of rank 1 is `Sequential.1.weight`, f32 of shape {2, 3}, but that of rank 0 is f32 of " ..
    "shape {3, 2}", with,
    function() return nn.Sequential(nn.Linear(3, 2)) end)
  refused("f64", with, function(net) return net:to "f64" end)
  refused("frozen", with, function(net)
    net[1].bias:requires_grad_(false)
    return net
  end)
  refused("rank 1 has 4 parameters, but rank 0 has 2", with,
    function(net) return nn.Sequential(net[1], nn.Linear(2, 2)) end)
  refused("parameter 2 of rank 1 is missing", with, function()
    return nn.Sequential(nn.Linear(2, 3, { bias = false }))
  end)
end

function TestModules.test_what_is_refused()
  local net = nn.Linear(2, 1)
  refused("expected a module, got a number", DDP, 3)
  refused("no option `mb`", DDP, net, { mb = 1 })
  refused("expected a table of options", DDP, net, 3)
  refused("bucket_mb is -1", DDP, net, { bucket_mb = -1 })
  refused("first_bucket_mb is x", DDP, net, { first_bucket_mb = "x" })
  refused("broadcast_buffers is 1", DDP, net, { broadcast_buffers = 1 })
  refused("`Linear.weight` is on the host", DDP, nn.Linear(2, 1):cpu())
  for _, bad in ipairs{ "world", { ranks = {} } } do
    refused("`group` is no group", DDP, net, { group = bad })
  end
  refused("`Linear.weight` is on device 1: NVIDIA H200 (virtual), which is not that of rank 0", DDP,
    nn.Linear(2, 1):to(1))
  refused("rank 1: ", dist.spawn, 2, function(rank)
    local group = dist.new_group{ 0 }
    if rank == 1 then DDP(nn.Linear(2, 1):to(1), { group = group }) end
  end)
  refused("`Linear.weight` is on device 0", function()
    mr.dist.spawn(2, function() DDP(nn.Linear(2, 1):to(0)) end)
  end)
  refused("no parameter that requires gradients", DDP, nn.Linear(2, 1):requires_grad_(false))
  local ddp = DDP(net)
  refused("expected a function, got a number", ddp.no_sync, ddp, 3)
  net:to "f64"
  local y = ddp(mr.ones({ 1, 2 }, { dtype = "f64" })):sum()
  refused("was moved by module:to() after", y.backward, y)
  local other = nn.Module()
  other.a = nn.Linear(2, 2)
  ddp = DDP(other)
  other.b = nn.Linear(2, 2)
  refused("`DistributedDataParallel.module.b.weight` did not require gradients when", ddp, mr.ones(1, 2))
end

os.exit(lu.LuaUnit.run())
