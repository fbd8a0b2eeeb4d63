-- Random programs as texts, for tools_agree.lua: a statement a line, so that a wait can be left out and a fix put in.
-- Each program uses some kinds of lines only, drawn at random, so that rare kinds meet each other, too.
local programs = {}

local random = math.random
local function any(list) return list[random(#list)] end

-- All kinds of streams; `f` is of the second device.
local STREAMS, HERE = { "a", "b", "c", "d", "p" }, { "a", "b", "c", "d", "p" }
-- Tensors of one size can be copied. g, h: copies of this size block or overlap where small ones do not.
local SMALL, LARGE = { "x", "y", "z" }, { "g", "h" }

programs.HEAD = [[
local mr, kernels = ...
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local c, d, p = mr.stream{name = "c", nonblocking = false}, mr.default_stream(), mr.per_thread_stream()
local own, fork = mr.stream{name = "own"}, mr.stream{name = "fork"}
local e, e2 = mr.event{name = "e"}, mr.event{name = "e2"}
local function new(n, v, o) o.dtype = "i32" return mr.full(n, v, o) end
local x, y, z = new(4, 1, {name = "x"}), new(4, 2, {name = "y"}), new(4, 3, {name = "z"})
local pin, page = new(4, 4, {name = "pin", pinned = true}), new(4, 5, {name = "page", device = "cpu"})
local g, h, gpin, gpage
LARGE
local far, f, comms
FAR
local t, graph, auto
local seen, said = {}, {}
]]

programs.TAIL = [[
mr.synchronize()
FAR
for _, v in ipairs{x, y, z} do local _ = v:sum() end -- what nothing has written is reported
return {x = x, y = y, z = z, g = g, h = h, pin = pin, page = page, gpin = gpin, gpage = gpage, far = far, seen = seen,
  said = said}]]

local LARGE_LINES = 'g, h = new(1 << 18, 6, {name = "g"}), new(1 << 18, 7, {name = "h"}) ' ..
  'gpin, gpage = new(1 << 18, 8, {name = "gpin", pinned = true}), new(1 << 18, 9, {name = "gpage", device = "cpu"})'
local FAR_LINES = 'mr.with(mr.device(1), function() far, f = new(4, 10, {name = "far"}), mr.stream{name = "f"} end) ' ..
  'comms = mr.nccl.comms{0, 1} mr.synchronize(1)'

-- A line's text, by the program's options: large, two.
local function stream() return any(STREAMS) end
local function sized(o)
  if o.large and random(3) == 1 then return any(LARGE), any(LARGE), "gpin", "gpage" end
  return any(SMALL), any(SMALL), "pin", "page"
end
local function number() return random(2, 9) end
local function mode() return random(3) == 1 and "" or ", {non_blocking = true}" end

local kinds = {
  work = function(o)
    local t = sized(o)
    return ("%s:run(function() %s:%s(%d) end)"):format(any(HERE), t, any { "mul_", "add_", "fill_" }, number())
  end,
  two = function(o)
    local t, u = sized(o)
    return ("%s:run(function() %s:add_(%s) end)"):format(any(HERE), t, u)
  end,
  view = function(o)
    local t = sized(o)
    local first = random(3)
    return ("%s:run(function() %s[{{%d, %d}}]:add_(%d) end)"):format(any(HERE), t, first, random(first, 4), number())
  end,
  copy = function(o)
    local t, u = sized(o)
    if t == u then return end
    return ("%s:run(function() %s:copy_(%s%s) end)"):format(stream(), t, u, mode())
  end,
  pinned = function(o)
    local t, _, pin = sized(o)
    if random(2) == 1 then t, pin = pin, t end
    return ("%s:run(function() %s:copy_(%s%s) end)"):format(stream(), t, pin, mode())
  end,
  pageable = function(o)
    local t, _, _, page = sized(o)
    if random(2) == 1 then t, page = page, t end
    return ("%s:run(function() %s:copy_(%s%s) end)"):format(stream(), t, page, mode())
  end,
  memcpy = function(o)
    local t, u, pin, page = sized(o)
    local to, from = any { t, pin, page, u }, any { t, pin, page, u }
    if to == from then return end
    if random(2) == 1 then return ("mr.memcpy(%s, %s)"):format(to, from) end
    return ("mr.memcpy_async(%s, %s, {stream = %s})"):format(to, from, any(HERE))
  end,
  memset = function(o)
    local t, _, pin = sized(o)
    if random(2) == 1 then return ("mr.memset(%s, %d)"):format(any { t, pin }, random(0, 2)) end
    return ("mr.memset_async(%s, %d, {stream = %s})"):format(any { t, pin }, random(0, 2), any(HERE))
  end,
  host = function() return ("%s[%d] = %d"):format(any { "pin", "page" }, random(4), number()) end,
  read = function() return ("seen[#seen + 1] = %s[%d]:item()"):format(any { "x", "y", "pin", "page" }, random(4)) end,
  branch = function()
    return ("if %s[1]:item() > 5 then %s:run(function() %s:add_(1) end) end"):format(any { "x", "pin" }, any(HERE),
      any(SMALL))
  end,
  ask = function()
    return ("said[#said + 1] = %s:query()"):format(any { "a", "b", "c", "d", "e", "e2" })
  end,
  ask_and_go = function()
    local s = any(HERE)
    return ("said[#said + 1] = %s:query() if said[#said] then %s:run(function() %s:add_(1) end) end"):format(
      any { "a", "b", "e", "e2" }, s, any(SMALL))
  end,
  host_func = function(o)
    local _, _, pin, page = sized(o)
    return ("%s:host_func(function() %s:%s(%d) end)"):format(any(HERE), any { pin, page }, any { "add_", "fill_" },
      number())
  end,
  temporary = function() return ("t = %s:run(function() return %s + 1 end)"):format(any(HERE), any(SMALL)) end,
  unwritten = function() return ("t = mr.empty(4, {dtype = 'i32', stream = %s})"):format(any(HERE)) end,
  uses = function()
    return ("if t then %s:run(function() %s end) end"):format(any(HERE),
      any { "x:copy_(t)", "y:add_(t)", "t:fill_(3)", "t:copy_(z)" })
  end,
  free = function()
    local how = any { "", "", "{sync = true}", "{stream = " .. any(HERE) .. "}" }
    return ("if t then t:free(%s) t = nil end"):format(how)
  end,
  keep = function() return ("if t then t:record_stream(%s) end"):format(any(HERE)) end,
  drop = function() return "t = nil collectgarbage() collectgarbage()" end,
  kernel = function()
    local s = any(HERE)
    return ("kernels.%s{%s}"):format(any { "shift", "count", "scatter", "guard" }, table.concat({ s, any(SMALL),
      any(SMALL), number() }, ", "))
  end,
  capture = function(o)
    local t, u = sized(o)
    local text = "graph = mr.graph(function() %s:add_(1) fork:wait_stream(own) fork:run(function() %s:mul_(2) end) %s"
      .. "own:wait_stream(fork) end, {stream = own})"
    return text:format(t, u, random(2) == 1 and "" or t .. ":add_(2) ")
  end,
  launch = function() return ("if graph then graph:launch(%s) end"):format(any(HERE)) end,
  auto = function()
    return ("auto = auto or mr.graph.auto(function() %s:add_(1) %s:mul_(2) end) %s:run(auto)"):format(any(SMALL),
      any(SMALL), any(HERE))
  end,
  closes = function()
    return ("do local s <close> = mr.stream{nonblocking = %s} s:wait_stream(%s) s:run(function() %s:mul_(2) end)%s end")
      :format(tostring(random(2) == 1), any(HERE), any(SMALL), random(2) == 1 and "" or (" %s:wait_stream(s)"):format(
      any(HERE)))
  end,
  op = function()
    return ("mr.op{stream = %s, reads = {%s}, writes = {%s}}"):format(any(HERE), any(SMALL), any { "x", "y", "pin" })
  end,
  loop = function(o)
    local t, _, pin = sized(o)
    local s, u = any(HERE), any(HERE)
    if s == u then return end
    local text = "for i = 1, 2 do %s:run(function() %s:add_(i) end) %s %s:run(function() "
      .. "%s:copy_(%s, {non_blocking = true}) end) end"
    return text:format(s, t, random(2) == 1 and "" or ("%s:wait_stream(%s)"):format(u, s), u, pin, t)
  end,
  task = function()
    local text = "mr.run(function() %s:await() said[#said + 1] = 1 %s:run(function() %s:add_(1) end) end, "
      .. "function() %s:await() said[#said + 1] = 2 %s:run(function() %s:mul_(2) end) end)"
    local for_what, of = { "a", "b", "e" }, any(HERE)
    return text:format(any(for_what), of, any(SMALL), any(for_what), any(HERE), any(SMALL))
  end,
  far_work = function(o) return o.two and ("f:run(function() far:mul_(%d) end)"):format(number()) end,
  far_copy = function(o)
    if not o.two then return end
    local t = any(SMALL)
    local to, from = "far", t
    if random(2) == 1 then to, from = t, "far" end
    if random(4) == 1 then return ("mr.memcpy(%s, %s)"):format(to, from) end
    return ("%s:run(function() %s:copy_(%s%s) end)"):format(any { "f", any(HERE) }, to, from, mode())
  end,
  collective = function(o)
    if not o.two then return end
    local s, t = any(HERE), any(SMALL)
    local how = any { "all_reduce(%s, {stream = %s})", "broadcast(%s, {stream = %s})" }
    return ("mr.nccl.group(function() comms[1]:" .. how .. " comms[2]:" .. how .. " end)"):format(t, s, "far", "f")
  end,
}

-- Lines of more than one thing, and of what Lua does by itself.
local more = {
  nothing = function(o)
    return ("%s:run(function() %s:narrow(1, 1, 0):add_(%d) end)"):format(any(HERE), sized(o), number())
  end,
  record_again = function()
    local e = any { "e", "e2" }
    return ("%s:record(%s) %s:wait_event(%s) %s:record(%s)"):format(e, any(HERE), any(HERE), e, e, any(HERE))
  end,
  closed_event = function()
    return ("do local q <close> = mr.event() q:record(%s) %s:wait_event(q) end"):format(any(HERE), any(HERE))
  end,
  refused = function()
    return any { "pcall(function() x:view(7) end)", "pcall(function() a:wait_event(5) end)",
      ("pcall(function() %s:run(function() x:add_(nil) end) end)"):format(any(HERE)) }
  end,
  coroutine = function(o)
    local t, text = sized(o), "do local go = coroutine.wrap(function() %s:run(function() %s:add_(1) coroutine.yield() "
      .. "%s:mul_(2) end) end) go() %s:run(function() %s:add_(4) end) go() end"
    return text:format(any(HERE), t, t, any(HERE), any(SMALL))
  end,
  finalizer = function(o)
    local text = "setmetatable({}, {__gc = function() %s:run(function() %s:add_(3) end) end}) collectgarbage()"
    return text:format(any(HERE), (sized(o)))
  end,
  cache = function() return "mr.memory.empty_cache()" end,
  message = function(o)
    local text = "mr.nccl.group(function() comms[1]:send(%s, 1, {stream = %s}) comms[2]:recv(far, 0, {stream = f}) end)"
    return o.two and text:format(any(SMALL), any(HERE))
  end,
  joined = function()
    return ("t = %s:run(function() return mr.cat{%s, %s}:narrow(1, %d, 4) end)"):format(any(HERE), any(SMALL),
      any(SMALL), random(5))
  end,
  tries = function()
    local text = "for i = 1, 2 do said[#said + 1] = %s:query() if said[#said] then %s:run(function() %s:add_(1) end) "
      .. "break end end"
    return text:format(any { "a", "b", "e", "e2" }, any(HERE), any(SMALL))
  end,
  captured_free = function(o)
    local t = sized(o)
    return ("graph = mr.graph(function() local u = %s + 1 %s:copy_(u) u:free() end, {stream = own})"):format(t, t)
  end,
  chunks = function()
    return ("for _, v in ipairs(%s:chunk(2)) do %s:run(function() v:add_(%d) end) end"):format(any(SMALL), any(HERE),
      number())
  end,
  use_and_free = function()
    return ("if t then %s:run(function() x:copy_(t) end) t:free{stream = %s} t = nil end"):format(any(HERE), any(HERE))
  end,
}

-- Lines that order. The wait of a line is the only one on it.
local function wait(o)
  local pick, s = random(13), any(o.two and { "a", "b", "c", "d", "p", "f" } or STREAMS)
  if pick <= 3 then
    local u = any(o.two and { "a", "b", "c", "d", "p", "f" } or STREAMS)
    if u ~= s then return ("%s:wait_stream(%s)"):format(s, u) end
  elseif pick <= 6 then return ("%s:wait_event(%s)"):format(s, any { "e", "e2" })
  elseif pick <= 9 then return ("%s:record(%s)"):format(any { "e", "e2" }, any(HERE))
  elseif pick == 10 then return ("mr.barrier{%s}"):format(any { "a, b", "a, c", "a, b, d", "b, p" })
  elseif pick == 11 then return s .. ":synchronize()"
  elseif pick == 12 then return any { "e", "e2" } .. ":synchronize()" end
  return "mr.synchronize()"
end

local function names_of(of)
  local names = {}
  for name in pairs(of) do names[#names + 1] = name end
  table.sort(names)
  return names
end

local function draw(name, o) return (kinds[name] or more[name])(o) end

local NAMES, ALL = names_of(kinds), names_of(kinds)
for _, name in ipairs(names_of(more)) do ALL[#ALL + 1] = name end

-- -> { lines = texts, large=, two= }; `of_all`: also of the kinds of `more`
function programs.make(seed, of_all)
  math.randomseed(seed)
  local o = { large = random(3) == 1, two = random(3) == 1, lines = {} }
  local some = { "work", "two" }
  for _, name in ipairs(of_all and ALL or NAMES) do
    if random(5) == 1 then some[#some + 1] = name end
  end
  local waits = random(2, 5) -- of ten lines
  local count = random(3, 12)
  while #o.lines < count do
    local line = random(10) <= waits and wait(o) or draw(any(some), o)
    if line then o.lines[#o.lines + 1] = line end
  end
  return o
end

local function put(text, name, lines) return (text:gsub(name .. "\n", (lines:gsub("%%", "%%%%")) .. "\n")) end

-- The whole text, and how many lines are above the first of the program.
function programs.text(o, lines)
  local head = put(put(programs.HEAD, "LARGE", o.large and LARGE_LINES or ""), "FAR", o.two and FAR_LINES or "")
  head = head .. "mr.synchronize()\n"
  local _, above = head:gsub("\n", "\n")
  local tail = put(programs.TAIL, "FAR", o.two and "mr.synchronize(1)" or "")
  return head .. table.concat(lines or o.lines, "\n") .. "\n" .. tail .. "\n", above
end

return programs
