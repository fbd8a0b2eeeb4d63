-- Memory that is freed and allocated again, in every schedule. Random programs are carried out by hand, one step of the
-- device after the other. All orders are tried, with every progress of the device at each allocation. An allocation may
-- also miss the frees of other streams, if neither its stream nor the host knows of them (R30). Two of these runs are
-- equivalent if each allocation found the same memory and each pair of operations that touch the same bytes ran in the
-- same order. mr.explore must carry out one schedule of each class, and come to the same outcomes.
--
-- MR_EXPLORE_MEMORY_PROGRAMS sets how many programs (20; 80 in `make check-long`), MR_EXPLORE_MEMORY_SEED where they
-- begin.
-- virtual only: schedules are explored on the virtual GPU
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: schedules are explored
local mr = require "millrace"
local T = require "millrace.testing"

T.rule("explore_memory")

local PROGRAMS = tonumber(os.getenv("MR_EXPLORE_MEMORY_PROGRAMS")) or os.getenv("MILLRACE_LONG") and 80 or 20
local SEED = tonumber(os.getenv("MR_EXPLORE_MEMORY_SEED")) or 1
local STREAMS, MOST_RUNS = 3, 1500
local SMALL, LARGE = 128, 256 -- elements of f32: one block of the pool, and two
local SPREAD = 8 -- bytes of address for a byte of memory

