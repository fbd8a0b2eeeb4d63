-- What mr.explore refuses has had no effect, also where the function catches the error. Other changes of a function to
-- the machine are put back.
-- virtual only: schedules are explored on the virtual GPU
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: schedules are explored
local mr = require "millrace"
local T = require "millrace.testing"

T.rule("explore_refused")

local tensor, pinned, paged = mr.ones(4), mr.ones(4, {pinned = true}), mr.ones(4, {device = "cpu"})
local stream, event = mr.stream{name = "outside"}, mr.event()
mr.synchronize()

-- { call, what the error says, a check that nothing has happened }
local refused = {
  { function() mr.reset() end, "mr.reset(): what was before it is gone",
    function() return tensor:sum():item() == 4 end },
  { function() tensor:free() end, "frees a tensor from outside", function() return tensor:sum():item() == 4 end },
  { function() tensor:free{sync = true} end, "frees a tensor", function() return tensor:sum():item() == 4 end },
  { function() local _ <close> = tensor end, "frees a tensor", function() return tensor:sum():item() == 4 end },
  { function() pinned:free() end, "frees a tensor from outside", function() return pinned:sum():item() == 4 end },
  { function() paged:narrow(1, 1, 2):free() end, "frees a tensor", function() return paged:sum():item() == 4 end },
  { function() stream:close() end, "closes a stream from outside", function() return stream:query() end },
  { function() local _ <close> = stream end, "closes a stream", function() return stream:query() end },
  { function() event:close() end, "closes an event from outside", function() return event:query() end },
  { function() local _ <close> = event end, "closes an event", function() return event:query() end },
  { function() mr.machine.chooser("manual") end, "mr.machine.chooser(name)",
    function() return mr.machine.chooser() == "timed" end },
  { function() mr.machine.step() end, "mr.machine.step()" },
  { function() mr.machine.back() end, "mr.machine.back()" },
  { function() mr.machine.pass(1) end, "mr.machine.pass(ms)" },
  { function() mr.machine.history{steps = 3} end, "mr.machine.history{...}",
    function() return mr.machine.history().steps ~= 3 end },
  { function() mr.machine.model("t4") end, "mr.machine.model(name)",
    function() return mr.machine.model() == "h200" end },
  { function() mr.machine.settings{free_waits = true} end, "mr.machine.settings{...}",
    function() return not mr.machine.settings().free_waits end },
  { function() mr.launch_blocking(true) end, "mr.launch_blocking(true)",
    function() return not mr.launch_blocking() end },
  { function() mr.hazard.mode("error") end, "mr.hazard.mode(\"error\")",
    function() return mr.hazard.mode() == "off" end },
  { function() tensor:peek() end, "t:peek()" },
  { function() mr.stream{ pool = true } end, "mr.stream{pool=true}" },
  { function() mr.explore(function() end) end, "mr.explore" },
  { function() mr.stress(function() end) end, "mr.stress" },
}
for _, row in ipairs(refused) do
  local call, expected, unchanged = table.unpack(row)
  for _, fn in ipairs { call, function() pcall(call) end } do
    local fine, err = pcall(mr.explore, fn)
    T.check(not fine and tostring(err):find(expected, 1, true), expected .. ": " .. tostring(err))
    T.check(not unchanged or unchanged(), expected .. " has had an effect")
  end
end

-- Looking at any of these is no change.
T.check(mr.explore(function()
  return mr.machine.chooser() ~= nil, mr.machine.model(), mr.machine.settings().free_waits, mr.launch_blocking()
end).deterministic, "asking is permitted")

-- Freeing and closing is refused in all that calls the function again.
for name, run in pairs { stress = function(fn) mr.stress(fn, {runs = 2}) end,
                         replay = function(fn) mr.replay(mr.explore(function() end).outcomes[1].schedule, fn) end } do
  local fine, err = pcall(run, function() pinned:free() end)
  T.check(not fine and tostring(err):find("frees a tensor from outside", 1, true), name .. ": " .. tostring(err))
  T.equal(pinned:sum():item(), 4.0, name)
end

-- Put back: what is current, the seed, the precision.
local r = mr.explore(function()
  mr.set_stream(stream)
  mr.allow_tf32(true)
  mr.manual_seed(7)
  return mr.rand(1):item()
end)
T.check(r.deterministic, "put back before each call")
T.equal(mr.current_stream(), mr.default_stream(), "the current stream is put back")
T.check(not mr.allow_tf32(), "the precision is put back")

-- A view may be freed where it is the function's own.
T.check(mr.explore(function()
  local own, e, s = mr.ones(2), mr.event(), mr.stream()
  own:narrow(1, 1, 1):free()
  e:close()
  s:close()
  mr.ones(2, {pinned = true}):free()
end).deterministic, "its own")
