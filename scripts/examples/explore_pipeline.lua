-- Every schedule of a correct pipeline: there is one. Three streams work on different batches at the same time, two
-- buffers between each two of them, and an event for each hand-over. As nothing is left open, all schedules that CUDA
-- allows are equivalent: they come to the same values, and mr.explore has to carry out one of them.
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: schedules are explored
local mr = require "millrace"

local BATCHES = 4

-- `forgotten`: the hand-over that is left out, "loaded", "taken", "computed" or "stored"; or nil.
local function pipeline(forgotten)
  local load, compute, store = mr.stream{name = "load"}, mr.stream{name = "compute"}, mr.stream{name = "store"}
  local input, output, batches, results = {}, {}, {}, {}
  for slot = 1, 2 do input[slot], output[slot] = mr.zeros(1), mr.zeros(1) end
  for i = 1, BATCHES do batches[i], results[i] = mr.full(1, i), mr.zeros(1) end
  mr.synchronize()

  local events = { loaded = {}, taken = {}, computed = {}, stored = {} }
  local function done(what, slot, stream) events[what][slot] = stream:record_event() end
  local function wait(stream, what, slot)
    local event = events[what][slot]
    if event and what ~= forgotten then stream:wait_event(event) end
  end

  for i = 1, BATCHES do
    local slot = (i - 1) % 2 + 1
    wait(load, "taken", slot) -- by compute, two batches ago
    mr.with(load, function() input[slot]:copy_(batches[i]) end)
    done("loaded", slot, load)

    wait(compute, "loaded", slot)
    wait(compute, "stored", slot) -- two batches ago
    mr.op{name = "square", reads = {input[slot]}, writes = {output[slot]}, stream = compute}
    done("taken", slot, compute)
    done("computed", slot, compute)

    wait(store, "computed", slot)
    mr.with(store, function() results[i]:copy_(output[slot]) end)
    done("stored", slot, store)
  end
  mr.synchronize()
  local values = {}
  for i = 1, BATCHES do values[i] = results[i]:item() end
  return table.unpack(values)
end

print("all four hand-overs:", (tostring(mr.explore(pipeline)):match("^[^\n]*")))
for _, what in ipairs { "loaded", "taken", "computed", "stored" } do
  local r = mr.explore(function() return pipeline(what) end, {max = 2000})
  print(("without %q:"):format(what), ("%s, values %s"):format(r.complete and "complete" or "cut at " .. r.schedules,
    #r.outcomes > 1 and "differ" or "are the same"))
end
