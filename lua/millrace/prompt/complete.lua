-- Completion: possible endings of a text that is being typed.
--
-- The text is read backwards from the cursor: a name, the chain of fields in front of it (`mr.memory.`, `x.device:`),
-- the brackets that are open. Values are looked up as the script would do it, except that nothing of the script is
-- called: only raw fields of tables, and properties of millrace's own objects.
local _, tools = ...

local complete = {}

local KEYWORDS = { "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in",
  "local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while" }
local OBJECTS = { stream = true, event = true, tensor = true, device = true, kernel = true, module = true }
local MOST_LISTED_WITH_USAGE = 12

local session = tools.require "session"

-- The last completions: { { text =, note = }, ... } in order.
local found = {}

-- ---------------------------------------------------------------- values

local function kind_of(value)
  local meta = type(value) == "userdata" and tools.getmetatable(value)
  local name = meta and rawget(meta, "__name")
  return type(name) == "string" and name:match("^millrace%.(.*)$") or nil
end

local function property(object, getters, name)
  local done, value = pcall(getters[name], object)
  return done and value or nil
end

-- For a module or an optimiser, which are tables: its methods, and its fields if they are elsewhere than in the table.
local function parts_of(value)
  local meta = tools.getmetatable(value)
  if not meta or type(rawget(meta, "help")) ~= "string" then return nil end
  local key = rawget(meta, "fields")
  local inside = key ~= nil and rawget(value, key)
  local methods, fields = rawget(meta, "methods"), type(inside) == "table" and inside.values
  return type(methods) == "table" and methods or nil, type(fields) == "table" and fields or nil
end

-- The field of a value, without a call of the script's.
local function field(value, name)
  if type(value) == "table" then
    if tools.is_class(value) then return value.methods and value.methods[name] end
    local raw = rawget(value, name)
    if raw ~= nil then return raw end
    local _, fields = parts_of(value)
    if not fields then return nil end
    local inside = rawget(fields, name)
    if inside == nil and math.type(name) == "integer" then inside = rawget(fields, tostring(name)) end -- net[1]
    return inside
  end
  if type(value) == "string" then return string[name] end
  local meta = kind_of(value) and tools.getmetatable(value)
  if not meta then return nil end
  if meta.methods and meta.methods[name] then return meta.methods[name] end
  return meta.getters and meta.getters[name] and property(value, meta.getters, name)
end

local function variable(name)
  if session.has_local(name) then return session.get_local(name) end
  return rawget(_G, name)
end

-- A stand-in for the object that a call would return: the class in its usage line, "-> s: stream".
local function returned_by(fn)
  local usage = tools.usage(fn)
  local result = usage and usage:match("%->%s*([^,]+)")
  local kind = result and (result:match("^[%w_]+:%s*([%a_]+)") or result:match("^[%a_]+"))
  return kind and tools.class_of(kind)
end

