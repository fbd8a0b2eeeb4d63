return {
  title = "It worked: is it right?",
  part = "Part 1: Streams",
  rule = "R2",
  question = {
    program = [[
local s = mr.stream{name = "s"}
local x = mr.zeros(4)
mr.synchronize()
s:run(function() x:fill_(1) end)
mr.spin{ms = 1}                     -- that is time enough for `s`
print(x:sum():item())               -- on the default stream
]],
    ask = "Each of a thousand runs has printed 4.0. What can it print?",
    outcomes = { "0.0", "4.0" },
    usual = "always 4.0",
  },
  explanation = [[
A delay is no order. With 1 ms between the two, the fill is almost always done
in time: in each test, on each machine that you have. It may still be late: on
a busy GPU, behind other work, or with a larger tensor.

A race: two accesses to the same memory, one of them a write, with no order. A
print on the stream that writes hides such a race, because it waits for that
stream. CUDA_LAUNCH_BLOCKING, which makes each kernel launch wait, hides it,
too. A run that went well proves nothing. Ask what orders the two accesses. If
the answer is "it is fast enough", nothing does.
]],
  exercise = {
    task = [[
`s` doubles x. Return the sum of that, computed on the current stream: the
caller reads it from that stream and waits for no other. The delay has to go.]],
    start = [[
return function(s, x)
  local y
  s:run(function() y = x * 2 end)
  mr.spin{ms = 1}
  return y:sum()
end
]],
    given = function(v) return mr.stream { name = "s" }, mr.full({ 4 }, v, { name = "x" }) end,
    answer = function(v) return 8 * v end,
    join = false,
    host_waits = false,
    streams = { "s" },
    uses = { { name = "sum", stream = "default" },
             { name = "spin", count = 0, text = "a delay" } },
  },
  hints = {
    "On which stream does y:sum() run?",
    "The current stream has to wait for `s`. Leaving s:run does not do that.",
    "mr.current_stream() has the method wait_stream.",
  },
  take_home = "A run that worked shows one order only. A wait, or one queue, makes it right.",
  right = {
    { "mr.spin{ms = 1}", "mr.current_stream():wait_stream(s)" },
    { "mr.spin{ms = 1}", "s:record_event():wait()" },
    { "s:run(function() y = x * 2 end)\nmr.spin{ms = 1}",
      "local doubled = s:run(function() y = x * 2 return s:record_event() end)\ndoubled:wait()" },
  },
  wrong = {
    { "schedule", "mr.spin{ms = 1}", "mr.spin{ms = 100}" },
    { "schedule", "mr.spin{ms = 1}", "s:wait_stream(mr.current_stream())" },
    { "schedule", "s:run(function() y = x * 2 end)\nmr.spin{ms = 1}\nreturn y:sum()",
      "s:run(function() y = (x * 2):sum() end)\ns:query()\nreturn y" },
    { "schedule", "local y\ns:run(function() y = x * 2 end)\nmr.spin{ms = 1}\nreturn y:sum()",
      "mr.set_stream(s)\nreturn (x * 2):sum()" },
    { "hazard", "local y\ns:run(function() y = x * 2 end)\nmr.spin{ms = 1}",
      "local y = x * 2\ns:run(function() y:copy_(x * 2) end)" },
    { "wait", "local y", "local y\ns:wait_stream(mr.current_stream())", "mr.spin{ms = 1}",
      "mr.current_stream():wait_stream(s)" },
    { "host", "mr.spin{ms = 1}", "s:synchronize()" },
    { "uses", "mr.spin{ms = 1}", "mr.spin{ms = 1}\nmr.current_stream():wait_stream(s)" },
    { "uses", "return function(s, x) return (x * 2):sum() end" },
    { "uses", "local y\ns:run(function() y = x * 2 end)\nmr.spin{ms = 1}\nreturn y:sum()",
      "local y = s:run(function() return (x * 2):sum() end)\nmr.current_stream():wait_stream(s)\nreturn y" },
    { "input", "return function(s, x) return x:mul_(2):sum() end" },
    { "error", "return function(s, x) return mr.hazard.mode('off') end" },
  },
}
