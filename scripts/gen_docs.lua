-- Writes docs/api.md from the help texts in the sources, or the annotations for editors to PATH:
-- build/millrace scripts/gen_docs.lua [--check | --editor PATH]
--
-- With --check it writes nothing, and fails if docs/api.md is out of date. src/bind/bind.h describes the grammar of
-- usage lines.
local mr = require "millrace"

local entries, classes = mr.docs()

-- ---------------------------------------------------------------- all entries, in order

-- owner -> { name=, texts={...}, functions={...}, properties={...} }. `operations` is a separate list, with one
-- entry for all forms of a row.
local owners, order, operations = {}, {}, {}

local function owner_of(name)
  if not owners[name] then
    owners[name] = { name = name, texts = {}, functions = {}, properties = {} }
    order[#order + 1] = owners[name]
  end
  return owners[name]
end

for _, class in ipairs(classes) do
  local texts = owner_of(class.name).texts
  if class.text ~= "" then texts[#texts + 1] = class.text end
end

for _, e in ipairs(entries) do
  if e.kind == "property" then
    table.insert(owner_of(e.owner).properties, e)
  elseif e.kind == "function" then
    table.insert(owner_of(e.owner).functions, e)
  end
end

for _, row in ipairs(mr.ops()) do
  local forms = {}
  if row.forms.method then table.insert(forms, { owner = "tensor", name = row.forms.method }) end
  if row.forms.in_place then table.insert(forms, { owner = "tensor", name = row.forms.in_place }) end
  if row.forms.mr then table.insert(forms, { owner = "mr", name = row.forms.mr }) end
  row.forms = forms
  if #forms > 0 then table.insert(operations, row) end
end

local function is_table(name) return name == "mr" or name:find("^mr%.") ~= nil end

-- ---------------------------------------------------------------- the reference page

local PAGE = [[
# Reference

`make docs` makes this page from the help texts in the sources. At the prompt, `help(x)` shows the same text.
[design.md](design.md) describes how the parts work together. [semantics.md](semantics.md) lists the rules
`R1`, `R2`, ...

How to read a usage line:

- `name: type` is an argument. Arguments in `[brackets]` are optional.
- `{name: type=default, ...}` is a table of options. Each option is optional.
- `integer...` means one or more.
- The results come after `->`.

Shapes, dims and elements count from 1; negative ones count from the end. Device ordinals count from 0.
]]

-- The list of codes is that of src/base/status.h.
local ERRORS = [[
## Errors

A wrong call (a wrong type, shape, name or option) raises a string that begins with the script's line:
`race.lua:7: zeros: size 1 is -3, expected 0 or more`. Any other failure, in the call or on the device, raises an
error object:

| field | |
|---|---|
| `code` | what happened, for programs: one of the codes below |
| `op` | the operation that failed, or the function whose call failed |
| `stream` | the name of that operation's stream, as in the checker's reports; nil if it has none |
| `where` | `"race.lua:7"`: the line that submitted the operation, or that made the failed call; nil if unknown |
| `message` | one sentence for people; the wording may change |

`tostring(err)` is `where: message`.

    local ok, err = pcall(mr.synchronize)
    if not ok and type(err) == "table" and err.code == "illegal-address" then mr.reset() end

The codes are `out-of-memory`, `invalid-configuration`, `invalid-device`, `invalid-handle`, `not-ready`,
`launch-out-of-resources`, `peer-access-already-enabled`, `peer-access-not-enabled`, `not-permitted`,
`not-supported`, `host-function`, `hazard` and `unknown`. After the following codes the device is lost, and every call
fails until `mr.reset()` (R50): `illegal-address`, `launch-timeout`, `assert`, `misaligned-address`,
`launch-failure`. The codes `invalid-argument` and `interrupted` (Ctrl-C) are raised as strings.
If Ctrl-C stopped a kernel in the middle of a block, the device is lost, too: later calls fail with a table whose code
is `interrupted`.

`elapsed_time` has three errors but only two codes, as in CUDA: an event without timing and an event that was never
recorded are both `invalid-handle`, and the message says which. An event that is not complete is `not-ready`.
]]

local function cell(text) return (text:gsub("|", "\\|")) end

-- The anchors that GitHub makes: lower case, no punctuation, hyphens for spaces.
local function anchor(title) return (title:lower():gsub("[^%w%- _]", ""):gsub(" ", "-")) end

local function wrap(text, width)
  local lines, line = {}, ""
  for word in text:gmatch("%S+") do
    if line ~= "" and #line + 1 + #word > width then
      lines[#lines + 1] = line
      line = word
    else
      line = line == "" and word or line .. " " .. word
    end
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end

local function title_of(owner)
  return is_table(owner.name) and owner.name or owner.name:sub(1, 1):upper() .. owner.name:sub(2)
end

local function add_owner(page, owner)
  local function add(...) for _, line in ipairs{ ... } do page[#page + 1] = line end end
  add("", "## " .. title_of(owner), "")
  -- The functions of a table are in parts; each part begins with a sentence.
  local in_parts = owner.functions[1] and owner.functions[1].part
  if not in_parts then
    for _, text in ipairs(owner.texts) do add(wrap(text, 110), "") end
  end
  if #owner.properties > 0 then
    add("| property | type | |", "|---|---|---|")
    for _, e in ipairs(owner.properties) do
      add(("| `%s` | %s | %s |"):format(e.name, cell(e.type), cell(e.text)))
    end
    add("")
  end
  local part
  for _, e in ipairs(owner.functions) do
    if e.part ~= part then
      part = e.part
      add(wrap(part, 110), "")
    end
    add("**`" .. e.usage .. "`**", "", wrap(e.text, 110), "")
  end
  if page[#page] == "" then page[#page] = nil end
end

-- The dtypes that a row takes, as one word.
local function taken(dtypes)
  local has = {}
  for _, dtype in ipairs(dtypes) do has[dtype] = true end
  return has.bool and "all" or has.i32 and "numbers" or "floats"
end

-- "add", "add_" and mr.add in the columns of one row.
local function add_operations(page)
  local function add(...) for _, line in ipairs{ ... } do page[#page + 1] = line end end
  add("", "## Operations", "",
    wrap("All forms of an operation are made from one row of a table in the sources. The method makes a new tensor. " ..
      "The form that ends in `_` works in place and returns the tensor. `mr.NAME` is the method as a function. " ..
      "Shapes broadcast, and a number can be given instead of a tensor. `{out=t}` writes the result to `t`. `dim` " ..
      "is a number or a list of dims such as `{1, 2}`; without it, or with nil, all dims are used. " ..
      "`mr.ops()` returns these rows as data.", 110),
    "", "| usage | in place | function | dtypes | |", "|---|---|---|---|---|")
  for _, row in ipairs(operations) do
    local inplace, as_function = "", ""
    for _, e in ipairs(row.forms) do
      if e.owner == "mr" then as_function = "`mr." .. e.name .. "`"
      elseif e.name:sub(-1) == "_" then inplace = "`" .. e.name .. "`" end
    end
    add(("| `%s` | %s | %s | %s | %s |"):format(cell(row.usage), inplace, as_function, taken(row.dtypes),
      cell(row.help)))
  end
end

local function reference()
  local page = { PAGE }
  for _, owner in ipairs(order) do
    page[#page + 1] = ("- [%s](#%s)"):format(title_of(owner), anchor(title_of(owner)))
  end
  page[#page + 1] = "- [Operations](#operations)"
  page[#page + 1] = "- [Errors](#errors)"
  for _, owner in ipairs(order) do add_owner(page, owner) end
  add_operations(page)
  page[#page + 1] = "\n" .. ERRORS:gsub("\n$", "")
  local text = table.concat(page, "\n") .. "\n"
  return (text:gsub("\n\n\n+", "\n\n"))
end

-- ---------------------------------------------------------------- parsing usage lines

-- The types of the arguments that have no type in the usage lines of operations.
local TYPES = {
  y = "tensor|number", z = "tensor|number", w = "tensor|number", least = "tensor|number",
  greatest = "tensor|number", value = "number|boolean", low = "number", high = "number", mean = "number",
  std = "number", p = "number", start = "number", stop = "number", step = "number", first = "number",
  last = "number", count = "integer", rows = "integer", columns = "integer", n = "integer",
  shape = "integer[]", options = "table", dim = "integer|integer[]", keepdim = "boolean", out = "tensor",
  byte = "integer", correction = "integer", alpha = "number", beta = "number", dtype = "string",
}

local CLASSES = {}
for _, owner in ipairs(order) do
  if not is_table(owner.name) then CLASSES[owner.name] = "millrace." .. title_of(owner) end
end

local function editor_type(text)
  text = text:gsub("%s+or%s+", "|"):gsub("%s", ""):gsub("%.%.%.", "")
  return (text:gsub("[%a_][%w_]*", CLASSES))
end

-- Splits at commas outside braces. Brackets mark an argument as optional and are removed, except in
-- "integer[]", where they are part of the type.
local function split_arguments(text)
  text = text:gsub("%[%]", "\1")
  local list, current, depth, braces = {}, "", 0, 0
  local optional = false
  local function flush()
    local item = current:gsub("\1", "[]"):match("^%s*(.-)%s*$")
    if item ~= "" then list[#list + 1] = { text = item, optional = optional } end
    current = ""
  end
  for c in text:gmatch(".") do
    if c == "{" then braces = braces + 1 elseif c == "}" then braces = braces - 1 end
    if braces > 0 or c == "}" then
      if current:match("^%s*$") then optional = depth > 0 end
      current = current .. c
    elseif c == "[" then
      if not current:match("^%s*$") then flush() end -- "a [, b]"
      depth = depth + 1
    elseif c == "]" then
      flush()
      depth = depth - 1
    elseif c == "," then
      flush()
    else
      if current:match("^%s*$") and not c:match("%s") then optional = depth > 0 end
      current = current .. c
    end
  end
  flush()
  return list
end

local function options_type(text) -- "{stream: stream, sync: boolean=false}"
  local fields = {}
  for _, field in ipairs(split_arguments(text:match("^{(.*)}$"))) do
    local name, of = field.text:match("^([%w_]+):%s*([^=]+)")
    name = name or field.text:match("^([%w_]+)")
    fields[#fields + 1] = ("%s?: %s"):format(name, editor_type(of or TYPES[name] or "any"))
  end
  return "{ " .. table.concat(fields, ", ") .. " }"
end

local function parameter(argument)
  local text = argument.text
  if text == "..." then return { name = "...", type = "any" } end
  if text:sub(1, 1) == "{" then
    return { name = "options", type = options_type(text), optional = argument.optional }
  end
  local name, of = text:match("^([%a_][%w_]*):%s*(.+)$")
  if name and of:sub(1, 1) == "{" then
    return { name = name, type = options_type(of), optional = argument.optional }
  end
  name = name or text:match("^([%a_][%w_]*)") or "value"
  of = of or TYPES[name] or "any"
  if of:find("%.%.%.$") then name = "..." end
  return { name = name, type = editor_type(of:gsub("=.*$", "")), optional = argument.optional }
end

local LUA_WORDS = { ["end"] = "last_", ["repeat"] = "repeat_", ["function"] = "fn" }

-- The { parameters, results } of a usage line that is a call; nil for others ("t[i] -> tensor").
local function parse_usage(usage)
  local call, results = usage:match("^(.-)%s*%->%s*(.*)$")
  call, results = call or usage, results or ""
  local arguments = call:match("^[%w_%.:]+%s*%((.*)%)$")
  if not arguments then
    local options = call:match("^[%w_%.:]+%s*(%b{})$")
    if not options then return nil end
    arguments = options
  end
  local parameters, returned, has_rest = {}, {}, false
  for _, argument in ipairs(split_arguments(arguments)) do
    local p = parameter(argument)
    p.name = LUA_WORDS[p.name] or p.name
    if p.name == "options" and has_rest then
      -- In Lua, nothing can follow "...", so its last argument may be the options.
      local rest = parameters[#parameters]
      rest.type = rest.type .. "|" .. p.type
    elseif not has_rest then
      parameters[#parameters + 1] = p
      has_rest = p.name == "..."
    end
  end
  for _, result in ipairs(split_arguments(results)) do
    local name, of = result.text:match("^([%a_][%w_]*):%s*(.+)$")
    of = of or result.text
    if of == "x" or of == "t" then of = "tensor" end
    if of == "..." then name, of = "...", "any" end
    returned[#returned + 1] = { name = name, type = editor_type(of) }
  end
  return { parameters = parameters, results = returned }
end

-- ---------------------------------------------------------------- the editor stub

-- A method that is also a function of `mr` has one usage line: the function takes the method's tensor as its first
-- argument.
local function usage_in(owner, usage)
  if owner == "mr" then usage = usage:gsub("^([%a_]+):([%w_]+)%(%s*", "mr.%2(%1: tensor, ", 1)
  elseif not is_table(owner) then usage = usage:gsub("^mr%.([%w_]+)%(([%a_]+): tensor,?%s*", "%2:%1(", 1) end
  return (usage:gsub(",%s*%)", ")"):gsub(",%s*%[,", " [,"):gsub(",%s*%[{", " [, {"))
end

local function add_function(lines, owner, name, usage, text)
  local parts = parse_usage(usage_in(owner, usage))
  if not parts then return end
  for line in wrap(text, 100):gmatch("[^\n]+") do lines[#lines + 1] = "---" .. line end
  local names = {}
  for _, p in ipairs(parts.parameters) do
    names[#names + 1] = p.name
    local optional = p.optional and p.name ~= "..." and "?" or ""
    lines[#lines + 1] = ("---@param %s%s %s"):format(p.name, optional, p.type)
  end
  for _, r in ipairs(parts.results) do
    lines[#lines + 1] = ("---@return %s%s"):format(r.type, r.name and " " .. r.name or "")
  end
  local is_method = not is_table(owner) or owner ~= "mr" and usage:find("^[%a_]+:")
  local holder = (is_table(owner) and owner or CLASSES[owner]:match("[^.]+$")) .. (is_method and ":" or ".")
  lines[#lines + 1] = ("function %s%s(%s) end"):format(holder, name, table.concat(names, ", "))
  lines[#lines + 1] = ""
end

local OPERATORS = {
  __add = "add", __sub = "sub", __mul = "mul", __div = "div", __pow = "pow", __mod = "mod", __unm = "unm",
  __len = "len",
}

local function operator_line(owner, e)
  local operator = OPERATORS[e.name]
  if not operator then return nil end
  local result = editor_type(e.usage:match("%->%s*(.*)$") or "any"):gsub("^[%w_]+:", "")
  if operator == "unm" or operator == "len" then return ("---@operator %s: %s"):format(operator, result) end
  local other = owner.name == "tensor" and editor_type("tensor|number") or CLASSES[owner.name]
  return ("---@operator %s(%s): %s"):format(operator, other, result)
end

local function stub()
  local lines = {
    "---@meta millrace",
    "-- For lua-language-server. `make docs` writes this file; no script needs it.",
    "",
    "---@class millrace",
    "---@field backend \"virtual\"|\"cuda\"",
    "local mr = {}",
    "",
  }
  for _, owner in ipairs(order) do
    if is_table(owner.name) then
      if owner.name ~= "mr" then
        lines[#lines + 1] = "---" .. table.concat(owner.texts, " ")
        lines[#lines + 1] = owner.name .. " = {}"
        lines[#lines + 1] = ""
      end
    else
      for _, text in ipairs(owner.texts) do
        for line in wrap(text, 100):gmatch("[^\n]+") do lines[#lines + 1] = "---" .. line end
      end
      lines[#lines + 1] = "---@class " .. CLASSES[owner.name]
      for _, e in ipairs(owner.properties) do
        lines[#lines + 1] = ("---@field %s %s %s"):format(e.name, editor_type(e.type), e.text)
      end
      for _, e in ipairs(owner.functions) do lines[#lines + 1] = operator_line(owner, e) end
      lines[#lines + 1] = ("local %s = {}"):format(CLASSES[owner.name]:match("[^.]+$"))
      lines[#lines + 1] = ""
    end
  end
  for _, owner in ipairs(order) do
    for _, e in ipairs(owner.functions) do
      if e.name:sub(1, 2) ~= "__" then add_function(lines, owner.name, e.name, e.usage, e.text) end
    end
  end
  for _, row in ipairs(operations) do
    for _, e in ipairs(row.forms) do
      local usage = row.usage
      if e.name:sub(-1) == "_" then usage = usage:gsub("%s*%[,?%s*{out=}%]", "") end
      add_function(lines, e.owner, e.name, usage, row.help)
    end
  end
  lines[#lines + 1] = "return mr"
  return table.concat(lines, "\n") .. "\n"
end

-- ---------------------------------------------------------------- writing

local function read(path)
  local f = io.open(path, "rb")
  if not f then return nil end
  local text = f:read("a")
  f:close()
  return text
end

local function write(path, text)
  if read(path) == text then return end
  local f = assert(io.open(path, "wb"))
  f:write(text)
  assert(f:close())
  print("wrote " .. path)
end

local PAGE_PATH <const> = "docs/api.md"
if arg[1] == "--check" then
  if read(PAGE_PATH) == reference() then os.exit(true) end
  io.stderr:write(PAGE_PATH, " is out of date: run make docs\n")
  os.exit(false)
elseif arg[1] == "--editor" then
  write(assert(arg[2], "--editor needs the path of the file to write"), stub())
else
  write(PAGE_PATH, reference())
end
