-- The cost of a step by hand, with and without a history, and of the way back. The program has ten small tensors.
local bench = dofile((arg[0]:match("^(.*)/") or ".") .. "/support.lua")

local ROUNDS, STEPS = 15, 200

local CODE = [[
local mr = require "millrace"
mr.machine.chooser("manual")
mr.machine.history{steps = %d}
local s, t = mr.stream(), {}
for i = 1, 10 do t[i] = mr.zeros(16) end
mr.synchronize()
local clock, forward, back = os.clock, {}, {}
for round = 1, %d do
  for i = 1, %d do s:run(function() t[i %% 10 + 1]:add_(1) end) end
  local begin = clock()
  mr.machine.step(s, %d)
  local middle = clock()
  if mr.machine.history().kept > 0 then for _ = 1, %d do mr.machine.back() end end
  local finish = clock()
  mr.synchronize()
  forward[round], back[round] = (middle - begin) / %d * 1e6, (finish - middle) / %d * 1e6
end
table.sort(forward)
table.sort(back)
print(forward[%d], back[%d])
]]

local function measure(steps)
  local middle = (ROUNDS + 1) // 2
  local code = CODE:format(steps, ROUNDS, STEPS, STEPS, STEPS, STEPS, STEPS, middle, middle)
  local out = bench.output_of(("'%s' --device virtual -e '%s'"):format(bench.host, code:gsub("'", "'\\''")))
  return out:match("(%S+)%s+(%S+)")
end

local step = measure(0)
local kept, back = measure(4096)
bench.print_table({ { "call", "us" }, { "`mr.machine.step(s)` without a history", ("%.2f"):format(step) },
  { "`mr.machine.step(s)` with one", ("%.2f"):format(kept) }, { "`mr.machine.back()`", ("%.2f"):format(back) } })
