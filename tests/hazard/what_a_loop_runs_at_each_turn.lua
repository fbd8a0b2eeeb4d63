-- A line in front of a loop runs once. It orders what the condition or the iterator does at each turn only if the first
-- operation ran before the loop. Otherwise the fix is after the first operation, or it is in front of the loop and at
-- the end of its body. The head of any other `for` runs once, so a line in front of it is enough.
local pair = require "hazard_pair"

local HEAD = [[
local mr = require "millrace"
local a = mr.stream{name = "a"}
local x, n = mr.zeros(2), 0
mr.synchronize()
]]
local ONE_FIX = "-- expect: kind=read-after-write fix=mr.default_stream():wait_stream(a) place=%s\n" .. HEAD
local TWO_FIXES = ("-- expect: kind=read-after-write place=%%s fix=%s_%s\n"):format(
  "mr.default_stream():wait_stream(a)", "mr.default_stream():wait_stream(a)") .. HEAD
local NO_LINE = "-- expect: kind=read-after-write place=none\n-- proposed fix: none\n" .. HEAD

pair.check_all {
  { "the condition and the writer are functions on one line", TWO_FIXES:format("before:8,before:11") .. [[
local function more() return x[1]:item() < 10 and n < 3 end
local function work() n = n + 1; a:run(function() x:add_(1) end) end
while more() do
  work()
  -- fix: mr.default_stream():wait_stream(a)
end]] },

  { "the first turn needs it, too", TWO_FIXES:format("before:10,before:13") .. [[
local function more() return x[1]:item() < 10 and n < 3 end
local function work() n = n + 1; a:run(function() x:add_(1) end) end
work()
-- fix: mr.default_stream():wait_stream(a)
while more() do
  work()
  -- fix: mr.default_stream():wait_stream(a)
end]] },

  { "an alias", TWO_FIXES:format("before:9,before:13") .. [[
local body
local function more() n = n + 1 return x[1]:item() < 3 and n < 5 end
body = function() a:run(function() x:add_(1) end) end
while more() do
  local f = body
  f()
  -- fix: mr.default_stream():wait_stream(a)
end]] },

  { "a table of functions", TWO_FIXES:format("before:7,before:11") .. [[
local ops = {body = function() a:run(function() x:add_(1) end) end}
while x[1]:item() < 3 and n < 5 do
  n = n + 1
  for _, f in pairs(ops) do f() end
  -- fix: mr.default_stream():wait_stream(a)
end]] },

  { "a function that table.insert keeps", ONE_FIX:format("after:8") .. [[
local ops = {}
table.insert(ops, function()
  a:run(function() x:add_(1) end)
  -- fix: mr.default_stream():wait_stream(a)
end)
while x[1]:item() < 3 and n < 5 do
  n = n + 1
  ops[1]()
end]] },

  { "a launch in a function", TWO_FIXES:format("before:8,before:11") .. [[
local G = mr.graph(function() x:add_(1) end)
local function go() n = n + 1; G:launch(a) end
while x[1]:item() < 3 and n < 5 do
  go()
  -- fix: mr.default_stream():wait_stream(a)
end]] },

  { "the body is on the last line of the condition", NO_LINE .. [[
local function body() a:run(function() x:add_(1) end) end
-- fix: body = function() a:run(function() x:add_(1) end) mr.synchronize() end
while x[1]:item() < 3 and
      n < 4 do n = n + 1; body() end]] },

  { "the body ends with a label", NO_LINE .. [[
local function body() a:run(function() x:add_(1) end) end
-- fix: body = function() a:run(function() x:add_(1) end) mr.synchronize() end
while x[1]:item() < 3 and n < 4 do
  n = n + 1
  body()
  if n == 2 then goto continue end
  local _ = n
  ::continue::
end]] },

  { "the loop is not the first statement of its line", TWO_FIXES:format("before:7,before:11") .. [[
local function body() a:run(function() x:add_(1) end) end
local limit = 4 while x[1]:item() < 3 and n < limit do
  n = n + 1
  body()
  -- fix: mr.default_stream():wait_stream(a)
end]] },

  { "a loop on the line of another one", NO_LINE .. [[
local function body() a:run(function() x:add_(1) end) end
-- fix: body = function() a:run(function() x:add_(1) end) mr.synchronize() end
for _ = 1, 2 do while x[1]:item() < 3 and n < 4 do
  n = n + 1
  body()
end end]] },

  { "the first ran before the loop", ONE_FIX:format("before:8") .. [[
a:run(function() x:add_(1) end)
-- fix: mr.default_stream():wait_stream(a)
while x[1]:item() < 3 and n < 5 do
  n = n + 1
end]] },

  { "the loop is in a function that it calls again", ONE_FIX:format("after:7") .. [[
local function step(depth)
  a:run(function() x:add_(1) end)
  -- fix: mr.default_stream():wait_stream(a)
  while depth > 0 and x[1]:item() < 5 and n < 3 do
    n = n + 1
    step(0)
  end
end
step(1)]] },

  { "the condition of until, on the line of repeat", ONE_FIX:format("after:8") .. [[
local function step(k)
  n = n + 1
  a:run(function() x:add_(k) end)
  -- fix: mr.default_stream():wait_stream(a)
  return n
end
repeat until x[1]:item() > 5 or
  step(1) > 4]] },

  { "an iterator on one line", TWO_FIXES:format("before:8,before:11") .. [[
local function more() n = n + 1; if n < 4 then return x[1]:item() end end
local function work() a:run(function() x:add_(1) end) end
for v in more do
  work()
  -- fix: mr.default_stream():wait_stream(a)
end]] },

  { "what makes the iterator runs once", ONE_FIX:format("before:10") .. [[
local function work() a:run(function() x:add_(1) end) end
work()
local function up_to(last) local i = 0; return function() i = i + 1; return i <= last and i or nil end end
-- fix: mr.default_stream():wait_stream(a)
for _ in up_to(x[1]:item() + 1) do
  n = n + 1
end]] },

  { "the bounds of a loop in another one", ONE_FIX:format("before:10") .. [[
local function go() n = n + 1; a:run(function() x:add_(1) end) end
for i = 1, 2 do
  go()
  -- fix: mr.default_stream():wait_stream(a)
  for j = x[1]:item(), x[1]:item() + 1 do
    go()
  end
end]] },

  { "the two parts of a condition of if, in a loop", ONE_FIX:format("before:9") .. [[
local function go() n = n + 1; a:run(function() x:add_(1) end) end
for i = 1, 2 do
  -- fix: mr.default_stream():wait_stream(a)
  if x[1]:item() >= 0 and x[2]:item() >= 0 then
    go()
  end
end]] },
}
