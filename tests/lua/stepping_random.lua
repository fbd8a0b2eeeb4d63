-- virtual only: stepping forward and back
-- Random programs of operations, kernels, copies, events and memory that is used again. Any sequence of steps and of
-- going back ends where the remaining steps lead by themselves.
-- not checked: its programs race
local lu = require "luaunit"
local mr = require "millrace"

local TENSORS, STREAMS, SIZE = 5, 3, 3000

local SCALE = [[
extern "C" __global__ void scale(float *y, const float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 0.5f * y[i] + x[i] + 1.0f;
}]]
local has_compiler, scale = pcall(mr.kernel, SCALE, "scale")

local function some(list) return list[math.random(#list)] end

local function submit(w)
  local s, i, k = some(w.streams), math.random(TENSORS), math.random(TENSORS)
  local what = math.random(has_compiler and 9 or 8)
  if what == 1 then s:run(function() w.tensors[i]:add_(math.random(9)) end)
  elseif what == 2 then s:run(function() w.tensors[i]:copy_(w.tensors[k]) end)
  elseif what == 3 then s:run(function() w.tensors[i]:mul_(w.tensors[k]):relu_() end)
  elseif what == 4 then s:record_event(some(w.events))
  elseif what == 5 then s:wait_event(some(w.events))
  elseif what == 6 then s:run(function() w.pinned:copy_(w.tensors[i], { non_blocking = true }) end)
  elseif what == 7 then s:run(function() w.tensors[i]:copy_(w.pinned, { non_blocking = true }) end)
  elseif what == 8 then -- memory that is free by then is used again
    w.tensors[i]:free{ stream = s }
    w.tensors[i] = s:run(function() return mr.full({ SIZE }, math.random(9), { dtype = "f32" }) end)
  else
    scale[{ (SIZE + 255) // 256, 256, 0, s }](w.tensors[i], w.tensors[k], SIZE)
  end
end

-- Remains of earlier programs are freed first: a free costs time on the host's clock, and the collector would do it at
-- another time in each run.
local function build(seed)
  collectgarbage()
  math.randomseed(seed)
  local w = { streams = {}, tensors = {}, events = {}, pinned = mr.zeros(SIZE, { device = "cpu", pinned = true }) }
  for i = 1, STREAMS do w.streams[i] = mr.stream() end
  for i = 1, TENSORS do w.tensors[i] = mr.full({ SIZE }, i, { dtype = "f32" }) end
  for i = 1, 3 do w.events[i] = mr.event() end
  mr.synchronize()
  w.start, w.clock = mr.machine.time(), mr.clock()
  for _ = 1, 20 do submit(w) end
  return w
end

-- The visible state: bytes of all memory, the clocks, pending commands.
local function picture(w)
  local seen = { ("%.6f %.6f"):format(mr.machine.time() - w.start, mr.clock() - w.clock) }
  for i = 1, TENSORS do seen[#seen + 1] = w.tensors[i]:peek() end
  seen[#seen + 1] = w.pinned:peek()
  for _, queue in ipairs(mr.machine.queues()) do
    for _, one in ipairs(queue.pending) do
      seen[1] = ("%s %s%d/%d"):format(seen[1], one.op, one.part, one.parts)
    end
  end
  return seen
end

local function assert_same(a, b, seed)
  lu.assertEquals(a[1], b[1], "seed " .. seed)
  for i = 2, #a do lu.assertTrue(mr.equal(a[i], b[i]), ("seed %d, tensor %d"):format(seed, i - 1)) end
end

-- Steps forward and back at random: the streams of the steps that are left, and where they lead.
local function wander(seed)
  local w, left = build(seed), {}
  math.randomseed(seed + 1000)
  for _ = 1, 80 do
    if math.random(3) == 1 then
      local undone = mr.machine.back(math.random(6))
      for _ = 1, undone do left[#left] = nil end
    else
      local s = math.random(STREAMS + 1)
      if mr.machine.step(w.streams[s]) then left[#left + 1] = s end
    end
  end
  local ended = picture(w)
  mr.synchronize()
  return left, ended
end

TestSteps = {}

function TestSteps:setUp() mr.machine.chooser("manual") end

function TestSteps:tearDown()
  mr.synchronize()
  mr.machine.chooser("timed")
end

function TestSteps:test_what_is_left_decides()
  for seed = 1, 12 do
    local left, ended = wander(seed)
    local w = build(seed)
    for _, s in ipairs(left) do lu.assertNotNil(mr.machine.step(w.streams[s])) end
    assert_same(picture(w), ended, seed)
    mr.synchronize()
  end
end

function TestSteps:test_each_state_comes_back()
  local w, states = build(77), {}
  repeat states[#states + 1] = picture(w) until not mr.machine.step()
  for i = #states - 1, 1, -1 do
    lu.assertEquals(mr.machine.back(), 1)
    assert_same(picture(w), states[i], i)
  end
end

os.exit(lu.LuaUnit.run())
