-- Functions for the project's own test scripts. They are checks whose messages say what was expected, the clocks of the
-- host and of the device, and runs of a program under many schedules.
--
--     local T = require "millrace.testing"
--
-- A check that fails raises, with the rule and the line of the script. Times are in milliseconds.

local mr = require "millrace"
local words = require "millrace.words"
local plural = words.plural

local T = {}

local prefix = ""
local checks = 0

-- Runs when the state closes. A script that made no check prints no count, and tests/run.lua then counts it as failed.
-- Under --sandbox there are no finalizers, and no count.
local has_finalizers, at_end = pcall(setmetatable, {}, { __gc = function()
  if checks > 0 then print(plural(checks, "check")) end
end })
T.at_end = has_finalizers and at_end or nil

local function fail(text, ...)
  error(prefix .. words.format(text, ...), 3)
end

-- Sets the rule that the script tests. Every message begins with it.
function T.rule(name)
  prefix = name .. ": "
end

-- Ends the script with the status that means "not available here", and prints the reason. Under --sandbox, where a
-- script cannot end the program, it is an error.
function T.skip(reason)
  if not os.exit then error("skipped: " .. reason, 0) end
  print("skipped: " .. reason)
  os.exit(77, true)
end

-- ---------------------------------------------------------------- checks

function T.check(condition, text)
  checks = checks + 1
  if not condition then fail("%s", text) end
end

function T.equal(got, expected, text)
  checks = checks + 1
  if got ~= expected then fail("%s: got %s, expected %s", text, got, expected) end
end

function T.at_least(got, least, text)
  checks = checks + 1
  if got >= least then return end -- not `got < least`: NaN must fail
  fail("%s: got %g, expected at least %g", text, got, least)
end

function T.less(got, bound, text)
  checks = checks + 1
  if got < bound then return end
  fail("%s: got %g, expected less than %g", text, got, bound)
end

function T.near(got, expected, tolerance, text)
  checks = checks + 1
  if math.abs(got - expected) <= tolerance then return end
  fail("%s: got %g, expected %g to within %g", text, got, expected, tolerance)
end

-- The code of an error. Misuse raises a string, which has no code; it counts as invalid-argument.
local function code_of(err)
  return type(err) == "string" and "invalid-argument" or err.code
end

-- Checks that `fn(...)` raises an error with this code, such as "invalid-handle". Returns the error.
function T.raises(code, fn, ...)
  checks = checks + 1
  local ok, err = pcall(fn, ...)
  if ok then fail("expected the error %s, got none", code) end
  if code_of(err) ~= code then fail("expected the error %s, got: %s", code, err) end
  return err
end

-- ---------------------------------------------------------------- clocks

-- Records a new timed event on the stream. `later - earlier` is the time between two such events on the device.
function T.mark(stream)
  return mr.event{timing = true}:record(stream)
end

-- Returns how long the host needs for `fn(...)`.
function T.took(fn, ...)
  local before = mr.clock()
  fn(...)
  return mr.clock() - before
end

-- ---------------------------------------------------------------- schedules

local SEEDS = 24

