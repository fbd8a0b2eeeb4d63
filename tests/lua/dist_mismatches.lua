-- Random programs of ranks that may not match: another operation, count, dtype, op or root on one rank, another order
-- of communicators, a rank that leaves early, messages without peers. A model of NCCL's rules carries the ranks out as
-- far as they get (R62, R63, R66). The error is one that the model has. A mismatch names two ranks, their lines and the
-- difference. A deadlock names each rank that waits, its line, its communicator and the ranks that it waits for.
-- Afterwards the machine can be used.
--
-- MR_DIST_PROGRAMS sets how many (400), MR_DIST_SEED the first seed.
-- options: --device virtual:4
-- virtual only: four devices
-- not checked: a program that ends by an error leaves work behind that nobody waits for
-- not replayed: choosers are switched in the middle
local mr = require "millrace"
local T = require "millrace.testing"
local dist = mr.dist

T.rule("dist_mismatches")

local COUNT = tonumber(os.getenv("MR_DIST_PROGRAMS")) or (os.getenv("MILLRACE_LONG") and 4000 or 400)
local FIRST = tonumber(os.getenv("MR_DIST_SEED")) or 1
local CHOOSERS = { "timed", "random:7", "adversarial", "manual" }
local KINDS = { "all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all" }
local REDUCES = { all_reduce = true, reduce = true, reduce_scatter = true }
local ROOTED = { broadcast = true, reduce = true }

