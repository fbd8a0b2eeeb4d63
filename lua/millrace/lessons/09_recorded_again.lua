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
An event holds one record: the latest. Recording it again replaces the earlier
record. So `c` waits for `b` only, and x may be read before it is written.

A wait that is submitted already keeps the record that it found. So there are
two ways to wait for several streams: an event for each of them, or a wait
right behind each record.
]],
  exercise = {
    task = [[
Return x + y, computed on `c`. `a` doubles x, `b` doubles y. The host must not
wait.]],
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
    host_waits = false,
    streams = { "a", "b", "c" },
  },
  hints = {
    "Which record does `done` hold when `c` waits?",
    "`c` has to wait twice.",
    "Use a second event, or let `c` wait before the event is recorded again.",
  },
  take_home = "An event keeps its latest record only: one event for each stream.",
  right = {
    { "local done = mr.event()", "local done, also = mr.event(), mr.event()", "done:record(b)", "also:record(b)",
      "c:wait_event(done)", "c:wait_event(done)\nc:wait_event(also)" },
    { "done:record(a)", "done:record(a)\nc:wait_event(done)" },
    { "local done = mr.event()", "", "done:record(a)", "b:wait_stream(a)", "done:record(b)\nc:wait_event(done)",
      "c:wait_stream(b)" },
  },
  wrong = {
    { "schedule", "local done = mr.event()",
      "local done = mr.event()\nb:run(function() y:mul_(2) end)\ndone:record(b)",
      "b:run(function() y:mul_(2) end)\ndone:record(b)", "" },
    { "schedule", "c:wait_event(done)", "c:wait_event(done)\nc:wait_event(done)" },
    { "wait", "local done = mr.event()", "", "done:record(a)", "", "done:record(b)\nc:wait_event(done)",
      "c:wait_stream(a)\nc:wait_stream(b)\na:wait_stream(c)" },
    { "host", "local done = mr.event()\na:run(function() x:mul_(2) end)\ndone:record(a)",
      "a:run(function() mr.spin{ms = 1} x:mul_(2) end)", "done:record(b)\nc:wait_event(done)",
      "a:synchronize()\nb:synchronize()" },
    { "uses", "return function(a, b, c, x, y) return c:run(function() return x * 2 + y * 2 end) end" },
    { "wrong", "return function(a, b, c, x, y) return c:run(function() return x + y end) end" },
  },
}
