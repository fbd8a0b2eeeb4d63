-- The timelines of the examples on the virtual GPU, compared with the recorded ones: tests/timelines/NAME.out. They do
-- not depend on the run or the machine. MILLRACE_UPDATE=1 records them anew; read the difference before you keep it.
-- not replayed: it starts other programs
-- not recorded: it starts other programs
-- own pace: each tensor that is freed takes the host time
-- timeout: 180
local lu = require "luaunit"
local command = require "host.support.command"

-- The collector runs only where an example says so. By itself it would run at times that depend on the memory of
-- millrace's modules, and each tensor that it frees takes the host time.
local PROGRAM = [[
local mr = require "millrace"
collectgarbage "stop"
local quiet = setmetatable({ print = function() end }, { __index = _G })
quiet.collectgarbage = function(how, ...) if how ~= "restart" then return collectgarbage(how, ...) end end
quiet.io = setmetatable({ write = function() end }, { __index = io })
local trace = mr.timeline(function() assert(loadfile("%s", "t", quiet))() end)
trace:print{ width = 100, ascii = false, color = false }
]]

local function timeline(path)
  local words = { "--device", "virtual" }
  for line in io.lines(path) do
    local options = line:match("^%-%- options: (.*)")
    if options then
      words = {}
      for word in options:gmatch("%S+") do words[#words + 1] = word end
    end
    if not line:find("^%-%-") then break end
  end
  words[#words + 1] = "-e"
  words[#words + 1] = PROGRAM:format(path)
  return command.run(words)
end

-- Kernels of the user's take the time of the code that the compiler made, and each compiler makes other code. So of
-- programs that have some, and of programs that try many schedules, it is only checked that there is a timeline.
local has_compiler = command.run{ "--device", "virtual", "-e",
  [[require "millrace".kernel('extern "C" __global__ void k(float *x) { *x = 1; }')]] }.status == 0
local function uses_kernels(path)
  local text = command.read(path)
  return text:find("mr%.kernel") or text:find("mr%.module") or text:find("mr%.elementwise")
end

TestTimelines = {}

-- `make check` has a third of them.
local files, count = io.popen("ls scripts/examples/*.lua"), 0
for path in files:lines() do
  count = count + 1
  if os.getenv("MILLRACE_SHORT") == "all" and count % 3 ~= 1 then goto continue end
  local name = path:match("([%w_]+)%.lua$")
  TestTimelines["test_" .. name] = function()
    if uses_kernels(path) and not has_compiler then lu.skip("there is no compiler for kernels") end
    local result = timeline(path)
    lu.assertEquals(result.err, "")
    lu.assertEquals(result.status, 0)
    local text = command.read(path)
    local explores = text:find("mr%.explore") or text:find("mr%.waits") or text:find("mr%.stress")
    if uses_kernels(path) or explores then
      lu.assertStrContains(result.out, explores and "the host waits" or "█ kernel")
      return
    end
    local recorded = "tests/timelines/" .. name .. ".out"
    if os.getenv("MILLRACE_UPDATE") then command.write(recorded, result.out) end
    local file = io.open(recorded)
    if not file then lu.fail(recorded .. " is missing: MILLRACE_UPDATE=1 records it") end
    file:close()
    lu.assertEquals(result.out, command.read(recorded), "MILLRACE_UPDATE=1 records it anew")
  end
  ::continue::
end
files:close()

os.exit(lu.LuaUnit.run())
