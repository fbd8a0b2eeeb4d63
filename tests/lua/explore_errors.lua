-- mr.explore: errors that differ are outcomes that differ.
-- virtual only: schedules are explored on the virtual GPU
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: its programs race on purpose
local mr = require "millrace"
local T = require "millrace.testing"

local function race()
  local a, b, x = mr.stream(), mr.stream(), mr.zeros(1)
  mr.synchronize()
  a:run(function() x:fill_(1) end)
  b:run(function() x:fill_(3) end)
  mr.synchronize()
  return x:item()
end

local function errors(count, text, make)
  local r = mr.explore(function() error(make(race()), 0) end)
  T.equal(#r.outcomes, count, text)
  return r.outcomes
end

local found = errors(2, "tables with a number", function(v) return { loss = v } end)
T.check(found[1].error:find "^{loss = [13]%.0}$" ~= nil, "the text of a table")
errors(2, "tables in tables", function(v) return { of = { v } } end)
errors(2, "tables with a tensor", function(v) return { t = mr.full({ 2 }, v) } end)
errors(2, "a number behind #", function(v) return "run #" .. math.floor(v) end)
errors(2, "a hexadecimal number", function(v) return ("flags 0x%04x"):format(math.floor(v)) end)
errors(1, "equal tables", function() return { loss = 1 } end)
errors(1, "the address of an object", function() return "of " .. tostring {} end)
errors(1, "a table with a function", function() return { f = function() end } end)

-- A tensor is compared and shown as one that is returned.
local raised = errors(2, "tensors", function(v) return mr.full({ 2 }, v) end)
T.check(tostring(mr.explore(function() error(mr.full({ 2 }, race()), 0) end)):find("error: [3., 3.]", 1, true))
T.equal(raised[1].raised[1]:item() + raised[2].raised[1]:item(), 4)

-- An error of millrace is shown without the numbers that are not compared, and without a sign in their place.
local pending = mr.explore(function()
  local s, from, to = mr.stream(), mr.event{ timing = true }, mr.event{ timing = true }
  s:record_event(from)
  s:run(function() mr.spin{ ms = 1 } end)
  s:record_event(to)
  return from:elapsed_time(to)
end)
local texts = {}
for _, o in ipairs(pending.outcomes) do texts[#texts + 1] = o.error end
T.equal(#texts, 1, "one of the outcomes is an error")
T.check(texts[1]:find("elapsed_time: event is not complete: call synchronize() on it first", 1, true), texts[1])