-- Runs `fn` under each chooser of the virtual GPU, or a few times on a real GPU. Returns the set of its results.
local function outcomes(fn)
  local seen = {}
  if not mr.machine then
    for _ = 1, 5 do seen[fn()] = "this GPU" end
    return seen
  end
  local names = { "timed", "adversarial" }
  for seed = 1, SEEDS do names[#names + 1] = "random:" .. seed end
  for _, name in ipairs(names) do
    local before = mr.machine.chooser(name)
    local ok, value = pcall(fn)
    mr.machine.chooser(before)
    if not ok then error(value, 0) end
    seen[value] = name
  end
  return seen
end

-- For an order that the rules fix: checks that `fn` returns `expected` under every schedule. `fn` must wait for all
-- work that it submits.
function T.always(expected, fn, text)
  checks = checks + 1
  for value, chooser in pairs(outcomes(fn)) do
    if value ~= expected then fail("%s: got %s under %s, expected %s", text, value, chooser, expected) end
  end
end

-- Calls `fn(...)` with the checker off if it would stop `fn`: for intentional races.
local function unchecked(fn, ...)
  if mr.hazard.mode() ~= "error" then return fn(...) end
  mr.hazard.mode("off")
  local results = table.pack(pcall(fn, ...))
  mr.hazard.mode("error")
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end

-- For an order that the rules leave open: checks that `fn` returns one of `values`, and on the virtual GPU that some
-- schedule gives each of them. `fn` must wait for all work that it submits. It races on purpose, so --check=error does
-- not stop it.
function T.either(values, fn, text)
  checks = checks + 1
  local seen = unchecked(outcomes, fn)
  for _, value in ipairs(values) do
    if mr.machine and seen[value] == nil then fail("%s: no schedule gave %s", text, value) end
    seen[value] = nil
  end
  local value, chooser = next(seen)
  if value ~= nil then fail("%s: got %s under %s, which is not allowed", text, value, chooser) end
end

-- ---------------------------------------------------------------- hazards

local function describe(reports)
  if #reports == 0 then return "none" end
  local lines = {}
  for i, r in ipairs(reports) do
    local function place(side) return side and side.where or "-" end
    lines[i] = ("kind=%s reason=%s tensor=%s first=%s second=%s"):format(r.kind, r.reason, r.tensor or "-",
      place(r.first), place(r.second))
  end
  return table.concat(lines, "; ")
end

-- Checks that `fn(...)` has exactly one hazard, with the kind, tensor and reason in `expected` (each is optional).
-- Returns its report.
function T.expect_hazard(fn, expected, ...)
  checks = checks + 1
  local reports = mr.hazard.check(fn, ...)
  expected = expected or {}
  local found
  for _, r in ipairs(reports) do
    local same = true
    for key, value in pairs(expected) do same = same and r[key] == value end
    found = found or (same and r)
  end
  if not found or #reports > 1 then
    local parts = {}
    for _, key in ipairs { "kind", "reason", "tensor" } do
      if expected[key] then parts[#parts + 1] = key .. "=" .. tostring(expected[key]) end
    end
    fail("expected one hazard (%s), got %s", table.concat(parts, " "), describe(reports))
  end
  return found
end

-- Checks that `fn(...)` has no hazard under any schedule. It passes under conditions that the script can ensure, such
-- as that no time decides the host's actions. A row that forbids the claim (hazard/claims.h) fails it.
function T.expect_clean(fn, ...)
  checks = checks + 1
  local reports, totals = mr.hazard.check(fn, ...)
  if #reports > 0 then fail("expected no hazard, got %s\n%s", describe(reports), reports[1].message) end
  if totals.operations + totals.checked_apart == 0 then fail("nothing was checked: no operation was submitted") end
  if totals.operations > 0 and totals.claim == "none" then
    local lines = table.concat(totals.not_followed, "\n  ")
    fail("expected no hazard, but that is unknown, because not everything was followed:\n  %s", lines)
  end
end

-- ---------------------------------------------------------------- waits

-- Checks that `fn()` has no hazard and no wait that it could do without: so a smallest sufficient set has all of them.
-- `expected.waits`: and that it has so many. Returns the result of mr.waits.
function T.expect_minimal(fn, expected)
  checks = checks + 1
  local result = mr.waits(fn)
  local wanted = expected and expected.waits or result.total
  if result.hazards > 0 then fail("expected no hazard:\n%s", result) end
  if result.claim == "none" then
    fail("it is unknown which waits can be removed, because not everything was followed:\n%s", result)
  end
  if result.sufficient < result.total then
    fail("expected no superfluous wait, but %d of %d suffice:\n%s", result.sufficient, result.total, result)
  end
  if result.total ~= wanted then fail("expected %s, got %d:\n%s", plural(wanted, "wait"), result.total, result) end
  return result
end

-- ---------------------------------------------------------------- every schedule

local function texts_of(r)
  local texts = {}
  for _, o in ipairs(r.outcomes) do
    local shown = {}
    for i = 1, o.error and 0 or o.values.n do shown[i] = tostring(o.values[i]) end
    local text = o.error and "error: " .. o.error or table.concat(shown, ", ")
    texts[#texts + 1] = words.format("%s (in %d of %.0f schedules)", text, o.count,
      r.combined and r.combined.classes or r.schedules)
  end
  local count = r.combined and r.combined.outcomes or #r.outcomes
  if count > #r.outcomes then
    texts[#texts + 1] = words.format("and combinations of these: %.15g outcomes in all", count)
  end
  return table.concat(texts, ", ")
end

local function same(value, expected)
  if type(value) ~= "table" or type(expected) ~= "table" then
    return value == expected or value ~= value and expected ~= expected -- NaN
  end
  for key, part in pairs(value) do if not same(part, expected[key]) then return false end end
  for key in pairs(expected) do if value[key] == nil then return false end end
  return true
end

-- Several values are a list, which has `n` here.
local function comes_to(outcome, expected)
  local values = outcome.values
  if outcome.error or not values then return false end
  if values.n <= 1 then return same(values[1], expected) end
  if type(expected) ~= "table" then return false end
  for i = 1, values.n do if not same(values[i], expected[i]) then return false end end
  for key in pairs(expected) do if key ~= "n" and values[key] == nil then return false end end
  return true
end

local function explore(fn, options)
  local r = mr.explore(fn, options)
  if not r.complete then fail("not all schedules were tried: %s", r.incomplete) end
  return r
end

-- A test passes with conditions that the script can answer for, and not where accesses are missing, launches have races
-- inside, or the function was not called again.
local function check_followed(r)
  for _, h in ipairs(r.hazards) do
    if h.kind == "race-in-kernel" then
      fail("a launch has a race inside, and only one order of it was tried:\n%s", h.message)
    end
  end
  local left = r.not_followed
  if left and (r.claim == "none" or left.called_once) then
    fail("not everything was followed:\n  %s", table.concat(left, "\n  "))
  end
end

-- Checks that `fn` returns exactly these values, each under some schedule (virtual GPU only). Where `fn` returns
-- several values, each is a list of them. `options`: those of mr.explore.
function T.expect_outcomes(fn, expected, options)
  checks = checks + 1
  for i = 1, #expected do
    for k = 1, i - 1 do
      if same(expected[i], expected[k]) then
        error(("expect_outcomes: %s is listed twice; list each outcome once"):format(tostring(expected[i])), 2)
      end
    end
  end
  local r = explore(fn, options)
  if r.combined and r.combined.outcomes > #r.outcomes then
    fail("expected %s, there are %s", plural(#expected, "outcome"), texts_of(r))
  end
  for _, value in ipairs(expected) do
    local met = false
    for _, o in ipairs(r.outcomes) do met = met or comes_to(o, value) end
    if not met then fail("no schedule gives %s; there are %s", tostring(value), texts_of(r)) end
  end
  for _, o in ipairs(r.outcomes) do
    local met = false
    for _, value in ipairs(expected) do met = met or comes_to(o, value) end
    if not met then fail("expected %s, there are %s", plural(#expected, "outcome"), texts_of(r)) end
  end
  check_followed(r)
  return r
end

-- Checks that `fn` comes to the same values under every schedule, without an error. Returns the values.
function T.expect_deterministic(fn, options)
  checks = checks + 1
  local r = explore(fn, options)
  if #r.outcomes > 1 then fail("expected one outcome, there are %s\n%s", texts_of(r), tostring(r)) end
  if r.outcomes[1].error then fail("expected a value, got the error: %s", r.outcomes[1].error) end
  check_followed(r)
  if r.not_followed and r.not_followed.collector then
    fail("memory is freed while another stream uses it; which tensor gets it depends on when Lua's collector frees\n%s",
      tostring(r))
  end
  if r.not_followed and r.not_followed.unwritten then
    fail("memory that nothing has written is read, or may be read before it is written\n%s", tostring(r))
  end
  if r.not_followed and r.not_followed.parts then
    fail("operations race, and the one outcome holds only while each is carried out as a whole; order them\n%s",
      tostring(r))
  end
  return table.unpack(r.outcomes[1].values, 1, r.outcomes[1].values.n)
end

-- Checks that work of two streams (objects or names) overlaps for at least so many milliseconds while `fn` runs.
function T.expect_overlap(fn, first, second, milliseconds)
  checks = checks + 1
  local got = mr.timeline(fn):overlap(first, second)
  if got < milliseconds then
    fail("expected an overlap of at least %g ms, got %g ms", milliseconds, got)
  end
  return got
end

-- The functions that begin with the same word, or all.
local function names_like(name)
  local word, like, all = tostring(name):match "^(%a+)_", {}, {}
  for known, value in pairs(T) do
    if type(value) == "function" then
      all[known] = true
      if word and known:find("^" .. word .. "_") then like[known] = true end
    end
  end
  return words.keys(next(like) and like or all):gsub(" ", ", ")
end

return setmetatable(T, { __index = function(_, name)
  error(("millrace.testing has no `%s`: it has %s"):format(tostring(name), (names_like(name))), 2)
end })
