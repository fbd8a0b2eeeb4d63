-- A record, a wait and an allocation take no time that a program could rely on, and yet none is over at once. A query
-- may come before it, also where all operations of the stream are done (R10, R11).
-- virtual only: schedules are explored on the virtual GPU
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: schedules are explored
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
-- An allocation is not complete at once, either: no work of its stream need come before it.
local function empty(of) return mr.empty(4, {stream = of}) end
expect("false, true", function() local _ = empty(s) return s:query() end)
expect("false, true", function() local _ = empty(s) e:record(s) return e:query() end)
expect("true", function() local _ = empty(s) s:synchronize() return s:query() end)
expect("true", function() local _ = empty(s) mr.synchronize() return s:query() end)
expect("true", function() local _ = empty(s) e:record(s) e:synchronize() return s:query() end)
expect("true", function() e:record(s) e:synchronize() local _ = empty(s) return e:query() end)
expect("true", function()
  local _, other = empty(s), mr.stream()
  other:wait_stream(s)
  other:synchronize()
  return s:query()
end)
expect("false, true", function() local _ = empty(mr.default_stream()) return mr.default_stream():query() end)
expect("true", function() local _ = empty(s) return mr.stream():query() end)
-- A free is not over at once either (R30): an allocation of another stream may miss it. `orders` comes between the two.
local function reuse(orders, of)
  return function()
    local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
    local x = mr.full(64, 7, {dtype = "f32"})
    mr.synchronize()
    x:free{stream = b}
    orders(a, b)
    local y = (of == "b" and b or a):run(function() return mr.empty(64, {dtype = "f32"}) end)
    mr.synchronize()
    return math.tointeger(y[1]:item())
  end
end
expect("0, 7", reuse(function() end))
expect("0, 7", reuse(function(a) a:synchronize() end)) -- says nothing of the free
expect("7", reuse(function(_, b) b:synchronize() end)) -- R31
expect("7", reuse(function() mr.synchronize() end))
expect("7", reuse(function(a, b) a:wait_stream(b) end)) -- policy 1
expect("7", reuse(function() end, "b")) -- R29
expect("0, 7", reuse(function(_, b) b:wait_stream(mr.stream()) end))
expect("0 false, 0 true, 7 false, 7 true", function() -- the answer that comes later is another matter
  local y = reuse(function() end)
  local b = mr.stream{name = "c"}
  b:record_event()
  local done = b:query()
  return y(), done
end)
expect("0 false, 7 false, 7 true", function() -- R31 again
  local told
  local y = reuse(function(_, b) told = b:query() end)
  local value = y()
  return value, told
end)
expect("7", function() -- of two frees the stream comes after one, which it finds
  local a, b, c = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.stream{name = "c"}
  local x, y = mr.full(64, 7, {dtype = "f32"}), mr.full(64, 7, {dtype = "f32"})
  mr.synchronize()
  x:free{stream = b}
  a:wait_stream(b)
  y:free{stream = c}
  local z = a:run(function() return mr.empty(64, {dtype = "f32"}) end)
  mr.synchronize()
  return math.tointeger(z[1]:item())
end)
expect("0, 7", function() -- of two frees the host knows one: the other one may be missed, and that one may not
  local a, b, c = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.stream{name = "c"}
  local x, large = mr.full(64, 7, {dtype = "f32"}), mr.full(256, 7, {dtype = "f32"})
  mr.synchronize()
  x:free{stream = b}
  mr.synchronize()
  large:free{stream = c}
  local small = a:run(function() return mr.empty(64, {dtype = "f32"}) end)
  local y = a:run(function() return mr.empty(256, {dtype = "f32"}) end)
  mr.synchronize()
  assert(small[1]:item() == 7, "what the host knows is found")
  return math.tointeger(y[1]:item())
end)

T.equal(mr.explore(function() e:record(s) s:wait_event(e) end).schedules, 1, "nobody looks")
