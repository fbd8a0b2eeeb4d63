-- virtual only: runs the host itself
-- scripts/calibrate.lua finds the figures of the virtual GPU's model, also those of a model that
-- nobody ships. It writes a file that can be loaded.
-- timeout: 180
local lu = require "luaunit"
local command = require "host.support.command"

local SCRIPT = "scripts/calibrate.lua"

-- Every figure that the script measures, and how far it may be off. Half a query is the grain of the two latencies.
-- NEAR: a kernel also takes its floor, which the measurement cannot tell from its work.
local CLOSE, NEAR, COARSE = 0.02, 0.06, 0.15
local REST_NS = 1000 -- of a wait, when what is known of it has been taken off
local MEASURED = {
  max_resident_grids = 0, kernel_memory_gbs = CLOSE, fp32_tflops = NEAR, fp64_tflops = NEAR,
  kernel_floor_ns = NEAR, handover_ns = CLOSE, wait_latency_ns = CLOSE, h2d_gbs = CLOSE, d2h_gbs = CLOSE,
  copy_latency_ns = CLOSE, peer_access = 0, peer_gbs = CLOSE, peer_latency_ns = CLOSE, launch_ns = CLOSE,
  launch_latency_ns = COARSE, product_ns = CLOSE, copy_call_ns = CLOSE, record_ns = CLOSE, record_timed_ns = CLOSE,
  wait_event_ns = CLOSE, alloc_ns = CLOSE, free_ns = CLOSE, synchronize_ns = CLOSE, device_synchronize_ns = CLOSE,
  wakeup_ns = COARSE, query_ns = CLOSE, stream_create_ns = CLOSE, event_create_ns = CLOSE, staging_gbs = CLOSE,
  host_memory_gbs = CLOSE, host_work_gbs = CLOSE, unstaging_gbs = CLOSE, graph_floor_ns = NEAR,
}

-- A model's text as values and comments by key.
local function parse(text)
  local values, comments = {}, {}
  for line in text:gmatch("[^\n]+") do
    local key, value = line:gsub("#.*", ""):match("^([%w_]+) = (.-)%s*$")
    if key then values[key], comments[key] = tonumber(value) or value, line:match("#%s*(.*)") end
  end
  return values, comments
end

local function calibrate(...)
  local result = command.run{ ... }
  lu.assertEquals(result.err, "")
  lu.assertEquals(result.status, 0)
  return result.out
end

local function assert_same(got, expected)
  for key, tolerance in pairs(MEASURED) do
    if key == "wakeup_ns" then lu.assertAlmostEquals(got[key], expected[key], REST_NS, key)
    else lu.assertAlmostEquals(got[key] / expected[key], 1, tolerance, key) end
  end
end

local function shipped(name) return command.read("src/virtual/models/" .. name .. ".model") end

-- The text of a model like `text` in which every figure that is measured is another one.
local function distort(text)
  local turn = 0
  return (text:gsub("([%w_]+) = ([%d.]+)", function(key, value)
    if not MEASURED[key] or key == "peer_access" then return nil end
    turn = turn + 1
    local factor = ({ 0.8, 1.3, 1.1 })[turn % 3 + 1]
    return ("%s = %s"):format(key, key == "max_resident_grids" and "50" or ("%.6g"):format(value * factor))
  end))
end

TestCalibrate = {}

function TestCalibrate.test_shipped_models()
  for _, name in ipairs(os.getenv("MILLRACE_LONG") and { "h200", "t4" } or { "h200" }) do
    local values, comments = parse(calibrate("--device", "virtual:2", "--model", name, SCRIPT))
    local expected = parse(shipped(name))
    assert_same(values, expected)
    for key in pairs(MEASURED) do lu.assertStrContains(comments[key], "[m] ", false, false, key) end
    for key in pairs(expected) do lu.assertNotNil(values[key], key) end
    lu.assertNil(comments.sm_count:find("[m]", 1, true))
  end
end

function TestCalibrate.test_a_model_that_nobody_ships()
  command.with_file(distort(shipped("a100")), function(path)
    local expected = parse(command.read(path))
    lu.assertNotEquals(expected.launch_ns, parse(shipped("a100")).launch_ns)
    assert_same(parse(calibrate("--device", "virtual:2", "--model", path, SCRIPT)), expected)
  end)
end

-- One measurement, which takes seconds, for both.
function TestCalibrate.test_what_cannot_be_measured_says_so_and_the_file_can_be_loaded()
  command.with_file("", function(path)
    local file = path .. ".model"
    local out = calibrate("--device", "virtual", "--model", "h200", SCRIPT, file)
    lu.assertStrContains(out, file .. ": NVIDIA H200 (virtual)")
    local values, comments = parse(command.read(file))
    lu.assertEquals(comments.peer_gbs, "[a] as NVIDIA H200: there is one device")
    lu.assertEquals(values.peer_gbs, parse(shipped("h200")).peer_gbs)
    local name = calibrate("--device", "virtual", "--model", file, "-e", "print(mr.device(0).name)")
    lu.assertEquals(name, "NVIDIA H200 (virtual)\n")
    os.remove(file)
  end)
end

function TestCalibrate.test_a_file_that_cannot_be_written()
  local result = command.run{ "--device", "virtual", SCRIPT, "/nowhere/x.model" }
  lu.assertEquals(result.status, 1)
  lu.assertStrContains(result.err, "/nowhere/x.model")
end

os.exit(lu.LuaUnit.run())
