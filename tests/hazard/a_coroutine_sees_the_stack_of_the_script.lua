-- A variable that only the main chunk's stack holds, and one of a function that has resumed the coroutine, or of another
-- task. Where a wait sees no variable of the stream, the fix has an event that both places see.
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

  { "a variable that the function at the line does not see", "-- expect: kind=read-after-write place=before:5,before:7,after:11 " ..
    "fix=local_done_=_mr.event()_b:wait_event(done)_done:record(a)\n" .. HEAD .. [[
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

  { "a variable of another task", "-- expect: kind=read-after-write place=before:5,after:7,before:13 " ..
    "fix=local_done_=_mr.event()_done:record(s)_s:wait_event(done)\n" .. HEAD .. [[
local function producer()
  local s = mr.stream{name = "producer"}
  s:run(function() x:add_(1) end)
  s:await()
end
local function consumer()
  local s = mr.stream{name = "consumer"}
  -- fix: mr.synchronize()
  s:run(function() x:add_(1) end)
  s:await()
end
mr.run(producer, consumer)]] },

  { "tasks", "-- expect: kind=read-after-write fix=b:wait_stream(a) place=before:10\n" .. HEAD .. [[
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.run(function()
  a:run(function() x:add_(1) end)
end, function()
  -- fix: b:wait_stream(a)
  b:run(function() x:add_(1) end)
end)]] },
}
