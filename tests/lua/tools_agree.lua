-- virtual only: other schedules are made by choosers
-- options: --device virtual:2
-- not replayed: choosers are switched in the middle
-- not checked: its programs race
-- timeout: 300
-- Every tool is asked about the same random program (support/agree_programs.lua), and no two may contradict each other.
--
-- Where the checker claims something of every schedule, all choosers and the explorer have the same value. Each
-- count of a verdict has its clause, and each clause its count.
--
-- A complete exploration has the value of every chooser, and replays each of its outcomes. It has the checker's
-- reports, and at least two orders for a race that is certain.
--
-- Without a wait that mr.waits calls needed there is a hazard. Without another one there is none, and none without all
-- that it does not keep.
--
-- The fix of a report removes it, and some rounds of fixes remove all. The times of a trace follow its edges.
--
-- A program whose fixes all have a place is asked about once more, with them.
--
-- MR_AGREE_PROGRAMS sets how many (100; 1,000 in `make check-long`), MR_AGREE_FIRST the first seed, MR_AGREE_SEEDS how
-- many random choosers (8). MR_AGREE_FILE names a text whose lines replace the random ones. With MR_AGREE_SHOW each
-- mistake is printed at once, and what was found at the end.
local mr = require "millrace"
local T = require "millrace.testing"
local programs = require "lua.support.agree_programs"

T.rule "tools_agree"

local COUNT = tonumber(os.getenv("MR_AGREE_PROGRAMS")) or os.getenv("MILLRACE_LONG") and 500 or
  os.getenv("MILLRACE_SHORT") and 25 or 50
