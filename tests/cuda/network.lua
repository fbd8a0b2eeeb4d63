-- Operations of networks on the CUDA backend: tests/gpu/network.lua on the tests' own driver (tests/fake_cuda), which
-- runs the kernels' PTX.
-- timeout: 180
local lu = require "luaunit"

local host = os.getenv "MILLRACE"
local build = host:match "^(.*)/"
local version = io.popen("'" .. host .. "' --version"):read "a"
if not version:find "cuda" then
  print "not available: this build has no CUDA backend"
  os.exit(77)
end

function TestNetwork()
  local command = ("env -u CUDA_VISIBLE_DEVICES FAKE_CUDA_KERNELS=1 MILLRACE_LIBCUBLAS=/none MILLRACE_LIBCUDA='%s' " ..
    "timeout 150 '%s' --device cuda tests/gpu/network.lua 12 2>&1"):format(build .. "/fake_cuda/libcuda.so.1", host)
  local pipe = io.popen(command)
  local output = pipe:read "a"
  lu.assertTrue(pipe:close() or false, output)
  lu.assertStrContains(output, "conv2d")
end

os.exit(lu.LuaUnit.run())
