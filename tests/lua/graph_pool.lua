-- Pools of graphs: shared memory, the same values as graphs without a pool, and the mistakes that sharing
-- makes possible.
local lu = require "luaunit"
local mr = require "millrace"

TestGraphPool = {}

local N = 4096

-- A graph with three temporary tensors and a result.
local function chain(x, pool)
  return mr.graph(function() return ((x + 1) * 2 - 3):exp() end, {pool = pool})
end

function TestGraphPool.test_temporary_memory_is_shared_and_results_are_not()
  local x, pool = mr.zeros(N), mr.graph.pool()
  mr.synchronize()
  local g1, y1 = chain(x, pool)
  lu.assertEquals({pool.bytes, pool.saved, pool.graphs, pool.allocations}, {4 * 4 * N, 0, 1, 4})
  local before = mr.memory.stats().live
  local g2, y2 = chain(x, pool)
  lu.assertEquals({pool.bytes, pool.saved, pool.graphs, pool.allocations}, {5 * 4 * N, 3 * 4 * N, 2, 5})
  lu.assertTrue(mr.memory.stats().live <= before + 4 * N)
  lu.assertEquals({g1.nbytes, g2.nbytes}, {4 * 4 * N, 4 * 4 * N})
  lu.assertStrContains(g2:print(), "49152 of them of earlier graphs of the pool")
  g1:launch()
  g2:launch()
  lu.assertNotEquals(y1.data_ptr, y2.data_ptr)
  lu.assertAlmostEquals(y1[1]:item(), math.exp(-1), 1e-6)
  lu.assertAlmostEquals(y2[N]:item(), math.exp(-1), 1e-6)
end

