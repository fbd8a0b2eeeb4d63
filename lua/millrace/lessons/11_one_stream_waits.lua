return {
  title = "Who is held up by a wait?",
  part = "Part 2: Events",
  rule = "R15",
  question = {
    program = [[
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local c = mr.stream{name = "c"}
local x = mr.zeros(1)
mr.synchronize()
a:run(function() x:fill_(5) end)
b:wait_stream(a)
local y = c:run(function() return x * 1 end)
mr.synchronize()
print(y:item())
]],
    ask = "A wait for `a` stands before the line that reads x. What can it print?",
    outcomes = { "0.0", "5.0" },
    usual = "always 5.0",
  },
  explanation = [[
b:wait_stream(a) is a command for `b`. It delays the later work of `b`, and
nothing else: not `c`, not `a`, and not the host, since the call returns at
once. The name sounds as if the program waited. It does not.

So each stream that reads needs an order of its own. The order may go through
another stream: if `b` waits for `a`, and `c` later for `b`, then `c` is
ordered after `a`.
]],
  exercise = {
    task = [[
`b` and `c` read what `a` writes. Both must be right, both may run at the same
time, and the host goes on at once. Return both tensors.]],
    start = [[
return function(a, b, c, x)
  a:run(function() x:add_(1) end)
  b:wait_stream(a)
  local y = b:run(function() mr.spin{ms = 2} return x * 2 end)
  local z = c:run(function() mr.spin{ms = 2} return x * 3 end)
  return {y, z}
end
]],
    given = function(v)
      return mr.stream { name = "a" }, mr.stream { name = "b" }, mr.stream { name = "c" },
        mr.full({ 1 }, v, { name = "x" })
    end,
    changes = 4,
    answer = function(v) return { { 2 * (v + 1) }, { 3 * (v + 1) } } end,
    overlap = { "b", "c", 1.5 },
    host_waits = false,
    streams = { "a" },
  },
  hints = {
    "Which stream reads x without having waited?",
    "`c` needs a wait of its own. For which stream?",
    "If `c` waits for the work of `b`, the two no longer run at the same time.",
  },
  take_home = "A stream's wait holds up that stream only. Each reader needs its own.",
  right = {
    { "b:wait_stream(a)", "b:wait_stream(a)\nc:wait_stream(a)" },
    { "b:wait_stream(a)", "local done = a:record_event()\ndone:wait(b)\ndone:wait(c)" },
  },
  wrong = {
    { "uses", "a:run(function() x:add_(1) end)\nb:wait_stream(a)",
      "c:run(function() x:add_(1) end)\nb:wait_stream(c)" },
    { "schedule", "b:wait_stream(a)",
      "b:wait_stream(a)\nlocal z = c:run(function() mr.spin{ms = 2} return x * 3 end)",
      "local z = c:run(function() mr.spin{ms = 2} return x * 3 end)", "" },
    { "serial", "local y = b:run(function() mr.spin{ms = 2} return x * 2 end)",
      "local y = b:run(function() mr.spin{ms = 2} return x * 2 end)\nc:wait_stream(b)" },
    { "host", "a:run(function() x:add_(1) end)\nb:wait_stream(a)",
      "a:run(function() mr.spin{ms = 1} x:add_(1) end)\na:synchronize()" },
    { "wait", "b:wait_stream(a)", "b:wait_stream(a)\nc:wait_stream(a)\nc:wait_stream(b)" },
    { "schedule", "return function(a, b, c, x)",
      "return function(a, b, c, x)\n  b:wait_stream(a)\n  c:wait_stream(a)", "b:wait_stream(a)", "" },
    { "wrong", "return function(a, b, c, x) return {x, x} end" },
    { "nothing", "return function() mr.ones(1) end" },
  },
}
