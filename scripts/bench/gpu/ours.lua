-- The rows of run.sh with millrace: lines of name, value, unit. Times as in raw.cu. Run with --device cuda. Arguments
-- are parts (small kernels graphs traced large halves products convolutions networks order pinned peer pipeline; none:
-- all). =PATTERN keeps only those rows of the large ones and of the convolutions whose name has it.
local mr = require "millrace"

local GIB, SETS = 1 << 30, 3
local N = GIB // 4

local function median(list)
  table.sort(list)
  return list[#list // 2 + 1]
end

-- Seconds of host time a call, with the stream kept fed; work(n) makes n of them.
local function per_call(work, calls)
  calls = calls or 500
  local times = {}
  for batch = 1, 41 + 3 do
    local began = mr.clock()
    work(calls)
    if batch > 3 then times[#times + 1] = (mr.clock() - began) * 1e-3 / calls end
  end
  mr.synchronize()
  return median(times)
end

-- Seconds of device time a call; work(i) uses set i.
local function on_device(work, calls)
  calls = calls or 6
  local from, to = mr.event{timing = true}, mr.event{timing = true}
  local times = {}
  for round = 1, 21 + 3 do
    from:record()
    for i = 1, calls do work((i - 1) % SETS + 1) end
    to:record()
    to:synchronize()
    if round > 3 then times[#times + 1] = from:elapsed_time(to) * 1e-3 / calls end
  end
  return median(times)
end

local function say(name, value, unit)
  print(("%s\t%.6g\t%s"):format(name, value, unit))
  io.flush()
end

local patterns, parts = {}, {}
for _, word in ipairs(arg) do
  if word:sub(1, 1) == "=" then patterns[#patterns + 1] = word:sub(2) else parts[#parts + 1] = word end
end

local function wanted(name)
  for _, pattern in ipairs(patterns) do
    if name:find(pattern) then return true end
  end
  return #patterns == 0
end

local function small_work()
  local x, y = mr.rand(1024), mr.rand(1024)
  local p, q, r = mr.rand(64, 64), mr.rand(64, 64), mr.zeros(64, 64)
  local a, b, e, f = mr.stream(), mr.stream(), mr.event(), mr.event()
  local out = { out = r }
  mr.synchronize()
  local before = mr.current_stream()
  mr.set_stream(a)
  local function row(name, work) say(name, 1e6 * per_call(work), "us") end
  row("small kernel", function(n) for _ = 1, n do y:add_(x) end end)
  row("allocate and compute", function(n) for _ = 1, n do local _ <close> = x * 2 end end)
  row("64x64 matmul", function(n) for _ = 1, n do p:mm(q, out) end end)
  row("event record", function(n) for _ = 1, n do e:record(a) end end)
  row("record and wait", function(n)
    for _ = 1, n do
      e:record(a)
      b:wait_event(e)
    end
  end)
  row("op, record, wait, both ways", function(n)
    for _ = 1, n do
      mr.set_stream(a)
      y:add_(x)
      e:record(a)
      b:wait_event(e)
      mr.set_stream(b)
      y:add_(x)
      f:record(b)
      a:wait_event(f)
    end
  end)
  mr.set_stream(before)
end

-- raw.cu has it in PTX.
local SCALED = [[
extern "C" __global__ void add_scaled(float *y, const float *x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
]]

-- What a script compiles itself: the cost of a launch, and of a compiled kernel that the cache on disk has.
local function kernels()
  local x, y, s = mr.rand(1024), mr.rand(1024), mr.stream()
  local k, config = mr.kernel(SCALED, "add_scaled"), { grid = 4, block = 256, stream = s }
  mr.synchronize()
  say("kernel of the script, 4 args", 1e6 * per_call(function(n)
    for _ = 1, n do k[{ 4, 256, 0, s }](y, x, 0.5, 1024) end
  end), "us")
  say("the same, launch ready-made", 1e6 * per_call(function(n)
    local launch = k[config]
    for _ = 1, n do launch(y, x, 0.5, 1024) end
  end), "us")
  say("load of a cached kernel", 1e3 * per_call(function(n)
    for _ = 1, n do mr.kernel(SCALED, "add_scaled") end
  end, 2), "ms")
end

-- Small kernels as a graph: the launch with the wait for it, and the capture with what makes it ready. One kernel shows
-- what a launch costs whatever the graph contains. A kernel of the script is as simple as that of raw.cu.
local function graphs()
  local x, s, one = mr.rand(1024), mr.stream(), mr.rand(1024)
  local k = mr.kernel(SCALED, "add_scaled")
  mr.synchronize()
  local function bodies(count)
    return function() for _ = 1, count do x:add_(one) end end
  end
  local function row(name, body)
    local g <close> = mr.graph(body)
    say(name, 1e6 * per_call(function(n)
      for _ = 1, n do
        g:launch(s)
        s:synchronize()
      end
    end, 50), "us")
  end
  row("graph of 1 small kernel", bodies(1))
  row("graph of 100 small kernels", bodies(100))
  row("graph of 100 kernels of the script", function()
    for _ = 1, 100 do k[{ 4, 256 }](x, one, 1, 1024) end
  end)
  say("capture of 100 small kernels", 1e6 * per_call(function(n)
    for _ = 1, n do
      local made <close> = mr.graph(bodies(100))
      made:launch(s) -- the first launch makes the driver's graph
      s:synchronize()
    end
  end, 5), "us")
end

-- The cost of a report when each command ran (by CUPTI, if it is there), beside the same work without.
local function traced()
  local x, y, s, before = mr.rand(1024), mr.rand(1024), mr.stream(), mr.current_stream()
  mr.set_stream(s)
  local function row(name)
    say(name, 1e6 * per_call(function(n) for _ = 1, n do y:add_(x) end end, 100), "us")
  end
  row("small kernel, not traced")
  mr.trace.start()
  row("small kernel, traced")
  mr.trace.stop()
  row("small kernel, traced before")
  mr.set_stream(before)
end

local function large_work()
  local x, y, z, rows, flat, row_out = {}, {}, {}, {}, {}, {}
  for i = 1, SETS do
    x[i], y[i], z[i] = mr.rand(N):sub_(0.5), mr.rand(N):sub_(0.5), mr.empty(N)
    rows[i], row_out[i] = x[i]:view(N // 1024, 1024), z[i]:view(N // 1024, 1024)
    flat[i] = { out = z[i] }
  end
  local gib = 1e-9 * GIB
  local function rate(name, arrays, work)
    if wanted(name) then say(name, arrays * gib / on_device(work), "GB/s") end
  end
  rate("add 1 GiB", 3, function(i) x[i]:add(y[i], flat[i]) end)
  rate("mul 1 GiB", 3, function(i) x[i]:mul(y[i], flat[i]) end)
  rate("relu_ 1 GiB", 2, function(i) x[i]:relu_() end)
  rate("copy 1 GiB", 2, function(i) z[i]:copy_(x[i]) end)
  rate("sum 1 GiB", 1, function(i) local _ <close> = x[i]:sum() end)
  rate("sum of columns 1 GiB", 1, function(i) local _ <close> = rows[i]:sum(1) end)
  rate("sum of rows 1 GiB", 1, function(i) local _ <close> = rows[i]:sum(2) end)
  rate("exp 1 GiB", 2, function(i) x[i]:exp(flat[i]) end)
  local row = y[1]:narrow(1, 1, 1024)
  rate("add a row 1 GiB", 2, function(i) rows[i]:add(row, { out = row_out[i] }) end)
  rate("fill_ 1 GiB", 1, function(i) z[i]:fill_(1.5) end)
  rate("uniform_ 1 GiB", 1, function(i) z[i]:uniform_() end)
  rate("normal_ 1 GiB", 1, function(i) z[i]:normal_() end)
  local square, turned = {}, {}
  for i = 1, SETS do square[i], turned[i] = z[i]:view(16384, 16384), x[i]:view(16384, 16384):t() end
  rate("transposed copy 16384", 2, function(i) square[i]:copy_(turned[i]) end)
  if pcall(function() return x[1].softmax end) then
    rate("softmax rows of 1024", 2, function(i) rows[i]:softmax(2, { out = row_out[i] }) end)
  end
  for i = 1, SETS do x[i]:free() y[i]:free() z[i]:free() end
end

-- The rows of f32 that the aims name, with as many elements: half the bytes.
local function halves()
  for _, dtype in ipairs{ "f16", "bf16" } do
    local x, y, z, rows, row_out = {}, {}, {}, {}, {}
    for i = 1, SETS do
      x[i], y[i] = mr.rand(N, { dtype = dtype }):sub_(0.5), mr.rand(N, { dtype = dtype }):sub_(0.5)
      z[i] = mr.empty(N, { dtype = dtype })
      rows[i], row_out[i] = x[i]:view(N // 1024, 1024), z[i]:view(N // 1024, 1024)
    end
    local function rate(name, arrays, work)
      name = dtype .. " " .. name
      if wanted(name) then say(name, arrays * 1e-9 * N * x[1].itemsize / on_device(work), "GB/s") end
    end
    local row = y[1]:narrow(1, 1, 1024)
    rate("add 512 MiB", 3, function(i) x[i]:add(y[i], { out = z[i] }) end)
    rate("add a row 512 MiB", 2, function(i) rows[i]:add(row, { out = row_out[i] }) end)
    rate("relu_ 512 MiB", 2, function(i) x[i]:relu_() end)
    rate("copy 512 MiB", 2, function(i) z[i]:copy_(x[i]) end)
    rate("sum 512 MiB", 1, function(i) local _ <close> = x[i]:sum() end)
    rate("softmax rows of 1024", 2, function(i) rows[i]:softmax(2, { out = row_out[i] }) end)
    for i = 1, SETS do x[i]:free() y[i]:free() z[i]:free() end
  end
end

local function products()
  local n, a, b, c = 8192, {}, {}, mr.empty(8192, 8192)
  for i = 1, SETS do a[i], b[i] = mr.rand(n, n):sub_(0.5), mr.rand(n, n):sub_(0.5) end
  local function rate(name)
    say(name, 2e-12 * n ^ 3 / on_device(function(i) a[i]:mm(b[i], { out = c }) end, 3), "TFLOP/s")
  end
  rate("matmul 8192 fp32")
  mr.allow_tf32(true)
  rate("matmul 8192 tf32")
  mr.allow_tf32(false)
  for _, dtype in ipairs{ "f16", "bf16" } do
    c = c:to(dtype)
    for i = 1, SETS do a[i], b[i] = a[i]:to(dtype), b[i]:to(dtype) end
    rate("matmul 8192 " .. dtype)
  end
end

-- The convolutions of the network of scripts/examples, batch 64. peers.py has the same.
local function convolutions()
  for _, sizes in ipairs{ { 3, 32, 64 }, { 64, 16, 128 } } do
    local channels, size, outputs = table.unpack(sizes)
    local x, w, bias = mr.randn(64, channels, size, size), mr.randn(outputs, channels, 3, 3), mr.randn(outputs)
    local g, options = mr.randn(64, outputs, size, size), { padding = 1 }
    local function row(name, work)
      name = ("%s %d to %d, %dx%d"):format(name, channels, outputs, size, size)
      for _, tf32 in ipairs{ false, true } do
        mr.allow_tf32(tf32)
        local full = tf32 and name .. " tf32" or name
        if wanted(full) then say(full, 1e6 * on_device(work, 20), "us") end
      end
      mr.allow_tf32(false)
    end
    row("conv2d", function() local _ <close> = x:conv2d(w, bias, options) end)
    row("conv2d_input", function() local _ <close> = mr.conv2d_input(x.shape, w, g, options) end)
    row("conv2d_weight", function() local _ <close> = mr.conv2d_weight(x, w.shape, g, options) end)
  end
  for _, sizes in ipairs{ { 64, 32 }, { 128, 16 } } do
    local channels, size = table.unpack(sizes)
    local x, g = mr.randn(64, channels, size, size), mr.randn(64, channels, size // 2, size // 2)
    local y, at = x:max_pool2d(2, { return_indices = true })
    y:free()
    local function row(name, work)
      name = ("%s of %d, %dx%d"):format(name, channels, size, size)
      if wanted(name) then say(name, 1e6 * on_device(work, 20), "us") end
    end
    row("max_pool2d", function()
      local made, positions = x:max_pool2d(2, { return_indices = true })
      made:free()
      positions:free()
    end)
    row("max_pool2d_backward", function() local _ <close> = mr.max_pool2d_backward(x.shape, g, at, 2) end)
  end
end

-- Rows with an index, and those that put elements in order.
local function order()
  local n, x = 10000000, {}
  for i = 1, SETS do x[i] = mr.rand(n) end
  local at, wide = mr.randint(1, n // 10 + 1, { n }), mr.rand(n // 10, 64)
  local rows, sums = mr.randint(1, n // 10 + 1, { n // 10 }), mr.zeros(n // 10)
  local function row(name, work) say(name, 1e3 * on_device(work), "ms") end
  row("index_select 10^6 rows of 64", function() local _ <close> = wide:index_select(1, rows) end)
  row("gather 10^7", function(i) local _ <close> = x[i]:gather(1, at) end)
  row("index_add_ 10^7 to 10^6", function(i) sums:index_add_(1, at, x[i]) end)
  row("cumsum 10^7", function(i) local _ <close> = x[i]:cumsum(1) end)
  row("sort 10^7", function(i)
    local values, positions = x[i]:sort()
    values:free()
    positions:free()
  end)
  local lines = x[1]:view(-1, 100)
  row("sort 10^5 lines of 100", function()
    local values, positions = lines:sort()
    values:free()
    positions:free()
  end)
  row("topk 100 of 10^7", function(i)
    local values, positions = x[i]:topk(100)
    values:free()
    positions:free()
  end)
  row("nonzero of 10^7", function(i) local _ <close> = x[i]:gt(0.5):nonzero() end)
end

local function pinned()
  local size = (256 << 20) // 4
  local host, device = mr.empty(size, { pinned = true, device = "cpu" }), mr.rand(size)
  local later = { non_blocking = true }
  say("H2D pinned 256 MiB", 4e-9 * size / on_device(function() device:copy_(host, later) end, 3), "GB/s")
  say("D2H pinned 256 MiB", 4e-9 * size / on_device(function() host:copy_(device, later) end, 3), "GB/s")
end

local function peer()
  if mr.device_count() < 2 then return end
  local here, there = mr.rand(N), mr.empty(N, { device = 1 })
  mr.device(0):enable_peer_access(1)
  mr.device(1):enable_peer_access(0)
  say("peer copy 1 GiB", 1e-9 * GIB / on_device(function() there:copy_(here, { non_blocking = true }) end, 3), "GB/s")
end

-- Pieces go up, are worked on and come back, on three streams: how near that comes to the slower of copying (both
-- ways at once) and computing alone. There are so many that the first way up and the last way down hardly count.
local function pipeline()
  local PIECES, size = 96, (32 << 20) // 4
  local up, down, on, streams = {}, {}, {}, {}
  for i = 1, 3 do
    up[i] = mr.zeros(size, { pinned = true, device = "cpu" })
    down[i] = mr.zeros(size, { pinned = true, device = "cpu" })
    on[i], streams[i] = mr.empty(size), mr.stream()
  end
  local later = { non_blocking = true }
  local function compute(x) for _ = 1, 24 do x:add_(1) end end
  local function timed(work)
    local times = {}
    for round = 1, 7 do
      mr.synchronize()
      local began = mr.clock()
      for piece = 1, PIECES do
        local i = piece % 3 + 1
        mr.with(streams[i], work, i)
      end
      mr.synchronize()
      if round > 2 then times[#times + 1] = mr.clock() - began end
    end
    return median(times)
  end
  local copying = timed(function(i)
    on[i]:copy_(up[i], later)
    down[i]:copy_(on[i], later)
  end)
  local computing = timed(function(i) compute(on[i]) end)
  local both = timed(function(i)
    on[i]:copy_(up[i], later)
    compute(on[i])
    down[i]:copy_(on[i], later)
  end)
  say("pipeline, of its bound", math.max(copying, computing) / both, "")
end

-- A chain of small operations: what gradients cost the host. peers.py has the same.
local function autograd()
  local x = mr.rand(1024):requires_grad_()
  local function forward()
    local y = x
    for _ = 1, 500 do y = y * 1.001 + 0.1 end
    return y:sum()
  end
  local function row(name, work)
    local times = {}
    for round = 1, 21 + 3 do
      x.grad = nil
      mr.synchronize()
      local began = mr.clock()
      work()
      mr.synchronize()
      if round > 3 then times[#times + 1] = mr.clock() - began end
    end
    say(name, median(times), "ms")
  end
  row("1000 operations, recorded", forward)
  row("1000 operations, and backward", function() forward():backward() end)
end

-- As in scripts/examples/two_branch_net.lua.
local function branch()
  local nn = mr.nn
  return nn.Sequential(
    nn.Conv2d(3, 64, 3, { padding = 1 }), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(64, 128, 3, { padding = 1 }), nn.ReLU(),
    nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128 * 8 * 8, 512), nn.ReLU(), nn.Dropout(0.5), nn.Linear(512, 10)):to(0)
end

-- Seconds a call, the device's work included.
local function whole(work, calls)
  calls = calls or 20
  local times = {}
  for batch = 1, 11 + 3 do
    mr.synchronize()
    local began = mr.clock()
    for _ = 1, calls do work() end
    mr.synchronize()
    if batch > 3 then times[#times + 1] = (mr.clock() - began) * 1e-3 / calls end
  end
  return median(times)
end

-- A network of two branches, batch 64, on one stream and on two.
local function networks()
  local image, motion = mr.rand(64, 3, 32, 32), mr.rand(64, 3, 32, 32)
  local labels = mr.randint(1, 11, { 64 }, { dtype = "i64" })
  local left, right = branch(), branch()
  local parameters = left:parameters()
  table.move(right:parameters(), 1, #parameters, #parameters + 1, parameters)
  local optimiser = mr.optim.SGD(parameters, { lr = 0.01, momentum = 0.9 })
  local side = mr.stream()

  local function forward(two)
    if not two then return left(image) + right(motion) end
    local here = mr.current_stream()
    side:wait_stream(here)
    local b = mr.with(side, right, motion)
    local a = left(image)
    here:wait_stream(side)
    b:record_stream(here)
    return a + b
  end
  local function infer(two) mr.no_grad(forward, two) end
  local function train(two)
    optimiser:zero_grad()
    forward(two):cross_entropy(labels):backward()
    optimiser:step()
  end

  for _, two in ipairs { false, true } do
    local streams = two and "two streams" or "one stream"
    say("network forward, " .. streams, 1e3 * whole(function() infer(two) end), "ms")
    say("network step, " .. streams, 1e3 * whole(function() train(two) end), "ms")
  end
end

local known = { small = small_work, autograd = autograd, kernels = kernels, traced = traced, large = large_work,
  halves = halves, products = products, convolutions = convolutions, order = order, pinned = pinned, peer = peer,
  pipeline = pipeline, graphs = graphs, networks = networks }
local all = { "small", "kernels", "graphs", "traced", "autograd", "large", "halves", "products", "convolutions",
  "networks", "order", "pinned", "peer", "pipeline" }
for _, part in ipairs(#parts > 0 and parts or all) do known[part]() end
