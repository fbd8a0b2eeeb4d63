-- Collectives on CUDA: the backend's calls of NCCL, which tests/fake_cuda/nccl.c replaces.
local lu = require "luaunit"
local fake = require "cuda.support.fake"

local COMMON = "FAKE_CUDA_KERNELS=1 MILLRACE_LIBCUBLAS=/none MILLRACE_LIBNCCL=" .. fake.driver

local function run(variables, ...)
  return fake.run{ limit = 60, variables = COMMON .. " " .. variables, "--device", "cuda", ... }
end

local function script(code, variables)
  local output, status = run("FAKE_CUDA_DEVICES=4 " .. (variables or ""), "-e", code)
  lu.assertEquals(status, 0, output)
  return output
end

local PAIR = [[
local comms = mr.nccl.comms{0, 1}
local x = { mr.ones(4, {device = 0}), mr.ones(4, {device = 1}) }
local function reduce() mr.nccl.group(function() for k, c in ipairs(comms) do c:all_reduce(x[k]) end end) end
]]

TestNccl = {}

function TestNccl.test_values_of_four_devices_and_of_one()
  for _, count in ipairs{ 4, 1 } do
    for _, check in ipairs{ "--check=off", "--check=error" } do
      local output, status = run("FAKE_CUDA_DEVICES=" .. count, check, "tests/lua/nccl_values.lua")
      lu.assertEquals(status, 0, output)
    end
  end
end

function TestNccl.test_no_library()
  local output, status = run("MILLRACE_LIBNCCL=/none", "-e", "mr.nccl.comms{0}")
  lu.assertEquals(status, 1)
  lu.assertStrContains(output, "comms: NCCL cannot be opened")
  lu.assertStrContains(output, "--device virtual")
  lu.assertStrContains(run("", "doctor"), "version 2.28.0")
  lu.assertStrContains(run("MILLRACE_LIBNCCL=/none", "doctor"), "NCCL cannot be opened")
end

-- One rank: nothing was submitted. Two: the first one was, so the machine is lost.
function TestNccl.test_a_failure_is_an_error_with_nccls_words()
  local output = run("FAKE_NCCL_FAILS=1", "-e", "mr.nccl.comms{0}[1]:all_reduce(mr.ones(4))")
  lu.assertStrContains(output, "all_reduce: NCCL failed: unhandled cuda error")
  output = run("FAKE_NCCL_FAILS=1 FAKE_CUDA_DEVICES=2", "-e", PAIR .. [[
    print(pcall(reduce))
    print(pcall(mr.synchronize))]])
  lu.assertStrContains(output, "a collective was submitted in part, and cannot end: all_reduce: NCCL failed")
end

-- NCCL waits for the device when a communicator is destroyed, and the device waits for a host function: the finalizer
-- must not destroy it.
function TestNccl.test_closed_while_a_host_function_is_pending()
  local output = script(PAIR .. [[
    local s = mr.current_stream(0)
    reduce()
    s:host_func(function() print "host function" end)
    comms = nil
    collectgarbage() collectgarbage()
    print "collected"
    local more = mr.nccl.comms{0, 1}  -- the first ones go now
    more[1]:close()
    mr.synchronize(0) mr.synchronize(1)
    print(x[2]:sum():item())]])
  lu.assertStrContains(output, "collected\nhost function\n8.0")
end

function TestNccl.test_reset_and_new_communicators()
  local output = script(PAIR .. [[
    reduce()
    local old = comms
    mr.reset()
    print(pcall(old[1].all_reduce, old[1], mr.ones(2)))
    comms = mr.nccl.comms{1, 0}
    x = { mr.ones(4, {device = 1}), mr.ones(4, {device = 0}) }
    reduce()
    print(x[1]:sum():item())
    local parts = { comms[1]:split(0), comms[2]:split(0) }
    mr.nccl.group(function() for k, c in ipairs(parts) do c:all_reduce(x[k], {op = "avg"}) end end)
    print(x[2]:sum():item())]])
  lu.assertStrContains(output, "is from before mr.reset()")
  lu.assertStrContains(output, "8.0\n8.0")
end

-- R61: the other device's work is waited for, and the checker knows no other order.
function TestNccl.test_ranks_and_the_checker()
  local output = script([[
    local sums = mr.dist.spawn(4, function(rank)
      local t = mr.full(8, rank + 1.0)
      local work = mr.dist.all_reduce(t, {async = true})
      work:wait()
      return t:sum():item()
    end)
    print(table.concat(sums, " "))
    print(#mr.hazard.check(function()
      mr.dist.spawn(2, function()
        local t = mr.ones(8)
        mr.dist.all_reduce(t, {async = true})
        t:add_(1)
      end)
    end) > 0)]])
  lu.assertStrContains(output, "80.0 80.0 80.0 80.0")
  lu.assertStrContains(output, "true")
end

function TestNccl.test_timelines_and_launch_blocking()
  for _, library in ipairs{ "/none", fake.driver } do
    local output = script(PAIR .. [[
      local tr = mr.timeline(function() reduce() mr.synchronize(0) mr.synchronize(1) end)
      local count = 0
      for _, span in ipairs(tr.spans) do if span.name == "all_reduce" then count = count + 1 end end
      print("spans", count)]], "MILLRACE_LIBCUPTI=" .. library)
    lu.assertStrContains(output, "spans")
  end
  local code = PAIR .. "reduce() print(x[1]:sum():item())"
  local output, status = run("FAKE_CUDA_DEVICES=2", "--launch-blocking", "-e", code)
  lu.assertEquals(status, 0, output)
  lu.assertStrContains(output, "8.0")
end

os.exit(lu.LuaUnit.run())
