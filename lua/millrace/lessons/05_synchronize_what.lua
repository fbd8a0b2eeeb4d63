return {
  title = "synchronize: of what?",
  part = "Part 1: Streams",
  rule = "R10",
  question = {
    program = [[
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local one = mr.ones(1)
local here = mr.zeros(1, {device = "cpu", pinned = true})
mr.synchronize()
b:run(function() here:copy_(one, {non_blocking = true}) end)
a:synchronize()
print(here:item())
]],
    ask = "The copy is submitted before the host waits. What can it print?",
    outcomes = { "0.0", "1.0" },
    usual = "always 1.0",
  },
  explanation = [[
s:synchronize() waits for the work that `s` has been given so far, and for no
other stream. Here `a` has nothing to do, so the host goes on at once, while
the copy on `b` may not have begun.

  s:synchronize()    all work of one stream so far
  e:synchronize()    the work in front of an event (part 2)
  mr.synchronize()   all streams of the current device

Wait for the smallest that gives what you need. More is safe, but slow.
]],
  exercise = {
    task = [[
`a` and `b` copy into pinned memory. Return the sum of both numbers, read on
the host. `c` is busy for 5 ms with something else: do not wait for it.]],
    start = [[
return function(a, b, c, x, y)
  mr.spin{ms = 5, stream = c}          -- leave this line as it is
  local p = mr.zeros(1, {device = "cpu", pinned = true, name = "p"})
  local q = mr.zeros(1, {device = "cpu", pinned = true, name = "q"})
  a:run(function() p:copy_(x, {non_blocking = true}) end)
  b:run(function() q:copy_(y, {non_blocking = true}) end)
  a:synchronize()
  return p:item() + q:item()
end
]],
    given = function(v)
      return mr.stream { name = "a" }, mr.stream { name = "b" }, mr.stream { name = "c" },
        mr.full({ 1 }, v, { dtype = "f32", name = "x" }), mr.full({ 1 }, 10 * v, { dtype = "f32", name = "y" })
    end,
    answer = function(v) return 11 * v end,
    host_ms = 3,
    streams = { "a", "b" },
    uses = { { name = "spin", stream = "c", ms = 5 } },
  },
  hints = {
    "Which streams write what the host reads?",
    "The host has to wait for two streams.",
    "The wait for `a` is right. Another one like it is missing.",
  },
  take_home = "A wait covers what it names: one stream, one event, or one device.",
  right = {
    { "a:synchronize()", "a:synchronize()\nb:synchronize()" },
    { "a:synchronize()",
      "local done = a:record_event()\nlocal also = b:record_event()\ndone:synchronize()\nalso:synchronize()" },
  },
  wrong = {
    { "uses", "b:run(function() q:copy_(y, {non_blocking = true}) end)",
      "a:run(function() q:copy_(y, {non_blocking = true}) end)" },
    { "schedule", "a:synchronize()", "b:synchronize()" },
    { "schedule", "b:run(function() q:copy_(y, {non_blocking = true}) end)",
      "b:run(function() q:copy_(y, {non_blocking = true}) end)\nb:wait_stream(a)" },
    { "host", "a:synchronize()", "mr.synchronize()" },
    { "uses", "mr.spin{ms = 5, stream = c}", "mr.spin{ms = 0.1, stream = c}", "a:synchronize()", "mr.synchronize()" },
    { "wait", "a:synchronize()", "a:synchronize()\nb:synchronize()\na:synchronize()" },
    { "input", [[return function(a, b, c, x, y)
  x:add_(y)
  return x:item()
end]] },
  },
}
