return {
  title = "The collector: nobody needs it now. Who says so?",
  part = "Part 3: Memory",
  rule = "R28",
  question = {
    program = [[
local s = mr.stream{name = "s"}
local x = mr.full({4}, 3.0, {name = "x"})
mr.synchronize()
local y = s:run(function() return x * 1 end)
x = nil                                  -- the last name of the tensor
collectgarbage()
local z = mr.full({4}, 7.0, {name = "z"})
mr.synchronize()
print(y:sum():item())
]],
    ask = "Nothing is freed by hand. What can it print?",
    outcomes = { "12.0", "28.0" },
    usual = "always 12.0",
  },
  explanation = [[
Lua's garbage collector knows which variables are left. It knows nothing of
streams, so it does not know that `s` still has to read the memory. When the
last variable is gone, it frees the tensor, in the order of the stream that
made it. This is the same free as in a line of your own, at a moment that you
do not choose.

Python frees when the last name goes. Lua frees some time later, so the mistake
shows up more rarely. A variable declared with <close> is always freed at the
end of its block. The cure is the same for all: record_stream, or an order from
the last reader back to the stream that made the tensor.
]],
  exercise = {
    task = [[
t ends with its block; z may get its memory. Return {y, z}. Keep <close>, and
let the host not wait.]],
    start = [[
return function(s, x)
  local y
  do
    local t <close> = x * 2
    s:wait_stream(mr.current_stream())
    y = s:run(function() return t + 1 end)
  end
  local z = x * 100
  return {y, z}
end
]],
    given = function(v) return mr.stream { name = "s" }, mr.full({ 2 }, v, { name = "x" }) end,
    answer = function(v) return { { 2 * v + 1, 2 * v + 1 }, { 100 * v, 100 * v } } end,
    host_waits = false,
    uses = { { kind = "free", text = "the end of t with <close>" } },
  },
  hints = {
    "Where is t freed, and in the order of which stream?",
    "Who still reads t when its block ends?",
    "Say inside the block that `s` uses t, or let the current stream wait for `s`.",
  },
  take_home = "The end of a variable is a free: its stream must come after the last reader.",
  right = {
    { "y = s:run(function() return t + 1 end)", "y = s:run(function() return t + 1 end)\nt:record_stream(s)" },
    { "y = s:run(function() return t + 1 end)",
      "y = s:run(function() return t + 1 end)\nmr.current_stream():wait_stream(s)" },
    { "y = s:run(function() return t + 1 end)",
      "y = s:run(function() return t + 1 end)\nt:record_stream(s)\ny:record_stream(mr.current_stream())" },
    [[return function(s, x)
  local y = s:run(function()
    local t <close> = x * 2
    return t + 1
  end)
  local z = x * 100
  return {y, z}
end]],
  },
  wrong = {
    { "uses", "local t <close> = x * 2", "local t = x * 2" },
    { "schedule", [[return function(s, x)
  local y
  do
    local t <close> = x * 2
    s:wait_stream(mr.current_stream())
    y = s:run(function() return t + 1 end)
  end
  mr.spin{ms = 2}
  local z = x * 100
  return {y, z}
end]] },
    { "hazard", [[return function(s, x)
  local y
  do
    local t <close> = x * 2
    s:wait_stream(mr.current_stream())
    y = s:run(function() return t + 1 end)
  end
  mr.current_stream():wait_stream(s)
  local z = x * 100
  return {y, z}
end]] },
    { "wait", "y = s:run(function() return t + 1 end)",
      "y = s:run(function() return t + 1 end)\nt:record_stream(s)\nmr.current_stream():wait_stream(s)" },
  },
}
