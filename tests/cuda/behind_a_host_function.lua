-- Calls that wait for the device inside the driver, on the tests' own driver (tests/fake_cuda), which waits wherever
-- CUDA allows it. None is made while a host function is pending; we wait otherwise, and Ctrl-C ends that wait.
-- timeout: 180
local luaunit = require "luaunit"
local command = require "host.support.command"
local fake = require "cuda.support.fake"

-- With the built-in kernels carried out; and without: each way to hold a stream for a function, no CUPTI, and kernels
-- that are loaded one by one.
local FORMS = { "FAKE_CUDA_KERNELS=1", "MILLRACE_HOST_FUNCTIONS=callback", "MILLRACE_LIBCUPTI=/none",
  "CUDA_MODULE_LOADING=LAZY" }
local SETTING = "FAKE_CUDA_WAITS=1 FAKE_CUDA_DEVICES=2 MILLRACE_LIBCUBLAS=/none MILLRACE_LIBCUPTI="
  .. command.quote(fake.driver) .. " "

TestBehindAHostFunction = {}

function TestBehindAHostFunction.test_every_function_comes_back()
  for _, form in ipairs(FORMS) do
    local output, status = fake.run{ "--device", "cuda", "tests/gpu/behind_a_host_function.lua", limit = 40,
      variables = SETTING .. form }
    luaunit.assertEquals(status, 0, form .. "\n" .. output)
    luaunit.assertStrContains(output, "1 passed, 0 failed")
  end
end

-- The function is run by the call, before the driver waits.
function TestBehindAHostFunction.test_the_first_trace_runs_it()
  local output, status = fake.run{ "--device", "cuda", limit = 20, variables = SETTING, "-e", [[
    local s = mr.stream()
    mr.spin{ms = 1, stream = s}
    s:host_func(function() print "called" end)
    mr.trace.start()
    print "started"
    s:host_func(function() print "called again" end)
    print(#mr.trace.stop())
    mr.trace.start()
    mr.spin{ms = 1}
    mr.synchronize()
    print(mr.trace.stop().spans[1].finish ~= nil)]] }
  luaunit.assertEquals(output, "called\nstarted\n1\ncalled again\ntrue\n")
  luaunit.assertEquals(status, 0)
end

function TestBehindAHostFunction.test_a_function_cannot_start_a_trace()
  local output, status = fake.run{ "--device", "cuda", limit = 20, variables = SETTING, "-e", [[
    local s = mr.stream()
    s:host_func(function() print(pcall(mr.trace.start)) end)
    s:synchronize()
    mr.trace.start()
    s:host_func(function() print(#mr.trace.stop()) end)
    s:synchronize()]] }
  luaunit.assertStrContains(output, "not permitted inside a host function")
  luaunit.assertStrContains(output, "\n1\n")
  luaunit.assertEquals(status, 0)
end

-- Behind a kernel that takes a minute. A later Ctrl-C ends the program, whose end waits for the device.
TestInterrupt = {}

local WAITING = { "mr.reset()", "mr.default_stream():host_func(print) mr.reset()", "mr.trace.start()",
  "mr.memory.empty_cache()", "mr.kernel{ptx = PTX}" }

function TestInterrupt.test_what_would_wait_in_the_driver()
  for _, case in ipairs(WAITING) do
    local _, _, result = fake.run{ "--device", "cuda", interrupts = 5, limit = 20,
      variables = SETTING .. "FAKE_CUDA_KERNEL_MS=60000", "-e", [[
        PTX = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry nothing()\n{\nret;\n}\n"
        do local _ <close> = mr.empty(1 << 20, {pinned = true}) end
        collectgarbage()
        mr.spin{ms = 60000}
        print "ready"
        ]] .. case }
    luaunit.assertEquals(result.out, "ready\n", case)
    luaunit.assertStrContains(result.err, "millrace: interrupted at (command line):6", false, case)
  end
end

os.exit(luaunit.LuaUnit.run())
