-- Graphs of the driver on a GPU. For each family of operations, launches have the values of the same program without a
-- graph, and a launch is one call of the driver.
-- timeout: 300
-- not replayed: it looks at device tensors only through copies
--
--     millrace --device cuda tests/gpu/graphs.lua [CASE]
local mr = require "millrace"
local only = arg and arg[1]

local function randoms(...) return mr.rand(...):sub_(0.5) end

-- name, how its tensors are made, what is captured: it writes to them. `expanded`: why a launch is no single call.
local cases = {}
local function case(name, make, body, expanded)
  cases[#cases + 1] = { name = name, make = make, body = body, expanded = expanded }
end

case("elementwise", function() return { randoms(1000), randoms(1000), mr.zeros(1000) } end, function(t)
  t[1]:add_(t[2]):mul_(1.5):exp_()
  t[3]:copy_(mr.where(t[1]:gt(t[2]), t[1], t[2]))
  t[3]:add_(t[1]:to "i32"):zero_():add_(t[2])
end)

case("strides", function() return { randoms(48, 40), mr.zeros(40, 48), mr.zeros(40, 48, { dtype = "f64" }) } end,
  function(t)
    t[2]:copy_(t[1]:t())
    t[3]:copy_(t[1]:t())
    t[2]:add_(t[1]:t())
  end)

-- Few outputs of many elements are reduced in parts, which need memory.
case("reductions", function() return { randoms(3, 20000), mr.zeros(3), mr.zeros(3), mr.zeros(1) } end, function(t)
  t[2]:add_(t[1]:sum(2))
  t[3]:add_((t[1]:max(2)))
  t[4]:add_(t[1]:var())
  t[1]:add_(0.25)
end)

case("softmax", function() return { randoms(2, 20000), randoms(64, 10) } end, function(t)
  t[1]:copy_(t[1]:softmax(2))
  t[2]:copy_(t[2]:log_softmax(2))
end)

case("scans", function() return { randoms(2, 5000), randoms(300, 7) } end, function(t)
  t[1]:copy_(t[1]:cumsum(2))
  t[2]:copy_(t[2]:cumsum(1))
end)

case("sorts", function() return { randoms(3, 700), mr.zeros(3, 700, { dtype = "i64" }) } end, function(t)
  local values, places = t[1]:sort(2)
  t[2]:copy_(places)
  t[1]:copy_(values):mul_(-1)
end)

case("indices", function()
  return { randoms(50, 8), mr.randint(1, 51, 200), mr.zeros(200, 8), mr.zeros(50, 8) }
end, function(t)
  t[3]:copy_(t[1]:index_select(1, t[2]))
  t[4]:index_add_(1, t[2], t[3])
  t[1]:add_(1)
end)

case("products", function()
  return { randoms(96, 80), randoms(80, 64), mr.zeros(96, 64), randoms(80), mr.zeros(96), randoms(4, 33, 40),
    randoms(4, 40, 35), mr.zeros(4, 33, 35), mr.zeros(1) }
end, function(t)
  t[3]:add_(t[1]:matmul(t[2]))
  t[5]:add_(t[1]:matmul(t[4]))
  t[8]:add_(t[6]:matmul(t[7]))
  t[9]:add_(t[4]:dot(t[4]))
  t[1]:mul_(0.5)
end)

case("networks", function()
  return { randoms(2, 3, 9, 9), randoms(4, 3, 3, 3), randoms(4), mr.zeros(2, 4, 7, 7), mr.zeros(2, 4, 3, 3),
    mr.randint(1, 5, 6), randoms(6, 4), mr.zeros(1) }
end, function(t)
  t[4]:copy_(mr.conv2d(t[1], t[2], t[3]))
  t[5]:copy_(t[4]:max_pool2d(2))
  t[8]:add_(t[7]:cross_entropy(t[6]))
  t[1]:mul_(0.5)
end)

case("a training step", function()
  local w, b = randoms(16, 8):requires_grad_(), mr.zeros(8):requires_grad_()
  local sgd = mr.optim.SGD({ w, b }, { lr = 0.1, momentum = 0.9 }) -- Adam has its number of steps on the host
  local x, y = randoms(32, 16), randoms(32, 8)
  local function step()
    sgd:zero_grad()
    x:matmul(w):add(b):tanh():mse_loss(y):backward()
    sgd:step()
  end
  step() -- its state and gradients are made outside of the graph
  return { w:detach(), b:detach(), step = step }
end, function(t) t.step() end)

case("random numbers", function()
  return { mr.zeros(1001), mr.zeros(999), mr.zeros(300, { dtype = "i64" }), mr.zeros(640, { dtype = "f64" }),
    mr.zeros(500, { dtype = "i64" }), mr.zeros(256, { dtype = "f16" }) }
end, function(t)
  t[1]:uniform_()
  t[2]:normal_(1, 3)
  t[3]:copy_(mr.randint(1, 1000, 300))
  t[4]:normal_()
  t[5]:copy_(mr.randperm(500))
  t[6]:bernoulli_(0.25)
end)

case("dropout", function() return { randoms(1000), mr.zeros(1000) } end, function(t) t[2]:copy_(t[1]:dropout(0.5)) end)

case("operations without values", function()
  local t = {}
  for i = 1, 40 do t[i] = mr.zeros(3, { dtype = "f32" }) end
  return t
end, function(t)
  mr.spin { ms = 0.01 }
  mr.op { name = "few", ms = 0.01, reads = { t[1] }, writes = { t[2] } }
  mr.op { name = "many", ms = 0.01, reads = { table.unpack(t, 1, 20) }, writes = { table.unpack(t, 21, 40) } }
end)

case("copies", function()
  return { randoms(64), mr.zeros(64), mr.zeros(64, { pinned = true }),
    mr.ones(64, { pinned = true }) }
end, function(t)
  t[2]:copy_(t[1])
  t[3]:copy_(t[2], { non_blocking = true })
  t[1]:copy_(t[4], { non_blocking = true })
end)

case("copies of pageable memory", function() return { randoms(64), mr.ones(64, { device = "cpu" }) } end, function(t)
  t[1]:add_(1)
  t[1]:copy_(t[2], { non_blocking = true })
end, "pageable memory")

case("events of outside", function()
  local before, middle = mr.event(), mr.event()
  before:record()
  return { randoms(1000), before = before, middle = middle }
end, function(t)
  t.before:wait(nil, { external = true })
  t[1]:add_(1)
  t.middle:record(nil, { external = true })
  t[1]:mul_(0.75)
end)

case("host functions", function() return { randoms(8) } end, function(t)
  t[1]:add_(1)
  mr.current_stream():host_func(function() end)
end, "is a host function")

local side1, side2 = mr.stream(), mr.stream()
case("lanes", function() return { randoms(3, 20000), randoms(96, 96), mr.zeros(3), mr.zeros(96, 96), mr.zeros(3) } end,
  function(t)
    local origin = mr.current_stream()
    side1:wait_stream(origin)
    side2:wait_stream(origin)
    side1:run(function() t[3]:add_(t[1]:sum(2)) end)
    side2:run(function() t[4]:add_(t[2]:matmul(t[2])):uniform_() end)
    t[5]:add_((t[1]:max(2)))
    origin:wait_stream(side1)
    origin:wait_stream(side2)
    t[1]:add_(1)
  end)

local function bytes_of(tensors)
  local out = {}
  for i, t in ipairs(tensors) do out[i] = table.concat(t:detach():cpu():flatten():totable(), " ") end
  return out
end

local function new(c)
  mr.manual_seed(11)
  local t = c.make()
  mr.synchronize()
  return t
end

-- Other streams in turn, and a change of the executable by an update in between.
local function check(c)
  local streams, rounds = { mr.stream(), mr.stream() }, 4
  local eager = new(c)
  for i = 1, rounds do
    mr.with(streams[1], function() c.body(eager) end)
    if i == 1 then mr.rand(3) end
  end
  mr.synchronize()
  local t = new(c)
  local g = mr.graph(function() c.body(t) end)
  for i = 1, rounds do
    if i == 3 then g:update(function() c.body(t) end) end
    streams[i % 2 + 1]:wait_stream(streams[2 - i % 2])
    g:launch(streams[i % 2 + 1])
    if i == 1 then mr.rand(3) end
  end
  mr.synchronize()
  local why = g.expanded -- a driver has limits that the virtual GPU does not have
  if mr.backend == "cuda" then assert((why == nil) == (c.expanded == nil), ("%s: expanded: %s"):format(c.name, why)) end
  if why then assert(why:find(c.expanded, 1, true), why) end
  local a, b = bytes_of(eager), bytes_of(t)
  for i = 1, #a do
    assert(a[i] == b[i], ("%s: tensor %d differs\n%s\n%s"):format(c.name, i, a[i]:sub(1, 200), b[i]:sub(1, 200)))
  end
  g:close()
end

local passed = 0
for _, c in ipairs(cases) do
  if not only or c.name == only then
    check(c)
    print(c.name)
    passed = passed + 1
  end
end
print(("%d passed, 0 failed"):format(passed))
