-- virtual only: runs the host itself
-- scripts/makespan.lua predicts how long the examples take; on a machine without a GPU that is all.
-- timeout: 180
local lu = require "luaunit"
local command = require "host.support.command"

local function predict(...)
  local result = command.run{ "--device", "virtual", "scripts/makespan.lua", ... }
  lu.assertEquals(result.err, "")
  lu.assertEquals(result.status, 0)
  local found = {}
  for name, predicted, measured in result.out:gmatch("\n([%l_]+) +([%d.]+) +(%S+)") do
    found[name] = tonumber(predicted)
    lu.assertEquals(measured, "-")
  end
  return found
end

TestMakespan = {}

function TestMakespan.test_predictions()
  local found = predict("two_streams", "compute_communicate", "device_placement")
  lu.assertAlmostEquals(found.two_streams, 5, 0.1) -- 5 ms beside 5 ms
  lu.assertAlmostEquals(found.compute_communicate, 10, 0.3) -- four steps and one behind them, twice
  lu.assertTrue(found.device_placement > 0) -- which needs three devices
end

function TestMakespan.test_lines_say_where_the_time_goes()
  local result = command.run{ "--device", "virtual", "scripts/makespan.lua", "--lines", "two_streams" }
  lu.assertEquals(result.err, "")
  lu.assertStrMatches(result.out, ".*two_streams +5.*  two_streams%.lua:%d+ spin +5%.000 .*")
end

function TestMakespan.test_another_model()
  local slow = predict("--model", "t4", "cuda_guide_loop").cuda_guide_loop
  lu.assertTrue(slow > 2 * predict("--model", "h200", "cuda_guide_loop").cuda_guide_loop)
end

function TestMakespan.test_what_makes_memory_of_the_host_does_not_count()
  local name = os.tmpname()
  os.remove(name)
  local folder = name .. "_makespan"
  assert(os.execute(("mkdir -p %s/examples && cp scripts/makespan.lua scripts/measure.lua %s"):format(folder, folder)))
  command.write(folder .. "/examples/program.lua", [[
    local mr = require "millrace"
    for i = 1, 3 do
      mr.zeros(1 << 20, {pinned = i == 2}):add_(1)
      mr.spin(i)
      mr.synchronize()
    end
    mr.spin(100)
    print("nothing of this is shown", mr.machine)
  ]])
  local result = command.run{ "--device", "virtual", folder .. "/makespan.lua" }
  os.execute("rm -r " .. folder)
  lu.assertEquals(result.err, "")
  lu.assertAlmostEquals(tonumber(result.out:match("program +([%d.]+)")), 3, 0.1)
  lu.assertNil(result.out:find("nothing"))
end

function TestMakespan.test_an_example_that_is_not_there()
  local result = command.run{ "--device", "virtual", "scripts/makespan.lua", "nonsense" }
  lu.assertEquals(result.status, 1)
  lu.assertStrContains(result.err, "there is no example `nonsense`")
end

-- The blocks of these products make one wave on a T4 and a bit.
local TWO_PRODUCTS = [[
  local a, c, d = mr.ones(1152, 1152), mr.empty(1152, 1152), mr.empty(1152, 1152)
  local s, t = mr.stream(), mr.stream()
  local function took(other)
    mr.synchronize()
    local began = mr.clock()
    mr.with(s, function() a:mm(a, {out = c}) end)
    mr.with(other, function() a:mm(a, {out = d}) end)
    mr.synchronize()
    return mr.clock() - began
  end
  print(took(t) / took(s))]]

function TestMakespan:test_streams_do_not_go_above_the_devices_rate()
  local result = command.run{ "--device", "virtual", "--model", "t4", "-e", TWO_PRODUCTS }
  lu.assertEquals(result.err, "")
  lu.assertTrue(tonumber(result.out) > 0.97, result.out)
end

os.exit(lu.LuaUnit.run())
