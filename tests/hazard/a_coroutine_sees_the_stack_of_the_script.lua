-- A variable that only the main chunk's stack holds, and one of a function that has resumed the coroutine.
local pair = require "hazard_pair"

local HEAD = [[
local mr = require "millrace"
local x = mr.zeros(8)
mr.synchronize()
]]

pair.check_all {
  { "the main chunk", "-- expect: kind=read-after-write fix=b:wait_stream(a) place=before:9\n" .. HEAD .. [[
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
a:run(function() x:add_(1) end)
local go = coroutine.wrap(function()
  -- fix: b:wait_stream(a)
  b:run(function() x:add_(1) end)
end)
go()]] },

  { "a function of the script", "-- expect: kind=read-after-write fix=b:wait_stream(a) place=before:10\n" .. HEAD .. [[
local function main()
  local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
  a:run(function() x:add_(1) end)
  local go = coroutine.wrap(function()
    -- fix: b:wait_stream(a)
    b:run(function() x:add_(1) end)
  end)
  go()
end
main()]] },

  { "another variable of that name", "-- expect: kind=read-after-write fix=mr.synchronize()_--_no_variable_in_scope_here_" ..
    "leads_to_a:_hand_over_`a`_of_line_12 place=before:7\n" .. HEAD .. [[
local function step(b)
  -- fix: mr.synchronize()
  b:run(function() x:add_(1) end)
end
local function main()
  local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
  a:run(function() x:add_(1) end)
  coroutine.wrap(function()
    step(b)
  end)()
end
main()]] },

  { "tasks", "-- expect: kind=read-after-write fix=b:wait_stream(a) place=before:10\n" .. HEAD .. [[
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.run(function()
  a:run(function() x:add_(1) end)
end, function()
  -- fix: b:wait_stream(a)
  b:run(function() x:add_(1) end)
end)]] },
}
