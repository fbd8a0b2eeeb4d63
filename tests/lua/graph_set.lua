-- g:set gives one node of a graph other tensors and numbers. It must do the same as eager calls with the changed line
-- in place of the old one.
local lu = require "luaunit"
local mr = require "millrace"

TestGraphSet = {}

function TestGraphSet:setUp()
  mr.reset()
end

function TestGraphSet.test_numbers_tensors_and_fills()
  local x, y, z = mr.zeros(4), mr.full(4, 3.0), mr.zeros(4)
  mr.synchronize()
  local g = mr.graph(function()
    x:fill_(1)
    x:add_(2)
    z:copy_(x)
  end)
  g:set(1, function() x:fill_(10) end)
  g:launch()
  lu.assertEquals(z:sum():item(), 48.0)
  g:set(2, function() y:add_(100) end)
  g:launch()
  lu.assertEquals({x:sum():item(), y:sum():item(), z:sum():item()}, {40.0, 412.0, 40.0})
  g:set(3, function() z:copy_(y) end)
  g:set(2, function() y:add_(0.5) end)
  g:launch()
  lu.assertEquals({y:sum():item(), z:sum():item()}, {414.0, 414.0})
end

function TestGraphSet.test_arguments_of_a_kernel_are_checked_as_at_a_launch()
  local k = mr.kernel([[extern "C" __global__ void add(float *y, float a, int n) {
    int i = threadIdx.x;
    if (i < n) y[i] += a;
  }]], "add")
  local x, y = mr.zeros(8), mr.zeros(8)
  mr.synchronize()
  local g = mr.graph(function() k[{1, 32}](x, 1, 8) end)
  g:launch()
  g:set(1, function() k[{1, 32}](y, 2.5, 4) end)
  g:launch()
  lu.assertEquals({x:sum():item(), y:sum():item()}, {8.0, 10.0})
  lu.assertErrorMsgContains("float a", g.set, g, 1, function() k[{1, 32}](y, "text", 4) end)
  lu.assertErrorMsgContains("expected 3 arguments", g.set, g, 1, function() k[{1, 32}](y) end)
  g:launch()
  lu.assertEquals(y:sum():item(), 20.0)
end

function TestGraphSet.test_copies_of_the_host()
  local s = mr.stream()
  local a, b = mr.full(4, 1.0, {pinned = true}), mr.full(4, 7.0, {pinned = true})
  local x = mr.zeros(4)
  mr.synchronize()
  local g = mr.graph(function() mr.memcpy_async(x, a) end)
  g:set(1, function() mr.memcpy_async(x, b) end)
  g:launch(s)
  s:synchronize()
  lu.assertEquals(x:sum():item(), 28.0)
  lu.assertErrorMsgContains("a copy in another direction", g.set, g, 1, function() mr.memcpy_async(a, x) end)
end

-- A launch that is pending does what it did when it was launched.
function TestGraphSet.test_pending_launches_keep_theirs()
  local s = mr.stream()
  local x = mr.zeros(1)
  mr.synchronize()
  local g = mr.graph(function() x:add_(1) end)
  g:launch(s)
  for i = 1, 4 do
    g:set(1, function() x:add_(10 ^ i) end)
    g:launch(s)
    g:launch(s)
  end
  s:synchronize()
  lu.assertEquals(x:item(), 22221.0)
end

-- What a node read before g:set may be collected, but not under a launch that still reads it.
function TestGraphSet.test_memory_of_former_parameters()
  local s = mr.stream()
  local out = mr.zeros(1024)
  local first = mr.ones(1024)
  mr.synchronize()
  local g = mr.graph(function() out:add_(first) end)
  first = nil
  for i = 1, 20 do
    local with = mr.full(1024, i)
    mr.synchronize()
    g:set(1, function() out:add_(with) end)
    with = nil
    s:run(function() mr.spin{ms = 0.1} end)
    g:launch(s)
    collectgarbage()
    collectgarbage()
    mr.zeros(1024)
  end
  s:synchronize()
  lu.assertEquals(out[1]:item(), 210.0)
  lu.assertEquals(mr.hazard.reports(), {})
end

function TestGraphSet.test_only_this_executable_changes()
  local x = mr.zeros(1)
  mr.synchronize()
  local g = mr.graph(function() x:add_(1) end)
  g:set(1, function() x:add_(100) end)
  local other = g:instantiate()
  other:launch()
  lu.assertEquals(x:item(), 1.0)
  g:launch()
  lu.assertEquals(x:item(), 101.0)
  g:update(function() x:add_(1000) end)
  g:launch()
  lu.assertEquals(x:item(), 1101.0)
end

function TestGraphSet.test_a_launch_in_a_capture_takes_what_was_set()
  local x = mr.zeros(1)
  mr.synchronize()
  local inner = mr.graph(function() x:add_(1) end)
  inner:set(1, function() x:add_(5) end)
  local outer = mr.graph(function() inner:launch(); inner:launch() end)
  inner:set(1, function() x:add_(7) end)
  outer:launch()
  lu.assertEquals(x:item(), 10.0)
end

function TestGraphSet.test_nodes_and_inputs_are_those_of_later_launches()
  local x, y = mr.zeros(2, {name = "x"}), mr.zeros(2, {name = "y"})
  local z = mr.zeros(2, {name = "z"})
  mr.synchronize()
  local g = mr.graph(function() z:copy_(x) end)
  lu.assertEquals(g:nodes()[1].reads, {"x"})
  g:set(1, function() z:copy_(y) end)
  lu.assertEquals(g:nodes()[1].reads, {"y"})
  lu.assertStrContains(g:print(), debug.getinfo(1, "S").short_src .. ":" .. debug.getinfo(1, "l").currentline - 2)
  g:inputs{y = y}
  lu.assertErrorMsgContains("x", g.inputs, g, {x = x})
