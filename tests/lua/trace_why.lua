-- virtual only: the same program takes the same times each time
-- What tr:why() says of random programs, against the same programs without the cause that it names. Each statement of a
-- program is a line, so the answer's line is the line to change: to leave out, to give another stream, pinned memory.
--     MILLRACE_WHY_PROGRAMS=1000 MILLRACE_WHY_SEED=7   runs more of them, or others
-- not checked: its programs race
local lu = require "luaunit"
local mr = require "millrace"

local PROGRAMS = tonumber(os.getenv("MILLRACE_WHY_PROGRAMS") or 40)
local SEED = tonumber(os.getenv("MILLRACE_WHY_SEED") or 1)
local NEAR_MS = 0.012 -- engines that hand over, and calls that a line makes: operations take 0.03 to 1 ms

local STREAMS = { "a", "b", "c", "x", "y", "d" } -- x and y are blocking, d is the default stream

-- ---------------------------------------------------------------- programs

local function any(list) return list[math.random(#list)] end

-- A line: its text; the streams that it concerns; what its work is called, if it has some.
local makers = {
  function(i)
    local s, blocks = any(STREAMS), ""
    if math.random(5) == 1 then blocks = (", blocks = %d"):format(math.random(20, 160)) end
    local data = any{ "", "", "", "", "", ", writes = {t1}", ", writes = {t2}", ", reads = {t1}",
      ", reads = {t2}, writes = {t1}" }
    local text = '%s:run(function() mr.op{name = "k%d", ms = %.2f%s%s} end)'
    return { text = text:format(s, i, math.random() + 0.03, blocks, data), streams = { s }, work = true }
  end,
  function()
    local s, e = any(STREAMS), "e" .. math.random(3)
    return { text = ("%s:record(%s)"):format(e, s), streams = { s }, records = e }
  end,
  function()
    local s, e = any(STREAMS), "e" .. math.random(3)
    return { text = ("%s:wait_event(%s)"):format(s, e), streams = { s }, waits = e }
  end,
  function()
    local s, t = any(STREAMS), any(STREAMS)
    if s == t then return { text = "local _ = 0", streams = {} } end
    return { text = ("%s:wait_stream(%s)"):format(s, t), streams = { s, t } }
  end,
  function()
    return { text = "mr.barrier{a, b, x}", streams = { "a", "b", "x" } }
  end,
  function()
    local what = any{ "a", "b", "x", "e1", "e2", "mr" }
    return { text = what == "mr" and "mr.synchronize()" or what .. ":synchronize()", streams = {} }
  end,
  function()
    local s = any(STREAMS)
    return { text = ("%s:run(function() small:item() end)"):format(s), streams = { s } }
  end,
  function()
    local s, from = any(STREAMS), any{ "page", "pin" }
    local text = "%s:run(function() dev:copy_(%s, {non_blocking = true}) end)"
    return { text = text:format(s, from), streams = { s }, work = true }
  end,
  function()
    local s, to = any(STREAMS), any{ "page", "pin" }
    local text = "%s:run(function() %s:copy_(dev, {non_blocking = true}) end)"
    return { text = text:format(s, to), streams = { s }, work = true }
  end,
  function()
    local s = any(STREAMS)
    local text = "%s:run(function() dev:copy_(pin, {non_blocking = false}) end)"
    return { text = text:format(s), streams = { s }, work = true }
  end,
  function()
    local s = any(STREAMS)
    return { text = ("%s:host_func(function() end)"):format(s), streams = { s } }
  end,
  function()
    local s = any(STREAMS)
    local text = "%s:run(function() keep[#keep + 1] = dev + 1 end)"
    return { text = text:format(s), streams = { s }, work = true }
  end,
  function()
    return { text = "if #keep > 0 then table.remove(keep):free() end", streams = {}, frees = true }
  end,
}
local WEIGHTS = { 9, 2, 3, 2, 1, 2, 1, 2, 2, 1, 1, 2, 1 }

local function make_line(i)
  local sum = 0
  for _, weight in ipairs(WEIGHTS) do sum = sum + weight end
  local at = math.random(sum)
  for k, weight in ipairs(WEIGHTS) do
    at = at - weight
    if at <= 0 then return makers[k](i) end
  end
end

local function make_program()
  local program = { blocking = { x = true, y = true } }
  for i = 1, math.random(5, 14) do program[i] = make_line(i) end
  return program
end

local NAMES = "mr, a, b, c, x, y, d, fresh, e1, e2, e3, small, dev, page, pin, keep, copy_small, pin2, t1, t2"

local small, dev = mr.zeros(1), mr.zeros(1 << 19)
local page, pin = mr.zeros({ 1 << 19 }, { device = "cpu" }), mr.zeros({ 1 << 19 }, { pinned = true })

local pin2 = mr.zeros({ 1 << 19 }, { pinned = true })
local t1, t2 = mr.zeros(1), mr.zeros(1)
local value = mr.zeros({ 1 }, { pinned = true }):name("value")
local function copy_small() value:copy_(small, { non_blocking = true }) end

-- Calls `how` with the program as a function, and with its arguments.
local function run_by(how, program)
  local text = {}
  for i, line in ipairs(program) do text[i] = line.text end
  local chunk = assert(load(("local %s = ... "):format(NAMES) .. table.concat(text, "\n"), "=program"))
  local function stream(name) return mr.stream{ name = name, nonblocking = not program.blocking[name] } end
  collectgarbage()
  mr.synchronize()
  collectgarbage("stop")
  local result = how(chunk, mr, stream("a"), stream("b"), stream("c"), stream("x"), stream("y"), mr.default_stream(),
    stream("fresh"), mr.event(), mr.event(), mr.event(), small, dev, page, pin, {}, copy_small, pin2, t1, t2)
  collectgarbage("restart")
  return result
end

local function run(program) return run_by(mr.timeline, program) end

local RACES = { ["read-after-write"] = true, ["write-after-read"] = true, ["write-after-write"] = true }

-- Two lines of a race that the checker finds in it, or nil.
local function races_of(program)
  local race
  local list = run_by(function(chunk, ...)
    local arguments = table.pack(...)
    return mr.hazard.check(function() chunk(table.unpack(arguments, 1, arguments.n)) end)
  end, program)
  for _, report in ipairs(list) do
    if RACES[report.kind] and report.tensor ~= "value" then
      race = ("%s and %s"):format(report.first.where, report.second.where)
    end
  end
  mr.synchronize()
  return race
end

local function line_of(where) return where and tonumber(where:match("^program:(%d+)$")) end

-- The last work of a line on a device.
local function span_of(tr, line)
  local found
  for _, span in ipairs(tr.spans) do
    if span.start and span.engine and span.engine ~= "host" and line_of(span.where) == line then found = span end
  end
  return found
end

-- ---------------------------------------------------------------- what the answer asks for

local function copy_of(program)
  local changed = { blocking = { x = program.blocking.x, y = program.blocking.y }, table.unpack(program) }
  return changed
end

local function with_text(line, text) return setmetatable({ text = text }, { __index = line }) end

-- Whether line `at` comes after line `on` without a step between, or the host may wait there.
local function depends(program, at, on)
  local line, earlier = program[at], program[on]
  if earlier.waited then return true end
  if line.waits and earlier.records == line.waits then return true end
  for _, s in ipairs(line.streams) do
    for _, t in ipairs(earlier.streams) do
      local blocking = program.blocking
      if s == t or (s == "d" and blocking[t]) or (t == "d" and blocking[s]) then return true end
    end
  end
  return false
end

local change = {}

function change.event(program, at) program[at] = with_text(program[at], "") end

change["same-stream"] = function(program, at)
  program[at] = with_text(program[at], (program[at].text:gsub("^%w+:", "fresh:")))
end

change["pageable-memory"] = function(program, at)
  program[at] = with_text(program[at], (program[at].text:gsub("page", "pin2")))
end

function change.synchronize(program, at)
  local text = program[at].text
  text = text:gsub("small:item%(%)", "copy_small()"):gsub("page", "pin2"):gsub("false", "true")
  program[at] = with_text(program[at], text:find("copy_") and text or "")
end

change["default-stream"] = function(program, _, why)
  for name in why.text:gmatch("on stream `(%w+)`") do program.blocking[name] = nil end
end

-- Moves the line that came late; returns how lines are numbered then.
local function move_up(program, at, behind)
  local to = behind
  for i = 1, at - 1 do
    if depends(program, at, i) and i > to then to = i end
  end
  table.insert(program, to + 1, table.remove(program, at))
  return function(line)
    if line == at then return to + 1 end
    return line > to and line < at and line + 1 or line
  end
end

local function changed_program(program, why, early, late)
  local at, changed = line_of(why.where), copy_of(program)
  if not at or program[at].frees then return end
  if why.cause == "host" then
    local renumber = move_up(changed, at, early)
    return changed, renumber(late)
  end
  if not change[why.cause] then return end
  change[why.cause](changed, at, why)
  return changed, late
end

-- ---------------------------------------------------------------- tests

local counts = { exact = 0, guesses = 0, needed = 0, kept = 0 }

local function show(program, why, rest)
  local text = {}
  for i, line in ipairs(program) do text[i] = ("%2d  %s"):format(i, line.text) end
  return ("%s\n%s\n%s"):format(table.concat(text, "\n"), why.text, rest)
end

-- For these causes, only the line that is told can change. The checker says less about whether a copy of pageable
-- memory waits.
local ONE_WAY = { event = true, ["default-stream"] = true }

-- The checker knows what the data need: what is proposed makes no race, and what is refused would. It does not tell all
-- of a program that has a race already.
local function check_data(program, why, early, late)
  local changed = changed_program(program, why, line_of(early.where), line_of(late.where))
  if not changed then return end
  if program.races == nil then program.races = races_of(program) ~= nil end
  if program.races then return end
  local race = races_of(changed)
  if not why.needed_by then
    counts.kept = counts.kept + 1
    if race then lu.fail(show(program, why, "it makes a race of lines " .. race)) end
  elseif ONE_WAY[why.cause] and not program[line_of(why.needed_by[1].where)].text:find("page") then
    counts.needed = counts.needed + 1
    if not race then lu.fail(show(program, why, "without it there is no race")) end
  end
end

local function check_answer(program, tr, one, two)
  local why = tr:why(one, two)
  if why.overlapped then
    local shorter = math.min(one.finish - one.start, two.finish - two.start)
    lu.assertAlmostEquals(why.ms, math.min(one.finish, two.finish) - math.max(one.start, two.start), 1e-9)
    lu.assertAlmostEquals(why.share, why.ms / shorter, 1e-6)
    lu.assertEquals(why.cause == nil, why.share >= 0.9)
  end
  if not why.cause then return end
  local swapped = two.start < one.start or (two.start == one.start and two.index < one.index)
  local early, late = one, two
  if swapped then early, late = two, one end
  check_data(program, why, early, late)
  if why.needed_by then
    lu.assertNil(why.saves_ms)
    return
  end
  lu.assertTrue(why.saves_ms <= late.start, show(program, why, "it would begin before the trace"))
  if not why.exact then
    counts.guesses = counts.guesses + 1
    return
  end
  local changed, line = changed_program(program, why, line_of(early.where), line_of(late.where))
  if not changed then return end
  local again = span_of(run(changed), line)
  local saved = math.max(0, late.start - again.start)
  if math.abs(saved - why.saves_ms) > NEAR_MS then
    local text = "a run without it begins line %d %.3f ms earlier"
    lu.fail(show(program, why, text:format(line, late.start - again.start)))
  end
  counts.exact = counts.exact + 1
  counts[why.cause] = (counts[why.cause] or 0) + 1
end

local function work_of(program, tr)
  for _, span in ipairs(tr.spans) do
    local line = line_of(span.where)
    if line and (span.waited or span.kind:find("%-synchronize$")) then program[line].waited = true end
    if line and span.kind == "free" then
      table.insert(program[line].streams, span.stream == "default stream" and "d" or span.stream)
    end
  end
  local list = {}
  for i, line in ipairs(program) do
    local span = line.work and span_of(tr, i)
    if span then list[#list + 1] = span end
  end
  return list
end

TestWhy = {}

function TestWhy.test_a_run_without_the_cause_shows_what_is_told()
  math.randomseed(SEED)
  for _ = 1, PROGRAMS do
    local program = make_program()
    local tr = run(program)
    local work = work_of(program, tr)
    for _ = 1, 4 do
      if #work > 1 then
        local i = math.random(#work - 1)
        check_answer(program, tr, work[i], work[math.random(i + 1, #work)])
      end
    end
  end
  if os.getenv("MILLRACE_WHY_PROGRAMS") then
    for key, count in pairs(counts) do print(key, count) end
  end
  lu.assertTrue(counts.exact > PROGRAMS)
  lu.assertTrue(counts.guesses < counts.exact)
end

-- item() copies to pageable memory and waits: one call, and one wait.
function TestWhy.test_an_item_is_a_wait()
  local a, b, d = mr.stream{ name = "a" }, mr.stream{ name = "b" }, mr.zeros(9)
  mr.synchronize()
  local why = mr.timeline(function()
    a:run(function()
      mr.op{ name = "k1", ms = 1 }
      d:sum():item()
    end)
    b:run(function() mr.op{ name = "k2", ms = 1 } end)
  end):why("k1", "k2")
  lu.assertEquals(why.cause, "synchronize")
  lu.assertStrContains(why.text, "waited in `item`")
  lu.assertAlmostEquals(why.saves_ms, 1, 0.02)
end

-- Two operations of one tensor: no stream of its own is proposed, for neither.
function TestWhy.test_an_order_that_the_data_need()
  local s, x, y = mr.stream{ name = "s" }, mr.zeros(1 << 22):name("x"), mr.zeros(1 << 22)
  mr.synchronize()
  local tr = mr.timeline(function()
    s:run(function()
      x:add_(1)
      x:exp_()
      y:mul_(2)
    end)
  end)
  local why = tr:why("add_", "exp_")
  lu.assertEquals(why.cause, "same-stream")
  lu.assertEquals({ why.needed_by[1].name, why.needed_by[2].name }, { "add_", "exp_" })
  lu.assertNil(why.saves_ms)
  lu.assertStrContains(why.text, "This order is needed: `add_`")
  lu.assertStrContains(why.text, "access `x`, which both write.")
  lu.assertNotStrContains(why.text, "another stream")
  why = tr:why("add_", "mul_") -- the earlier one must stay, since exp_ needs it; the later one is free to go
  lu.assertNil(why.needed_by)
  lu.assertStrContains(why.text, "Give `mul_`")
  lu.assertTrue(why.saves_ms > 0.001)
end

-- The host's own writes are data, too: the copy cannot be called before them.
function TestWhy.test_a_call_is_not_moved_before_what_the_host_writes()
  local s, t = mr.stream{ name = "s" }, mr.stream{ name = "t" }
  local h, x = mr.zeros({ 4 }, { pinned = true }), mr.zeros(4)
  mr.synchronize()
  local tr = mr.timeline(function()
    s:run(function() mr.op{ name = "k", ms = 0.001 } end)
    for _ = 1, 40 do s:query() end
    h:fill_(7)
    t:run(function() x:copy_(h, { non_blocking = true }) end)
  end)
  local why = tr:why("k", "copy_")
  lu.assertEquals(why.cause, "host")
  lu.assertTrue(why.saves_ms < 0.002, why.text)
end

function TestWhy.test_calls_that_take_longer_than_the_kernel()
  local s, t, x, y = mr.stream(), mr.stream(), mr.zeros(9), mr.zeros(9)
  mr.synchronize()
  local tr = mr.timeline(function()
    s:run(function() x:add_(1) end)
    t:run(function() y:mul_(2) end)
  end)
  lu.assertStrContains(tr:why("add_", "mul_").text, "as a graph (mr.graph), or give each more work.")
end

function TestWhy.test_one_operation_twice()
  local x = mr.zeros(9)
  local tr = mr.timeline(function() x:add_(1) end)
  local why = tr:why("add_", "add_")
  lu.assertFalse(why.overlapped)
  lu.assertStrContains(why.text, "is one operation: there is nothing to compare it with")
end

function TestWhy.test_a_short_overlap_is_told_with_its_share()
  local a, b = mr.stream{ name = "a" }, mr.stream{ name = "b" }
  mr.synchronize()
  local why = mr.timeline(function()
    a:run(function() mr.op{ name = "k1", ms = 0.1 } end)
    for _ = 1, 18 do a:query() end
    b:run(function() mr.op{ name = "k2", ms = 1 } end)
  end):why("k1", "k2")
  lu.assertTrue(why.overlapped)
  lu.assertTrue(why.share > 0.8 and why.share < 0.9)
  lu.assertStrContains(why.text, "% of `k1` (0.100 ms). It began no sooner because the host submitted `k2`")
end

os.exit(lu.LuaUnit.run())
