return {
  title = "record_stream: what does it promise?",
  part = "Part 3: Memory",
  rule = "R33",
  question = {
    program = [[
local s = mr.stream{name = "s"}
local x = mr.zeros(1)
mr.synchronize()
x:fill_(5)                      -- on the default stream
x:record_stream(s)              -- `s` uses x
local y = s:run(function() return x * 2 end)
mr.synchronize()
print(y:item())
]],
    ask = "record_stream says that `s` uses x. What can it print?",
    outcomes = { "0.0", "10.0" },
    usual = "always 10.0",
  },
  explanation = [[
x:record_stream(s) is about the end of x: when x is freed, its memory is not
reused before `s` has done the work that it was given until then. It is a note
in the allocator (the part that hands out memory). It makes no stream wait, so
it says nothing about the values: `s` still needs a wait for the fill.

It has a price. The memory stays in use until all work of `s` from before the
free is done, also work that never touches x. PyTorch has this call; CUDA's own
way is an event, and a free in the order of a stream that has waited for it.
]],
  exercise = {
    task = [[
`s` reads t, which the current stream makes and frees. Return {y, z}: both
must be right, whatever gets the memory of t. The host must not wait.]],
    start = [[
return function(s, x)
  local t = x * 2
  t:record_stream(s)
  local y = s:run(function() return t + 1 end)
  t:free()
  local z = x * 100
  return {y, z}
end
]],
    given = function(v) return mr.stream { name = "s" }, mr.full({ 2 }, v, { name = "x" }) end,
    answer = function(v) return { { 2 * v + 1, 2 * v + 1 }, { 100 * v, 100 * v } } end,
    host_waits = false,
    uses = { { kind = "free", text = "the free of t" }, { kind = "work", stream = "s", text = "a read of t on `s`" },
             { kind = "work", stream = "default", count = 2, text = "t and z, both made on the current stream" } },
  },
  hints = {
    "The end of t is in order. What about its beginning?",
    "`s` reads t. Which stream writes it, and who waits for whom?",
    "`s` waits for the current stream in front of the read.",
  },
  take_home = "record_stream protects the memory after the free, and not the values before.",
  right = {
    { "t:record_stream(s)", "t:record_stream(s)\ns:wait_stream(mr.current_stream())" },
    { "t:record_stream(s)", "mr.current_stream():record_event():wait(s)", "t:free()", "t:record_stream(s)\nt:free()" },
  },
  wrong = {
    { "uses", "return function(s, x)", "return function(s, x)\n  local y = s:run(function()",
      "t:record_stream(s)\nlocal y = s:run(function() return t + 1 end)", "  local sum = t + 1",
      "local z = x * 100\nreturn {y, z}", "  return sum\nend)\nreturn {y, x * 100}" },
    { "schedule", "t:record_stream(s)", "s:wait_stream(mr.current_stream())" },
    { "schedule", "t:record_stream(s)", "s:wait_stream(mr.current_stream())",
      "local y = s:run(function() return t + 1 end)",
      "local y = s:run(function() return t + 1 end)\nx:record_stream(s)" },
    { "wait", "t:record_stream(s)", "t:record_stream(s)\ns:wait_stream(mr.current_stream())",
      "local y = s:run(function() return t + 1 end)",
      "local y = s:run(function() return t + 1 end)\nmr.current_stream():wait_stream(s)" },
    { "uses", "t:record_stream(s)", "t:record_stream(s)\ns:wait_stream(mr.current_stream())", "t:free()", "" },
  },
}
