return {
  title = "The queue is full",
  part = "Part 4: The host",
  rule = "R56",
  question = {
    program = [[
local s = mr.stream{name = "s"}
local x = mr.zeros(1)
mr.synchronize()
local before = mr.clock()
mr.spin{ms = 30, stream = s}
for i = 1, 1100 do s:run(x.add_, x, 1) end
local ms = mr.clock() - before
print(ms < 20 and "less than 20 ms" or "more than 20 ms")
]],
    ask = "The calls only fill the queue. How long do they take together?",
    once = true,
    outcomes = { "more than 20 ms" },
    others = { "less than 20 ms" },
    usual = "always less than 20 ms",
  },
  explanation = [[
A call returns at once as long as its stream's queue has room: about a thousand
launches on an H200. The next one waits until the device has taken one out. So
the host waits at a line that seems not to wait, and it cannot give work to
other streams meanwhile.

CUDA's guide says only that the queue is finite, so do not rely on this wait as
an order. It helps to submit less: larger operations instead of many small
ones, or a graph, which one call launches as a whole.
]],
  exercise = {
    task = [[
`s` is busy for 30 ms. Behind that, add 1 to x 1100 times, or do what gives the
same x. The host must not stand still for more than 10 ms. Return x.]],
    start = [[
return function(s, x)
  mr.spin{ms = 30, stream = s}         -- leave this line as it is
  for i = 1, 1100 do s:run(x.add_, x, 1) end
  return x
end
]],
    given = function(v) return mr.stream { name = "s" }, mr.full({ 1 }, v, { name = "x" }) end,
    changes = 2,
    answer = function(v) return { v + 1100 } end,
    host_ms = 10,
    uses = { { name = "spin", stream = "s", ms = 30 }, { name = "add_?", stream = "s", after = 1 } },
  },
  hints = {
    "How many operations fit into the queue of `s`?",
    "Fewer operations that do more, one after the other, give the same x.",
    "11 additions of 100, or one of 1100.",
  },
  take_home = "Queues end. Give the device fewer and larger pieces.",
  right = {
    { "for i = 1, 1100 do s:run(x.add_, x, 1) end", "s:run(x.add_, x, 1100)" },
    { "for i = 1, 1100 do s:run(x.add_, x, 1) end", "for i = 1, 11 do\n  s:run(x.add_, x, 100)\nend" },
  },
  wrong = {
    { "host", "for i = 1, 1100 do s:run(x.add_, x, 1) end",
      "for i = 1, 1100 do\n  s:run(x.add_, x, 1)\n  if i % 500 == 0 then s:synchronize() end\nend" },
    { "uses", "mr.spin{ms = 30, stream = s}", "", "for i = 1, 1100 do s:run(x.add_, x, 1) end",
      "s:run(x.add_, x, 1100)" },
    { "uses", "mr.spin{ms = 30, stream = s}", "mr.spin{ms = 3, stream = s}",
      "for i = 1, 1100 do s:run(x.add_, x, 1) end", "s:run(x.add_, x, 1100)" },
    { "uses", "for i = 1, 1100 do s:run(x.add_, x, 1) end", "x:add_(1100)" },
    { "uses", "mr.spin{ms = 30, stream = s}", "s:run(x.add_, x, 1100)", "for i = 1, 1100 do s:run(x.add_, x, 1) end",
      "mr.spin{ms = 30, stream = s}" },
    { "hazard", "for i = 1, 1100 do s:run(x.add_, x, 1) end", "s:run(x.add_, x, 1000)\nx:add_(100)" },
  },
}
