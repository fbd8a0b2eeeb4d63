-- Runs the benchmarks, each in a process of its own: build/millrace scripts/bench/run.lua [NAME...]
--
-- Every table compares within one run, on one machine; absolute figures of two runs do not compare.
local bench = dofile((arg[0]:match("^(.*)/") or ".") .. "/support.lua")

local ALL = { "startup", "prompt", "stepping", "commands", "scale", "bodies", "hazard", "timelines", "autograd",
  "graphs" }
local wanted = #arg > 0 and arg or ALL

local cpu = (bench.read("/proc/cpuinfo") or ""):match("model name%s*:%s*([^\n]*)") or "unknown processor"
print(("%s, %s cores, %s"):format(cpu, bench.output_of("nproc"), bench.output_of("uname -sr")))
print(bench.output_of("'" .. bench.host .. "' --version"))
print()
io.flush()

local failed = false
for _, name in ipairs(wanted) do
  print("## " .. name .. "\n")
  io.flush()
  local ok = os.execute(("'%s' '%s/%s.lua'"):format(bench.host, bench.folder, name))
  failed = failed or not ok
end
os.exit(not failed)
