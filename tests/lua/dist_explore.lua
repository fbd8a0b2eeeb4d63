-- The explorer on tiny programs of two ranks beside brute force: a device that does, at each moment, any command that
-- is first in its stream. A collective is one step, once the commands of both ranks are first, and those of its
-- communicator come in turn (R61, R64). Both find the same outcomes, also where the ranks' hosts wait. A wait of one
-- rank does not order the submissions of another, since the search tries the orders of the hosts, too.
--
-- MR_DIST_PROGRAMS sets how many (250), MR_DIST_SEED the first seed.
-- options: --device virtual:2
-- virtual only: two devices
-- not checked: most of its programs race
-- not replayed: ranks have a clock each
local mr = require "millrace"
local T = require "millrace.testing"
local dist = mr.dist

T.rule("dist_explore")

local COUNT = tonumber(os.getenv("MR_DIST_PROGRAMS")) or (os.getenv("MILLRACE_LONG") and 2500 or 250)
local FIRST = tonumber(os.getenv("MR_DIST_SEED")) or 1
local STREAMS, TENSORS = 2, 2 -- of each rank

local random = math.random

-- Commands in the order in which ranks call them: {kind=, r=, s=, x=, y=}. A collective has a list of these for each
-- rank, `r` is the root of a broadcast.
local function new_program()
  local commands = {}
  for i = 1, random(2, 6) do
    local kind = random(3)
    if kind == 1 then
      commands[i] = { kind = ({ "all_reduce", "broadcast", "max" })[random(3)], r = random(2),
        s = { random(STREAMS), random(STREAMS) }, x = { random(TENSORS), random(TENSORS) }, group = random(2) }
    elseif kind == 2 and random(3) == 1 then
      commands[i] = { kind = "wait", r = random(2), s = random(STREAMS) }
    elseif kind == 2 and random(3) == 1 then
      commands[i] = { kind = "sync", r = random(2), s = random(STREAMS) }
    else
      commands[i] = { kind = random(2) == 1 and "add" or "double", r = random(2), s = random(STREAMS),
        x = random(TENSORS), y = random(TENSORS) }
    end
  end
  return commands
end

local function initial(r, i) return r * 10 + i end

-- ---------------------------------------------------------------- by the explorer

local function run(commands)
  local came = dist.spawn(2, function(rank)
    local me, x, s = rank + 1, {}, {}
    local groups = { dist.new_group{ 0, 1 }, dist.new_group{ 1, 0 } }
    for i = 1, STREAMS do s[i] = mr.stream{ nonblocking = true } end
    for i = 1, TENSORS do x[i] = mr.full(1, initial(me, i), { dtype = "i64" }) end
    mr.synchronize()
    for _, c in ipairs(commands) do
      local is_collective = type(c.s) == "table"
      if is_collective then
        s[c.s[me]]:run(function()
          local t, group = x[c.x[me]], groups[c.group]
          if c.kind == "broadcast" then dist.broadcast(t, c.r - 1, { group = group })
          else dist.all_reduce(t, { group = group, op = c.kind == "max" and "max" or "sum" }) end
        end)
      elseif c.r ~= me then -- luacheck: ignore
      elseif c.kind == "wait" then s[c.s]:wait_stream(s[3 - c.s])
      elseif c.kind == "sync" then s[c.s]:synchronize()
      else s[c.s]:run(function() x[c.x]:add_(c.kind == "add" and x[c.y] or x[c.x]) end) end
    end
    return x
  end)
  local out = {}
  for r, x in ipairs(came) do
    mr.synchronize(r - 1)
    for i, t in ipairs(x) do x[i] = t:item() end
    out[r] = table.concat(x, ",")
  end
  return table.concat(out, ";")
end

-- ---------------------------------------------------------------- by brute force

-- A node for each command, `before`: nodes that come first. One of a collective stands for both ranks.
local function graph_of(commands)
  local nodes, lane, host, comm = {}, {}, { {}, {} }, {}
  local function key(r, s) return r * STREAMS + s end
  local function add(node, r, s)
    for _, other in ipairs{ lane[key(r, s)] or false, table.unpack(host[r]) } do
      if other then node.before[other] = true end
    end
  end
  for _, c in ipairs(commands) do
    local node = { c = c, before = {} }
    if c.kind == "sync" then
      table.insert(host[c.r], lane[key(c.r, c.s)])
    else
      nodes[#nodes + 1] = node
      if type(c.s) == "table" then
        if comm[c.group] then node.before[comm[c.group]] = true end
        comm[c.group] = node
        for r = 1, 2 do add(node, r, c.s[r]) end
        for r = 1, 2 do lane[key(r, c.s[r])] = node end
      else
        add(node, c.r, c.s)
        local other = c.kind == "wait" and lane[key(c.r, 3 - c.s)]
        if other then node.before[other] = true end
        lane[key(c.r, c.s)] = node
      end
    end
  end
  return nodes
end

local function carry_out(c, x)
  if c.kind == "all_reduce" or c.kind == "max" then
    local a, b = x[1][c.x[1]], x[2][c.x[2]]
    local v = c.kind == "max" and math.max(a, b) or a + b
    x[1][c.x[1]], x[2][c.x[2]] = v, v
  elseif c.kind == "broadcast" then
    x[3 - c.r][c.x[3 - c.r]] = x[c.r][c.x[c.r]]
  elseif c.kind ~= "wait" then
    x[c.r][c.x] = x[c.r][c.x] + x[c.r][c.kind == "add" and c.y or c.x]
  end
end

local function outcomes_of(commands)
  local nodes, found, done = graph_of(commands), {}, {}
  local function go_on(x, left)
    if left == 0 then
      found[table.concat(x[1], ",") .. ";" .. table.concat(x[2], ",")] = true
      return
    end
    for _, node in ipairs(nodes) do
      local is_first = not done[node]
      for other in pairs(node.before) do is_first = is_first and done[other] end
      if is_first then
        local after = { { table.unpack(x[1]) }, { table.unpack(x[2]) } }
        carry_out(node.c, after)
        done[node] = true
        go_on(after, left - 1)
        done[node] = nil
      end
    end
  end
  local x = { {}, {} }
  for r = 1, 2 do for i = 1, TENSORS do x[r][i] = initial(r, i) end end
  go_on(x, #nodes)
  return found
end

local function list_of(set)
  local list = {}
  for text in pairs(set) do list[#list + 1] = text end
  table.sort(list)
  return table.concat(list, " ")
end

local several = 0
for seed = FIRST, FIRST + COUNT - 1 do
  math.randomseed(seed)
  local commands = new_program()
  local result, came = mr.explore(function() return run(commands) end, { time = 1000 }), {}
  for _, outcome in ipairs(result.outcomes) do
    T.check(outcome.error == nil, ("seed %d: %s"):format(seed, outcome.error))
    came[outcome.value] = true
  end
  local expected = outcomes_of(commands)
  local label = ("seed %d: %s, expected %s"):format(seed, list_of(came), list_of(expected))
  T.check(list_of(came) == list_of(expected), label)
  T.check(result.complete, label .. "; " .. tostring(result.incomplete))
  several = several + (#result.outcomes > 1 and 1 or 0)
end
T.at_least(several, COUNT // 10, "programs with several outcomes")
