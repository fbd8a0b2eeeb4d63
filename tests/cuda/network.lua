-- Operations of networks on the CUDA backend: tests/gpu/network.lua on the tests' own driver (tests/fake_cuda), which
-- runs the kernels' PTX.
-- timeout: 180
local lu = require "luaunit"
local fake = require "cuda.support.fake"

function TestNetwork()
  lu.assertStrContains(fake.run_script(150, "tests/gpu/network.lua", "12"), "conv2d")
end

os.exit(lu.LuaUnit.run())
