-- Steps through a script: `:load file.lua` under the chooser "manual" stops before the host waits for pending work, and
-- at the places of `:break`. There the device can be stepped forward and back, and values looked at.
--
-- The script runs as an entry. A Lua hook sees each of its lines; functions that wait are wrapped while it runs. A stop
-- is a loop of its own that reads commands, inside of the call that the script has made. So it may stop in functions
-- that C has called, too. Easiest to break: all of that must be restored at the end.
local _, tools = ...

local create, resume = coroutine.create, coroutine.resume
local mr = tools.mr
local draw = tools.require("draw")

local script = { lines = {}, ops = {} } -- the breakpoints: line = true, name of an operation = true

local BEFORE, AFTER = 4, 6 -- lines that are shown around the present one
local LEAST_FOR_PANES = 100

local function sorted(set)
  local list = {}
  for one in pairs(set) do list[#list + 1] = one end
  table.sort(list)
  return list
end

-- The script that runs, as a table:
--     source, name   of its chunk
--     lines          its text
--     has_code       the lines that have some
--     goes_to        "next" or nil
--     seen           the last operation's seq
--     is_left        true: it is to end
--     ranks          true: its chunk runs on each of several
local running
local stopped -- { line =, locals =, names = of them, globals = } while the script stands
local ranks = setmetatable({}, { __mode = "k" }) -- by the coroutine that a rank runs on

function script.locals() return stopped and stopped.locals end

-- ---------------------------------------------------------------- showing

local function source_lines(style, width)
  local lines, at = {}, stopped.line
  for n = math.max(1, at - BEFORE), math.min(#running.lines, at + AFTER) do
    local mark = n == at and draw.glyph(style, "▶", ">") or " "
    local stop = script.lines[n] and "*" or " "
    lines[#lines + 1] = draw.cut(style, ("%s%s%4d  %s"):format(mark, stop, n, running.lines[n]), width)
  end
  return lines
end

-- The source and the queues: beside each other, or one below the other.
local function panes()
  local style, out = draw.style(), {}
  local commands = tools.require("commands")
  if style.width < LEAST_FOR_PANES then
    table.move(source_lines(style, style.width), 1, 1000, 1, out)
    table.move(commands.queue_lines(style.width), 1, 1000, #out + 1, out)
    return out
  end
  local half = style.width // 2 - 2
  local left, right = source_lines(style, half), commands.queue_lines(style.width - half - 3)
  local bar = draw.glyph(style, " │ ", " | ")
  for i = 1, math.max(#left, #right) do
    out[i] = (draw.fit(style, left[i] or "", half) .. bar .. (right[i] or "")):gsub("%s+$", "")
  end
  return out
end

-- ---------------------------------------------------------------- where it stands

-- Adds the parameters and locals in force of the function at `level`, but for names that are there already.
local function add_locals(level, values, names)
  local own, own_names = {}, {}
  for i = 1, 255 do
    local name, value = tools.getlocal(level + 1, i)
    if not name then break end
    if name:find("^[%a_][%w_]*$") and not name:find("^__mr_") then own[name], own_names[name] = value, true end
  end
  for name in pairs(own_names) do
    if not names[name] then values[name], names[name] = own[name], true end
  end
end

-- Variables of the functions around it in the text, which it does not use itself: Lua has no upvalues for these. They
-- are looked up where the outer function runs. If it runs twice, it is unknown which call made the inner one.
local function add_outer(level, values, names)
  local inner, running_twice, levels = tools.getinfo(level + 1, "S"), {}, {}
  for at = level + 1, 200 do
    local outer = tools.getinfo(at + 1, "Sf")
    if not outer then break end
    local is_around = outer.source == inner.source and (outer.what == "main" or
      outer.linedefined < inner.linedefined and outer.lastlinedefined > inner.lastlinedefined)
    if is_around then
      running_twice[outer.linedefined] = levels[outer.linedefined] ~= nil
      levels[outer.linedefined] = at
    end
  end
  local lines = {}
  for line in pairs(levels) do
    if not running_twice[line] then lines[#lines + 1] = line end
  end
  table.sort(lines, function(a, b) return a > b end) -- the nearest first
  for _, line in ipairs(lines) do add_locals(levels[line] + 1, values, names) end
end

-- The variables that the function at `level` sees: parameters and locals in force, and upvalues; their names; and its
-- globals.
local function variables_at(level)
  local values, names, globals, info = {}, {}, _G, tools.getinfo(level + 1, "f")
  add_locals(level + 1, values, names)
  for i = 1, 255 do
    local name, value = tools.getupvalue(info.func, i)
    if not name then break end
    if name == "_ENV" and running.ranks then globals = value end
    local is_new = name:find("^[%a_][%w_]*$") and name ~= "_ENV" and not name:find("^__mr_") and not names[name]
    if is_new then values[name], names[name] = value, true end
  end
  add_outer(level + 1, values, names)
  return values, names, globals
end

-- Levels count from the caller. The innermost function of the script.
local function level_of_script()
  for level = 2, 200 do
    local info = tools.getinfo(level, "Sl")
    if not info then return nil end
    if info.source == running.source then return level - 1, info.currentline end
  end
  return nil
end

-- Calls fn as tools.call does, in another coroutine: Ctrl-C is a hook, and no hook runs within a hook of the same one.
local function apart(fn, ...)
  return select(2, resume(create(tools.call), fn, ...))
end

local function complain(message)
  tools.complain((message:gsub("\nstack traceback:.*$", ""):gsub("^stop%-%d+:1: ", "")))
end

-- With the variables of the stop: true and the values, or false and why not. `place`: its name in reports.
local function values_of(text, place)
  place = place or "stop"
  local chunk = tools.load("return " .. text, place)
  local message
  if not chunk then chunk, message = tools.load(text, place) end
  if not chunk then return false, message end
  tools.setupvalue(chunk, 1, setmetatable({}, {
    __index = function(_, name)
      local value = stopped.locals[name]
      if value ~= nil then return value end
      return stopped.globals[name]
    end,
    __newindex = function(_, name, value)
      if stopped.names[name] then
        tools.complain(("`%s` is a global variable now; the script's own `%s` is as it was"):format(name, name))
      end
      stopped.globals[name] = value
    end,
  }))
  return apart(chunk)
end

local entries = 0

-- Each entry is a place of its own: reports of two entries are two. They name the variables of the stop.
local function evaluate(text)
  entries = entries + 1
  local place = "stop-" .. entries -- as src/bind/source.h has it
  local variables = {}
  for name, value in pairs(stopped.locals) do
    if type(value) ~= "function" then variables[name] = value end
  end
  tools.set_locals(variables)
  local results = table.pack(values_of(text, place))
  tools.require("session").show_locals()
  if not results[1] then return complain(results[2]) end
  if results.n > 1 then tools.require("session").show(table.pack(table.unpack(results, 2, results.n))) end
end

-- ---------------------------------------------------------------- stopping

local LEFT = "the script was left"
local LEAVES = { next = "next", n = "next", continue = "continue", c = "continue" }

-- Reads commands until one of them lets the script go on.
local function stop(why)
  local level, line = level_of_script()
  if not level then return end
  stopped = { line = line }
  stopped.locals, stopped.names, stopped.globals = variables_at(level)
  local rank = ranks[coroutine.running()]
  local place = ("%s%s:%d"):format(rank and ("rank %d: "):format(rank) or "", running.name, line)
  tools.write(("%s: %s\n"):format(place, why))
  tools.write(table.concat(panes(), "\n") .. "\n")
  local watching = tools.require("watching")
  watching.show(values_of)
  while true do
    local text = tools.read(place .. "> ")
    local word = text and text:match("^%s*:%s*(%l+)%s*$")
    if text == nil or word == "quit" or word == "q" or text and tools.require("session").asks_to_leave(text) then
      stopped, running.is_left = nil, true
      error(LEFT, 0)
    elseif text == false then
      tools.write("") -- Ctrl-C: what was typed is gone
    elseif text:find("^%s*$") or LEAVES[word] then
      running.goes_to = LEAVES[word] or running.goes_to
      stopped = nil
      return tools.sethook(running.hook, "l") -- Ctrl-C has taken its place
    elseif text:find("^%s*:") then
      local called, done, message = apart(tools.require("commands").run, text:match("^%s*(.-)%s*$"))
      if not called then done, message = false, done end
      if not done then complain(message) end
      watching.show(values_of)
    else
      evaluate(text)
      watching.show(values_of)
    end
  end
end

-- The operation that a breakpoint names, if one was submitted since the last look.
local function new_operation()
  local found, last = nil, running.seen
  for _, queue in ipairs(mr.machine.queues()) do
    for _, one in ipairs(queue.pending) do
      if one.seq > running.seen and script.ops[one.op] then found = one.op end
      last = math.max(last, one.seq)
    end
  end
  running.seen = last
  return found
end

-- Whether the function that runs was called by the line that it is written in, as in s:run(function() ... end): for a
-- person the line has begun once.
local function goes_on_in(line)
  for level = 4, 20 do
    local info = tools.getinfo(level, "Sl")
    if not info then return false end
    if info.source == running.source then return info.currentline == line end
  end
  return false
end

local function on_line(_, line)
  if not running or stopped or line > #running.lines then return end
  local info = tools.getinfo(2, "S")
  if info.source ~= running.source then return end
  if info.what == "main" and not running.ranks then return end -- it is ours, with the text in it
  if running.is_left then error(LEFT, 0) end -- a coroutine has kept the first one
  local op = next(script.ops) and new_operation()
  if op then return stop(("`%s` was submitted"):format(op)) end
  local why = script.lines[line] and "a breakpoint" or running.goes_to == "next" and "the next line"
  if why and not goes_on_in(line) then return stop(why) end
end

-- ---------------------------------------------------------------- waits

-- The functions that make the host wait: methods by class, functions of mr.
local WAITS = { stream = { "synchronize" }, event = { "synchronize" }, tensor = { "item", "totable", "has_nan" },
  mr = { "synchronize", "format", "print" } }

local function pending() return next(mr.machine.queues()) ~= nil end

local function with_stop(name, original)
  return function(...)
    if running and not stopped and pending() then stop(("`%s` waits for the device"):format(name)) end
    return original(...)
  end
end

-- Wraps the waiting functions; returns a function that restores them.
local function watch_waits()
  local before = {}
  for class, names in pairs(WAITS) do
    local holder = class == "mr" and mr or tools.class_of(class).methods
    for _, name in ipairs(names) do
      local original = rawget(holder, name)
      if original then
        before[#before + 1] = { holder, name, original }
        rawset(holder, name, with_stop(name, original))
      end
    end
  end
  local print_before = print
  _G.print = function(...)
    for i = 1, select("#", ...) do
      local is_tensor = getmetatable((select(i, ...))) == "millrace.tensor"
      if is_tensor and running and not stopped and pending() then stop("`print` waits for the device") break end
    end
    return print_before(...)
  end
  return function()
    for _, one in ipairs(before) do rawset(one[1], one[2], one[3]) end
    _G.print = print_before
  end
end

-- ---------------------------------------------------------------- coroutines

-- Each has a hook of its own. A function that a coroutine or a task begins with sets it.
local function with_hook(fn)
  if type(fn) ~= "function" then return fn end
  return function(...)
    if running then tools.sethook(running.hook, "l") end
    return fn(...)
  end
end

-- The same for a rank, which runs on a coroutine, too.
local function with_hook_of_rank(fn)
  if type(fn) ~= "function" then return fn end
  return function(rank, ...)
    ranks[coroutine.running()] = rank
    if running then tools.sethook(running.hook, "l") end
    return fn(rank, ...)
  end
end

-- Wraps the functions that make coroutines; returns a function that restores them.
local function watch_coroutines()
  local make, wrap, run, spawn = coroutine.create, coroutine.wrap, mr.run, mr.dist.spawn
  rawset(coroutine, "create", function(fn)
    local made = make(fn)
    if running then tools.sethook(made, running.hook, "l") end
    return made
  end)
  rawset(coroutine, "wrap", function(fn) return wrap(with_hook(fn)) end)
  rawset(mr, "run", function(...)
    local functions = table.pack(...)
    for i = 1, functions.n do functions[i] = with_hook(functions[i]) end
    return run(table.unpack(functions, 1, functions.n))
  end)
  rawset(mr.dist, "spawn", function(count, fn, ...) return spawn(count, with_hook_of_rank(fn), ...) end)
  return function()
    rawset(coroutine, "create", make)
    rawset(coroutine, "wrap", wrap)
    rawset(mr, "run", run)
    rawset(mr.dist, "spawn", spawn)
  end
end

-- ---------------------------------------------------------------- commands

-- Why the script cannot stop at that line, with the nearest one where it can; nil: it can, or nothing is known.
local function why_not(line)
  local has_code, nearest = running.has_code, nil
  if not has_code or has_code[line] then return nil end
  for other in pairs(has_code) do
    local distance = math.abs(other - line)
    local best = nearest and math.abs(nearest - line)
    if other <= #running.lines and (not best or distance < best or distance == best and other > nearest) then
      nearest = other
    end
  end
  local what = ("line %d of %s has no code"):format(line, running.name)
  local last = #running.lines
  if line > last then what = ("%s ends at line %d, before line %d"):format(running.name, last, line) end
  return what .. (nearest and ("; the nearest line that it can stop at is %d"):format(nearest) or "")
end

-- Reports breakpoints that were set before the script was loaded and that do not exist in it. They stay, since they may
-- be for another script.
local function check_breaks()
  for _, line in ipairs(sorted(script.lines)) do
    local message = why_not(line)
    if message then tools.complain((":break %d: %s"):format(line, message)) end
  end
end

-- Runs the text as an entry. is_step: it stops at its first line. on_ranks: once for each of so many.
function script.run(text, name, is_step, on_ranks)
  if running then return nil, "a script has stopped; let it end first: :continue" end
  local session = tools.require("session")
  running = { source = "@" .. name, name = name:match("[^/]*$"), lines = {}, seen = 0,
    goes_to = is_step and "next" or "continue", hook = on_line, ranks = on_ranks and true }
  for line in (text .. "\n"):gmatch("(.-)\r?\n") do running.lines[#running.lines + 1] = line end
  local chunk = tools.load(text, running.source)
  running.has_code = chunk and tools.require("code_lines")(chunk)
  check_breaks()
  local restore, restore_coroutines = watch_waits(), watch_coroutines()
  session.hook = on_line
  tools.sethook(on_line, "l")
  local entry = session.run(text, { echo = true, file = name, ranks = on_ranks })
  tools.sethook()
  session.hook = nil
  restore()
  restore_coroutines()
  running, stopped = nil, nil
  return entry
end

-- Whether `:load` should do so.
function script.is_wanted() return mr.machine and mr.machine.chooser() == "manual" end

-- The names of operations that a script can call: functions of mr and methods.
local function known_operations()
  local known = { "copy", "alloc", "free" }
  local holders = { mr, mr.dist }
  for _, class in ipairs{ "tensor", "stream", "event", "graph" } do
    local meta = tools.class_of(class)
    holders[#holders + 1] = meta and meta.methods or {}
  end
  for _, holder in ipairs(holders) do
    for name, value in next, holder do
      if type(name) == "string" and type(value) == "function" then known[#known + 1] = name end
    end
  end
  return known
end

-- A kernel may have any name, and the script may still have to make it. So the name is taken in any case.
local function doubt(name)
  local known = known_operations()
  table.sort(known)
  for _, one in ipairs(known) do
    if one == name then return nil end
  end
  local meant = tools.nearest(name, known)
  local question = meant and (" (did you mean `%s`?)"):format(meant) or ""
  return ("millrace has no operation `%s`%s: it stops after a kernel or an mr.op of that name"):format(name, question)
end

local function list()
  local words, ops = sorted(script.lines), sorted(script.ops)
  table.move(ops, 1, #ops, #words + 1, words)
  return #words > 0 and { "breakpoints: " .. table.concat(words, ", ") } or
    { "no breakpoints: :break 12 stops at line 12, :break fill_ after the line that submits fill_" }
end

local function set_break(words)
  if not words[1] then return list() end
  if words[1] == "off" then
    script.lines, script.ops = {}, {}
    return { "no breakpoints" }
  end
  local line = math.tointeger(tonumber(words[1]))
  if line and line < 1 or words[2] then
    return nil, ":break needs a line from 1 on, the name of an operation, or off"
  end
  local message = line and running and why_not(line)
  if message then return nil, (":break %d: %s"):format(line, message) end
  if line then script.lines[line] = true else script.ops[words[1]] = true end
  local lines = list()
  lines[#lines + 1] = not line and doubt(words[1]) or nil
  return lines
end

local function only_at_a_stop(name)
  local text = (":%s: no script has stopped; :load file.lua under :chooser manual runs one"):format(name)
  return function() return nil, text end
end

function script.add(commands)
  commands.add{ name = "break", usage = "[line|operation|off]",
    text = "Sets where a script stops that :load runs under the chooser manual. It also stops before waits.",
    complete = function() return { "off" } end, run = set_break }
  commands.add{ name = "next", text = "In a script that has stopped: goes to its next line.",
    run = only_at_a_stop("next") }
  commands.add{ name = "continue", text = "In a script that has stopped: goes on to the next wait or breakpoint.",
    run = only_at_a_stop("continue") }
end

return script
