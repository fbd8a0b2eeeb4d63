-- Checks what the files under src/ export.
--
--     lua5.4 scripts/exports.lua [SRC [BUILD]]
--
-- Read from the object files of BUILD. A function or variable that only its own file uses is `static`, or is removed.
-- One that only tests use is removed, too: tests call what the program calls. A name that another folder uses begins
-- with `mr_`; a name without it is of its folder alone. Prints each offence, and exits with 1 if there is one.

local src, build = arg[1] or "src", arg[2] or "build"

-- For those who load the program or link it.
local entries = { main = true, luaopen_millrace = true }

local function lines_of(command)
  local pipe = assert(io.popen(command))
  local text = pipe:read("a")
  pipe:close()
  return text:gmatch("[^\n]+")
end

-- The files of this build: without CUDA those of src/cuda are not among them, and their objects may be old ones.
local stamp = assert(io.open(build .. "/files.stamp"), "build first")
local objects, is_built = {}, {}
for path in stamp:read("a"):gmatch("%S+") do
  local name = path:match("^src/(.+)%.c$")
  if name then
    is_built[path] = true
    objects[#objects + 1] = ("'%s/obj/src/%s.o'"):format(build, name)
  end
end
stamp:close()

local function folder_of(object)
  return object:match("/obj/src/([^/]+)/")
end

local defined, users = {}, {} -- symbol: its object; the set of other objects that take it
for line in lines_of("nm -A -g " .. table.concat(objects, " ")) do
  local object, kind, symbol = line:match("^(.-):[%x%s]* (%a) (%S+)$")
  if kind == "U" then
    users[symbol] = users[symbol] or {}
    users[symbol][object] = true
  elseif kind and kind:find("[TDBR]") then
    defined[symbol] = object
  end
end

-- Words of what is linked with the library, or made for it: benchmarks, the worker, generated tables, and the files of
-- src/ that this build leaves out.
local words = {}
local function take_words(path)
  for line in io.lines(path) do
    for word in line:gmatch("[%a_][%w_]+") do words[word] = true end
  end
end
local others = ("find scripts '%s/gen' -name '*.[ch]' -o -name '*.lua'"):format(build)
for path in lines_of(others .. " | LC_ALL=C sort") do take_words(path) end
for path in lines_of(("find '%s' -name '*.c' | LC_ALL=C sort"):format(src)) do
  if not is_built["src" .. path:sub(#src + 1)] then take_words(path) end
end

local offences = {}
for symbol, object in pairs(defined) do
  local folder = folder_of(object)
  local path = src .. "/" .. object:match("/obj/src/(.+)%.o$") .. ".c"
  if not entries[symbol] and not users[symbol] and not words[symbol] then
    offences[#offences + 1] = path .. ": nobody else uses " .. symbol .. ": make it static, or remove it"
  end
  for user in pairs(not symbol:find("^mr_") and users[symbol] or {}) do
    if folder_of(user) ~= folder then
      offences[#offences + 1] = ("%s: %s is used in %s, and has no prefix mr_"):format(path, symbol, folder_of(user))
    end
  end
end
table.sort(offences)
for _, text in ipairs(offences) do print(text) end
os.exit(#offences == 0)
