-- Whether a reader of commands is told of a new kind. A copy of command.h gets one more kind in each list, and a copy
-- of explore/order.h one more class of items. Then the compiler must complain of each switch over kinds, unless the
-- switch takes the kinds of that list from the list. A `default`, or a switch over a plain integer, hides the kind.
--
-- A test for one kind may stand anywhere. A test for one of several kinds is a property without a name, and a chain of
-- `else if` over kinds is a switch that no compiler checks. Such a property is a column of the list in command.h, or a
-- switch.
-- Prints each offence, exits with 1 if any.
--
--     lua5.4 scripts/kinds.lua [SRC [BUILD]]
local src, build = arg[1] or "src", arg[2] or "build"
local LISTS = { "SUBMITTED", "HOST", "OBJECT", "MACHINE" }
local HOLDERS = { SUBMITTED = { "COMMAND" }, HOST = { "COMMAND" },
  OBJECT = { "ACCOUNT", "COMMAND" }, MACHINE = { "ACCOUNT", "COMMAND" } }

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end

local function lines_of(command)
  local pipe = assert(io.popen(command))
  local text = pipe:read "a"
  pipe:close()
  return text:gmatch "[^\n]+"
end

local function exists(path)
  local file = io.open(path, "rb")
  if file then file:close() end
  return file ~= nil
end

