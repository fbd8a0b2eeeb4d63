return {
  title = "High priority: what does it interrupt?",
  part = "Part 5: Overlap",
  rule = "R8",
  question = {
    program = [[
local low = mr.stream{name = "low", priority = 0}
local high = mr.stream{name = "high", priority = -1}
local all = mr.current_device().sm_count
local before = mr.clock()
mr.op{name = "long", ms = 4, blocks = all, stream = low}
mr.op{name = "short", ms = 1, stream = high}
high:synchronize()
print(math.floor(mr.clock() - before) .. " ms")
]],
    ask = "-1 is the higher priority. After how long is the short one done?",
    once = true,
    outcomes = { "5 ms" },
    others = { "1 ms" },
    usual = "always 1 ms",
  },
  explanation = [[
A priority decides who is next, when blocks of several kernels wait for a free
multiprocessor. A block that runs is not stopped. So the short one waits here
until the long one makes room. If the long kernel had many short blocks, room
would come sooner. Copies take no notice of priorities. (In mr.op `blocks`
counts whole multiprocessors; in CUDA one of them can hold many small blocks.)

And a priority is no order. It may run first, or not: on an empty device both
start at once. A lower number is a higher priority, and numbers out of range
are silently moved into the range, as in CUDA.
]],
  exercise = {
    task = [[
`high` writes x, `low` reads it. The program trusts in the priority. Return y,
right in each order. The host must not wait.]],
    start = [[
return function(x)
  local low = mr.stream{name = "low", priority = 0}
  local high = mr.stream{name = "high", priority = -5}
  high:run(function() x:add_(1) end)
  return low:run(function() return x * 10 end)
end
]],
    given = function(v) return mr.full({ 1 }, v, { name = "x" }) end,
    changes = 1,
    answer = function(v) return { (v + 1) * 10 } end,
    host_waits = false,
    streams = { "high", "low" },
  },
  hints = {
    "Does a priority make a stream wait?",
    "`low` needs what `high` writes. What makes an order of two streams?",
    "A wait in front of the read: one stream waits for the other.",
  },
  take_home = "A priority is a wish about time. An order needs a wait.",
  right = {
    { "high:run(function() x:add_(1) end)", "high:run(function() x:add_(1) end)\nlow:wait_stream(high)" },
    { "high:run(function() x:add_(1) end)\nreturn low:run(function() return x * 10 end)",
      "high:run(x.add_, x, 1)\nlow:wait_event(high:record_event())\nreturn low:run(x.mul, x, 10)" },
  },
  wrong = {
    { "uses", 'local low = mr.stream{name = "low", priority = 0}', "",
      "high:run(function() x:add_(1) end)\nreturn low:run(function() return x * 10 end)",
      "return high:run(function()\n  x:add_(1)\n  return x * 10\nend)" },
    { "schedule", 'local low = mr.stream{name = "low", priority = 0}',
      'local low = mr.stream{name = "low", priority = -5}',
      'local high = mr.stream{name = "high", priority = -5}', 'local high = mr.stream{name = "high", priority = 0}' },
    { "schedule", 'local high = mr.stream{name = "high", priority = -5}',
      'local high = mr.stream{name = "high", priority = -100}' },
    { "schedule", "high:run(function() x:add_(1) end)",
      "high:run(function() x:add_(1) end)\nmr.spin{ms = 1, stream = low}" },
  },
}
