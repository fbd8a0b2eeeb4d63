-- Five mistakes that people make with captures, each with the error that it gives. Nothing is harmed: after each of
-- them the streams work as before.
local mr = require "millrace"

local s, t = mr.stream{name = "s"}, mr.stream{name = "t"}
local x = mr.zeros(4, {name = "x"})
local outside = t:record_event(mr.event{name = "outside"})
mr.synchronize()

local function mistake(title, fn)
  local _, err = pcall(fn)
  print(title)
  print("  " .. err.code .. ": " .. err.message:gsub("%S*/", ""))
  pcall(mr.graph.finish, s)
end

mistake("1. The host asks for a value that no launch has computed yet.", function()
  mr.graph(function() return x:sum():item() end)
end)

mistake("2. A stream joins the capture, and nobody joins it again.", function()
  mr.graph.begin(s)
  t:wait_stream(s)
  t:run(function() x:add_(1) end)
  mr.graph.finish(s)
end)

mistake("3. Captured work waits for an event of outside.", function()
  mr.graph.begin(s)
  s:wait_event(outside)
end)

mistake("4. A blocking stream captures, and something uses the default stream.", function()
  local blocking <close> = mr.stream{nonblocking = false, name = "blocking"}
  mr.graph.begin(blocking)
  local _ <close> = setmetatable({}, { __close = function() pcall(mr.graph.finish, blocking) end })
  x:add_(1)
end)

mistake("5. The graph is updated with other operations.", function()
  local g = mr.graph(function() x:add_(1) end)
  g:update(function() x:add_(1); x:mul_(2) end)
end)

s:run(function() x:add_(1) end)
s:synchronize()
print("x:", x[1]:item())
