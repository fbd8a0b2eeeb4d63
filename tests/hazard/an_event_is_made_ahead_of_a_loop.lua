-- The first access is waited for one round later, or out of the scope of a local that is made behind it: the event is
-- declared in front of both. A race about several buffers in turn gets an event for each, so that the wait holds up
-- nothing else. Each case ends with what mr.waits says of the script with the proposed lines.
local pair = require "hazard_pair"

local HEAD = [[
local mr = require "millrace"
local copy, compute = mr.stream{name = "copy"}, mr.stream{name = "compute"}
local buffer = { mr.zeros(64), mr.zeros(64) }
local x, y = mr.zeros(64), mr.zeros(64)
mr.synchronize()
]]

local LOAD = 'mr.op{name = "load", writes = {%s}, stream = copy, ms = 0.2}'
local USE = 'mr.op{name = "use", reads = {%s}, stream = compute, ms = 0.3}'

local function case(name, body, expected)
  local text = HEAD .. body:gsub("LOAD(%b())", function(t) return LOAD:format(t:sub(2, -2)) end)
    :gsub("USE(%b())", function(t) return USE:format(t:sub(2, -2)) end)
  return { name, "-- expect: " .. expected .. "\n" .. text }
end

-- The fix that is written into the scripts orders everything: it is there to show that the script has no other hazard.
pair.check_all {
  case("an index of the loop", [[
-- waits: needed
for i = 1, 6 do
  local k = (i - 1) % 2 + 1
  -- fix: mr.synchronize()
  LOAD(buffer[k])
  compute:wait_stream(copy)
  USE(buffer[k])
end]], "kind=write-after-read place=before:8,before:11,after:13 "
    .. "fix=local_done_=_{}_if_done[k]_then_copy:wait_event(done[k])_end_done[k]_=_compute:record_event()"),

  case("an index that is computed where it is used", [[
-- waits: needed
for i = 1, 6 do
  -- fix: mr.synchronize()
  LOAD(buffer[(i - 1) % 2 + 1])
  compute:wait_stream(copy)
  USE(buffer[(i-1) % 2 + 1])
end]], "kind=write-after-read place=before:8,before:10,after:12 fix=local_done_=_{}_"
    .. "if_done[(i_-_1)_%_2_+_1]_then_copy:wait_event(done[(i_-_1)_%_2_+_1])_end_"
    .. "done[(i_-_1)_%_2_+_1]_=_compute:record_event()"),

  case("a local that stands for the entry", [[
-- waits: needed
for i = 1, 6 do
  local k = (i - 1) % 2 + 1
  local b = buffer[k]
  -- fix: mr.synchronize()
  LOAD(b)
  compute:wait_stream(copy)
  USE(b)
end]], "kind=write-after-read place=before:8,before:12,after:14 "
    .. "fix=local_done_=_{}_if_done[k]_then_copy:wait_event(done[k])_end_done[k]_=_compute:record_event()"),

  case("functions that run at once", [[
-- waits: needed
for i = 1, 6 do
  local k = (i - 1) % 2 + 1
  -- fix: mr.synchronize()
  mr.with(copy, function()
    mr.op{name = "load", writes = {buffer[k]}, ms = 0.2}
  end)
  compute:wait_stream(copy)
  mr.with(compute, function()
    mr.op{name = "use", reads = {buffer[k]}, ms = 0.3}
  end)
end]], "kind=write-after-read place=before:8,before:12,after:16 "
    .. "fix=local_done_=_{}_if_done[k]_then_copy:wait_event(done[k])_end_done[k]_=_compute:record_event()"),

  case("backward reads the buffer of its round without naming it", [[
-- waits: needed
local w = mr.ones(64):requires_grad_()
mr.synchronize()
for i = 1, 6 do
  local b = buffer[i % 2 + 1]
  -- fix: mr.synchronize()
  LOAD(b)
  compute:wait_stream(copy)
  local loss = mr.with(compute, function() return (w * b):sum() end)
  loss:backward()
end]], "kind=write-after-read "
    .. "fix=local_done_=_{}_if_done[i_%_2_+_1]_then_copy:wait_event(done[i_%_2_+_1])_end_"
    .. "done[i_%_2_+_1]_=_compute:record_event()"),

  case("work of the round before: one event", [[
local w = mr.ones(64):requires_grad_()
local before
mr.synchronize()
for i = 1, 6 do
  local b = buffer[i % 2 + 1]
  -- fix: mr.synchronize()
  LOAD(b)
  compute:wait_stream(copy)
  if before then before:backward() end
  before = mr.with(compute, function() return (w * b):sum() end)
end]], "kind=write-after-read fix=local_done_=_mr.event()_copy:wait_event(done)_done:record(compute)"),

  case("an event that each round records again holds up all buffers", [[
-- waits: needed
local used = mr.event()
for i = 1, 6 do
  local b = buffer[i % 2 + 1]
  -- fix: mr.synchronize()
  LOAD(b)
  compute:wait_stream(copy)
  USE(b)
  used:record(compute)
end]], "kind=write-after-read "
    .. "fix=local_done_=_{}_if_done[i_%_2_+_1]_then_copy:wait_event(done[i_%_2_+_1])_end_"
    .. "done[i_%_2_+_1]_=_compute:record_event()"),

  case("an event of one buffer is enough", [[
-- waits: needed
local used = mr.event()
for i = 1, 6 do
  -- fix: mr.synchronize()
  LOAD(x)
  compute:wait_stream(copy)
  USE(x)
  used:record(compute)
end]], "kind=write-after-read fix=copy:wait_event(used)"),

  case("buffers of the function", [[
-- waits: needed
local function run()
  local pool = { mr.zeros(64), mr.zeros(64) }
  mr.synchronize()
  for i = 1, 6 do
    local k = (i - 1) % 2 + 1
    -- fix: mr.synchronize()
    LOAD(pool[k])
    compute:wait_stream(copy)
    USE(pool[k])
  end
end
run()
mr.synchronize()
run()
mr.synchronize()]], "kind=write-after-read place=before:11,before:14,after:16 "
    .. "fix=local_done_=_{}_if_done[k]_then_copy:wait_event(done[k])_end_done[k]_=_compute:record_event()"),

  case("buffers of the caller, which may call again: the table of events would be a new one", [[
-- waits: cheaper
local function run(pool)
  for i = 1, 6 do
    local k = (i - 1) % 2 + 1
    -- fix: mr.synchronize()
    LOAD(pool[k])
    compute:wait_stream(copy)
    USE(pool[k])
  end
end
run(buffer)
run(buffer)]], "kind=write-after-read fix=copy:wait_stream(compute)"),

  case("a loop in a loop: the buffers are used on in the next round of the outer one", [[
-- waits: needed
for _ = 1, 3 do
  for k = 1, 2 do
    -- fix: mr.synchronize()
    LOAD(buffer[k])
    compute:wait_stream(copy)
    USE(buffer[k])
  end
end]], "kind=write-after-read place=before:8,before:11,after:13 "
    .. "fix=local_done_=_{}_if_done[k]_then_copy:wait_event(done[k])_end_done[k]_=_compute:record_event()"),

  case("the index of the load is another than that of the use", [[
for i = 1, 6 do
  local k, other = (i - 1) % 2 + 1, i % 2 + 1
  -- fix: mr.synchronize()
  LOAD(buffer[k])
  copy:record_event():synchronize()
  USE(buffer[other])
end]], "kind=write-after-read fix=copy:wait_stream(compute)"),

  case("a statement that uses two entries: nothing tells which of the two events it should wait for", [[
for i = 1, 6 do
  local k = (i - 1) % 2 + 1
  -- fix: mr.synchronize()
  mr.op{name = "load", reads = {buffer[3 - k]}, writes = {buffer[k]}, stream = copy}
  compute:wait_stream(copy)
  USE(buffer[k])
end]], "kind=write-after-read fix=copy:wait_stream(compute)"),

  case("the stream of the use changes from round to round, and only its own line says how", [[
local s = { mr.stream(), mr.stream(), mr.stream() }
for i = 1, 3 do
  -- fix: mr.synchronize()
  LOAD(x)
  s[i]:wait_stream(copy)
  mr.op{name = "use", reads = {x}, stream = s[i]}
  mr.op{name = "more", stream = s[i], ms = 0.2}
end]], "kind=write-after-read first=12 fix=copy:wait_stream(s[1])_copy:wait_stream(s[2])"),

  case("an index that changes between the two", [[
-- waits: needed
local k = 1
while k < 7 do
  -- fix: mr.synchronize()
  LOAD(buffer[k % 2 + 1])
  compute:wait_stream(copy)
  USE(buffer[k % 2 + 1])
  k = k + 1
end]], "kind=write-after-read place=before:9,before:11,after:13 fix=local_done_=_{}_"
    .. "if_done[k_%_2_+_1]_then_copy:wait_event(done[k_%_2_+_1])_end_done[k_%_2_+_1]_=_compute:record_event()"),

  case("one tensor, and the stream goes on", [[
-- waits: needed
for _ = 1, 4 do
  -- fix: mr.synchronize()
  LOAD(x)
  compute:wait_stream(copy)
  USE(x)
  USE(y)
end]], "kind=write-after-read place=before:8,before:10,after:12 "
    .. "fix=local_done_=_mr.event()_copy:wait_event(done)_done:record(compute)"),

  case("one tensor, and the stream does nothing more", [[
-- waits: needed
for _ = 1, 4 do
  -- fix: mr.synchronize()
  LOAD(x)
  compute:wait_stream(copy)
  USE(x)
end]], "kind=write-after-read fix=copy:wait_stream(compute)"),

  case("out of the scope of a block", [[
-- waits: needed
do
  LOAD(x)
  LOAD(y)
end
-- fix: mr.synchronize()
USE(x)]], "kind=read-after-write place=before:8,after:9,before:13 "
    .. "fix=local_done_=_mr.event()_done:record(copy)_compute:wait_event(done)"),

  case("the host reads what a round before has copied", [[
local host = { mr.zeros({64}, {device = "cpu", pinned = true}), mr.zeros({64}, {device = "cpu", pinned = true}) }
for i = 1, 6 do
  local k = (i - 1) % 2 + 1
  -- fix: mr.synchronize()
  host[k]:fill_(i)
  mr.with(copy, function() buffer[k]:copy_(host[k], {non_blocking = true}) end)
end]], "kind=write-after-read place=before:8,before:11,after:12 "
    .. "fix=local_done_=_{}_if_done[k]_then_done[k]:synchronize()_end_done[k]_=_copy:record_event()"),
}