-- The value of "mr.memory", `x.device`, `t[2]`, "f"; nil: it is not known. After a call, `mr.stream()`, it is the
-- class of what the call returns.
local function value_of(chain)
  local name, rest = chain:match("^([%a_][%w_]*)(.*)$")
  if not name then return nil end
  local value = variable(name)
  while value ~= nil and rest ~= "" do
    local call = rest:match("^%b()")
    local key, after = rest:match("^[%.:]([%a_][%w_]*)(.*)$")
    if call then
      key, after = "__call", rest:sub(#call + 1)
    elseif not key then
      local index
      index, after = rest:match("^%[(%d+)%](.*)$")
      key = tonumber(index)
      if not key then key, after = rest:match("^%[[\"']([^\"'%]]*)[\"']%](.*)$") end
    end
    if not key then return nil end
    if call then value = returned_by(value) else value = field(value, key) end
    rest = after
  end
  return value
end

complete.value_of = value_of

-- ---------------------------------------------------------------- names

local function begins(text, prefix)
  return text:byte(1) == prefix:byte(1) and text:sub(1, #prefix) == prefix
end

-- Collects names: text = note, or true.
local function collect(into, name, prefix, value)
  if type(name) ~= "string" or (prefix ~= "" and not begins(name, prefix)) or into[name] then return end
  if name:byte(1) == 95 and prefix == "" then return end -- names that begin with _ only if asked for
  if not name:find("^[%a_][%w_]*$") then return end
  into[name] = value == nil and true or value
end

local function add_fields(into, value, prefix, only_methods)
  if type(value) == "table" and tools.is_class(value) then
    for name, method in next, value.methods or {} do collect(into, name, prefix, method) end
    for name in next, not only_methods and value.getters or {} do collect(into, name, prefix) end
  elseif type(value) == "table" then
    for name, inner in next, tools.with_prefix(value, prefix) do
      if not only_methods or type(inner) == "function" then collect(into, name, prefix, inner) end
    end
    local meta = tools.getmetatable(value)
    local index = meta and rawget(meta, "__index")
    if type(index) == "table" and index ~= value then add_fields(into, index, prefix, only_methods) end
    local methods, fields = parts_of(value)
    if fields and not only_methods then add_fields(into, fields, prefix) end
    if methods and methods ~= index then add_fields(into, methods, prefix, true) end
  elseif type(value) == "string" then
    add_fields(into, string, prefix, true)
  elseif kind_of(value) then
    local meta = tools.getmetatable(value)
    for name, method in next, meta.methods or {} do collect(into, name, prefix, method) end
    for name in next, not only_methods and meta.getters or {} do collect(into, name, prefix) end
  end
end

local function add_variables(into, prefix, is_wanted)
  for name, value in pairs(session.locals()) do
    if not is_wanted or is_wanted(value) then collect(into, name, prefix, value) end
  end
  for name, value in next, tools.with_prefix(_G, prefix) do
    if not is_wanted or is_wanted(value) then collect(into, name, prefix, value) end
  end
end

-- ---------------------------------------------------------------- what is open at the cursor

-- Returns the open brackets in front of the cursor, the innermost last: { { open = "(" or "{" or "[", at = }, ... }.
-- Returns also where an open string begins, or nil, and whether a comment or a long string is open.
local function open_brackets(text)
  local stack, at, size = {}, 1, #text
  while at <= size do
    local c = text:sub(at, at)
    local level = text:match("^%-?%-?%[(=*)%[", at)
    if level and (c == "[" or text:sub(at, at + 1) == "--") then
      local _, stop = text:find("]" .. level .. "]", at, true)
      if not stop then return stack, nil, true end
      at = stop
    elseif text:find("^%-%-", at) then
      local stop = text:find("\n", at, true)
      if not stop then return stack, nil, true end
      at = stop
    elseif c == '"' or c == "'" then
      local stop = at + 1
      while stop <= size and text:sub(stop, stop) ~= c do
        stop = stop + (text:sub(stop, stop) == "\\" and 2 or 1)
      end
      if stop > size then return stack, at end
      at = stop
    elseif c == "(" or c == "{" or c == "[" then
      stack[#stack + 1] = { open = c, at = at }
    elseif c == ")" or c == "}" or c == "]" then
      stack[#stack] = nil
    end
    at = at + 1
  end
  return stack
end

-- The chain that ends in front of byte `at`: names and fields, and "()" for each call: `mr.ones(2):view` is
-- "mr.ones():view".
local function chain_before(text, at)
  local before, chain = text:sub(1, at - 1):gsub("%s+$", ""), ""
  at = #before
  while at > 0 do
    local close = before:sub(at, at)
    local open = close == ")" and "(" or close == "}" and "{"
    local names = not open and before:sub(1, at):match("[%w_%.:%[%]]+$")
    if names then
      chain, at = names .. chain, at - #names
    elseif open then
      local depth = 0
      repeat
        local c = before:sub(at, at)
        depth = depth + (c == close and 1 or c == open and -1 or 0)
        at = at - 1
      until depth == 0 or at == 0
      if depth > 0 then return nil end
      if chain:sub(1, 2) ~= "()" or open == "(" then chain = "()" .. chain end
    else
      break
    end
  end
  return chain:sub(1, 2) ~= "()" and chain:match("[%a_].*$") or nil
end

-- The usage line of a function. A call of mr.graph is one of mr.graph.capture.
local function usage_of(value)
  if value == tools.mr.graph then value = value.capture end
  return tools.usage(value)
end

-- The usage line of the function that is being called around the cursor, whether the cursor is in a table of options,
-- and which argument it is in.
local function call_at(text, stack)
  for i = #stack, 1, -1 do
    local bracket = stack[i]
    local is_table = bracket.open == "{"
    local outer = is_table and stack[i - 1]
    local chain = chain_before(text, bracket.at)
    if bracket.open == "[" then return nil end
    if not chain and outer and outer.open == "(" then
      chain = chain_before(text, outer.at)
      if chain and i == #stack then return usage_of(value_of(chain)), true end
    end
    if chain then
      if i < #stack then return nil end
      local count = 1
      for _ in text:sub(bracket.at + 1):gsub("%b()", ""):gsub("%b{}", ""):gmatch(",") do count = count + 1 end
      return usage_of(value_of(chain)), is_table, count
    end
  end
  return nil
end

-- The name of the function in a usage line: "mr.graph.begin", or "to" for a method.
local function name_in(usage) return usage:match("^%a[%w_]*:([%w_]+)") or usage:match("^[%w_%.]+") end

-- "name: type, ..." or "name=default, ..." of the braces of a usage line: name = its description
local function options_of(usage)
  local options = {}
  for group in usage:gsub("%s*%->.*$", ""):gmatch("%b{}") do
    local inside = group:sub(2, -2):gsub("%b{}", function(default) return (default:gsub(",", "\0")) end)
    for part in inside:gmatch("[^,]+") do
      local name, mark, kind = part:match("^%s*([%a_][%w_]*)([:=])%s*(.-)%s*$")
      if mark == "=" then kind = name == "out" and "tensor" or kind ~= "" and "=" .. kind or true end
      if name then options[name] = kind == true or kind:gsub("%z", ",") end
    end
  end
  return options
end

-- The name and the type of argument number n in a usage line.
local function argument_of(usage, n)
  local list, at = usage:match("%b()"), 0
  if not list then return nil end
  for part in list:sub(2, -2):gsub("%b{}", ""):gsub("[%[%]]", ""):gmatch("[^,]+") do
    at = at + 1
    if at == n then return part:match("^%s*([%a_][%w_]*)"), part:match(":%s*(.-)%s*$") or "" end
  end
  return nil
end

local function wants(kind)
  local kinds, any = {}, false
  for word in (kind or ""):gmatch("[%a_]+") do
    if OBJECTS[word] then kinds[word], any = true, true end
  end
  return any and function(value) return kinds[kind_of(value)] end or nil
end

-- ---------------------------------------------------------------- sorting out

local function note_of(value)
  if type(value) == "function" then return tools.usage(value) end
  local kind = kind_of(value)
  return kind and tostring(value):gsub("\n.*", "") or nil
end

local function set_found(names, from)
  found = {}
  for name, value in pairs(names) do found[#found + 1] = { text = name, value = value } end
  table.sort(found, function(a, b) return a.text < b.text end)
  local texts = {}
  for i, item in ipairs(found) do texts[i] = item.text end
  return texts, from
end

-- The names of files that begin so, with their folder.
function complete.files_of(text)
  local folder, prefix = text:match("^(.*/)([^/]*)$")
  folder, prefix = folder or "", prefix or text
  local list = {}
  for _, name in ipairs(tools.list_files(folder ~= "" and folder or ".")) do
    local is_hidden = name:byte(1) == 46
    if prefix == "" and not is_hidden or prefix ~= "" and begins(name, prefix) then list[#list + 1] = folder .. name end
  end
  table.sort(list)
  return list
end

local function files(text, from)
  local names = {}
  for _, name in ipairs(complete.files_of(text)) do names[name] = true end
  return set_found(names, from)
end

-- Names of help inside help("...").
local function topics(prefix, from)
  local names = {}
  for _, entry in ipairs((tools.mr.docs())) do names[entry.name] = true end
  for _, name in ipairs(tools.topics()) do names[name] = true end
  for name in pairs(names) do
    if prefix ~= "" and not begins(name, prefix) then names[name] = nil end
  end
  return set_found(names, from)
end

-- Finds the texts of the list that begin with the prefix.
local function values(list, prefix, from)
  local names = {}
  for _, name in ipairs(list) do
    if prefix == "" or begins(name, prefix) then names[name] = true end
  end
  return set_found(names, from)
end

-- The option, or else the argument, that the cursor is in, and its type: "dtype", "string"; nil: it is not known.
local function parameter_at(text, usage, in_table, argument)
  local option = text:match("([%a_][%w_]*)%s*=%s*$")
  if option then return option, usage and options_of(usage)[option] end
  if not usage or in_table then return nil end
  return argument_of(usage, argument)
end

-- A text that a function of millrace takes is the name of a file only where its usage line says "path".
local function in_string(text, stack, at)
  local innermost, typed = stack[#stack], text:sub(at + 1)
  local called = innermost and innermost.open == "(" and chain_before(text, innermost.at) or chain_before(text, at)
  if called == "help" or called == "mr.help" then return topics(typed, at) end
  local before = text:sub(1, at - 1)
  local usage, in_table, argument = call_at(before, stack)
  local parameter = parameter_at(before, usage, in_table, argument)
  local known = tools.require("values").of(usage and name_in(usage), parameter)
  if known then return values(known, typed, at) end
  if usage and parameter and parameter ~= "path" then return {}, at end
  return files(typed, at)
end

-- ---------------------------------------------------------------- finding

local function commands(text)
  local known = tools.require "commands"
  if not known or not known.complete then return {}, 0 end
  local texts, from = known.complete(text)
  found = {}
  for i, name in ipairs(texts or {}) do found[i] = { text = name, value = true } end
  return texts or {}, from or 0
end

-- The options in a table that is an argument.
local function options_in_call(usage, prefix)
  local names, known = {}, tools.require("values").options(name_in(usage)) or options_of(usage)
  for name, kind in pairs(known) do
    if prefix == "" or begins(name, prefix) then names[name .. " = "] = kind end
  end
  return next(names) and names or nil
end

-- The names that can stand for `prefix` where an argument or an option is expected.
local function names_in_call(text, stack, prefix, from)
  local before = text:sub(1, from)
  local usage, in_table, argument = call_at(before, stack)
  if not usage then return nil end
  local names = {}
  local parameter, kind = parameter_at(before, usage, in_table, argument)
  if in_table and not parameter then return options_in_call(usage, prefix) end
  local wanted = wants(type(kind) == "string" and kind or nil)
  if wanted then add_variables(names, prefix, wanted) end
  for _, text_of_it in ipairs(prefix == "" and tools.require("values").of(name_in(usage), parameter) or {}) do
    names[('"%s"'):format(text_of_it)] = true
  end
  return next(names) and names or nil
end

-- The same after a call: "mr.stream{name = 's'}:", "x:sum():".
local function behind_call(text)
  local before, mark, prefix = text:match("^(.*[%)%}])([%.:])([%w_]*)$")
  if not before then return nil end
  return chain_before(before, #before + 1), mark, prefix
end

-- Returns the texts that can replace the end of the text, and the byte from which on (0: all of it).
function complete.find(text)
  local mark = text:match("^%s*([:?]+)")
  if mark and mark:byte() == 58 then return commands(text) end
  if mark then text = (" "):rep(#text:match("^%s*%?+")) .. text:gsub("^%s*%?+", "") end
  local stack, string_at, is_comment = open_brackets(text)
  if is_comment then return {}, 0 end
  if string_at then return in_string(text, stack, string_at) end
  local chain, mark_of_field, prefix = text:match("([%a_][%w_%.:%[%]\"']*)([%.:])([%w_]*)$")
  if not chain then chain, mark_of_field, prefix = behind_call(text) end
  local names = {}
  if chain and not text:find("%.%.[%w_]*$") then
    add_fields(names, value_of(chain), prefix, mark_of_field == ":")
    return set_found(names, #text - #prefix)
  end
  prefix = text:match("[\"']%s*:([%w_]*)$")
  if prefix then
    add_fields(names, "", prefix, true)
    return set_found(names, #text - #prefix)
  end
  prefix = text:match("([%a_][%w_]*)$") or ""
  local from = #text - #prefix
  local special = names_in_call(text, stack, prefix, from)
  if special then return set_found(special, from) end
  add_variables(names, prefix)
  for _, word in ipairs(prefix ~= "" and KEYWORDS or {}) do
    if begins(word, prefix) then names[word] = true end
  end
  return set_found(names, from)
end

-- The part of a usage line about a table of options: "name: string, ms: number}".
local function options_text(usage)
  local group = usage:gsub("%s*%->.*$", ""):match("%b{}")
  return group and group:sub(2)
end

-- "a: tensor [, b: tensor])" after `mr.zeros(`; nil: no function of millrace is called there.
function complete.hint(text)
  local stack, string_at, is_comment = open_brackets(text)
  local bracket = stack[#stack]
  if is_comment or string_at or not bracket then return nil end
  local chain = chain_before(text, bracket.at)
  if bracket.open == "{" and not chain and #stack > 1 then
    bracket = stack[#stack - 1]
    chain = chain_before(text, bracket.at)
  end
  local usage = chain and bracket.open ~= "[" and usage_of(value_of(chain))
  local arguments = usage and (bracket.open == "{" and options_text(usage) or usage:match("%((.*)$"))
  if not arguments then return nil end
  return bracket.at == #text and arguments or "  " .. usage
end

-- The last completions as a text: in columns, or each with its note if there are few.
function complete.listing()
  local out, width = {}, tools.width()
  if #found > MOST_LISTED_WITH_USAGE then
    local names = {}
    for i, item in ipairs(found) do names[i] = item.text end
    tools.require("show").columns(names, "", width, out)
    return table.concat(out, "\n") .. "\n"
  end
  local longest = 0
  for _, item in ipairs(found) do longest = math.max(longest, #item.text) end
  for _, item in ipairs(found) do
    local note = type(item.value) == "string" and item.value or note_of(item.value)
    local line = note and item.text .. (" "):rep(longest + 2 - #item.text) .. note or item.text
    if #line > width then line = line:sub(1, width - 3) .. "..." end
    out[#out + 1] = line
  end
  return table.concat(out, "\n") .. "\n"
end

return complete
