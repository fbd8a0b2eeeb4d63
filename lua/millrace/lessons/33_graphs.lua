return {
  title = "A graph: what may be recorded?",
  part = "Part 6: Further",
  rule = "R36",
  question = {
    program = [[
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x, y = mr.zeros(1), mr.zeros(1)
mr.synchronize()
local g = mr.graph.capture(function()
  x:add_(1)                            -- on `a`, which captures
  b:wait_stream(a)                     -- `b` joins the capture
  b:run(function() y:copy_(x) end)
end, {stream = a})
g:launch(a)
a:synchronize()
print(y:item())
]],
    ask = "The copy waits for the addition. What can it print?",
    outcomes = { "an error" },
    others = { "0.0", "1.0" },
    usual = "always 1.0",
  },
  explanation = [[
A graph is a stored list of device work that one call launches. During a
capture, work does not run: each piece becomes a node of the graph. `b` joined
the capture when it waited for `a`: a fork. It has to come back before the end:
`a` waits for `b`, a join. Without it the capture ends with error 904, unjoined
work.

A graph holds work of the device, with the addresses that were used. It does
not run your lines again, except host functions: they are nodes, too (R46). In
a capture the host cannot read a value (item). A wait for the stream or the
device is error 900; a wait for an event of the capture, or a query of it, is
907 (R37). New values for the next launch are copied into the same tensors.
]],
  exercise = {
    task = [[
Record the graph so that it can be launched: x is counted up on `a`, and y gets
a copy of x on `b`. Launch it twice, on `a`. Return y.]],
    start = [[
return function(a, b, x, y)
  local g = mr.graph.capture(function()
    x:add_(1)
    b:wait_stream(a)
    b:run(function() y:copy_(x) end)
  end, {stream = a})
  g:launch(a)
  g:launch(a)
  return y
end
]],
    given = function(v)
      return mr.stream { name = "a" }, mr.stream { name = "b" }, mr.full({ 1 }, v, { name = "x" }),
        mr.zeros(1, { dtype = "i64", name = "y" })
    end,
    changes = { 3, 4 },
    answer = function(v) return { v + 2 } end,
    host_waits = false,
    uses = { { kind = "record", name = "launch", stream = "a", count = 2, text = "two launches of a graph on `a`" },
             { captures = "b" } },
  },
  hints = {
    "Which stream is still outside when the capture ends?",
    "`b` was forked from `a`. It has to be joined.",
    "Inside the capture, at its end, one stream has to wait for the other.",
  },
  take_home = "A capture records: each fork needs its join, and the host cannot read values.",
  serial = "error",
  right = {
    { "b:run(function() y:copy_(x) end)", "b:run(function() y:copy_(x) end)\na:wait_stream(b)" },
    { "b:wait_stream(a)", "b:wait_event(a:record_event())", "b:run(function() y:copy_(x) end)",
      "b:run(function() y:copy_(x) end)\na:wait_event(b:record_event())", "g:launch(a)\ng:launch(a)",
      "for _ = 1, 2 do g:launch(a) end" },
  },
  wrong = {
    { "uses", "b:wait_stream(a)\nb:run(function() y:copy_(x) end)", "y:copy_(x)" },
    { "uses", "return function(a, b, x, y) return a:run(function() return x + 2 end) end" },
    { "wrong", "return function(a, b, x, y)", "return function(a, b, x, y)\n  local function add()",
      "local g = mr.graph.capture(function()", "  a:run(function() x:add_(1) y:copy_(x) end)",
      "x:add_(1)\nb:wait_stream(a)\nb:run(function() y:copy_(x) end)", "",
      "end, {stream = a})", "end\nlocal g = mr.graph.capture(add)" },
    { "uses", "b:run(function() y:copy_(x) end)", "b:run(function() y:copy_(x) end)\na:wait_stream(b)",
      "g:launch(a)\ng:launch(a)", "g:launch(a)\ng:launch(b)" },
    { "schedule", [[return function(a, b, x, y)
  local g = mr.graph.capture(function() x:add_(1) end, {stream = a})
  g:launch(a)
  g:launch(a)
  b:run(function() y:copy_(x) end)
  return y
end]] },
    { "error", "b:wait_stream(a)\nb:run(function() y:copy_(x) end)", "a:synchronize()\ny:copy_(x)" },
    { "error", "b:wait_stream(a)\nb:run(function() y:copy_(x) end)", "y:fill_(x:item())" },
    { "wrong", "b:wait_stream(a)\nb:run(function() y:copy_(x) end)", "y:copy_(x)", "g:launch(a)\ng:launch(a)",
      "g:launch(a)" },
  },
}
