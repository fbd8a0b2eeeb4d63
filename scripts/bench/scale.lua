-- Whether work grows with what there is to do, and no faster: many operations pending on one stream, and
-- many streams. Each size beside a tenth of it; the time of one should be the same.
local mr = require "millrace"
local bench = dofile((arg[0]:match("^(.*)/") or ".") .. "/support.lua")

-- Seconds to submit and to drain n operations behind a long kernel.
local function pending(n)
  local s, x = mr.stream(), mr.zeros(4)
  mr.synchronize()
  mr.spin{ms = 1e6, stream = s}
  mr.set_stream(s)
  local began = os.clock()
  for _ = 1, n do x:add_(1) end
  local submitted = os.clock()
  assert(not s:query())
  s:synchronize()
  local done = os.clock()
  mr.set_stream(mr.default_stream())
  assert(x[1]:item() == n)
  s:close()
  return submitted - began, done - submitted
end

-- n streams, each with an operation and an event that the next one waits for.
local function streams(n)
  local x = mr.zeros(1)
  mr.synchronize()
  local began = os.clock()
  local list, before = {}, nil
  for i = 1, n do
    local s = mr.stream()
    list[i] = s
    if before then s:wait_event(before) end
    mr.set_stream(s)
    x:add_(1)
    before = s:record_event()
  end
  mr.set_stream(mr.default_stream())
  local submitted = os.clock()
  mr.synchronize()
  for i = 1, n do list[i]:close() end
  local done = os.clock()
  assert(x[1]:item() == n)
  return submitted - began, done - submitted
end

-- n streams with one operation each, a wait for all of them by the default stream.
local function fan_in(n)
  local list = {}
  for i = 1, n do list[i] = mr.stream{nonblocking = false} end
  mr.synchronize()
  local began = os.clock()
  for i = 1, n do mr.spin{ms = 1, stream = list[i]} end
  mr.spin{ms = 1} -- on the legacy default stream: waits for every one of them
  local submitted = os.clock()
  mr.synchronize()
  local done = os.clock()
  for i = 1, n do list[i]:close() end
  return submitted - began, done - submitted
end

mr.machine.settings{launch_queue_depth = 1 << 40}
local rows = { { "what", "n", "submit, ns each", "finish, ns each", "ns each, of n/10's" } }
local function add(title, work, n)
  local per = {}
  work(n // 100)
  for _, count in ipairs{ n // 10, n } do
    local submits, finishes = {}, {}
    for i = 1, 5 do
      collectgarbage()
      submits[i], finishes[i] = work(count)
    end
    local submit, finish = bench.median(submits) / count * 1e9, bench.median(finishes) / count * 1e9
    per[#per + 1] = submit + finish
    rows[#rows + 1] = { title, ("%d"):format(count), ("%.0f"):format(submit), ("%.0f"):format(finish),
      #per == 2 and ("%.2f"):format(per[2] / per[1]) or "" }
  end
end
add("operations pending on one stream", pending, 1000000)
add("streams in a chain of events", streams, 10000)
add("streams that the default stream waits for", fan_in, 10000)
bench.print_table(rows)
