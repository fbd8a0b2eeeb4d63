-- Which waits does a pipeline need, and what do they cost?
--
-- Batches are copied to the device on one stream and used on another, in two buffers. The program is right: no schedule
-- gives another sum. But whoever wrote it was careful: there are more waits than it needs, and one waits for too much.
-- mr.waits says which.
--
--     build/millrace scripts/examples/needed_waits.lua

local BATCHES, ELEMENTS = 6, 1 << 20

local copy, compute = mr.stream{name = "copy"}, mr.stream{name = "compute"}
local batch = mr.ones(ELEMENTS, {pinned = true, name = "batch"})
local buffer = {mr.zeros(ELEMENTS, {name = "buffer[1]"}), mr.zeros(ELEMENTS, {name = "buffer[2]"})}
local total = mr.zeros(1, {name = "total"})
mr.synchronize()

local function use(b)
  total:add_(b:sum())
  mr.spin{ms = 0.3}                                 -- more work, which does not touch the buffer
end

local function careful()
  for i = 1, BATCHES do
    local b = buffer[i % 2 + 1]
    copy:wait_stream(compute)                       -- for all of compute: also for work on the other buffer
    mr.with(copy, function() b:copy_(batch, {non_blocking = true}) end)
    compute:wait_stream(copy)
    mr.with(compute, use, b)
    mr.barrier{copy, compute}                       -- "to be sure"
  end
  compute:synchronize()
end

-- What mr.waits proposes: an event for each buffer, recorded after the last use of it.
local function minimal()
  local free = {mr.event(), mr.event()}
  for i = 1, BATCHES do
    local k = i % 2 + 1
    copy:wait_event(free[k])
    mr.with(copy, function() buffer[k]:copy_(batch, {non_blocking = true}) end)
    compute:wait_stream(copy)
    mr.with(compute, function()
      total:add_(buffer[k]:sum())
      free[k]:record()
      mr.spin{ms = 0.3}
    end)
  end
  compute:synchronize()
end

local function show(name, fn)
  local result = mr.waits(fn)
  print(("%s: %d waits, %d suffice"):format(name, result.total, result.sufficient))
  for _, w in ipairs(result.waits) do
    print(("  line %s  %-12s %-10s %s"):format(w.where:match("%d+$"), w.kind, w.who, w.verdict))
  end
  return result
end

local first = show("careful", careful)
local second = show("minimal", minimal)
if second.makespan_ms then -- times are predicted by the device model of the virtual GPU
  print(("the second one takes less than 0.9 of the time: %s"):format(second.makespan_ms < 0.9 * first.makespan_ms))
end
