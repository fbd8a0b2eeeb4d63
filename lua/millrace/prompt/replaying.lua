-- The commands that take the session as a text: listing, editing, replaying, with a fix, saving and loading.
--
-- A session is its entries in order, and after each the commands that change the device. Replaying runs them again on a
-- fresh device, from the same seeds. Easiest to break: an entry that has failed had an effect, too, so it is replayed;
-- in a saved script, which would end there, it is a comment. One that was stopped may never end: it keeps its number,
-- and is not run.
local _, tools = ...

local mr = tools.mr

-- Actions that scripts at the prompt may not do in a sandbox.
local open = io and io.open
local execute, tmpname, remove = os and os.execute, os and os.tmpname, os and os.remove

-- ---------------------------------------------------------------- the session as a list

-- { { text = of an entry, n = its number } or { line = of a command } ... }, in order
local function script_of(commands)
  local session, script, next_noted = tools.require("session"), {}, 1
  local function add_commands(n)
    while commands.noted[next_noted] and commands.noted[next_noted].after <= n do
      script[#script + 1] = { line = commands.noted[next_noted].line }
      next_noted = next_noted + 1
    end
  end
  add_commands(0)
  for n, entry in ipairs(session.entries) do
    script[#script + 1] = { text = entry.text, n = n, file = entry.file, ranks = entry.ranks, failed = entry.failed,
      stopped = entry.stopped, message = entry.message, shows = entry.values ~= nil, resets = entry.resets }
    add_commands(n)
  end
  return script
end

local function show_entry(n, text, out)
  local first = true
  for line in (text .. "\n"):gmatch("(.-)\n") do
    local prompt = ("mr:%d| "):format(n)
    out[#out + 1] = (first and prompt or (" "):rep(#prompt)) .. line
    first = false
  end
end

local function list(commands)
  local out = {}
  for _, one in ipairs(script_of(commands)) do
    if one.line then out[#out + 1] = "      " .. one.line
    else
      show_entry(one.n, one.text, out)
      if one.failed then out[#out + 1] = "      -- failed: " .. (one.message or ""):match("^[^\n]*") end
    end
  end
  if #out == 0 then out[1] = "the session has no entries" end
  return out
end

local function mentions(script, what)
  for _, one in ipairs(script) do
    if (one.text or one.line):find(what, 1, true) then return true end
  end
  return false
end

-- ---------------------------------------------------------------- replaying

local function fresh_device(command)
  tools.require("session").begun_by = command
  local chooser = mr.machine and mr.machine.chooser()
  mr.reset()
  tools.require("session").first_span = tools.timeline("count")
  mr.manual_seed(0)
  mr.hazard.clear()
  if chooser then mr.machine.chooser(chooser) end -- the seed of a random one begins anew
end

local function say(lines) tools.write(table.concat(lines, "\n") .. "\n") end

local STEPS = { [":step"] = true, [":run"] = true, [":back"] = true, [":pass"] = true }

-- Steps are those of one program: a changed one has others.
local function without_steps(script)
  local kept = {}
  for _, one in ipairs(script) do
    if not (one.line and STEPS[one.line:match("^%S+")]) then kept[#kept + 1] = one end
  end
  return kept
end

-- How many entries of the list end with the last one that has called mr.reset: earlier entries are needed only for
-- their variables.
local function entries_before_reset(script)
  local count, last = 0, 0
  for _, one in ipairs(script) do
    count = count + (one.line and 0 or 1)
    if one.resets then last = count end
  end
  return last
end

-- Runs the list again for the command. Output of entries before `from` is not shown.
-- `begin`: a function that is called when they are shown from here on, or nil.
local function replay(commands, script, from, command, begin)
  local session = tools.require("session")
  session.reset()
  commands.noted = {}
  fresh_device(command)
  for _, one in ipairs(script) do
    local shown = #session.entries + 1 >= from
    if shown and begin then begin = begin() end
    if one.line then
      if shown then say{ one.line } end
      local done, message = commands.run(one.line)
      if not done then tools.complain(message) end
    else
      if shown then
        local out = {}
        show_entry(#session.entries + 1, one.text, out)
        say(out)
      end
      if one.stopped then
        session.skip(one)
        if shown then say{ "      -- it was stopped, so it is not run again" } end
      elseif session.run(one.text, { echo = shown, file = one.file, ranks = one.ranks }).stopped then
        return nil, "the replay was stopped"
      end
    end
  end
  return {}
end

local function replay_from(commands, words)
  local from = words[1] == nil and 1 or math.tointeger(tonumber(words[1]))
  if not from then return nil, ("`%s` is no number of an entry"):format(words[1]) end
  return replay(commands, script_of(commands), from, "replay")
end

-- ---------------------------------------------------------------- fixes

-- The text with lines put in front of, or after, the line, and indented as that one is.
local function insert(text, line, place, added)
  local lines, at = {}, 0
  for one in (text .. "\n"):gmatch("(.-)\n") do
    at = at + 1
    local fix = at == line and (added:gsub("[^\n]+", one:match "^%s*" .. "%0"))
    if fix and place ~= "after" then lines[#lines + 1] = fix end
    lines[#lines + 1] = one
    if fix and place == "after" then lines[#lines + 1] = fix end
  end
  return table.concat(lines, "\n")
end

-- Where an entry of the script has that number.
local function entry_at(script, n)
  for i, one in ipairs(script) do
    if one.n == n then return one, i end
  end
  return nil
end

-- For an entry of one line the fix becomes an entry of its own before or after it, as a user would type it.
local function apply(script, fix)
  local of = fix.file and tools.require("session").entry_of(fix.file)
  local n, entry, i = of and of.n, nil, nil
  if n then entry, i = entry_at(script, n) end
  if not entry then return nil, ("the fix belongs to %s, which is no entry"):format(fix.file or "no line") end
  if fix.place == "within" then
    return nil, ("the fix goes inside a statement: put it there with :edit %d: %s"):format(n, fix.text)
  end
  if entry.text:find("\n", 1, true) then
    entry.text = insert(entry.text, fix.line, fix.place, fix.text)
  else
    table.insert(script, fix.place == "after" and i + 1 or i, { text = fix.text })
  end
  if entry.file then tools.write(("the session has the fix; %s is as it was\n"):format(entry.file)) end
  return true
end

local function hazards()
  local count = 0
  for _, report in ipairs(mr.hazard.reports()) do count = count + (report.reason ~= "advice" and 1 or 0) end
  return count
end

-- The number of the entry of its fix; 0: it is none.
local function number_of(report)
  local file = report.fixes[1] and report.fixes[1].file
  local of = file and tools.require("session").entry_of(file)
  return of and of.n or 0
end

-- The first report since mr.reset(), or where there is none the first one.
local function first_report(reports, last)
  for i, report in ipairs(reports) do
    if number_of(report) > last then return i end
  end
  return 1
end

-- The first entries, which end with mr.reset(), run unseen, and the checker's findings in them do not count. A script
-- that sets the mode itself gets the mode that it sets.
local function replay_since_reset(commands, script, unseen)
  if unseen == 0 then return replay(commands, script, 1, "fix") end
  local is_quiet = mr.hazard.mode() == "warn" and not mentions(script, "hazard.mode")
  local function speak()
    if is_quiet then mr.hazard.mode("warn") end
    is_quiet = false
  end
  if is_quiet then mr.hazard.mode("collect") end
  local lines, message = replay(commands, script, unseen + 1, "fix", function()
    speak()
    mr.hazard.clear()
    say{ unseen == 1 and "mr:1, which called mr.reset(), ran again unseen" or
      ("mr:1 to mr:%d, up to mr.reset(), ran again unseen"):format(unseen) }
  end)
  speak()
  return lines, message
end

local function fix(commands, words)
  local reports = mr.hazard.reports()
  local at = words[1] == nil and first_report(reports, entries_before_reset(script_of(commands))) or
    math.tointeger(tonumber(words[1]))
  local report = at and reports[at]
  if not report then
    if #reports == 0 then return nil, "there is no hazard to fix" end
    return nil, ("there is no report `%s`: :hazards lists them"):format(words[1])
  end
  if #report.fixes == 0 then return nil, "this report has no line to add: " .. report.fix end
  local script = without_steps(script_of(commands))
  local is_old = number_of(report) <= entries_before_reset(script)
  for _, one in ipairs(report.fixes) do
    local done, message = apply(script, one)
    if not done then return nil, message end
  end
  local lines, message = replay_since_reset(commands, script, is_old and 0 or entries_before_reset(script))
  local left = lines and hazards() or 0
  if left > 0 then
    lines[#lines + 1] = ("%d hazard%s left: :hazards lists %s, :fix repairs the first one"):format(left,
      left == 1 and " is" or "s are", left == 1 and "it" or "them")
  end
  return lines, message
end

-- ---------------------------------------------------------------- editing

local function editor_of()
  for _, name in ipairs{ "VISUAL", "EDITOR" } do
    local editor = execute and tools.getenv(name)
    if editor and editor ~= "" then return editor end
  end
  return nil
end

-- The text after an editor had it; nil and why not.
local function edited(editor, text)
  local path = tmpname()
  local file, message = open(path, "w")
  if not file then return nil, message end
  file:write(text, "\n")
  file:close()
  local done = execute(("%s '%s'"):format(editor, (path:gsub("'", "'\\''"))))
  file = open(path)
  local result = file and file:read("a")
  if file then file:close() end
  remove(path)
  if not done then return nil, ("%s has failed"):format(editor) end
  return (result or ""):gsub("\n+$", "")
end

-- The edited text takes the place of the entry, and the session is replayed from there. Without an editor the text
-- becomes the beginning of the next entry.
local function edit(commands, words)
  local session = tools.require("session")
  local n = words[1] == nil and #session.entries or math.tointeger(tonumber(words[1]))
  local script = without_steps(script_of(commands))
  local entry = n and entry_at(script, n)
  if not entry then return nil, ("there is no entry `%s`"):format(words[1] or "") end
  local editor = editor_of()
  if not editor and tools.is_terminal() then
    tools.prefill(entry.text)
    return {}
  end
  if not editor then return nil, "set EDITOR in the environment, as in EDITOR=vi" end
  local text, message = edited(editor, entry.text)
  if not text then return nil, message end
  if text == entry.text then return { "nothing was changed" } end
  entry.text, entry.stopped = text, nil
  return replay(commands, script, n, "edit")
end

-- ---------------------------------------------------------------- saving

local function comment(text)
  local lines = {}
  for line in (text .. "\n"):gmatch("(.-)\n") do lines[#lines + 1] = "-- " .. line end
  return table.concat(lines, "\n")
end

-- Uses of `_[7]`, which a script has no entries for.
local function with_values(text, used)
  local outline = tools.outline(text)
  for i = #(outline and outline.values or {}), 1, -1 do
    local use = outline.values[i]
    used[use.entry] = true
    text = text:sub(1, use.from) .. ("entry_%d"):format(use.entry) .. text:sub(use.to + 1)
  end
  return text
end

-- A script has one set of global variables.
local function on_ranks(entry, text)
  return ("-- The ranks shared no global variables, and do so here.\nmr.dist.spawn(%d, function(...)\n%s\nend)"):format(
    entry.ranks, text)
end

-- An entry as statements that do the same, and show the same values.
local function as_script(entry, text, is_used, script)
  if entry.ranks then return on_ranks(entry, text) end
  local expression = text:gsub("^%s*=", " ")
  local keeps = is_used and ("\nentry_%d = _"):format(entry.n) or ""
  if mentions(script, "_" .. entry.n) then keeps = keeps .. ("\n_%d = _"):format(entry.n) end
  if mentions(script, "__") then keeps = keeps .. "\n__ = _before _before = _" end
  if tools.load("return " .. expression, "entry") then
    if not entry.shows and keeps == "" and tools.load(expression, "entry") then return expression end
    local outline = tools.outline("return " .. expression)
    local is_quiet = outline and outline.quiet_at
    local body = is_quiet and expression:sub(1, outline.quiet_at - #"return ") or expression
    return ("_ = %s%s%s"):format(body, is_quiet and "" or "\nprint(tostring(_))", keeps)
  end
  local outline = tools.outline(text)
  local shows = entry.shows and "\nprint(tostring(_))" or ""
  if outline and outline.return_at then return ("_ = (function()\n%s\nend)()%s%s"):format(text, shows, keeps) end
  return text
end

-- A command as a call; commands of the prompt are not there in a script.
local function command_as_script(line)
  local name, rest = line:match("^:(%w+)%s*(.-)%s*$")
  local word, number = rest:match("^([%a_][%w_]*)"), rest:match("(%d+)%s*$")
  if name == "step" or name == "run" then
    local count = name == "run" and "math.maxinteger" or number or "1"
    return ("mr.machine.step(%s, %s)"):format(word == "default" and "mr.default_stream()" or word or "nil", count)
  elseif name == "back" then return ("mr.machine.back(%s)"):format(number or "1")
  elseif name == "wait" then return "for i = 0, mr.device_count() - 1 do mr.synchronize(i) end"
  elseif name == "pass" then return ("mr.machine.pass(%s)"):format(rest)
  elseif name == "seed" then return ("mr.manual_seed(%s)"):format(rest)
  elseif name == "device" and rest ~= "" then return ("mr.set_device(%s)"):format(rest)
  elseif (name == "chooser" or name == "model") and rest ~= "" then return ("mr.machine.%s(%q)"):format(name, rest) end
  return nil
end

local function used_entries(script)
  local used = {}
  for _, one in ipairs(script) do
    if one.text then one.script = with_values(one.text, used) end
  end
  return used
end

-- The settings that the prompt had, and a script would not have.
local function preamble(script, out)
  local devices = mr.device_count()
  local device = mr.machine and ("--device virtual%s "):format(devices > 1 and ":" .. devices or "") or ""
  out[#out + 1] = ("-- A session of millrace. Run it with: millrace %sFILE"):format(device)
  out[#out + 1] = 'local mr = require "millrace"'
  if not mentions(script, "hazard.mode") and mr.hazard.mode() ~= "off" then
    out[#out + 1] = ("mr.hazard.mode(%q)"):format(mr.hazard.mode())
  end
  local chooser = mr.machine and mr.machine.chooser()
  if chooser and not mentions(script, "chooser") and chooser ~= "timed" then
    out[#out + 1] = ("mr.machine.chooser(%q)"):format(chooser)
  end
end

local function text_of(commands)
  local script, out = script_of(commands), {}
  preamble(script, out)
  local used = used_entries(script)
  for _, one in ipairs(script) do
    if one.line then
      out[#out + 1] = command_as_script(one.line) or comment(one.line)
    elseif one.failed then
      out[#out + 1] = comment(one.text)
      out[#out + 1] = comment("failed: " .. (one.message or ""))
    else
      out[#out + 1] = as_script(one, one.script, used[one.n], script)
    end
  end
  return table.concat(out, "\n") .. "\n"
end

local function save(commands, rest)
  if rest == "" then return nil, ":save needs the name of a file" end
  if not open then return nil, "there are no files in a sandbox" end
  local file, message = open(rest, "w")
  if not file then return nil, message end
  local written, problem = file:write(text_of(commands))
  local closed, last_problem = file:close()
  if not written or not closed then return nil, problem or last_problem end
  return { "wrote " .. rest }
end

-- "; did you mean `race.lua`?", of the files that stand beside the one that is not there; or "".
local function file_like(path)
  local folder, name = path:match "^(.*/)([^/]*)$"
  local names = tools.list_files(folder or ".")
  table.sort(names)
  local near = tools.nearest(name or path, names)
  for _, known in ipairs(names) do
    if known == (name or path) .. ".lua" then near = known end
  end
  return near and ("; did you mean `%s%s`?"):format(folder or "", near) or ""
end

local function load_file(rest, is_step, ranks)
  if rest == "" then return nil, ":load needs the name of a file" end
  local text, why = tools.read_file(rest)
  if not text then
    return nil, ("%s cannot be read: %s%s"):format(rest, why, why == "no such file" and file_like(rest) or "")
  end
  local script = tools.require("script")
  text = text:gsub("^#[^\n]*", ""):gsub("\n+$", "")
  if script.is_wanted() then
    local _, message = script.run(text, rest, is_step, ranks)
    if message then return nil, message end
  else
    tools.require("session").run(text, { echo = true, file = rest })
  end
  return {}
end

local function reset(commands)
  tools.require("session").reset()
  commands.noted = {}
  fresh_device("reset")
  return { "a fresh device; the session begins anew" }
end

local function files(_, last) return tools.require("complete").files_of(last) end

return function(commands)
  local add = commands.add
  commands.load_file = load_file
  add{ name = "session", text = "Lists the entries, and the commands that changed the device.",
    run = function() return list(commands) end }
  add{ name = "edit", usage = "[n]", text = "Opens an entry in $EDITOR, and replays the session with the new text.",
    run = function(words) return edit(commands, words) end }
  add{ name = "replay", usage = "[from]", text = "Runs the session again on a fresh device; shows it from an entry on.",
    run = function(words) return replay_from(commands, words) end }
  add{ name = "fix", usage = "[n]", text = "Replays the session with the lines that report n says to add.",
    run = function(words) return fix(commands, words) end }
  add{ name = "save", usage = "file", complete = files,
    text = "Writes the session as a script that does the same by itself.",
    run = function(_, rest) return save(commands, rest) end }
  add{ name = "load", usage = "file", complete = files,
    text = "Runs a file as an entry; its locals live on. Under the chooser manual it stops before waits.",
    run = function(_, rest) return load_file(rest) end }
  add{ name = "reset", text = "A fresh device (mr.reset) and an empty session.",
    run = function() return reset(commands) end }
end