local FIRST = tonumber(os.getenv("MR_AGREE_FIRST")) or 1
local SHOW, ONLY = os.getenv("MR_AGREE_SHOW"), os.getenv("MR_AGREE_FILE")
local ROUNDS = 8 -- of fixes
local CHOOSERS = { "timed", "adversarial" }
for seed = 1, tonumber(os.getenv("MR_AGREE_SEEDS")) or 8 do CHOOSERS[#CHOOSERS + 1] = "random:" .. seed end

local module = mr.module[==[
extern "C" __global__ void shift(int *y, const int *x, int v) {
  int i = threadIdx.x; if (y != x) y[i] = x[(i + 1) % 4] + v;
}
extern "C" __global__ void count(int *y, const int *x, int v) { atomicAdd(y, v); }
extern "C" __global__ void scatter(int *y, const int *x, int v) {
  int i = threadIdx.x; y[(x[i] & 1) * 2 + i % 2] = v;
}
extern "C" __global__ void guard(int *y, const int *x, int v) { int i = threadIdx.x; if (i < v % 4) y[i] = v; }
]==]
local kernels = {}
for _, name in ipairs { "shift", "count", "scatter", "guard" } do
  local kernel = module:get(name)
  kernels[name] = function(args) kernel[{1, 4, 0, args[1]}](args[2], args[3], args[4]) end
end

-- ---------------------------------------------------------------- what is found

local tally, found, current = {}, {}, nil

local function count(what) tally[what] = (tally[what] or 0) + 1 end

local function wrong(what, ...)
  found[#found + 1] = ("%s: %s\n%s"):format(current.name, what:format(...), table.concat(current.lines, "\n"))
  count("WRONG: " .. what:gsub("\n.*", ""))
  if SHOW then print(found[#found] .. "\n") io.stdout:flush() end
end

-- ---------------------------------------------------------------- runs of a program

local PATH = os.tmpname()

-- The checker reads the file that a script is from.
local function function_of(text)
  local f = assert(io.open(PATH, "wb"))
  f:write(text)
  f:close()
  local chunk = assert(loadfile(PATH))
  return function() return chunk(mr, kernels) end
end

local NAMES = { "x", "y", "z", "g", "h", "pin", "page", "gpin", "gpage", "far" }

-- What a program has come to, and what its queries have said, as texts. Some elements and the sum tell a large tensor.
local function text_of(result)
  local out, said = {}, {}
  for _, name in ipairs(NAMES) do
    local t = result[name] and result[name]:cpu()
    if t then
      local parts = #t <= 4 and t:totable() or { "sum " .. t:sum():item() }
      if #t > 4 then
        for _, at in ipairs { 1, 2, 3, 4, 5, #t // 4, #t // 2, #t } do parts[#parts + 1] = t[at]:item() end
      end
      out[#out + 1] = name .. " " .. table.concat(parts, ",")
    end
  end
  for i, answer in ipairs(result.said) do said[i] = tostring(answer) end
  return table.concat(out, "\n") .. "\nseen " .. table.concat(result.seen, ","), table.concat(said, ",")
end

local function clean()
  for i = 0, mr.device_count() - 1 do mr.synchronize(i) end
  collectgarbage()
  collectgarbage()
end

local function run(fn, chooser)
  local before = mr.machine.chooser(chooser)
  local value, said = text_of(fn())
  mr.machine.chooser(before)
  clean()
  return value, said
end

-- -> reports, totals, what the queries have said. In a coroutine, since no report needs the variables of this file.
local function check(fn)
  local said
  local reports, totals = coroutine.wrap(function()
    return mr.hazard.check(function() said = fn().said end)
  end)()
  for i, answer in ipairs(said) do said[i] = tostring(answer) end
  clean()
  return reports, totals, table.concat(said, ",")
end

-- The outcomes of large tensors take memory.
local function explore(fn)
  local most = current.large and 40 or 3000
  local r = coroutine.wrap(function() return mr.explore(fn, { max = most, time = 3 }) end)()
  clean()
  return r
end

local function messages(reports)
  local texts = {}
  for i, r in ipairs(reports) do texts[i] = r.message end
  return table.concat(texts, "\n")
end

local function clauses_of(totals) return table.concat(totals.not_followed or {}, "\n") end

local function has(reports, kind)
  for _, r in ipairs(reports) do if r.kind == kind then return true end end
  return false
end

-- ---------------------------------------------------------------- the checker

-- The programs keep all conditions but those about queries, whose answers are compared. Copies of pageable memory wait
-- under each chooser, and the collector stands still.
local function check_one_value(fn, about, ...)
  local first, said = run(fn, CHOOSERS[1])
  for i = 2, #CHOOSERS do
    local value, answers = run(fn, CHOOSERS[i])
    if value ~= first and answers == said then
      wrong(about .. "; under %s:\n%s\nand before:\n%s", ..., CHOOSERS[i], value, first)
      return
    end
  end
end

local ROWS = {}
for _, word in ipairs((select(3, mr.docs()))) do
  if word.kind == "limit" or word.kind == "condition" then ROWS[#ROWS + 1] = word end
end

-- With the words of docs/hazards.md: tests/host/claims.lua compares these with the rows.
local function check_clauses(reports, totals)
  local text, rows = clauses_of(totals), 0
  for _, row in ipairs(ROWS) do
    local is_limit = row.kind == "limit"
    if (totals[row.name] or 0) > 0 and (is_limit or totals.claim ~= "none") then
      rows = rows + 1
      local common = is_limit and row.text:match("^[^#@]*") or row.text:match("%S+ %S+ %S+$")
      if not text:find(common, 1, true) then wrong("%s is counted, and not told: %s", row.name, text) end
    end
  end
  if #reports > 0 then return end -- conditions are left out
  if rows ~= #(totals.not_followed or {}) then wrong("%d rows are counted; told is: %s", rows, text) end
  if (totals.claim == "every-legal-schedule") ~= (rows == 0) then wrong("%s: %s", totals.claim, text) end
end

-- ---------------------------------------------------------------- fixes

local function lines_of(text)
  local lines = {}
  for line in text:gmatch("([^\n]*)\n") do lines[#lines + 1] = line end
  return lines
end

-- Some lines have to be split, which nobody does here.
local function has_split(reports)
  for _, report in ipairs(reports) do
    for _, fix in ipairs(report.fixes) do if fix.place == "within" then return true end end
  end
  return false
end

-- The text with the fixes; nil: there are none, or not all have a place between two lines.
local function with_fixes(text, reports)
  local at, done = { before = {}, after = {} }, {}
  if has_split(reports) then return nil end
  for _, r in ipairs(reports) do
    for _, fix in ipairs(r.fixes) do
      local key = fix.place .. fix.line .. fix.text
      if not done[key] then
        local place = at[fix.place]
        place[fix.line] = (place[fix.line] or "") .. fix.text .. "\n"
        done[key], done.any = true, true
      end
    end
  end
  local out = {}
  for i, line in ipairs(lines_of(text)) do out[i] = (at.before[i] or "") .. line .. "\n" .. (at.after[i] or "") end
  return done.any and table.concat(out) or nil
end

-- How many reports are of this pair; the fix may have moved its lines.
local function count_like(reports, report)
  local function key_of(r)
    local function side(s) return s and s.where and s.op .. " " .. s.access or "-" end
    return table.concat({ r.kind, r.tensor, side(r.first), side(r.second) }, " ")
  end
  local n, key = 0, key_of(report)
  for _, r in ipairs(reports) do if key_of(r) == key then n = n + 1 end end
  return n
end

-- -> the text without a hazard, or nil
local function repaired(text, reports)
  local one = with_fixes(text, { reports[1] })
  if one then
    local now = check(function_of(one))
    count "fixes"
    if count_like(now, reports[1]) >= count_like(reports, reports[1]) then
      wrong("the fix of a report does not remove it:\n%s\nbehind it:\n%s", reports[1].message, messages(now))
    end
  end
  local first = reports
  for _ = 1, ROUNDS do
    text = with_fixes(text, reports)
    if not text then return nil end
    reports = check(function_of(text))
    if #reports == 0 then return text end
  end
  if not has_split(reports) then
    wrong("%d rounds of fixes leave:\n%s\nat first:\n%s\n%s", ROUNDS, messages(reports), messages(first), text)
  end
end

-- ---------------------------------------------------------------- the explorer

local RACE = { ["read-after-write"] = true, ["write-after-read"] = true, ["write-after-write"] = true }

-- One of its accesses is only assumed. Or it may read what fresh memory held, which differs from run to run.
local function is_open(report)
  if report.first and report.first.assumed or report.second.assumed or not RACE[report.kind] then return true end
  for _, tensor in ipairs(report.tensors) do if tensor == "t" then return true end end
  return false
end

local function check_values(fn, r, text)
  local known = {}
  for _, o in ipairs(r.outcomes) do known[table.concat({ text_of(o.value) }, "\n")] = true end
  count "outcomes compared"
  -- Under a chooser operations of several blocks have parts.
  local parts = r.not_followed and r.not_followed.parts
  if parts and (current.large or text:find("mr.op", 1, true)) then return end
  for _, report in ipairs(r.hazards) do if is_open(report) then return end end
  for _, chooser in ipairs(CHOOSERS) do
    local value = table.concat({ run(fn, chooser) }, "\n")
    if not known[value] then
      wrong("the value of %s is not among the outcomes:\n%s\n%s", chooser, value, tostring(r))
      return
    end
  end
end

local function check_replays(fn, r)
  for i = 1, math.min(4, #r.outcomes) do
    local o = r.outcomes[i]
    local value, said = text_of(o.value)
    local fine, again = pcall(mr.replay, o.schedule, fn)
    local now, now_said = again, nil
    if fine then now, now_said = text_of(again) end
    if now ~= value or said ~= now_said then wrong("outcome %d is replayed to another one: %s\n%s", i, value, now) end
    clean()
  end
end

local function check_explored(fn, text, reports, totals, said)
  local fine, r = pcall(explore, fn)
  if not fine then wrong("mr.explore fails: %s", tostring(r)) return end
  for _, o in ipairs(r.outcomes) do
    if o.error then wrong("an outcome is an error: %s", tostring(r)) return r end
  end
  count(r.deterministic and "deterministic" or r.complete and "complete" or "not complete")
  local claims = #reports == 0 and totals.claim
  if claims == "every-legal-schedule" and #r.outcomes > 1 then
    wrong("no hazard and no condition, and %d outcomes:\n%s", #r.outcomes, tostring(r))
  elseif claims and claims ~= "none" then
    local first
    for _, o in ipairs(r.outcomes) do
      local value, answers = text_of(o.value)
      if answers == said then
        if first and first ~= value then wrong("no hazard (%s), and:\n%s", clauses_of(totals), tostring(r)) break end
        first = value
      end
    end
  end
  -- Behind another answer, value or turn of the tasks there are others. The collector frees at times of its own. Which
  -- bytes `scatter` writes depends on a race, if x takes part in one.
  local hazards, varies = 0, false
  for _, what in ipairs { ":query()", "mr.run", "kernels.scatter", ":item() >" } do
    varies = varies or text:find(what, 1, true)
  end
  for _, report in ipairs(r.hazards) do hazards = hazards + (report.second.where and 1 or 0) end
  local with_place = 0
  for _, report in ipairs(reports) do with_place = with_place + (report.second.where and 1 or 0) end
  -- Only the later of two accesses in a row that race with a function is kept until the function runs.
  local is_covered = hazards > with_place and text:find("host_func", 1, true)
  if with_place ~= hazards and not varies and not is_covered then
    wrong("the checker has %d reports, and mr.explore %d:\n%s\n%s", with_place, hazards, messages(reports), tostring(r))
  end
  if r.complete and r.schedules == 1 and r.claim ~= "none" then
    for _, report in ipairs(r.hazards) do
      if not is_open(report) then wrong("a race in one schedule:\n%s", tostring(r)) break end
    end
  end
  local has_all = not r.combined or #r.outcomes == r.combined.outcomes
  if has_all and r.complete and r.claim ~= "none" then check_values(fn, r, text) end
  check_replays(fn, r)
  return r
end

-- ---------------------------------------------------------------- mr.waits

-- Lines that are a wait and nothing else.
local function is_alone(line)
  return line and (line:find("^%w+:[%w_]+%([%w_]*%)$") or line:find("^mr.synchronize%([01]?%)$"))
end

local function check_waits(text, above, totals, said)
  local result = mr.waits(function_of(text))
  clean()
  if result.hazards_assumed and totals.withdrawn > 0 then return end -- docs/waits.md
  if result.hazards > 0 then wrong("mr.waits counts %d hazards, and the checker none", result.hazards) return end
  local lines = current.lines
  local function without(gone)
    local left = {}
    for i, line in ipairs(lines) do left[i] = gone[i] and "" or line end
    return function_of((programs.text(current, left)))
  end
  local function judge(what, w, at)
    local changed = without { [at] = true }
    local reports, now, answers = check(changed)
    if answers ~= said then return end -- the script goes another way
    count(what .. " " .. w.verdict)
    local is_assumed = now.withdrawn > 0 and w.because:find("the code does not tell", 1, true)
    if w.verdict == "needed" and #reports == 0 and not is_assumed then
      wrong("%s of line %d is needed, and without it there is no hazard: %s", what, at, tostring(result))
    elseif w.verdict ~= "needed" and #reports > 0 then
      wrong("%s of line %d is %s, and without it:\n%s\n%s", what, at, w.verdict, messages(reports), tostring(result))
    elseif w.verdict == "redundant" and now.unspecified > totals.unspecified then
      wrong("%s of line %d is redundant, and without it a copy of pageable memory has to wait: %s", what, at,
        tostring(result))
    elseif w.verdict == "redundant" and now.claim ~= "none" then
      check_one_value(changed, "%s of line %d is redundant, and without it there are two values", what, at)
    end
  end
  local not_kept = {}
  for what, list in pairs { wait = result.waits, record_stream = result.record_streams } do
    for _, w in ipairs(list) do
      local at = tonumber(w.where:match(":(%d+)$")) - above
      if is_alone(lines[at]) or (what == "record_stream" and lines[at]) then
        judge(w.kind or what, w, at)
        not_kept[at] = not w.kept or nil
      end
    end
  end
  local reports, _, answers = check(without(not_kept))
  if #reports > 0 and answers == said then
    wrong("what mr.waits keeps does not suffice:\n%s\n%s", messages(reports), tostring(result))
  end
end

-- ---------------------------------------------------------------- traces

local AT_ONCE = { host = true, synchronize = true, ["pageable-memory"] = true, ["multiprocessors-full"] = true,
  collective = true }
local SOME = 6 -- of which each two are asked about
local NEAR = 1e-6

local function check_trace(fn)
  local tr = mr.timeline(fn)
  clean()
  local works = {}
  for _, s in ipairs(tr.spans) do
    local is_work = s.engine and s.engine ~= "host" and s.start
    local function later(a, b) return a and b and a > b + NEAR end
    if later(s.start, s.finish) then wrong("`%s` at %s ends before it starts", s.name, s.where) end
    if is_work and later(s.called, s.start) then wrong("`%s` at %s starts before its call", s.name, s.where) end
    if later(s.ready, s.start) then wrong("`%s` at %s starts before it is ready", s.name, s.where) end
    local holder, record = tr.spans[s.holder], tr.spans[s.record]
    if holder and not AT_ONCE[s.held_by] and later(holder.finish, s.start) then
      wrong("`%s` at %s starts at %g, and `%s`, which holds it up, ends at %g", s.name, s.where, s.start, holder.name,
        holder.finish)
    end
    if record and later(record.finish, s.finish) then wrong("the wait at %s is over before its record", s.where) end
    if is_work then works[#works + 1] = s end
  end
  for i = math.max(2, #works - SOME), #works do
    for k = math.max(1, #works - SOME), i - 1 do
      local fine, why = pcall(tr.why, tr, works[k], works[i])
      if not fine then wrong("tr:why: %s", tostring(why)) return end
    end
  end
end

-- ---------------------------------------------------------------- all of a program

local judge

-- The program with the lines of the fixes is one more.
local function judge_fixed(o, name, text, above)
  local lines = lines_of(text)
  local tail = #lines_of((programs.text(o, {}))) - above - 1
  lines = table.move(lines, above + 1, #lines - tail, 1, {})
  judge({ lines = lines, large = o.large, two = o.two }, name .. " with its fixes")
end

function judge(o, name)
  current = { name = name, lines = o.lines, large = o.large, two = o.two }
  local text, above = programs.text(o)
  local fn = function_of(text)
  local reports, totals, said = check(fn)
  check_clauses(reports, totals)
  count(#reports > 0 and "programs with hazards" or "programs without hazards, " .. totals.claim)
  local claims = #reports == 0 and totals.claim ~= "none"
  if claims then check_one_value(fn, "no hazard (%s), and two values", clauses_of(totals)) end
  if not has(reports, "uninitialised-read") then check_explored(fn, text, reports, totals, said) end
  check_trace(function_of(text))
  if claims then check_waits(text, above, totals, said) end
  local fixed = #reports > 0 and repaired(text, reports)
  if fixed then judge_fixed(o, name, fixed, above) end
end

collectgarbage("stop")
if ONLY then
  local lines = {}
  for line in io.lines(ONLY) do lines[#lines + 1] = line end
  judge({ lines = lines, large = true, two = true }, ONLY)
end
for seed = FIRST, ONLY and 0 or FIRST + COUNT - 1 do
  local fine, err = xpcall(judge, debug.traceback, programs.make(seed, seed % 2 == 0), "program " .. seed)
  if not fine then wrong("an error: %s", tostring(err)) mr.machine.chooser("timed") clean() end
end
collectgarbage("restart")
os.remove(PATH)

if SHOW then
  local names = {}
  for name in pairs(tally) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do print(("%6d %s"):format(tally[name], name)) end
end
T.equal(#found, 0, ("%d disagreements; the first: %s\n"):format(#found, found[1] or ""))
local COMMON = { "programs without hazards, every-legal-schedule", "programs with hazards", "fixes",
  "outcomes compared", "wait_stream needed", "wait_event redundant" }
for _, what in ipairs(ONLY and {} or COMMON) do T.at_least(tally[what] or 0, COUNT // 20, what) end
