-- Checks the lines of C files beyond what clang-format does.
--
--     lua5.4 scripts/columns.lua
--
-- Code has 100 columns, with the comment behind it; a line that is comment alone has 120. A declaration keeps its name
-- on the line of its type, also where both begin in the same column: a comment that has no room behind it stands above.
-- Tables that clang-format leaves as they are (`clang-format off`) may be wider. Prints each offence, and exits with 1
-- if there is one.

local CODE, COMMENT = 100, 120

local no_types = {}
for word in ("return else do default case goto break continue typedef"):gmatch("%a+") do no_types[word] = true end

local offences = 0
local function offend(path, number, text)
  offences = offences + 1
  print(("%s:%d: %s"):format(path, number, text))
end

-- The indentation of a line that is a type and nothing else, such as "const mr_tensor *"; nil: the line is another.
local function indent_of_type(line)
  local indent, words = line:match("^(%s*)([%a_][%w_ ]*)[%s*]*$")
  if not words or no_types[words:match("^[%w_]+")] then return nil end
  if not words:find("%l") then return nil end -- a macro
  return #indent
end

local function begins_with_name(line, indent)
  local inner, name, rest = line:match("^(%s*)%**([%a_][%w_]*)(.*)$")
  if not inner or #inner < indent or name == "__attribute__" then return false end
  return rest:gsub("%b[]", ""):find("^%s*[;,=(:]") ~= nil
end

local function check(path)
  local number, is_fenced, in_comment, type_above = 0, false, false, nil
  for line in io.lines(path) do
    number = number + 1
    if line:find("clang-format off", 1, true) then is_fenced = true end
    local is_comment = in_comment or line:find("^%s*/%*")
    local most = is_comment and COMMENT or CODE
    if not is_fenced then
      if utf8.len(line) > most then offend(path, number, ("longer than %d columns"):format(most)) end
      if type_above and begins_with_name(line, type_above) then
        offend(path, number, "a declaration is torn from its type: put the comment above it, or shorten it")
      end
    end
    local open = line:match("^.*()/%*")
    if in_comment and line:find("*/", 1, true) then in_comment = false end
    if open and not line:find("*/", open, true) and not line:sub(1, open):find('"[^"]*$') then in_comment = true end
    type_above = not is_comment and indent_of_type(line)
    if line:find("clang-format on", 1, true) then is_fenced = false end
  end
end

local pipe = io.popen("find src tests/c -name '*.[ch]' | LC_ALL=C sort")
for path in pipe:lines() do check(path) end
pipe:close()
os.exit(offences == 0)
