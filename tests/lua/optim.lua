-- mr.optim: 20 steps of each optimiser as PyTorch makes them (tests/data/nn/make.py), and refused calls.
local lu = require "luaunit"
local mr = require "millrace"
local naive = require "lua.support.naive"

local DATA = mr.load("tests/data/nn/optim.safetensors")

local CASES = {
  sgd = { "SGD", { lr = 0.1 } },
  sgd_decay = { "SGD", { lr = 0.1, weight_decay = 0.05 } },
  momentum = { "SGD", { lr = 0.05, momentum = 0.9 } },
  dampened = { "SGD", { lr = 0.05, momentum = 0.9, dampening = 0.3, weight_decay = 0.01 } },
  nesterov = { "SGD", { lr = 0.05, momentum = 0.8, nesterov = true, weight_decay = 0.01 } },
  adam = { "Adam", { lr = 0.05 } },
  adam_decay = { "Adam", { lr = 0.05, betas = { 0.8, 0.95 }, eps = 1e-6, weight_decay = 0.1 } },
  rmsprop = { "RMSprop", { lr = 0.02 } },
  rmsprop_momentum = { "RMSprop", { lr = 0.02, alpha = 0.9, eps = 1e-6, momentum = 0.8, weight_decay = 0.05 } },
  adamw = { "AdamW", { lr = 0.05 } },
  adamw_decay = { "AdamW", { lr = 0.05, betas = { 0.8, 0.95 }, weight_decay = 0.3 } },
}

local function near(actual, expected, what)
  lu.assertTrue(mr.allclose(actual:cpu(), expected, { rtol = 1e-5, atol = 1e-6 }),
    what .. ": " .. mr.format(actual) .. " but " .. mr.format(expected))
end

-- The two parameters, on the device, and the function that computes their gradients for a step (from 0).
local function problem(device)
  local a, b = DATA["start.a"]:to(device):clone(), DATA["start.b"]:to(device):clone()
  local goal_a, goal_b = DATA["goal.a"]:to(device), DATA["goal.b"]:to(device)
  a:requires_grad_()
  b:requires_grad_()
  return a, b, function(step)
    local loss = (a - goal_a):square():sum() * 0.5
    if step % 3 ~= 1 then loss = loss + ((b - goal_b) ^ 4):sum() * 0.1 end
    loss:backward()
  end
end

TestOptim = {}

for name, case in pairs(CASES) do
  for _, device in ipairs { "cpu", "device" } do
    TestOptim["test_" .. name .. "_on_" .. device] = function()
      local a, b, differentiate = problem(device)
      local o = mr.optim[case[1]]({ a, b }, case[2])
      for step = 0, 19 do
        o:zero_grad()
        differentiate(step)
        o:step()
      end
      near(a:detach(), DATA[name .. ".a"], "a")
      near(b:detach(), DATA[name .. ".b"], "b")
    end
  end
end

function TestOptim.test_groups_have_options_of_their_own()
  local a, b, differentiate = problem("device")
  local o = mr.optim.SGD({ { params = { a }, lr = 0.1, weight_decay = 0.05 }, { params = { b } } }, { lr = 0.1 })
  for step = 0, 19 do
    o:zero_grad()
    differentiate(step)
    o:step()
  end
  near(a:detach(), DATA["sgd_decay.a"], "a")
  near(b:detach(), DATA["sgd.b"], "b")
end

function TestOptim.test_a_step_is_one_command()
  local list = {}
  for i = 1, 200 do
    list[i] = mr.rand(i % 7 + 1):requires_grad_()
    list[i].grad = mr.rand(i % 7 + 1)
  end
  local o = mr.optim.Adam(list)
  o:step()
  mr.synchronize()
  local trace = mr.timeline(function() o:step() end)
  local steps, others = 0, 0
  for _, span in ipairs(trace.spans) do
    if span.name == "adam_step" then steps = steps + 1 elseif span.engine ~= "host" then others = others + 1 end
  end
  lu.assertEquals({ steps, others }, { 1, 0 })
