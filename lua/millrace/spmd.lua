-- millrace --ranks N script.lua: runs the whole script once for each rank, as mpirun would.
--
-- The ranks share one Lua state. Each has global variables, modules and libraries' tables of its own; strings'
-- methods and millrace itself are shared.
local mr = require "millrace"
local fixed = require "millrace.fixed"

local load, loadfile = load, loadfile -- mr.explore puts others in their place, which ask for a file of the run

local function copy(table_)
  local result = {}
  for key, value in pairs(table_) do result[key] = value end
  return setmetatable(result, getmetatable(table_))
end

-- Modules of the script are loaded once for each rank; those that are there already are everybody's.
local function add_require(env, loaded)
  local function search(name)
    local loader = package.preload[name]
    if loader then return loader, ":preload:" end
    local path, why = package.searchpath(name, env.package.path)
    if path then return assert(loadfile(path, nil, env)), path end
    path = package.searchpath(name, env.package.cpath)
    if path then return function() return require(name) end, path end
    error(("module '%s' not found:%s"):format(name, why), 3)
  end

  function env.require(name)
    local value = loaded[name]
    if value ~= nil then return value end
    local loader, place = search(name)
    value = loader(name, place)
    if value ~= nil then loaded[name] = value
    elseif loaded[name] == nil then loaded[name] = true end
    return loaded[name], place
  end
end

-- Code that is loaded without an environment gets that of its rank.
local function add_loaders(env)
  function env.load(chunk, name, mode, ...)
    if select("#", ...) > 0 then return load(chunk, name, mode, ...) end
    return load(chunk, name, mode, env)
  end
  function env.loadfile(path, mode, ...)
    if select("#", ...) > 0 then return loadfile(path, mode, ...) end
    return loadfile(path, mode, env)
  end
  function env.dofile(path) return assert(loadfile(path, nil, env))() end
end

-- `globals`: those that mr.explore has put in the place of the usual ones; else _G.
local function environment(globals)
  local env = copy(_G)
  for key, value in pairs(globals) do env[key] = value end
  for _, name in ipairs{ "string", "table", "math", "io", "os", "utf8", "coroutine", "debug", "package", "arg" } do
    if type(env[name]) == "table" then env[name] = copy(env[name]) end
  end
  env._G = env
  local loaded = copy(package.loaded)
  for name in pairs(loaded) do
    if env[name] ~= nil then loaded[name] = env[name] end
  end
  loaded._G = env
  env.package.loaded = loaded
  add_require(env, loaded)
  add_loaders(env)
  return env
end

-- The chunk that runs `path`, or this text instead, on `count` ranks, with the arguments of the script.
local function new_chunk(path, count, text)
  local function run(...)
    local globals = _ENV -- first: mr.explore looks for the globals of a chunk in its first upvalue
    mr.dist.spawn(count, function(_, ...)
      local chunk, why
      if text then chunk, why = load(text, "@" .. path, "t", environment(globals))
      else chunk, why = loadfile(path, nil, environment(globals)) end
      if not chunk then error(why, 0) end
      return chunk(...)
    end, ...)
  end
  fixed.runs[run] = { path = path, with = function(with) return new_chunk(path, count, with) end }
  return run
end

return function(path, count) return new_chunk(path, count) end
