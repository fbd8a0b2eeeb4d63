-- mr.explore calls a function again if its first call changed what another one would meet.
-- virtual only: schedules are explored on the virtual GPU
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: schedules are explored
local mr = require "millrace"
local T = require "millrace.testing"

local w, e = mr.ones(2), mr.event()
local g = mr.graph(function() w:add_(1) end)
local leaf, other, third = mr.ones(1, {requires_grad = true}), mr.ones(1, {requires_grad = true}),
                           mr.ones(1, {requires_grad = true})
local square = (third * third):sum() -- a gradient that is there has its bytes back in each call
local x, u, plain, list = mr.zeros(1), mr.zeros(1), {}, { 1, 2, 3 }
local string_rep = string.rep
math.taken = 1 -- luacheck: ignore 142

-- Graphs that were launched once.
local function launched(fn)
  local graph = mr.graph(fn)
  graph:launch()
  mr.synchronize()
  return graph
end

local set, updated = launched(function() x:fill_(1) end), launched(function() x:fill_(1) end)
local fed = mr.graph(function() x:copy_(u) end)
fed:inputs{u = u}
fed:launch()
mr.synchronize()

local CHANGES = {
  ["a library"] = function() rawset(math, "n", (rawget(math, "n") or 0) + 1) return rawget(math, "n") end,
  ["a function of a library"] = function()
    local before = string.rep
    string.rep = function(...) return before(...) end -- luacheck: ignore 122
    return mr.ones(1)
  end,
  ["a library with one entry less"] = function()
    local had = rawget(math, "taken") ~= nil
    math.taken = nil -- luacheck: ignore 142
    return had
  end,
  ["a table with one entry less"] = function()
    local had = #list
    table.remove(list)
    return had
  end,
  ["millrace"] = function() rawset(mr, "n_", (rawget(mr, "n_") or 0) + 1) return mr.n_ end,
  ["a loaded module"] = function() package.loaded.q = (package.loaded.q or 0) + 1 return package.loaded.q end,
  ["the metatable of strings"] = function()
    local m = getmetatable("")
    m.q = (m.q or 0) + 1
    return m.q
  end,
  ["the registry"] = function()
    local registry = debug.getregistry()
    registry.q = (registry.q or 0) + 1
    return registry.q
  end,
  ["memory in use"] = function() return collectgarbage("count") * 0 end,
  ["requires_grad"] = function()
    local before = w.requires_grad
    w.requires_grad = true
    return before
  end,
  ["an event"] = function()
    local before = e.recorded
    e:record()
    return before
  end,
  ["a node of a graph"] = function()
    local enabled = not g:nodes()[1].enabled
    g:enable(1, enabled)
    return enabled
  end,
  ["a gradient that grows"] = function()
    (leaf * leaf):sum():backward()
    return leaf.grad:item()
  end,
  ["a graph of autograd that is used up"] = function() return (pcall(square.backward, square)) end,
  ["a gradient that is set"] = function()
    local had = other.grad ~= nil
    other.grad = mr.zeros(1)
    return had
  end,
  ["a hook"] = function()
    other:register_post_accumulate_grad_hook(function(t) t.grad:add_(1) end)
    other.grad = nil
    other:sum():backward()
    return other.grad:item()
  end,
  ["g:set"] = function()
    set:launch()
    set:set(1, function() x:fill_(2) end)
    return x:item()
  end,
  ["g:update"] = function()
    updated:launch()
    updated:update(function() x:fill_(2) end)
    return x:item()
  end,
  ["g:inputs"] = function()
    fed:launch()
    fed:inputs{u = mr.ones(1)}
    return x:item()
  end,
  ["a metatable"] = function()
    if getmetatable(plain) then return 2 end
    setmetatable(plain, {})
    return 1
  end,
  ["the metatable of nil"] = function()
    local before = debug.getmetatable(nil)
    debug.setmetatable(nil, {})
    return before and 2 or 1
  end,
  ["a name"] = function()
    local before = x:name()
    x:name("q")
    return before or "none"
  end,
  ["mr.sync_debug"] = function() return mr.sync_debug("warn") end,
  ["io.output"] = function()
    local before = io.output() == io.stdout
    io.output(io.stderr)
    return before
  end,
  ["os.setlocale"] = function()
    local before = os.setlocale(nil)
    os.setlocale("C.UTF-8")
    return before
  end,
  ["the collector's mode"] = function() return collectgarbage("generational") end,
  ["package.searchers"] = function()
    table.insert(package.searchers, function() end)
    return #package.searchers
  end,
  ["debug.sethook"] = function()
    local before = debug.gethook()
    debug.sethook(function() end, "", 1000000)
    return before and 2 or 1
  end,
}

