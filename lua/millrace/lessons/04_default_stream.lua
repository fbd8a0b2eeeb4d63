return {
  title = "The default stream and yours",
  part = "Part 1: Streams",
  rule = "R4",
  question = {
    program = [[
local s = mr.stream{name = "s"}
local x = mr.full({1}, 5)              -- on the default stream
s:run(function() x:mul_(2) end)        -- on `s`
mr.synchronize()
print(x:item())
]],
    ask = "x is made first, then doubled. What can it print?",
    outcomes = { "10", "5" },
    usual = "always 10",
  },
  explanation = [[
Work that names no stream goes to the current stream: at the start that is the
default stream. `s` is another one. Entering it with s:run changes where work
goes. It waits for nothing. If the doubling runs first, mr.full writes 5 over
its result.

s:wait_stream(t): later work of `s` waits for all work given to `t` so far.
Call it before s:run: inside it, the current stream is `s`.

Some CUDA streams, the blocking ones, keep an order with the default stream
(lesson 32). Streams of mr.stream() are non-blocking, like PyTorch's.
`non_blocking` of a copy is something else.
]],
  exercise = {
    task = [[
Return y: x plus 1, made on the default stream, then doubled on `s`. Doubling
may come too early now. The host must not wait.]],
    start = [[
return function(s, x)
  mr.spin{ms = 1}
  local y = x + 1
  s:run(function() y:mul_(2) end)
  return y
end
]],
    given = function(v) return mr.stream { name = "s" }, mr.full({ 1 }, v, { name = "x" }) end,
    answer = function(v) return { 2 * (v + 1) } end,
    host_waits = false,
    streams = { "default", "s" },
  },
  hints = {
    "Which stream makes y, and which stream changes it?",
    "`s` has to wait for what the current stream has been given so far.",
    "mr.current_stream() returns the stream that work goes to now.",
  },
  take_home = "Entering a stream waits for nothing: your stream must wait for its inputs.",
  right = {
    { "local y = x + 1", "local y = x + 1\ns:wait_stream(mr.current_stream())" },
    { "local y = x + 1", "local y = x + 1\nlocal made = mr.event()\nmade:record()\nmade:wait(s)" },
    { "local y = x + 1", "local y = x + 1\ns:wait_stream(mr.current_stream())",
      "s:run(function() y:mul_(2) end)", "s:run(function() y:mul_(2) end)\ny:record_stream(s)" },
  },
  wrong = {
    { "uses", "return function(s, x) return s:run(function() return (x + 1) * 2 end) end" },
    { "schedule", "mr.spin{ms = 1}", "s:wait_stream(mr.current_stream())" },
    { "host", "local y = x + 1", "local y = x + 1\nmr.synchronize()" },
    { "wait", "mr.spin{ms = 1}", "", "local y = x + 1", "local y = x + 1\ns:wait_stream(mr.current_stream())",
      "s:run(function() y:mul_(2) end)", "s:run(function() y:mul_(2) end)\nmr.current_stream():wait_stream(s)" },
    { "input", "mr.spin{ms = 1}\nlocal y = x + 1\ns:run(function() y:mul_(2) end)\nreturn y",
      "x:add_(1)\ns:wait_stream(mr.current_stream())\ns:run(function() x:mul_(2) end)\nreturn x" },
    { "error", "return function(s, x) mr.launch_blocking(true) return (x + 1) * 2 end" },
  },
}
