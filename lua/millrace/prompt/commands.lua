-- The commands of the prompt: lines that begin with a colon.
--
-- A command has one name in full; any beginning of it that no other command has is enough, and some have a short name
-- that comes first. Each is a function, too: mr.prompt.step("p", 3) is what `:step p 3` does.
--
-- Commands that change the device are noted, with the entry that they came after: a session is replayed and saved with
-- them. Easiest to break: a command that changes something and is not noted.
local _, tools = ...

local commands = { list = {}, by_name = {}, noted = {} }

-- The files with the larger ones, each a function that adds its commands.
local PARTS = { "stepping", "looking", "replaying", "lessons" }

-- ---------------------------------------------------------------- the registry

-- Adds a command. Its fields:
--   name               The name in full.
--   short              Another name.
--   also               A list of more names.
--   usage              The text after the name.
--   text               One sentence.
--   run(words, rest)   Returns lines to write, or nil and a message.
--   is_noted           It changes the device, or a function of the words says so.
--   is_paged           Its lines may fill several screens.
--   complete(words)    Returns a list of texts for the last word.
local function add(command)
  commands.list[#commands.list + 1] = command
  commands.by_name[command.name] = command
  if command.short then commands.by_name[command.short] = command end
  for _, name in ipairs(command.also or {}) do commands.by_name[name] = command end
end
commands.add = add

-- The names that a person may begin or mistype.
local function long_names()
  local names = {}
  for _, command in ipairs(commands.list) do
    names[#names + 1] = command.name
    for _, name in ipairs(command.also or {}) do names[#names + 1] = name end
  end
  return names
end

-- The command of a word; nil and why not.
function commands.find(word)
  if commands.by_name[word] then return commands.by_name[word] end
  local found, seen = {}, {}
  for _, name in ipairs(long_names()) do
    local command = commands.by_name[name]
    if name:sub(1, #word) == word and not seen[command] then
      seen[command] = true
      found[#found + 1] = ":" .. command.name
    end
  end
  if #found == 1 then return commands.by_name[found[1]:sub(2)] end
  if #found > 1 then return nil, (":%s could be %s"):format(word, table.concat(found, ", ")) end
  local meant = tools.nearest(word, long_names())
  local question = meant and (": did you mean :%s?"):format(commands.by_name[meant].name) or ";"
  return nil, ("there is no command :%s%s :help lists all commands"):format(word, question)
end

-- ---------------------------------------------------------------- running

local function split(text)
  local words = {}
  for word in text:gmatch("%S+") do words[#words + 1] = word end
  return words
end

function commands.note(line)
  local session = tools.require("session")
  commands.noted[#commands.noted + 1] = { after = #session.entries, line = line }
end

-- Text that is too wide goes on in the next line; a word that is too long for a line is cut.
local function write_lines(lines, is_paged)
  local draw, out = tools.require("draw"), {}
  local style = draw.style()
  for line in tools.wrap_lines(table.concat(lines, "\n"), style.width):gmatch("[^\n]*") do
    out[#out + 1] = line:find("\27", 1, true) and line or draw.cut(style, line, style.width)
  end
  local text = table.concat(out, "\n") .. "\n"
  if is_paged then tools.page(text) else tools.write(text) end
end

local function carry_out(command, words, rest)
  local called, lines, message = tools.call(command.run, words, rest)
  if not called then return false, lines:match("^(.-)\nstack traceback:") or lines end
  if lines == nil and message then return false, message end
  local is_noted = command.is_noted
  if type(is_noted) == "function" then is_noted = is_noted(words) end
  if is_noted then commands.note((":%s %s"):format(command.name, rest):match("^(.-)%s*$")) end
  if lines and #lines > 0 then write_lines(lines, command.is_paged) end
  return true
end

-- A line that begins with a colon. Returns true, or false and a message.
function commands.run(line)
  local word, rest = line:match("^:%s*([%w_]*)%s*(.-)%s*$")
  if not word or word == "" then word = "help" end
  local command, message = commands.find(word)
  if not command then return false, message end
  return carry_out(command, split(rest), rest)
end

-- ---------------------------------------------------------------- objects by name

-- The value of a variable that an entry could name.
function commands.value_of(name)
  local session = tools.require("session")
  if session.has_local(name) then return session.get_local(name) end
  return rawget(_G, name)
end

-- name = value of all variables of the session, those of Lua and of millrace left out.
function commands.variables()
  local names = {}
  for name, value in next, _G do
    local is_ours = type(name) == "string" and (name:find("^_+$") or name:find("^_%d+$"))
    if type(name) == "string" and not is_ours then names[name] = value end
  end
  for name, value in next, tools.require("session").locals() do names[name] = value end
  return names
end

-- "tensor", "stream", "event", ...; nil: it is not an object of millrace.
function commands.kind_of(value)
  if type(value) ~= "userdata" then return nil end
  local meta = tools.getmetatable(value)
  local name = meta and rawget(meta, "__name")
  return name and name:match("^millrace%.(%a+)$")
end

-- The names of the variables of one kind, sorted.
function commands.names_of(kind)
  local names = {}
  for name, value in next, commands.variables() do
    if commands.kind_of(value) == kind then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

-- The stream that a word names: a variable, the name or the number of a stream with pending work, or the name of one
-- that a variable holds. nil and why not.
function commands.stream_of(word)
  local value = commands.value_of(word)
  if commands.kind_of(value) == "stream" then return value end
  if word == "default" then return tools.mr.default_stream() end
  for _, queue in ipairs(tools.mr.machine and tools.mr.machine.queues() or {}) do
    if queue.stream.name == word or "#" .. queue.stream.id == word then return queue.stream end
  end
  local names = commands.names_of("stream")
  for _, name in ipairs(names) do
    local stream = commands.value_of(name)
    local is_there, own_name = pcall(function() return stream.name end)
    if is_there and own_name == word then return stream end
  end
  local known = #names > 0 and ": the streams are " .. table.concat(names, ", ") or ""
  return nil, ("`%s` is no stream%s"):format(word, known)
end

-- mr.machine, which only the virtual GPU has; nil and a message elsewhere.
function commands.machine(name)
  if tools.mr.machine then return tools.mr.machine end
  return nil, (":%s needs the virtual GPU: start millrace with --device virtual"):format(name)
end

-- ---------------------------------------------------------------- completion

local function of_command(command, words, text)
  local list, last = {}, text:match("(%S*)$")
  local offered = command.complete and command.complete(words, last) or {}
  for _, word in ipairs(offered) do
    if word:sub(1, #last) == last then list[#list + 1] = word end
  end
  return list, #text - #last
end

-- The words that can stand at the end of a line that begins with a colon, and how many bytes are in front of them.
function commands.complete(text)
  local word, rest = text:match("^%s*:%s*([%w_]*)(.*)$")
  if not word then return {}, #text end
  if rest == "" then
    local list = {}
    for _, command in ipairs(commands.list) do
      if command.name:sub(1, #word) == word then list[#list + 1] = command.name end
    end
    table.sort(list)
    return list, #text - #word
  end
  local command = commands.find(word)
  if not command then return {}, #text end
  return of_command(command, split(rest), text)
end

-- ---------------------------------------------------------------- help

local function usage(command)
  local names = { command.short and ":" .. command.short }
  for _, name in ipairs(command.also or {}) do names[#names + 1] = ":" .. name end
  local others = #names > 0 and (" (%s)"):format(table.concat(names, ", ")) or ""
  return (":%s%s%s"):format(command.name, command.usage and " " .. command.usage or "", others)
end

-- All commands, each with its sentence: beside it, or on a narrow terminal below it.
local function overview()
  local draw = tools.require("draw")
  local style, lines, widest = draw.style(), {}, 0
  for _, command in ipairs(commands.list) do widest = math.max(widest, #usage(command)) end
  if draw.is_narrow() then widest = 2 end
  for _, command in ipairs(commands.list) do
    if draw.is_narrow() then lines[#lines + 1] = usage(command) end
    for i, line in ipairs(draw.wrap(command.text, style.width - widest - 2)) do
      local name = i == 1 and not draw.is_narrow() and usage(command) or ""
      lines[#lines + 1] = draw.fit(style, name, widest) .. "  " .. line
    end
  end
  lines[#lines + 1] = "A beginning of a name is enough, and TAB completes it. help() explains the rest."
  return lines
end

local function add_quit()
  add{ name = "quit", short = "q", also = { "exit" },
    text = "Leaves, as Ctrl-D, quit and exit do.",
    run = function()
      tools.require("session").leave()
      return {}
    end }
end

local function add_choices()
  add{ name = "set", usage = "[name value]",
    text = "Shows the settings of the prompt, or changes one for all sessions.",
    complete = function(words, last) return tools.require("settings").complete(words, last) end,
    run = function(words) return tools.require("settings").run(words) end }
  add{ name = "watch", usage = "[expression|off [n]]", text = "Shows an expression after each entry.",
    run = function(words, rest) return tools.require("watching").run(words, rest) end }
end

local function add_help()
  add{ name = "help", usage = "[command|name]", is_paged = true,
    text = "Explains a command, or what help(name) explains.",
    complete = function()
      local names = {}
      for i, command in ipairs(commands.list) do names[i] = command.name end
      return names
    end,
    run = function(_, rest)
      if rest == "" then return overview() end
      local command = commands.find(rest:match("^:?(.*)$"))
      if command then return { usage(command), "  " .. command.text } end
      local value = commands.value_of(rest)
      tools.mr.help(type(value) == "function" and value or rest)
      return {}
    end }
end

-- ---------------------------------------------------------------- mr.prompt

-- Makes the same commands callable for scripts at the prompt, as session.open has announced.
local function publish()
  for _, command in ipairs(commands.list) do
    rawset(tools.mr.prompt, command.name, function(...)
      local words = table.pack(...)
      for i = 1, words.n do words[i] = tostring(words[i]) end
      local done, message = carry_out(command, words, table.concat(words, " "))
      if not done then error(message, 2) end
    end)
  end
end

for _, part in ipairs(PARTS) do tools.require(part)(commands) end
add_choices()
tools.require("script").add(commands)
add_help()
add_quit()
publish()

return commands
