-- Showing values at the prompt: like print, except that tables are written out as Lua would read them.
--
-- A table goes on one line if it fits there. Otherwise each element has its own, a list of numbers has as many on a
-- line as fit, and records of one shape stand below each other. A value that is too large or too deep, or contains
-- itself, is cut. The same table is always shown in the same way: first the list, then names in alphabetical order,
-- then other keys.
--
-- A table with __tostring is not looked into, and no other metamethod is called.
local _, tools = ...

local show = {}

-- The text for a user who types only `help`.
local HELP = 'help() shows the first steps; help("stream") or help(mr.zeros) explains one thing'

local MOST_ELEMENTS = { 100, 20 } -- of a table, and of a table in a table
local MOST_DEPTH = 6
local LONGEST_STRING = 200 -- in a table
local ESCAPES = { ["\n"] = "\\n", ["\t"] = "\\t", ["\r"] = "\\r", ['"'] = '\\"', ["\\"] = "\\\\" }
local KEYWORDS = {}
for word in ("and break do else elseif end false for function goto if in local nil not or repeat return then true " ..
  "until while"):gmatch("%a+") do KEYWORDS[word] = true end

-- ---------------------------------------------------------------- values without elements

local function quoted(text)
  local rest = ""
  if #text > LONGEST_STRING then
    local cut = utf8.offset(text, 0, LONGEST_STRING) or LONGEST_STRING
    rest = (" .. (%d more bytes)"):format(#text - cut + 1)
    text = text:sub(1, cut - 1)
  end
  return '"' .. text:gsub('[%c"\\]', function(c) return ESCAPES[c] or ("\\%d"):format(c:byte()) end) .. '"' .. rest
end

-- "function(a, b)  -- mr:3:1"; a function of millrace is known by its usage line.
local function function_text(fn)
  local usage = tools.usage(fn)
  if usage then return usage end
  local info = tools.getinfo(fn, "Su")
  if info.what == "C" then return tostring(fn) end
  local names = {}
  for i = 1, info.nparams do names[i] = tools.getlocal(fn, i) end
  if info.isvararg then names[#names + 1] = "..." end
  return ("function(%s)  -- %s:%d"):format(table.concat(names, ", "), info.short_src, info.linedefined)
end

local function opens(value)
  if type(value) ~= "table" then return false end
  local meta = tools.getmetatable(value)
  return not (meta and (rawget(meta, "__tostring") or rawget(meta, "__name")))
end

-- Lua writes the sign of one that is not a number, too.
local function text_of(value) return value ~= value and type(value) == "number" and "nan" or tostring(value) end

local function plain_text(value)
  local kind = type(value)
  if kind == "string" then return quoted(value) end
  if kind == "function" then return function_text(value) end
  return (text_of(value):gsub("\n", " "))
end

-- ---------------------------------------------------------------- elements in order

local RANK = { number = 1, boolean = 2 }

local function comes_before(a, b)
  local rank_a, rank_b = RANK[type(a)] or 3, RANK[type(b)] or 3
  if rank_a ~= rank_b then return rank_a < rank_b end
  if rank_a == 1 then return a < b end
  return tostring(a) < tostring(b)
end

-- { { key = text in front of the value, or "", value = }, ... } up to `most`, and how many more there are.
local function elements_of(t, most)
  local length, names, others, list = rawlen(t), {}, {}, {}
  for key in next, t do
    if type(key) == "string" then names[#names + 1] = key
    elseif not (math.type(key) == "integer" and key >= 1 and key <= length) then others[#others + 1] = key end
  end
  table.sort(names)
  table.sort(others, comes_before)
  for i = 1, math.min(length, most) do list[i] = { key = "", value = rawget(t, i) } end
  for _, name in ipairs(names) do
    if #list == most then break end
    local key = name:find("^[%a_][%w_]*$") and not KEYWORDS[name] and name or "[" .. quoted(name) .. "]"
    list[#list + 1] = { key = key .. " = ", value = rawget(t, name) }
  end
  for _, other in ipairs(others) do
    if #list == most then break end
    local key = opens(other) and "{...}" or plain_text(other)
    list[#list + 1] = { key = "[" .. key .. "] = ", value = rawget(t, other) }
  end
  return list, length + #names + #others - #list
end

-- ---------------------------------------------------------------- tables

-- The table on one line of at most `width` characters; nil: it does not fit. `inside`: tables around it.
local function on_one_line(value, width, inside, depth)
  if not opens(value) then
    local text = plain_text(value)
    return #text <= width and text or nil
  end
  if next(value) == nil then return "{}" end
  if inside[value] then return "{itself}" end
  if depth > MOST_DEPTH then return "{...}" end
  local list, more = elements_of(value, MOST_ELEMENTS[depth] or MOST_ELEMENTS[2])
  if more > 0 then return nil end
  inside[value] = true
  local texts, used = {}, 2
  for i, element in ipairs(list) do
    local text = on_one_line(element.value, width - used - #element.key, inside, depth + 1)
    local has_comment = text and type(element.value) == "function" and text:find(" -- ", 1, true)
    if has_comment then text = nil end
    if not text then
      inside[value] = nil
      return nil
    end
    texts[i] = element.key .. text
    used = used + #texts[i] + 2
  end
  inside[value] = nil
  return used - 2 <= width and "{" .. table.concat(texts, ", ") .. "}" or nil
end

local lines_of

-- Numbers and short strings: as many on a line as fit.
local function filled(list, indent, width, out)
  local line = indent
  for _, element in ipairs(list) do
    local text = element.key .. plain_text(element.value) .. ","
    if #line + #text + 1 > width and #line > #indent then
      out[#out + 1] = line
      line = indent
    end
    line = line .. (#line > #indent and " " or "") .. text
  end
  out[#out + 1] = line
end

-- The names of a record whose values are all plain, in order, as one text; nil: it is not one.
local function shape_of(value)
  if not opens(value) or rawlen(value) > 0 then return nil end
  local names = {}
  for _, element in ipairs((elements_of(value, 20))) do
    if opens(element.value) or type(element.value) == "function" then return nil end
    names[#names + 1] = element.key
  end
  return #names > 0 and table.concat(names) or nil
end

-- Records of one shape, their fields below each other; false: they are not, or too wide.
local function aligned(list, indent, width, out)
  local shape = #list > 1 and shape_of(list[1].value)
  if not shape then return false end
  local rows, widths = {}, {}
  for i, record in ipairs(list) do
    if record.key ~= "" or shape_of(record.value) ~= shape then return false end
    rows[i] = {}
    for k, field in ipairs((elements_of(record.value, 20))) do
      rows[i][k] = field.key .. plain_text(field.value)
      widths[k] = math.max(widths[k] or 0, utf8.len(rows[i][k]) or #rows[i][k])
    end
  end
  local total = #indent + 3
  for _, size in ipairs(widths) do total = total + size + 2 end
  if total > width then return false end
  for _, cells in ipairs(rows) do
    local line = indent .. "{"
    for k, cell in ipairs(cells) do
      local padding = widths[k] - (utf8.len(cell) or #cell)
      line = line .. cell .. (k < #cells and "," .. (" "):rep(padding + 1) or (" "):rep(padding) .. "},")
    end
    out[#out + 1] = line
  end
  return true
end

local OPENED = { table = true, userdata = true, ["function"] = true }

-- The first elements that are numbers, texts or booleans of the list part, and the others.
local function split_plain(list)
  local plain, others = {}, {}
  for _, element in ipairs(list) do
    local is_plain = #others == 0 and element.key == "" and not OPENED[type(element.value)]
    table.insert(is_plain and plain or others, element)
  end
  return plain, others
end

-- Adds the lines of a table that one line is too short for; `first` stands in front of its brace.
local function many_lines(value, first, indent, width, out, inside, depth)
  local list, more = elements_of(value, MOST_ELEMENTS[depth] or MOST_ELEMENTS[2])
  local inner = indent .. "  "
  inside[value] = true
  out[#out + 1] = first .. "{"
  local plain, others = split_plain(list)
  if #plain > 0 then filled(plain, inner, width, out) end
  if not aligned(others, inner, width, out) then
    for _, element in ipairs(others) do
      lines_of(element.value, inner .. element.key, inner, width, out, inside, depth + 1)
      local has_comment = type(element.value) == "function" and out[#out]:find(" -- ", 1, true)
      if not has_comment then out[#out] = out[#out] .. "," end
    end
  end
  if more > 0 then out[#out + 1] = ("%s-- and %d more"):format(inner, more) end
  out[#out + 1] = indent .. "}"
  inside[value] = nil
end

function lines_of(value, first, indent, width, out, inside, depth)
  local text = on_one_line(value, math.max(width - #first - 1, 10), inside, depth)
  if text then out[#out + 1] = first .. text
  elseif opens(value) then many_lines(value, first, indent, width, out, inside, depth)
  else out[#out + 1] = first .. plain_text(value) end
end

-- ---------------------------------------------------------------- tables of millrace

-- Names in columns that are read downwards.
function show.columns(names, indent, width, out)
  local longest = 0
  for _, name in ipairs(names) do longest = math.max(longest, utf8.len(name) or #name) end
  local columns = math.max(1, (width - #indent) // (longest + 2))
  local rows = (#names + columns - 1) // columns
  for row = 1, rows do
    local cells = {}
    for column = 0, columns - 1 do
      local name = names[column * rows + row]
      if name then cells[#cells + 1] = name .. (" "):rep(longest + 2 - (utf8.len(name) or #name)) end
    end
    out[#out + 1] = (indent .. table.concat(cells)):gsub("%s+$", "")
  end
end

local MANY = 60 -- functions of a table: those that are used most come first
local MOST_USED = 24

-- Splits the names of functions of a table: those that the examples use most, by their use, and the others as they are.
local function split_by_use(names, owner)
  local uses, used, others, is_used = tools.uses(), {}, {}, {}
  for _, name in ipairs(names) do
    if uses[owner .. "." .. name] then used[#used + 1] = name end
  end
  local function count(name) return uses[owner .. "." .. name] end
  table.sort(used, function(a, b)
    if count(a) ~= count(b) then return count(a) > count(b) end
    return a < b
  end)
  for i = #used, MOST_USED + 1, -1 do used[i] = nil end
  for _, name in ipairs(used) do is_used[name] = true end
  for _, name in ipairs(names) do
    if not is_used[name] then others[#others + 1] = name end
  end
  return used, others
end

-- mr, mr.hazard: its contents by kind, and where they are explained.
local function library(value, name, width)
  local of = { ["function"] = {}, table = {}, rest = {} }
  for _, element in ipairs((elements_of(value, math.huge))) do
    local key = element.key:match("^(.*) = $")
    if key then table.insert(of[type(element.value)] or of.rest, key) end
  end
  local out = { ("%s: %d functions; help(\"%s\") explains them"):format(name, #of["function"], name) }
  local names, others = of["function"], {}
  if #names > MANY then
    names, others = split_by_use(names, name)
    out[#out + 1] = "used most:"
  end
  show.columns(names, "  ", width, out)
  if #of.table > 0 then
    out[#out + 1] = "tables of functions:"
    show.columns(of.table, "  ", width, out)
  end
  for _, key in ipairs(of.rest) do out[#out + 1] = ("%s = %s"):format(key, plain_text(value[key])) end
  if #others > 0 then
    out[#out + 1] = "the others, by name:"
    show.columns(others, "  ", width, out)
  end
  return out
end

local function is_reports(value)
  local first = rawget(value, 1)
  return type(first) == "table" and type(rawget(first, "message")) == "string" and rawget(first, "kind") ~= nil
end

-- The list of reports: each as it was printed.
local function reports(value)
  local out = {}
  for i, report in ipairs(value) do
    out[#out + 1] = ("[%d]"):format(i)
    for line in report.message:gmatch("[^\n]+") do out[#out + 1] = "  " .. line end
  end
  return out
end

-- ---------------------------------------------------------------- at the prompt

-- "mr", "mr.hazard": of a table of millrace's functions. A module or an optimiser, which are tables, too, has a text.
local function library_name(value)
  local meta = type(value) == "table" and tools.getmetatable(value)
  if type(value) ~= "table" or meta and rawget(meta, "__tostring") then return nil end
  return tools.owner(value)
end

-- The lines that show a value.
function show.lines(value, width)
  width = width or tools.width()
  local name = library_name(value)
  if name then return library(value, name, width) end
  if value == tools.mr.help then return { HELP } end
  if type(value) == "function" then return { function_text(value) } end
  if tools.require("commands").kind_of(value) == "tensor" then return tools.require("tensors").lines(value) end
  if type(value) == "table" and is_reports(value) then return reports(value) end
  if not opens(value) then return { text_of(value) } end
  local out = {}
  lines_of(value, "", "", width, out, {}, 1)
  return out
end

-- Results stand beside each other, if each of them has one line. The many names of a table of millrace are a page.
function show.echo(values)
  local is_library = values.n == 1 and library_name(values[1])
  local texts, separator = {}, "\t"
  for i = 1, values.n do
    local lines = show.lines(values[i])
    if #lines > 1 then separator = "\n" end
    texts[i] = table.concat(lines, "\n")
  end
  local text = table.concat(texts, separator) .. "\n"
  if is_library then tools.page(text) else tools.write(text) end
end

return show
