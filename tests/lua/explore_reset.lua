-- Objects that are older than a reset, in functions of everything that records or repeats what a function asks for.
-- None of them may crash; what a reset does not take is used like any other.
-- virtual only: schedules are explored on the virtual GPU
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: schedules are explored
local mr = require "millrace"
local T = require "millrace.testing"

T.rule("explore_reset")

local SOURCE = [[extern "C" __global__ void twice(float *y, int n) { int i = threadIdx.x; if (i < n) y[i] *= 2; }]]

-- Everything that a script can hold, made before a reset.
local function make()
  local o = {
    device = mr.ones(3, {name = "device"}),
    pinned = mr.ones(3, {pinned = true, name = "pinned"}),
    paged = mr.ones(3, {device = "cpu", name = "paged"}),
    never = mr.ones(3, {pinned = true}), -- nobody touches it before the reset
    stream = mr.stream{name = "old"},
    event = mr.event{timing = true, name = "recorded"},
    unrecorded = mr.event{timing = true},
    kernel = mr.kernel(SOURCE),
    leaf = mr.ones(3):requires_grad_(),
    layer = mr.nn.Linear(3, 3),
  }
  o.view, o.host_view = o.device:narrow(1, 1, 2), o.pinned:narrow(1, 1, 2)
  o.event:record(o.stream)
  mr.synchronize()
  o.graph = mr.graph(function() o.device:add_(1) end)
  o.fresh_graph = mr.graph(function() o.device:add_(1) end)
  o.pinned_graph = mr.graph(function() o.pinned:copy_(o.device, {non_blocking = true}) end)
  o.graph:launch()
  o.pinned_graph:launch()
  mr.synchronize()
  o.auto = mr.graph.auto(function() o.pinned:add_(1) end)
  o.auto()
  o.trace = mr.timeline(function() o.device:add_(1) mr.synchronize() end)
  mr.synchronize()
  return o
end

-- What a function may do with them; each may fail, with an error in words.
local uses = {
  device = function(o) o.device:add_(1) return o.device:sum():item() end,
  pinned = function(o) o.pinned:add_(1) return o.pinned:sum():item() end,
  paged = function(o) o.paged:add_(1) return o.paged:sum():item() end,
  never = function(o) o.never:add_(1) return o.never:sum():item() end,
  view = function(o) o.view:mul_(2) return o.view:sum():item() end,
  host_view = function(o) o.host_view:mul_(2) return o.host_view:sum():item() end,
  read = function(o) return o.paged[1]:item() + o.never[2]:item() end,
  up = function(o) return o.pinned:cuda():sum():item() end,
  up_async = function(o) return o.never:cuda{non_blocking = true}:sum():item() end,
  mapped = function(o) mr.op{name = "mapped", reads = {o.pinned}, writes = {o.never}, ms = 0.1} mr.synchronize()
    return o.never:sum():item() end,
  down = function(o) o.paged:copy_(mr.zeros(3)) return o.paged:sum():item() end,
  stream = function(o) o.stream:run(function() mr.ones(3) end) end,
  stream_wait = function(o) o.stream:synchronize() end,
  stream_query = function(o) return o.stream:query() end,
  stream_join = function(o) mr.default_stream():wait_stream(o.stream) end,
  barrier = function(o) mr.barrier{mr.stream(), o.stream} end,
  host_func = function(o) o.stream:host_func(function() o.pinned:fill_(3) end) mr.synchronize() end,
  inside = function(o) mr.stream():host_func(function() o.pinned:fill_(3) end) mr.synchronize()
    return o.pinned:sum():item() end,
  event = function(o) o.event:record() end,
  event_wait = function(o) mr.stream():wait_event(o.event) end,
  event_query = function(o) return o.event:query() end,
  event_sync = function(o) o.event:synchronize() end,
  elapsed = function(o) return o.event:elapsed_time(o.event) end,
  unrecorded = function(o) o.unrecorded:record() return o.unrecorded:query() end,
  kernel = function(o) local x = mr.ones(3) o.kernel[{1, 32}](x, 3) return x:sum():item() end,
  kernel_old = function(o) o.kernel[{1, 32}](o.device, 3) mr.synchronize() end,
  kernel_pinned = function(o) o.kernel[{1, 32}](o.never, 3) mr.synchronize() return o.never:sum():item() end,
  graph = function(o) o.graph:launch() mr.synchronize() end,
  fresh_graph = function(o) o.fresh_graph:launch() mr.synchronize() end,
  pinned_graph = function(o) o.pinned_graph:launch() mr.synchronize() return o.pinned:sum():item() end,
  update = function(o) o.graph:update(function() o.pinned:copy_(mr.ones(3), {non_blocking = true}) end) end,
  auto = function(o) o.auto() o.auto() mr.synchronize() return o.pinned:sum():item() end,
  backward = function(o) (o.leaf * 2):sum():backward() mr.synchronize() end,
  layer = function(o) return o.layer(mr.ones(2, 3)):sum():item() end,
  record_stream = function(o) o.device:record_stream(mr.stream()) end,
  free_on = function(o) mr.ones(3):free{stream = o.stream} end,
  close = function() local o = make() mr.synchronize() return o.pinned:sum():item() end,
  peek = function(o) return o.pinned:sum():item(), pcall(o.device.peek, o.device) end,
  returned = function(o) return o.paged, o.never end,
  lost = function(o) o.never, o.stream, o.event = nil, nil, nil collectgarbage() mr.synchronize() end,
  data_ptr = function(o) return o.pinned.data_ptr ~= 0, o.device.data_ptr ~= 0 end,
}

