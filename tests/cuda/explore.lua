-- On a GPU (here the tests' own driver, tests/fake_cuda) no order can be chosen: mr.explore says so, and mr.stress
-- delays.
local luaunit = require "luaunit"
local fake = require "cuda.support.fake"

local function run(code)
  return fake.run{ "--device", "cuda", "-e", code }
end

TestExplore = {}

function TestExplore.test_explore_says_what_works()
  local output, status = run [[ mr.explore(function() return 1 end) ]]
  luaunit.assertEquals(status, 1, output)
  luaunit.assertStrContains(output, "virtual GPU only")
  luaunit.assertStrContains(output, "mr.stress")
end

function TestExplore.test_replay_says_so_too()
  local output, status = run [[ mr.replay("mr1 g1 .3", function() return 1 end) ]]
  luaunit.assertEquals(status, 1, output)
  luaunit.assertStrContains(output, "virtual GPU only")
end

function TestExplore.test_stress_delays()
  local output, status = run [[
    local r = mr.stress(function()
      local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
      local x = mr.zeros(4)
      mr.synchronize()
      a:run(function() x:add_(1) end)
      b:wait_stream(a)
      b:run(function() x:mul_(3) end)
      mr.synchronize()
      return x:sum():item(), x
    end, {runs = 5})
    local runs = 0
    for _, o in ipairs(r.outcomes) do
      assert(not o.error and o.values[2].numel == 4, tostring(r))
      runs = runs + o.count
    end
    assert(runs == 5, tostring(r)) -- the values are the business of tests/gpu: the driver may run no kernels
    print(mr.backend, "done")]]
  luaunit.assertEquals(status, 0, output)
  luaunit.assertStrContains(output, "cuda\tdone")
end

os.exit(luaunit.LuaUnit.run())
