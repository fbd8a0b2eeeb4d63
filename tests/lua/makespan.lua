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
  lu.assertAlmostEquals(found.two_streams, 5, 0.2) -- 5 ms beside 5 ms, and what comes before and after
  lu.assertAlmostEquals(found.compute_communicate, 10, 0.4) -- four steps and one behind them, twice
  lu.assertTrue(found.device_placement > 0) -- which needs three devices
end

function TestMakespan.test_lines_say_where_the_time_goes()
  local result = command.run{ "--device", "virtual", "scripts/makespan.lua", "--lines", "two_streams" }
  lu.assertEquals(result.err, "")
  lu.assertStrMatches(result.out, ".*two_streams +5.*  two_streams%.lua:%d+ spin +5%.000 .*")
end

function TestMakespan.test_another_model()
  local slow = predict("--model", "t4", "fan_out").fan_out
  lu.assertTrue(slow > 2 * predict("--model", "h200", "fan_out").fan_out)
end

-- What the script prints, in a folder with these programs as its examples.
local function predict_programs(programs)
  local name = os.tmpname()
  os.remove(name)
  local folder = name .. "_makespan"
  local scripts = folder .. "/scripts"
  assert(os.execute(("mkdir -p %s/examples %s/src/virtual"):format(scripts, folder)))
  assert(os.execute(("cp scripts/makespan.lua scripts/measure.lua %s"):format(scripts)))
  assert(os.execute(("cp -R src/virtual/models %s/src/virtual"):format(folder)))
  for program, text in pairs(programs) do command.write(("%s/examples/%s.lua"):format(scripts, program), text) end
  local result = command.run{ "--device", "virtual", scripts .. "/makespan.lua", "--only", "examples" }
  os.execute("rm -r " .. folder)
  lu.assertEquals(result.err, "")
  lu.assertEquals(result.status, 0)
  return result.out
end

function TestMakespan.test_getting_ready_does_not_count()
  local out = predict_programs{ program = [[
    local mr = require "millrace"
    for i = 1, 3 do
      mr.zeros(1 << 10, {pinned = i == 2}):add_(1)
      mr.spin(i)
      mr.kernel('extern "C" __global__ void k() {}')
    end
    print("nothing of this is shown", mr.machine)
  ]] }
  lu.assertAlmostEquals(tonumber(out:match("program +([%d.]+)")), 6, 0.2)
  lu.assertNil(out:find("nothing"))
end

function TestMakespan.test_why_a_program_is_left_out()
  local out = predict_programs{
    searches = 'local mr = require "millrace" mr.explore(function() end)',
    fails = 'error("on purpose", 0)',
  }
  lu.assertStrMatches(out, ".*\nsearches +%- +%- +%- +it tries schedules %(mr%.explore%).*")
  lu.assertStrMatches(out, ".*\nfails +%- +%- +%- +on purpose\n.*")
end

-- The script's own time passes, as long in each run.
function TestMakespan.test_the_time_of_lua()
  local function program(rounds)
    return ([[local mr = require "millrace" local x = 0
      for i = 1, %d do x = x + i %% 3 end mr.spin(1) mr.synchronize()]]):format(rounds)
  end
  local out = predict_programs{ few = program(10), many = program(1000000), again = program(1000000) }
  local few, many = tonumber(out:match("\nfew +([%d.]+)")), tonumber(out:match("\nmany +([%d.]+)"))
  lu.assertAlmostEquals(few, 1, 0.1)
  lu.assertTrue(few + 10 < many, out) -- 4 million instructions
  lu.assertEquals(tonumber(out:match("\nagain +([%d.]+)")), many)
end

-- A script of so many rounds of a body, which submits nothing.
local function rounds_of(count, body)
  return ([[local mr = require "millrace" local x, keep = mr.zeros(8, 8), nil
    mr.synchronize() for i = 1, %d do %s end]]):format(count, body)
end

local function predicted(out, name) return tonumber(out:match("\n" .. name .. " +([%d.]+)")) end

-- Each figure of the model has its part: 10,000 of each, at what the model h200 says.
function TestMakespan.test_calls_and_memory_and_collections()
  local text = command.read("src/virtual/models/h200.model")
  local function figure(key) return tonumber(text:match("\n" .. key .. " = ([%d.]+)")) end
  local out = predict_programs{
    loop = rounds_of(10000, ""),
    calls = rounds_of(10000, "rawequal(x, x)"),
    tables = rounds_of(10000, "keep = {}"), -- 56 bytes each
    collections = rounds_of(100, "collectgarbage()"),
    steps = rounds_of(100, "collectgarbage('step', 0)"),
  }
  local loop, calls, tables = predicted(out, "loop"), predicted(out, "calls"), predicted(out, "tables")
  local memory = 10000 * figure("lua_kib_ns") * 1e-6 / 1024
  local each = (10000 * figure("lua_call_ns") + 10000 * 4 * figure("lua_ns") / 100) * 1e-6 -- and four instructions
  lu.assertAlmostEquals(calls - loop, each, 0.2 * each)
  lu.assertTrue(tables - loop > 50 * memory and tables - loop < 100 * memory + 0.2, out)
  local collection = predicted(out, "collections") - predicted(out, "steps")
  lu.assertTrue(collection > 100 * 100 * figure("lua_collect_ns") * 1e-6, out) -- the library alone takes 100 KiB
end

function TestMakespan.test_an_error_while_something_gets_ready()
  local out = predict_programs{ program = [[
    local mr = require "millrace"
    mr.spin(1)
    print(pcall(mr.kernel, "this is no kernel"))
    print(pcall(mr.graph, function() mr.spin(0.5) error("no graph") end))
    mr.spin(1)
    mr.synchronize()
    for i = 1, 200000 do i = i + 1 end -- counts, as before the error
  ]] }
  local loop = 200000 * 2 * 4 * 1e-6 -- ms, at lua_ns
  lu.assertAlmostEquals(predicted(out, "program"), 2 + loop, 0.5)
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
