-- A fix names no variable that holds another stream at its place: `last` is set on the line itself, the field and the
-- global right behind the place. A variable that keeps its value comes before one that follows the streams around.
-- expect: kind=read-after-write reason=no-path tensor=x first=18 second=20 first_stream=streams[1] second_stream=second
-- expect: kind=read-after-write reason=no-path tensor=y first=22 second=24
-- expect: kind=read-after-write reason=no-path tensor=z first=26 second=28
-- expect: kind=read-after-write reason=no-path tensor=w first=30 second=34 first_stream=streams[1] second_stream=s
if require "hazard_pair" () then return end
local mr = require "millrace"

local streams, self = {mr.stream()}, {}
local function another(name) return mr.stream{name = name} end
local x, y = mr.zeros(8, {name = "x"}), mr.zeros(8, {name = "y"})
local z, w = mr.zeros(8, {name = "z"}), mr.zeros(8, {name = "w"})
mr.synchronize()

local last = streams[1]
last = streams[1]
last:run(function() x:fill_(1) end)
-- fix: mr.synchronize()
last = another("second") last:run(function() x:add_(1) end)

streams[1]:run(function() y:fill_(1) end)
-- fix: mr.synchronize()
self.last = another("third") self.last:run(function() y:add_(1) end)

streams[1]:run(function() z:fill_(1) end)
-- fix: mr.synchronize()
now = streams[1] now = another("fourth") now:run(function() z:add_(1) end) -- luacheck: ignore

streams[1]:run(function() w:fill_(1) end)
for _, s in ipairs{ mr.stream() } do
  last = s
  -- fix: s:wait_stream(streams[1])
  s:run(function() w:add_(1) end)
end
