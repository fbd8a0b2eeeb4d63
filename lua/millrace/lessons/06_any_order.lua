return {
  title = "Two streams: in which order?",
  part = "Part 1: Streams",
  rule = "R2",
  question = {
    program = [[
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x, y = mr.zeros(1), mr.zeros(1)
mr.synchronize()
a:run(function() x:fill_(1) end)
b:run(function() y:copy_(x) end)
a:run(function() x:fill_(2) end)
mr.synchronize()
print(y:item())
]],
    ask = "What does y get?",
    outcomes = { "0.0", "1.0", "2.0" },
    usual = "always 1.0",
  },
  explanation = [[
Different streams have no order between them, unless something makes one: an
event, the host, or (for blocking streams) the default stream. They may run at
the same time, or one long before the other.

The copy needs two orders. It has to come after the first fill, and before the
second. The second one is easy to forget: it protects the data until they are
read, before the next write. A loop that fills the same buffer again needs this
order, too: each fill waits for the reader before it (lesson 28).
]],
  exercise = {
    task = [[
Return y with x + 1 in it: `b` has to copy x after the addition on `a`, and
before `a` multiplies x. The host must not wait.]],
    start = [[
return function(a, b, x, y)
  a:run(function() x:add_(1) end)
  b:run(function() y:copy_(x) end)
  a:run(function() x:mul_(100) end)
  return y
end
]],
    given = function(v)
      return mr.stream { name = "a" }, mr.stream { name = "b" }, mr.full({ 1 }, v, { name = "x" }),
        mr.zeros(1, { dtype = "i64", name = "y" })
    end,
    changes = { 3, 4 },
    answer = function(v) return { v + 1 } end,
    host_waits = false,
    streams = { "b" },
    uses = { { name = "mul_", stream = "a" } },
  },
  hints = {
    "Two pairs of lines have no order now. Which ones?",
    "`b` has to wait for `a`, and later `a` for `b`.",
    "A wait covers what the other stream has been given before the wait is called.",
  },
  take_home = "Order the reader after the writer, and the next writer after the reader.",
  right = {
    { "a:run(function() x:add_(1) end)", "a:run(function() x:add_(1) end)\nb:wait_stream(a)",
      "b:run(function() y:copy_(x) end)", "b:run(function() y:copy_(x) end)\na:wait_stream(b)" },
    { "a:run(function() x:add_(1) end)", "a:run(function() x:add_(1) end)\nb:wait_event(a:record_event())",
      "b:run(function() y:copy_(x) end)", "b:run(function() y:copy_(x) end)\na:wait_event(b:record_event())" },
    { "a:run(function() x:add_(1) end)", "a:run(function() x:add_(1) end)\nb:wait_stream(a)",
      "b:run(function() y:copy_(x) end)", "b:run(function() y:copy_(x) end)\nx:record_stream(b)\na:wait_stream(b)" },
  },
  wrong = {
    { "uses", "return function(a, b, x, y) a:run(function() x:add_(1) y:copy_(x) x:mul_(100) end) return y end" },
    { "schedule", "a:run(function() x:add_(1) end)", "a:run(function() x:add_(1) end)\nb:wait_stream(a)" },
    { "schedule", "b:run(function() y:copy_(x) end)", "b:run(function() y:copy_(x) end)\na:wait_stream(b)" },
    { "wrong", "a:run(function() x:add_(1) end)",
      "a:run(function() x:add_(1) end)\na:run(function() x:mul_(100) end)\nb:wait_stream(a)",
      "a:run(function() x:mul_(100) end)", "" },
    { "wait", "a:run(function() x:add_(1) end)", "a:run(function() x:add_(1) end)\nb:wait_stream(a)",
      "b:run(function() y:copy_(x) end)", "b:run(function() y:copy_(x) end)\na:wait_stream(b)",
      "a:run(function() x:mul_(100) end)", "a:run(function() x:mul_(100) end)\nb:wait_stream(a)" },
    { "uses", "a:run(function() x:add_(1) end)", "a:run(function() x:add_(1) end)\nb:wait_stream(a)",
      "a:run(function() x:mul_(100) end)", "" },
    { "host", "a:run(function() x:add_(1) end)", "a:run(function() x:add_(1) end)\nwhile not a:query() do end",
      "b:run(function() y:copy_(x) end)", "b:run(function() y:copy_(x) end)\nmr.run(function() b:await() end)" },
    { "host", "a:run(function() x:add_(1) end)", "a:run(function() mr.spin{ms = 1} x:add_(1) end)\na:synchronize()",
      "b:run(function() y:copy_(x) end)", "b:run(function() y:copy_(x) end)\nb:synchronize()" },
  },
}
