-- Runs the program that is under test on the tests' own driver (tests/fake_cuda). A test file that loads this is "not
-- available" where the build has no CUDA backend.
local command = require "host.support.command"

local fake = { folder = command.host:match "^(.*)/" .. "/fake_cuda/" }
fake.driver = fake.folder .. "libcuda.so.1"

if not command.run{ "--version" }.out:find "cuda" then
  print "not available: this build has no CUDA backend"
  os.exit(77)
end

-- fake.run{"--device", "cuda", "-e", "code", variables = "NAME=value ...", limit=, input=}
-- -> what it printed of both kinds, its exit status, and {out=, err=}, each kind alone.
-- variables: for the shell; they come after the driver's, so they may name another. A hang is exit status 124.
function fake.run(arguments)
  arguments.environment = ("unset CUDA_VISIBLE_DEVICES; export MILLRACE_LIBCUDA=%s %s"):format(
    command.quote(fake.driver), arguments.variables or "")
  local result = command.run(arguments)
  return result.out .. result.err, result.status, result
end

-- A script of the tests, with its kernels carried out and without cuBLAS; it must end well.
function fake.run_script(limit, ...)
  local output, status = fake.run{ limit = limit, variables = "FAKE_CUDA_KERNELS=1 MILLRACE_LIBCUBLAS=/none",
    "--device", "cuda", ... }
  assert(status == 0, output)
  return output
end

return fake
