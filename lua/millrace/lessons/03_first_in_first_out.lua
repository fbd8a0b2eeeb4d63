return {
  title = "One stream: who comes first?",
  part = "Part 1: Streams",
  rule = "R1",
  question = {
    program = [[
local s = mr.stream{name = "s"}
local x = mr.zeros(1)
mr.synchronize()
s:run(function() mr.spin{ms = 2} x:fill_(1) end)     -- slow
s:run(function() x:fill_(2) end)                     -- fast
s:run(function() x:mul_(10) end)
s:synchronize()
print(x:item())
]],
    ask = "Nothing waits between lines 4, 5 and 6. What can it print?",
    outcomes = { "20.0" },
    others = { "10.0", "2.0" },
    usual = "10.0, 2.0 or 20.0",
  },
  explanation = [[
A stream is a queue. Its work runs in the order in which it was submitted, and
each piece sees all that the pieces before it wrote. No later piece overtakes a
slow one. CUDA's guide says the same: operations of a stream execute in issue
order.

Between two pieces of one stream's work no wait is needed. An event (part 2)
marks a place in a queue. If `s` waits for its own mark, nothing changes. A
`synchronize` only stops the host.
]],
  exercise = {
    task = [[
Return x after: add 1, multiply by 2, subtract 3, all on `s`. The function is
right already. Remove what it does not need.]],
    start = [[
return function(s, x)
  s:run(function() x:add_(1) end)
  s:wait_event(s:record_event())
  s:run(function() x:mul_(2) end)
  s:synchronize()
  s:run(function() x:sub_(3) end)
  return x
end
]],
    given = function(v) return mr.stream { name = "s" }, mr.full({ 2 }, v, { name = "x" }) end,
    changes = 2,
    answer = function(v) return { (v + 1) * 2 - 3, (v + 1) * 2 - 3 } end,
    streams = { "s" },
  },
  hints = {
    "Read the lines without run: which of them order what is ordered already?",
    "A stream that waits for its own event waits for work that comes first anyway.",
    "The host reads nothing in this function. It need not wait either.",
  },
  take_home = "One stream is a queue: it keeps the order, and needs no wait.",
  right = {
    { "s:wait_event(s:record_event())", "", "s:synchronize()", "" },
    "return function(s, x) return s:run(function() return x:add(1):mul(2):sub(3) end) end",
  },
  wrong = {
    { "wait", "s:wait_event(s:record_event())", "" },
    { "schedule", "s:wait_event(s:record_event())\ns:run(function() x:mul_(2) end)\ns:synchronize()", "x:mul_(2)" },
    { "wrong", "return function(s, x) s:run(function() x:mul_(2):add_(1):sub_(3) end) return x end" },
    { "uses", "return function(s, x) return x:add_(1):mul_(2):sub_(3) end" },
    { "wrong", "return function(s, x) return 1 end" },
    { "nothing", "return function(s, x) s:run(function() x:add_(1):mul_(2):sub_(3) end) end" },
  },
}
