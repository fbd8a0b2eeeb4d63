-- Checks includes and calls between files under src/ (docs/design.md, "The parts, and the allowed includes"), and
-- `require` under lua/millrace. Also checks which types a folder declares that another one defines, and that no two
-- files define a type of one name.
--
--     lua5.4 scripts/layers.lua [SRC [BUILD [LUA]]]
--
-- Calls are read from the object files of BUILD: a symbol that an object takes from another. A table counts as a
-- function does. Prints each offence, and exits with 1 if there is one.

local src, build = arg[1] or "src", arg[2] or "build"

-- A room is a folder inside a folder; all others inside a folder belong to it.
local ptx = { "ptx", "ptx/read", "ptx/access", "ptx/watch", "ptx/run", "ptx/decode" }

-- Headers; bodies; the user's kernels as bodies; the table of all of them, and launches; calls.
local ops = { "ops", "ops/body", "ops/kernel", "ops/table", "ops/call" }
-- The checker's headers and what all of its rooms read; what runs for every command; what runs for a report; the list.
local hazard = { "hazard", "hazard/find", "hazard/explain", "hazard/reports" }
-- What records, asks and writes a trace meets in the headers of `trace`.
local trace = { "trace", "trace/record", "trace/analysis", "trace/draw", "trace/terminal", "trace/picture",
                "trace/write" }
-- What texts say; results on disk; compilers, and the program in which one runs; the call that puts them together.
local compile = { "compile", "compile/text", "compile/cache", "compile/compiler", "compile/call" }
local rooms_of_bind = { "bind", "bind/ranks", "bind/hazard", "bind/nn", "bind/ops", "bind/tensor", "bind/machine",
                        "bind/kernel", "bind/graph", "bind/trace", "bind/explore", "bind/module" }

