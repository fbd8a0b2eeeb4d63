-- mr.stress: its delays change when work is done, and never what CUDA guarantees. Runs on every backend.
-- not replayed: the delays are drawn by an observer of millrace's own
local mr = require "millrace"
local T = require "millrace.testing"

T.rule("stress")

local function always(what, fn)
  local r = mr.stress(fn, { runs = 60 })
  T.equal(#r.outcomes, 1, what .. ": one outcome")
  T.equal(r.outcomes[1].value, true, what .. ": a stream without pending work is idle")
end

local function busy(stream)
  stream:run(function() mr.spin{ ms = 0.2 } end)
end

always("after a wait for the stream", function()
  local a = mr.stream()
  busy(a)
  a:synchronize()
  return a:query()
end)
always("asked twice", function()
  local a = mr.stream()
  busy(a)
  a:synchronize()
  return a:query() and a:query()
end)
always("after a wait for all", function()
  local a, b = mr.stream(), mr.stream()
  busy(a)
  busy(b)
  mr.synchronize()
  return a:query() and b:query() and mr.default_stream():query()
end)
always("nothing was submitted to it", function()
  local a, b = mr.stream{ nonblocking = true }, mr.stream{ nonblocking = true }
  busy(a)
  return b:query()
end)
always("after a wait for an event at its end", function()
  local a, e = mr.stream(), mr.event()
  busy(a)
  e:record(a)
  e:synchronize()
  return a:query()
end)
always("after a wait for an event of another stream", function()
  local a, b, e, f = mr.stream(), mr.stream(), mr.event(), mr.event()
  busy(b)
  e:record(b)
  a:wait_event(e)
  f:record(a)
  f:synchronize()
  return a:query() and b:query()
end)

-- The first work of a stream may be late, too, and host functions like all else.
local function both_orders(what, submit)
  local r = mr.stress(function()
    local a, b, ran = mr.stream(), mr.stream(), {}
    submit(a, b, function(text) return function() ran[#ran + 1] = text end end)
    mr.synchronize()
    return table.concat(ran)
  end, { runs = 100 })
  T.equal(#r.outcomes, 2, what .. ": " .. tostring(r))
end
both_orders("host functions", function(a, b, note)
  a:host_func(note("a"))
  b:host_func(note("b"))
end)
both_orders("host functions behind a wait", function(a, b, note)
  a:synchronize()
  a:host_func(note("a"))
  b:host_func(note("b"))
end)

local r = mr.stress(function()
  local a = mr.stream()
  busy(a)
  return a:query()
end, { runs = 60 })
T.check(#r.outcomes >= 1, "work that is pending")
for _, o in ipairs(r.outcomes) do T.equal(type(o.value), "boolean", "an answer") end

-- A delay may let a host function run, which may make Lua values (src/bind/gcstress.h).
local s = mr.stream()
local named = mr.stress(function()
  local names = {}
  for i = 1, 8 do
    s:host_func(function() names[i] = tostring(s) .. i end)
    mr.spin { ms = 0.01, stream = s }
  end
  s:synchronize()
  return #names
end, { runs = 20 })
T.equal(named.outcomes[1].value, 8, "host functions between delays")
