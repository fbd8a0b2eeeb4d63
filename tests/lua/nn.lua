-- mr.nn: what modules compute, beside PyTorch (tests/data/nn/make.py); registration, states, printing; misuse.
local lu = require "luaunit"
local mr = require "millrace"
local naive = require "lua.support.naive"

local nn = mr.nn
local refused = naive.assert_raises
local DATA = mr.load("tests/data/nn/layers.safetensors")
for name, t in pairs((mr.load("tests/data/nn/more.safetensors"))) do DATA[name] = t end

local function near(actual, expected, what)
  lu.assertEquals(actual.shape, expected.shape, what)
  lu.assertTrue(mr.allclose(actual:detach():cpu(), expected, { rtol = 2e-5, atol = 2e-6 }),
    what .. ": " .. mr.format(actual:detach()) .. " but " .. mr.format(expected))
end

-- The tensors whose names begin with `prefix`, without it.
local function part(prefix)
  local found = {}
  for name, t in pairs(DATA) do
    if name:sub(1, #prefix) == prefix then found[name:sub(#prefix + 1)] = t end
  end
  return found
end

-- ---------------------------------------------------------------- values

local LAYERS = {
  linear = function() return nn.Linear(5, 3) end,
  linear_3d = function() return nn.Linear(5, 3, { bias = false }) end,
  conv = function() return nn.Conv2d(2, 4, 3, { stride = 2, padding = 1 }) end,
  conv_groups = function()
    return nn.Conv2d(4, 6, { 1, 3 }, { padding = { 0, 1 }, groups = 2, dilation = { 1, 2 }, bias = false })
  end,
  batch_norm = function() return nn.BatchNorm2d(3) end,
  batch_norm_eval = function() return nn.BatchNorm2d(3):eval() end,
  batch_norm_average = function() return nn.BatchNorm2d(2, { momentum = false }) end,
  layer_norm = function() return nn.LayerNorm { 3, 4 } end,
  conv1d = function() return nn.Conv1d(4, 6, 3, { stride = 2, padding = 1, dilation = 2, groups = 2 }) end,
  batch_norm_rows = function() return nn.BatchNorm1d(3) end,
  batch_norm_sequences = function() return nn.BatchNorm1d(2, { momentum = 0.3 }) end,
  batch_norm_plain = function()
    return nn.BatchNorm1d(2, { affine = false, track_running_stats = false }):eval()
  end,
  max_pool = function() return nn.MaxPool2d(2) end,
  avg_pool = function() return nn.AvgPool2d(3, { stride = 2, padding = 1 }) end,
  adaptive = function() return nn.AdaptiveAvgPool2d { 2, 3 } end,
  relu = nn.ReLU, gelu = nn.GELU, tanh = nn.Tanh, sigmoid = nn.Sigmoid,
  softmax = function() return nn.Softmax(2) end,
  log_softmax = function() return nn.LogSoftmax(2) end,
  flatten = nn.Flatten,
}

TestLayers = {}

for name, make in pairs(LAYERS) do
  TestLayers["test_" .. name] = function()
    local m = make():to("device")
    m:load_state_dict(part(name .. ".p."))
    local x = DATA[name .. ".x"]:to("device"):requires_grad_()
    local y = m(x)
    near(y, DATA[name .. ".y"], name)
    for buffer, value in m:named_buffers() do near(value, DATA[name .. ".after." .. buffer], buffer) end
    local total = (y * DATA[name .. ".w"]:to("device")):sum()
    total:backward()
    near(x.grad, DATA[name .. ".g"], "the gradient of x")
    for parameter, p in m:named_parameters() do near(p.grad, DATA[name .. ".d." .. parameter], parameter) end
  end
end

-- PyTorch's indices count from 0.
function TestLayers.test_embedding()
  local m = nn.Embedding(6, 3):to("device")
  m:load_state_dict(part "embedding.p.")
  local y = m((DATA["embedding.x"]:to("i64") + 1):to("device"))
  near(y, DATA["embedding.y"], "embedding")
  y:sum():backward()
  local uses = m.weight.grad:sum(2):div(3):cpu():totable() -- of the rows, by {{1, 6, 3}, {2, 2, 5}}
  lu.assertEquals(uses, { 1.0, 2.0, 1.0, 0.0, 1.0, 1.0 })
  lu.assertEquals(tostring(m), "Embedding(6, 3)")
end

function TestLayers.test_named_parameters_by_pairs()
  local m, names = nn.Linear(2, 3), {}
  for name, p in pairs(m:named_parameters()) do names[#names + 1] = name .. #p.shape end
  lu.assertEquals(names, { "weight2", "bias1" })
end

function TestLayers.test_losses()
  local scores, classes = DATA.scores:to("device"), DATA.classes:to("device") + 1
  local target, weight = DATA.target:to("device"), DATA.class_weight:to("device")
  for _, reduction in ipairs { "mean", "sum", "none" } do
    near(nn.MSELoss { reduction = reduction }(scores, target), DATA["mse." .. reduction], "mse")
    near(nn.CrossEntropyLoss { reduction = reduction }(scores, classes), DATA["cross_entropy." .. reduction], "cross")
    local smoothed = { reduction = reduction, label_smoothing = 0.25 }
    near(nn.CrossEntropyLoss(smoothed)(scores, classes), scores:cross_entropy(classes, smoothed):cpu(), "smoothed")
    near(nn.NLLLoss { reduction = reduction, weight = weight }(scores, classes), DATA["nll." .. reduction], "nll")
  end
  near(nn.MSELoss()(scores, target), DATA["mse.mean"], "mse")
end

local PAIRS = { l1 = { "L1Loss" }, huber = { "HuberLoss" }, huber_wide = { "HuberLoss", { delta = 2.5 } },
  smooth_l1 = { "SmoothL1Loss" }, smooth_l1_narrow = { "SmoothL1Loss", { beta = 0.25 } },
  bce = { "BCEWithLogitsLoss" }, bce_weighted = { "BCEWithLogitsLoss", { weight = true, pos_weight = true } } }

for kind, case in pairs(PAIRS) do
  TestLayers["test_loss_" .. kind] = function()
    for _, reduction in ipairs { "mean", "sum", "none" } do
      local options = { reduction = reduction }
      for name, value in pairs(case[2] or {}) do
        options[name] = value == true and DATA["loss." .. name]:to("device") or value
      end
      local x = DATA["loss.x"]:to("device"):clone():requires_grad_()
      local loss = nn[case[1]](options)(x, DATA["loss.target"]:to("device"))
      local name = ("loss.%s.%s"):format(kind, reduction)
      near(loss, DATA[name], name)
      loss:sum():backward()
      near(x.grad, DATA[name .. ".g"], name .. ".g")
    end
  end
end

-- Shapes that only broadcast to a third one compare each output with each target.
function TestLayers.test_losses_of_shapes_that_do_not_belong_together()
  local column, row = mr.ones(4, 1), mr.ones(4)
  refused({ "mse_loss: the input is 4x1 and the target 4", "target:view(input.shape)" }, column.mse_loss, column, row)
  refused({ "L1Loss: the input is 4 and the target 4x1" }, nn.L1Loss(), row, column)
  refused({ "BCEWithLogitsLoss: the input is 3x2" }, nn.BCEWithLogitsLoss(), mr.ones(3, 2), mr.ones(3))
  lu.assertEquals(column:mse_loss(mr.zeros(1)):item(), 1)
  lu.assertEquals(column:mse_loss(mr.zeros({})):item(), 1)
  lu.assertEquals(nn.L1Loss()(mr.zeros(3, 2), mr.ones(2)):item(), 1)
  refused({ "the target is a number, expected a tensor" }, nn.L1Loss(), row, 3)
  refused({ "the input is nil" }, nn.HuberLoss())
  refused({ "delta is 0" }, nn.HuberLoss { delta = 0 }, row, row)
end

function TestLayers.test_dropout()
  mr.manual_seed(1)
  local m, x = nn.Dropout(0.25), mr.ones(10000):requires_grad_()
  local y = m(x)
  local kept = y:detach():gt(0):to("f32"):mean():item()
  lu.assertTrue(math.abs(kept - 0.75) < 0.02)
  lu.assertAlmostEquals(y:detach():max():item(), 1 / 0.75, 1e-6)
  y:sum():backward()
  lu.assertTrue(mr.equal(x.grad, y:detach()))
  lu.assertTrue(rawequal(m:eval()(x), x))
  lu.assertEquals(nn.Dropout(1)(x):detach():sum():item(), 0)
end

function TestLayers.test_first_values()
  mr.manual_seed(7)
  local a, b = nn.Linear(100, 50), nn.Conv2d(4, 8, 5)
  mr.manual_seed(7)
  lu.assertTrue(mr.equal(nn.Linear(100, 50).weight:detach(), a.weight:detach()))
  for m, bound in pairs { [a] = 0.1, [b] = 0.1 } do
    for _, p in ipairs(m:parameters()) do
      local most = p:detach():abs():max():item()
      lu.assertTrue(most <= bound and most > 0.8 * bound, tostring(m))
    end
  end
  local t = mr.empty(200, 100):requires_grad_()
  lu.assertTrue(nn.init.kaiming_uniform_(t):detach():abs():max():item() <= math.sqrt(6 / 100))
  lu.assertTrue(nn.init.xavier_uniform_(t):detach():abs():max():item() <= math.sqrt(6 / 300))
  lu.assertEquals(nn.init.constant_(t, 2):detach():min():item(), 2)
  lu.assertTrue(nn.init.normal_(t, 5, 0.1):detach():min():item() > 4)
  lu.assertTrue(nn.init.uniform_(t, 2, 3):detach():min():item() >= 2)
end

-- ---------------------------------------------------------------- modules

local function new_net()
  local Net = nn.Module.class("Net")
  function Net:init(width)
    self.fc1 = nn.Linear(2, width)
    self.act = nn.ReLU()
    self.head = nn.Sequential(nn.Linear(width, width), nn.Dropout(0.1), nn.Linear(width, 1, { bias = false }))
    self.scale = nn.Parameter(mr.ones(1))
    self:register_buffer("seen", mr.zeros({}, { dtype = "i64" }))
    self.width = width
  end
  function Net:forward(x) return self.head(self.act(self.fc1(x))) * self.scale end
  return Net(4), Net
end

local function names(iterator)
  local list = {}
  for name in iterator do list[#list + 1] = name end
  return table.concat(list, " ")
end

TestModules = {}

function TestModules.test_a_module_without_a_class()
  local net = nn.Module()
  net.fc1 = nn.Linear(2, 3)
  net.fc2 = nn.Linear(3, 1)
  function net:forward(x) return self.fc2(self.fc1(x):relu()) end
  lu.assertEquals(names(net:named_parameters()), "fc1.weight fc1.bias fc2.weight fc2.bias")
  lu.assertEquals(net(mr.ones(4, 2)).shape, { 4, 1 })
  lu.assertEquals(#nn.Sequential(net, nn.ReLU()):parameters(), 4)
  lu.assertStrContains(tostring(net), "Module(\n  (fc1): Linear(")
  lu.assertEquals(#nn.Module():parameters(), 0)
  lu.assertErrorMsgContains("no method `forward`", nn.Module(), mr.ones(1))
  lu.assertErrorMsgContains("takes no arguments", nn.Module, "Net")
end

function TestModules.test_registration_is_in_the_order_of_assignment()
  local net = new_net()
  lu.assertEquals(names(net:named_parameters()), "scale fc1.weight fc1.bias head.1.weight head.1.bias head.3.weight")
  lu.assertEquals(names(net:named_buffers()), "seen")
  lu.assertEquals(names(net:named_modules()), " fc1 act head head.1 head.2 head.3")
  lu.assertEquals(names(net:named_children()), "fc1 act head")
  lu.assertEquals({ #net:parameters(), #net:buffers(), #net:modules(), #net:children(), #net.head }, { 6, 1, 7, 3, 3 })
  lu.assertTrue(rawequal(net.head:get(1), net.head["1"]))
  lu.assertEquals(net.width, 4)
  lu.assertEquals(net(mr.ones(3, 2)).shape, { 3, 1 })
end

function TestModules.test_shared_parameters_count_once()
  local a = nn.Linear(3, 3)
  local b = nn.Linear(3, 3)
  b.weight = a.weight
  local both = nn.Sequential(a, b, a)
  lu.assertEquals(names(both:named_parameters()), "1.weight 1.bias 2.bias")
  both:to("f64")
  lu.assertTrue(rawequal(a.weight, b.weight))
  lu.assertEquals(a.weight.dtype, "f64")
end

-- The lists of a module are kept until some module changes.
function TestModules.test_lists_follow_changes_far_inside()
  local inner = nn.Linear(2, 2)
  local net = nn.Sequential(nn.Sequential(nn.Sequential(inner)))
  net:parameters()[3] = "the script's own table"
  lu.assertEquals(names(net:named_parameters()), "1.1.1.weight 1.1.1.bias")
  inner.extra = nn.Parameter(mr.zeros(1))
  inner:register_buffer("mean", mr.zeros(1))
  lu.assertEquals(names(net:named_parameters()), "1.1.1.weight 1.1.1.bias 1.1.1.extra")
  lu.assertEquals(names(net:named_buffers()), "1.1.1.mean")
  net:to("f64")
  lu.assertEquals(net:buffers()[1].dtype, "f64")
  inner.mean = mr.ones(3)
  lu.assertEquals(net:buffers()[1].numel, 3)
end

function TestModules.test_lists_keep_nothing_that_was_removed()
  local net = nn.Sequential(nn.Sequential())
  local found = setmetatable({}, { __mode = "v" })
  local function add_and_list()
    net["1"]["1"] = nn.BatchNorm1d(2)
    found[1], found[2] = net:parameters()[1], net:buffers()[1]
  end
  add_and_list()
  lu.assertEquals(#found, 2)
  net["1"]["1"] = nil
  collectgarbage()
  collectgarbage()
  lu.assertEquals({ #net:parameters(), #net:buffers(), #found }, { 0, 0, 0 })
end

function TestModules.test_fields_are_replaced_and_removed()
  local net = new_net()
  net.scale = nn.Parameter(mr.zeros(1))
  lu.assertEquals(#net:parameters(), 6)
  net.scale = nil
  lu.assertEquals(#net:parameters(), 5)
  lu.assertNil(net.scale)
  net.seen = mr.ones({}, { dtype = "i64" })
  lu.assertEquals(net:buffers()[1]:item(), 1)
  refused({ "`weight` is a parameter" }, function() net.fc1.weight = mr.zeros(4, 2) end)
end

function TestModules.test_activations_with_a_parameter()
  local x = mr.tensor { -2.0, 0, 3 }
  for m, expected in pairs { [nn.LeakyReLU()] = x:leaky_relu(), [nn.LeakyReLU(0.2)] = x:leaky_relu(0.2),
    [nn.LeakyReLU { negative_slope = 0.5 }] = x:leaky_relu(0.5), [nn.ELU()] = x:elu(), [nn.ELU(2)] = x:elu(2),
    [nn.SiLU()] = x:silu(), [nn.Softplus()] = x:softplus() } do
    lu.assertTrue(mr.equal(m(x), expected), tostring(m))
  end
  lu.assertEquals(tostring(nn.LeakyReLU(0.2)), "LeakyReLU(negative_slope=0.2)")
  refused({ "ELU", "alpha is true" }, nn.ELU, true)
  refused({ "Flatten: first is a, expected a dim" }, nn.Flatten, "a", "b")
  refused({ "Flatten: last is 0, expected a dim" }, nn.Flatten, 1, 0)
  refused({ "Softmax: dim is 1.5, expected a dim" }, nn.Softmax, 1.5)
end

function TestModules.test_padding_by_a_word()
  lu.assertEquals(nn.Conv2d(1, 2, { 2, 3 }, { padding = "same" })(mr.ones(1, 1, 5, 6)).shape, { 1, 2, 5, 6 })
  lu.assertEquals(nn.Conv1d(1, 2, 4, { padding = "same", dilation = 2 })(mr.ones(1, 1, 9)).shape, { 1, 2, 9 })
  lu.assertEquals(nn.Conv2d(1, 2, 3, { padding = "valid" })(mr.ones(1, 5, 6)).shape, { 2, 3, 4 })
  lu.assertEquals(tostring(nn.Conv1d(1, 2, 3, { padding = "same" })),
    "Conv1d(1, 2, kernel_size=(3,), stride=(1,), padding=same)")
  refused({ "Conv2d", "stride of 1" }, nn.Conv2d, 1, 1, 3, { padding = "same", stride = 2 })
  refused({ "conv2d", "stride of 1" }, function()
    mr.ones(1, 1, 5, 5):conv2d(mr.ones(1, 1, 3, 3), { padding = "same", stride = 2 })
  end)
  refused({ "Conv2d", "padding=\"full\"" }, nn.Conv2d, 1, 1, 3, { padding = "full" })
  refused({ "conv2d", "padding=\"full\"" }, function()
    mr.ones(1, 1, 5, 5):conv2d(mr.ones(1, 1, 3, 3), { padding = "full" })
  end)
end

function TestModules.test_it_is_printed_as_in_pytorch()
  lu.assertEquals(tostring((new_net())), [[
Net(
  (fc1): Linear(in_features=2, out_features=4, bias=true)
  (act): ReLU()
  (head): Sequential(
    (1): Linear(in_features=4, out_features=4, bias=true)
    (2): Dropout(p=0.1)
    (3): Linear(in_features=4, out_features=1, bias=false)
  )
)]])
  lu.assertEquals(tostring(nn.Conv2d(3, 8, 3, { padding = 1 })),
    "Conv2d(3, 8, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))")
  lu.assertEquals(tostring(nn.LayerNorm(4)), "LayerNorm((4,), eps=1e-05, elementwise_affine=true)")
  lu.assertEquals(tostring(nn.Sequential(nn.Identity())), "Sequential(\n  (1): Identity()\n)")
  lu.assertEquals(tostring(nn.MaxPool2d(2)),
    "MaxPool2d(kernel_size=(2, 2), stride=(2, 2), padding=(0, 0), dilation=(1, 1), ceil_mode=false)")
end

function TestModules.test_modes_and_walks()
  local net = new_net()
  lu.assertTrue(net.training)
  net:eval()
  for _, m in ipairs(net:modules()) do lu.assertFalse(m.training) end
  net:train()
  lu.assertTrue(net.head:get(2).training)
  local visited = {}
  net:apply(function(m) visited[#visited + 1] = tostring(m):match("^%w+") end)
  lu.assertEquals(table.concat(visited, " "), "Linear ReLU Linear Dropout Linear Sequential Net")
  net:requires_grad_(false)
  for _, p in ipairs(net:parameters()) do lu.assertFalse(p.requires_grad) end
end

function TestModules.test_moving()
  local net = new_net()
  net(mr.ones(1, 2)):sum():backward()
  local grad = net.scale.grad:item()
  net:to("cpu", "f64")
  lu.assertEquals({ tostring(net.scale.device), net.scale.dtype, net.seen.dtype }, { "cpu", "f64", "i64" })
  lu.assertTrue(net.scale.requires_grad and net.scale.is_leaf)
  lu.assertEquals(net.scale.grad:item(), grad)
  local scale = net.scale
  lu.assertEquals(scale:detach():totable(), { 1 })
  net:to("cpu")
  lu.assertTrue(rawequal(net.scale, scale))
  refused({ "a dtype of floats" }, net.to, net, "i32")
  refused({ "an argument is missing" }, net.to, net)
  net:zero_grad()
  lu.assertNil(net.scale.grad)
end

-- An optimiser holds the parameters, so it must see where they went.
local function names_of(list)
  local found = {}
  for i, t in ipairs(list) do found[i] = t:name() end
  return found
end

-- From the outermost module on, however the modules were put together.
function TestModules.test_parameters_and_buffers_are_named_by_their_place()
  local Net = nn.Module.class("Net")
  function Net:init(own)
    self.layers = nn.ModuleList()
    self.layers:append(nn.Linear(2, 2, { bias = false }))
    self.layers:append(nn.Sequential(nn.BatchNorm1d(2)))
    self.scale = nn.Parameter(own)
  end
  local net = Net(mr.ones(1))
  local expected = { "Net.scale", "Net.layers.1.weight", "Net.layers.2.1.weight", "Net.layers.2.1.bias" }
  lu.assertEquals(names_of(net:parameters()), expected)
  lu.assertEquals(net:buffers()[1]:name(), "Net.layers.2.1.running_mean")
  net:to("f64")
  lu.assertEquals(names_of(net:parameters()), expected)
  lu.assertEquals(net:buffers()[1]:name(), "Net.layers.2.1.running_mean")
  lu.assertEquals(nn.Sequential(net)[1].scale:name(), "Sequential.1.scale")
  lu.assertEquals(Net(mr.ones(1):name("own")).scale:name(), "own")
  local o = mr.optim.Adam({ net.scale })
  net.scale.grad = mr.ones_like(net.scale:detach())
  o:step()
  lu.assertEquals(o.state[net.scale].exp_avg:name(), "Sequential.1.scale.exp_avg")
  -- One that stands in two places keeps its first name.
  local shared, other = nn.Linear(1, 1), nn.Module.class("Other")()
  other.a = shared
  other.b = nn.Sequential(shared)
  lu.assertEquals(shared.weight:name(), "Other.a.weight")
end

function TestModules.test_reports_name_parameters()
  local net, s = nn.Sequential(nn.Linear(2, 2)), mr.stream()
  local reports = mr.hazard.check(function()
    s:run(function() mr.no_grad(net[1].weight.zero_, net[1].weight) end)
    net(mr.ones(1, 2))
    mr.synchronize()
  end)
  lu.assertEquals(reports[1].tensor, "Sequential.1.weight")
end

function TestModules.test_weights_of_losses_move_with_them()
  local loss = nn.BCEWithLogitsLoss { pos_weight = mr.tensor { 2.0 }, weight = mr.tensor { 1.0 } }:to("cpu"):to("f64")
  lu.assertEquals({ loss.pos_weight.device, loss.pos_weight.dtype, loss.weight.device }, { "cpu", "f64", "cpu" })
  lu.assertEquals(#loss:buffers(), 2)
  lu.assertEquals(#nn.CrossEntropyLoss { weight = mr.ones(3) }:buffers(), 1)
end

function TestModules.test_an_optimiser_follows_its_parameters()
  for _, kind in ipairs { "SGD", "Adam" } do
    mr.manual_seed(2)
    local still, moves = nn.Linear(3, 2), nn.Linear(3, 2)
    moves:load_state_dict(still:state_dict())
    local options = { lr = 0.1, momentum = kind == "SGD" and 0.9 or nil }
    local a, b = mr.optim[kind](still:parameters(), options), mr.optim[kind](moves:parameters(), options)
    local weight, x = moves.weight, mr.rand(4, 3)
    for step = 1, 6 do
      if step == 3 then moves:cpu() elseif step == 5 then moves:to(mr.current_device()) end
      for m, o in pairs { [still] = a, [moves] = b } do
        o:zero_grad()
        m(x:to(m.weight.device)):square():sum():backward()
        o:step()
      end
    end
    lu.assertTrue(rawequal(moves.weight, weight))
    lu.assertTrue(mr.allclose(moves.weight:detach():cpu(), still.weight:detach():cpu(), { rtol = 1e-6 }), kind)
  end
  local m = nn.Linear(2, 1)
  local o = mr.optim.Adam(m:parameters())
  m(mr.ones(1, 2)):sum():backward()
  o:step()
  m:cuda():to("f64")
  o:step()
  lu.assertEquals(o:state_dict()["1.exp_avg"].dtype, "f64")
  m:to("f16")
  refused({ "parameters are f32 or f64, not f16" }, o.step, o)
end

function TestModules.test_a_graph_does_not_outlive_a_move()
  local m = nn.Linear(2, 1)
  local loss = m(mr.ones(1, 2)):sum()
  m:to("f64")
  refused({ "backward: ", "moved by module:to()" }, loss.backward, loss)
  lu.assertNil(m.weight.grad)
  m(mr.ones(1, 2, { dtype = "f64" })):sum():backward()
  lu.assertEquals(m.weight.grad:totable(), { { 1, 1 } })
  lu.assertEquals(m.weight.grad.dtype, "f64")
end

-- A copy that fails leaves all where it was.
function TestModules.test_a_move_that_fails_moves_nothing()
  local m = nn.Linear(2, 2)
  refused({ "dtype" }, m.to, m, "f64", "i32")
  lu.assertEquals({ m.weight.dtype, m.bias.dtype }, { "f32", "f32" })
  local net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
  net:get(2).bias:free()
  lu.assertFalse(pcall(net.to, net, "f64"))
  lu.assertEquals(net:get(1).weight.dtype, "f32")
end

function TestModules.test_states()
  mr.manual_seed(3)
  local a, Net = new_net()
  local b = Net(4)
  local path = os.tmpname() .. ".safetensors"
  mr.save(path, a:state_dict())
  lu.assertEquals({ b:load_state_dict((mr.load(path))) }, { {}, {} })
  os.remove(path)
  for name, value in pairs(b:state_dict()) do
    lu.assertTrue(mr.equal(value, a:state_dict()[name]), name)
    lu.assertFalse(value.requires_grad)
  end
  local x = mr.rand(5, 2)
  lu.assertTrue(mr.equal(a:eval()(x):detach(), b:eval()(x):detach()))
end

-- A file of PyTorch's, as it is: its modules count from 0.
function TestModules.test_the_names_in_a_state_are_those_of_pytorch()
  local function new()
    local net = nn.Module()
    net.body = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Sequential(nn.Linear(4, 4)), nn.BatchNorm1d(4))
    net.heads = nn.ModuleList { nn.Linear(4, 1), nn.Linear(4, 2) }
    return net
  end
  local net, state = new(), part "nested.p."
  lu.assertNotNil(state["body.2.0.weight"])
  lu.assertEquals({ net:load_state_dict(state) }, { {}, {} })
  local own = net:state_dict()
  for name, value in pairs(state) do lu.assertTrue(mr.equal(value:to("device"), own[name]), name) end
  for name in pairs(own) do lu.assertNotNil(state[name], name) end
  local y = net.body:eval()(DATA["nested.x"]:to("device"))
  near(mr.cat({ net.heads[1](y), net.heads[2](y) }, 2), DATA["nested.y"], "nested")

  local from_one = {}
  for name, value in pairs(state) do
    from_one[name:gsub("%.(%d+)%f[.]", function(n) return "." .. n + 1 end)] = value
  end
  lu.assertNotNil(from_one["body.3.1.weight"])
  local other = new()
  lu.assertEquals({ other:load_state_dict(from_one) }, { {}, {} })
  lu.assertTrue(mr.equal(other.heads[2].bias:detach(), net.heads[2].bias:detach()))
  from_one["heads.2.bias"] = nil
  refused({ "`heads.0.weight`" }, other.load_state_dict, other, from_one)
end

function TestModules.test_a_state_that_does_not_fit_changes_nothing()
  local m = nn.Linear(2, 2)
  local before = m.weight:detach():clone()
  local good = { weight = mr.zeros(2, 2), bias = mr.zeros(2) }
  refused({ "`bias` is missing" }, m.load_state_dict, m, { weight = good.weight })
  refused({ "the module has no `more`" }, m.load_state_dict, m,
    { weight = good.weight, bias = good.bias, more = good.bias })
  refused({ "`bias` is 3, but the module's is 2" }, m.load_state_dict, m, { weight = good.weight, bias = mr.zeros(3) })
  refused({ "`bias` is a number, expected a tensor" }, m.load_state_dict, m, { weight = good.weight, bias = 3 })
  refused({ "expected a table" }, m.load_state_dict, m, 3)
  -- All that does not fit is in one error.
  refused({ "load_state_dict: `bias` is missing; the module has no `less`, `more`; " ..
    "`weight` is 3x2, but the module's is 2x2" },
    m.load_state_dict, m, { weight = mr.zeros(3, 2), more = good.bias, less = good.bias })
  lu.assertTrue(mr.equal(m.weight:detach(), before))
  lu.assertEquals({ m:load_state_dict({ bias = good.bias, more = good.bias }, { strict = false }) },
    { { "weight" }, { "more" } })
  lu.assertEquals(m.bias:detach():totable(), { 0, 0 })
end

function TestModules.test_classes_inherit()
  local Base = nn.Module.class("Base")
  function Base:init(n) self.n = n end
  function Base:double() return 2 * self.n end
  local Special = nn.Module.class("Special", Base)
  function Special:forward() return self:double() + 1 end
  lu.assertEquals(Special(3)(), 7)
  refused({ "Base has no method `forward`" }, Base(1))
  local Third = Special.class("Third")
  lu.assertEquals({ Third(4)(), tostring(Third(4)) }, { 9, "Third()" })
  refused({ "the parent is no class" }, nn.Module.class, "x", {})
  refused({ "expected a name" }, nn.Module.class)
end

function TestModules.test_lists_of_modules()
  local Net = nn.Module.class("Net")
  function Net:init() self.layers = nn.ModuleList { nn.Linear(2, 3), nn.Linear(3, 1) } end
  function Net:forward(x)
    for _, layer in ipairs(self.layers) do x = layer(x) end
    return x
  end
  local net = Net()
  lu.assertEquals(names(net:named_parameters()),
    "layers.1.weight layers.1.bias layers.2.weight layers.2.bias")
  lu.assertEquals(net(mr.ones(4, 2)).shape, { 4, 1 })
  lu.assertTrue(rawequal(net.layers:append(nn.ReLU()), net.layers))
  lu.assertEquals({ #net.layers, tostring(net.layers[3]), tostring(net.layers:get(3)) }, { 3, "ReLU()", "ReLU()" })
  lu.assertNil(net.layers[4])
  lu.assertEquals(tostring(nn.ModuleList()), "ModuleList()")
  refused({ "entry 1 is a number, expected a module" }, nn.ModuleList, { 3 })
  refused({ "got a module" }, nn.ModuleList, nn.ReLU())
  refused({ "append: expected a module, got a number" }, net.layers.append, net.layers, 3)
  refused({ "ModuleList has no method `forward`" }, net.layers, mr.ones(1))
end

function TestModules.test_a_dot_in_place_of_a_colon()
  local x, net = mr.ones(1, 2), nn.Sequential(nn.Linear(2, 2))
  for _, m in ipairs { net, net[1], nn.MSELoss() } do
    refused({ "forward: expected a module in front of the colon, got a tensor", "or m(...)" }, m.forward, x, x)
  end
  refused({ "eval: expected a module in front of the colon, got nil" }, net.eval)
  refused({ "the input is nil" }, net)
  refused({ "MSELoss: the target is nil" }, nn.MSELoss(), x)
end

function TestModules.test_a_module_is_no_table_of_tensors()
  local m, path = nn.Linear(1, 1), os.tmpname()
  refused({ "save: ", "write m:state_dict()" }, mr.save, path .. ".safetensors", m)
  refused({ "save: ", "write m:state_dict()" }, mr.save, path .. ".safetensors", mr.optim.SGD(m:parameters()))
  os.remove(path)
end

function TestModules.test_names_that_are_not_there()
  refused({ "there is no `mr.nn.RNN`: not in this version" }, function() return nn.RNN end)
  refused({ "`mr.nn.Linaer`: did you mean `mr.nn.Linear`?" }, function() return nn.Linaer end)
  refused({ "`mr.nn.functional`: functions are methods" }, function() return nn.functional.relu end)
  refused({ "mr.data.batches" }, function() return mr.data.DataLoader end)
  refused({ "did you mean `mr.nn.init.normal_`" }, function() return nn.init.normal end)
  refused({ "`mr.optim.lr_scheduler.ExponentialLR`" }, function() return mr.optim.lr_scheduler.ExponentialLR end)
end

-- An argument that PyTorch takes by position is an option here, and is not left out silently.
function TestModules.test_arguments_that_nothing_reads()
  refused({ "Linear: argument 3 is false, expected a table of options: {bias=, dtype=, device=}" }, nn.Linear, 2, 3,
    false)
  refused({ "Conv2d: argument 4 is a number" }, nn.Conv2d, 1, 1, 3, 1)
  refused({ "Conv2d: too many arguments: expected mr.nn.Conv2d(" }, nn.Conv2d, 1, 1, 3, 1, 1)
  refused({ "argument 2 is a number", "{stride=, padding=" }, nn.MaxPool2d, 3, 1)
  refused({ "argument 2 is a number" }, nn.AvgPool2d, 2, 1)
  refused({ "argument 2 is a number" }, nn.BatchNorm2d, 3, 1e-3)
  refused({ "argument 2 is a number" }, nn.LayerNorm, 3, 1e-3)
  refused({ "argument 1 is a string, expected no more arguments" }, nn.GELU, "tanh")
  refused({ "argument 3 is a number" }, nn.Embedding, 3, 2, 0)
  refused({ "argument 3 is a table" }, nn.Linear, 2, 3, nn.ReLU())
  refused({ "MSELoss: too many arguments: expected mr.nn.MSELoss(" }, nn.MSELoss, {}, 3)
  lu.assertEquals(nn.Linear(2, 3, nil).bias.shape, { 3 })
  local m = nn.Linear(2, 3)
  refused({ "train: argument 1 is a number, expected true or false" }, m.train, m, 1)
  refused({ "requires_grad_: argument 1 is a string" }, m.requires_grad_, m, "no")
  refused({ "zero_grad: set_to_none is a table" }, m.zero_grad, m, {})
end

function TestModules.test_a_buffer_that_is_not_saved()
  local m = nn.Identity()
  m:register_buffer("saved", mr.ones(1))
  m:register_buffer("scratch", mr.ones(2), false)
  refused({ "persistent is a number" }, m.register_buffer, m, "more", mr.ones(1), 1)
  lu.assertEquals(names(m:named_buffers()), "saved scratch")
  m.scratch = mr.zeros(3)
  local state = m:state_dict()
  lu.assertNil(state.scratch)
  lu.assertEquals({ m:load_state_dict(state) }, { {}, {} })
  refused({ "the module has no `scratch`" }, m.load_state_dict, m, { saved = mr.ones(1), scratch = mr.ones(3) })
  m:to("f64")
  lu.assertEquals(m.scratch.dtype, "f64")
  m.scratch = nil
  m:register_buffer("scratch", mr.ones(2))
  lu.assertEquals(m:state_dict().scratch:totable(), { 1, 1 })
end

function TestModules.test_gradients_that_become_zero()
  local m = nn.Linear(2, 1)
  m(mr.ones(1, 2)):sum():backward()
  local grad = m.weight.grad
  m:zero_grad(false)
  lu.assertEquals(grad:totable(), { { 0, 0 } })
  lu.assertTrue(rawequal(m.weight.grad, grad))
  m:zero_grad()
  lu.assertNil(m.weight.grad)
end

function TestModules.test_misuse()
  refused({ "expected a module in front of the colon" }, nn.Module.parameters, {})
  refused({ "argument 2 is a number, expected a module" }, nn.Sequential, nn.ReLU(), 3)
  refused({ "inputs is 0, expected an integer" }, nn.Linear, 0, 3)
  refused({ "outputs is nil" }, nn.Linear, 3)
  refused({ "there is no option `bais`" }, nn.Linear, 3, 3, { bais = false })
  refused({ "cannot be divided into 2 groups" }, nn.Conv2d, 3, 4, 3, { groups = 2 })
  refused({ "p is 2" }, nn.Dropout, 2)
  refused({ "the dim is missing" }, nn.Softmax)
  refused({ "there is no option" }, nn.MSELoss, { size = 3 })
  refused({ "the reduction is" }, nn.MSELoss, { reduction = "max" })
  refused({ "is the result of a recorded operation" }, nn.Parameter, mr.ones(1):requires_grad_() * 2)
  refused({ "expected a tensor" }, nn.Parameter, 3)
  refused({ "expected 4 dims" }, nn.BatchNorm2d(3), mr.ones(2, 3))
  refused({ "more than one value" }, nn.BatchNorm2d(3), mr.ones(1, 3, 1, 1))
  refused({ "does not end in the shape 3" }, nn.LayerNorm(3), mr.ones(2, 4))
  refused({ "is there already" }, function() nn.ReLU():register_buffer("training", mr.ones(1)) end)
end

TestTraining = {} -- behind the others by its name: coverage counts the first calls

function TestTraining.test_a_net_learns()
  mr.manual_seed(5)
  local net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
  local o, loss = mr.optim.Adam(net:parameters(), { lr = 0.02 }), nn.MSELoss()
  local x = mr.linspace(-1, 1, 64):view(64, 1)
  local y = (x * 3):sin()
  local first, last
  for step = 1, 300 do
    o:zero_grad()
    local l = loss(net(x), y)
    l:backward()
    o:step()
    if step == 1 then first = l:detach():item() end
    last = l
  end
  lu.assertTrue(last:detach():item() < first / 50, tostring(last:detach():item()))
end

-- ---------------------------------------------------------------- data

function TestModules.test_no_module_is_inside_itself()
  local outer, inner = nn.Sequential(nn.ReLU()), nn.Sequential(nn.ReLU())
  refused({ "`self`: the module would be inside itself" }, function() outer.self = outer end)
  outer.inner = inner
  refused({ "`up`: the module would be inside itself" }, function() inner.up = outer end)
  lu.assertEquals(#inner, 1)
  refused({ "`a.b`", "cannot have a dot" }, function() outer["a.b"] = nn.ReLU() end)
end

function TestModules.test_input_that_is_no_tensor()
  refused({ "Linear: the input is nil, expected a tensor" }, nn.Linear(2, 2))
  refused({ "ReLU: the input is a number" }, nn.ReLU(), 5)
  refused({ "kernel_size has 3 numbers" }, nn.Conv2d, 1, 1, { 1, 2, 3 })
end

function TestModules.test_a_batch_that_is_refused_does_not_count()
  local norm = nn.BatchNorm2d(2)
  refused({ "f64" }, norm, mr.ones(4, 2, 1, 1, { dtype = "f64" }))
  lu.assertEquals(norm.num_batches_tracked:item(), 0)
  norm(mr.ones(4, 2, 1, 1))
  lu.assertEquals(norm.num_batches_tracked:item(), 1)
end

TestData = {}

function TestData.test_batches_in_order()
  local x, y = mr.arange(10, { device = "cpu" }), mr.arange(20, { device = "cpu" }):view(10, 2)
  local sizes, sum = {}, 0
  for a, b in mr.data.batches({ x, y }, { batch_size = 4 }) do
    sizes[#sizes + 1] = a.numel
    lu.assertEquals(tostring(a.device), tostring(mr.current_device()))
    lu.assertTrue(mr.equal(b, mr.stack({ a * 2, a * 2 + 1 }, 2)))
    sum = sum + a:sum():item()
  end
  lu.assertEquals({ sizes, sum }, { { 4, 4, 2 }, 45 })
  local count = 0
  for _ in mr.data.batches(x, { batch_size = 4, drop_last = true, depth = 1 }) do count = count + 1 end
  lu.assertEquals(count, 2)
end

function TestData.test_shuffled_batches_have_each_row_once()
  mr.manual_seed(4)
  local x, seen, order = mr.arange(100, { device = "cpu" }), {}, {}
  for a in mr.data.batches(x, { batch_size = 7, shuffle = true, depth = 3 }) do
    for _, v in ipairs(a:totable()) do
      lu.assertNil(seen[v])
      seen[v] = true
      order[#order + 1] = v
    end
  end
  lu.assertEquals(#order, 100)
  lu.assertNotEquals(order, x:totable())
end

-- Uses that are ordered by what the loop gets only: the checker finds nothing, and the values are right.
function TestData.test_the_checker_finds_nothing()
  local x = mr.arange(1000, { dtype = "f32", device = "cpu" })
  local total = mr.zeros(1)
  local found = mr.hazard.check(function()
    for a in mr.data.batches(x, { batch_size = 50 }) do
      mr.spin { ms = 0.1 }
      total:add_(a:sum())
      a = nil -- luacheck: ignore
      collectgarbage()
    end
  end)
  lu.assertEquals(#found, 0)
  lu.assertEquals(total:item(), 499500)
end

function TestData.test_a_batch_can_be_larger_than_all_rows()
  local x = mr.ones(3, 2, { device = "cpu" })
  for _, size in ipairs { 4, math.maxinteger } do
    local rows = 0
    for a in mr.data.batches(x, { batch_size = size }) do rows = rows + a:size(1) end
    lu.assertEquals(rows, 3)
    lu.assertNil(mr.data.batches(x, { batch_size = size, drop_last = true })())
  end
end

function TestData.test_batches_take_no_part_in_gradients()
  local x = mr.ones(4, 2, { device = "cpu" }):requires_grad_()
  for _, shuffle in ipairs { false, true } do
    for a in mr.data.batches(x, { batch_size = 2, shuffle = shuffle }) do lu.assertFalse(a.requires_grad) end
  end
end

function TestData.test_misuse()
  local x = mr.zeros(4, { device = "cpu" })
  refused({ "expected a tensor or a list" }, mr.data.batches, 3)
  refused({ "entry 2 is a number" }, mr.data.batches, { x, 3 })
  refused({ "tensor 1 is on a device" }, mr.data.batches, mr.zeros(4))
  refused({ "as many rows" }, mr.data.batches, { x, mr.zeros(3, { device = "cpu" }) })
  refused({ "no option `size`" }, mr.data.batches, x, { size = 3 })
  refused({ "batch_size is 0" }, mr.data.batches, x, { batch_size = 0 })
  refused({ "shuffle is 1, expected true or false" }, mr.data.batches, x, { shuffle = 1 })
  refused({ "stream is a string" }, mr.data.batches, x, { stream = "x" })
end

TestUnrecorded = {}

local function convolutional()
  return nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Identity(), nn.Flatten(), nn.Linear(8, 4),
    nn.Tanh(), nn.Dropout(0.5), nn.Linear(4, 3), nn.Sigmoid()):to(0):eval()
end

function TestUnrecorded.test_the_same_values_as_recorded()
  local net, x = convolutional(), mr.randn(5, 1, 6, 6)
  lu.assertTrue(net(x):eq(mr.no_grad(net, x)):all():item())
  net:train()
  mr.manual_seed(3)
  local recorded = net(x)
  mr.manual_seed(3)
  lu.assertTrue(recorded:eq(mr.no_grad(net, x)):all():item())
end

-- The results between the layers are freed without the collector.
function TestUnrecorded.test_only_the_result_stays()
  local net, x = convolutional(), mr.randn(64, 1, 6, 6)
  collectgarbage()
  collectgarbage "stop"
  local before = mr.memory.stats(0).live
  local y = mr.no_grad(net, x)
  local made = mr.memory.stats(0).live - before
  collectgarbage "restart"
  lu.assertEquals(made, y.numel * 4)
end

-- Memory that the caller has is not written, whatever layers hand it on.
function TestUnrecorded.test_the_input_stays()
  local function check(...)
    local x = mr.tensor { { -1.0, 2.0 }, { 3.0, -4.0 } }
    mr.no_grad(nn.Sequential(...), x)
    lu.assertEquals(x:totable(), { { -1, 2 }, { 3, -4 } })
  end
  check(nn.ReLU())
  check(nn.Identity(), nn.ReLU())
  check(nn.Flatten(), nn.ReLU())
  check(nn.Flatten(1), nn.Identity(), nn.Tanh(), nn.ReLU())
  local still = nn.Dropout(0.5)
  still.training = false
  check(still, nn.Flatten(), nn.Sigmoid())
end

-- What a layer of the caller's own has seen or given may be kept there.
function TestUnrecorded.test_layers_of_ones_own_keep_what_they_like()
  local kept = {}
  local Keep = nn.Module.class("Keep")
  function Keep.forward(_, x)
    kept[#kept + 1] = x
    return x
  end
  local loud = nn.ReLU()
  function loud.forward(_, x)
    kept[#kept + 1] = x
    return x:relu()
  end
  local x = mr.tensor { -1.0, 0.0 }
  mr.no_grad(nn.Sequential(nn.Sigmoid(), Keep(), nn.ReLU(), nn.Tanh(), nn.Identity(), loud, nn.Sigmoid()), x)
  lu.assertAlmostEquals(kept[1]:totable(), { 0.26894142, 0.5 }, 1e-6)
  lu.assertAlmostEquals(kept[2]:totable(), { 0.26263955, 0.46211716 }, 1e-6)
end

-- sigmoid of integers is a float, which has no place in them.
function TestUnrecorded.test_results_of_another_dtype()
  local linear = nn.Linear(2, 2, { bias = false })
  linear.weight = nn.Parameter(mr.tensor({ { 1, 2 }, { 3, 4 } }, { dtype = "i32" }), false)
  local y = mr.no_grad(nn.Sequential(linear, nn.Sigmoid()), mr.tensor({ { 0, 0 } }, { dtype = "i32" }))
  lu.assertEquals({ y.dtype, y:totable() }, { "f32", { { 0.5, 0.5 } } })
end

os.exit(lu.LuaUnit.run())
