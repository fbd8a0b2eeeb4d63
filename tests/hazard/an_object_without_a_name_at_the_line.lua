-- Nothing leads to a stream at the line of the fix. Then the fix is at another line, or its comment says the least that
-- makes a wait between streams possible.
local pair = require "hazard_pair"

local HEAD = [[
local mr = require "millrace"
local x = mr.zeros(64)
mr.synchronize()
]]

local function case(name, expected, body)
  return { name, ("-- expect: kind=read-after-write %s\n"):format(expected) .. HEAD .. body }
end

local function comment(text) return "fix=mr.synchronize()_--_" .. text:gsub(" ", "_") end

pair.check_all {
  case("a stream that is closed by now", "fix=b:wait_stream(a) place=after:6", [[
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
a:run(function() x:fill_(1) end)
-- fix: b:wait_stream(a)
a:close()
b:run(function() return x:sum() end)]]),

  case("the same, and the default stream reads for the host", "fix=mr.default_stream():wait_stream(a) place=after:6", [[
local a = mr.stream{name = "a"}
a:run(function() x:fill_(1) end)
-- fix: a:synchronize()
a:close()
x[1]:item()]]),

  case("closed, and the name was another stream's at that time",
    comment "a is closed here: wait for it before that", [[
local all = { mr.stream{name = "a"}, mr.stream{name = "b"} }
for i = 1, 2 do
  local s = all[i]
  -- fix: mr.synchronize()
  if i == 1 then s:run(function() x:fill_(1) end) end
  if i == 2 then s:run(function() return x:sum() end) end
  if i == 1 then s:close() end
end]]),

  case("closed by the end of its block", comment "a is closed here: wait for it before that", [[
local b = mr.stream{name = "b"}
do
  local a <close> = mr.stream{name = "a"}
  a:run(function() x:fill_(1) end)
  -- fix: b:wait_stream(a)
end
b:run(function() return x:sum() end)]]),

  case("a local of the caller", comment "no variable in scope here leads to p: hand over `p` of line 15", [[
local function fill(t, s)
  s:run(function() t:fill_(1) end)
end
local function use(t, s)
  -- fix: mr.synchronize()
  s:run(function() return t:sum() end)
end
local function main()
  local p, q = mr.stream{name = "p"}, mr.stream{name = "q"}
  fill(x, p)
  use(x, q)
end
main()]]),

  case("fields of a table in a table", "fix=self.s.use:wait_stream(self.s.copy) place=before:13", [[
local Worker = {}
Worker.__index = Worker
function Worker.new()
  return setmetatable({ s = { copy = mr.stream(), use = mr.stream() } }, Worker)
end
function Worker:go()
  self.s.copy:run(function() x:fill_(1) end)
  -- fix: self.s.use:wait_stream(self.s.copy)
  self.s.use:run(function() return x:sum() end)
end
Worker.new():go()]]),

  case("made in a call", comment "no variable in scope here leads to p: name it first, at line 12: local s = ...", [[
local function fill(t, s)
  s:run(function() t:fill_(1) end)
end
local function use(t, s)
  -- fix: mr.synchronize()
  s:run(function() return t:sum() end)
end
fill(x, mr.stream{name = "p"})
use(x, mr.stream{name = "q"})]]),

  case("made in another function, which has returned", comment "no variable in scope here leads to load", [[
local function make()
  local load, use = mr.stream{name = "load"}, mr.stream{name = "use"}
  return function() load:run(function() x:fill_(1) end) end, function()
    -- fix: mr.synchronize()
    use:run(function() return x:sum() end)
  end
end
local one, two = make()
one()
two()]]),

  case("the first stream is the current one", "fix=b:wait_stream(mr.current_stream()) place=before:8", [[
local b = mr.stream{name = "b"}
mr.set_stream(mr.stream()) x:fill_(1)
-- fix: b:wait_stream(mr.current_stream())
mr.op{name = "read", reads = {x}, stream = b}
mr.set_stream(mr.default_stream())]]),
}
