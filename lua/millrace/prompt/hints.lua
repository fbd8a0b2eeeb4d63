-- Hints for habits of other languages and libraries: one line with the equivalent here.
local _, tools = ...

local hints = {}

-- ---------------------------------------------------------------- what is written

-- Strings and comments say nothing about habits.
local function without_texts(text)
  text = text:gsub("%[(=*)%[.-%]%1%]", '""'):gsub('\\.', ""):gsub('"[^"\n]*"', '""'):gsub("'[^'\n]*'", '""')
  return (text:gsub("%-%-[^\n]*", ""))
end

local COMMENT = "a comment begins with -- in Lua"

local HERE = "mr is %1 here, and is there already"
local FORMAT = "write (\"%d\"):format(x), or \"...\" .. x"
local TRY = "errors are caught by local ok, message = pcall(function() ... end)"

-- { pattern, hint with %1, %2 for the captures }, for entries that Lua cannot parse.
local SYNTAX = {
  { "^%s*import%s+(torch)%f[^%w_]", HERE }, { "^%s*from%s+(torch)[%w_%.]*%s+import", HERE },
  { "^%s*import%s+([%w_%.]+)", "modules are loaded by local m = require \"%1\"; mr is there already" },
  { "^%s*from%s+([%w_%.]+)%s+import", "modules are loaded by local m = require \"%1\"; mr is there already" },
  { "^%s*def%s+([%w_]+)%s*(%b())", "a function is written function %1%2 ... end" },
  { "^%s*class%s+([%w_]+)%([%w_%.]*Module%)", "write local %1 = mr.nn.Module.class(\"%1\")" },
  { "^%s*class%s", "Lua has no classes: a table with a metatable takes their place" },
  { "%f[%w_]with%s+[%w_%.]*no_grad%(%)%s*:", "write mr.no_grad(function() ... end)" },
  { "%f[%w_]with%s+[%w_%.:%(%)]+%s*:", "write mr.with(s, function() ... end)" },
  { "%f[%w_]for%s+([%w_]+)%s+in%s+range%b()", "write for %1 = 1, n do ... end" },
  { "%f[%w_]for%s+([%w_]+)%s+in%s+[^:\n]*:", "write for _, %1 in ipairs(list) do ... end" },
  { "%f[%w_]if%s[^\n]-:%s*$", "write if condition then ... end" },
  { "%f[%w_]while%s[^\n]-:%s*$", "write while condition do ... end" },
  { "^%s*try%s*:", TRY }, { "^%s*except%f[^%w_][^\n]*:", TRY },
  { "%f[%w_]elif%f[^%w_]", "write elseif" },
  { "%f[%w_]lambda%f[^%w_]", "write function(x) return ... end" },
  { "([%a_][%w_%.]*)%s*([%+%-%*/])=%s*([^;\n]*)",
    "Lua has no %2=: write %1 = %1 %2 %3 or, in place, for a tensor: %1:add_(...), sub_, mul_, div_" },
  { "([%a_][%w_%.]*)%+%+", "Lua has no ++: write %1 = %1 + 1" },
  { "!=", "not equal is ~= in Lua" },
  { "%f[%w_]if%s[^=~<>\n]*[^=~<>]=[^=]", "a comparison is == in Lua" },
  { "%f[%w_]while%s[^=~<>\n]*[^=~<>]=[^=]", "a comparison is == in Lua" },
  { "^%s*print%s+([%a_][%w_]*)%s*$", "write print(%1), or print(\"%1\") for the word itself" },
  { "&&", "write and" },
  { "||", "write or" },
  { "!%s*[%a_%(]", "write not" },
  { "([%a_][%w_%.]*)%[[^%[%]{}]*:[^%[%]{}]*%]",
    "a slice is a table in Lua: %1[{ {first, last} }], counted from 1, both included" },
  { "^%s*#", COMMENT },
  { "[%s%)]#[%s%a]", COMMENT },
  { "([%w_%)%]]+)%s*%*%*%s*([%w_%(]+)", "a power is written %1 ^ %2" },
  { "%f[%w_%.]([%a_][%w_%.]*)%s*@%s*([%a_][%w_]*)%s*$", "a matrix product is written %1:matmul(%2)" },
  { "@", "a matrix product is written x:matmul(y)" },
  { "<<<", "a kernel is launched by k[{grid, block}](...)" },
  { "%(%s*%[", "a list is written {1, 2} in Lua" },
  { "[%w_]%(%s*%(%s*[%w_]+%s*,", "a shape is a list of arguments or a table: mr.zeros(2, 3), mr.zeros{2, 3}" },
  { "//", COMMENT },
  { "%f[%w_]new%s+[%a_]", "objects are made by a call: mr.stream(), mr.event(), mr.zeros(3)" },
  { "%f[%w_]f\"\"", FORMAT },
}