local function random_graph(inputs, random, pool)
  return mr.graph(function()
    local t = inputs[random(#inputs)]
    for _ = 1, random(6) do
      local n = random(3)
      t = n == 1 and t * 0.5 + 1 or n == 2 and t - inputs[random(#inputs)] or (t + 2):abs()
      if random(5) == 1 then t = mr.cat({t, t})[{{1, N}}] + 0 end
    end
    return t
  end, {pool = pool})
end

function TestGraphPool.test_random_graphs_have_the_values_of_graphs_without_a_pool()
  for seed = 1, 10 do
    local function run(pool)
      math.randomseed(seed)
      local inputs = {mr.arange(N, {dtype = "f32"}), mr.ones(N)}
      local graphs, results = {}, {}
      mr.synchronize()
      for i = 1, 6 do
        graphs[i], results[i] = random_graph(inputs, math.random, pool)
        inputs[#inputs + 1] = results[i] -- a later graph reads it
      end
      local seen = {}
      for _ = 1, 2 do
        for i, g in ipairs(graphs) do
          g:launch()
          seen[#seen + 1] = results[i]:sum():item()
        end
      end
      for _, y in ipairs(results) do seen[#seen + 1] = y:sum():item() end
      return seen
    end
    lu.assertEquals(run(mr.graph.pool()), run(nil))
  end
end

-- g1 has temporary memory, which is that of z, the result of g2.
local function overlapping()
  local x, pool = mr.ones(N), mr.graph.pool()
  mr.synchronize()
  local g1, y = mr.graph(function() return (x + 1):sum() end, {pool = pool})
  local g2, z = mr.graph(function() return x * 7 end, {pool = pool})
  lu.assertEquals(pool.saved, 4 * N)
  return g1, g2, y, z, pool, x
end

function TestGraphPool.test_a_result_is_an_error_after_a_launch_that_has_its_memory()
  local g1, g2, y, z = overlapping()
  g2:launch()
  lu.assertEquals(z[1]:item(), 7.0)
  local view = z:view(64, 64)
  g1:launch()
  lu.assertErrorMsgContains("of the same pool", z.sum, z)
  lu.assertErrorMsgContains("of the same pool", view.sum, view)
  lu.assertEquals(y:item(), 2.0 * N)
  lu.assertEquals(z.shape, {N})
  g2:launch()
  lu.assertEquals(view:sum():item(), 7.0 * N)
  lu.assertEquals(y:item(), 2.0 * N)
end

function TestGraphPool.test_a_graph_that_reads_it_is_an_error_too()
  local g1, g2, _, z, pool = overlapping()
  g1:launch()
  local g3, w = mr.graph(function() return z + 1 end, {pool = pool}) -- a capture reads nothing
  lu.assertErrorMsgContains("of the same pool", g3.launch, g3)
  g2:launch()
  g3:launch()
  lu.assertEquals(w[1]:item(), 8.0)
  g1:launch()
  lu.assertErrorMsgContains("of the same pool", g3.launch, g3)
end

function TestGraphPool.test_the_checker_reports_launches_that_run_at_once()
  local g1, g2 = overlapping()
  local a, b = mr.stream(), mr.stream()
  local reports = mr.hazard.check(function()
    g1:launch(a)
    g2:launch(b)
  end)
  lu.assertTrue(#reports > 0)
  mr.synchronize()
  lu.assertEquals(#mr.hazard.check(function()
    g1:launch(a)
    b:wait_stream(a)
    g2:launch(b)
  end), 0)
end

function TestGraphPool.test_memory_goes_with_the_last_graph()
  local g1, g2, _, z, pool = overlapping()
  g2:launch()
  g2:close()
  g1:launch()
  lu.assertErrorMsgContains("of the same pool", z.sum, z)
  g1:close()
  collectgarbage() -- the captures' own references
  lu.assertEquals({pool.bytes, pool.saved, pool.graphs}, {0, 0, 0})
end

function TestGraphPool.test_a_tensor_can_be_freed_by_the_script()
  local g1, g2, y, z, pool = overlapping()
  g2:launch()
  g2:close()
  collectgarbage()
  z:free()
  lu.assertErrorMsgContains("freed", z.sum, z)
  g1:launch() -- the memory is still there
  lu.assertEquals(y:item(), 2.0 * N)
  collectgarbage()
  lu.assertEquals(pool.graphs, 1)
end

function TestGraphPool.test_a_free_in_a_capture()
  local x, pool = mr.ones(N), mr.graph.pool()
  mr.synchronize()
  local function capture()
    return mr.graph(function()
      local t = x + 1
      local sum = t:sum()
      t:free()
      return sum
    end, {pool = pool})
  end
  local g1, y1 = capture()
  local g2, y2 = capture()
  for _ = 1, 2 do
    g1:launch()
    g2:launch()
    lu.assertEquals({y1:item(), y2:item()}, {2.0 * N, 2.0 * N})
  end
end

function TestGraphPool.test_updates_with_a_pool()
  local x, pool = mr.ones(N), mr.graph.pool()
  mr.synchronize()
  local g = mr.graph(function() return (x + 1):sum() end, {pool = pool})
  g:launch()
  local y = g:update(function() return (x + 2):sum() end, {pool = pool})
  lu.assertEquals(#mr.hazard.check(function() g:launch() end), 0)
  lu.assertEquals(y:item(), 3.0 * N)
  lu.assertEquals(pool.graphs, 1)
end

function TestGraphPool.test_misuse()
  local x, pool = mr.ones(N), mr.graph.pool()
  mr.synchronize()
  local g = chain(x, pool)
  lu.assertErrorMsgContains("mr.graph.pool()", mr.graph, print, {pool = 3})
  lu.assertErrorMsgContains("auto_free", mr.graph, print, {pool = pool, auto_free = false})
  local s = mr.stream()
  mr.graph.begin(s, {pool = pool})
  lu.assertErrorMsgContains("another capture with this pool", mr.graph, print, {pool = pool})
  lu.assertErrorMsgContains("under way", g.launch, g)
  mr.graph.finish(s)
  lu.assertErrorMsgContains("mine", mr.graph, function() local _ = x + 1 error("mine") end, {pool = pool})
  chain(x, pool):launch()
  lu.assertStrContains(tostring(pool), "graph_pool (")
  lu.assertTrue(rawequal(pool.device, mr.current_device()))
  mr.synchronize()
  mr.reset()
  lu.assertErrorMsgContains("mr.reset()", mr.graph, print, {pool = pool})
end

function TestGraphPool.test_hostile_sizes()
  local pool = mr.graph.pool()
  local function capture(n)
    return mr.graph(function() return mr.ones(n) + 1 end, {pool = pool})
  end
  local graphs = {}
  for i, n in ipairs {0, 1, 129, 100000, 3, 0, 50001, 49000, 1} do
    local g, y = capture(n)
    graphs[i] = g
    g:launch()
    lu.assertEquals(y:sum():item(), 2.0 * n)
  end
  lu.assertEquals(#graphs, 9)
  lu.assertTrue(pool.saved > 0)
end

os.exit(lu.LuaUnit.run())