-- The compiler of the build, and what its preprocessor needs.
local stamp = read(build .. "/flags.stamp")
local CC, FLAGS = stamp:match "^%S+", {}
for flag in stamp:gmatch "%s(%-[DI]%S+)" do
  if flag ~= "-Isrc" then FLAGS[#FLAGS + 1] = flag end
end
local CUDA = (os.getenv "CUDA_HOME" or "/usr/local/cuda") .. "/include"
FLAGS[#FLAGS + 1] = ("-isystem '%s'"):format(CUDA)
local has_cuda = exists(CUDA .. "/cuda.h") or not stamp:find "MR_HAVE_CUDA=0"

-- ---------------------------------------------------------------- the changed headers

local folder = os.tmpname()
os.remove(folder)

local function change(header, edit)
  local text = edit(read(src .. "/" .. header))
  assert(os.execute(("mkdir -p '%s/%s'"):format(folder, header:match "(.*)/")))
  local file = assert(io.open(folder .. "/" .. header, "wb"))
  file:write(text)
  file:close()
end

change("model/command.h", function(text)
  for _, list in ipairs(LISTS) do
    local count
    text, count = text:gsub("(#define MR_" .. list .. "_LIST%(X%)[^\n]*\n)", function(head)
      return ('%s    X(NEW_%s, "new", %s, NONE, NOTHING) \\\n'):format(head, list,
        list == "SUBMITTED" and "SUBMITTED" or "NONE")
    end)
    assert(count == 1, "no list " .. list)
  end
  return text
end)
change("explore/order.h", function(text)
  local changed, count = text:gsub("(    ITEM_PLAIN,)", "    ITEM_NEW,\n%1")
  assert(count == 1, "no classes of items")
  return changed
end)

-- ---------------------------------------------------------------- the switches

-- Without comments, texts and the blocks of switches inside; as long as before.
local function blank(text)
  local function spaces(s) return (s:gsub("[^\n]", " ")) end
  text = text:gsub("/%*.-%*/", spaces):gsub('"[^"\n]*"', spaces)
  return text
end

local function switches_of(text)
  local found = {}
  text = blank(text)
  for at, subject, body in text:gmatch "()switch (%b()) (%b{})" do
    local _, line = text:sub(1, at):gsub("\n", "")
    found[#found + 1] = { line = line + 1, subject = subject, body = body }
  end
  return found
end

-- The switches inside of one are found by the same search, in its body.
local function all_switches_of(text)
  local all = {}
  local function add(list, first)
    for _, s in ipairs(list) do
      s.line = s.line + first
      all[#all + 1] = s
      local inner = s.body:sub(2)
      local _, head = s.subject:gsub("\n", "")
      add(switches_of(inner), s.line - 1 + head)
      s.own = inner:gsub("switch %b() %b{}", "")
    end
  end
  add(switches_of(text), 0)
  return all
end

-- The kinds that the compiler must miss in it.
local function missed_by(switch)
  local missed = {}
  if switch.own:find "case ITEM_" then missed[#missed + 1] = "ITEM_NEW" end
  if not switch.own:find "case MR_COMMAND_" and not switch.own:find "_LIST%(MR_COMMAND_CASE%)" then return missed end
  for _, list in ipairs(LISTS) do
    local taken = switch.own:find("MR_" .. list .. "_LIST(MR_COMMAND_CASE)", 1, true)
    for _, holder in ipairs(HOLDERS[list]) do
      taken = taken or switch.own:find("MR_" .. holder .. "_LIST(MR_COMMAND_CASE)", 1, true)
    end
    if not taken then missed[#missed + 1] = "MR_COMMAND_NEW_" .. list end
  end
  return missed
end

-- ---------------------------------------------------------------- tests for one of several kinds

-- The kinds that each subject is compared with in a piece of code: {[subject .. operator] = {kind = true, count = n}}.
local function compared_in(code)
  local found = {}
  for subject, operator, kind in code:gmatch "([%w_%.%->%[%]%(%)]+) ([=!]=)%s+MR_COMMAND_([A-Z_]+)" do
    local key = subject:gsub("^[%(!]+", "") .. " " .. operator
    local kinds = found[key] or { count = 0 }
    found[key] = kinds
    if not kinds[kind] then kinds.count = kinds.count + 1 end
    kinds[kind] = true
  end
  return found
end

local function line_at(text, at)
  local _, line = text:sub(1, at):gsub("\n", "")
  return line + 1
end

-- Lines of statements that compare one subject with several kinds.
local function disjunctions_of(text, tell)
  for at, statement in text:gmatch "()([^;{}]+)" do
    for key, kinds in pairs(compared_in(statement)) do
      if kinds.count > 1 then tell(line_at(text, at + #statement:match "^%s*"), key:match "%S+") end
    end
  end
end

-- Lines of an `else if` that asks for another kind than the `if` before it.
local function chains_of(text, tell)
  local before = {}
  for at, word, condition in text:gmatch "()([%w_]*) ?if (%b())" do
    local now = compared_in(condition)
    for key, kinds in pairs(now) do
      local is_other = false
      for kind in pairs(before[key] or {}) do is_other = is_other or not kinds[kind] end
      if word == "else" and is_other then tell(line_at(text, at), key:match "%S+") end
    end
    before = now
  end
end

-- ---------------------------------------------------------------- each file

local offences, count, files = 0, 0, 0

local function check(path)
  local wanted, text = {}, blank(read(path))
  local function tell(line, subject)
    offences = offences + 1
    print(("%s:%d: %s is one of several kinds: a column of MR_COMMAND_LIST, or a switch, says which"):format(path, line,
      subject))
  end
  disjunctions_of(text, tell)
  chains_of(text, tell)
  for _, switch in ipairs(all_switches_of(text)) do
    local missed = missed_by(switch)
    if #missed > 0 then wanted[#wanted + 1] = { line = switch.line, missed = missed } end
  end
  if #wanted == 0 then return end
  files, count = files + 1, count + #wanted
  local told = {}
  local command = ("%s -std=c11 -fsyntax-only -fno-diagnostics-color -Wswitch -I'%s' -I'%s' %s '%s' 2>&1")
  for line in lines_of(command:format(CC, folder, src, table.concat(FLAGS, " "), path)) do
    local number, rest = line:match "^[^:]+:(%d+):%d+: warning: (.*)"
    for name in (rest or ""):gmatch "[A-Z_]+NEW[A-Z_]*" do told[number .. name] = true end
    if line:find ": error: " or line:find ": fatal error: " then told.error = line end
  end
  if told.error then
    offences = offences + 1
    print(told.error)
    return
  end
  for _, switch in ipairs(wanted) do
    for _, name in ipairs(switch.missed) do
      if not told[switch.line .. name] then
        offences = offences + 1
        print(("%s:%d: the compiler does not tell this switch of a new kind (%s)"):format(path, switch.line, name))
      end
    end
  end
end

for path in lines_of(("grep -lrE '(MR_COMMAND|ITEM)_' '%s' --include='*.[ch]' | LC_ALL=C sort"):format(src)) do
  if has_cuda or not path:find("/cuda/", 1, true) then check(path) end
end
os.execute(("rm -rf '%s'"):format(folder))
if offences > 0 then os.exit(false) end
print(("%d switches over kinds in %d files name each kind"):format(count, files))
