-- The cost of the hazard checker: nanoseconds a command, checker on minus checker off in the same run. Rounds of both
-- take turns, and the least of each counts. Before that, its memory over many commands.
--
--     millrace scripts/bench/hazard.lua [ROUNDS [COMMANDS]]
local mr = require "millrace"

local rounds = tonumber(arg and arg[1]) or 7
local many = math.tointeger(tonumber(arg and arg[2] or 1e7))
local clock = os.clock

-- `body(n)` submits n commands; the device synchronise that ends a round is outside the measurement.
local function round(mode, n, body)
  mr.synchronize()
  mr.hazard.mode("off")
  mr.hazard.clear()
  mr.hazard.mode(mode)
  collectgarbage()
  collectgarbage("stop")
  local began = clock()
  body(n)
  local took = clock() - began
  collectgarbage("restart")
  mr.synchronize()
  return took / n * 1e9
end

local function measure(name, n, body)
  body(math.min(n, 1000))
  local off, on, hazards = math.huge, math.huge, 0
  for _ = 1, rounds do
    off = math.min(off, round("off", n, body))
    on = math.min(on, round("collect", n, body))
    hazards = select(2, mr.hazard.summary()).hazards
  end
  mr.hazard.mode("off")
  print(("%-58s off %7.0f  on %7.0f  checker %6.0f ns%s"):format(name, off, on, on - off,
    hazards > 0 and "  (" .. hazards .. " hazards)" or ""))
  return on - off
end

print(("%d rounds, the least of each"):format(rounds))

-- ---------------------------------------------------------------- memory

-- Four streams, each waiting for the one before; new tensors, events and views all the time.
do
  local function resident()
    return tonumber(io.open("/proc/self/status"):read("a"):match("VmRSS:%s*(%d+)")) / 1024
  end
  mr.hazard.clear()
  local streams, events, xs = {}, {}, {}
  for i = 1, 4 do streams[i], events[i], xs[i] = mr.stream(), mr.event(), mr.zeros(64) end
  mr.synchronize()
  mr.hazard.mode("collect")
  local at = {}
  for part = 1, 10 do
    for n = 1, many // 30 do
      local i = n % 4 + 1
      local s = streams[i]
      s:wait_event(events[(i + 2) % 4 + 1])
      mr.with(s, xs[i].add_, xs[i], 1)
      events[i]:record(s)
      if n % 1000 == 0 then
        xs[i] = mr.zeros(64, {stream = s})
        mr.synchronize()
      end
    end
    at[part] = ("%.1f"):format(resident())
  end
  local hazards = select(2, mr.hazard.summary()).hazards
  print(("%.0e commands, checker on: MB resident after each tenth: %s%s"):format(many, table.concat(at, " "),
    hazards > 0 and "  (" .. hazards .. " hazards)" or ""))
  mr.hazard.mode("off")
end

-- ---------------------------------------------------------------- one command

do
  local a, x = mr.stream(), mr.zeros(64)
  mr.synchronize()
  measure("an operation on one tensor, one stream", 20000, function(n)
    mr.with(a, function() for _ = 1, n do x:add_(1) end end)
  end)
  local e = mr.event()
  measure("record and wait (two commands as one)", 20000, function(n)
    for _ = 1, n do e:record(a) e:wait(a) end
  end)
end

-- ---------------------------------------------------------------- streams that synchronise pairwise

local function pairs_of(count)
  local streams, tensors, events = {}, {}, {}
  for i = 1, count do
    streams[i], tensors[i], events[i] = mr.stream(), mr.zeros(64), mr.event()
  end
  mr.synchronize()
  return function(n) -- n commands: operation, record, wait
    local i = 1
    for _ = 1, n // 3 do
      local s, partner = streams[i], streams[i % 2 == 1 and i + 1 or i - 1]
      local t = tensors[(i + 1) // 2]
      mr.with(s, t.add_, t, 1)
      events[i]:record(s)
      partner:wait_event(events[i])
      i = i % count + 1
    end
  end
end

local function ring_of(count)
  local streams, tensors, events = {}, {}, {}
  for i = 1, count do
    streams[i], tensors[i], events[i] = mr.stream(), mr.zeros(64), mr.event()
  end
  mr.synchronize()
  return function(n)
    local i = 1
    for _ = 1, n // 3 do
      mr.with(streams[i], tensors[i].add_, tensors[i], 1)
      events[i]:record(streams[i])
      streams[i % count + 1]:wait_event(events[i])
      i = i % count + 1
    end
  end
end

for _, count in ipairs { 2, 16, 64, 256 } do
  measure(count .. " streams in pairs: operation, record, wait", 30000, pairs_of(count))
end
for _, count in ipairs { 2, 16, 64, 256 } do
  measure(count .. " streams in a ring: operation, record, wait", 30000, ring_of(count))
end

-- ---------------------------------------------------------------- live tensors

for _, count in ipairs { 10, 1000, 100000, 1000000 } do
  local a, all = mr.stream(), {}
  for i = 1, count do all[i] = mr.zeros(1) end
  mr.synchronize()
  measure(count .. " live tensors, ten of them used in turn", 20000, function(n)
    mr.with(a, function() for i = 1, n do all[i % 10 + 1]:add_(1) end end)
  end)
  all = nil
  collectgarbage()
end

-- ---------------------------------------------------------------- views of one storage

local function views(name, rows, columns, make, count)
  local m, a, all = mr.zeros(rows, columns), mr.stream(), {}
  for i = 1, count do all[i] = make(m, i) end
  mr.synchronize()
  measure(count .. " " .. name .. " of one storage in turn", 20000, function(n)
    mr.with(a, function() for i = 1, n do all[i % count + 1]:add_(1) end end)
  end)
end
for _, count in ipairs { 1, 10, 100, 1000 } do
  views("rows", 1000, 8, function(m, i) return m:select(1, i) end, count)
end
for _, count in ipairs { 1, 10, 100, 1000 } do
  views("columns", 8, 1000, function(m, i) return m:select(2, i) end, count)
end
