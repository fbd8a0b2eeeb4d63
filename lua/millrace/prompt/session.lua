-- The session of a prompt: its entries, their variables, and how an entry is run.
--
-- Each entry is a chunk called "mr:7", whose main chunk goes on in the entries that follow: a `local` of its top level
-- lives on (compile.lua).
--
-- Modules of this folder are called with their name and the tools of src/repl/tools.c.
local format = require "millrace.words".format
local _, tools = ...

local concat, pack, unpack = table.concat, table.pack, table.unpack
local create, resume, status, close = coroutine.create, coroutine.resume, coroutine.status, coroutine.close
local yield = coroutine.yield

-- entries[7] = { n = 7, text =, values = the packed results, or nil, failed = true or nil, message =, file =, name = }.
-- `file` is the path that it was loaded from, or nil; `name` is that path or "mr:7". `resets`: it has called mr.reset.
local session = { entries = {} }
local by_name = {} -- the entry of a name; of a file that was loaded twice, the last one

-- Only so many values of entries are kept: they keep tensors, and so memory of the device, in use.
local MOST_VALUES = 50

-- The variables by name. Each has `holder`, a function whose first upvalue is the variable, or `value`, a constant that
-- Lua has no variable for. It also has `is_const`, and `closer`, the suspended coroutine in which a <close> variable
-- waits for its end.
local kept = {}
local holders = {} -- name = holder, for reports
local closers = {} -- in the order of their making

-- To reports.
function session.show_locals() tools.set_locals(holders) end

session.show_locals()

-- ---------------------------------------------------------------- variables

local function value_of(name)
  local variable = kept[name]
  if not variable then return nil end
  if variable.holder then return select(2, tools.getupvalue(variable.holder, 1)) end
  return variable.value
end

-- The variables of a script that has stopped come first.
local function local_of_stop(name)
  local values = tools.require("script").locals()
  return values and values[name]
end

-- name = value of all that are not nil
function session.locals()
  local values = {}
  for name in pairs(kept) do values[name] = value_of(name) end
  for name, value in pairs(tools.require("script").locals() or {}) do values[name] = value end
  return values
end

function session.has_local(name) return kept[name] ~= nil or local_of_stop(name) ~= nil end

function session.get_local(name)
  local value = local_of_stop(name)
  if value ~= nil then return value end
  return value_of(name)
end

local function keep(name, holder, is_const, closer)
  local variable = { is_const = is_const, closer = closer }
  if tools.getupvalue(holder, 1) then variable.holder = holder else variable.value = holder() end
  kept[name], holders[name] = variable, variable.holder
end

-- Ends the <close> variables of an entry.
local function end_closer(closer)
  for i = #closers, 1, -1 do
    if closers[i] == closer then table.remove(closers, i) end
  end
  local ended, message = tools.call(close, closer)
  if not ended then tools.complain(message) end
end

-- Before an entry that declares these names again.
local function close_declared(outline)
  for _, variable in ipairs(outline.locals) do
    local before = kept[variable.name]
    if before and before.closer then
      local closer = before.closer
      for _, other in pairs(kept) do
        if other.closer == closer then other.closer = nil end
      end
      end_closer(closer)
    end
  end
end

local compile = tools.require("compile")(kept, value_of)

-- ---------------------------------------------------------------- running

local function value_of_entry(n)
  local entry = session.entries[n]
  if not entry then error(("there is no entry %d"):format(n), 2) end
  if entry.values then return entry.values[1] end
  return nil
end

