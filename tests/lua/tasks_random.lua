-- Random programs of tasks in mr.explore have the same outcomes as in a naive search. That goes through every
-- interleaving of the device's steps with those of the host that docs/tasks.md describes. It knows states, not
-- schedules.
--
-- MR_TASKS_PROGRAMS sets how many (40; 1000 in `make check-long`), MR_TASKS_SEED the first seed.
-- timeout: 180
-- options: --device virtual:1
-- virtual only: schedules are explored there
-- not checked: schedules are explored
-- not replayed: schedules are explored, by a chooser that no name tells
local lu = require "luaunit"
local mr = require "millrace"

local COUNT = tonumber(os.getenv("MR_TASKS_PROGRAMS")) or (os.getenv("MILLRACE_LONG") and 1000 or
  os.getenv("MILLRACE_SHORT") and 10 or 20)
local FIRST = tonumber(os.getenv("MR_TASKS_SEED")) or 1
local POLLS = 50 -- more than a task of these programs yields

-- ---------------------------------------------------------------- programs

-- An instruction is { name, ... }: numbers of streams, tensors and events.
local MAKERS = {
  function(p) return { "add", math.random(p.streams), math.random(2), math.random(3) } end,
  function(p) return { "mul", math.random(p.streams), math.random(2) } end,
  function(p) return { "sum", math.random(p.streams), math.random(2) } end, -- adds the other tensor
  function(p) return { "record", math.random(p.streams), math.random(2) } end,
  function(p) return { "wait", math.random(p.streams), math.random(2) } end,
  function() return { "await_event", math.random(2) } end,
  function() return { "await_event", math.random(2) } end,
  function(p) return { "await_stream", math.random(p.streams) } end,
  function(p) return { "await_stream", math.random(p.streams) } end,
  function() return { "note" } end,
  function() return { "note" } end,
  function(p) return { "add_if", math.random(p.streams), math.random(2) } end,
  function(p) return { "read", math.random(p.streams), math.random(2) } end,
  function(p) return { "synchronize", math.random(p.streams) } end,
  function() return { "yield" } end,
}

