-- Steps of random programs (random_programs.lua): what the script asks and does something with, failures, resets.
local mr = require "millrace"

-- What has another answer under another schedule, or in another run. The number comes into a tensor.
local ANSWERS = {
  elapsed = function(w)
    w.timing[1]:record(w.s[1])
    w.s[1]:run(function() mr.spin{ms = 0.01} end)
    w.s[2]:run(function() w.timing[2]:record() end)
    local fine, ms = pcall(w.timing[1].elapsed_time, w.timing[1], w.timing[2])
    return fine and ms or -1
  end,
  clock = function() return mr.clock() end,
  time = function() return mr.machine.time() end,
  queues = function()
    local count = 0
    for _, queue in ipairs(mr.machine.queues()) do count = count + #queue.pending end
    return count
  end,
  peek = function(w, n) return w.t[n.x]:peek():sum():item() end,
  shown = function(w, n) return tonumber(tostring(w.t[n.x]:narrow(1, 1, 1)):match("%-?%d+%.?%d*")) or 0 end,
  address = function(w, n) return w.s[n.s]:run(function() return (w.t[n.x] + 1).data_ptr // 512 % 1000 end) end,
  reserved = function() return mr.memory.reserved() // 512 end,
  stats = function() return mr.memory.stats().reserved // 512 end,
  trace = function(w, n)
    local trace = mr.timeline(function() w.s[n.s]:run(function() w.t[n.x]:add_(1) end) end)
    return trace.ms
  end,
}
local NAMES = {}
for name in pairs(ANSWERS) do NAMES[#NAMES + 1] = name end
table.sort(NAMES)

local function answers(add)
  local function ask(w, n, is_stream)
    local says
    if is_stream then says = w.s[n.s]:query() else says = w.e[n.e]:query() end
    w.said = w.said .. tostring(says) .. " "
    return says
  end
  add(2, "ask", function(w, n) ask(w, n, n.v % 2 == 0) end)
  add(2, "ask_and_go", function(w, n)
    if ask(w, n, n.v > 2) then w.s[n.s]:run(function() w.t[n.x]:add_(1) end) end
  end)
  add(1, "read_and_go", function(w, n)
    w.broken.host_reads = 1
    if w.p[1][1]:item() > 1 then w.s[n.s]:run(function() w.t[n.x]:add_(1) end) end
  end)
  add(1, "item_and_go", function(w, n)
    w.broken.host_reads = 1
    local v = w.s[n.s]:run(function() return w.t[n.x]:sum():item() end)
    w.s[n.z]:run(function() w.t[n.y]:add_(v % 7) end)
  end)
  for _, name in ipairs(NAMES) do
    add(1, "learn_" .. name, function(w, n)
      w.broken.learned = (w.broken.learned or 0) + 1
      local v = ANSWERS[name](w, n)
      w.s[n.z]:run(function() w.t[n.y]:fill_(v) end)
    end)
  end
  add(1, "look", function(w, n) local _ = ANSWERS[NAMES[n.v * n.x % #NAMES + 1]](w, n) end)
end

return function(add, reset)
  answers(add)
  add(1, "fault", function(w, n)
    mr.machine.fault(({ "illegal-address", "assert", "launch-failure" })[n.x], w.s[n.s])
  end)
  add(1, "host_fails", function(w, n) w.s[n.s]:host_func(function() error "mine" end) end)
  add(1, "refused", function(w, n)
    if n.v > 2 then w.t[n.x]:add_(mr.zeros(3)) else mr.empty(1 << 50) end
  end)
  add(1, "reset", reset)
end
