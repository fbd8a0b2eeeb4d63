-- Random programs with all features (support/random_programs.lua): whatever a program comes to under any chooser is one
-- of the outcomes of mr.explore, if that is complete and followed everything. Each outcome can be replayed.
--
-- MR_EXPLORE_ALL_PROGRAMS sets how many (150), MR_CLAIMS_FIRST the first seed; with MR_CLAIMS_SHOW each mistake is
-- printed at once, and what the programs were like at the end.
-- timeout: 300
-- virtual only: schedules are explored on the virtual GPU
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: schedules are explored
local mr = require "millrace"
local T = require "millrace.testing"
local programs = require "lua.support.random_programs"

T.rule("explore_programs")

local COUNT = tonumber(os.getenv("MR_EXPLORE_ALL_PROGRAMS")) or 150
local FIRST = tonumber(os.getenv("MR_CLAIMS_FIRST")) or 1
local SHOW = os.getenv("MR_CLAIMS_SHOW")
local CHOOSERS = { "timed", "adversarial" }
for seed = 1, 6 do CHOOSERS[#CHOOSERS + 1] = "random:" .. seed end

-- Actions that are refused while a function is explored, or that depend on no order: points in time, addresses, a peek.
local WITHOUT = { reset = true, look = true, by_list = true, by_number = true, by_struct = true, address = true,
  one_by_one = true, op = true, -- its parts can be torn
  host_draws = true, -- what is drawn elsewhere depends on when they run, which is refused
  unwritten = true } -- what nothing has written reads as zero
for _, kind in ipairs(programs.kinds) do WITHOUT[kind] = WITHOUT[kind] or kind:find("^learn_") ~= nil end

local tally = {}
local function count(what) tally[what] = (tally[what] or 0) + 1 end

-- While a failure is pending, mr.explore refuses some functions.
local FAILURES = { fault = true, outside = true, check = true, host_fails = true }

local function may_fail(program)
  for _, n in ipairs(program) do if FAILURES[n.kind] then return true end end
  return false
end

local function explored(program)
  programs.load_kernels()
  local function fn() return (programs.run(program)) end
  local fine, r = pcall(mr.explore, fn, { max = 300 })
  if not fine then
    programs.clean()
    return nil, tostring(r)
  end
  programs.clean()
  return r
end

-- A chooser whose result the exploration does not have, and what it says; else nil, and why nothing was compared.
local function missing(program)
  local r, err = explored(program)
  if not r and may_fail(program) and err:find("not repeatable", 1, true) then return nil, "refused" end
  if not r then return "explore", err end
  if not r.complete then return nil, "incomplete" end
  -- No chooser cuts operations on so few elements.
  if r.not_followed and not (r.not_followed.parts and #r.not_followed == 1) then return nil, "not followed" end
  local known, failed = {}, false
  for _, o in ipairs(r.outcomes) do
    known[o.value or o.error] = true
    failed = failed or o.error ~= nil
  end
  for _, chooser in ipairs(CHOOSERS) do
    mr.machine.chooser(chooser)
    local value = programs.run(program)
    programs.clean()
    -- A failure is the outcome, also if the script has caught it.
    local is_failure = failed and value:find("the device failed", 1, true)
    if not is_failure and not known[value] then return chooser, value end
  end
  return nil, #r.outcomes > 1 and "several outcomes" or r.schedules > 1 and "several schedules" or "deterministic", r
end

mr.machine.chooser("timed")
collectgarbage("stop") -- when it frees is nothing that a chooser decides
for seed = FIRST, FIRST + COUNT - 1 do
  local program = programs.make(seed, WITHOUT)
  local by, what, r = missing(program)
  if by then
    program = programs.smallest(program, function(p) return missing(p) == by end)
    print(("program %d, %s: %s\n%s"):format(seed, by, what, programs.describe(program)))
    if not SHOW then T.check(false, "the exploration lacks an outcome") end
    count("wrong")
  else
    count(what)
  end
  for i = 1, r and math.min(#r.outcomes, 2) or 0 do
    local o = r.outcomes[i]
    programs.load_kernels()
    local fine, value = pcall(mr.replay, o.schedule, function() return (programs.run(program)) end)
    programs.clean()
    local is_same = value == o.value or o.error and (not fine or value:find("the device failed", 1, true))
    T.check(is_same, ("program %d: an outcome cannot be replayed: %s"):format(seed, value))
  end
  collectgarbage()
end
mr.machine.chooser("timed")
if SHOW then for what, times in pairs(tally) do print(times, what) end end
T.equal(tally.wrong, nil, "programs")
T.at_least(tally["several outcomes"] or 0, COUNT // 20, "programs with several outcomes")
T.check((tally.refused or 0) <= COUNT // 50, "too many programs were refused")
T.at_least(tally.deterministic or 0, COUNT // 20, "deterministic programs")
