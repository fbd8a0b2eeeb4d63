-- A record and a wait take no time that a program could rely on, and yet neither is over at once: a query may come
-- before it, also where all operations of the stream are done (R10, R11).
-- virtual only: schedules are explored on the virtual GPU
-- not replayed: schedules are explored, by a chooser that no name tells
local mr = require "millrace"
local T = require "millrace.testing"

T.rule("explore_idle")

local s, e = mr.stream{name = "s"}, mr.event{name = "e"}

-- Checks the outcomes, as sorted texts, and that each can be replayed.
local function expect(expected, fn)
  local r, found = mr.explore(fn, {polls = 8}), {}
  for i, o in ipairs(r.outcomes) do
    local values = table.pack(mr.replay(o.schedule, fn))
    for k = 1, values.n do
      T.equal(values[k], o.values[k], "replayed")
      values[k] = tostring(values[k])
    end
    found[i] = table.concat(values, " ")
  end
  table.sort(found)
  T.equal(table.concat(found, ", "), expected, debug.getinfo(fn, "S").linedefined)
  T.check(r.complete, tostring(r.incomplete))
  T.equal(r.schedules, #r.outcomes, "a schedule each: nothing else can be seen")
end

expect("false, true", function() e:record(s) return e:query() end)
expect("false, true", function() e:record(s) return s:query() end)
expect("false false, false true, true true", function() -- what has been over stays over
  e:record(s)
  local first = e:query()
  return first, e:query()
end)
expect("false false, false true, true true", function() -- a stream that is done has made its records
  e:record(s)
  local first = s:query()
  return first, e:query()
end)
expect("false false, false true, true false, true true", function() -- a record says nothing about a later one
  e:record(s)
  mr.event():record(s)
  local first = e:query()
  return first, s:query()
end)
expect("true true", function() e:record(s) s:synchronize() return s:query(), e:query() end)
expect("true true", function() e:record(s) e:synchronize() return s:query(), e:query() end)
expect("true true", function() e:record(s) mr.synchronize() return s:query(), e:query() end)
expect("true true", function() return mr.stream():query(), mr.event():query() end) -- R13, and nothing was asked for
expect("false false, false true, true true", function() -- through a wait
  local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
  b:wait_event(a:record_event())
  local later = b:record_event():query()
  return later, a:query()
end)
expect("false 1, true 1", function() -- as many schedules as with pending work alone
  local x = mr.zeros(1)
  mr.synchronize()
  s:run(function() x:add_(1) end)
  e:record(s)
  local done = e:query()
  mr.synchronize()
  return done, math.tointeger(x:item())
end)
expect("false, true", function() -- R17: the time of a record that is not over is an error
  local first, second = mr.event{timing = true}, mr.event{timing = true}
  first:record(s)
  second:record(s)
  return (pcall(first.elapsed_time, first, second))
end)
T.equal(mr.explore(function() e:record(s) s:wait_event(e) end).schedules, 1, "nobody looks")
