-- virtual only: times and schedules are the virtual GPU's
-- options: --device virtual:3
-- not replayed: what a program finds is looked at by each reader, one after the other
-- not checked: its programs race
-- own pace: when garbage is collected is a part of a program
-- Each reader of the rules of order (src/order) answers as it did: programs by hand, one for each rule that orders, and
-- random ones (support/agree_programs.lua). data/readers.txt keeps a digest of each answer, a program a line. So a rule
-- that changes shows which readers changed. MILLRACE_UPDATE=1 records the digests anew; read the difference before you
-- keep it. MR_READERS_SHOW names a program whose answers are printed. Whether an answer is right, the tests of the
-- readers say, which have judges of their own.
local lu = require "luaunit"
local mr = require "millrace"
local programs = require "lua.support.agree_programs"

local KEPT = debug.getinfo(1, "S").source:match "^@(.*)lua/[^/]*$" .. "data/readers.txt"
local RANDOM = 162 -- programs
local MOST = 40    -- schedules; a search that is cut says how far it came, which is no rule's
local PAIRS = 6    -- of the last commands of streams, each two are asked about

local SHOWN = os.getenv "MR_READERS_SHOW"

-- The actions of a program, by the rule that it is about. The names are those of agree_programs.HEAD; `far` and `f` are
-- of device 1, and there is a device 2.
local BY_HAND = {
  { "R1", "a:run(function() x:add_(1) end)", "a:run(function() x:mul_(2) end)" },
  { "R2", "a:run(function() x:add_(1) end)", "b:run(function() x:mul_(2) end)" },
  { "R3", "c:run(function() x:add_(1) end)", "d:run(function() y:add_(1) end)", "p:run(function() x:mul_(2) end)" },
  { "R3 is no transfer", "a:run(function() x:add_(1) end)", "d:run(function() y:add_(1) end)",
    "c:run(function() x:mul_(2) end)" },
  { "R3 carries", "c:wait_stream(a)", "a:run(function() x:add_(1) end)", "e:record(a)", "c:wait_event(e)",
    "d:run(function() y:add_(1) end)", "p:run(function() x:mul_(2) end)" },
  { "R4", "a:run(function() x:add_(1) end)", "d:run(function() x:mul_(2) end)" },
  { "R5", "c:run(function() pin:copy_(x, {non_blocking = true}) end)", "d:synchronize()", "pin[1] = 2" },
  { "R5 asks", "c:run(function() x:add_(1) end)", "said[#said + 1] = d:query()" },
  { "R5 asks for an allocation", "t = c:run(function() return x + 1 end)", "c:synchronize()", "t = nil",
    "t = c:run(function() return mr.empty(4, {dtype = 'i32'}) end)", "said[#said + 1] = d:query()" },
  { "R10 stream", "a:run(function() pin:copy_(x, {non_blocking = true}) end)", "a:synchronize()", "pin[1] = 2" },
  { "R10 device", "a:run(function() pin:copy_(x, {non_blocking = true}) end)", "mr.synchronize()", "pin[1] = 2" },
  { "R10 event", "a:run(function() pin:copy_(x, {non_blocking = true}) end)", "e:record(a)", "e:synchronize()",
    "pin[1] = 2" },
  { "R10 query", "a:run(function() pin:copy_(x, {non_blocking = true}) end)",
    "said[#said + 1] = a:query() if said[#said] then pin[1] = 2 end" },
  { "R11", "a:run(function() x:add_(1) end)", "e:record(a)", "a:run(function() y:add_(1) end)", "b:wait_event(e)",
    "b:run(function() x:mul_(2) y:mul_(2) end)" },
  { "R11 again", "a:run(function() x:add_(1) end)", "e:record(a)", "e:record(b)", "c:wait_event(e)",
    "c:run(function() x:mul_(2) end)" },
  { "R12", "a:run(function() x:add_(1) end)", "e:record(a)", "c:wait_event(e)", "e:record(b)",
    "c:run(function() x:mul_(2) end)" },
  { "R13", "a:run(function() x:add_(1) end)", "b:wait_event(e)", "b:run(function() x:mul_(2) end)" },
  { "R16", "c:run(function() x:add_(1) end)", "e:record(d)", "a:wait_event(e)", "a:run(function() x:mul_(2) end)" },
  { "R20", "a:run(function() y:add_(1) end)", "mr.memcpy(x, page)", "page[1] = 2", "a:run(function() x:add_(1) end)" },
  { "R20 to the host", "mr.memcpy(page, x)", "page[1] = 2", "mr.memcpy(pin, x)", "pin[1] = 2" },
  { "R20 behind blocking streams", "c:run(function() pin:copy_(x, {non_blocking = true}) end)", "mr.memcpy(y, page)",
    "pin[1] = 2" },
  { "R21", "mr.memcpy(x, y)", "a:run(function() x:add_(1) end)" },
  { "R22", "a:run(function() x:copy_(pin, {non_blocking = true}) end)", "pin[1] = 2" },
  { "R23", "a:run(function() x:copy_(page, {non_blocking = true}) end)", "page[1] = 2" },
  { "R23 to the host", "a:run(function() page:copy_(x, {non_blocking = true}) end)", "page[1] = 2" },
  { "R24", "mr.memset(x, 1)", "a:run(function() x:add_(1) end)", "mr.memset(pin, 2)", "pin[1] = 2" },
  { "R27", "a:run(function() pin:copy_(x, {non_blocking = true}) end)", "t = mr.empty(4, {dtype = 'i32'})",
    "t:free{sync = true}", "pin[1] = 2" },
  { "R28", "t = a:run(function() return x + 1 end)", "b:run(function() y:add_(t) end)", "t:free{stream = a}" },
  { "R30", "t = a:run(function() return x + 1 end)", "b:wait_stream(a)", "b:run(function() y:add_(t) end)",
    "t:free{stream = a}", "t = c:run(function() return z + 1 end)" },
  { "R33", "t = a:run(function() return x + 1 end)", "b:wait_stream(a)", "b:run(function() y:add_(t) end)",
    "t:record_stream(b)", "t = nil", "t = a:run(function() return z + 1 end)" },
  { "R42", "graph = mr.graph(function() x:add_(1) end, {stream = own})", "graph:launch(a)", "graph:launch(b)" },
  { "R46", "a:host_func(function() pin:add_(1) end)", "a:run(function() x:copy_(pin, {non_blocking = true}) end)" },
  { "R60", "a:run(function() x:add_(1) end)", "mr.memcpy(far, x)", "f:run(function() far:mul_(2) end)", two = true },
  { "R60 async", "a:run(function() x:copy_(far, {non_blocking = true}) end)", "f:run(function() far:mul_(2) end)",
    two = true },
  { "R60 current", "local s = mr.stream{device = 2}", "s:host_func(function() pin:add_(1) end)",
    "mr.with(mr.device(2), function() mr.memcpy(far, x) end)", "f:run(function() pin:copy_(far) end)", two = true },
  { "R60 in turn", "a:run(function() pin:copy_(x, {non_blocking = true}) end)", "mr.memcpy(far, x)",
    "mr.with(mr.device(2), function() mr.memcpy(far, mr.ones(4, {dtype = 'i32'})) end)",
    "mr.with(mr.stream{device = 2}, function() pin:copy_(mr.ones(4, {dtype = 'i32'}), {non_blocking = true}) end)",
    two = true },
  { "R61", "a:run(function() x:add_(1) end)",
    "mr.nccl.group(function() comms[1]:all_reduce(y, {stream = a}) comms[2]:all_reduce(far, {stream = f}) end)",
    "f:run(function() pin:copy_(far, {non_blocking = true}) end)", two = true },
  { "R61 one way", "f:run(function() pin:copy_(far, {non_blocking = true}) end)",
    "mr.nccl.group(function() comms[1]:broadcast(y, {stream = a}) comms[2]:broadcast(far, {stream = f}) end)",
    "a:run(function() pin:copy_(x, {non_blocking = true}) end)", two = true },
}