-- Names of other languages: nil here, which Lua does not complain about.
local WORDS = {
  None = "nothing is nil in Lua", null = "nothing is nil in Lua", True = "write true", False = "write false",
  len = "the length of x is #x", range = "write for i = 1, n do ... end",
  torch = "mr takes the place of torch and torch.cuda", cupy = "mr takes the place of cupy",
  np = "mr makes tensors: mr.tensor{1, 2, 3}, mr.arange(5)", dir = "TAB lists names; help(x) explains x",
  str = "write tostring(x)", int = "write x // 1, or math.tointeger(x)",
  sleep = "the host sleeps by mr.sleep(1), a stream is kept busy by mr.spin{ms = 1}",
}

local function fill(hint, captures)
  return (hint:gsub("%%(%d)", function(n) return (captures[tonumber(n)] or ""):match("^(.-)%s*$") end))
end

local KEYWORDS = {
  "and", "break", "do", "else", "elseif", "end", "for", "function", "goto", "if", "in", "local", "not", "or", "repeat",
  "return", "then", "until", "while",
}

-- `loacl x = 1`, `if x tehn`: the word before the unexpected token, or that token itself.
local function keyword_hint(text, message)
  local expected, found = message:match "'(%l+)' expected near '([%a_][%w_]*)'"
  local word, near = found, expected and tools.nearest(found, { expected })
  if not near then
    found = message:match "syntax error near '([%w_]+)'"
    word = found and text:match("%f[%w_]([%a_][%w_]*)%s+%f[%w_]" .. found .. "%f[^%w_]")
    near = word and tools.nearest(word, KEYWORDS)
  end
  return near and near ~= word and ("`%s`: did you mean `%s`?"):format(word, near) or nil
end

local function count_breaks(text, last) return select(2, text:sub(1, last):gsub("\n", "")) end

