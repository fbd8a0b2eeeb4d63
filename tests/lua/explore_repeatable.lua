-- mr.explore calls a function again if its first call changed what another one would meet.
-- virtual only: schedules are explored on the virtual GPU
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: schedules are explored
local mr = require "millrace"
local T = require "millrace.testing"

local w, e = mr.ones(2), mr.event()
local g = mr.graph(function() w:add_(1) end)

local CHANGES = {
  ["a library"] = function() rawset(math, "n", (rawget(math, "n") or 0) + 1) return rawget(math, "n") end,
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
}

for name, fn in pairs(CHANGES) do
  local fine, r = pcall(mr.explore, fn)
  T.check(not fine or r.runs > 1, name .. ": another call follows")
end
T.equal(mr.explore(function() return mr.ones(1) end).runs, 1, "nothing is changed")
