-- Random SPMD programs, as texts of Lua: ranks with collectives, messages and streams. The same is done by one script
-- that has the tensors of all ranks and neither streams nor collectives.
--
-- A program is made step by step, beside a simple judge that knows, for each operation of each rank, the set of all
-- operations before it. Where a step would race, the program gets a wait first; a program with `races` may leave it
-- out. The judge shares no code with the checker: what it finds is in `hazards`.
--
-- Easiest to break: the order. A stream that is not blocking has no part in the default stream's barrier (R3). A member
-- of a collective comes after the predecessors of the members whose data it gets (R61). A host knows only the work that
-- it has waited for itself.
local spmd = {}

local LENGTH = 24 -- elements of each tensor; 1 to 4 ranks divide it
local TENSORS = 4 -- of each rank
local STREAMS = 3 -- 1: of its own, 2: a blocking one, 3: the default stream
local BLOCKING, DEFAULT = 2, 3
local DTYPES = { "f32", "f64", "f16", "bf16", "i32", "i64", "u8", "bool" }
local KINDS = { "all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all" }
local REDUCES = { all_reduce = true, reduce = true, reduce_scatter = true }

local random = math.random
local function pick(list) return list[random(#list)] end

local function shuffled(n)
  local list = {}
  for k = 1, n do table.insert(list, random(k), k) end
  return list
end

local function join(set, other)
  for node in pairs(other) do set[node] = true end
  return set
end

-- ---------------------------------------------------------------- the judge

local judge = {}
judge.__index = judge

local function new_judge(n)
  local j = { lane = {}, host = {}, released = {}, last = {}, nodes = {}, hazards = {}, count = 0 }
  for r = 1, n do
    j.lane[r], j.host[r], j.released[r], j.last[r], j.nodes[r] = {}, {}, {}, {}, {}
    for s = 1, STREAMS do j.lane[r][s] = {} end
  end
  return setmetatable(j, judge)
end

-- The predecessors of anything that the stream is given now. Streams of groups have names.
function judge:before(r, s)
  local set = join(join({}, self.host[r]), self.lane[r][s] or {})
  if s == DEFAULT then join(set, self.lane[r][BLOCKING]) elseif s == BLOCKING then join(set, self.released[r]) end
  return set
end

function judge:give(r, s, set)
  self.lane[r][s] = set
  if s == DEFAULT then self.released[r] = join({}, set) end
end

local function meet(x, y)
  return (x.writes or y.writes) and x.tensor == y.tensor and x.first <= y.last and y.first <= x.last
end

-- The streams of what races with these accesses, and the tensors. Operations of one rank only: no other touches them.
function judge:races(r, set, accesses)
  local streams, tensors = {}, {}
  for _, node in ipairs(self.nodes[r]) do
    for _, x in ipairs(set[node] and {} or node.accesses) do
      for _, y in ipairs(accesses) do
        if meet(x, y) then streams[node.stream], tensors[y.tensor] = true, true end
      end
    end
  end
  return streams, tensors
end

function judge:enter(r, s, set, accesses, line)
  local _, tensors = self:races(r, set, accesses)
  for tensor in pairs(tensors) do
    self.hazards[line .. " " .. tensor] = true
    self.count = self.count + 1
    self.first = self.first or {}
    self.first[r] = self.first[r] or line
  end
  local node = { accesses = accesses, stream = s }
  table.insert(self.nodes[r], node)
  set[node] = true
  self:give(r, s, set)
end

function judge:record(r, s)
  local set = self:before(r, s)
  self:give(r, s, join({}, set))
  return set
end

function judge:wait(r, s, set) self:give(r, s, join(self:before(r, s), set)) end

function judge:synchronize(r, s) join(self.host[r], s and self.lane[r][s] or {}) end

function judge:synchronize_all(r)
  for _, set in pairs(self.lane[r]) do join(self.host[r], set) end
end

-- members: { {r=, s=, accesses=, line=, from = members} }. All operations of a communicator come one after the other.
function judge:meeting(group, members)
  local befores = {}
  for _, m in ipairs(members) do
    local last = self.last[m.r][group]
    if last and last.s ~= m.s then self:wait(m.r, m.s, last.set) end
  end
  for k, m in ipairs(members) do befores[k] = self:before(m.r, m.s) end
  for k, m in ipairs(members) do
    self:enter(m.r, m.s, join({}, befores[k]), m.accesses, m.line)
    for _, from in ipairs(m.from) do join(self.lane[m.r][m.s], befores[from]) end
    self:give(m.r, m.s, self.lane[m.r][m.s])
  end
  for _, m in ipairs(members) do self.last[m.r][group] = { s = m.s, set = self:record(m.r, m.s) } end
end

-- ---------------------------------------------------------------- texts

local maker = {}
maker.__index = maker

-- Each rank has a line of its own. Gives its number.
function maker:line(r, text, ...)
  table.insert(self.text, ("if rank == %d then %s end"):format(r - 1, text:format(...)))
  return #self.text
end

function maker:alone(text, ...) table.insert(self.single, text:format(...)) end

local function access(r, i, writes, first, count)
  return { tensor = ("x%d_%d"):format(r - 1, i), writes = writes, first = first or 1,
    last = (first or 1) + (count or LENGTH) - 1 }
end

-- ---------------------------------------------------------------- order

-- Makes `s` wait for stream `of` of the same rank, in one of the ways that there are.
function maker:order(r, s, of)
  local j, work = self.judge, self.works[r][of]
  if work then -- the stream of a group
    local how = random(3)
    if how == 1 then
      self:line(r, "w[%d]:wait(s[%d])", work, s)
      j:wait(r, s, self.records[work])
    elseif how == 2 then
      self:line(r, "w[%d]:synchronize()", work)
      join(j.host[r], self.records[work])
    else
      self:line(r, "s[%d]:run(function() w[%d]:wait() end)", s, work)
      j:wait(r, s, self.records[work])
    end
    return
  end
  local how = random(self.races and 4 or 5)
  if how == 1 then
    self:line(r, "s[%d]:wait_stream(s[%d])", s, of)
    j:wait(r, s, j:record(r, of))
  elseif how == 2 then
    self:line(r, "e:record(s[%d]) s[%d]:wait_event(e)", of, s)
    j:wait(r, s, j:record(r, of))
  elseif how == 3 then
    self:line(r, "s[%d]:synchronize()", of)
    j:synchronize(r, of)
  elseif how == 4 then
    self:line(r, "mr.synchronize()")
    j:synchronize_all(r)
  else -- the host asks until it is done
    self:line(r, "local v = s[%d]:record_event() while not v:query() do mr.spin{ms = 0.01} end", of)
    join(j.host[r], j:record(r, of))
  end
end

-- Orders `s` behind all that these accesses would race with; or does not, where the program may race.
function maker:prepare(r, s, accesses)
  local of
  repeat
    local found = self.judge:races(r, self.judge:before(r, s), accesses)
    local names = {}
    for name in pairs(found) do names[#names + 1] = name end
    table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
    of = names[1]
    if of and self.races and random(5) == 1 then return end
    if of then self:order(r, s, of) end
  until not of
end

-- ---------------------------------------------------------------- steps of one rank

local steps = {}

local function constant(dtype)
  if dtype == "bool" then return tostring(random(2) == 1) end
  return dtype:find "^[iu]" and tostring(random(0, 3)) or ("%.3f"):format(random() * 2)
end

-- In the text, X is the list of the rank's tensors.
function maker:compute(r, s, text, accesses)
  self:prepare(r, s, accesses)
  local line = self:line(r, "s[%d]:run(function() %s end)", s, (text:gsub("X", "x")))
  self.judge:enter(r, s, self.judge:before(r, s), accesses, line)
  self:alone("%s", (text:gsub("X", ("x[%d]"):format(r))))
end

function steps.compute(m)
  local r, s, i, k = random(m.n), random(STREAMS), random(TENSORS), random(TENSORS)
  local kind = random(5)
  if kind == 1 and i ~= k then
    m:compute(r, s, ("X[%d]:copy_(X[%d])"):format(i, k), { access(r, k), access(r, i, true) })
  elseif kind == 2 then
    local first = random(LENGTH)
    local count = random(LENGTH - first + 1)
    m:compute(r, s, ("X[%d]:narrow(1, %d, %d):fill_(%s)"):format(i, first, count, constant(m.dtype)),
      { access(r, i, true, first, count) })
  elseif m.dtype == "bool" then
    m:compute(r, s, ("X[%d]:fill_(%s)"):format(i, constant "bool"), { access(r, i, true) })
  elseif kind <= 4 and i ~= k then
    m:compute(r, s, ("X[%d]:add_(X[%d])"):format(i, k), { access(r, k), access(r, i, true) })
  else
    m:compute(r, s, ("X[%d]:%s(%s)"):format(i, pick{ "add_", "mul_" }, constant(m.dtype)), { access(r, i, true) })
  end
end

-- Memory of a scratch tensor, which later ones get.
function steps.scratch(m)
  local r, s, i, k = random(m.n), random(STREAMS), random(TENSORS), random(TENSORS)
  if i == k then return end
  m:compute(r, s, ("local t = X[%d]:clone() X[%d]:copy_(t) t:free()"):format(i, k),
    { access(r, i), access(r, k, true) })
end

-- A tensor is freed behind its last use, and another one takes its place.
function steps.renew(m)
  local r, s, i = random(m.n), random(STREAMS), random(TENSORS)
  if m.races then return end
  m:compute(r, s, ("X[%d]:free{stream = mr.current_stream()} X[%d] = mr.full(%d, %s, {dtype = %q})"):format(i, i,
    LENGTH, constant(m.dtype), m.dtype), { access(r, i, true) })
end

function steps.delay(m)
  local r, s = random(m.n), random(STREAMS)
  m:line(r, "mr.spin{ms = %d, stream = s[%d]}", random(3), s)
  m.judge:record(r, s) -- work like any other
end

function steps.ask(m)
  local r = random(m.n)
  local groups = {}
  for name in pairs(m.works[r]) do groups[#groups + 1] = name end
  table.sort(groups)
  if m.races or #groups == 0 then return end
  m:line(r, "local _ = w[%d]:is_completed()", m.works[r][pick(groups)])
end

function steps.event(m)
  local r, s, z = random(m.n), random(STREAMS), random(STREAMS)
  m:line(r, "e:record(s[%d]) s[%d]:wait_event(e)", s, z)
  m.judge:wait(r, z, m.judge:record(r, s))
end

function steps.synchronize(m)
  local r, s = random(m.n), random(STREAMS)
  m:line(r, "s[%d]:synchronize()", s)
  m.judge:synchronize(r, s)
end

-- ---------------------------------------------------------------- steps of several ranks

local function all_but(k, count)
  local list = {}
  for i = 1, count do if i ~= k then list[#list + 1] = i end end
  return list
end

local OPS = { bool = { "sum", "prod", "min", "max" } }

-- What rank k of the group does with which tensors: text of the call, accesses, and how the naive script does it.
-- `t[k]` and `o[k]` are numbers of tensors of that rank, different ones.
local COLLECTIVES = {}

local function reduce_text(op, list)
  local parts = { ("local v = %s:clone()"):format(list[1]) }
  for k = 2, #list do parts[#parts + 1] = ("v = combine(v, %s, %q)"):format(list[k], op) end
  if op == "avg" then parts[#parts + 1] = ("v = mean(v, %d)"):format(#list) end
  return table.concat(parts, " ")
end

local function names(group, numbers)
  local list = {}
  for k, r in ipairs(group.ranks) do list[k] = ("x[%d][%d]"):format(r, numbers[k]) end
  return list
end

function COLLECTIVES.all_reduce(m, group, t, _, op)
  local whole = names(group, t)
  m:alone("do %s for _, y in ipairs{%s} do y:copy_(v) end end", reduce_text(op, whole), table.concat(whole, ", "))
  return function(k, r)
    return ("x[%d]"):format(t[k]), { access(r, t[k], true) }
  end
end

function COLLECTIVES.broadcast(m, group, t, _, _, root)
  local whole = names(group, t)
  for k in ipairs(whole) do
    if k ~= root then m:alone("%s:copy_(%s)", whole[k], whole[root]) end
  end
  return function(k, r)
    return ("x[%d], %d"):format(t[k], group.ranks[root] - 1), { access(r, t[k], k ~= root) }
  end
end

function COLLECTIVES.reduce(m, group, t, _, op, root)
  local whole = names(group, t)
  m:alone("do %s %s:copy_(v) end", reduce_text(op, whole), whole[root])
  return function(k, r)
    return ("x[%d], %d"):format(t[k], group.ranks[root] - 1), { access(r, t[k], k == root) }
  end
end

local function part(name, k, count) return ("%s:narrow(1, %d, %d)"):format(name, (k - 1) * count + 1, count) end

function COLLECTIVES.all_gather(m, group, t, o)
  local count, from, to = LENGTH // #t, names(group, t), names(group, o)
  for k in ipairs(to) do
    for i in ipairs(from) do m:alone("%s:copy_(%s)", part(to[k], i, count), part(from[i], 1, count)) end
  end
  return function(k, r)
    return ("x[%d], %s"):format(o[k], part(("x[%d]"):format(t[k]), 1, count)),
      { access(r, t[k], false, 1, count), access(r, o[k], true) }
  end
end

function COLLECTIVES.reduce_scatter(m, group, t, o, op)
  local count, from, to = LENGTH // #t, names(group, t), names(group, o)
  local copies = {}
  for k in ipairs(to) do copies[k] = ("%s:copy_(%s)"):format(part(to[k], 1, count), part("v", k, count)) end
  m:alone("do %s %s end", reduce_text(op, from), table.concat(copies, " "))
  return function(k, r)
    return ("%s, x[%d]"):format(part(("x[%d]"):format(o[k]), 1, count), t[k]),
      { access(r, t[k]), access(r, o[k], true, 1, count) }
  end
end

function COLLECTIVES.all_to_all(m, group, t, o)
  local count, from, to = LENGTH // #t, names(group, t), names(group, o)
  for k in ipairs(to) do
    for i in ipairs(from) do m:alone("%s:copy_(%s)", part(to[k], i, count), part(from[i], k, count)) end
  end
  return function(k, r)
    return ("x[%d], x[%d]"):format(o[k], t[k]), { access(r, t[k]), access(r, o[k], true) }
  end
end

local function braced(list) return #list == 0 and "" or (", {%s}"):format(table.concat(list, ", ")) end

-- One collective of a group of ranks: each rank on a stream of its choice, or with a work.
function steps.collective(m)
  local group, kind = pick(m.groups), pick(KINDS)
  local size = #group.ranks
  local op = pick(OPS[m.dtype] or { "sum", "prod", "min", "max", "avg" })
  local root, t, o = random(size), {}, {}
  for k = 1, size do
    local two = shuffled(TENSORS)
    t[k], o[k] = two[1], two[2]
  end
  local plan = COLLECTIVES[kind](m, group, t, o, op, root)
  local members = {}
  for k, r in ipairs(group.ranks) do
    local arguments, accesses = plan(k, r)
    local list, from, s, async = {}, all_but(k, size), random(STREAMS), random(2) == 1
    if REDUCES[kind] and op ~= "sum" then list[#list + 1] = ("op = %q"):format(op) end
    if group.number > 0 then list[#list + 1] = ("group = g[%d]"):format(group.number) end
    if kind == "broadcast" then from = k ~= root and { root } or {} end
    if kind == "reduce" and k ~= root then from = {} end
    m:prepare(r, s, accesses)
    local call = ("mr.dist.%s(%s"):format(kind, arguments)
    if async then
      list[#list + 1] = "async = true"
      m.made = m.made + 1
      m:line(r, "s[%d]:run(function() w[%d] = %s%s) end)", s, m.made, call, braced(list))
      local own = group.name
      m.judge.lane[r][own] = m.judge.lane[r][own] or {}
      m.judge:wait(r, own, m.judge:record(r, s))
      members[k] = { r = r, s = own, accesses = accesses, line = #m.text, from = from, work = m.made }
    else
      m:line(r, "s[%d]:run(function() %s%s) end)", s, call, braced(list))
      members[k] = { r = r, s = s, accesses = accesses, line = #m.text, from = from }
    end
  end
  m.judge:meeting(group.name, members)
  for _, member in ipairs(members) do
    if member.work then
      m.works[member.r][member.s] = member.work
      m.records[member.work] = m.judge:record(member.r, member.s)
    end
  end
end

-- Messages between ranks of a group, all in one call of mr.nccl.group.
function steps.messages(m)
  local group = pick(m.groups)
  local size, unused, calls, accesses, streams, from = #group.ranks, {}, {}, {}, {}, {}
  for k = 1, size do
    unused[k], calls[k], accesses[k], streams[k], from[k] = shuffled(TENSORS), {}, {}, random(STREAMS), {}
  end
  for _ = 1, random(size + 1) do
    local a, b, count = random(size), random(size), random(LENGTH)
    local x, y = table.remove(unused[a]), table.remove(unused[b])
    if not x or not y then break end
    local opts = group.number > 0 and (", {group = g[%d]}"):format(group.number) or ""
    local source, target = group.ranks[a], group.ranks[b]
    table.insert(calls[a], ("mr.dist.send(x[%d]:narrow(1, 1, %d), %d%s)"):format(x, count, target - 1, opts))
    table.insert(calls[b], ("mr.dist.recv(x[%d]:narrow(1, 1, %d), %d%s)"):format(y, count, source - 1, opts))
    table.insert(accesses[a], access(source, x, false, 1, count))
    table.insert(accesses[b], access(target, y, true, 1, count))
    table.insert(from[b], a)
    m:alone("x[%d][%d]:narrow(1, 1, %d):copy_(x[%d][%d]:narrow(1, 1, %d))", target, y, count, source, x, count)
  end
  local members, number = {}, {}
  for k, r in ipairs(group.ranks) do
    if #calls[k] > 0 then
      m:prepare(r, streams[k], accesses[k])
      m:line(r, "s[%d]:run(function() mr.nccl.group(function() %s end) end)", streams[k], table.concat(calls[k], " "))
      members[#members + 1] = { r = r, s = streams[k], accesses = accesses[k], line = #m.text, from = from[k] }
      number[k] = #members
    end
  end
  for _, member in ipairs(members) do
    for i, k in ipairs(member.from) do member.from[i] = number[k] end
  end
  -- Ranks that no message connects do not meet: that makes no difference here, nothing is `from` them.
  m.judge:meeting(group.name, members)
end

function steps.barrier(m)
  local group, members = pick(m.groups), {}
  for k, r in ipairs(group.ranks) do
    local s = random(STREAMS)
    local opts = group.number > 0 and ("{group = g[%d]}"):format(group.number) or ""
    m:line(r, "s[%d]:run(function() mr.dist.barrier(%s) end)", s, opts)
    members[k] = { r = r, s = s, accesses = {}, line = #m.text, from = all_but(k, #group.ranks) }
  end
  m.judge:meeting(group.name, members)
  for _, member in ipairs(members) do m.judge:synchronize(member.r, member.s) end
end

local WEIGHTS = { compute = 6, scratch = 2, renew = 1, delay = 1, ask = 1, event = 1, synchronize = 1, collective = 7,
  messages = 3, barrier = 1 }
local DRAWN = {}
for name, weight in pairs(WEIGHTS) do for _ = 1, weight do DRAWN[#DRAWN + 1] = name end end
table.sort(DRAWN)

-- ---------------------------------------------------------------- programs

local HEAD = [[
local mr = require "millrace"
local rank, N = mr.dist.rank(), %d
local x, s, g, w, e = {}, {}, {}, {}, mr.event()
s[1], s[2], s[3] = mr.stream{nonblocking = true}, mr.stream{nonblocking = false}, mr.default_stream(rank)]]

local ALONE = [[
local mr = require "millrace"
local x = {}
local function combine(a, b, op)
  if op == "min" then return mr.minimum(a, b) elseif op == "max" then return mr.maximum(a, b) end
  if a.dtype == "bool" then return op == "sum" and mr.maximum(a, b) or mr.minimum(a, b) end
  return op == "prod" and a * b or a + b
end
local function mean(v, n)
  if v.dtype:find "^[iu]" then return (v - v:fmod(n)):div(n):to(v.dtype) end
  return v / n
end]]

local function values(dtype)
  local list = {}
  for i = 1, LENGTH do
    if dtype == "bool" then list[i] = tostring(random(2) == 1)
    elseif dtype:find "^[iu]" then list[i] = tostring(random(0, 9))
    else list[i] = ("%.17g"):format(random() * 4 - 2) end
  end
  return table.concat(list, ", ")
end

-- The tensors of a rank as a text.
local TEXT = [[
local function text_of(list)
  local out = {}
  for i, t in ipairs(list) do
    local column = t:cpu():totable()
    for k, v in ipairs(column) do column[k] = math.type(v) == "float" and ("%a"):format(v) or tostring(v) end
    out[i] = table.concat(column, ",")
  end
  return table.concat(out, ";")
end]]

-- Returns {ranks=, dtype=, text=, alone=, hazards=, count=, first=}. text is that of a function of each rank, which
-- returns its tensors as a text. alone is that of a function that returns a list of these texts. hazards is a set of
-- "LINE NAME"; first is by rank from 1. options: ranks, races, steps (how many at most), dtype.
function spmd.make(seed, options)
  math.randomseed(seed)
  options = options or {}
  local n = options.ranks or random(4)
  local m = setmetatable({ n = n, races = options.races, text = {}, single = {}, works = {}, records = {}, made = 0,
    dtype = options.dtype or pick(DTYPES), judge = new_judge(n), groups = {} }, maker)
  for line in HEAD:format(n):gmatch "[^\n]+" do table.insert(m.text, line) end
  local all = {}
  for r = 1, n do
    all[r], m.works[r] = r, {}
    m:alone("x[%d] = {}", r)
    for i = 1, TENSORS do
      local list = values(m.dtype)
      m:line(r, "x[%d] = mr.tensor({%s}, {dtype = %q, name = 'x%d_%d'})", i, list, m.dtype, r - 1, i)
      m:alone("x[%d][%d] = mr.tensor({%s}, {dtype = %q})", r, i, list, m.dtype)
    end
  end
  table.insert(m.text, "mr.synchronize()")
  m.groups[1] = { ranks = all, number = 0, name = "g0" }
  for k = 1, random(0, 2) do
    local ranks, numbers = shuffled(n), {}
    for i = n, random(n) + 1, -1 do ranks[i] = nil end
    for i, r in ipairs(ranks) do numbers[i] = r - 1 end
    m.groups[k + 1] = { ranks = ranks, number = k, name = "g" .. k }
    table.insert(m.text, ("g[%d] = mr.dist.new_group{%s}"):format(k, table.concat(numbers, ", ")))
  end
  for _ = 1, random(4, options.steps or 24) do steps[pick(DRAWN)](m) end
  local tail = { "mr.synchronize()", TEXT, "return text_of(x)" }
  local single = { ALONE, table.concat(m.single, "\n"), TEXT,
    "local out = {}", "for r, list in ipairs(x) do out[r] = text_of(list) end", "return out" }
  return { ranks = n, dtype = m.dtype, text = table.concat(m.text, "\n") .. "\n" .. table.concat(tail, "\n"),
    alone = table.concat(single, "\n"), hazards = m.judge.hazards, count = m.judge.count, first = m.judge.first or {} }
end

return spmd