end

function TestOptim.test_the_state_goes_on_where_it_was()
  local a, b, differentiate = problem("device")
  local o = mr.optim.AdamW({ a, b }, { lr = 0.05 })
  for step = 0, 19 do
    if step == 7 then
      local path = os.tmpname() .. ".safetensors"
      mr.save(path, o:state_dict())
      o = mr.optim.AdamW({ a, b }, { lr = 0.05 })
      o:load_state_dict((mr.load(path)))
      os.remove(path)
    end
    o:zero_grad()
    differentiate(step)
    o:step()
  end
  near(a:detach(), DATA["adamw.a"], "a")
  near(b:detach(), DATA["adamw.b"], "b")
end

function TestOptim.test_the_rate_can_be_set()
  local a = mr.ones(2):requires_grad_()
  local o = mr.optim.SGD({ a }, { lr = 1 })
  lu.assertEquals(o.lr, 1)
  o.lr = 0.5
  a.grad = mr.ones(2)
  o:step()
  lu.assertEquals(a:totable(), { 0.5, 0.5 })
  lu.assertStrContains(tostring(o), "lr 0.5")
end

function TestOptim.test_clip_grad_norm()
  for kind, norm in pairs { two = 2, inf = math.huge, one = 1, three = 3 } do
    local list = {}
    for i = 0, 1 do
      list[i + 1] = mr.zeros(DATA["clip.g" .. i].shape):requires_grad_()
      list[i + 1].grad = DATA["clip.g" .. i]:to("device"):clone()
    end
    near(mr.nn.utils.clip_grad_norm_(list, 0.7, { norm_type = norm }), DATA["clip." .. kind], kind)
    for i = 0, 1 do near(list[i + 1].grad, DATA["clip." .. kind .. i], kind .. i) end
  end
  lu.assertEquals(mr.nn.utils.clip_grad_norm_({ mr.zeros(2) }, 1):item(), 0)
end

function TestOptim.test_clip_grad_value()
  local list = {}
  for i = 0, 1 do
    list[i + 1] = mr.zeros(DATA["clip.g" .. i].shape):requires_grad_()
    list[i + 1].grad = DATA["clip.g" .. i]:to("device"):clone()
  end
  mr.nn.utils.clip_grad_value_(list, 0.4)
  for i = 0, 1 do near(list[i + 1].grad, DATA["clip.value" .. i], "value" .. i) end
end

function TestOptim.test_what_clips_says_what_it_cannot_take()
  local refused, a = naive.assert_raises, mr.zeros(2)
  local norm, value = mr.nn.utils.clip_grad_norm_, mr.nn.utils.clip_grad_value_
  refused({ "argument 3 is a number, expected a table of options: {norm_type=}" }, norm, { a }, 1, math.huge)
  refused({ "got a module: write module:parameters()" }, norm, mr.nn.Linear(1, 1), 1)
  refused({ "no option `p`" }, norm, { a }, 1, { p = 1 })
  refused({ "norm_type is 0" }, norm, { a }, 1, { norm_type = 0 })
  refused({ "parameter 2 is a number" }, value, { a, 3 }, 1)
  refused({ "the greatest value is a number above 0" }, value, { a }, 0 / 0)
end

TestSchedulers = {}

local schedulers = mr.optim.lr_scheduler
local SCHEDULERS = {
  step = function(o) return schedulers.StepLR(o, 3, { gamma = 0.5 }) end,
  cosine = function(o) return schedulers.CosineAnnealingLR(o, 5, { eta_min = 0.01 }) end,
  lambda = function(o) return schedulers.LambdaLR(o, function(epoch) return 1 / (1 + epoch) end) end,
}

local function two_groups()
  return mr.optim.SGD({ { params = { mr.zeros(1) } }, { params = { mr.zeros(1) }, lr = 0.4 } }, { lr = 0.1 })
end