-- The function of an entry with <close> variables runs in a coroutine, which stays suspended at its end.
local function run_closing(entry, calls)
  local closer = create(entry)
  if session.hook then tools.sethook(closer, session.hook, "l") end
  local ended = pack(tools.call(function()
    local results = pack(resume(closer))
    if not results[1] then error(results[2], 0) end
    if status(closer) == "suspended" and not calls.is_waiting then
      error("attempt to yield from outside a coroutine", 0)
    end
    return unpack(results, 2, results.n)
  end))
  if ended[1] and status(closer) == "suspended" then
    closers[#closers + 1] = closer
    calls.closer = closer
  elseif not ended[1] then
    end_closer(closer)
  end
  return unpack(ended, 1, ended.n)
end

-- The functions that the text of an entry calls at its end, for one run.
local function new_calls(new)
  local calls = {}
  function calls.keep(name, holder, is_const) new[#new + 1] = { name, holder, is_const } end
  function calls.wait()
    calls.is_waiting = true
    yield()
  end
  calls.value = value_of_entry
  function calls.pass(...) return ... end
  return calls
end

-- Sets the globals `_`, `__` and `_7`, as long as the user has no variables of these names.
local function publish(entry)
  local value = entry.values[1]
  if value == nil then return end
  if not kept.__ and not kept._ then rawset(_G, "__", rawget(_G, "_")) end
  if not kept._ then rawset(_G, "_", value) end
  local name = "_" .. entry.n
  if rawget(_G, name) == nil and not kept[name] then
    rawset(_G, name, value)
    entry.published = value
  end
end

local function forget(entry)
  local name = "_" .. entry.n
  if entry.published ~= nil and rawequal(rawget(_G, name), entry.published) then rawset(_G, name, nil) end
  entry.values, entry.published = nil, nil
end

local function forget_old_values()
  local old = session.entries[#session.entries - MOST_VALUES]
  if old then forget(old) end
end

-- As --ranks does: once for each rank, which has variables of its own.
local function carry_out_on_ranks(entry)
  local run = require "millrace.spmd"
  local results = pack(tools.call(run({ { path = entry.file, text = entry.text } }, entry.ranks, tools.new_random)))
  if not results[1] then return false, results[2], results[3] end
  return true
end

-- Runs the entry: its values and its locals, or why it failed.
local function carry_out(entry)
  if entry.ranks then return carry_out_on_ranks(entry) end
  local new = {}
  local calls = new_calls(new)
  local main, problem, outline = compile(entry.text, entry.file and "@" .. entry.file or entry.name, calls)
  if not main then return false, problem end
  close_declared(outline)
  local results
  if outline.has_close then results = pack(run_closing(main, calls)) else results = pack(tools.call(main)) end
  if not results[1] then return false, results[2], results[3] end
  for _, variable in ipairs(new) do keep(variable[1], variable[2], variable[3], calls.closer) end
  if results.n > 1 then
    entry.values = pack(unpack(results, 2, results.n))
    publish(entry)
  end
  return true, outline.quiet_at ~= nil
end

-- The values of an expression of the session's variables, which becomes no entry: true and they, or false and why not.
function session.evaluate(text)
  local main, problem = compile(text, "watch", new_calls{})
  if not main then return false, problem end
  return tools.call(main)
end

-- ---------------------------------------------------------------- messages

-- The entry whose chunk has that name: "mr:7", or the path of a file that was loaded.
function session.entry_of(name) return by_name[name] end

-- The entry that a place such as "mr:7:2" is in, and the line.
local function entry_at(place)
  local name, line = place:match("^(.*):(%d+)$")
  return by_name[name], tonumber(line)
end

function session.entry_at(place) return (entry_at(place)) end

-- "mr:7:2" -> the text of that line
function session.line_at(place)
  local entry, line = entry_at(place)
  if not entry then return nil end
  local at = 0
  for text in (entry.text .. "\n"):gmatch("(.-)\n") do
    at = at + 1
    if at == line then return text, entry end
  end
  return nil
end

-- A traceback that has nothing but the entry itself says no more than the place in front of the message.
local function tidy_trace(entry, trace)
  local frames, lines = 0, {}
  for line in trace:gmatch("[^\n]+") do
    line = line:gsub("in function <mr:(%d+):1>$", "in entry %1")
    local main = entry.file and ("in function <%s:1>"):format(entry.file)
    if main and line:sub(-#main) == main then line = line:sub(1, -1 - #main) .. "in main chunk" end
    lines[#lines + 1] = line
    if not line:find("[C]: in", 1, true) then frames = frames + 1 end
  end
  return frames > 1 and "\nstack traceback:\n" .. concat(lines, "\n") or ""
end

-- A message of something that is not an entry, without its traceback.
local function tidy(message) return (message:gsub("\nstack traceback:.*$", "")) end

-- The message with the line that it names, unless that is what has just been typed.
local function describe(entry, message)
  local text, trace = message:match("^(.-)\nstack traceback:(.*)$")
  text = text or message
  local line, of = session.line_at(text:match("mr:%d+:%d+") or text:match("^(.-:%d+): ") or "")
  local was_typed_now = of == entry and not entry.text:find("\n", 1, true)
  if line and not was_typed_now then text = text .. "\n    " .. line:match("^%s*(.-)%s*$") end
  local hint = tools.require("hints").of(entry.text, text)
  if hint then text = text .. "\nhint: " .. hint end
  return text .. (trace and tidy_trace(entry, trace) or "")
end

-- ---------------------------------------------------------------- entries

-- g:print() returns the text that it has printed.
local function has_printed(entry)
  return entry.values.n == 1 and type(entry.values[1]) == "string" and entry.text:find(":print%s*%b()%s*$") ~= nil
end

local function new_entry(entry)
  entry.n = #session.entries + 1
  entry.name = entry.file or "mr:" .. entry.n
  session.entries[entry.n], by_name[entry.name] = entry, entry
  tools.set_entry(entry.n, entry.text, entry.file)
  return entry
end

-- Runs the text as a new entry, and returns it. echo: shows the results, or the error. file: the file that the text was
-- read from, whose name the chunk then has. ranks: the file is run on so many.
function session.run(text, options)
  local echo = options and options.echo
  local entry = new_entry{ text = text, file = options and options.file, ranks = options and options.ranks }
  local before = select(5, tools.state())
  local done, problem, stopped = carry_out(entry)
  entry.resets = select(5, tools.state()) ~= before or nil
  forget_old_values()
  if done then
    if echo and entry.values and not problem and not has_printed(entry) then session.show(entry.values) end
  else
    entry.failed, entry.stopped = true, stopped or nil
    entry.message = stopped and problem or describe(entry, problem)
    if echo then tools.complain(entry.message) end
  end
  return entry
end

-- Adds an entry that a replay does not run, so that those after it keep their numbers.
function session.skip(one)
  new_entry{ text = one.text, file = one.file, ranks = one.ranks, failed = true, stopped = true, message = one.message }
end

-- The values and their __tostring come from the script.
function session.show(values)
  local done, message = tools.call(tools.require("show").echo, values)
  if not done then tools.complain(message) end
end

-- ---------------------------------------------------------------- the loop

local seen_reports = 0

-- The name of the current stream, or of the variable that holds it.
local function stream_text()
  local stream = tools.mr.current_stream()
  if stream.name then return stream.name end
  for _, names in ipairs{ session.locals(), _G } do
    for name, value in pairs(names) do
      if rawequal(value, stream) and name ~= "_" then return name end
    end
  end
  return "stream #" .. stream.id
end

local function place_text()
  local device = tools.mr.current_device()
  local text = device.index > 0 and ("device %d"):format(device.index) or nil
  if tools.mr.current_stream() == tools.mr.default_stream() then return text end
  return (text and text .. ", " or "") .. stream_text()
end

local LONGEST_PLACE = 10 -- columns, on a narrow terminal

-- "mr:7> "; in brackets the state for the next operation: "mr:7 [copy; 3 pending at 0.012 ms; 1 new hazard]> ", and on
-- a narrow terminal "mr:7 [copy; 3 pending; !1]> ".
function session.prompt()
  local is_default, pending, ms, reports = tools.state()
  local draw, parts = tools.require("draw"), {}
  local is_narrow = draw.is_narrow()
  if not is_default then
    parts[1] = is_narrow and draw.cut(draw.style(), place_text(), LONGEST_PLACE) or place_text()
  end
  if pending > 0 then
    parts[#parts + 1] = is_narrow and pending .. " pending" or format("%d pending at %.3f ms", pending, ms)
  end
  if reports > seen_reports then
    local count = reports - seen_reports
    parts[#parts + 1] = is_narrow and "!" .. count or count == 1 and "1 new hazard" or count .. " new hazards"
  end
  seen_reports = reports
  local number = tools.style("bold", "mr:" .. #session.entries + 1, true)
  if #parts == 0 then return number .. "> " end
  return number .. " " .. tools.style("dim", ("[%s]"):format(concat(parts, "; ")), true) .. "> "
end

-- Words with which people leave Python and other shells.
local LEAVING = { quit = true, exit = true }

function session.asks_to_leave(text)
  local word = text:match "^%s*(%a+)%s*;?%s*$" or text:match "^%s*(%a+)%s*%(%s*%)%s*;?%s*$"
  return LEAVING[word] and rawget(_G, word) == nil and not session.has_local(word)
end

local is_over = false

-- Ends the session when the present entry is done.
function session.leave() is_over = true end

-- Carries out a typed text: an entry, or a command. Returns whether it went well, and whether the session ends with it.
function session.submit(text)
  if session.asks_to_leave(text) then return true, true end
  local clocks = tools.require("times").now()
  local done = session.enter(text)
  tools.require("times").say(clocks)
  tools.require("watching").show()
  return done, is_over
end

function session.enter(text)
  local mark = not text:find("^%s*::") and text:match("^%s*([:?])")
  if mark then
    local module = tools.require(mark == "?" and "inspect" or "commands")
    local done, message = module.run(text:match("^%s*(.-)%s*$"))
    if done == false then tools.complain(tidy(message)) end
    return done ~= false
  end
  local outline = tools.outline(text)
  if outline and outline.is_empty then return true end
  local entry = session.run(text, { echo = true })
  if entry.failed then return false end
  local hints, values = tools.require("hints"), entry.values
  local is_nil = values and values[1] == nil or text:find("None", 1, true)
  local hint = is_nil and hints.of_nil(text) or values and hints.of_caught(text, values)
  if hint then tools.complain("hint: " .. hint) end
  return true
end

-- Replacements for the end of the text from byte `from` on: a list, and `from`.
function session.complete(text) return tools.require("complete").find(text) end

-- The hint to show after the text: the usage of the function whose bracket is open at its end; or nil.
function session.hint(text) return tools.require("complete").hint(text) end

-- The line above the prompt, and a message to print above it; each may be nil.
function session.above() return tools.require("live").text() end

-- Shows the last result.
function session.list() tools.write(tools.require("complete").listing()) end

-- Whether millrace makes the text of the value, as for the result of mr.waits.
local function has_our_text(value)
  local meta = (type(value) == "table" or type(value) == "userdata") and tools.getmetatable(value)
  local to_text = meta and rawget(meta, "__tostring")
  if type(to_text) ~= "function" or getmetatable(value) == "millrace.tensor" then return false end
  local info = tools.getinfo(to_text, "S")
  return info.what == "C" or info.source:find("^[=@]millrace") ~= nil
end

-- print at the prompt says how long the host waited for the values of a tensor, and writes a text of millrace's in
-- whole words.
local function with_waits(print_values)
  return function(...)
    if tools.require("live").is_asking then tools.make_room() end
    local began = tools.clock()
    if select("#", ...) == 1 and has_our_text((...)) then return tools.write(tostring((...)) .. "\n") end
    print_values(...)
    local waited = tools.clock() - began
    local caller = tools.getinfo(2, "S")
    if waited <= 0 or not (caller and by_name[caller.source:sub(2)]) then return end
    for i = 1, select("#", ...) do
      if getmetatable((select(i, ...))) == "millrace.tensor" then
        return tools.write(tools.style("dim", format("-- waited %.3f ms\n", waited)))
      end
    end
  end
end

-- The user's own file, which runs before the first entry.
local function run_init()
  local folder = tools.require("settings").folder()
  local path = folder and folder .. "/init.lua"
  if not (path and loadfile and tools.read_file(path)) then return end
  local chunk, problem = loadfile(path)
  local done, message = nil, problem
  if chunk then done, message = tools.call(chunk) end
  if not done then tools.complain(message) end
end

-- Functions that only the prompt has.
function session.open()
  _G.help = tools.mr.help
  rawset(tools.mr, "prompt", setmetatable({}, { __index = function(functions, name)
    return tools.require("commands") and rawget(functions, name) -- it fills the table
  end }))
  _G.print = with_waits(tools.mr.print)
  tools.set_pager(tools.page)
  tools.require("settings").read()
  run_init()
end

-- `millrace --step file.lua`: stops at the first line of the script. Returns false where there is nothing to step
-- through: no file, or one that is no Lua.
function session.step(path, ranks)
  local text = tools.read_file(path)
  local chunk, problem = true, nil
  if text then chunk, problem = tools.load(text:gsub("^#[^\n]*", ""), "@" .. path) end
  if not chunk then
    tools.complain(problem)
    return false
  end
  local done, message = tools.require("commands").load_file(path, true, ranks > 0 and ranks or nil)
  if not done then tools.complain(message) end
  return done ~= nil
end

-- Calls the functions registered for the end, the last one first.
function session.close()
  while #closers > 0 do end_closer(closers[#closers]) end
end

-- All entries and variables are gone; the next entry is number 1.
function session.reset()
  session.close()
  for name in pairs(kept) do kept[name], holders[name] = nil, nil end
  for n, entry in pairs(session.entries) do
    forget(entry)
    session.entries[n], by_name[entry.name] = nil, nil
  end
  rawset(_G, "_", nil)
  rawset(_G, "__", nil)
end

return session