-- Half of it is work that is waited for, as people write tasks.
local function new_code(p, length)
  local code = {}
  for _ = 1, length do
    code[#code + 1] = MAKERS[math.random(#MAKERS)](p)
    if math.random(2) == 1 then
      local s, e = math.random(p.streams), math.random(2)
      code[#code + 1] = MAKERS[math.random(3)](p)
      code[#code][2] = s
      if math.random(2) == 1 then
        code[#code + 1] = { "record", s, e }
        code[#code + 1] = { "await_event", e }
      else code[#code + 1] = { "await_stream", s } end
      code[#code + 1] = { "note" }
    end
  end
  code[#code + 1] = { "note" }
  return code
end

-- `starts`: codes of tasks. An instruction "run" has some, too.
local function new_program(seed)
  math.randomseed(seed)
  local count = seed % 3 == 0 and 3 or 2
  local p = { streams = math.random(2, 3), starts = {} }
  for i = 1, count do p.starts[i] = new_code(p, count == 3 and 1 or math.random(2, 3)) end
  if seed % 7 == 0 then
    local inner = { "run", new_code(p, 1), new_code(p, 1) }
    p.starts[1] = { p.starts[1][1], inner, { "note" } }
    p.starts[2] = { p.starts[2][1], { "note" } }
  end
  return p
end

-- ---------------------------------------------------------------- with millrace

local function explored(p)
  local function fn()
    local streams, events, x, noted = {}, { mr.event(), mr.event() }, {}, 0
    for i = 1, p.streams do streams[i] = mr.stream{ nonblocking = true } end
    for i = 1, 2 do x[i] = mr.full({ 1 }, i, { dtype = "i64" }) end
    mr.synchronize()
    local calls = {}
    local function task(code, number)
      return function()
        for _, c in ipairs(code) do calls[c[1]](c, number) end
      end
    end
    local function on(c, work) streams[c[2]]:run(work) end
    function calls.add(c) on(c, function() x[c[3]]:add_(c[4]) end) end
    function calls.mul(c) on(c, function() x[c[3]]:mul_(3) end) end
    function calls.sum(c) on(c, function() x[c[3]]:add_(x[3 - c[3]]) end) end
    function calls.record(c) events[c[3]]:record(streams[c[2]]) end
    function calls.wait(c) streams[c[2]]:wait_event(events[c[3]]) end
    function calls.await_event(c) events[c[2]]:await() end
    function calls.await_stream(c) streams[c[2]]:await() end
    function calls.note(_, number) noted = noted * 5 + number end
    function calls.add_if(c) if noted % 2 == 1 then on(c, function() x[c[3]]:add_(7) end) end end
    function calls.read(c) on(c, function() noted = noted + x[c[3]]:item() end) end
    function calls.synchronize(c) streams[c[2]]:synchronize() end
    function calls.yield() coroutine.yield() end
    local function run(codes, first, from)
      local tasks = {}
      for i = first, #codes do tasks[#tasks + 1] = task(codes[i], from + #tasks + 1) end
      mr.run(table.unpack(tasks))
    end
    function calls.run(c) run(c, 2, 2) end
    run(p.starts, 1, 0)
    mr.synchronize()
    return ("%d %d %d"):format(noted, x[1]:item(), x[2]:item())
  end
  return mr.explore(fn, { time = 1000, polls = POLLS }), fn
end

-- ---------------------------------------------------------------- naively

local function copy(value)
  if type(value) ~= "table" or value.is_code then return value end
  local new = {}
  for k, v in pairs(value) do new[k] = copy(v) end
  return new
end

-- A state as text: code stands where it stood.
local function write(value, out)
  if type(value) ~= "table" then out[#out + 1] = tostring(value)
  elseif not value.is_code then
    local keys = {}
    for k in pairs(value) do keys[#keys + 1] = k end
    table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
    out[#out + 1] = "{"
    for _, k in ipairs(keys) do
      out[#out + 1] = tostring(k)
      write(value[k], out)
    end
    out[#out + 1] = "}"
  end
end

local function new_list(codes, first, from)
  local list = { at = 1 }
  for i = first, #codes do
    codes[i].is_code = true
    list[#list + 1] = { code = codes[i], pc = 1, number = from + #list + 1 }
  end
  return list
end

local function is_over(s, what)
  if what.event then
    return s.done[s.events[what.event]] == true
  end
  return #s.queues[what.stream] == 0
end

local function submit(s, c, work) table.insert(s.queues[c[2]], work) end

local naive = {}
function naive.add(s, c) submit(s, c, { "add", c[3], c[4] }) end
function naive.mul(s, c) submit(s, c, { "mul", c[3] }) end
function naive.sum(s, c) submit(s, c, { "sum", c[3] }) end
function naive.record(s, c)
  s.records = s.records + 1
  s.events[c[3]] = s.records
  submit(s, c, { "record", s.records })
end
function naive.wait(s, c) submit(s, c, { "wait", s.events[c[3]] }) end
function naive.note(s, _, task) s.noted = s.noted * 5 + task.number end
function naive.add_if(s, c) if s.noted % 2 == 1 then submit(s, c, { "add", c[3], 7 }) end end
function naive.read(s, c)
  submit(s, c, { "read", c[3] })
  s.stands, s.reads = c[2], true
end
function naive.synchronize(s, c) s.stands = c[2] end

local step_list

-- One thing that a task does in its turn: "goes on"; or how the turn ends: "waits", "yields", "over".
local function step_task(s, task)
  if task.inner then
    local came = step_list(s, task.inner, task)
    if came == "stuck" then return "waits" end
    if came == "over" then task.inner, task.has_moved = nil, true end
    return "goes on"
  end
  if task.waits then
    if not is_over(s, task.waits) then return "waits" end
    task.waits, task.has_moved = nil, true
    return "goes on"
  end
  local c = task.code[task.pc]
  if not c then
    task.is_over, task.has_moved = true, true
    return "over"
  end
  task.pc = task.pc + 1
  if c[1] == "yield" then return "yields" end
  if c[1] == "run" then task.inner = new_list(c, 2, 2)
  elseif c[1] == "await_event" or c[1] == "await_stream" then
    local what = c[1] == "await_event" and { event = c[2] } or { stream = c[2] }
    if not is_over(s, what) then
      task.waits = what
      return "waits"
    end
  else naive[c[1]](s, c, task) end
  return "goes on"
end

local function end_round(list, outer)
  local is_stuck = list.waits and not list.has_moved and (list.yielded_before or not list.yields)
  list.yielded_before = list.yields and not list.has_moved
  if outer and list.has_moved then outer.has_moved = true end
  list.at, list.waits, list.yields, list.has_moved = 1, false, false, false
  return is_stuck and "stuck" or nil
end

-- One thing that the host does, in the turn of one task. "over", or "stuck": the tasks around it have their turns.
function step_list(s, list, outer)
  local task = list[list.at]
  if not task then
    for _, each in ipairs(list) do if not each.is_over then return end_round(list, outer) end end
    return "over"
  end
  if not task.is_over then
    if not list.in_turn then list.in_turn, task.has_moved = true, false end
    local came = step_task(s, task)
    if came == "goes on" then return nil end
    list.in_turn = false
    list.has_moved = list.has_moved or task.has_moved
    list.waits = list.waits or came == "waits"
    list.yields = list.yields or came == "yields"
  end
  list.at = list.at + 1
end

local function step_host(s)
  if s.stands then
    if #s.queues[s.stands] > 0 then return false end
    if s.reads then s.noted = s.noted + s.got end
    s.stands, s.reads, s.got = nil, nil, nil
  elseif step_list(s, s.host) == "over" then s.is_over = true end
  return true
end

local function step_stream(s, queue)
  local work = queue[1]
  local kind, i = work[1], work[2]
  if kind == "wait" and not s.done[i] then return false end
  if kind == "add" then s.x[i] = s.x[i] + work[3]
  elseif kind == "mul" then s.x[i] = s.x[i] * 3
  elseif kind == "sum" then s.x[i] = s.x[i] + s.x[3 - i]
  elseif kind == "read" then s.got = s.x[i]
  elseif kind == "record" then s.done[i] = true end
  table.remove(queue, 1)
  return true
end

-- All states, each once.
local function by_brute_force(p)
  local first = { queues = {}, x = { 1, 2 }, events = { 0, 0 }, done = { [0] = true }, records = 0, noted = 0,
                  host = new_list(p.starts, 1, 0) }
  for i = 1, p.streams do first.queues[i] = {} end
  local waiting, met, found = { first }, {}, {}
  local function add(s)
    local out = {}
    write(s, out)
    local key = table.concat(out, " ")
    if met[key] then return end
    met[key] = true
    waiting[#waiting + 1] = s
  end
  while #waiting > 0 do
    local s = table.remove(waiting)
    local is_idle = s.is_over
    for i = 1, p.streams do
      if #s.queues[i] > 0 then
        is_idle = false
        local after = copy(s)
        if step_stream(after, after.queues[i]) then add(after) end
      end
    end
    if is_idle then found[("%d %d %d"):format(s.noted, s.x[1], s.x[2])] = true end
    local after = copy(s)
    if not s.is_over and step_host(after) then add(after) end
  end
  local list = {}
  for text in pairs(found) do list[#list + 1] = text end
  table.sort(list)
  return table.concat(list, "\n")
end

-- ---------------------------------------------------------------- both

TestRandom = {}

local function outcomes(result)
  local list = {}
  for i, outcome in ipairs(result.outcomes) do list[i] = outcome.value or outcome.error end
  table.sort(list)
  return table.concat(list, "\n")
end

function TestRandom.test_the_outcomes_of_all_interleavings()
  local several = 0
  for seed = FIRST, FIRST + COUNT - 1 do
    local p, label = new_program(seed), "seed " .. seed
    local result, fn = explored(p)
    lu.assertTrue(result.complete, label .. ": " .. (result.incomplete or ""))
    lu.assertEquals(outcomes(result), by_brute_force(p), label)
    for i = 1, math.min(#result.outcomes, 4) do
      local o = result.outcomes[i]
      lu.assertEquals(mr.replay(o.schedule, fn), o.value, label)
    end
    several = several + (#result.outcomes > 1 and 1 or 0)
  end
  lu.assertTrue(several >= COUNT // 3)
end

os.exit(lu.LuaUnit.run())
