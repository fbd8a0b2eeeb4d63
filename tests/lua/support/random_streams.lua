-- Steps of random programs (random_programs.lua): operations, copies, host functions, memory that comes and goes, and
-- what orders streams.
local mr = require "millrace"

local function on(w, n, f) return w.s[n.s]:run(f) end

local function operations(add, N)
  add(5, "scale", function(w, n) on(w, n, function() w.t[n.x]:mul_(n.v) end) end)
  add(5, "add", function(w, n) on(w, n, function() w.t[n.x]:add_(w.t[n.y]) end) end)
  add(3, "half", function(w, n) on(w, n, function() w.t[n.x]:narrow(1, n.v % 2 * 16 + 1, 16):fill_(n.v) end) end)
  add(2, "stripes", function(w, n)
    on(w, n, function() w.t[n.x]:reshape(N // 2, 2):select(2, n.v % 2 + 1):add_(n.v) end)
  end)
  add(2, "op", function(w, n) on(w, n, function() mr.op{name = "mix", reads = {w.t[n.x]}, writes = {w.t[n.y]}} end) end)
  add(2, "spin", function(w, n) on(w, n, function() mr.spin{ms = 0.01 * n.v} end) end)
  add(2, "random", function(w, n) on(w, n, function() w.t[n.x]:uniform_() end) end)
  add(1, "sort", function(w, n) on(w, n, function() w.t[n.y]:copy_((w.t[n.x]:sort())) end) end)
  add(1, "index_add", function(w, n)
    on(w, n, function() w.t[n.x]:index_add_(1, w.choice:to("i64") + 1, w.t[n.y] * 1) end)
  end)
  add(1, "gradient", function(w, n)
    on(w, n, function()
      local x = w.t[n.x]:clone():requires_grad_()
      w.s[n.z]:wait_stream(w.s[n.s])
      local sum = w.s[n.z]:run(function() return (x * x):sum() end)
      sum:backward()
      w.t[n.y]:copy_(x.grad)
      w.garbage = true
    end)
  end)
  add(1, "one_by_one", function(w, n)
    mr.launch_blocking(true)
    pcall(on, w, n, function() w.t[n.x]:add_(n.v) end)
    mr.launch_blocking(false)
  end)
end

local function memory(add, N)
  add(2, "temporary", function(w, n)
    on(w, n, function()
      local sum = w.t[n.x] + 1
      w.s[n.z]:wait_stream(w.s[n.s])
      w.s[n.z]:run(function() w.t[n.y]:copy_(sum) end)
      if n.v % 2 == 0 then sum:record_stream(w.s[n.z]) end
      if n.v % 3 == 0 then sum:free() end
      w.garbage = w.garbage or n.v % 3 ~= 0
    end)
  end)
  add(1, "collect", function(w) w.garbage = nil collectgarbage() collectgarbage() end)
  add(1, "free_at_once", function(w, n)
    on(w, n, function()
      local other = w.t[n.x] * 2
      other:free{sync = n.v % 2 == 0}
    end)
  end)
  add(1, "free_elsewhere", function(w, n)
    local other = on(w, n, function() return w.t[n.x] * 2 end)
    if n.v > 2 then w.s[n.z]:wait_stream(w.s[n.s]) end
    other:free{stream = w.s[n.z]}
  end)
  add(1, "close", function(w, n)
    on(w, n, function()
      local other <close> = w.t[n.x] + n.v
      w.s[n.z]:run(function() w.t[n.y]:copy_(other) end)
    end)
  end)
  add(2, "unwritten", function(w, n) -- memory that another tensor may have had
    on(w, n, function()
      local new = mr.empty(N)
      if n.v > 2 then new:narrow(1, 1, N // 2):fill_(n.v) end
      if n.v % 2 == 0 then w.t[n.y]:copy_(new) else w.t[n.y]:add_(new) end
      new:free()
    end)
  end)
  add(1, "cache", function() mr.memory.empty_cache() end)
end

local function waits(add)
  add(4, "wait_stream", function(w, n) if n.s ~= n.z then w.s[n.s]:wait_stream(w.s[n.z]) end end)
  add(2, "barrier", function(w, n)
    if n.s ~= n.z then mr.barrier(n.v > 3 and w.s or { w.s[n.s], w.s[n.z] }) end
  end)
  add(3, "record", function(w, n) w.e[n.e]:record(w.s[n.s]) end)
  add(4, "wait_event", function(w, n) w.s[n.s]:wait_event(w.e[n.e]) end)
  add(2, "synchronize", function(w, n) w.s[n.s]:synchronize() end)
  add(1, "synchronize_event", function(w, n) w.e[n.e]:synchronize() end)
  add(1, "synchronize_all", function() mr.synchronize() end)
  add(1, "event_closes", function(w, n)
    local e <close> = w.s[n.s]:record_event()
    w.s[n.z]:wait_event(e)
  end)
  add(1, "stream_closes", function(w, n)
    local s <close> = mr.stream{nonblocking = n.v > 2}
    s:wait_stream(w.s[n.s])
    s:run(function() w.t[n.x]:mul_(n.v) end)
    if n.v % 2 == 0 then w.s[n.z]:wait_stream(s) end
  end)
end

local function copies(add)
  local function copy(w, n, to, from, is_asynchronous)
    on(w, n, function() to:copy_(from, {non_blocking = is_asynchronous}) end)
  end
  add(2, "to_pinned", function(w, n) copy(w, n, w.p[n.h], w.t[n.x], n.v % 3 > 0) end)
  add(2, "from_pinned", function(w, n) copy(w, n, w.t[n.x], w.p[n.h], n.v % 3 > 0) end)
  add(2, "to_pageable", function(w, n) copy(w, n, w.q[n.h], w.t[n.x], n.v % 4 == 0) end)
  add(2, "from_pageable", function(w, n) copy(w, n, w.t[n.x], w.q[n.h], n.v % 4 == 0) end)
  add(2, "memcpy", function(w, n)
    local places = { w.t, w.p, w.q }
    local to, from = places[n.v % 3 + 1], places[n.h + 1]
    local a, b = to[(n.x - 1) % #to + 1], from[(n.y - 1) % #from + 1]
    if a ~= b then if n.v > 3 then mr.memcpy(a, b) else mr.memcpy_async(a, b, {stream = w.s[n.s]}) end end
  end)
  add(1, "memset", function(w, n) mr.memset_async(w.t[n.x], n.v, {stream = w.s[n.s]}) end)
  add(1, "element", function(w, n) on(w, n, function() w.t[n.x][n.v] = n.v end) end)
  add(2, "host_adds", function(w, n) w.p[n.h]:add_(n.v) end)
  add(2, "host_adds_pageable", function(w, n) w.q[n.h]:add_(n.v) end)
  if mr.device_count() == 1 then return end
  add(4, "far_works", function(w, n) w.far_stream:run(function() w.far:mul_(n.v) end) end)
  add(4, "to_far", function(w, n) copy(w, n, w.far, w.t[n.x], n.v > 2) end)
  add(4, "from_far", function(w, n)
    if n.v > 2 then copy(w, n, w.t[n.x], w.far, true)
    else w.far_stream:run(function() w.t[n.x]:copy_(w.far, {non_blocking = true}) end) end
  end)
  add(4, "far_waits", function(w, n) w.far_stream:wait_stream(w.s[n.s]) end)
  add(4, "waits_for_far", function(w, n) w.s[n.s]:wait_stream(w.far_stream) end)
  add(2, "far_synchronizes", function() mr.synchronize(1) end)
  add(2, "moves", function(w, n)
    local moved = on(w, n, function() return w.t[n.x]:to(1) end)
    mr.with(mr.device(1), function() w.far:add_(moved) end)
  end)
end

local function host_functions(add)
  add(5, "host_function", function(w, n)
    local p, q, v = w.p[n.h], w.q[n.h], n.v
    w.s[n.s]:host_func(function() if v > 2 then p:mul_(v) else q:fill_(v) end end)
  end)
  add(3, "host_draws", function(w, n) local p = w.p[n.h] w.s[n.s]:host_func(function() p:uniform_() end) end)
  add(1, "host_makes", function(w, n) -- memory that is made and dropped while the host waits
    local p, v = w.p[n.h], n.v
    w.s[n.s]:host_func(function() p:add_(mr.full(#p, v, {device = "cpu", pinned = v > 2})) end)
  end)
  add(1, "host_variable", function(w, n)
    local v = n.v
    w.broken.host_functions = 1
    w.s[n.s]:host_func(function() w.number = w.number * 2 % 1000 + v end)
  end)
  add(1, "uses_variable", function(w, n) on(w, n, function() w.t[n.x]:fill_(w.number) end) end)
end

return function(add, N)
  operations(add, N)
  memory(add, N)
  waits(add)
  copies(add)
  host_functions(add)
end