local function with(list, ...)
  return table.move(list, 1, #list, 1 + select("#", ...), { ... })
end

local below_ops = with(ptx, "base", "model", "tensor")
local below_backends = with(below_ops, "order", table.unpack(ops))
local up_to_ops = with(ops, "base", "model", "tensor")
local below_checker = with(up_to_ops, "order")
local above_checker = with(hazard, table.unpack(with(below_checker, "program")))
local below_trace = with(below_checker, "program")
local below_bind = with(ptx, table.unpack(with(above_checker, "graph", "script", "explore", "waits", "files",
                                               "collective", table.unpack(with(trace, table.unpack(compile))))))
local below_repl = with(below_bind, table.unpack(rooms_of_bind))

-- A room of a folder may include all that is below the folder, what its files share, and these other rooms.
local function rooms_of(folder, below)
  return function(...)
    local list = { folder }
    for _, room in ipairs { ... } do list[#list + 1] = folder .. "/" .. room end
    return with(below, table.unpack(list))
  end
end
local bind = rooms_of("bind", below_bind)
local traces = rooms_of("trace", below_trace)
local cuda = rooms_of("cuda", with(below_backends, "cuda/kernels"))

-- Folder: the folders that it may include and call, besides itself.
local may_include = {
  base    = {},
  model   = { "base" },
  tensor  = { "base", "model" },
  -- From the text of a module to a launch: read, then (by what the module is) access and watch, run, decode.
  ["ptx/read"]   = { "base" },
  ["ptx/access"] = { "base", "ptx/read" },
  ptx            = { "base", "ptx/read", "ptx/access" },
  ["ptx/watch"]  = { "base", "ptx/read", "ptx" },
  ["ptx/run"]    = { "base", "ptx/read", "ptx", "ptx/access", "ptx/watch" },
  ["ptx/decode"] = { "base", "ptx/read", "ptx", "ptx/access", "ptx/watch", "ptx/run" },
  ops     = below_ops,
  ["ops/body"]   = with(below_ops, "ops"),
  ["ops/kernel"] = with(below_ops, "ops"),
  ["ops/table"]  = with(below_ops, "ops", "ops/body", "ops/kernel"),
  ["ops/call"]   = with(below_ops, table.unpack(ops)),
  virtual = below_backends,
  -- In `cuda` itself are the driver, contexts and errors. A wait takes back what it finds done. Streams, events, memory
  -- and collectives are objects. `backend` opens the machine, and carries its commands out by all of them.
  ["cuda/kernels"] = { "base", "ops" },
  cuda    = with(below_backends, "cuda/kernels"),
  ["cuda/wait"]    = cuda(),
  ["cuda/launch"]  = cuda("wait"),
  ["cuda/family"]  = cuda("wait", "launch"),
  ["cuda/objects"] = cuda("wait", "launch"),
  ["cuda/graph"]   = cuda("wait", "launch", "family", "objects"),
  ["cuda/runs"]    = cuda("wait"),
  ["cuda/backend"] = cuda("wait", "launch", "family", "objects", "graph", "runs"),
  null    = { "base", "model" },
  program = with(up_to_ops, "null"),
  order   = { "base", "model", "tensor" },
  collective = up_to_ops,
  mpi     = { "collective" },
  hazard  = below_checker,
  ["hazard/reports"] = with(below_checker, "hazard"),
  ["hazard/explain"] = with(below_checker, "hazard", "hazard/reports"),
  ["hazard/find"]    = with(below_checker, "hazard", "hazard/explain", "hazard/reports"),
  graph   = up_to_ops,
  compile = { "base" },
  ["compile/text"]     = { "base", "compile" },
  ["compile/cache"]    = { "base", "compile", "compile/text" },
  ["compile/compiler"] = { "base", "compile", "compile/text" },
  ["compile/worker"]   = { "base", "compile" },
  ["compile/call"]     = { "base", table.unpack(compile) },
  files   = { "base", "model", "tensor" },
  script  = { "base" },
  explore = above_checker,
  waits   = above_checker,
  -- In `trace` itself are traces, the order of their spans, and edits. `draw` has what all writers share.
  trace   = below_trace,
  ["trace/record"]   = traces(),
  ["trace/analysis"] = traces(),
  ["trace/draw"]     = traces(),
  ["trace/terminal"] = traces("draw"),
  ["trace/picture"]  = traces("draw"),
  ["trace/write"]    = traces("draw", "picture"),
  -- In `bind` itself is what all of its rooms need: callers, arguments, userdata, errors. `module` opens them all.
  bind    = below_bind,
  ["bind/ranks"]   = bind(),
  ["bind/hazard"]  = bind("ranks"),
  ["bind/nn"]      = bind("ranks"),
  ["bind/ops"]     = bind("nn"),
  ["bind/tensor"]  = bind("ops", "nn", "hazard"),
  ["bind/machine"] = bind("tensor", "ops", "hazard"),
  ["bind/kernel"]  = bind("ops", "hazard"),
  ["bind/graph"]   = bind("ranks", "machine"),
  ["bind/trace"]   = bind("hazard"),
  ["bind/explore"] = bind("graph", "hazard", "ranks", "trace"),
  ["bind/module"]  = with(below_bind, table.unpack(rooms_of_bind)),
  repl    = below_repl,
  host    = with(below_repl, "repl", "virtual", "cuda", "cuda/backend"),
}

-- Types only: the checker's reports name places of `script`.
local may_only_include = { hazard = { "script" } }

-- Inside a folder calls go one way, too. These files still call each other in a circle; the lists may only get shorter.
local circles = {
  -- Objects that refer to each other: closing a stream is a command, and a command holds its stream.
  model = { "command", "device", "event", "machine", "storage", "stream", "tensor" },
  -- A function that runs is judged by the clocks, and the clocks let its past go. A report that is found holds back an
  -- earlier one, which is published later. Memory that nothing has written is reported, too.
  ["hazard/find"] = { "advice", "function", "history", "merge", "order", "report", "unset" },
  -- Objects that refer to each other: a clique holds a split that is under way, which holds the communicators it made.
  collective = { "comm", "split" },
  -- A search goes on with a child in the middle of itself, and makes a player that the budget has taken back again.
  explore = { "branch", "budget", "carry", "place", "search" },
}

-- A type that a folder declares without its members, and that is defined where the folder may not include. Each is one
-- pointer that the lower folder passes on without looking behind it.
local may_declare = {
  model = {
    mr_op = "A command names its row of the operation table; bodies and costs are the backends' to ask for.",
    mr_kernel_code = "A backend loads the code of a user's kernel, which the model only hands to it.",
    mr_checkpoint = "Only the simulator that made a checkpoint can look into it.",
  },
  ptx = {
    mr_ptx_watch = "A launch hands its watch on to the interpreter; who starts a launch knows nothing of its state.",
    mr_ptx_profile = "Likewise the counts of a launch.",
    ptx_warp = "The code of a lane is a function over a warp, and the code is made before there are warps.",
    ptx_reach = "Likewise over what a lane can reach in memory.",
  },
}

-- Modules of lua/millrace must not require each other in a circle. The parts of the prompt do not count: each loads
-- another (tools.require) when a person first uses it.
--
-- Modules inside a folder belong to the module of the folder's name. Others that require them:
local may_require = {
  ["derivatives > autograd.helpers"] = "A row of a derivative is a program over the helpers; autograd runs it.",
  ["derivatives > autograd.network"] = "The rows of networks are a part of the table, in a file of their own.",
  ["prompt.lessons > learn.course"] = "`:lesson` opens the course of `millrace learn`, without its session.",
  ["prompt.lessons > learn.grader"] = "It grades what was typed as `millrace learn` grades a file.",
  ["prompt.lessons > learn.progress"] = "It notes what was passed where `millrace learn` notes it.",
  ["elementwise > autograd.helpers"] = "It sums a gradient to a broadcast shape, as the derivatives do.",
}

local is_lua_header = { ["lua.h"] = true, ["lauxlib.h"] = true, ["lualib.h"] = true, ["lua.hpp"] = true }
local may_see_lua = { bind = true, repl = true, host = true }

-- The folder that a room is in.
local function outer(folder)
  return folder:match("^[^/]+")
end

local allowed = {}
for folder, list in pairs(may_include) do
  allowed[folder] = { [folder] = true }
  for _, name in ipairs(list) do allowed[folder][name] = true end
end

-- The folder that the file at `path` (from src/) belongs to, and its name in it: the room where there is one. Files
-- further below (programs of their own, headers for kernels) belong to the folder, without a name.
local function place_of(path)
  local room, file = path:match("^([^/]+/[^/]+)/([^/]+)$")
  if may_include[room] then return room, file end
  return path:match("^([^/]+)/([^/]*)$") or path:match("^([^/]+)/"), path:match("^[^/]+/([^/]+)$")
end

local offences = 0
local function offend(where, text)
  offences = offences + 1
  print(where .. ": " .. text)
end

-- The lists themselves must have no circle: from a folder no list leads back to it.
local function check_lists()
  local below = {} -- of a folder: all that it may include, at any distance
  for folder in pairs(may_include) do
    local reached, todo = {}, { folder }
    while #todo > 0 do
      for name in pairs(allowed[table.remove(todo)] or {}) do
        if not reached[name] and name ~= folder then
          reached[name] = true
          todo[#todo + 1] = name
        end
      end
    end
    below[folder] = reached
  end
  for folder in pairs(may_include) do
    for name in pairs(allowed[folder]) do
      if not below[name] then
        offend(folder, name .. " is no folder of the design")
      elseif below[name][folder] then
        offend(folder, "may include " .. name .. ", which leads back to it")
      end
    end
  end
end

local function lines_of(command)
  local pipe, lines = io.popen(command), {}
  for line in pipe:lines() do lines[#lines + 1] = line end
  pipe:close()
  return ipairs(lines)
end

---- includes

-- The problem of a file of `folder` that includes `name`; nil if there is none.
local function problem(folder, name, is_quoted)
  if is_lua_header[name] then
    return not may_see_lua[outer(folder)] and "only bind, repl and host include " .. name or nil
  end
  if not is_quoted then return nil end
  if name:find("..", 1, true) then return "include by the path from src/, without '..'" end
  local target = place_of(name)
  if not target then return 'include by the path from src/: "' .. folder .. "/" .. name .. '"' end
  if not may_include[target] then return target .. " is no folder of the design" end
  for _, one in ipairs(may_only_include[folder] or {}) do
    if one == target then return nil end
  end
  if not allowed[folder][target] then return folder .. " may not include " .. target end
  return nil
end

local function check_includes(path, folder)
  local number = 0
  for line in io.lines(path) do
    number = number + 1
    local open, name = line:match('^%s*#%s*include%s*([<"])([^>"]+)')
    local text = name and problem(folder, name, open == '"')
    if text then offend(path .. ":" .. number, text) end
  end
end

---- names of types: `mr_x` and `ptx_x` mean one thing in the whole tree

local defined_in = {} -- name of a type: the file that defines it

local function check_types(path, text)
  local function define(name)
    if not name:find("^mr_") and not name:find("^ptx_") then return end
    if defined_in[name] then offend(path, ("%s is a type of %s, too"):format(name, defined_in[name])) end
    defined_in[name] = path
  end
  for name in text:gmatch("\ntypedef [^;{]-%b{}%s*([%w_]+);") do define(name) end
  for name in text:gmatch("\nstruct ([%w_]+) {") do define(name) end
end

---- types that are only declared

local declared = {} -- { path, folder, name }

local function note_declared(path, folder, text)
  for name in text:gmatch("\ntypedef struct ([%w_]+) [%w_]+;") do
    declared[#declared + 1] = { path = path, folder = folder, name = name }
  end
  for name in text:gmatch("\nstruct ([%w_]+);") do
    declared[#declared + 1] = { path = path, folder = folder, name = name }
  end
end

local function check_declared()
  local used = {}
  for _, d in ipairs(declared) do
    local definer = defined_in[d.name]
    local target = definer and place_of(definer:sub(#src + 2))
    local excuse = (may_declare[d.folder] or {})[d.name]
    if target and not allowed[d.folder][target] then
      used[d.folder .. "/" .. d.name] = true
      if not excuse then
        offend(d.path, ("declares %s, which %s defines: %s may not include it"):format(d.name, definer, d.folder))
      end
    end
  end
  for folder, names in pairs(may_declare) do
    for name in pairs(names) do
      if not used[folder .. "/" .. name] then
        offend(src .. "/" .. folder, "declares no " .. name .. " any more: remove it from scripts/layers.lua")
      end
    end
  end
end

local sources = {} -- of objects: { path, folder, name }
local kinds = "-name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.inc'"
for _, path in lines_of(("find '%s' -type f '(' %s ')' | LC_ALL=C sort"):format(src, kinds)) do
  local folder, file = place_of(path:sub(#src + 2))
  local name = file and file:match("^(.*)%.c$")
  if not allowed[folder] then
    offend(path, "its folder is not one of the design's")
  else
    check_includes(path, folder)
    local file_of_types <close> = assert(io.open(path))
    local text = file_of_types:read("a"):gsub("/%*.-%*/", "")
    check_types(path, text)
    note_declared(path, folder, text)
    if name then sources[#sources + 1] = { path = path, folder = folder, name = name } end
  end
end

---- calls

-- The files of this build: without CUDA those of src/cuda are not among them, and their objects may be old ones.
local stamp = io.open(build .. "/files.stamp")
local built = {}
for path in (stamp and stamp:read("a") or ""):gmatch("%S+") do built[path] = true end
if stamp then stamp:close() else offend(build, "no files.stamp: build first") end

local of_object, objects = {}, {} -- object: its source; what nm reads
for _, source in ipairs(sources) do
  local object = ("%s/obj/src/%s/%s.o"):format(build, source.folder, source.name)
  source.is_built = built[("src/%s/%s.c"):format(source.folder, source.name)]
  if source.is_built then
    source.taken = {}
    of_object[object] = source
    objects[#objects + 1] = "'" .. object .. "'"
  end
end

local of_symbol, complete = {}, {} -- symbol: the source that defines it; folder: all its objects are there
for _, source in ipairs(sources) do
  complete[source.folder] = complete[source.folder] ~= false and source.is_built or false
end
for _, line in lines_of("nm -A " .. table.concat(objects, " ")) do
  local object, kind, symbol = line:match("^(.-):[%x%s]* (%a) (%S+)$")
  if kind == "U" then
    table.insert(of_object[object].taken, symbol)
  elseif kind and kind:find("[TDBRVW]") then
    of_symbol[symbol] = of_object[object]
  end
end

for _, source in ipairs(sources) do
  source.calls = {} -- sources of the same folder
  for _, symbol in ipairs(source.taken or {}) do
    local target = of_symbol[symbol]
    if symbol:find("^lua_") or symbol:find("^luaL_") then
      if not may_see_lua[outer(source.folder)] then
        offend(source.path, "only bind, repl and host call Lua: " .. symbol)
      end
    elseif target and target.folder == source.folder then
      source.calls[target] = source.calls[target] or symbol
    elseif target and not allowed[source.folder][target.folder] then
      offend(source.path, ("%s may not call %s: %s"):format(source.folder, target.folder, symbol))
    end
  end
end

---- circles: sets of files of one folder of which each can reach each by calls

local function reach(from)
  local reached, todo = {}, { from }
  while #todo > 0 do
    for target in pairs(table.remove(todo).calls) do
      if not reached[target] then
        reached[target] = true
        todo[#todo + 1] = target
      end
    end
  end
  return reached
end

local may_circle = {}
for folder, names in pairs(circles) do
  for _, name in ipairs(names) do may_circle[folder .. "/" .. name] = true end
end

for _, source in ipairs(sources) do source.reached = reach(source) end
for _, source in ipairs(sources) do
  local key = source.folder .. "/" .. source.name
  if source.reached[source] and not may_circle[key] then
    for target, symbol in pairs(source.calls) do
      if target.reached[source] then
        offend(source.path, ("calls in a circle: it calls %s.c (%s), which leads back"):format(target.name, symbol))
      end
    end
  elseif not source.reached[source] and may_circle[key] and complete[source.folder] then
    offend(source.path, "calls in no circle any more: remove it from the list in scripts/layers.lua")
  end
  may_circle[key] = nil
end
for key in pairs(may_circle) do
  offend(src .. "/" .. key .. ".c", "is no file: remove it from the list in scripts/layers.lua")
end
---- modules of lua/millrace

-- "explore/options.lua" is the module "explore.options", of the family "explore".
local function family_of(module)
  return module:match("^([^.]+)")
end

local function check_requires(root)
  local modules, used = {}, {}
  for _, path in lines_of(("find '%s' -name '*.lua' | LC_ALL=C sort"):format(root)) do
    local name = path:sub(#root + 2, -5):gsub("/", ".")
    local file <close> = assert(io.open(path))
    modules[name] = { path = path, calls = {}, text = "\n" .. file:read("a"):gsub("%-%-[^\n]*", "") }
  end
  for name, module in pairs(modules) do
    for required in module.text:gmatch("[^%w_.]require%s*%(?%s*[\"']millrace%.([%w_.]+)[\"']") do
      local edge = name .. " > " .. required
      if not modules[required] then
        offend(module.path, "requires a module that is not there: millrace." .. required)
      else
        module.calls[modules[required]] = required
        if required:find(".", 1, true) and family_of(required) ~= family_of(name) then
          used[edge] = true
          if not may_require[edge] then
            local owner = family_of(required)
            offend(module.path, ("millrace.%s is a part of millrace.%s: require that"):format(required, owner))
          end
        end
      end
    end
  end
  for edge in pairs(may_require) do
    if not used[edge] then offend(root, edge .. ": no more, so remove it from scripts/layers.lua") end
  end
  for name, module in pairs(modules) do
    if reach(module)[module] then offend(module.path, "millrace." .. name .. " requires itself, by other modules") end
  end
end

check_lists()
check_declared()
check_requires(arg[3] or "lua/millrace")
os.exit(offences == 0)
