-- R37: the host cannot wait for captured work, and a capture cannot depend on work outside of it. Each row is
-- one call with its error.
-- Guaranteed: CUDA Programming Guide 4.2, prohibited and unhandled operations. Seen on an H200.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R37"

local s, t = mr.stream{name = "s"}, mr.stream{name = "t"}
local x = mr.zeros(4)
local outside = t:record_event()
mr.synchronize()

local captured, other_captured = mr.event{name = "captured"}, mr.event()
local rows = {
  { "synchronize of the stream", "stream-capture-unsupported", 900, function() s:synchronize() end },
  { "query of the stream", "stream-capture-unsupported", 900, function() s:query() end },
  { "synchronize of the device", "stream-capture-unsupported", 900, function() mr.synchronize() end },
  { "synchronize of another stream", "stream-capture-unsupported", 900, function() t:synchronize() end },
  { "a value", "stream-capture-unsupported", 900, function() s:run(function() x:sum():item() end) end },
  { "print", "stream-capture-unsupported", 900, function() s:run(function() return tostring(x:totable()) end) end },
  { "cudaFree", "stream-capture-unsupported", 900, function() mr.zeros(4, {stream = t}):free{sync = true} end },
  { "synchronize of a captured event", "captured-event", 907, function() captured:synchronize() end },
  { "query of a captured event", "captured-event", 907, function() captured:query() end },
  { "an event of outside", "stream-capture-isolation", 905, function() s:wait_event(outside) end },
  { "an event of another capture", "stream-capture-merge", 902, function() s:wait_event(other_captured) end },
}
for _, row in ipairs(rows) do
  local name, code, number, call = table.unpack(row)
  local u = mr.stream()
  mr.graph.begin(u)
  u:record_event(other_captured)
  mr.graph.begin(s)
  s:run(function() x:add_(1) end)
  s:record_event(captured)
  local err = T.raises(code, call)
  T.check(err.message:find(tostring(number), 1, true), name .. ": " .. err.message)
  T.check(err.message:find("The capture began at ", 1, true), name .. ": " .. err.message)
  T.check(err.where:find("r37", 1, true), name .. " names its line")
  T.equal(s:capture_info().status, "invalidated", name .. " invalidates the capture")
  T.raises("stream-capture-invalidated", mr.graph.finish, s)
  pcall(mr.graph.finish, u)
  s:synchronize()
  t:synchronize()
end
T.equal(x:sum():item(), 0.0, "nothing was carried out")

-- Permitted: an event that was never recorded, and copies from pageable memory.
local host = mr.tensor({1, 2, 3, 4}, {device = "cpu", dtype = "f32"})
mr.graph.begin(s)
s:wait_event(mr.event())
s:run(function() x:copy_(host, {non_blocking = true}) end)
local g = mr.graph.finish(s)
g:launch(s)
s:synchronize()
T.equal(x:sum():item(), 10.0, "the copy reads the host's memory when it is launched")
host[1] = 5
g:launch(s)
s:synchronize()
T.equal(x:sum():item(), 14.0, "at each launch")

-- The default stream while a blocking stream captures.
local blocking = mr.stream{nonblocking = false, name = "blocking"}
mr.graph.begin(blocking)
local err = T.raises("stream-capture-implicit", function() x:add_(1) end)
T.check(err.message:find("906", 1, true) and err.message:find("stream `blocking`", 1, true), err.message)
T.raises("stream-capture-invalidated", mr.graph.finish, blocking)
x:add_(1)
T.equal(x:sum():item(), 18.0, "the refused operation was not carried out")

-- An event of a capture that has ended stands for nothing outside.
T.raises("captured-event", function() captured:query() end)
T.raises("stream-capture-isolation", function() t:wait_event(captured) end)
captured:record(t)
captured:synchronize()