local function put_back()
  string.rep = string_rep -- luacheck: ignore 122
  debug.setmetatable(nil, nil)
  debug.sethook()
  mr.sync_debug("off")
  io.output(io.stdout)
  os.setlocale("C")
  collectgarbage("incremental")
end

for name, fn in pairs(CHANGES) do
  local fine, r = pcall(mr.explore, fn)
  put_back()
  T.check(not fine or r.runs > 1, name .. ": another call follows")
end
T.equal(mr.explore(function() return mr.ones(1) end).runs, 1, "nothing is changed")

-- Facts watched before tell nothing of today: an entry may have gone or come, and a value that is no number is the
-- same.
math.taken = 0 / 0 -- luacheck: ignore 142
T.equal(mr.explore(function() return mr.ones(1) end).runs, 1, "a field that is no number")
math.taken = nil -- luacheck: ignore 142
local clock = os.clock
os.clock = function() return clock() end -- luacheck: ignore 122
T.check(mr.explore(function() return os.clock() * 0 end).runs > 1, "a question that a script has replaced")
os.clock = clock -- luacheck: ignore 122
T.check(mr.explore(function() return clock() * 0 end).runs > 1, "a question that a function holds")
T.check(mr.explore(function() return os.clock() * 0 end).runs > 1, "a question")

-- What only another schedule's path changes.
local n = 0
local function later()
  local a, b, y = mr.stream(), mr.stream(), mr.zeros(1)
  mr.synchronize()
  a:run(function() y:add_(1) end)
  b:run(function() y:mul_(3) end)
  mr.synchronize()
  if y:item() == 1 then
    n = n + 1
    return n == 1 and 3 or n
  end
  return 3
end
local r = mr.explore(later)
T.equal(r.not_followed[#r.not_followed],
  "This holds if the function does the same when it is called again: it changes `n`.")
T.equal(r.claim, "conditional")
r = mr.explore(function() return math.random(1, 1) end)
T.equal(r.not_followed[1], "This holds if the function does the same when it is called again: it calls math.random.")
r = mr.explore(function()
  collectgarbage()
  return mr.ones(1)
end)
T.check(r.not_followed == nil and r.claim == "every-legal-schedule", "nothing is left")

-- The order of a walk, where a table or an object is a key, is that of addresses.
local keyed, WALKS = {}, "This holds if the function does the same when it is called again: it goes through a table in "
  .. "the order of addresses, as its keys are tables or objects."
for i = 1, 3 do keyed[{}] = i end
local held_pairs = pairs
for name, fn in pairs {
  pairs = function()
    local sum = 0
    for _, value in pairs(keyed) do sum = sum + value end
    return sum
  end,
  held = function()
    local sum = 0
    for _, value in held_pairs(keyed) do sum = sum + value end
    return sum
  end,
  next = function() return next(keyed) and 1 end,
  objects = function()
    local sum = 0
    for s in pairs { [mr.stream()] = 1, [mr.stream()] = 2 } do sum = sum + (s and 1) end
    return sum
  end,
} do
  local result = mr.explore(fn)
  T.check(result.not_followed and result.not_followed[1] == WALKS and result.claim == "conditional", name)
end
for name, fn in pairs {
  numbers = function() return (next { [3] = 4, [40] = 5 }) end,
  names = function()
    local sum = 0
    for _, value in pairs { a = 1, b = 2, 3 } do sum = sum + value end
    return sum
  end,
  one = function()
    local sum = 0
    for _, value in pairs { [keyed] = 1 } do sum = sum + value end
    return sum
  end,
  empty = function() return next {} end,
  meta = function()
    local sum = 0
    local function count(_, i) return i < 3 and i + 1 or nil end
    for i in pairs(setmetatable({}, { __pairs = function(t) return count, t, 0 end })) do sum = sum + i end
    return sum
  end,
} do
  local result = mr.explore(fn)
  T.check(result.not_followed == nil and result.runs == 1, name .. ": " .. tostring(result))
end
T.check(not pcall(pairs) and not pcall(next) and rawequal(pairs {}, next), "both are Lua's own again")
local fine, err = pcall(mr.explore, function()
  local text = ""
  for _, value in pairs { [{}] = 1, [{}] = 2, [{}] = 3, [{}] = 4, [{}] = 5, [{}] = 6, [{}] = 7, [{}] = 8 } do
    text = text .. value
  end
  return text
end)
T.check(fine or tostring(err):find("The function goes through a table in the order of addresses", 1, true),
  "where two calls differ, it may be the reason: " .. tostring(err))

-- A host function for which nobody waits: what is read behind it may have changed or not.
do
  local result = mr.explore(function()
    local count, s = 0, mr.stream()
    s:host_func(function() count = count + 1 end)
    return count
  end)
  T.equal(result.claim, "conditional")
  T.check(result.not_followed[1]:find("1 host function and other code share nothing", 1, true), result.not_followed[1])
end
