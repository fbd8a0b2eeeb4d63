-- The text of an entry becomes a function that has the locals of earlier entries as upvalues. It ends with calls that
-- hand out its own ones, each as a function whose first upvalue is the variable. So entries and closures share one
-- variable, Lua checks <const>, and earlier entries do not count for the limit of 200 locals.
--
-- Easiest to break: lines. Nothing that is put in front of the text may contain the end of a line.
--
-- The module is a function of the session's variables by name and of value_of(name). It returns compile(text, name,
-- calls).
local _, tools = ...

local concat, unpack = table.concat, table.unpack

local kept, value_of -- the session's

-- Names of locals that are put in front of an entry. Lua allows 200 locals and 255 upvalues in a function; the names
-- beyond these are looked up in a table instead.
local MOST_UPVALUES = 120

-- The names of earlier locals that occur in the text.
local function names_used(text)
  local names, seen = {}, {}
  if next(kept) == nil then return names end
  if kept._ENV then text = "_ENV " .. text end -- what all globals are looked up in
  for name in text:gmatch("[%a_][%w_]*") do
    if kept[name] and not seen[name] then
      seen[name] = true
      names[#names + 1] = name
    end
  end
  return names
end

-- `return` of the main chunk is the end of its block, so the calls come before it.
local function with_calls(text, outline, calls)
  local at = outline.return_at
  if at then return text:sub(1, at) .. calls .. text:sub(at + 1) .. "\n" end
  return text .. "\n;" .. calls
end

local function suffix(outline)
  local calls, seen = {}, {}
  for i = #outline.locals, 1, -1 do -- of two with one name, the last is in scope
    local variable = outline.locals[i]
    if not seen[variable.name] then
      seen[variable.name] = true
      calls[#calls + 1] = ("__mr_keep(%q,function()return %s end,%s)"):format(variable.name, variable.name,
        variable.is_const)
    end
  end
  if outline.has_close and not outline.return_at then calls[#calls + 1] = "__mr_wait()" end
  if #calls > 0 then calls[#calls + 1] = "" end
  return concat(calls, ";")
end

-- Globals, and in front of them the locals that there are too many of.
local function environment(names)
  local extra = {}
  for i = MOST_UPVALUES + 1, #names do extra[names[i]] = true end
  return setmetatable({}, {
    __index = function(_, name)
      if extra[name] and kept[name] then return value_of(name) end
      return _G[name]
    end,
    __newindex = function(_, name, value)
      local variable = extra[name] and kept[name]
      if not variable then
        _G[name] = value
      elseif variable.is_const then
        error(("attempt to assign to const variable '%s'"):format(name), 2)
      else
        tools.setupvalue(variable.holder, 1, value)
      end
    end,
  })
end

-- The function of the entry.
local function wrap(text, outline, name, calls)
  local names = names_used(text)
  local head = { "__mr_keep", "__mr_wait", "__mr_value", "__mr_pass" }
  local values = { calls.keep, calls.wait, calls.value, calls.pass, n = #head }
  for i = 1, math.min(#names, MOST_UPVALUES) do
    head[#head + 1] = names[i] .. (kept[names[i]].is_const and "<const>" or "")
    values.n = values.n + 1
    values[values.n] = value_of(names[i])
  end
  local chunk, message = tools.load(("local %s =...;return function(...)%s end"):format(concat(head, ","),
    with_calls(text, outline, suffix(outline))), name)
  if not chunk then return nil, message end
  if #names > MOST_UPVALUES then tools.setupvalue(chunk, 1, environment(names)) end
  local entry = chunk(unpack(values, 1, values.n))
  for i = 1, 255 do
    local upvalue = tools.getupvalue(entry, i)
    if not upvalue then break end
    local variable = kept[upvalue]
    if variable and variable.holder then tools.upvaluejoin(entry, i, variable.holder, 1) end
  end
  return entry
end

-- `_[7]` is the value of entry 7.
local function with_values(text, outline)
  for i = #outline.values, 1, -1 do
    local use = outline.values[i]
    text = text:sub(1, use.from) .. ("__mr_value(%d)"):format(use.entry) .. text:sub(use.to + 1)
  end
  return text, tools.outline(text)
end

-- Does Lua take it as an expression or as statements? Returns the body of the chunk, or nil and why not.
local function parse(text, name)
  local value = "return " .. text:gsub("^%s*=", " ")
  local chunk, problem = tools.load(value, name)
  if chunk then return value, true end
  local statements, message = tools.load(text, name)
  if statements then return text, false end
  return nil, problem:find("<eof>$") and problem or message
end

-- A call after `return` would take the place of the entry, whose line would be missing in messages and reports. The
-- bracket stands on the line of the text's end: Lua gives the last call the line of the next token.
local function without_tail_call(body, outline)
  local ends = outline.ends_at
  if not ends then return ("return __mr_pass(%s\n)"):format(body:sub(#"return " + 1)) end
  return ("return __mr_pass(%s)%s"):format(body:sub(#"return " + 1, ends), body:sub(ends + 1))
end

-- Compiles the text of an entry. Returns its function and its declarations, or nil and the error.
local function compile(text, name, calls)
  local body, is_value = parse(text, name)
  if not body then return nil, is_value end
  local outline = tools.outline(body)
  if outline and #outline.values > 0 and not kept._ then body, outline = with_values(body, outline) end
  outline = outline or { locals = {} }
  if is_value then body, outline.return_at = without_tail_call(body, outline), 0 end
  local entry, problem = wrap(body, outline, name, calls)
  if not entry and #outline.locals > 0 then
    -- To a label at the end of the text a `goto` may jump over locals, as long as nothing follows it.
    outline = { locals = {}, return_at = outline.return_at }
    entry, problem = wrap(body, outline, name, calls)
  end
  return entry, problem, outline
end

return function(variables, value)
  kept, value_of = variables, value
  return compile
end
