-- Random programs of computations, collectives and messages on 1 to 6 devices, under all choosers, beside a naive model
-- of their values. Each program has the waits that it needs, and no others: the checker finds none missing.
--
-- MR_NCCL_PROGRAMS sets how many (40 for each number of devices), MR_NCCL_SEED the first seed.
-- options: --device virtual:6
-- virtual only: six devices
-- not replayed: choosers are switched in the middle
local mr = require "millrace"
local T = require "millrace.testing"

T.rule("nccl_random")

local COUNT = tonumber(os.getenv("MR_NCCL_PROGRAMS")) or 40
local FIRST = tonumber(os.getenv("MR_NCCL_SEED")) or 1
local CHOOSERS = { "timed", "random:1", "adversarial", "manual" }
local DTYPES = { "f32", "f64", "f16", "bf16", "i32", "i64", "u8" }
local LENGTH = 60 -- of each tensor; each number of ranks divides it
local TENSORS = 4 -- of each rank

local random = math.random
local function pick(list) return list[random(#list)] end

-- ---------------------------------------------------------------- the naive model

local function wrap(dtype, v)
  if dtype == "u8" then return v & 255 end
  if dtype == "i32" then return (v + (1 << 31) & 0xffffffff) - (1 << 31) end
  return v
end

local function two(op, dtype, a, b)
  if op == "min" then return math.min(a, b) elseif op == "max" then return math.max(a, b) end
  return wrap(dtype, op == "prod" and a * b or a + b)
end

-- Up to these, each whole number is a value of the dtype.
local EXACT = { bf16 = 1 << 8, f16 = 1 << 11, f32 = 1 << 24, f64 = 1 << 53 }

-- An op whose result is exact.
local function pick_op(dtype, inputs)
  local greatest, exact = 1, EXACT[dtype]
  for _, values in ipairs(inputs) do greatest = math.max(greatest, table.unpack(values)) end
  local ops = { "min", "max" }
  if not exact or #inputs * greatest <= exact then ops[#ops + 1] = "sum" end
  if not exact or greatest ^ #inputs <= exact then ops[#ops + 1] = "prod" end
  return pick(ops)
end

-- Element i of the inputs, combined.
local function fold(op, dtype, inputs, i)
  local v = inputs[1][i]
  for k = 2, #inputs do v = two(op, dtype, v, inputs[k][i]) end
  return v
end

local function slice(values, first, count) return table.move(values, first, first + count - 1, 1, {}) end

local function put(values, first, part) table.move(part, 1, #part, first, values) end

-- ---------------------------------------------------------------- a world: tensors, streams and communicators of n
-- devices

local function shuffled(n)
  local list = {}
  for k = 1, n do table.insert(list, random(k), k) end
  return list
end

local function new_comm(n)
  local ranks, devices = shuffled(n), {}
  for k = n, random(n) + 1, -1 do ranks[k] = nil end
  for k, r in ipairs(ranks) do devices[k] = r - 1 end
  return { ranks = ranks, comms = mr.nccl.comms(devices), size = #ranks }
end

local function new_world(n)
  local w = { n = n, dtype = pick(DTYPES), values = {}, tensors = {}, streams = {}, users = {}, comms = {} }
  for r = 1, n do
    local d = r - 1
    w.streams[r] = { mr.stream{device = d}, mr.stream{device = d, nonblocking = random(2) == 1}, mr.default_stream(d) }
    w.values[r], w.tensors[r], w.users[r] = {}, {}, {}
    for i = 1, TENSORS do
      local v = {}
      for k = 1, LENGTH do v[k] = random(0, 9) end
      w.values[r][i], w.tensors[r][i] = v, mr.tensor(v, {dtype = w.dtype, device = d})
      w.users[r][i] = w.streams[r][3]
    end
  end
  for i = 1, 3 do w.comms[i] = new_comm(n) end
  return w
end

-- Orders `stream` behind the last use of the tensor.
local function take(w, r, i, stream)
  if w.users[r][i] ~= stream then stream:wait_stream(w.users[r][i]) end
  w.users[r][i] = stream
  return w.tensors[r][i], w.values[r][i]
end

local function part_of(t, first, count) return t:narrow(1, first, count) end

-- ---------------------------------------------------------------- steps

-- Values stay small, so that floats are exact.
local function compute(w, r, i, stream)
  local t, v = take(w, r, i, stream)
  local add, most = random(0, 3), w.dtype:find "16" and 9 or 40
  stream:run(function() t:add_(add):clamp_(0, most) end)
  for k = 1, LENGTH do v[k] = math.min(most, math.max(0, wrap(w.dtype, v[k] + add))) end
end

-- Each returns calls, one for each rank of the communicator, and what they do to the model. `use(k)` takes an unused
-- tensor of rank k.
local COLLECTIVES = {}

function COLLECTIVES.all_reduce(w, c, use)
  local op, ins, outs, calls = nil, {}, {}, {}
  for k = 1, c.size do
    local t, v, stream = use(k)
    if not t then return end
    local o, ov = use(k)
    ins[k], outs[k] = v, o and ov or v
    calls[k] = function(comm) comm:all_reduce(t, {op = op, out = o, stream = stream}) end
  end
  op = pick_op(w.dtype, ins)
  return calls, function()
    local sum = {}
    for i = 1, LENGTH do sum[i] = fold(op, w.dtype, ins, i) end
    for k = 1, c.size do put(outs[k], 1, sum) end
  end
end

function COLLECTIVES.broadcast(_, c, use)
  local root, values, calls = random(0, c.size - 1), {}, {}
  for k = 1, c.size do
    local t, v, stream = use(k)
    if not t then return end
    values[k] = v
    calls[k] = function(comm) comm:broadcast(t, {root = root, stream = stream}) end
  end
  return calls, function() for k = 1, c.size do put(values[k], 1, slice(values[root + 1], 1, LENGTH)) end end
end

function COLLECTIVES.reduce(w, c, use)
  local op, root, ins, calls, out = nil, random(0, c.size - 1), {}, {}, nil
  for k = 1, c.size do
    local t, v, stream = use(k)
    if not t then return end
    local o, ov
    if k == root + 1 then o, ov = use(k) out = ov or v end
    ins[k] = v
    calls[k] = function(comm) comm:reduce(t, {op = op, root = root, out = o, stream = stream}) end
  end
  op = pick_op(w.dtype, ins)
  return calls, function()
    local sum = {}
    for i = 1, LENGTH do sum[i] = fold(op, w.dtype, ins, i) end
    put(out, 1, sum)
  end
end

function COLLECTIVES.all_gather(_, c, use)
  local count, parts, outs, calls = LENGTH // c.size, {}, {}, {}
  for k = 1, c.size do
    local own = (k - 1) * count + 1
    local o, ov, stream = use(k)
    if not o then return end
    local t, v = use(k)
    local from, at = t or o, t and 1 or own
    parts[k], outs[k] = { t and v or ov, at }, ov
    calls[k] = function(comm) comm:all_gather(o, part_of(from, at, count), {stream = stream}) end
  end
  return calls, function()
    local all = {}
    for k = 1, c.size do put(all, (k - 1) * count + 1, slice(parts[k][1], parts[k][2], count)) end
    for k = 1, c.size do put(outs[k], 1, all) end
  end
end

function COLLECTIVES.reduce_scatter(w, c, use)
  local op, count, ins, outs, calls = nil, LENGTH // c.size, {}, {}, {}
  for k = 1, c.size do
    local own = (k - 1) * count + 1
    local t, v, stream = use(k)
    if not t then return end
    local o, ov = use(k)
    ins[k], outs[k] = v, { o and ov or v, o and 1 or own }
    calls[k] = function(comm)
      comm:reduce_scatter(part_of(o or t, o and 1 or own, count), t, {op = op, stream = stream})
    end
  end
  op = pick_op(w.dtype, ins)
  return calls, function()
    local sum = {}
    for i = 1, LENGTH do sum[i] = fold(op, w.dtype, ins, i) end
    for k = 1, c.size do put(outs[k][1], outs[k][2], slice(sum, (k - 1) * count + 1, count)) end
  end
end

function COLLECTIVES.all_to_all(_, c, use)
  local count, ins, outs, calls = LENGTH // c.size, {}, {}, {}
  for k = 1, c.size do
    local t, v, stream = use(k)
    if not t then return end
    local o, ov = use(k)
    if not o then return end
    ins[k], outs[k] = v, ov
    calls[k] = function(comm) comm:all_to_all(o, t, {stream = stream}) end
  end
  return calls, function()
    for k = 1, c.size do
      for j = 1, c.size do put(outs[k], (j - 1) * count + 1, slice(ins[j], (k - 1) * count + 1, count)) end
    end
  end
end

local NAMES = {}
for name in pairs(COLLECTIVES) do NAMES[#NAMES + 1] = name end
table.sort(NAMES)

-- Some messages between ranks of the communicator, each of a part of a tensor; a rank may write to itself.
local function messages(_, c, use)
  local calls, moves = {}, {}
  for k = 1, c.size do calls[k] = {} end
  for _ = 1, random(2 * c.size) do
    local from, to, count = random(c.size), random(c.size), random(LENGTH)
    local t, v, s = use(from)
    if not t then break end
    local o, ov, z = use(to)
    if not o then break end
    local send = function(comm) comm:send(part_of(t, 1, count), to - 1, {stream = s}) end
    local recv = function(comm) comm:recv(part_of(o, LENGTH - count + 1, count), from - 1, {stream = z}) end
    table.insert(calls[from], send)
    table.insert(calls[to], recv)
    moves[#moves + 1] = function() put(ov, LENGTH - count + 1, slice(v, 1, count)) end
  end
  local ranks = {}
  for k = 1, c.size do
    ranks[k] = function(comm) for _, call in ipairs(calls[k]) do call(comm) end end
  end
  return ranks, function() for _, move in ipairs(moves) do move() end end
end

-- A group of some collectives and messages. A part without tensors is not called.
local function group(w)
  local used, parts = {}, {}
  for r = 1, w.n do used[r] = shuffled(TENSORS) end
  for _ = 1, random(3) do
    local c, streams = pick(w.comms), {}
    for k = 1, c.size do streams[k] = pick(w.streams[c.ranks[k]]) end
    local function use(k)
      local r, stream = c.ranks[k], streams[k]
      local i = table.remove(used[r])
      if not i then return end
      local t, v = take(w, r, i, stream)
      return t, v, stream
    end
    local has_messages = false
    for _, p in ipairs(parts) do has_messages = has_messages or p.c == c and p.is_messages end
    local is_messages = not has_messages and random(4) == 1
    local calls, model = (is_messages and messages or COLLECTIVES[pick(NAMES)])(w, c, use)
    if calls then parts[#parts + 1] = { c = c, calls = calls, model = model, is_messages = is_messages } end
  end
  mr.nccl.group(function()
    for _, p in ipairs(parts) do -- the ranks in any order, each with its calls in order
      for _, k in ipairs(shuffled(p.c.size)) do p.calls[k](p.c.comms[k]) end
    end
  end)
  for _, p in ipairs(parts) do p.model() end
end

local function step(w)
  local what = random(10)
  if what <= 5 then
    local r = random(w.n)
    compute(w, r, random(TENSORS), pick(w.streams[r]))
  elseif what <= 9 then
    group(w)
  else
    local r = random(w.n)
    mr.spin{ms = random(3), stream = pick(w.streams[r])}
  end
end

local function compare(w, seed)
  for r = 1, w.n do
    for i = 1, TENSORS do
      w.users[r][i]:synchronize()
      local got, expected = w.tensors[r][i]:cpu():totable(), w.values[r][i]
      for k = 1, LENGTH do
        if got[k] ~= expected[k] then
          error(("seed %d: %s tensor %d of rank %d, element %d: %s, expected %s"):format(seed, w.dtype, i, r - 1, k,
            got[k], expected[k]))
        end
      end
    end
  end
end

local function program(seed, n)
  math.randomseed(seed)
  mr.machine.chooser(pick(CHOOSERS))
  local w = new_world(n)
  for _ = 1, random(4, 16) do
    step(w)
    if random(20) == 1 then mr.machine.chooser(pick(CHOOSERS)) end -- perhaps with members that have begun
    if random(20) == 1 then mr.machine.chooser("manual") mr.machine.step(nil, random(5)) mr.machine.back(random(5)) end
    for i = 1, random(3) == 1 and 1 or 0 do w.comms[i] = new_comm(n) end
  end
  compare(w, seed)
end

for n = 1, 6 do
  for seed = FIRST, FIRST + COUNT - 1 do
    local fine, problem = pcall(program, seed * 10 + n, n)
    T.check(fine, ("seed %d: %s"):format(seed * 10 + n, problem))
  end
  T.check(true, n .. " ranks")
end
mr.machine.chooser "timed"
