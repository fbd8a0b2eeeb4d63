return {
  title = "An event: of which work?",
  part = "Part 2: Events",
  rule = "R11",
  question = {
    program = [[
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x = mr.zeros(1)
mr.synchronize()
local ready = a:record_event()
a:run(function() x:fill_(5) end)
b:wait_event(ready)
local y = b:run(function() return x * 1 end)
mr.synchronize()
print(y:item())
]],
    ask = "`b` waits for `ready` before it reads x. What can it print?",
    outcomes = { "0.0", "5.0" },
    usual = "always 5.0",
  },
  explanation = [[
An event is a mark in a queue. a:record_event() sets one, and b:wait_event(e)
makes `b` wait for the work in front of it (cudaEventRecord and
cudaStreamWaitEvent in CUDA). A record captures what its stream has been given
before the call, and nothing later. Here `ready` was recorded in front of the
fill, so it stands for no work, and `b` goes on at once.

The place of a record is a decision: too early, and the reader may run too
soon; too late, and it waits for work that it does not need. The best place is
right behind the last work that the reader needs.
]],
  exercise = {
    task = [[
`b` needs x after the addition, but not the long work behind it. Place the
record so that both streams work at the same time. The host must not wait.
Return y.]],
    start = [[
return function(a, b, x)
  local ready = a:record_event()
  a:run(function() x:add_(1) end)
  a:run(function() mr.op{name = "long", ms = 3} end)
  b:wait_event(ready)
  local y = b:run(function() return x * 10 end)
  b:run(function() mr.op{name = "work of b", ms = 2} end)
  return y
end
]],
    given = function(v)
      return mr.stream { name = "a" }, mr.stream { name = "b" }, mr.full({ 1 }, v, { name = "x" })
    end,
    changes = 3,
    answer = function(v) return { (v + 1) * 10 } end,
    overlap = { "a", "b", 1.5 },
    host_waits = false,
    uses = { { name = "add_?", stream = "a" }, { name = "mul_?", stream = "b" } },
  },
  hints = {
    "What has `a` been given when `ready` is recorded?",
    "The event has to stand for the addition, and not for the long work.",
    "The record belongs right behind one of the lines: move it there.",
  },
  take_home = "A record stands for what was submitted before it: record right behind what is needed.",
  right = {
    { "return function(a, b, x)", "return function(a, b, x)\n  a:run(function() x:add_(1) end)",
      "a:run(function() x:add_(1) end)", "" },
    [[return function(a, b, x)
  a:run(function() x:add_(1) end)
  b:wait_stream(a)
  a:run(function() mr.op{name = "long", ms = 3} end)
  return b:run(function()
    local y = x * 10
    mr.op{name = "work of b", ms = 2}
    return y
  end)
end]],
  },
  wrong = {
    { "serial", "local ready = a:record_event()", "", 'a:run(function() mr.op{name = "long", ms = 3} end)',
      "a:run(function() mr.op{name = \"long\", ms = 3} end)\nlocal ready = a:record_event()" },
    { "host", "local ready = a:record_event()", "", "a:run(function() x:add_(1) end)",
      "a:run(function() x:add_(1) end)\na:synchronize()", "b:wait_event(ready)", "" },
    { "host", "local ready = a:record_event()", "", "a:run(function() x:add_(1) end)",
      "a:run(function() x:add_(1) end)\na:synchronize()", "b:wait_event(ready)", "a:synchronize()",
      'b:run(function() mr.op{name = "work of b", ms = 2} end)',
      "b:run(function() mr.op{name = \"work of b\", ms = 2} end)\nb:synchronize()" },
    { "uses", "return function(a, b, x) return a:run(function() return x:add_(1) * 10 end) end" },
    { "schedule", "local ready = a:record_event()", "",
      "a:run(function() mr.op{name = \"long\", ms = 3} end)\nb:wait_event(ready)", "",
      'b:run(function() mr.op{name = "work of b", ms = 2} end)', "" },
    { "wait", "return function(a, b, x)", "return function(a, b, x)\n  a:run(function() x:add_(1) end)",
      "a:run(function() x:add_(1) end)", "", "local y = b:run(function() return x * 10 end)",
      "local y = b:run(function() return x * 10 end)\nb:wait_event(ready)" },
    { "wrong", "return function(a, b, x) return a:run(function() return x * 10 + 1 end) end" },
    { "uses", [[return function(a, b, x)
  b:run(function() mr.op{name = "work of b", ms = 2} end)
  return a:run(function()
    local y = x:add_(1) * 10
    mr.op{name = "long", ms = 3}
    return y
  end)
end]] },
  },
}
