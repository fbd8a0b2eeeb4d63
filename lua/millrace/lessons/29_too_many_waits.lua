return {
  title = "A wait too many: what does it cost?",
  part = "Part 5: Overlap",
  rule = "R15",
  question = {
    program = [[
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local function time(is_careful)
  local before = mr.clock()
  mr.spin{ms = 3, stream = a}
  mr.spin{ms = 1, stream = b}
  if is_careful then b:wait_stream(a) end       -- protects nothing
  mr.spin{ms = 2, stream = b}
  if is_careful then b:wait_stream(b) end       -- nor does this one
  mr.synchronize()
  return math.floor(mr.clock() - before)
end
print(("%d ms, with both waits %d ms"):format(time(false), time(true)))
]],
    ask = "No data goes from `a` to `b`. What do the waits cost?",
    once = true,
    outcomes = { "3 ms, with both waits 5 ms" },
    others = { "3 ms, with both waits 3 ms" },
    usual = "always 3 ms, with both waits 3 ms",
  },
  explanation = [[
A wait between two streams takes almost no time of its own. Its cost is the
work that could have run meanwhile: `b` has 2 ms of work, and stands still
until `a` is done. A wait for work that is already done costs nothing: `b`
waits for itself, or another wait already covers that stream.

So count the work that waits delay, not the waits. Remove a wait that orders
nothing new in any case: readers of your program would look for its reason.
mr.waits(f) names for each wait what it protects, and what it costs.
]],
  exercise = {
    task = [[
The function is right, and slow: after each step both streams wait for each
other. Keep only what is needed. Both must work at the same time for 3 ms at
least. Return z, computed on `b`.]],
    start = [[
return function(a, b, x, y)
  a:run(function() mr.spin{ms = 2} x:add_(1) end)
  b:run(function() mr.spin{ms = 1} y:add_(2) end)
  mr.barrier{a, b}               -- `a` waits for `b`, and `b` for `a`
  a:run(function() mr.spin{ms = 2} x:mul_(2) end)
  b:run(function() mr.spin{ms = 3} y:mul_(3) end)
  mr.barrier{a, b}
  return b:run(function() return x + y end)
end
]],
    given = function(v)
      return mr.stream { name = "a" }, mr.stream { name = "b" }, mr.full({ 1 }, v, { name = "x" }),
        mr.full({ 1 }, v, { name = "y" })
    end,
    changes = { 3, 4 },
    answer = function(v) return { (v + 1) * 2 + (v + 2) * 3 } end,
    overlap = { "a", "b", 3 },
    host_waits = false,
    uses = { { name = "add_?", stream = "b", count = 2, text = "two additions on `b`: of 2 to y, and of x and y" } },
  },
  hints = {
    "Which line reads something that the other stream has written?",
    "Only the last line does. It runs on `b`.",
    "One wait is enough: `b` for `a`, in front of the last line.",
  },
  take_home = "The cost of a wait is the work that it delays. Keep waits that protect something.",
  right = {
    { "b:run(function() mr.spin{ms = 1} y:add_(2) end)\nmr.barrier{a, b}",
      "b:run(function() mr.spin{ms = 1} y:add_(2) end)",
      "b:run(function() mr.spin{ms = 3} y:mul_(3) end)\nmr.barrier{a, b}",
      "b:run(function() mr.spin{ms = 3} y:mul_(3) end)\nb:wait_stream(a)" },
    [[return function(a, b, x, y)
  a:run(function() mr.spin{ms = 4} x:add_(1):mul_(2) end)
  local done = a:record_event()
  return b:run(function()
    mr.spin{ms = 4}
    y:add_(2):mul_(3)
    done:wait()
    return x + y
  end)
end]],
  },
  wrong = {
    { "wait", "b:run(function() mr.spin{ms = 1} y:add_(2) end)\nmr.barrier{a, b}",
      "b:run(function() mr.spin{ms = 1} y:add_(2) end)" },
    { "schedule", "b:run(function() mr.spin{ms = 3} y:mul_(3) end)\nmr.barrier{a, b}",
      "b:run(function() mr.spin{ms = 3} y:mul_(3) end)" },
    { "uses", [[return function(a, b, x, y)
  a:run(function() mr.spin{ms = 4} x:add_(1):mul_(2) end)
  b:run(function() mr.spin{ms = 4} y:add_(2):mul_(3) end)
  a:wait_stream(b)
  return a:run(function() return x + y end)
end]] },
    { "serial", [[return function(a, b, x, y)
  a:run(function() mr.spin{ms = 4} x:add_(1):mul_(2) end)
  b:wait_stream(a)
  b:run(function() mr.spin{ms = 4} y:add_(2):mul_(3) end)
  return b:run(function() return x + y end)
end]] },
    { "wait", [[return function(a, b, x, y)
  a:run(function() mr.spin{ms = 4} x:add_(1):mul_(2) end)
  b:run(function() mr.spin{ms = 4} y:add_(2):mul_(3) end)
  a:wait_stream(b)
  b:wait_stream(a)
  return b:run(function() return x + y end)
end]] },
  },
}