-- Launches of kernels touch what their operands cover. As a text of its own: traces name the line.
local kernels = assert(load([[
local mr = ...
return setmetatable({}, { __index = function(_, name)
  return function(args) mr.op{name = name, stream = args[1], writes = {args[2]}, reads = {args[3]}} end
end })]], "@kernels.lua"))(mr)

-- ---------------------------------------------------------------- digests

local function digest(text)
  local h = #text
  text = text .. ("\0"):rep(-#text % 8)
  for i = 1, #text, 8 do
    h = (h ~ string.unpack("<i8", text, i)) * 0x2545F4914F6CDD1D
    h = h ~ h >> 29
  end
  return ("%08x"):format(h >> 32)
end

-- Numbers of commands and streams depend on the programs before: by the order in which the text names them.
local function renumbered(text)
  local met, count = {}, 0
  return (text:gsub("#%d+", function(number)
    if not met[number] then count = count + 1 met[number] = "#" .. count end
    return met[number]
  end))
end

local function text_of(value)
  if type(value) ~= "table" then return tostring(value) end
  local keys, parts = {}, {}
  for key in pairs(value) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for i, key in ipairs(keys) do parts[i] = tostring(key) .. "=" .. text_of(value[key]) end
  return "{" .. table.concat(parts, ",") .. "}"
end

-- ---------------------------------------------------------------- readers

-- The collector runs between programs only, wherever it would run by itself.
local function clean()
  collectgarbage "restart"
  collectgarbage()
  collectgarbage()
  collectgarbage "stop"
  for i = 0, mr.device_count() - 1 do mr.synchronize(i) end
end

local TENSORS = { "x", "y", "z", "pin", "page", "far" }

local function values_of(result)
  local parts = {}
  for _, name in ipairs(TENSORS) do
    parts[#parts + 1] = name .. " " .. (result[name] and table.concat(result[name]:totable(), ",") or "")
  end
  return table.concat(parts, "; ") .. "; " .. text_of(result.seen) .. text_of(result.said)
end

-- Each: the name of a column, and the answer as a text.
local readers = {}

local function reader(name, answer) readers[#readers + 1] = { name = name, answer = answer } end

reader("values", function(fn) return values_of(fn()) end)

local function side(of) return of and text_of{ of.op, of.where, of.stream } end

-- Without words: who says them better changes no rule.
reader("checker", function(fn)
  local reports, totals = mr.hazard.check(fn)
  local parts = {}
  for i, r in ipairs(reports) do parts[i] = text_of{ r.kind, side(r.first), side(r.second), r.count } end
  parts[#parts + 1] = totals.claim
  for name, count in pairs(totals) do
    if math.type(count) == "integer" and count > 0 then parts[#parts + 1] = name .. " " .. count end
  end
  table.sort(parts)
  return table.concat(parts, "\n")
end)

-- Right behind the checker, whose log it goes through.
reader("why", function(fn, is_own)
  local seqs, parts = {}, {}
  local tr = mr.timeline(function() return mr.hazard.check(fn) end)
  for _, s in ipairs(tr.spans) do
    if is_own(s.where) and s.stream ~= "host" then seqs[#seqs + 1] = s.seq end
  end
  for k = math.max(2, #seqs - PAIRS + 1), #seqs do
    for i = math.max(1, #seqs - PAIRS + 1), k - 1 do parts[#parts + 1] = mr.hazard.why(seqs[i], seqs[k]) end
  end
  return table.concat(parts, "\n")
end)

local trace

-- What the virtual GPU tells: times, and who held whom up.
reader("queue", function(fn)
  local parts = {}
  trace = mr.timeline(fn)
  for i, s in ipairs(trace.spans) do
    local first = trace.spans[1].seq
    parts[i] = text_of{ s.seq - first, s.name, s.stream, s.ready, s.start, s.finish, s.called, s.returned, s.waited,
      s.held_by, s.holder }
  end
  return table.concat(parts, "\n")
end)

reader("trace", function()
  local path = os.tmpname()
  trace:save(path .. ".dot")
  local file = assert(io.open(path .. ".dot"))
  local text = file:read "a"
  file:close()
  os.remove(path)
  os.remove(path .. ".dot")
  return text
end)

reader("explorer", function(fn)
  local r = mr.explore(function() return values_of(fn()) end, { max = MOST, time = 1e6 })
  if not r.complete then return "cut" end
  local parts = {}
  for i, o in ipairs(r.outcomes) do parts[i] = tostring(o.value or o.error) end
  table.sort(parts)
  return ("%d schedules\n%s"):format(r.schedules, table.concat(parts, "\n"))
end)

reader("waits", function(fn)
  local r = mr.waits(fn)
  local parts = { text_of{ r.total, r.sufficient, r.exact, r.claim } }
  for _, w in ipairs(r.waits) do parts[#parts + 1] = text_of{ w.kind, w.where, w.verdict, w.kept } end
  return table.concat(parts, "\n")
end)

-- ---------------------------------------------------------------- lines

-- Its objects are garbage when it returns.
local function ask(r, ...)
  local fine, answer = pcall(coroutine.wrap(r.answer), ...)
  return renumbered(fine and answer or "error: " .. tostring(answer))
end

local function line_of(name, o)
  local text, above = programs.text(o)
  local chunk = assert(load(text, "@program.lua"))
  local fn = function() return chunk(mr, kernels) end
  local function is_own(where) -- the line, and not of what is around all programs
    local at = tonumber(where and where:match ":(%d+)$")
    return at and at > above and at <= above + #o.lines
  end
  local parts = { name, "program=" .. digest(text) }
  for _, r in ipairs(readers) do
    clean()
    local answer = ask(r, fn, is_own)
    if SHOWN == name then print(r.name .. ":\n" .. answer .. "\n") end
    parts[#parts + 1] = r.name .. "=" .. digest(answer)
  end
  return table.concat(parts, "  ")
end

local function lines_now()
  local lines = {}
  for _, p in ipairs(BY_HAND) do
    local o = { lines = table.move(p, 2, #p, 1, {}), large = false, two = p.two }
    lines[#lines + 1] = line_of(p[1], o)
  end
  local seed = 0
  while #lines < #BY_HAND + RANDOM do
    seed = seed + 1
    local o = programs.make(seed)
    if not o.large then lines[#lines + 1] = line_of("seed " .. seed, o) end
  end
  return lines
end

-- By column: the programs whose digest is another one.
local function differences(kept, now)
  local of, names, texts = {}, {}, {}
  for i = 1, math.max(#kept, #now) do
    local before = {}
    for column, value in (kept[i] or ""):gmatch "(%w+)=(%x+)" do before[column] = value end
    for column, value in (now[i] or ""):gmatch "(%w+)=(%x+)" do
      if before[column] ~= value then
        if not of[column] then of[column] = {} names[#names + 1] = column end
        table.insert(of[column], (now[i]:match "^(.-)  "))
      end
    end
  end
  for i, column in ipairs(names) do
    texts[i] = ("%s: %d programs, first %s"):format(column, #of[column], table.concat(of[column], ", ", 1,
      math.min(4, #of[column])))
  end
  return table.concat(texts, "\n")
end

TestReaders = {}

function TestReaders.test_they_answer_as_they_did()
  local now = lines_now()
  if os.getenv "MILLRACE_UPDATE" then
    local file = assert(io.open(KEPT, "w"))
    file:write(table.concat(now, "\n"), "\n")
    file:close()
  end
  local kept = {}
  for line in io.lines(KEPT) do kept[#kept + 1] = line end
  local text = differences(kept, now)
  if text ~= "" then lu.fail("other answers than tests/data/readers.txt has:\n" .. text) end
  lu.assertEquals(#kept, #now)
end

os.exit(lu.LuaUnit.run())
