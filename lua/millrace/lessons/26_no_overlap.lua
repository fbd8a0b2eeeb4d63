return {
  title = "Two streams, and still one after the other",
  part = "Part 5: Overlap",
  rule = "R54",
  question = {
    program = [[
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local all = mr.current_device().sm_count       -- multiprocessors
local before = mr.clock()
mr.op{name = "one", ms = 2, blocks = all, stream = a}
mr.op{name = "two", ms = 2, blocks = all, stream = b}
mr.synchronize()
print(math.floor(mr.clock() - before) .. " ms")
]],
    ask = "Nothing orders the two, and each takes 2 ms. How long do both take?",
    once = true,
    outcomes = { "4 ms" },
    others = { "2 ms" },
    usual = "always 2 ms",
  },
  explanation = [[
Streams allow overlap; they do not give room. mr.op stands for a kernel that
takes `ms` and computes nothing. A kernel is made of blocks, and blocks run on
multiprocessors. The first kernel needs all of them here, so the second one
finds none that is free. In mr.op `blocks` counts whole multiprocessors. In
CUDA one of them can hold many small blocks. Most large kernels of libraries
are built to fill the device.

Kernels overlap if there is room: small ones, or the last blocks of one and the
first of the next. CUDA never promises it: it says that work of different
streams may run at the same time. So more streams are not more speed.
]],
  exercise = {
    task = [[
`one` on `a` and `two` on `b` take 2 ms each. Let them run at the same time for
1.5 ms at least. You may choose how many multiprocessors (blocks) each of them
takes. Return x + 1.]],
    start = [[
return function(a, b, x)
  local all = mr.current_device().sm_count
  mr.op{name = "one", ms = 2, blocks = all, stream = a}
  mr.op{name = "two", ms = 2, blocks = all, stream = b}
  return a:run(function() return x + 1 end)
end
]],
    given = function(v)
      return mr.stream { name = "a" }, mr.stream { name = "b" }, mr.full({ 1 }, v, { name = "x" })
    end,
    answer = function(v) return { v + 1 } end,
    overlap = { "a", "b", 1.5 },
    host_waits = false,
    uses = { { name = "one", stream = "a", ms = 2 }, { name = "two", stream = "b", ms = 2 } },
  },
  hints = {
    "How many multiprocessors are left for the second one?",
    "Both fit if the sum of their blocks is at most `all`.",
    "Half for each is enough. `//` divides whole numbers.",
  },
  take_home = "Streams permit overlap, free multiprocessors make it.",
  right = {
    [[return function(a, b, x)
  local all = mr.current_device().sm_count
  mr.op{name = "one", ms = 2, blocks = all // 2, stream = a}
  mr.op{name = "two", ms = 2, blocks = all // 2, stream = b}
  return a:run(function() return x + 1 end)
end]],
    [[return function(a, b, x)
  local all = mr.current_device().sm_count
  mr.op{name = "one", ms = 2, blocks = all - 1, stream = a}
  mr.op{name = "two", ms = 2, stream = b}
  return x + 1
end]],
  },
  wrong = {
    { "schedule", "local all = mr.current_device().sm_count", "local all = mr.current_device().sm_count // 2",
      "return a:run(function() return x + 1 end)",
      "local y = a:run(function() return x + 1 end)\nreturn b:run(function() return y:clone() end)" },
    { "serial", 'mr.op{name = "two", ms = 2, blocks = all, stream = b}',
      'mr.op{name = "two", ms = 2, blocks = 1, stream = b}' },
    { "uses", 'mr.op{name = "one", ms = 2, blocks = all, stream = a}', 'mr.op{name = "one", ms = 1.6, stream = a}',
      'mr.op{name = "two", ms = 2, blocks = all, stream = b}', 'mr.op{name = "two", ms = 1.6, stream = b}' },
    { "uses", 'mr.op{name = "one", ms = 2, blocks = all, stream = a}', "mr.spin{ms = 2, stream = a}",
      'mr.op{name = "two", ms = 2, blocks = all, stream = b}', "mr.spin{ms = 2, stream = b}" },
    { "uses", [[return function(a, b, x)
  mr.op{name = "one", ms = 2, stream = a}
  mr.op{name = "two", ms = 2, stream = a}
  return a:run(function() return x + 1 end)
end]] },
  },
}