for name, make in pairs(SCHEDULERS) do
  TestSchedulers["test_" .. name] = function()
    local o = two_groups()
    local s, rates = make(o), {}
    for epoch = 1, 12 do
      rates[epoch] = s:get_last_lr()
      lu.assertEquals(o.lr, rates[epoch][1])
      if epoch == 6 then -- another one that goes on where this one was
        local state = s:state_dict()
        o = two_groups()
        s = make(o)
        s:load_state_dict(state)
      end
      s:step()
    end
    lu.assertTrue(mr.allclose(mr.tensor(rates, { dtype = "f64", device = "cpu" }), DATA["rates." .. name],
      { rtol = 1e-12, atol = 1e-15 }))
  end
end

function TestSchedulers.test_misuse()
  local refused, o = naive.assert_raises, two_groups()
  refused({ "StepLR: argument 1 is a table, expected an optimiser" }, schedulers.StepLR, {}, 3)
  refused({ "step_size is 0" }, schedulers.StepLR, o, 0)
  refused({ "argument 3 is a number, expected a table of options: {gamma=}" }, schedulers.StepLR, o, 3, 0.1)
  refused({ "no option `eta`" }, schedulers.CosineAnnealingLR, o, 3, { eta = 1 })
  refused({ "expected a function of the epoch" }, schedulers.LambdaLR, o, 3)
  local calls = 0
  local s = schedulers.LambdaLR(o, function()
    calls = calls + 1
    return calls > 2 and -1 or 1
  end)
  refused({ "what the function returned is -1" }, s.step, s)
  lu.assertEquals({ tostring(s), s:get_last_lr() }, { "LambdaLR (epoch 0)", { 0.1, 0.4 } })
  refused({ "expected a scheduler in front of the colon", "write s:step()" }, s.step)
  refused({ "`base_lrs` is missing" }, s.load_state_dict, s, { last_epoch = mr.tensor(3) })
  refused({ "a rate for each group" }, s.load_state_dict, s, { last_epoch = mr.tensor(3), base_lrs = mr.ones(3) })
  refused({ "step: expected an optimiser in front of the colon, got nil" }, o.step)
end

function TestOptim.test_a_step_with_a_closure()
  local a = mr.ones(2):requires_grad_()
  local o = mr.optim.SGD({ a }, { lr = 0.5 })
  local loss = mr.no_grad(function()
    return o:step(function()
      o:zero_grad()
      local sum = a:sum()
      sum:backward()
      return sum
    end)
  end)
  lu.assertEquals({ loss:item(), a:totable() }, { 2, { 0.5, 0.5 } })
  naive.assert_raises({ "step: expected a function" }, o.step, o, 3)
  o:zero_grad(false)
  lu.assertEquals(a.grad:totable(), { 0, 0 })
  o:zero_grad()
  lu.assertNil(a.grad)
end

-- The same gradients through one stream; a step on another stream without a wait is a hazard.
function TestOptim.test_the_checker_sees_the_step()
  local a = mr.ones(1000):requires_grad_()
  a.grad = mr.ones(1000)
  local o, s = mr.optim.SGD({ a }), mr.stream()
  local found = mr.hazard.check(function()
    o:step()
    mr.with(s, function() a:detach():sum() end)
  end)
  lu.assertEquals(#found, 1)
  lu.assertEquals(#mr.hazard.check(function()
    o:step()
    s:wait_stream(mr.current_stream())
    mr.with(s, function() a:detach():sum() end)
    mr.current_stream():wait_stream(s)
  end), 0)
end