end

function TestGraphSet.test_random_numbers_keep_their_place()
  local x, y = mr.zeros(5), mr.zeros(5)
  local g = mr.graph(function() x:uniform_(); y:uniform_() end)
  g:set(2, function() y:uniform_(0, 2) end)
  mr.manual_seed(7)
  g:launch()
  local got = {x:totable(), y:totable()}
  mr.manual_seed(7)
  x:uniform_()
  y:uniform_(0, 2)
  lu.assertEquals(got, {x:totable(), y:totable()})
end

function TestGraphSet.test_memory_of_the_graph_can_be_used()
  local x, y = mr.full(4, 1.0), mr.full(4, 2.0)
  mr.synchronize()
  local g, total = mr.graph(function() return x:sum() end)
  g:set(2, function() y:sum{out = total} end)
  g:launch()
  lu.assertEquals(total:item(), 8.0)
end

function TestGraphSet.test_a_number_becomes_a_tensor_and_a_tensor_the_output()
  local x, y = mr.full(4, 3.0), mr.full(4, 2.0)
  mr.synchronize()
  local g = mr.graph(function() x:mul_(2) end)
  g:set(1, function() x:mul_(y) end)
  g:launch()
  g:set(1, function() x:mul_(x) end)
  g:launch()
  lu.assertEquals(x:totable(), {36.0, 36.0, 36.0, 36.0})
  g:update(function() x:mul_(y) end)
  g:launch()
  lu.assertEquals(x[1]:item(), 72.0)
end

-- ---------------------------------------------------------------- what may not change

function TestGraphSet.test_what_may_not_change()
  local x, y = mr.zeros(4), mr.ones(4)
  mr.synchronize()
  local g, sum = mr.graph(function() x:add_(1); return x:sum() end)
  local rows = {
    {1, "another operation", function() x:mul_(1) end},
    {1, "submitted nothing", function() end},
    {1, "2 nodes instead of one", function() x:add_(1); x:add_(1) end},
    {1, "another kind of node", function() x:copy_(y) end},
    {3, "2 nodes instead of one", function() return y:sum() end},
    {2, "node 2 is memory", function() mr.empty(1) end},
  }
  for _, row in ipairs(rows) do
    local ok, err = pcall(g.set, g, row[1], row[3])
    lu.assertFalse(ok, row[2])
    lu.assertStrContains(err, row[2])
    lu.assertStrContains(err, "R43")
  end
  lu.assertErrorMsgContains("nodes 1 to 3", g.set, g, 4, function() x:add_(2) end)
  lu.assertErrorMsgContains("nodes 1 to 3", g.set, g, 0, function() x:add_(2) end)
  lu.assertErrorMsgContains("expected a function", g.set, g, 1, {2})
  lu.assertErrorMsgContains("oh no", g.set, g, 1, function() error "oh no" end)
  lu.assertErrorMsgContains("900", g.set, g, 1, function() mr.synchronize() end)
  lu.assertErrorMsgContains("closed", g.set, g, 1, function() g:close(); x:add_(1) end)
  lu.assertEquals(x:sum():item(), 0.0)
  local h = mr.graph(function() x:add_(1) end)
  mr.reset()
  lu.assertError(h.set, h, 1, function() mr.zeros(1):add_(1) end)
  lu.assertNotNil(sum)
end

function TestGraphSet.test_a_freed_tensor_is_named_at_the_launch()
  local x, y = mr.zeros(4), mr.zeros(4)
  mr.synchronize()
  local g = mr.graph(function() x:add_(1) end)
  g:set(1, function() y:add_(1) end)
  y:free()
  lu.assertErrorMsgContains("was freed", g.launch, g)
  g:set(1, function() x:add_(2) end)
  g:launch()
  lu.assertEquals(x:sum():item(), 8.0)
end

-- ---------------------------------------------------------------- against eager calls

local calls = {
  function(t, _, n) t:add_(n) end,
  function(t, _, n) t:mul_(n) end,
  function(t, u) t:copy_(u) end,
  function(t, _, n) t:fill_(n) end,
  function(t, u) t:mul_(u) end,
  function(t, _, n) t:uniform_(0, 1 + n) end,
}

function TestGraphSet.test_random_programs_do_what_eager_calls_do()
  math.randomseed(11)
  for _ = 1, 40 do
    local lines, eager, captured = {}, {}, {}
    for i = 1, 3 do eager[i], captured[i] = mr.full(6, i + 0.0), mr.full(6, i + 0.0) end
    mr.synchronize()
    local function numbers(line)
      line.a, line.n = math.random(3), math.random(-2, 2) / 2 + 1.5
    line.b = (line.a + math.random(2) - 1) % 3 + 1 -- another one: a copy to itself submits nothing
    end
    local function run(line, tensors) line.call(tensors[line.a], tensors[line.b], line.n) end
    for i = 1, math.random(1, 8) do
      lines[i] = {call = calls[math.random(#calls)]}
      numbers(lines[i])
    end
    local g = mr.graph(function() for _, line in ipairs(lines) do run(line, captured) end end)
    for launch = 1, 4 do
      mr.manual_seed(launch)
      for _, line in ipairs(lines) do run(line, eager) end
      mr.manual_seed(launch)
      g:launch()
      for i = 1, 3 do lu.assertEquals(captured[i]:totable(), eager[i]:totable()) end
      local changed = math.random(#lines)
      numbers(lines[changed])
      g:set(changed, function() run(lines[changed], captured) end)
    end
  end
end

os.exit(lu.LuaUnit.run())
