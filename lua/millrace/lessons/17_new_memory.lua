return {
  title = "New memory: who used it before?",
  part = "Part 3: Memory",
  rule = "R28",
  question = {
    program = [[
local s = mr.stream{name = "s"}
local old = mr.full({4}, 3.0, {name = "old"})
mr.synchronize()
old:add_(1)                           -- on the default stream
old:free()
local new = mr.empty(4, {name = "new"})       -- may get its memory
s:run(function() new:fill_(7) end)            -- on `s`
mr.synchronize()
print(new:sum():item())
]],
    ask = "`new` is empty, and only `s` writes it. What can it print?",
    outcomes = { "28.0", "32.0" },
    usual = "always 28.0",
  },
  explanation = [[
An allocation is work of a stream, too: here of the default stream, which is
current when mr.empty is called. The default stream may use the memory at once,
since its own earlier work comes first. `s` may not: the addition to `old` may
still be to come, and then it adds to the fill of `new`.

No value flows from the default stream to `s`, and still `s` has to wait: what
it needs is the memory. It can make the tensor itself instead, inside s:run.
CUDA says it of its stream-ordered allocator: a use must come after the
allocation, in the order of streams and events.
]],
  exercise = {
    task = [[
Return {sum, new}: the sum of t on the current stream, and 7, 7, written by
`s`. The memory of t is free again when `new` is made. The host must not wait.]],
    start = [[
return function(s, x)
  local t = x * 2
  local sum = t:sum()
  t:free()
  local new = mr.empty(2, {dtype = "i64", name = "new"})
  s:run(function() new:fill_(7) end)
  return {sum, new}
end
]],
    given = function(v) return mr.stream { name = "s" }, mr.full({ 2 }, v, { name = "x" }) end,
    answer = function(v) return { 4 * v, { 7, 7 } } end,
    host_waits = false,
    uses = { { kind = "work", stream = "s", text = "a fill on `s`" }, { name = "sum", stream = "default" },
             { kind = "free", text = "the free of t" } },
  },
  hints = {
    "On which stream is `new` allocated, and which stream writes it?",
    "`s` has to come after the allocation. Or it allocates.",
    "Put mr.empty into s:run, or let `s` wait for the current stream.",
  },
  take_home = "A tensor that is made on one stream and used on another needs an order.",
  right = {
    { 'local new = mr.empty(2, {dtype = "i64", name = "new"})',
      "local new = mr.empty(2, {dtype = \"i64\", name = \"new\"})\ns:wait_stream(mr.current_stream())" },
    { "local new = mr.empty(2, {dtype = \"i64\", name = \"new\"})\ns:run(function() new:fill_(7) end)",
      "local new\ns:run(function() new = mr.empty(2, {dtype = \"i64\"}):fill_(7) end)" },
  },
  wrong = {
    { "uses", "t:free()", "", 'local new = mr.empty(2, {dtype = "i64", name = "new"})',
      'local new = mr.empty(2, {dtype = "i64", name = "new"})\ns:wait_stream(mr.current_stream())' },
    { "uses", "s:run(function() new:fill_(7) end)", "new:fill_(7)" },
    { "schedule", "local t = x * 2", "local t = x * 2\ns:wait_stream(mr.current_stream())" },
    { "wait", [[return function(s, x)
  local t = x * 2
  local sum = t:sum()
  t:free()
  s:wait_stream(mr.current_stream())
  return {sum, s:run(function() return mr.empty(2, {dtype = "i64"}):fill_(7) end)}
end]] },
    { "schedule", 'local new = mr.empty(2, {dtype = "i64", name = "new"})',
      "local new = mr.empty(2, {dtype = \"i64\", name = \"new\"})\nmr.current_stream():wait_stream(s)" },
  },
}
