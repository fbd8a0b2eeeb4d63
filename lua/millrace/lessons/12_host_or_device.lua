return {
  title = "Does the host wait, or the device?",
  part = "Part 2: Events",
  rule = "R15",
  question = {
    program = [[
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local one = mr.ones(1)
local here = mr.zeros(1, {device = "cpu", pinned = true})
mr.synchronize()
a:run(function() here:copy_(one, {non_blocking = true}) end)
b:wait_event(a:record_event())
print(here:item())                  -- the host reads
]],
    ask = "The wait stands between the copy and the read. What can it print?",
    outcomes = { "0.0", "1.0" },
    usual = "always 1.0",
  },
  explanation = [[
There are two kinds of waits. Those of a stream (wait_event, wait_stream) are
commands in its queue: the device waits, and the call returns at once. Those of
the host (synchronize of an event, a stream or the device) return when the work
is done.

Choose by who uses the result. If a stream reads it, let the stream wait: the
host can go on and fill the queues. If the host reads it, the host must wait.
]],
  exercise = {
    task = [[
`b` doubles what `a` makes, and the host needs neither, but it waits for 2 ms.
Let the device wait instead. Return y.]],
    start = [[
return function(a, b, x)
  a:run(function() mr.spin{ms = 2} x:add_(1) end)
  local made = a:record_event()
  made:synchronize()
  return b:run(function() return x * 2 end)
end
]],
    given = function(v)
      return mr.stream { name = "a" }, mr.stream { name = "b" }, mr.full({ 1 }, v, { name = "x" })
    end,
    changes = 3,
    answer = function(v) return { 2 * (v + 1) } end,
    host_waits = false,
    streams = { "a", "b" },
  },
  hints = {
    "Who reads x: the host, or a stream?",
    "`made` can be waited for by a stream, too.",
    "A stream has the method wait_event, an event the method wait.",
  },
  take_home = "The one that uses the result waits: a stream, or the host.",
  right = {
    { "made:synchronize()", "b:wait_event(made)" },
    { "local made = a:record_event()\nmade:synchronize()\nreturn b:run(function() return x * 2 end)",
      "return b:run(function()\n  a:record_event():wait()\n  return x * 2\nend)" },
  },
  wrong = {
    { "uses", "return function(a, b, x) return a:run(function() return x:add_(1) * 2 end) end" },
    { "uses", "return function(a, b, x) return b:run(function() return x:add_(1) * 2 end) end" },
    { "schedule", "local made = a:record_event()\nmade:synchronize()", "" },
    { "schedule", "made:synchronize()", "a:wait_event(made)" },
    { "host", "local made = a:record_event()\nmade:synchronize()\nreturn b:run(function() return x * 2 end)",
      "b:wait_stream(a)\nlocal y = b:run(function() return x * 2 end)\nb:synchronize()\nreturn y" },
    { "host", "made:synchronize()", "while not made:query() do end" },
    { "wait", "local made = a:record_event()\nmade:synchronize()",
      "b:wait_stream(a)\nb:wait_event(a:record_event())" },
  },
}
