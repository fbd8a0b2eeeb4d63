return {
  title = "Freed while another stream still reads it",
  part = "Part 3: Memory",
  rule = "R28",
  question = {
    program = [[
local s = mr.stream{name = "s"}
local x = mr.full({4}, 3.0, {name = "x"})
mr.synchronize()
local y = s:run(function() return x * 1 end)
x:free()
local z = mr.full({4}, 7.0, {name = "z"})      -- may get the memory of x
mr.synchronize()
print(y:sum():item())
]],
    ask = "x is freed after the line that reads it. What can it print?",
    outcomes = { "12.0", "28.0" },
    usual = "always 12.0",
  },
  explanation = [[
Memory belongs to the stream on which it was made: here the default stream. A
free is work of that stream. It knows nothing of `s`, which may still have to
read. The next tensor of the default stream may get the same memory at once,
and writes into it. PyTorch's allocator (the part that hands out memory) and
x:free() free in the order of the stream that made the tensor. cudaFreeAsync
frees in the stream that you pass.

Lua's collector frees in the same order (lesson 18). If you use a tensor on a
second stream, you must order its end, too. There are three ways. Let the first
stream wait for the second before the free. Free it in the order of the second,
x:free{stream = s}. Or call x:record_stream(s), which keeps the memory until
`s` has done what it was given before the free (R33).
]],
  exercise = {
    task = [[
t is made on the current stream and read on `s`. Then it is freed, and z gets
its memory. Return {y, z}. Keep the free, and let the host not wait.]],
    start = [[
return function(s, x)
  local t = x * 2
  s:wait_stream(mr.current_stream())
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
    "In the order of which stream is t freed?",
    "The free has to come after the read on `s`.",
    "Tell the tensor that `s` uses it, or free it in the order of `s`.",
  },
  take_home = "A tensor that a second stream uses needs an order at its end, too.",
  right = {
    { "local y = s:run(function() return t + 1 end)",
      "local y = s:run(function() return t + 1 end)\nt:record_stream(s)" },
    { "t:free()", "t:free{stream = s}" },
    { "local y = s:run(function() return t + 1 end)",
      "local y = s:run(function() return t + 1 end)\nmr.current_stream():wait_stream(s)" },
  },
  wrong = {
    { "uses", [[return function(s, x)
  local y = s:run(function()
    local t = x * 2
    local sum = t + 1
    t:free()
    return sum
  end)
  return {y, x * 100}
end]] },
    { "uses", "t:free()", "" },
    { "uses", "s:wait_stream(mr.current_stream())", "", "local y = s:run(function() return t + 1 end)",
      "local y = t + 1" },
    { "schedule", "local y = s:run(function() return t + 1 end)",
      "local y = s:run(function() return t + 1 end)\nmr.spin{ms = 3}" },
    { "schedule", "local y = s:run(function() return t + 1 end)",
      "local y = s:run(function() return t + 1 end)\nt:record_stream(mr.current_stream())" },
    { "host", "local y = s:run(function() return t + 1 end)",
      "local y = s:run(function() mr.spin{ms = 1} return t + 1 end)\ns:synchronize()" },
    { "wait", "local y = s:run(function() return t + 1 end)",
      "local y = s:run(function() return t + 1 end)\nt:record_stream(s)\nmr.current_stream():wait_stream(s)" },
    { "input", [[return function(s, x)
  local y = x * 2 + 1
  x:mul_(100)
  return {y, x}
end]] },
  },
}
