-- For a file of tests that holds for both compilers of kernels: adds a test that runs the file with the other one.
-- With MILLRACE_COMPILER naming one that is not there, the file is "not available".
local lu = require "luaunit"
local command = require "host.support.command"
local mr = require "millrace"

return function(file)
  local ok, module = pcall(mr.module, "__global__ void f() {}")
  if os.getenv("MILLRACE_COMPILER") then
    if not ok and module.code == "not-supported" then
      print(tostring(module))
      os.exit(77)
    end
    return
  end
  TestCompilers = {}

  function TestCompilers.test_the_other_compiler()
    local other = module.ptx:find("LLVM NVPTX") and "nvrtc" or "clang"
    local result = command.run{ file, environment = "export MILLRACE_COMPILER=" .. other }
    if result.status == 77 then return lu.skip(result.out) end
    lu.assertEquals(result.status, 0, result.out .. result.err)
  end
end
