-- Commands a second through Lua, the model, the virtual GPU's queues and back: tiny tensors on four streams,
-- an event from each to the next. And whether memory stays where it is over ten million of them.
local mr = require "millrace"
local bench = dofile((arg[0]:match("^(.*)/") or ".") .. "/support.lua")

local STREAMS = 4
local COUNT = tonumber(arg[1]) or 10000000

local stream, x, event = {}, {}, {}
for i = 1, STREAMS do stream[i], x[i], event[i] = mr.stream(), mr.zeros(4), mr.event() end
mr.synchronize()

-- Each round is, for each stream, an operation, a record and a wait: three commands.
local function in_place(rounds)
  for _ = 1, rounds do
    for i = 1, STREAMS do
      local s, e = stream[i], event[i]
      mr.set_stream(s)
      x[i]:add_(1)
      e:record(s)
      stream[i % STREAMS + 1]:wait_event(e)
    end
  end
  return 3 * rounds * STREAMS
end

-- The same with a new tensor each time: an allocation and, once it is garbage, a free come on top.
local function allocating(rounds)
  for _ = 1, rounds do
    for i = 1, STREAMS do
      local s, e = stream[i], event[i]
      mr.set_stream(s)
      x[i] = x[i]:add(1)
      e:record(s)
      stream[i % STREAMS + 1]:wait_event(e)
    end
  end
  return 5 * rounds * STREAMS
end

local function queries(rounds)
  for _ = 1, rounds do
    for i = 1, STREAMS do stream[i]:query() end
  end
  return rounds * STREAMS
end

local function rate(work, count)
  work(10000)
  mr.synchronize()
  local rounds = count // work(0 * count + 1)
  local kb, most = bench.resident_kb(), 0
  local began, done = os.clock(), 0 -- one thread works: its time is the time
  for _ = 1, 10 do
    done = done + work(rounds // 10)
    most = math.max(most, bench.resident_kb())
  end
  mr.synchronize()
  return done, os.clock() - began, kb, math.max(most, bench.resident_kb())
end

local rows = { { "what", "commands", "million a second", "ns each", "MB before", "most MB" } }
local function add(title, work, count)
  local done, seconds, before, most = rate(work, count)
  rows[#rows + 1] = { title, ("%.1e"):format(done), ("%.2f"):format(done / seconds / 1e6),
    ("%.0f"):format(seconds / done * 1e9), ("%.1f"):format(before / 1024), ("%.1f"):format(most / 1024) }
end
add("`add_`, record, wait", in_place, COUNT)
add("`add`, record, wait, with allocations", allocating, COUNT)
add("query of a stream", queries, COUNT // 10)
mr.machine.chooser("random:1")
add("`add_`, record, wait, random:1", in_place, COUNT // 10)
mr.machine.chooser("adversarial")
add("`add_`, record, wait, adversarial", in_place, COUNT // 100)
bench.print_table(rows)
