-- Hooks of leaves are called once a pass, behind the last edge that leads to the leaf, with the complete gradient,
-- while the pass goes on. They run on the stream of the gradient. Some calls in a hook are refused.
-- virtual only: timelines and schedules of the virtual GPU
-- not replayed: choosers are switched in the middle
local lu = require "luaunit"
local mr = require "millrace"

local function values(t)
  local list = t:detach():cpu():totable()
  return type(list) == "table" and list or { list }
end

local function leaf(name, value, n)
  local t = mr.full({ n or 3 }, value):requires_grad_()
  t:name(name)
  return t
end

-- Notes the gradients that a hook sees.
local function watch(t, into)
  return t:register_post_accumulate_grad_hook(function(p)
    lu.assertTrue(rawequal(p, t))
    into[#into + 1] = { p:name(), values(p.grad) }
  end)
end

TestHooks = {}

function TestHooks.test_a_hook_sees_the_sum_of_all_edges()
  local x, seen = leaf("x", 2.0), {}
  local remove = watch(x, seen)
  local y = x * 3
  y = (y + x) * x + x
  y:sum():backward() -- 4 x^2 + x: 8 x + 1
  lu.assertEquals(seen, { { "x", { 17.0, 17.0, 17.0 } } })
  x:sum():backward()
  lu.assertEquals(seen[2], { "x", { 18.0, 18.0, 18.0 } })
  remove()
  remove()
  x:sum():backward()
  lu.assertEquals(#seen, 2)
  lu.assertEquals(values(x.grad), { 19.0, 19.0, 19.0 })
end

function TestHooks.test_the_order_is_that_of_completion()
  local seen = {}
  local a, b, c = leaf("a", 1.0), leaf("b", 1.0), leaf("c", 1.0)
  for _, t in ipairs { a, b, c } do watch(t, seen) end
  local h = (a * 2 + b) * c + b * 5 -- backward: c, b, a
  h:sum():backward() -- b * 5 comes first, but another edge leads to b
  lu.assertEquals({ seen[1][1], seen[2][1], seen[3][1] }, { "c", "b", "a" })
  lu.assertEquals(seen[2][2], { 6.0, 6.0, 6.0 })
end

-- The hook of the last layer runs before the gradient of the first one is computed.
function TestHooks.test_the_pass_goes_on_meanwhile()
  local w, v = leaf("w", 0.5), leaf("v", 0.25)
  w:register_post_accumulate_grad_hook(function() lu.assertNil(v.grad) end)
  v:register_post_accumulate_grad_hook(function() lu.assertNotNil(w.grad) end)
  local y = v:sin() * w
  y:sum():backward()
  lu.assertNotNil(v.grad)
end

-- Random graphs: a hook sees what stands in grad after the pass, and is called once.
function TestHooks.test_random_graphs()
  local state = 7
  local function random(n)
    state = (state * 1103515245 + 12345) % 2147483648
    return (state >> 8) % n + 1
  end
  for _ = 1, tonumber(os.getenv "HOOK_ROUNDS") or 60 do
    local leaves, plain, list, copy = {}, {}, {}, {}
    for i = 1, 4 do
      local t = mr.rand(3)
      leaves[i], plain[i] = t:clone():requires_grad_(), t:requires_grad_()
      list[i], copy[i] = leaves[i], plain[i]
    end
    for _ = 1, random(12) do
      local i, j, op = random(#list), random(#list), random(4)
      for _, side in ipairs { list, copy } do
        local a, b = side[i], side[j]
        side[#side + 1] = op == 1 and a + b or op == 2 and a * b or op == 3 and a:tanh() or
          (a[{ { 1, 2 } }] * 2):sum() + b
      end
    end
    local seen = {}
    for i, t in ipairs(leaves) do
      t:register_post_accumulate_grad_hook(function(p)
        lu.assertNil(seen[i])
        seen[i] = values(p.grad)
      end)
    end
    list[#list]:sum():backward()
    copy[#copy]:sum():backward()
    for i, t in ipairs(plain) do
      lu.assertEquals(seen[i], t.grad and values(t.grad), "leaf " .. i)
    end
  end
end

function TestHooks.test_the_stream_of_the_gradient_is_current()
  local s = mr.stream { name = "s" }
  local x, used = leaf("x", 2.0, 1000), nil
  x:register_post_accumulate_grad_hook(function(p)
    used = mr.current_stream()
    mr.no_grad(function() p:sub_(p.grad) end) -- an optimiser's step
  end)
  local reports = mr.hazard.check(function()
    s:wait_stream(mr.current_stream())
    local y = s:run(function() return (x:sin() * 2):sum() end)
    mr.current_stream():wait_stream(s)
    y:backward()
    return x:detach():sum()
  end)
  lu.assertEquals(#reports, 0, reports[1] and reports[1].message)
  lu.assertEquals(used, s)
  lu.assertNotEquals(mr.current_stream(), s)
end

-- A hook that makes another stream current: what follows it in the pass runs where it should.
function TestHooks.test_a_hook_that_changes_the_stream()
  local other = mr.stream { name = "other" }
  local w, v = leaf("w", 0.5), leaf("v", 0.25)
  w:register_post_accumulate_grad_hook(function() mr.set_stream(other) end)
  local y = (v:sin() * w):sum()
  local before = mr.current_stream()
  local trace = mr.timeline(function()
    y:backward()
    mr.synchronize()
  end)
  for _, span in ipairs(trace.spans) do
    if span.kind == "op" then lu.assertNotEquals(span.stream, "other", span.name) end
  end
  lu.assertEquals(mr.current_stream(), before)
end

function TestHooks.test_an_edge_without_a_gradient_counts()
  local half = mr.autograd.Function {
    forward = function(_, a, b) return a + b end,
    backward = function(_, g) return g, nil end,
  }
  local x, y, order = leaf("x", 1.0), leaf("y", 1.0), {}
  x:register_post_accumulate_grad_hook(function(t) order[#order + 1] = { "x", y.grad == nil, values(t.grad)[1] } end)
  half(x * 2 + y:sin(), x):sum():backward() -- the edge without a gradient comes first
  lu.assertEquals(order, { { "x", true, 2.0 } })

  -- Nothing comes to the node between: the gradient is complete at the end of the pass.
  x.grad, y.grad, order = nil, nil, {}
  half(x * 2 + y:sin(), x * 3):sum():backward()
  lu.assertEquals(order, { { "x", false, 2.0 } })
end

function TestHooks.test_what_comes_after_the_pass()
  local x, order = leaf("x", 1.0), {}
  x:register_post_accumulate_grad_hook(function(t, at_end)
    at_end(function() order[#order + 1] = "end" .. tostring(mr.is_grad_enabled()) end)
    lu.assertFalse(mr.is_grad_enabled())
    order[#order + 1] = "hook" .. #t
  end)
  x:sum():backward()
  lu.assertEquals(order, { "hook3", "endtrue" })
  local fails = mr.autograd.Function {
    forward = function(_, t) return t * 1 end,
    backward = function() error("boom", 0) end,
  }
  local y = (fails(leaf("y", 1.0)) + x * 2):sum()
  lu.assertErrorMsgContains("boom", y.backward, y)
  lu.assertEquals(order[4], "endtrue")
end

function TestHooks.test_a_hook_that_computes_gradients()
  local x, y = leaf("x", 1.0), leaf("y", 2.0)
  y:register_post_accumulate_grad_hook(function()
    mr.enable_grad(function() (x * 5):sum():backward() end)
  end)
  local z = x:sin() * y -- y is complete before x
  z:sum():backward()
  lu.assertAlmostEquals(values(x.grad)[1], 5.0 + 2.0 * math.cos(1), 1e-5)
end

function TestHooks.test_errors()
  local x = leaf("x", 1.0)
  x:register_post_accumulate_grad_hook(function() error("boo", 0) end)
  local y = (x * 2):sum()
  lu.assertErrorMsgEquals("boo", y.backward, y)
  lu.assertErrorMsgContains("expected a function, got a number", x.register_post_accumulate_grad_hook, x, 3)
  lu.assertErrorMsgContains("is not a leaf that requires", y.register_post_accumulate_grad_hook, y, print)
  local z = mr.ones(3)
  lu.assertErrorMsgContains("is not a leaf that requires", z.register_post_accumulate_grad_hook, z, print)
  local seen = {}
  watch(z:requires_grad_(), seen)
  lu.assertEquals(values(mr.autograd.grad((z * 2):sum(), z)), { 2.0, 2.0, 2.0 })
  lu.assertEquals(seen, {})
end

-- A parameter that module:to() moves keeps its hooks.
function TestHooks.test_a_parameter_that_moves()
  local net, seen = mr.nn.Linear(2, 1), {}
  net.weight:register_post_accumulate_grad_hook(function(t) seen[#seen + 1] = t.dtype end)
  net:to("f64")
  net(mr.ones({ 1, 2 }, { dtype = "f64" })):sum():backward()
  lu.assertEquals(seen, { "f64" })
end

os.exit(lu.LuaUnit.run())
