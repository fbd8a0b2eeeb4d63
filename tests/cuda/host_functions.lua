-- Host functions of the CUDA backend, through the whole program, on the tests' own driver (tests/fake_cuda), whose
-- queues are as short as the real one's: nothing hangs, in either form.
local luaunit = require "luaunit"
local fake = require "cuda.support.fake"

-- Each way to hold a stream for a function.
local FORMS = { "MILLRACE_HOST_FUNCTIONS=", "MILLRACE_HOST_FUNCTIONS=callback", "FAKE_CUDA_MEMORY_OPERATIONS=0" }

-- The output of a script; a hang is exit status 124.
local function run(form, script)
  return fake.run{ "--device", "cuda", "-e", script, variables = form, limit = 20 }
end

TestHostFunctions = {}

-- As many launches as the sort of a random permutation takes count one by one.
local NUMBERS = [[
  local s, x, n = mr.stream(), mr.zeros(4), 0
  mr.synchronize()
  local function f() n = n + 1 end
  for i = 1, 60 do x:add_(1) s:host_func(f) end
  s:synchronize() print(n)
  s:run(function() for i = 1, 600 do x:add_(1) s:host_func(f) end end)
  s:synchronize() print(n)
  s:host_func(f)
  s:run(function() for i = 1, 60 do mr.randperm(1 << 22) end end)
  s:synchronize() print(n)
]]

function TestHostFunctions.test_any_number_of_kernels_and_functions_may_pend()
  for _, form in ipairs(FORMS) do
    local output, status = run(form, NUMBERS)
    luaunit.assertEquals(output, "60\n660\n661\n", form)
    luaunit.assertEquals(status, 0)
  end
end

-- It may have to pin pages, which waits for the device, which waits for the function.
function TestHostFunctions.test_a_function_cannot_pin_more_memory()
  for _, form in ipairs(FORMS) do
    local output, status = run(form, [[
      local s = mr.stream()
      s:host_func(function() print(pcall(mr.zeros, 1 << 20, {pinned = true})) end)
      s:host_func(function() print "second" end)
      s:synchronize()
    ]])
    luaunit.assertStrContains(output, "pinning more memory may wait for the device, which waits for this function")
    luaunit.assertStrContains(output, "second")
    luaunit.assertEquals(status, 0)
  end
end

-- The end neither runs nor waits for what is pending.
function TestHostFunctions.test_the_end_drops_pending_functions()
  for _, form in ipairs(FORMS) do
    local output, status = run(form, [[
      local s = mr.stream()
      for i = 1, 5 do mr.spin{ms = 1, stream = s} s:host_func(function() print "called" end) end
    ]])
    luaunit.assertEquals(output, "")
    luaunit.assertEquals(status, 0)
  end
end

os.exit(luaunit.LuaUnit.run())