-- Tensors are numbers, in the order of their allocations; those of the list `live` may be used.
local function make(seed)
  math.randomseed(seed)
  local steps, live, count = {}, { 1, 2 }, 2
  for _ = 1, math.random(4, 8) do
    local kind, stream = math.random(8), math.random(STREAMS)
    local at = math.random(math.max(#live, 1))
    if kind <= 3 and #live > 0 then
      steps[#steps + 1] = { what = "op", stream = stream, write = live[at],
        read = math.random(2) == 1 and live[math.random(#live)] or nil }
    elseif kind <= 5 and #live > 0 then
      steps[#steps + 1] = { what = "free", tensor = table.remove(live, at) }
    elseif kind <= 7 then
      count = count + 1
      live[#live + 1] = count
      steps[#steps + 1] = { what = "alloc", stream = stream, size = math.random(5) == 1 and LARGE or SMALL }
    elseif math.random(2) == 1 and #live > 0 then
      steps[#steps + 1] = { what = "use", tensor = live[at], stream = stream }
    else
      steps[#steps + 1] = { what = "wait", stream = stream, other = stream % STREAMS + 1 }
    end
  end
  return steps
end

-- `watch` is told of operations, with their operands, and of allocations; and may let the device go on before those.
local function run(steps, watch)
  local s, t, freed = {}, {}, {}
  for i = 1, STREAMS do s[i] = mr.stream{name = "s" .. i} end
  for i = 1, 2 do t[i] = s[i]:run(function() return mr.zeros(SMALL) end) end
  mr.synchronize()
  if watch then watch.begin(s) end
  for i, step in ipairs(steps) do
    local stream = s[step.stream]
    if step.what == "op" then
      local read = step.read ~= step.write and t[step.read] or nil
      mr.op{name = "op" .. i, stream = stream, reads = { read }, writes = { t[step.write] }}
      if watch then watch.op(step.stream, t[step.write], read) end
    elseif step.what == "free" then
      if watch then watch.free(step.tensor) end
      t[step.tensor]:free()
      freed[step.tensor] = true
    elseif step.what == "use" then t[step.tensor]:record_stream(stream)
    elseif step.what == "wait" then
      if watch then watch.wait(step.stream, step.other) end
      stream:wait_stream(s[step.other])
    else
      if watch then watch.alloc(step.stream) end
      local new = stream:run(function() return mr.empty(step.size) end)
      t[#t + 1] = new
      if watch then watch.found(new) end
      mr.op{name = "first" .. i, stream = stream, writes = { new }}
      if watch then watch.op(step.stream, new) end
    end
  end
  if watch then watch.finish() end
  mr.synchronize()
  local out = {}
  for i = 1, #t do out[i] = freed[i] and "-" or ("%.9g"):format(t[i][1]:item()) end
  return table.concat(out, " ")
end

-- All parts of one operation. False: nothing of the stream can run.
local function step_whole(stream)
  local what = mr.machine.step(stream)
  local parts = tonumber((what or ""):match("part 1 of (%d+)$"))
  if parts then mr.machine.step(stream, parts - 1) end
  return what ~= nil
end

-- One run by the choices so far; the next ones are 0 each, and `choices` is then complete.
local function steered(steps, choices)
  local queues, done, found, at, s, complete = {}, {}, {}, 0, nil, true
  local function go_on(may_stop)
    while true do
      at = at + 1
      local stepped
      for c = choices[at] or (may_stop and 0 or 1), STREAMS do
        choices[at] = c
        if c == 0 then return end
        if #queues[c] > 0 and step_whole(s[c]) then
          stepped = c
          break
        end
      end
      if not stepped then
        choices[at] = STREAMS + 1
        complete = not may_stop and #queues[1] + #queues[2] + #queues[3] == 0
        return
      end
      done[#done + 1] = table.remove(queues[stepped], 1)
    end
  end
  local number = 0
  local watch = {}
  function watch.begin(streams)
    s = streams
    for i = 1, STREAMS do queues[i] = {} end
  end
  function watch.op(stream, write, read)
    number = number + 1
    local function range(t, writes)
      if not t then return nil end
      local first = t.data_ptr // SPREAD -- where it lies, up to a constant
      return { first = first, last = first + 4 * t.numel - 1, writes = writes }
    end
    table.insert(queues[stream], { number = number, range(write, true), range(read, false) })
  end
  local function go_on_or_end(may_stop)
    go_on(may_stop)
    if not complete then error("no such run", 0) end
  end
  -- Frees, by the stream; and those that a stream comes after.
  local owner, frees, after = { 1, 2 }, {}, {}
  for i = 1, STREAMS do after[i] = {} end
  function watch.free(tensor)
    frees[#frees + 1] = owner[tensor]
    after[owner[tensor]][#frees] = true
  end
  function watch.wait(stream, other)
    for i in pairs(after[other]) do after[stream][i] = true end
  end
  local function may_miss(stream)
    local may = false
    for i, by in ipairs(frees) do
      if by ~= stream and after[stream][i] then return false end -- policy 1: it is found
      may = may or by ~= stream
    end
    return may
  end
  local function choose_to_miss(stream)
    if not may_miss(stream) then return end
    at = at + 1
    choices[at] = choices[at] or 0
    if choices[at] > 1 then
      complete = false
      error("no such run", 0)
    end
    mr.machine.settings{reuse_opportunistic = choices[at] == 0}
  end
  function watch.alloc(stream)
    owner[#owner + 1] = stream
    go_on_or_end(true)
    choose_to_miss(stream)
  end
  function watch.found(t)
    mr.machine.settings{reuse_opportunistic = true}
    found[#found + 1] = t.data_ptr
  end
  function watch.finish() go_on_or_end(false) end
  local fine, value = pcall(run, steps, watch)
  if not fine and complete then error(value, 0) end
  return complete, value, done, found
end

local function conflict(a, b)
  for _, x in ipairs(a) do
    for _, y in ipairs(b) do
      if (x.writes or y.writes) and x.first <= y.last and y.first <= x.last then return true end
    end
  end
end

local function signature(done, found)
  local out = {}
  for i, a in ipairs(done) do
    for k = i + 1, #done do
      if conflict(a, done[k]) then out[#out + 1] = ("%d<%d"):format(a.number, done[k].number) end
    end
  end
  table.sort(out)
  return table.concat(out, " ") .. " at " .. table.concat(found, " ")
end

-- The next list of choices in order; false: that was the last one.
local function advance(choices)
  while #choices > 0 and choices[#choices] >= STREAMS do choices[#choices] = nil end
  if #choices == 0 then return false end
  choices[#choices] = choices[#choices] + 1
  return true
end

-- Each run begins on a machine without memory that was used before.
local function fresh()
  collectgarbage()
  mr.reset()
end

local function judge(steps)
  local classes, outcomes, runs, count = {}, {}, 0, 0
  local choices = {}
  repeat
    fresh()
    mr.machine.chooser("manual")
    local complete, value, done, found = steered(steps, choices)
    if complete then
      local key = signature(done, found)
      runs = runs + 1
      if not classes[key] then count = count + 1 end
      classes[key] = value
      outcomes[value] = true
    end
    if runs >= MOST_RUNS then return nil end
  until not advance(choices)
  return { classes = classes, count = count, outcomes = outcomes, runs = runs }
end

local compared, several, runs, fewer = 0, 0, 0, 0
for seed = SEED, SEED + PROGRAMS - 1 do
  local steps = make(seed)
  local before = mr.machine.chooser()
  local expected = judge(steps)
  fresh()
  mr.machine.chooser(before)
  if expected then
    compared = compared + 1
    runs = runs + expected.runs
    local r = mr.explore(function() return run(steps) end, { full = true })
    local proved = mr.explore(function() return run(steps) end)
    local found, text = {}, { ("seed %d"):format(seed) }
    for i, step in ipairs(steps) do
      text[#text + 1] = ("  %d: %s s%s t%s r%s"):format(i, step.what, step.stream,
        step.tensor or step.write or step.size, step.read or step.other)
    end
    for key, value in pairs(expected.classes) do text[#text + 1] = ("  class %s -> %s"):format(key, value) end
    for _, o in ipairs(r.outcomes) do
      found[o.value or o.error] = true
      text[#text + 1] = ("  outcome %s\n%s"):format(o.value or o.error, o.steps)
    end
    text = table.concat(text, "\n")
    for value in pairs(expected.outcomes) do
      T.check(found[value], "an outcome is missing: " .. value .. "\n" .. text)
    end
    for value in pairs(found) do T.check(expected.outcomes[value], "an outcome of no schedule\n" .. text) end
    T.check(r.complete, "all schedules\n" .. text)
    T.equal(r.schedules, expected.count, "one schedule of each class\n" .. text)
    if expected.count > 1 then several = several + 1 end
    -- Without memory that makes no difference: fewer schedules, and the same of everything else.
    T.check(proved.complete and proved.deterministic == r.deterministic, "the same verdict\n" .. text)
    T.equal(#proved.outcomes, #r.outcomes, "as many outcomes\n" .. text)
    for _, o in ipairs(proved.outcomes) do T.check(found[o.value or o.error], "one that is none\n" .. text) end
    T.check(proved.schedules <= r.schedules, "no more schedules\n" .. text)
    if proved.schedules < r.schedules then fewer = fewer + 1 end
  end
end
-- The second half of a tensor that was freed too early is another tensor's: it is read before or after that is written.
local halves = mr.explore(function()
  local main, side = mr.stream{name = "main"}, mr.stream{name = "side"}
  local sum
  mr.with(main, function()
    local x = mr.full(2 * SMALL, 2)
    side:wait_stream(main)
    sum = mr.with(side, function() return x[{{SMALL + 1, 2 * SMALL}}]:sum() end)
    x:free()
    return mr.full(SMALL, 100), mr.full(SMALL, 100)
  end)
  mr.synchronize()
  return sum:item()
end)
T.equal(#halves.outcomes, 2, "the read of the half before and after it is written")

print(("%d programs, %d with several classes, %d runs"):format(compared, several, runs))
T.at_least(compared, PROGRAMS // 2, "programs that are small enough")
T.at_least(several, PROGRAMS // 10, "programs with several classes")
T.at_least(fewer, 1, "programs in which the memory of some allocation makes no difference")
