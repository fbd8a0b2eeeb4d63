-- The cost of a graph's launch to the computer, beside the same commands without a graph. Also shows whether memory
-- stays constant over many captures.
local mr = require "millrace"
local bench = dofile((arg[0]:match("^(.*)/") or ".") .. "/support.lua")

local NODES, ROUNDS, CAPTURES = 100, 2000, 10000

local s = mr.stream()
local x = mr.zeros(4)
mr.synchronize()

local function body()
  for _ = 1, NODES do x:add_(1) end
end
local g = mr.graph(body)

-- Microseconds of the processor for one call; what the device does comes after the measurement of each round.
local function cost(call)
  local total = 0
  for round = 0, ROUNDS do
    local began = os.clock()
    call()
    if round > 0 then total = total + os.clock() - began end
    s:synchronize()
  end
  return total / ROUNDS * 1e6
end

local rows = { { "what", "µs" } }
local function row(what, call) rows[#rows + 1] = { what, ("%.1f"):format(cost(call)) } end
row(NODES .. " operations", function() s:run(body) end)
row("launch of a graph of them", function() g:launch(s) end)
row("capture of such a graph", function() mr.graph(body) end)
bench.print_table(rows)

collectgarbage()
local before, most = nil, 0
for i = 1, CAPTURES do
  local made = mr.graph(function() return x + 1 end)
  made:launch(s)
  if i % 1000 == 0 then
    s:synchronize()
    collectgarbage()
    before = before or bench.resident_kb()
    most = math.max(most, bench.resident_kb())
  end
end
print(("\n%d captures: %.1f MB resident after the first 1000, at most %.1f MB"):format(CAPTURES, before / 1024,
  most / 1024))