local random = math.random
local function pick(list) return list[random(#list)] end

local function shuffled(n)
  local list = {}
  for k = 1, n do table.insert(list, random(k), k) end
  return list
end

-- ---------------------------------------------------------------- programs

-- Each rank has a list of steps. A step is a collective, or a list of messages in one group: {g=, kind=, ...} or
-- {g=, messages = {{way=, peer=, count=, dtype=}, ...}}. Ranks count from 1.
local function new_collective(g, group)
  local kind = pick(KINDS)
  return { g = g, kind = kind, count = random(3), dtype = pick{ "f32", "i32" },
    op = REDUCES[kind] and pick{ "sum", "max" }, root = ROOTED[kind] and pick(group) or nil, async = random(3) == 1 }
end

local function copy(step)
  local new = {}
  for k, v in pairs(step) do new[k] = v end
  return new
end

local function add_messages(g, group, ranks)
  local steps = {}
  for _ = 1, random(3) do
    local from, to, count, dtype = pick(group), pick(group), random(3), pick{ "f32", "i32" }
    for way, side in pairs{ send = { from, to }, recv = { to, from } } do
      local r, peer = side[1], side[2]
      if not steps[r] then
        steps[r] = { g = g, messages = {} }
        table.insert(ranks[r], steps[r])
      end
      table.insert(steps[r].messages, { way = way, peer = peer, count = count, dtype = dtype })
    end
  end
end

local MISTAKES = {
  function(list) table.remove(list, random(#list)) end,
  function(list) list[#list] = nil end,
  function(list)
    local i, k = random(#list), random(#list)
    list[i], list[k] = list[k], list[i]
  end,
  function(list)
    local step = pick(list)
    if step.messages then step = pick(step.messages) end
    step.count = random(3)
  end,
  function(list)
    local step = pick(list)
    if step.messages then step = pick(step.messages) end
    step.dtype = pick{ "f32", "i32" }
  end,
  function(list)
    local step = pick(list)
    if step.op then step.op = pick{ "sum", "max" } end
  end,
  function(list, groups)
    local step = pick(list)
    if step.root then step.root = pick(groups[step.g]) end
  end,
  function(list)
    local step = pick(list)
    if step.messages and #step.messages > 1 then table.remove(step.messages, random(#step.messages)) end
  end,
  function(list, groups, r) -- both send first
    local i = random(#list)
    local step = list[i]
    if not step.messages or #step.messages < 2 then return end
    list[i] = { g = step.g, messages = { table.remove(step.messages, 1) } }
    table.insert(list, i + 1, step)
    return groups, r
  end,
}

local function new_program()
  local n, groups, ranks = random(2, 4), {}, {}
  for k = 1, random(3) do
    local list = k == 1 and {} or shuffled(n)
    for r = 1, k == 1 and n or 0 do list[r] = r end
    for i = n, k == 1 and n + 1 or random(n) + 1, -1 do list[i] = nil end
    groups[k] = list
  end
  for r = 1, n do ranks[r] = {} end
  for _ = 1, random(5) do
    local g = random(#groups)
    if random(3) == 1 then
      add_messages(g, groups[g], ranks)
    else
      local step = new_collective(g, groups[g])
      for _, r in ipairs(groups[g]) do table.insert(ranks[r], copy(step)) end
    end
  end
  for _ = 1, random(0, 2) do
    local r = random(n)
    if #ranks[r] > 0 then pick(MISTAKES)(ranks[r], groups, r) end
  end
  return { n = n, groups = groups, ranks = ranks }
end

local function options(step)
  local list = { ("group = g[%d]"):format(step.g) }
  if step.op then list[#list + 1] = ("op = %q"):format(step.op) end
  if step.async then list[#list + 1] = "async = true" end
  return "{" .. table.concat(list, ", ") .. "}"
end

local function call_text(step, size)
  local function new(n) return ("mr.zeros(%d, {dtype = %q})"):format(n, step.dtype) end
  local own, whole = new(step.count), new(step.count * size)
  local arguments = ({ all_gather = whole .. ", " .. own, reduce_scatter = own .. ", " .. whole,
    all_to_all = whole .. ", " .. whole })[step.kind] or own
  if step.root then arguments = arguments .. ", " .. step.root - 1 end
  return ("mr.dist.%s(%s, %s)%s"):format(step.kind, arguments, options(step), step.async and ":wait()" or "")
end

local function message_text(g, message)
  return ("mr.dist.%s(mr.zeros(%d, {dtype = %q}), %d, {group = g[%d]})"):format(message.way, message.count,
    message.dtype, message.peer - 1, g)
end

-- Each step has a line of its own, step.line.
local function text_of(p)
  local lines = { "local mr, rank = require 'millrace', ...", "local g = {}" }
  for k, group in ipairs(p.groups) do
    local list = {}
    for i, r in ipairs(group) do list[i] = r - 1 end
    lines[#lines + 1] = ("g[%d] = mr.dist.new_group{%s}"):format(k, table.concat(list, ", "))
  end
  for r, steps in ipairs(p.ranks) do
    lines[#lines + 1] = ("if rank == %d then"):format(r - 1)
    for _, step in ipairs(steps) do
      local calls = {}
      for i, message in ipairs(step.messages or {}) do calls[i] = message_text(step.g, message) end
      local text = step.kind and call_text(step, #p.groups[step.g])
        or ("mr.nccl.group(function() %s end)"):format(table.concat(calls, " "))
      lines[#lines + 1] = text
      step.line = #lines
    end
    lines[#lines + 1] = "end"
  end
  return table.concat(lines, "\n")
end

-- ---------------------------------------------------------------- NCCL's rules

local function differ(a, b)
  for _, key in ipairs{ "kind", "count", "dtype", "op", "root" } do
    if a[key] ~= b[key] then return key end
  end
end

local function differ_messages(a, b) return a.count ~= b.count and "count" or a.dtype ~= b.dtype and "dtype" end

local function shown(key, value) return key == "root" and "root " .. value - 1 or tostring(value) end

-- The messages of rank `from` to `to`, or those that `to` expects, in its present step on the communicator.
local function messages_of(now, r, g, way, peer)
  local list, step = {}, now[r]
  for _, message in ipairs(step and step.g == g and step.messages or {}) do
    if message.way == way and message.peer == peer then list[#list + 1] = message end
  end
  return list
end

-- Message i of the present step of rank r: its peer's, if that has come. Each counts its own from 1.
local function peer_of(now, r, message)
  local step = now[r]
  local other = message.way == "send" and "recv" or "send"
  for i, one in ipairs(messages_of(now, r, step.g, message.way, message.peer)) do
    if one == message then return messages_of(now, message.peer, step.g, other, r)[i] end
  end
end

-- The ranks whose messages all have peers, whose messages all have peers, ...
local function complete_messages(now, n)
  local complete = {}
  for r = 1, n do complete[r] = now[r] ~= nil and now[r].messages ~= nil end
  local changed = true
  while changed do
    changed = false
    for r = 1, n do
      for _, message in ipairs(complete[r] and now[r].messages or {}) do
        local peer = peer_of(now, r, message)
        if complete[r] and not (peer and complete[message.peer] and not differ_messages(message, peer)) then
          complete[r], changed = false, true
        end
      end
    end
  end
  return complete
end

-- Carries the program out as far as it gets. Returns the step where each rank then stands (nil: it has ended), and all
-- pairs of calls that do not match, { ranks and words }.
local function carry_out(p)
  local at, now, wrong = {}, {}, {}
  for r = 1, p.n do at[r] = 1 end
  local function look()
    for r = 1, p.n do now[r] = p.ranks[r][at[r]] end
  end
  local function find_mismatches()
    for a = 1, p.n do
      for b = 1, p.n do
        local x, y = now[a], now[b]
        if a ~= b and x and y and x.g == y.g and x.kind and y.kind then
          local key = differ(x, y)
          if key then wrong[#wrong + 1] = { a, b, shown(key, x[key]), shown(key, y[key]) } end
        end
      end
      for _, message in ipairs(now[a] and now[a].messages or {}) do
        local peer = message.way == "send" and peer_of(now, a, message)
        if peer then
          local key = differ_messages(message, peer)
          if key then wrong[#wrong + 1] = { a, message.peer, tostring(message[key]), tostring(peer[key]) } end
        end
      end
    end
  end
  repeat
    look()
    local moved = false
    for g, group in ipairs(p.groups) do
      local all, first = true, now[group[1]]
      for _, r in ipairs(group) do
        all = all and now[r] and now[r].g == g and now[r].kind ~= nil and not differ(first, now[r])
      end
      for _, r in ipairs(all and group or {}) do at[r], moved = at[r] + 1, true end
    end
    if not moved then
      for r, is_complete in ipairs(complete_messages(now, p.n)) do
        if is_complete then at[r], moved = at[r] + 1, true end
      end
    end
  until not moved
  find_mismatches()
  return now, wrong
end

-- ---------------------------------------------------------------- judging

-- "rank 1, 3" after this text of the message; a set.
local function ranks_after(text, from)
  local set = {}
  for number in (text:match("^ranks? ([%d, ]+)", from) or ""):gmatch "%d+" do set[tonumber(number) + 1] = true end
  return set
end

local function name_of(p, g)
  local list = {}
  for i, r in ipairs(p.groups[g]) do list[i] = r - 1 end
  return ("communicator `group %d of ranks %s`"):format(g, table.concat(list, ", "))
end

-- For whom a rank may say that it waits.
local function lacks(p, now, r)
  local step, set = now[r], {}
  if step.kind then
    for _, other in ipairs(p.groups[step.g]) do
      local there = now[other]
      if not (there and there.g == step.g and there.kind) then set[other] = true end
    end
  else
    for _, message in ipairs(step.messages) do set[message.peer] = true end
  end
  return set
end

-- The deadlock in the message, or false and the mistake.
local function check_deadlock(p, now, text)
  for r = 1, p.n do
    local start, stop = text:find(("rank %d waits in `[%%a_ ]+` at m%%.lua:"):format(r - 1))
    if not now[r] then
      if start then return false, "an ended rank waits" end
    else
      if not start then return false, "a rank is not named" end
      local line = tonumber(text:match("^%d+", stop + 1))
      if line ~= now[r].line then return false, "another line" end
      local _, behind = text:find(name_of(p, now[r].g) .. ", for ", stop, true)
      if not behind then return false, "another communicator" end
      local missing, named = lacks(p, now, r), ranks_after(text, behind + 1)
      if next(named) == nil then return false, "no rank to wait for" end
      for other in pairs(named) do
        if not missing[other] then return false, "waits for another rank" end
      end
      for other in pairs(now[r].kind and missing or {}) do
        if not named[other] then return false, "a missing rank is not named" end
      end
    end
  end
  return true
end

local function check_mismatch(p, now, wrong, text)
  for _, one in ipairs(wrong) do
    local a, b = one[1], one[2]
    if text:find("rank " .. a - 1 .. " submits", 1, true) and text:find("and rank " .. b - 1 .. " ", 1, true)
      and text:find("m.lua:" .. now[a].line, 1, true) and text:find("m.lua:" .. now[b].line, 1, true)
      and text:find(one[3], 1, true) and text:find(one[4], 1, true)
      and text:find(name_of(p, now[a].g), 1, true) then
      return true
    end
  end
  return false, "the message names no pair of these"
end

-- An asynchronous collective that was submitted may still use memory that nobody keeps: its rank was to wait, and got
-- the error instead.
local function assert_usable(seed)
  for k = 1, 4 do mr.synchronize(k - 1) end
  if seed % 5 == 0 then mr.reset() end
  local sums = dist.spawn(2, function(rank)
    local t = mr.full(3, rank + 1.0)
    dist.all_reduce(t)
    return t:sum():item()
  end)
  T.check(sums[1] == 9.0 and sums[2] == 9.0,
    ("seed %d: the next program has other sums: %s, %s"):format(seed, sums[1], sums[2]))
end

local tally = { fine = 0, deadlock = 0, ["collective-mismatch"] = 0 }

local function check_program(seed)
  math.randomseed(seed)
  mr.machine.chooser(pick(CHOOSERS))
  local p = new_program()
  local text = text_of(p)
  local now, wrong = carry_out(p)
  local fine, err = pcall(dist.spawn, p.n, assert(load(text, "=m.lua")))
  local label = ("seed %d:\n%s\n%s\n"):format(seed, text, tostring(err))
  if #wrong > 0 then
    T.check(not fine and err.code == "collective-mismatch", label .. "expected a mismatch")
    local ok, why = check_mismatch(p, now, wrong, tostring(err))
    T.check(ok, label .. tostring(why))
    tally[err.code] = tally[err.code] + 1
  elseif next(now) ~= nil then
    T.check(not fine and err.code == "deadlock", label .. "expected a deadlock")
    local ok, why = check_deadlock(p, now, tostring(err))
    T.check(ok, label .. tostring(why))
    tally[err.code] = tally[err.code] + 1
  else
    T.check(fine, label)
    tally.fine = tally.fine + 1
  end
  assert_usable(seed)
end

for seed = FIRST, FIRST + COUNT - 1 do check_program(seed) end
mr.machine.chooser "timed"
for what, count in pairs(tally) do T.at_least(count, COUNT // 20, "programs: " .. what) end
