return {
  title = "In place, or a new tensor?",
  part = "Part 3: Memory",
  rule = "R2",
  question = {
    program = [[
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x = mr.ones(1)
mr.synchronize()
local y = a:run(function() return x + 1 end)     -- reads x
b:run(function() x:mul_(10) end)                 -- changes x
mr.synchronize()
print(y:item())
]],
    ask = "y is computed first. What can it print?",
    outcomes = { "11.0", "2.0" },
    usual = "always 2.0",
  },
  explanation = [[
A name that ends with _ changes its tensor in place. x:mul_(10) writes into the
memory that x + 1 reads, and nothing orders the two streams. If it comes first,
y is made of the new x. No data flows from `a` to `b`, and still `b` has to
wait: a writer must come after the readers.

x * 10 instead makes a new tensor. It only reads x, and two readers need no
order. So the in-place form saves memory, and can cost a wait.
]],
  exercise = {
    task = [[
Return {y, z}: y is x + 1 on `a`, and z is x times 10 on `b`. Both may run at
the same time, and x stays as it is.]],
    start = [[
return function(a, b, x)
  local y = a:run(function() mr.spin{ms = 2} return x + 1 end)
  local z = b:run(function() mr.spin{ms = 2} return x:mul_(10) end)
  return {y, z}
end
]],
    given = function(v)
      return mr.stream { name = "a" }, mr.stream { name = "b" }, mr.full({ 1 }, v, { name = "x" })
    end,
    answer = function(v) return { { v + 1 }, { 10 * v } } end,
    overlap = { "a", "b", 1.5 },
    host_waits = false,
    uses = { { name = "add_?", stream = "a" }, { name = "mul_?", stream = "b" } },
  },
  hints = {
    "Which line writes into memory that another one reads?",
    "A wait would give the right y, but the two would no longer overlap, and x would change.",
    "Leave out one character, or multiply a copy.",
  },
  take_home = "An in-place operation is a write: it has to wait for every reader.",
  right = {
    { "local z = b:run(function() mr.spin{ms = 2} return x:mul_(10) end)",
      "local z = b:run(function() mr.spin{ms = 2} return x * 10 end)" },
    [[return function(a, b, x)
  local y = a:run(function() mr.spin{ms = 2} return x:clone():add_(1) end)
  local z = b:run(function() mr.spin{ms = 2} return x:clone():mul_(10) end)
  return {y, z}
end]],
  },
  wrong = {
    { "input", "local y = a:run(function() mr.spin{ms = 2} return x + 1 end)",
      "local y = a:run(function() mr.spin{ms = 2} return x + 1 end)\nb:wait_stream(a)" },
    { "serial", "local z = b:run(function() mr.spin{ms = 2} return x:mul_(10) end)",
      "b:wait_stream(a)\nlocal z = b:run(function() mr.spin{ms = 2} return x * 10 end)" },
    { "host", "local z = b:run(function() mr.spin{ms = 2} return x:mul_(10) end)",
      "a:synchronize()\nlocal z = b:run(function() mr.spin{ms = 2} return x * 10 end)" },
    { "wait", "local z = b:run(function() mr.spin{ms = 2} return x:mul_(10) end)",
      "local z = b:run(function() mr.spin{ms = 2} return x * 10 end)\nb:wait_stream(a)" },
    { "schedule", [[return function(a, b, x)
  local y = x:clone()
  a:run(function() y:add_(1) end)
  return {y, b:run(function() return x * 10 end)}
end]] },
  },
}
