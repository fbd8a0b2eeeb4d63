return {
  title = "A race inside a block",
  part = "Part 6: Further",
  needs = "compiler",
  rule = "R54, R69",
  question = {
    program = [[
local reverse = mr.kernel([=[
__global__ void reverse(float *y, const float *x) {
  __shared__ float s[64];
  int i = threadIdx.x;
  s[i] = x[i];
  y[i] = s[63 - i];         // written by another thread of the block
}]=])
local x, y = mr.ones(64), mr.zeros(64)
mr.hazard.mode("collect")                    -- the checker keeps reports
reverse[{1, 64}](y, x)
mr.synchronize()
local race = mr.hazard.reports()[1]
print(race and "a race on " .. race.tensor or "no race")
]],
    ask = "One stream, one launch, one block. What does the checker find?",
    once = true,
    outcomes = { "a race on shared memory" },
    others = { "no race" },
    usual = "always no race",
  },
  explanation = [[
reverse[{1, 64}] launches one block of 64 threads. Each thread has a number,
threadIdx.x, from 0. `__shared__` memory belongs to the whole block.

Streams order launches, and nothing inside a launch: the threads of a block run
in groups of 32, the warps, and no warp waits for another. Thread 0 reads what
thread 63 writes, which is in another warp.

__syncthreads() is the wait of a block: no thread continues before all threads
have reached it, and then each sees what the others wrote to shared memory.
Blocks of an ordinary launch have no order (R54) and no such wait. Blocks of a
cooperative launch have grid.sync() (R69).
]],
  exercise = {
    task = [[
The kernel turns 64 numbers round. Mend it: it may not race. Return y.]],
    start = [[
return function(x, y)
  local reverse = mr.kernel([=[
  __global__ void reverse(float *y, const float *x) {
    __shared__ float s[64];
    int i = threadIdx.x;
    s[i] = x[i];
    y[i] = s[63 - i];
  }]=])
  reverse[{1, 64}](y, x)
  return y
end
]],
    given = function(v) return mr.linspace(v, 64 * v, 64, { name = "x" }), mr.zeros(64, { name = "y" }) end,
    changes = 2,
    answer = function(v)
      local list = {}
      for i = 1, 64 do list[i] = (65.0 - i) * v end
      return list
    end,
    host_waits = false,
    uses = { { name = "reverse", kind = "op", text = "a launch of the kernel `reverse`" },
             { name = "flip", count = 0 } },
  },
  hints = {
    "Which thread writes s[63 - i], and when?",
    "All threads must have written before one reads.",
    "A barrier of the block stands between the two lines.",
  },
  take_home = "Streams order launches. Inside a block, __syncthreads() orders the threads.",
  right = {
    { "s[i] = x[i];", "s[i] = x[i];\n__syncthreads();" },
    { "__shared__ float s[64];\nint i = threadIdx.x;\ns[i] = x[i];\ny[i] = s[63 - i];",
      "y[threadIdx.x] = x[63 - threadIdx.x];" },
  },
  wrong = {
    { "uses", "return function(x, y) return x:flip(1) end" },
    { "hazard", "y[i] = s[63 - i];", "y[i] = i < 32 ? x[63 - i] : s[63 - i];" },
    { "schedule", "s[i] = x[i];", "s[i] = x[i];\n__syncthreads();", "reverse[{1, 64}](y, x)",
      "local s = mr.stream()\nlocal copy = s:run(function() return x:clone() end)\nreverse[{1, 64}](y, copy)" },
    { "wrong", "s[i] = x[i];", "s[i] = x[i];\n__syncwarp();" },
    { "error", "__shared__ float s[64];\nint i = threadIdx.x;\ns[i] = x[i];\ny[i] = s[63 - i];",
      "y[threadIdx.x] = x[64 + threadIdx.x];" },
  },
}
