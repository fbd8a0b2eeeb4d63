-- The user's kernels on the CUDA backend, through the whole program, on the tests' own driver (tests/fake_cuda), which
-- carries them out. tests/c/test_cuda_kernels.c has the tests below Lua.
-- timeout: 180
local luaunit = require "luaunit"
local fake = require "cuda.support.fake"

local KERNELS = [[
  local m = mr.module [=[
    __device__ int counter = 5;
    __constant__ int factors[3] = {1, 10, 100};
    static __device__ int calls;
    extern "C" __global__ void twice(int *y, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) y[i] *= 2;
    }
    extern "C" __global__ void count() {
      atomicAdd(&calls, 1);
      atomicAdd(&counter, factors[1]);
    }
    extern "C" __global__ void say(int number) { printf("kernel %d\n", number); }
    extern "C" __global__ void crash(int *y) { y[1ll << 40] = 1; }
    extern "C" __global__ void check(int x) { assert(x > 0); }
  ]=]
  local twice, count, say, crash, check = m:get "twice", m:get "count", m:get "say", m:get "crash", m:get "check"
]]

-- options: words for the command line.
local function script(text, options, variables, device)
  local words = { "--device", device or "cuda", variables = variables, limit = 60 }
  for _, word in ipairs(options or {}) do words[#words + 1] = word end
  words[#words + 1] = "-e"
  words[#words + 1] = KERNELS .. text
  return fake.run(words)
end

local function assert_says(expected, text, options, variables)
  local output, status = script(text, options, variables)
  luaunit.assertEquals(output, expected)
  luaunit.assertEquals(status, 0)
end

TestKernels = {}

function TestKernels.test_a_launch_computes_in_its_stream()
  assert_says("2 4 6\n4 8 12\n", [[
    local x, s = mr.tensor({1, 2, 3}, {dtype = "i32"}), mr.stream()
    twice[{1, 32}](x, 3)
    print(table.concat(x:totable(), " "))
    s:wait_stream(mr.current_stream())
    twice[{1, 32, 0, s}](x, 3)
    s:synchronize()
    print(table.concat(x:totable(), " "))
  ]])
end

function TestKernels.test_a_cooperative_launch()
  local rule = "tests/conformance/r69_a_cooperative_launch_has_a_barrier_of_its_grid.lua"
  luaunit.assertStrContains(fake.run_script(60, rule), " checks")
end

function TestKernels.test_variables_of_a_module()
  assert_says("5 15\n1 10 100\n21\n", [[
    local counter = m:global "counter"
    local before = counter:item()
    count[{1, 1}]()
    print(before .. " " .. counter:item())
    print(table.concat(m:global "factors":totable(), " "))
    mr.memcpy(counter, mr.tensor(11, {dtype = "i32", device = "cpu"}))
    count[{1, 1}]()
    print(counter:item())
  ]])
end

-- The driver keeps the text in a buffer, which it writes out at a synchronise and not at a query.
function TestKernels.test_a_wait_shows_what_kernels_printed()
  assert_says("kernel 1\nstream\nkernel 2\nevent\nkernel 3\ndevice\nkernel 4\n", [[
    io.stdout:setvbuf "no"
    local s = mr.stream()
    say[{1, 1, 0, s}](1) s:synchronize() print "stream"
    say[{1, 1, 0, s}](2) s:record_event():synchronize() print "event"
    say[{1, 1, 0, s}](3) mr.synchronize() print "device"
    say[{1, 1, 0, s}](4)
  ]])
end

function TestKernels.test_devices_load_a_module_when_they_use_it()
  assert_says("2 4\n15 15 5\n", [[
    local there = mr.tensor({1, 2}, {dtype = "i32", device = 1})
    twice[{1, 32, 0, mr.stream{device = 1}}](there, 2)
    mr.synchronize(1)
    print(table.concat(there:totable(), " "))
    local function counter() return m:global "counter":item() end
    count[{1, 1}]()
    local first = counter()
    mr.set_device(1)
    local second = counter()
    count[{1, 1}]()
    print(first .. " " .. counter() .. " " .. second)
  ]], nil, "FAKE_CUDA_DEVICES=2")
end

-- The variables belong to the module, so no order of streams is missing where the module is used or dropped.
function TestKernels.test_the_checker_knows_who_owns_variables()
  for _, device in ipairs{ "cuda", "virtual" } do
    local output, status = script([[
      local s = mr.stream()
      count[{1, 1, 0, s}]()
      s:synchronize()
      print(m:global "counter":item())
      count[{1, 1, 0, s}]()
      m, twice, count, say, crash, check = nil, nil, nil, nil, nil, nil
      collectgarbage() collectgarbage()
      s:synchronize()
    ]], { "--check" }, nil, device)
    luaunit.assertStrContains(output, "15\nno hazards")
    luaunit.assertEquals(status, 0)
  end
end

function TestKernels.test_the_checker_finds_races_between_launches()
  local output, status = script([[
    local s, x = mr.stream(), mr.tensor({1, 2, 3, 4}, {dtype = "i32"})
    twice[{1, 32}](x, 4)
    twice[{1, 32, 0, s}](x, 4)
    mr.synchronize()
  ]], { "--check" })
  luaunit.assertStrContains(output, "twice")
  luaunit.assertEquals(status, 3)
end

function TestKernels.test_a_failure_names_the_kernel_and_its_line()
  local output, status = script [[
    local x = mr.tensor({1, 2}, {dtype = "i32"})
    twice[{1, 32}](x, 2)
    mr.synchronize()
    crash[{1, 1}](x)
    local ok, err = pcall(mr.synchronize)
    print(ok, err.code, err.op)
    print(tostring(err.where):match ":(%d+)$")
    print(pcall(twice[{1, 32}], x, 2))
    mr.reset()
    print(pcall(m.get, m, "twice"))
    print(select(2, pcall(count[{1, 1}])))
  ]]
  luaunit.assertStrContains(output, "false\tillegal-address\tcrash\n")
  luaunit.assertStrContains(output, "load it again")
  luaunit.assertEquals(status, 0)
end

function TestKernels.test_an_assertion_fails_with_its_text()
  local output = script [[
    check[{2, 1}](0)
    print(select(2, pcall(mr.synchronize)).code)
  ]]
  luaunit.assertStrContains(output, "Assertion `x > 0` failed")
  luaunit.assertStrContains(output, "assert\n")
end

function TestKernels.test_the_driver_says_why_it_rejects_ptx()
  local output, status = fake.run{ "--device", "cuda", "-e", [[
    mr.module{ptx = ".version 9.9\n.target sm_80\n.address_size 64\n"}
  ]] }
  luaunit.assertStrContains(output, "newer version than this driver knows")
  luaunit.assertStrContains(output, "Unsupported .version 9.9")
  luaunit.assertEquals(status, 1)
end

-- Its PTX is for the newest GPU whose PTX is read here.
function TestKernels.test_a_newer_gpu_takes_older_ptx()
  assert_says("2\n", [[
    local x = mr.tensor({1}, {dtype = "i32"})
    twice[{1, 32}](x, 1)
    print(x:item())
  ]], nil, "FAKE_CUDA_CAPABILITY=120")
end

-- Not one module of these is used any more when the next is made.
function TestKernels.test_modules_go_when_nobody_has_them()
  assert_says("done\n", [[
    local x = mr.tensor({1}, {dtype = "i32"})
    for i = 1, 60 do
      local source = 'extern "C" __global__ void add(int *y) { y[0] += STEP; }'
      local k = mr.kernel(source, {name = "add", options = "-DSTEP=" .. i % 3})
      k[{1, 1}](x)
      if i % 10 == 0 then collectgarbage() end
    end
    assert(x:item() == 61)
    print "done"
  ]])
end

-- What holds of kernels on the virtual GPU holds here; the built-in kernels run from PTX, too.
function TestKernels.test_what_scripts_do_with_kernels()
  for _, file in ipairs{ "tests/lua/kernels.lua", "tests/lua/kernels_programs.lua" } do
    luaunit.assertStrContains(fake.run_script(60, file), "\nOK")
  end
end

-- The programs of tests/kernels give the same bits as on the virtual GPU.
function TestKernels.test_programs()
  local output, status = fake.run{ "--device", "cuda", "tests/gpu/kernels.lua", limit = 60 }
  luaunit.assertStrContains(output, " passed, 0 failed\n")
  luaunit.assertEquals(status, 0)
end

-- A kernel fails, and no call waits for it. A pending host function is dropped, so nothing is waited for then.
function TestKernels.test_a_failure_that_nobody_waited_for()
  local output, status = script("crash[{1, 1}](mr.zeros(1, {dtype = 'i32'})) print 'end'")
  luaunit.assertStrContains(output, "end\n")
  luaunit.assertStrContains(output, "an access was outside the memory of all tensors")
  luaunit.assertEquals(status, 1)
  output, status = script("twice[{1, 1}](mr.zeros(1, {dtype = 'i32'}), 1)")
  luaunit.assertEquals(output, "")
  luaunit.assertEquals(status, 0)
  output, status = script("crash[{1, 1}](mr.zeros(1, {dtype = 'i32'})) mr.default_stream():host_func(print)", nil,
    "FAKE_CUDA_KERNEL_MS=300")
  luaunit.assertEquals(output, "")
  luaunit.assertEquals(status, 0)
end

os.exit(luaunit.LuaUnit.run())
