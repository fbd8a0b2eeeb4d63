return {
  title = "Legacy, blocking, per-thread: who waits for whom?",
  part = "Part 6: Further",
  rule = "R3",
  question = {
    program = [[
local s = mr.stream{name = "s", nonblocking = false}
local x = mr.zeros(1)
mr.synchronize()
s:run(function() x:fill_(1) end)
x:mul_(10)                                  -- the default stream
mr.per_thread_stream():run(function() x:add_(2) end)
mr.synchronize()
print(x:item())
]],
    ask = "Three streams, and no wait at all. What can it print?",
    outcomes = { "12.0" },
    others = { "1.0", "30.0", "3.0" },
    usual = "1.0, 12.0, 3.0 or 30.0",
  },
  explanation = [[
The legacy default stream is a barrier for blocking streams: its work waits for
all that they were given before, and what they get later waits for it. `s` is
blocking here, and the per-thread default stream is blocking, too. So three
streams run in the order of the calls.

CUDA's plain cudaStreamCreate makes blocking streams; PyTorch's and those of
mr.stream() are non-blocking, and take no part. The barrier is convenient and
costs overlap: one small copy on the default stream holds up all blocking
streams of its device. With nvcc --default-stream per-thread, a launch that
names no stream goes to the per-thread one.
]],
  exercise = {
    task = [[
Return x: `s` adds 1, then the default stream multiplies by 10, then `s` adds
2. `s` may be made as you like. The host must not wait.]],
    start = [[
return function(x)
  local s = mr.stream{name = "s"}
  s:run(function() x:add_(1) end)
  x:mul_(10)
  s:run(function() x:add_(2) end)
  return x
end
]],
    given = function(v) return mr.full({ 1 }, v, { name = "x" }) end,
    changes = 1,
    answer = function(v) return { (v + 1) * 10 + 2 } end,
    host_waits = false,
    streams = { "default" },
    uses = { { name = "add_", stream = "default", count = 0, text = "an addition on the default stream" } },
  },
  hints = {
    "Which streams does the default stream wait for?",
    "`s` is non-blocking. It can be made blocking, or it can wait.",
    "mr.stream{nonblocking = false}; or two waits, one each way.",
  },
  take_home = "The legacy default stream orders blocking streams, and only those.",
  right = {
    { 'local s = mr.stream{name = "s"}', 'local s = mr.stream{name = "s", nonblocking = false}' },
    { 'local s = mr.stream{name = "s"}', 'local s, default = mr.stream{name = "s"}, mr.current_stream()',
      "s:run(function() x:add_(1) end)", "s:run(function() x:add_(1) end)\ndefault:wait_stream(s)", "x:mul_(10)",
      "x:mul_(10)\ns:wait_stream(default)" },
    { 'local s = mr.stream{name = "s"}', "local s = mr.per_thread_stream()" },
  },
  wrong = {
    { "uses", "return function(x) return x:add_(1):mul_(10):add_(2) end" },
    { "uses", "s:run(function() x:add_(1) end)\nx:mul_(10)\ns:run(function() x:add_(2) end)",
      "s:run(function() x:add_(1):mul_(10):add_(2) end)" },
    { "schedule", "s:run(function() x:add_(1) end)",
      "s:run(function() x:add_(1) end)\nmr.current_stream():wait_stream(s)" },
    { "schedule", [[return function(x)
  local s = mr.stream{name = "s", nonblocking = false}
  local t = mr.stream{name = "t", nonblocking = false}
  s:run(function() x:add_(1) end)
  t:run(function() x:mul_(10) end)
  s:run(function() x:add_(2) end)
  return x
end]] },
    { "wait", 'local s = mr.stream{name = "s"}', 'local s = mr.stream{name = "s", nonblocking = false}',
      "s:run(function() x:add_(1) end)", "s:run(function() x:add_(1) end)\nmr.current_stream():wait_stream(s)" },
  },
}
