return {
  title = "One event, recorded twice",
  part = "Part 2: Events",
  rule = "R12",
  question = {
    program = [[
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local c = mr.stream{name = "c"}
local x, y = mr.zeros(1), mr.zeros(1)
mr.synchronize()
local done = mr.event()
a:run(function() x:fill_(1) end)
done:record(a)
b:run(function() y:fill_(2) end)
done:record(b)
c:wait_event(done)
local z = c:run(function() return x + y end)
mr.synchronize()
print(z:item())
]],
    ask = "`done` is recorded on both streams. What can it print?",
    outcomes = { "2.0", "3.0" },
    usual = "always 3.0",
  },
  explanation = [[
An event holds one record: the latest. Recording it again replaces the record
before. So `c` waits for `b` only, and x may be read before it is written.

A wait that is submitted already keeps the record that it found. So there are
two ways to wait for several streams: an event for each of them, or a wait
right behind each record.
]],
  exercise = {
    task = "Return x + y, computed on `c`. `a` doubles x, `b` doubles y. No host waits.",
    start = [[
return function(a, b, c, x, y)
  local done = mr.event()
  a:run(function() x:mul_(2) end)
  done:record(a)
  b:run(function() y:mul_(2) end)
  done:record(b)
  c:wait_event(done)
  return c:run(function() return x + y end)
end
]],
    given = function(v)
      return mr.stream { name = "a" }, mr.stream { name = "b" }, mr.stream { name = "c" },
        mr.full({ 1 }, v, { name = "x" }), mr.full({ 1 }, 7 * v, { name = "y" })
    end,
    changes = { 4, 5 },
    answer = function(v) return { 16 * v } end,
    host_ms = 0.5,
  },
  hints = {
    "Which record does `done` hold when `c` waits?",
    "`c` has to wait twice.",
    "Use a second event, or let `c` wait before the event is recorded again.",
  },
  take_home = "An event keeps its latest record only: one event for each stream.",
  right = {
    [[return function(a, b, c, x, y)
  local done, also = mr.event(), mr.event()
  a:run(function() x:mul_(2) end)
  done:record(a)
  b:run(function() y:mul_(2) end)
  also:record(b)
  c:wait_event(done)
  c:wait_event(also)
  return c:run(function() return x + y end)
end]],
    [[return function(a, b, c, x, y)
  local done = mr.event()
  a:run(function() x:mul_(2) end)
  done:record(a)
  c:wait_event(done)
  b:run(function() y:mul_(2) end)
  done:record(b)
  c:wait_event(done)
  return c:run(function() return x + y end)
end]],
    [[return function(a, b, c, x, y)
  a:run(function() x:mul_(2) end)
  b:wait_stream(a)
  b:run(function() y:mul_(2) end)
  c:wait_stream(b)
  return c:run(function() return x + y end)
end]],
  },
  wrong = {
    { "schedule", [[return function(a, b, c, x, y)
  local done = mr.event()
  b:run(function() y:mul_(2) end)
  done:record(b)
  a:run(function() x:mul_(2) end)
  done:record(a)
  c:wait_event(done)
  return c:run(function() return x + y end)
end]] },
    { "schedule", [[return function(a, b, c, x, y)
  local done = mr.event()
  a:run(function() x:mul_(2) end)
  done:record(a)
  b:run(function() y:mul_(2) end)
  done:record(b)
  c:wait_event(done)
  c:wait_event(done)
  return c:run(function() return x + y end)
end]] },
    { "wait", [[return function(a, b, c, x, y)
  a:run(function() x:mul_(2) end)
  b:run(function() y:mul_(2) end)
  c:wait_stream(a)
  c:wait_stream(b)
  a:wait_stream(c)
  return c:run(function() return x + y end)
end]] },
    { "host", [[return function(a, b, c, x, y)
  a:run(function() mr.spin{ms = 1} x:mul_(2) end)
  b:run(function() y:mul_(2) end)
  a:synchronize()
  b:synchronize()
  return c:run(function() return x + y end)
end]] },
    { "wrong", "return function(a, b, c, x, y) return c:run(function() return x + y end) end" },
  },
}
