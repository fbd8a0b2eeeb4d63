-- Graphs on the CUDA backend: tests/gpu/graphs.lua on the tests' own driver (tests/fake_cuda), which runs the kernels'
-- PTX; and the tests/lua of graphs there, with their random programs.
-- timeout: 300
local lu = require "luaunit"
local fake = require "cuda.support.fake"

TestGraphs = {}

local function run(script) return fake.run_script(140, script) end

function TestGraphs.test_each_family() lu.assertStrContains(run "tests/gpu/graphs.lua", "lanes") end
function TestGraphs.test_random_programs() lu.assertStrContains(run "tests/lua/graph.lua", "0 failures") end
function TestGraphs.test_parameters_of_nodes() lu.assertStrContains(run "tests/lua/graph_set.lua", "0 failures") end
function TestGraphs.test_the_checker() lu.assertStrContains(run "tests/lua/graph_auto_checker.lua", "0 failures") end
function TestGraphs.test_illegal_calls() lu.assertStrContains(run "tests/lua/graph_illegal.lua", "0 failures") end

-- The kernel knows the command by a number of its own: not the launch's.
function TestGraphs.test_an_index_out_of_range_names_the_node()
  local path = os.tmpname()
  local f <close> = assert(io.open(path, "w"))
  f:write [[
    local x, at = mr.rand(5), mr.tensor{1, 2, 9}
    at:name "at"
    local y = mr.zeros(3)
    local g = mr.graph(function()
      y:add_(1)
      y:copy_(x:index_select(1, at)) -- line 6
    end)
    local ok, err = pcall(function()
      g:launch()
      mr.synchronize()
    end)
    print(ok, err.message, err.where)
  ]]
  f:close()
  local output = run(path)
  os.remove(path)
  lu.assertStrContains(output, "index_select: an index is out of range: at has the value 9")
  lu.assertStrContains(output, ":6")
end

os.exit(lu.LuaUnit.run())