function TestOptim.test_misuse()
  local a = mr.ones(2):requires_grad_()
  local refused = naive.assert_raises
  refused({ "SGD", "list of parameters is empty" }, mr.optim.SGD, {})
  refused({ "parameter 1 is a number, expected a tensor" }, mr.optim.Adam, { 3 })
  refused({ "parameter 2 is listed twice" }, mr.optim.Adam, { a, a })
  refused({ "not a leaf" }, mr.optim.Adam, { a * 2 })
  refused({ "no option `rate`" }, mr.optim.Adam, { a }, { rate = 1 })
  refused({ "lr is -1" }, mr.optim.SGD, { a }, { lr = -1 })
  refused({ "nesterov needs a momentum" }, mr.optim.SGD, { a }, { nesterov = true })
  refused({ "a beta is 1" }, mr.optim.Adam, { a }, { betas = { 1, 0.5 } })
  refused({ "`momentum` cannot be set" }, function() mr.optim.SGD({ a }).momentum = 1 end)
  refused({ "expected a list of parameters" }, mr.optim.SGD, 3)
  refused({ "belong to no parameter" }, function() mr.optim.SGD({ a }):load_state_dict { x = a } end)
  refused({ "the greatest norm" }, mr.nn.utils.clip_grad_norm_, { a }, 0)
  local half = mr.ones(2, { dtype = "f16" }):requires_grad_()
  half.grad = mr.ones(2, { dtype = "f16" })
  refused({ "f32 or f64, not f16" }, function() mr.optim.SGD({ half }):step() end)
  refused({ "dampening is x" }, mr.optim.SGD, { a }, { momentum = 0.5, dampening = "x" })
  refused({ "parameter 2 is not contiguous" }, mr.optim.Adam, { a, mr.ones(2, 3):t():requires_grad_() })
  local memory = mr.ones(4)
  local left, right = memory[{ { 1, 3 } }]:requires_grad_(), memory[{ { 3, 4 } }]:requires_grad_()
  refused({ "two of the parameters share memory" }, mr.optim.Adam, { left, a, right })
  mr.optim.Adam { memory[{ { 1, 2 } }]:requires_grad_(), right }
  local freed = mr.ones(2):requires_grad_():name "freed"
  freed:free()
  refused({ "`freed` was freed" }, mr.optim.Adam, { a, freed })
end

-- Nothing has changed: neither values nor the number of the step.
function TestOptim.test_a_step_that_fails_has_done_nothing()
  for _, break_it in ipairs {
    function(p) p:free() end,
    function(p) p.grad:free() end,
    function(_, o) o.param_groups[2].lr = "much" end,
    function(_, o) o.param_groups[2].params[1] = 5 end,
  } do
    local good, bad = mr.ones(2):requires_grad_(), mr.ones(2, { dtype = "f64" }):requires_grad_()
    local o = mr.optim.SGD({ { params = { good } }, { params = { bad } } }, { lr = 1, momentum = 0.5 })
    good:sum():backward()
    bad:sum():backward()
    break_it(bad, o)
    lu.assertFalse(pcall(o.step, o))
    lu.assertEquals(good:detach():totable(), { 1.0, 1.0 })
    o.param_groups[2].params[1] = good
    lu.assertNil(next(o:state_dict()))
  end
end

function TestOptim.test_state_dicts_that_do_not_fit()
  local a = mr.ones(2):requires_grad_()
  local o = mr.optim.Adam { a }
  local function refused(dict, ...) naive.assert_raises({ ... }, o.load_state_dict, o, dict) end
  local average, step = mr.ones(2), mr.tensor(3)
  refused("x", "expected a table of tensors, got a string")
  refused({ ["1.step"] = 3 }, "`1.step` is a number")
  refused({ ["1.step"] = mr.tensor(1.5) }, "`1.step` is 1.5")
  refused({ ["1.step"] = mr.tensor { 3 } }, "`1.step` has another shape")
  refused({ ["1.step"] = step, ["1.exp_avg"] = average }, "`1.exp_avg_sq` is missing")
  refused({ ["1.step"] = step, ["1.exp_avg"] = mr.ones(3), ["1.exp_avg_sq"] = average }, "`1.exp_avg` has another")
  refused({ ["1.step"] = step, ["1.exp_avg"] = average, ["1.exp_avg_sq"] = 5 }, "`1.exp_avg_sq` is a number")
  lu.assertNil(next(o:state_dict()))
end

os.exit(lu.LuaUnit.run())
