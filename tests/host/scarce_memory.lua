-- timeout: 100
-- With little address space (ulimit -v, as batch systems set it) a program runs or says why not; and what bounds the
-- memory of tensors is named.
local lu = require "luaunit"
local command = require "host.support.command"

local function run(kilobytes, code)
  return command.run{ "--device", "virtual", "-e", code, environment = "ulimit -v " .. kilobytes }
end

-- A sanitizer needs terabytes of address space for itself.
local can_be_bounded = run(1000000, "print(1)").out == "1\n"

TestScarceMemory = {}

function TestScarceMemory.test_a_product_ends_with_any_address_space()
  if not can_be_bounded then return lu.skip("the program cannot start with bounded address space") end
  local product = "local a = mr.ones(300, 300) print(a:mm(a):sum():item()) "
  for _, kilobytes in ipairs{ 100000, 150000, 200000, 300000, 400000, 500000, 700000, 1000000 } do
    lu.assertEquals(run(kilobytes, product), { status = 0, out = "27000000.0\n", err = "" }, kilobytes)
  end
end

function TestScarceMemory.test_a_product_ends_when_tensors_have_taken_the_address_space()
  if not can_be_bounded then return lu.skip("the program cannot start with bounded address space") end
  local result = run(800000, [[
    local held = {}
    while pcall(function() held[#held + 1] = mr.zeros(1e6) end) do end
    held[#held] = nil
    held[#held] = nil
    local a = mr.ones(300, 300)
    print(a:mm(a):sum():item(), #held > 50)]])
  lu.assertEquals(result, { status = 0, out = "27000000.0\ttrue\n", err = "" })
end

function TestScarceMemory.test_host_and_device_share_what_there_is()
  if not can_be_bounded then return lu.skip("the program cannot start with bounded address space") end
  local result = run(700000, [[
    do
      local host <close> = mr.zeros(100e6, {device = "cpu"})
      print(mr.zeros(3):sum():item())
    end
    do
      local device <close> = mr.zeros(100e6)
      print(device[1]:item())
    end
    print(mr.zeros(100e6, {device = "cpu"})[1]:item())]])
  lu.assertEquals(result, { status = 0, out = "0.0\n0.0\n0.0\n", err = "" })
end

function TestScarceMemory.test_the_address_space_grows_with_what_is_used()
  if not can_be_bounded then return lu.skip("the program cannot start with bounded address space") end
  local size = "local function size() return tonumber(io.open('/proc/self/statm'):read('n')) * 4096 end "
  local result = run("unlimited", size .. [[
    local before = size()
    local x = mr.zeros(10)
    print(size() - before < 100e6)
    local y = mr.zeros(100e6)
    print(size() - before > 400e6)
    y:free()
    mr.synchronize()
    mr.memory.empty_cache()
    print(size() - before < 100e6)]])
  lu.assertEquals(result, { status = 0, out = "true\ntrue\ntrue\n", err = "" })
end

TestLimits = {}

function TestLimits.test_the_error_names_what_bounds_memory()
  local code = "print(mr.zeros(1 << 44))"
  lu.assertStrContains(command.eval(code, "--device", "virtual").err, "(70 % of the ")
  lu.assertStrContains(command.eval("mr.zeros(1 << 44, {device = 'cpu'})", "--device", "virtual").err, "(70 % of the ")
  if not can_be_bounded then return end
  lu.assertStrContains(run(1000000, code).err, "(70 % of the address space left by ulimit -v at the start)")
end

function TestLimits.test_doctor_names_what_bounds_memory()
  local result = command.run{ "--device", "virtual", "doctor" }
  lu.assertStrMatches(result.out, ".*\nmemory +[%d.]+ GB in this machine; tensors on the device can use [%d.]+ GB: " ..
    "[^\n]+\n.*")
  if not can_be_bounded then return end
  result = command.run{ "--device", "virtual", "doctor", environment = "ulimit -v 150000" }
  lu.assertStrContains(result.out, "GB: 70 % of the address space left by ulimit -v at the start\n")
  lu.assertStrContains(result.out, "address space is too small for a BLAS library (ulimit -v)\n")
end

os.exit(lu.LuaUnit.run())
