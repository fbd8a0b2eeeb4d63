-- mr.waits against brute force: random programs of some lines; every subset of their waits is left out. Without
-- hazards, a program is then run and judged by mr.hazard.check. If a program has hazards with all of its waits, a
-- simple checker (support/naive_order.lua) names each access, and only additional hazards count. The simple checker
-- also judges the programs without hazards, and must say the same.
--
-- MR_WAITS_PROGRAMS sets how many programs (250; 1500 in `make check-long`; 100 on a GPU), MR_WAITS_SEED where they
-- begin.
-- not checked: half of its programs race

-- not replayed: it runs more commands than a replay has room for

local mr = require "millrace"
local T = require "millrace.testing"
local naive_order = require "lua.support.naive_order"

local COUNT = tonumber(os.getenv("MR_WAITS_PROGRAMS")) or (mr.backend ~= "virtual" and 100 or
  os.getenv("MILLRACE_LONG") and 1500 or 125)
local SEED = tonumber(os.getenv("MR_WAITS_SEED") or 1)
local MOST_WAITS = 7

local STREAMS = { "a", "b", "d" }
local TENSORS = { "x", "y", "p" } -- p is pinned: the host may touch it at any time

local function pick(list) return list[math.random(#list)] end

-- A line that orders nothing by itself. `functions`: of a program with many host functions that touch no tensor.
local function work_line(functions)
  local s, t, u = pick(STREAMS), pick(TENSORS), pick(TENSORS)
  if functions and math.random(2) == 1 then return ("%s:host_func(function() end)"):format(s) end
  local kind = math.random(12)
  if kind <= 3 then return ("mr.op{stream = %s, writes = {%s}}"):format(s, t) end
  if kind <= 5 then return ("mr.op{stream = %s, reads = {%s}, writes = {%s}}"):format(s, t, u) end
  if kind <= 8 then return ("mr.op{stream = %s, reads = {%s}}"):format(s, t) end
  if kind <= 9 then return ("mr.op{reads = {%s}, writes = {%s}}"):format(t, u) end -- the default stream
  if kind <= 10 then return "p[1] = 1" end
  if kind <= 11 then return ("%s:host_func(function() p[2] = 2 end)"):format(s) end
  return ("local _ = %s:item()"):format(t .. "[1]")
end

-- The waits of a line: {text = function(kept) -> text, parts = how many waits}.
local function wait_line()
  local s, o = pick(STREAMS), pick(STREAMS)
  local kind = math.random(10)
  local text
  if kind <= 3 then text = ("%s:wait_stream(%s)"):format(s, o)
  elseif kind <= 7 then text = ("%s:wait_event(%s)"):format(s, pick { "e", "f" })
  elseif kind == 8 then text = pick { s .. ":synchronize()", "e:synchronize()", "mr.synchronize()" }
  else
    local members = {}
    for _, name in ipairs(STREAMS) do
      if math.random(3) > 1 then members[#members + 1] = name end
    end
    if #members < 2 then return wait_line() end
    for i = #members, 2, -1 do
      local k = math.random(i)
      members[i], members[k] = members[k], members[i]
    end
    return { parts = #members, text = function(kept)
      local names = {}
      for i, name in ipairs(members) do
        if kept[i] then names[#names + 1] = name end
      end
      return #names < 2 and "" or "mr.barrier{" .. table.concat(names, ", ") .. "}"
    end }
  end
  return { parts = 1, text = function(kept) return kept[1] and text or "" end }
end

local function record_line()
  return ("%s:record(%s)"):format(pick { "e", "f" }, pick(STREAMS))
end

local HEAD = "local a, b, d, e, f, x, y, p = ..."

-- {lines = texts or wait lines, waits = {{line=, part=}, ...}}
local function program_of(lines)
  local waits = {}
  for i, line in ipairs(lines) do
    for part = 1, type(line) == "table" and line.parts or 0 do waits[#waits + 1] = { line = i, part = part } end
  end
  return { lines = lines, waits = waits }
end

local function random_lines(may_loop)
  local lines, count = {}, math.random(4, 9)
  local loop = may_loop and math.random(3) == 1 and math.random(2, count)
  local functions = math.random(4) == 1
  for i = 1, count do
    if i == loop then lines[#lines + 1] = "for round = 1, 3 do" end
    lines[#lines + 1] = math.random(4) == 1 and record_line() or work_line(functions)
  end
  if loop then lines[#lines + 1] = "end" end
  return lines
end

-- `kept` by wait. `ticks`: with a moment of the host behind each line, for the simple checker.
local function text_of(program, kept, ticks)
  local out = { HEAD }
  local of = {}
  for i, w in ipairs(program.waits) do
    of[w.line] = of[w.line] or {}
    of[w.line][w.part] = kept[i]
  end
  for i, line in ipairs(program.lines) do
    out[#out + 1] = type(line) == "string" and line or line.text(of[i])
    if ticks and not out[#out]:find("^for ") then out[#out] = out[#out] .. " mr.tick()" end
  end
  return table.concat(out, "\n")
end

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local d = mr.stream{name = "d", nonblocking = false}
local e, f = mr.event{name = "e"}, mr.event{name = "f"}
local x, y, p = mr.zeros(4, {name = "x"}), mr.zeros(4, {name = "y"}), mr.zeros(4, {pinned = true, name = "p"})

-- Events keep their records between runs: those of before count as done.
local function function_of(text)
  local chunk = assert(load(text, "=p.lua", "t"), text)
  return function() chunk(a, b, d, e, f, x, y, p) end
end

local function settle()
  mr.synchronize()
  e:record(a)
  f:record(a)
  mr.synchronize()
end

local function is_clean(program, kept)
  settle()
  local fn = function_of(text_of(program, kept))
  return #mr.hazard.check(fn) == 0
end

local function is_within(set, other)
  for key in pairs(set) do
    if not other[key] then return false end
  end
  return true
end

-- `known`: accesses that have a hazard anyway. The reports of mr.hazard.check leave out what the fix of another one
-- orders, too, so a simple checker is asked, which names each access. -> whether there are no others, and what nothing
-- orders of host functions.
local function adds_nothing(program, kept, known)
  local found, _, loose = naive_order(text_of(program, kept, true))
  return is_within(found, known), loose
end

local everything = setmetatable({}, { __index = function() return true end })

-- Most random programs have hazards: waits are put in at random until none is left, and one or two more. Nil: they do
-- not help.
local function random_program()
  local lines = random_lines(true)
  local more = math.random(2)
  for _ = 1, 60 do
    local program = program_of(lines)
    if is_clean(program, everything) then
      if more == 0 then return #program.waits > 0 and program or nil end
      more = more - 1
    elseif #program.waits >= MOST_WAITS - 1 then
      table.remove(lines, program.waits[math.random(#program.waits)].line)
      program = program_of(lines)
    end
    local w = wait_line()
    if #program.waits + w.parts <= MOST_WAITS then table.insert(lines, math.random(#lines + 1), w) end
  end
end

-- Most of these have accesses with a hazard, whatever waits there are.
local function program_with_hazards()
  local lines = random_lines(false)
  for _ = 1, math.random(5) do table.insert(lines, math.random(#lines + 1), wait_line()) end
  local program = program_of(lines)
  if #program.waits > MOST_WAITS then return nil end
  local known, count = naive_order(text_of(program, everything))
  if count > 0 then return program, known, count end
end

-- clean[set] and same[set], by set of waits as bits: there is no hazard, and host functions have the same order, too.
local function judge_all(program, known)
  local clean, same, count = {}, {}, #program.waits
  local _, loose = adds_nothing(program, everything, {})
  for set = 0, (1 << count) - 1 do
    local kept = {}
    for i = 1, count do kept[i] = set >> (i - 1) & 1 == 1 end
    local nothing, loose_now = adds_nothing(program, kept, known or {})
    clean[set] = nothing
    if not known then
      T.equal(nothing, is_clean(program, kept), "the simple checker: " .. text_of(program, kept))
    end
    same[set] = nothing and is_within(loose_now, loose)
  end
  return clean, same
end

local function expected(clean, same, count)
  local all, least = (1 << count) - 1, count
  local verdicts = {}
  for set = 0, all do
    local size = 0
    for i = 0, count - 1 do size = size + (set >> i & 1) end
    if same[set] and size < least then least = size end
  end
  for i = 0, count - 1 do
    local bit = 1 << i
    local verdict = not clean[all & ~bit] and "needed" or not same[all & ~bit] and "unknown" or "redundant"
    for set = 0, all do
      if verdict == "redundant" and set & bit == 0 and not same[set] and same[set | bit] then verdict = "together" end
    end
    verdicts[i + 1] = verdict
  end
  return verdicts, least
end

-- The result's waits in the order of the program's: by line, of a barrier by member.
local function in_order(program, result)
  local out, used = {}, {}
  for i, w in ipairs(program.waits) do
    local line = program.lines[w.line]
    local name
    if line.parts > 1 then
      local first, second = line.text({ [w.part] = true, [w.part == 1 and 2 or 1] = true }):match("{(%w), (%w)")
      name = w.part == 1 and first or second
    end
    for _, found in ipairs(result.waits) do
      local here = found.where == "p.lua:" .. w.line + 1
      if here and not used[found] and (not name or found.who == "`" .. name .. "`") then
        out[i] = found
        used[found] = true
        break
      end
    end
  end
  return out
end

-- How many waits have each verdict, over all programs.
local tally = { needed = 0, together = 0, unknown = 0, redundant = 0 }

-- `known`: `hazards` accesses that have one with all waits.
local function compare(seed, program, known, hazards)
  local clean, same = judge_all(program, known)
  local count = #program.waits
  local text = text_of(program, everything)
  settle()
  local result = mr.waits(function_of(text))
  local about = ("seed %d:\n%s\n%s\n"):format(seed, text, result)
  local verdicts, least = expected(clean, same, count)
  T.equal(result.hazards, hazards, about .. "hazards")
  T.equal(result.total, count, about .. "total")
  T.check(result.exact, about .. "exact")
  T.equal(result.sufficient, least, about .. "sufficient")
  local waits, kept = in_order(program, result), 0
  for i = 1, count do
    T.check(waits[i], about .. "no verdict on wait " .. i)
    T.equal(waits[i].verdict, verdicts[i], about .. "wait " .. i)
    tally[verdicts[i]] = tally[verdicts[i]] + 1
    if waits[i].kept then kept = kept | 1 << (i - 1) end
  end
  T.check(same[kept], about .. "the kept set is not sufficient")
end

local clean_programs, other_programs = 0, 0
for seed = SEED, SEED + COUNT - 1 do
  math.randomseed(seed)
  local program = random_program()
  if program then
    clean_programs = clean_programs + 1
    compare(seed, program, nil, 0)
  end
  local broken, known, hazards = program_with_hazards()
  if broken then
    other_programs = other_programs + 1
    compare(seed, broken, known, hazards)
  end
end

T.at_least(clean_programs, COUNT / 20, "programs without hazards")
T.at_least(other_programs, COUNT / 20, "programs with hazards")
if COUNT >= 1500 then
  T.at_least(tally.needed, 50, "needed waits")
  T.at_least(tally.together, 20, "waits that matter together")
  T.at_least(tally.unknown, 50, "waits that order host functions")
  T.at_least(tally.redundant, 50, "redundant waits")
end
print(("%d programs, %d without a hazard and %d with: %d needed, %d together, %d unknown, %d redundant"):format(COUNT,
  clean_programs, other_programs, tally.needed, tally.together, tally.unknown, tally.redundant))