-- What repeats or records a function.
local users = {
  explore = function(fn) return mr.explore(fn, {max = 50}) end,
  unspecified = function(fn) return mr.explore(fn, {max = 50, unspecified = true, grain = 2}) end,
  stress = function(fn) return mr.stress(fn, {runs = 2}) end,
  waits = function(fn) return mr.waits(fn) end,
  check = function(fn) return mr.hazard.check(fn) end,
  timeline = function(fn) return mr.timeline(fn) end,
  replay = function(fn) return mr.replay(mr.explore(fn).outcomes[1].schedule, fn) end,
  witness = function(fn)
    for _, report in ipairs(mr.explore(fn, {max = 50}).hazards) do tostring(report:witness()) end
  end,
  trace = function(fn) return mr.explore(fn, {max = 50}).outcomes[1].trace end,
}

local function each(t)
  local names = {}
  for name in pairs(t) do names[#names + 1] = name end
  table.sort(names)
  return ipairs(names)
end

-- Where only host memory of before is used, nothing fails, and the value is that of a call without any of these.
local FINE = { pinned = true, paged = true, never = true, host_view = true, read = true, up = true, up_async = true,
  down = true, mapped = true, inside = true, close = true, returned = true,
  data_ptr = true }

for _, resets in ipairs{1, 2} do
  local o = make()
  for _ = 1, resets do mr.reset() end
  for _, use in each(uses) do
    for _, user in each(users) do
      local copy = setmetatable({}, {__index = o})
      local fn = function() return uses[use](copy) end
      local expected = FINE[use] and fn
      local fine, result = pcall(users[user], fn)
      T.check(fine or type(result) == "table" or type(result) == "string", user .. " of " .. use)
      if expected and user == "explore" then
        T.check(fine, user .. " of " .. use .. ": " .. tostring(result))
        T.check(not result.outcomes[1].error, use .. ": " .. tostring(result.outcomes[1].error))
      end
      -- The machine can be used afterwards.
      T.equal(mr.ones(3):sum():item(), 3.0, user .. " of " .. use)
      T.equal(mr.machine.chooser(), "timed", user .. " of " .. use)
    end
  end
end
