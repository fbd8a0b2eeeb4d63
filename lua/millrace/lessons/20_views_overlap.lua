return {
  title = "Two names for the same memory",
  part = "Part 3: Memory",
  rule = "R2",
  question = {
    program = [[
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x = mr.zeros(6)
mr.synchronize()
local left = x:narrow(1, 1, 4)       -- elements 1 to 4
local right = x:narrow(1, 3, 4)      -- elements 3 to 6
a:run(function() left:fill_(1) end)
b:run(function() right:fill_(2) end)
mr.synchronize()
print(x:sum():item())
]],
    ask = "`left` and `right` are two tensors. What can it print?",
    outcomes = { "10.0", "8.0" },
    usual = "always 10.0",
  },
  explanation = [[
narrow, view, transpose and t[i] copy nothing: they return a view, a second
name for a part of the same memory. `left` and `right` share the elements 3
and 4, so the two fills race for them.

Bytes count, not variables. Views that do not overlap need no order, although
they belong to one tensor: so two streams can each work on a half. Views that
overlap by one element do.
]],
  exercise = {
    task = [[
x has 6 elements. `a` adds 1 to the first half, `b` adds 2 to the second half,
both at the same time. Return x.]],
    start = [[
return function(a, b, x)
  local left, right = x:narrow(1, 1, 4), x:narrow(1, 3, 4)
  a:run(function() left:add_(1) mr.op{name = "work of a", ms = 2} end)
  b:run(function() right:add_(2) mr.op{name = "work of b", ms = 2} end)
  return x
end
]],
    given = function(v)
      return mr.stream { name = "a" }, mr.stream { name = "b" }, mr.full({ 6 }, v, { name = "x" })
    end,
    changes = 3,
    answer = function(v) return { v + 1, v + 1, v + 1, v + 2, v + 2, v + 2 } end,
    overlap = { "a", "b", 1.5 },
    uses = { { name = "add_", stream = "a" }, { name = "add_", stream = "b" } },
  },
  hints = {
    "Which elements do both views have?",
    "narrow(dim, first, length): the halves have three elements each.",
    "If the halves do not overlap, no wait is needed.",
  },
  take_home = "Races are about bytes: a view is another name for the same ones.",
  right = {
    { "local left, right = x:narrow(1, 1, 4), x:narrow(1, 3, 4)",
      "local left, right = x:narrow(1, 1, 3), x:narrow(1, 4, 3)" },
    [[return function(a, b, x)
  local halves = x:view(2, 3)
  a:run(function() halves[1]:add_(1) mr.op{name = "work of a", ms = 2} end)
  b:run(function() halves[2]:add_(2) mr.op{name = "work of b", ms = 2} end)
  return x
end]],
  },
  wrong = {
    { "wrong", [[return function(a, b, x)
  local left, right = x:narrow(1, 1, 4), x:narrow(1, 3, 4)
  a:run(function() left:add_(1) end)
  b:wait_stream(a)
  b:run(function() right:add_(2) end)
  return x
end]] },
    { "schedule", [[return function(a, b, x)
  local left = x:narrow(1, 1, 3)
  a:run(function() left:add_(1) end)
  b:run(function() x:copy_(mr.cat({x:narrow(1, 1, 3), x:narrow(1, 4, 3) + 2})) end)
  return x
end]] },
    { "serial", "local left, right = x:narrow(1, 1, 4), x:narrow(1, 3, 4)",
      "local left, right = x:narrow(1, 1, 3), x:narrow(1, 4, 3)",
      'a:run(function() left:add_(1) mr.op{name = "work of a", ms = 2} end)',
      "a:run(function() left:add_(1) mr.op{name = \"work of a\", ms = 2} end)\na:synchronize()",
      'b:run(function() right:add_(2) mr.op{name = "work of b", ms = 2} end)',
      "b:run(function() right:add_(2) mr.op{name = \"work of b\", ms = 2} end)\nb:synchronize()" },
    { "wait", "local left, right = x:narrow(1, 1, 4), x:narrow(1, 3, 4)",
      "local left, right = x:narrow(1, 1, 3), x:narrow(1, 4, 3)",
      'b:run(function() right:add_(2) mr.op{name = "work of b", ms = 2} end)',
      "b:run(function() right:add_(2) mr.op{name = \"work of b\", ms = 2} end)\nb:wait_stream(a)" },
    { "uses", [[return function(a, b, x)
  a:run(function() x:narrow(1, 1, 3):add_(1) x:narrow(1, 4, 3):add_(2) mr.op{name = "work of a", ms = 2} end)
  b:run(function() mr.op{name = "work of b", ms = 2} end)
  return x
end]] },
    { "error", "return function(a, b, x) x:narrow(1, 4, 4):add_(1) return x end" },
  },
}
