-- A stencil on two streams that exchange their halos.
--
-- Heat flows along a rod: in each step a point becomes the mean of itself and its neighbours. The rod is cut in two
-- halves, and each half is computed on a stream of its own. The first point of one half needs the last point of the
-- other: each half keeps a copy of it, the halo, which the neighbour writes after each step.
--
--     left half    [ 0 | a b c d | halo ]
--     right half           [ halo | e f g h | 0 ]        the halos hold e and d
--
-- The event `sent` says that a half has its halo. Without it, a step computes with the halo of an earlier step.
-- not checked: one of its programs races
local mr = require "millrace"

local step = mr.kernel([[
  // `now` begins one point before the first point of `next` and ends one behind the last.
  extern "C" __global__ void step(float *next, const float *now, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) next[i] = 0.25f * now[i] + 0.5f * now[i + 1] + 0.25f * now[i + 2];
  }]], "step")

local streams = { mr.stream{name = "left"}, mr.stream{name = "right"} }
local THREADS = 64

local function launch(stream, next, now)
  local n = #now - 2
  step[{(n + THREADS - 1) // THREADS, THREADS, 0, stream}](next[{ { 2, n + 1 } }], now, n)
end

-- A rod of n points with a zero at each end, hot where the halves meet.
local function rod(n)
  local t = mr.zeros(n + 2)
  t[{ { n // 2 - 1, n // 2 + 4 } }]:fill_(1024)
  return t
end

local function on_one_stream(n, steps)
  local now, next = rod(n), mr.zeros(n + 2)
  mr.synchronize() -- both were filled on the default stream
  for _ = 1, steps do
    launch(streams[1], next, now)
    now, next = next, now
  end
  streams[1]:synchronize()
  return now
end

local function on_two_streams(n, steps, wait)
  local half, whole = n // 2, rod(n)
  local now = { whole[{ { 1, half + 2 } }]:clone(), whole[{ { half + 1, n + 2 } }]:clone() }
  local next = { mr.zeros(half + 2), mr.zeros(half + 2) }
  local edge, halo = { half + 1, 2 }, { 1, half + 2 } -- edge[h] goes to halo[h] of the other half
  local sent = { mr.event(), mr.event() }
  mr.synchronize()
  mr.spin{ms = 1, stream = streams[1]} -- the left half is late, as one of them is in real programs

  for _ = 1, steps do
    for h = 1, 2 do
      if wait then streams[h]:wait_event(sent[3 - h]) end -- the first step waits for nothing: never recorded
      launch(streams[h], next[h], now[h])
      mr.memcpy_async(next[3 - h][{ { halo[h], halo[h] } }], next[h][{ { edge[h], edge[h] } }], {stream = streams[h]})
    end
    for h = 1, 2 do sent[h]:record(streams[h]) end
    now, next = next, now
  end
  mr.synchronize()
  return mr.cat{now[1][{ { 1, half + 1 } }], now[2][{ { 2, half + 2 } }]}
end

-- How far the two are apart, at the point where they differ most.
local function difference(n, steps, wait)
  return (on_two_streams(n, steps, wait) - on_one_stream(n, steps)):abs():max():item()
end

print("with the events, the halves equal one rod:    " .. tostring(difference(10000, 12, true) == 0))
print("without the events, the halves equal one rod: " .. tostring(difference(10000, 12, false) == 0))

return { -- for the tests
  fixed = function(n) return difference(n, 5, true), 0 end,
  racy = function(n) return difference(n, 5, false), 0 end,
}
