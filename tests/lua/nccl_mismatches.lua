-- Random groups in which the ranks' calls may not match: the error is one that a model of NCCL's rules has, which
-- compares each call with each (R62, R63, R66). After an error nothing was submitted; a group without a mistake is
-- carried out.
--
-- MR_NCCL_GROUPS sets how many (1000), MR_NCCL_SEED the first seed.
-- options: --device virtual:4
-- virtual only: four devices
-- not replayed: choosers are switched in the middle
local mr = require "millrace"
local T = require "millrace.testing"

T.rule("nccl_mismatches")

local COUNT = tonumber(os.getenv("MR_NCCL_GROUPS")) or 1000
local FIRST = tonumber(os.getenv("MR_NCCL_SEED")) or 1
local KINDS = { "all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all" }
local REDUCES = { all_reduce = true, reduce = true, reduce_scatter = true }
local ROOTED = { broadcast = true, reduce = true }
local CHOOSERS = { "timed", "random:7", "adversarial" }

local random = math.random
local function pick(list) return list[random(#list)] end

-- ---------------------------------------------------------------- groups

-- What one rank calls. `count` is of elements of a unit.
local function new_call()
  local kind = pick(KINDS)
  return { kind = kind, count = random(3), dtype = pick{"f32", "i32"}, op = REDUCES[kind] and pick{"sum", "max"},
    root = ROOTED[kind] and random(0, 1) }
end

local function copy(call)
  local new = {}
  for k, v in pairs(call) do new[k] = v end
  return new
end

local MISTAKES = {
  function(list) table.remove(list, random(#list)) end,
  function(list) table.insert(list, random(#list + 1), new_call()) end,
  function(list) list[random(#list)].count = random(3) end,
  function(list) list[random(#list)].dtype = pick{"f32", "i32"} end,
  function(list)
    local call = pick(list)
    if call.op then call.op = pick{"sum", "max"} end
  end,
  function(list)
    local call = pick(list)
    if call.root then call.root = random(0, 1) end
  end,
  function(list)
    local i = random(#list)
    list[i], list[#list] = list[#list], list[i]
  end,
  function(list)
    local call = pick(list)
    if call.peer then call.peer = random(0, 1) end
  end,
}

-- For each rank its calls in order.
local function new_group(size)
  local ranks = {}
  for k = 1, size do ranks[k] = {} end
  for _ = 1, random(0, 3) do
    local call = new_call()
    for k = 1, size do table.insert(ranks[k], copy(call)) end
  end
  for _ = 1, random(0, 2) do
    local from, to, count, dtype = random(size), random(size), random(3), pick{"f32", "i32"}
    table.insert(ranks[from], { kind = "send", peer = to - 1, count = count, dtype = dtype })
    table.insert(ranks[to], { kind = "recv", peer = from - 1, count = count, dtype = dtype })
  end
  for _ = 1, random(0, 2) do
    local list = pick(ranks)
    if #list > 0 then pick(MISTAKES)(list) end
  end
  return ranks
end

-- ---------------------------------------------------------------- NCCL's rules

local function collectives(list)
  local found = {}
  for _, call in ipairs(list) do if not call.peer then found[#found + 1] = call end end
  return found
end

local function differ(a, b)
  for _, key in ipairs{ "kind", "count", "dtype", "op", "root" } do
    if a[key] ~= b[key] then return key end
  end
end

local function numeral(k) return "rank " .. k - 1 end

-- All that is wrong: { code, words that the message must have }.
local function violations(ranks)
  local found, lists, most = {}, {}, 0
  local function add(...) found[#found + 1] = {...} end
  for k, list in ipairs(ranks) do
    lists[k] = collectives(list)
    most = math.max(most, #lists[k])
  end
  for i = 1, most do
    for a = 1, #ranks do
      for b = 1, #ranks do
        local x, y = lists[a][i], lists[b][i]
        if x and not y then add("deadlock", x.kind, numeral(a), "no call", tostring(b - 1)) end
        if x and y and differ(x, y) then
          local key = differ(x, y)
          add("collective-mismatch", key == "kind" and y.kind or x.kind, numeral(a), numeral(b), tostring(x[key]),
            tostring(y[key]))
        end
      end
    end
  end
  for a = 1, #ranks do
    for b = 1, #ranks do
      local sends, recvs = {}, {}
      for _, call in ipairs(ranks[a]) do
        if call.kind == "send" and call.peer == b - 1 then table.insert(sends, call) end
      end
      for _, call in ipairs(ranks[b]) do
        if call.kind == "recv" and call.peer == a - 1 then table.insert(recvs, call) end
      end
      for i = 1, math.max(#sends, #recvs) do
        local s, r = sends[i], recvs[i]
        if not r then add("deadlock", "`send` by " .. numeral(a), numeral(b) .. " has no matching recv")
        elseif not s then add("deadlock", "`recv` by " .. numeral(b), numeral(a) .. " has no matching send")
        elseif s.count ~= r.count then
          add("collective-mismatch", numeral(a), numeral(b), "send of " .. s.count, "recv of " .. r.count)
        elseif s.dtype ~= r.dtype then
          add("collective-mismatch", numeral(a), numeral(b), "send of " .. s.dtype, "recv of " .. r.dtype)
        end
      end
    end
  end
  return found
end

local function has_all(text, words)
  for i = 2, #words do
    if not text:find(words[i], 1, true) then return false end
  end
  return true
end

-- ---------------------------------------------------------------- a group is called

local function submit(comms, k, call)
  local c, size, device = comms[k], #comms, k - 1
  local function new(n) return mr.full(n, k, {dtype = call.dtype, device = device}) end
  local n = call.count
  local t = new(n)
  if call.kind == "send" or call.kind == "recv" then c[call.kind](c, t, call.peer)
  elseif call.kind == "all_gather" then
    local out = new(n * size)
    c:all_gather(out, t)
    t = out
  elseif call.kind == "reduce_scatter" then c:reduce_scatter(t, new(n * size), {op = call.op})
  elseif call.kind == "all_to_all" then
    local out = new(n * size)
    c:all_to_all(out, new(n * size))
    t = out
  else c[call.kind](c, t, {op = call.op or nil, root = call.root or nil}) end
  return t
end

local function text_of(ranks)
  local out = {}
  for k, list in ipairs(ranks) do
    local calls = {}
    for i, c in ipairs(list) do
      calls[i] = ("%s(%d %s%s%s%s)"):format(c.kind, c.count, c.dtype, c.op and " " .. c.op or "",
        c.root and " root " .. c.root or "", c.peer and " peer " .. c.peer or "")
    end
    out[k] = numeral(k) .. ": " .. table.concat(calls, ", ")
  end
  return table.concat(out, "\n")
end

local tally = { fine = 0, ["collective-mismatch"] = 0, deadlock = 0 }

local function check_group(seed)
  math.randomseed(seed)
  mr.machine.chooser(pick(CHOOSERS))
  local size = random(2, 4)
  local devices = {}
  for k = 1, size do devices[k] = k - 1 end
  local comms, ranks, tensors = mr.nccl.comms(devices), new_group(size), {}
  local wrong = violations(ranks)
  local fine, err = pcall(mr.nccl.group, function()
    for k, list in ipairs(ranks) do
      for _, call in ipairs(list) do tensors[#tensors + 1] = { submit(comms, k, call), k } end
    end
  end)
  local label = ("seed %d:\n%s\n"):format(seed, text_of(ranks))
  if fine then
    T.check(#wrong == 0, label .. "no error")
    tally.fine = tally.fine + 1
  else
    local named = false
    for _, words in ipairs(wrong) do named = named or err.code == words[1] and has_all(tostring(err), words) end
    T.check(named, label .. tostring(err))
    tally[err.code] = tally[err.code] + 1
    for _, one in ipairs(tensors) do -- what nobody has written yet
      for _, v in ipairs(one[1]:cpu():totable()) do T.check(v == one[2], label .. "was submitted") end
    end
  end
  for k = 1, size do mr.synchronize(k - 1) end
end

for seed = FIRST, FIRST + COUNT - 1 do check_group(seed) end
mr.machine.chooser "timed"
for what, count in pairs(tally) do T.at_least(count, COUNT // 20, "groups: " .. what) end