-- After `from`, the first ] that no [ has opened.
local function find_stray(text, from)
  local depth = 0
  for at, bracket in text:gmatch("()([%[%]])", from) do
    depth = depth + (bracket == "[" and 1 or -1)
    if depth < 0 then return at end
  end
end

-- Whether it is code of a kernel with a brace that nothing closes. At the prompt the rest has not been typed yet.
local function is_cut_kernel(code)
  local _, opened = code:gsub("{", "")
  local _, closed = code:gsub("}", "")
  return code:find "__%l+__" and opened > closed
end

-- A text in [[ ]] that ended too early, at a ]] of its own. Lua then complains of something between there and the ]]
-- that was to end it, which nothing has opened.
local function long_text_hint(text, message)
  local line = tonumber(message:match ":(%d+): .* near ")
  local from = 1
  while line do
    local begin, _, level, stop = text:find("%[(=*)%[.-%]%1%]()", from)
    if not stop or count_breaks(text, stop - 1) + 1 > line then return nil end
    local stray = find_stray(text, stop)
    local is_end = stray and text:sub(stray, stray + #level + 1) == "]" .. level .. "]"
    if is_end and line <= count_breaks(text, stray) + 1 or is_cut_kernel(text:sub(begin, stop)) then
      return ("the first ]%s] ended the text that [%s[ began: write [%s=[ ... ]%s=] around a text that holds ]%s]")
        :format(level, level, level, level, level)
    end
    from = stop
  end
end

local BEGINS = { ["function"] = true, ["do"] = true, ["if"] = true, ["repeat"] = true }
local ENDS = { ["end"] = true, ["until"] = true }
local IS_KEYWORD = {}
for _, word in ipairs(KEYWORDS) do IS_KEYWORD[word] = true end

-- Whether a ( after `word` begins the arguments of a call; `before` is what stands before the word.
local function begins_call(word, before)
  return word:find "[%w_%)%]>]$" and not IS_KEYWORD[word] and before ~= "function"
end

-- `mr.stream(name = "s")`: the first name of an option that stands in the brackets of a call.
local function option_in_call(text)
  local open, last, before = {}, "", ""
  for word, at, mark in text:gmatch "([%w_]*)()([^%w_]?)" do
    if word ~= "" then
      if BEGINS[word] then open[#open + 1] = "block" end
      if ENDS[word] then open[#open] = nil end
      local is_first = open[#open] == "call" and (last == "(" or last == ",")
      if is_first and word:find "^[%a_]" and text:find("^%s*=[^=]", at) then return word end
      before, last = last, word
    end
    if mark:find "[%(%[{]" then open[#open + 1] = mark == "(" and begins_call(last, before) and "call" or mark end
    if mark:find "[%)%]}]" then open[#open] = nil end
    if mark:find "%S" then before, last = last, mark end
  end
  return nil
end

local BLOCKS = {
  ["while"] = "while condition do ... end", ["for"] = "for i = 1, n do ... end", ["if"] = "if condition then ... end",
  ["else"] = "if condition then ... else ... end", ["function"] = "function name(...) ... end",
}

-- Whether the text after the word that begins a block goes on with a brace: `true {`, `(x) { y() }`.
local function has_brace(word, rest)
  if rest:find "%f[%w_]do%f[^%w_]" or rest:find "%f[%w_]then%f[^%w_]" then return false end
  if word == "else" then return rest:find "^{" end
  if word == "function" then return rest:find "^[%w_%.:]*%s*%b()%s*{" end
  return rest:find "^%b()%s*{" or rest:find "%s{%s*$" or rest:find "^[^{]*%s{.*}%s*$"
end

-- Lua takes `x {` for a call, so it may stop far after the brace.
local function brace_hint(text)
  local parts = text:gsub("%f[%w_]%l+%f[^%w_]", function(word) return BLOCKS[word] and "\n" .. word end)
  for word, rest in (parts .. "\n"):gmatch "%f[%w_](%l+)%f[^%w_][^%S\n]*([^\n]*)\n" do
    if BLOCKS[word] and has_brace(word, rest) then
      return ("a block has no braces in Lua: write %s"):format(BLOCKS[word])
    end
  end
  return nil
end

local function syntax_hint(text, message)
  text = without_texts(text)
  local option = message:find("near '='", 1, true) and option_in_call(text)
  local hint = brace_hint(text) or option and fill("options are a table in Lua: {%1 = ...}", { option })
  if hint then return hint end
  for _, row in ipairs(SYNTAX) do
    local captures = { text:match(row[1]) }
    if captures[1] then return fill(row[2], captures) end
  end
  return nil
end

-- ---------------------------------------------------------------- names that are not there

local session = tools.require "session"

local function is_defined(name) return session.has_local(name) or rawget(_G, name) ~= nil end

-- The text to write instead of torch.cuda.NAME or cudaNAME.
local function foreign_name(name)
  local here = tools.mr
  local plain = name:lower()
  if rawget(here, plain) ~= nil then return "write mr." .. plain end
  local advice = tools.advice("mr", name)
  return advice
end

local function torch_hint(text)
  local name = text:match("torch%.cuda%.([%a_][%w_]*)") or text:match("torch%.([%a_][%w_]*)")
  if not name or name == "cuda" then return WORDS.torch end
  return foreign_name(name) or WORDS.torch
end

local function names_of(value)
  local names = {}
  for name in next, value do
    if type(name) == "string" then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

-- "mr.memory.summary" of the text, whose last name is not in the table that is in front of it.
local function field_hint(text, name)
  for chain in text:gmatch("([%a_][%w_%.]*)[%.:]" .. name .. "%f[^%w_]") do
    local value = tools.require("complete").value_of(chain)
    local owner = type(value) == "table" and tools.owner(value)
    if owner then
      local names = names_of(value)
      local near = tools.nearest(name, names)
      if near then return ("%s has no `%s`: did you mean `%s`?"):format(owner, name, near) end
      return ("%s has no `%s`: it has %s"):format(owner, name, table.concat(names, ", "))
    end
  end
  return nil
end

-- The type that a value must have for this use.
local DONE_WITH = {
  call = { ["function"] = true }, index = { table = true, userdata = true, string = true },
  perform = { number = true, userdata = true }, concatenate = { string = true, number = true },
}

-- The variable that was probably meant: of those with which it could be done, otherwise of all.
local function variable_like(name, action)
  local fitting, all = {}, {}
  local function offer(known, value)
    all[#all + 1] = known
    if not DONE_WITH[action] or DONE_WITH[action][type(value)] then fitting[#fitting + 1] = known end
  end
  for known, value in pairs(session.locals()) do offer(known, value) end
  for known, value in next, _G do
    if type(known) == "string" then offer(known, value) end
  end
  return tools.nearest(name, fitting) or tools.nearest(name, all)
end

local function global_hint(text, name, action)
  if name == "f" and text:find '%f[%w_]f""' then return FORMAT end
  if name == "torch" then return torch_hint(text) end
  if WORDS[name] then return WORDS[name] end
  if rawget(tools.mr, name) ~= nil then return ("did you mean mr.%s?"):format(name) end
  local advice = foreign_name(name)
  if advice then return advice end
  local near = variable_like(name, action)
  return near and ("did you mean `%s`?"):format(near) or nil
end

local function nil_hint(text, message)
  local topic = message:find("arithmetic", 1, true) and text:match "%f[%w_]help%s*%(%s*([%a_][%w_]*%-[%w_%-]+)%s*%)"
  if topic then return ("a name with - is a text: help(\"%s\")"):format(topic) end
  local kind, name = message:match("a nil value %((%a+) '([^']*)'%)")
  if kind == "field" or kind == "method" then return field_hint(text, name) end
  if kind == "global" then return global_hint(text, name, message:match("attempt to (%a+)")) end
  return nil
end

-- `x.sum()` calls the function without the object, and `s.wait_stream(other)` with another one.
local function method_hint(text, message)
  local name = message:match("([%a_][%w_]*): argument %d+: expected [%a ]+, got")
  local chain = name and text:match("([%w_%.%)%]]*)%." .. name .. "%f[^%w_]")
  local object = chain and chain:match("[%w_%)%]]+$")
  if not object or chain:find("^mr%f[^%w_]") then return nil end
  return ("methods are called with a colon: %s:%s(...)"):format(object:find("^[%a_]") and object or "x", name)
end

-- Values that Python would have put there.
local function value_hint(text, message)
  for word in (message:find("got nil", 1, true) and text or ""):gmatch "=%s*([%a_][%w_]*)" do
    if WORDS[word] and not is_defined(word) then return ("`%s` is nil: %s"):format(word, WORDS[word]) end
  end
  if message:find("'for' limit", 1, true) and text:find "%[%s*0%s*%]" then
    return "elements, and the sizes of a shape, count from 1: x.shape[1]"
  end
  if message:find("expected a table of options, got a ", 1, true) then
    return "options have names: {lr = 0.1}"
  end
  local method, object = text:match "mr%.([%a_]+)%(%s*([%a_][%w_]*)%s*%)"
  if method and message:find(method .. ": argument 1: expected a device.* got a stream") then
    return ("write %s:%s()"):format(object, method)
  end
  return nil
end

-- Two lines that Lua takes as one call. The first one is named.
local function joined_hint(text, message)
  local at = tonumber(message:match ":(%d+): attempt to call a [%w%._ ]+ value$")
  local n = 0
  for line in (text .. "\n"):gmatch "(.-)\n" do
    n = n + 1
    if at and n > 1 and (n == at or n == at + 1) and line:find "^%s*%(" then
      return ("Lua takes the ( that begins line %d as the arguments of a call: write ;( there"):format(n)
    end
  end
  return nil
end

-- `x:numel()`: a field that is called.
local function field_called_hint(message)
  local name = message:match("attempt to call a %a+ value %(%a+ '([^']*)'%)")
  return name and ("%s is a value and no function: write x.%s"):format(name, name) or nil
end

-- ---------------------------------------------------------------- for the session

-- `for i in range(3):`: the first line of a block, which in Lua may go on.
function hints.is_python_block(line)
  local word = without_texts(line):match("^%s*(%l+)%f[^%w_][^\n]*:%s*$")
  return word == "for" or word == "while" or word == "if" or word == "try" or word == "def" or word == "class" or
    word == "with" or word == "elif" or word == "else" or word == "except"
end

-- For an entry that failed: its text and the message; `whole`: the text whose lines the message counts, where `text` is
-- one of them. nil: there is no hint.
function hints.of(text, message, whole)
  local written = without_texts(text)
  if written:find("^%s*#%s*%a") and not written:find("^%s*#%a") then return COMMENT end
  local joined = joined_hint(whole or text, message)
  if joined then return joined end
  if message:find("a nil value", 1, true) then return nil_hint(written, message) end
  if message:find("attempt to call a ", 1, true) then return field_called_hint(message) end
  if message:find("attempt to add a 'string'", 1, true) then return "texts are joined by .. in Lua" end
  local module = message:match("module '([%w_]+)[%w_%.]*' not found")
  if module and WORDS[module] then return module == "torch" and fill(HERE, { module }) or WORDS[module] end
  if message:find(" near ", 1, true) then
    local hint = long_text_hint(whole or text, message) or keyword_hint(written, message) or syntax_hint(text, message)
    return hint or (message:find("'end' expected", 1, true) and "a block ends with `end`" or nil)
  end
  return method_hint(written, message) or value_hint(written, message)
end

-- For an entry that Lua took: a name that means something elsewhere, and is nil here.
function hints.of_nil(text)
  for word in without_texts(text):gmatch("%f[%w_%.:]([%a_][%w_]*)") do
    if WORDS[word] and not is_defined(word) then return ("`%s` is nil: %s"):format(word, WORDS[word]) end
  end
  local word = text:match "^%s*=?%s*([%a_][%w_]*)%s*$"
  if not word or word == "nil" or word:find "^_+%d*$" or is_defined(word) then return nil end
  if tools.require("commands").by_name[word] then return ("`%s` is nil; the command is :%s"):format(word, word) end
  local meant = global_hint(text, word)
  return ("no variable `%s` has a value%s"):format(word, meant and "; " .. meant or "")
end

-- The same for an entry that is `false` and a message, as pcall returns them.
function hints.of_caught(text, values)
  if values.n ~= 2 or values[1] ~= false or type(values[2]) ~= "string" then return nil end
  return hints.of(text, values[2])
end

return hints
