-- Before it there are two operations to wait for, and behind it two that must wait. One fix orders both of them, in
-- whichever order the function comes to their tensors.
local MADE = [[
local mr = require "millrace"
local s, t = mr.stream{name = "s"}, mr.stream{name = "t"}
local x = mr.zeros(8, {pinned = true, name = "x"})
local y = mr.zeros(8, {pinned = true, name = "y"})
mr.synchronize()
]]

local BEFORE = MADE .. [[
mr.op{name = "first", writes = {x}, stream = s}
mr.op{name = "second", writes = {y}, stream = s}
-- fix: t:wait_stream(s)
t:host_func(function()
  ONE:fill_(1)
  OTHER:fill_(1)
end)
mr.synchronize()
]]

local BEHIND = MADE .. [[
t:host_func(function()
  ONE:fill_(1)
  OTHER:fill_(1)
end)
-- fix: s:wait_stream(t)
mr.op{name = "first", writes = {x}, stream = s}
mr.op{name = "second", writes = {y}, stream = s}
mr.synchronize()
]]

local function order(text, one, other)
  return (text:gsub("ONE", one):gsub("OTHER", other))
end

require "hazard_pair".check_all {
  { "before it, x first",
    "-- expect: kind=write-after-write tensor=y all=y,x first=8 second=12 count=1\n" .. order(BEFORE, "x", "y") },
  { "before it, y first",
    "-- expect: kind=write-after-write tensor=y all=y,x first=8 second=11 count=1\n" .. order(BEFORE, "y", "x") },
  { "behind it, x first",
    "-- expect: kind=write-after-write tensor=x all=x,y first=8 second=12 count=1\n" .. order(BEHIND, "x", "y") },
  { "behind it, y first",
    "-- expect: kind=write-after-write tensor=x all=x,y first=9 second=12 count=1\n" .. order(BEHIND, "y", "x") },
}
