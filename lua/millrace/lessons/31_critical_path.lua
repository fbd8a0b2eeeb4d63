return {
  title = "What makes the program faster?",
  part = "Part 5: Overlap",
  rule = "R15",
  question = {
    program = [[
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local function time(ms_of_b)
  local before = mr.clock()
  mr.spin{ms = 4, stream = a}
  mr.spin{ms = ms_of_b, stream = b}
  a:wait_stream(b)
  mr.spin{ms = 1, stream = a}
  mr.synchronize()
  return math.floor(mr.clock() - before)
end
print(("before %d ms, after %d ms"):format(time(3), time(1)))
]],
    ask = "You make the work of `b` three times as fast. What do you get?",
    once = true,
    outcomes = { "before 5 ms, after 5 ms" },
    others = { "before 5 ms, after 3 ms" },
    usual = "always before 5 ms, after 3 ms",
  },
  explanation = [[
The critical path is the longest chain of work in which each piece needs the
one before: here the 4 ms of `a`, then the 1 ms. Other work has slack: it may
take longer without delaying the end. `b` has slack in both cases. Only a
change on the path makes the program shorter.

So look at the path first. Make one of its pieces shorter, or take one out: a
piece that nobody behind it needs can run beside the path, on a stream of its
own. trace:critical_path() and the timeline show it.
]],
  exercise = {
    task = [[
y needs x + 1, z needs only x. All three steps stand in one queue now. Take
what is not on the path out of it: both streams must work at the same time for
1.5 ms at least. Return {y, z}.]],
    start = [[
return function(a, b, x)
  local t = a:run(function() mr.spin{ms = 2} return x + 1 end)
  local z = a:run(function() mr.spin{ms = 2} return x * 3 end)
  local y = a:run(function() mr.spin{ms = 2} return t * 2 end)
  return {y, z}
end
]],
    given = function(v)
      return mr.stream { name = "a" }, mr.stream { name = "b" }, mr.full({ 1 }, v, { name = "x" })
    end,
    answer = function(v) return { { (v + 1) * 2 }, { 3 * v } } end,
    overlap = { "a", "b", 1.5 },
    host_waits = false,
    uses = { { name = "mul_?", stream = "b", text = "one of the multiplications on `b`" } },
  },
  hints = {
    "Which step needs the result of which?",
    "z needs nothing that the other two make.",
    "Compute z on `b`. It needs no wait.",
  },
  take_home = "Only the critical path counts: shorten it, and leave the rest.",
  right = {
    { "local z = a:run(function() mr.spin{ms = 2} return x * 3 end)",
      "local z = b:run(function() mr.spin{ms = 2} return x * 3 end)" },
    [[return function(a, b, x)
  local t = a:run(function() mr.spin{ms = 2} return x + 1 end)
  b:wait_stream(a)
  local y = b:run(function() mr.spin{ms = 2} return t * 2 end)
  local z = a:run(function() mr.spin{ms = 2} return x * 3 end)
  return {y, z}
end]],
  },
  wrong = {
    { "schedule", "local y = a:run(function() mr.spin{ms = 2} return t * 2 end)",
      "local y = b:run(function() mr.spin{ms = 2} return t * 2 end)" },
    { "serial", "local y = a:run(function() mr.spin{ms = 2} return t * 2 end)",
      "b:wait_stream(a)\nlocal y = b:run(function() mr.spin{ms = 2} return t * 2 end)" },
    { "serial", "local z = a:run(function() mr.spin{ms = 2} return x * 3 end)",
      "b:wait_stream(a)\nlocal z = b:run(function() return x * 3 end)" },
  },
}
