-- millrace --ranks N script.lua: runs the whole script once for each rank, as mpirun would. Likewise the code of -e.
--
-- The ranks share one Lua state. Each has global variables, modules and libraries' tables of its own; strings'
-- methods and millrace itself are shared.
local mr = require "millrace"
local fixed = require "millrace.fixed"
local exit = require "millrace.exit"
local let_load = require "millrace.loading"

-- mr.explore puts others in their place; its loadfile asks for a file of the run.
local usual, loadfile = _G, loadfile

local function copy(table_)
  local result = {}
  for key, value in pairs(table_) do result[key] = value end
  return setmetatable(result, getmetatable(table_))
end

-- `globals`: those that mr.explore has put in the place of the usual ones; else _G.
local function environment(globals, new_random)
  local env = copy(_G)
  for key, value in pairs(globals) do env[key] = value end
  for _, name in ipairs{ "string", "table", "math", "io", "os", "utf8", "coroutine", "debug", "package", "arg" } do
    if type(env[name]) == "table" then env[name] = copy(env[name]) end
  end
  env._G = env
  -- Modules of the script are loaded once for each rank; those loaded earlier are shared by all ranks.
  local loaded = copy(globals.package.loaded)
  for name in pairs(loaded) do
    if env[name] ~= nil then loaded[name] = env[name] end
  end
  loaded._G = env
  env.package.preload = copy(env.package.preload)
  let_load(env, { load = globals.load, loadfile = globals.loadfile, require = globals.require,
                  find = globals.package.searchpath }, loaded)
  -- Numbers are each rank's own, as a process's are. The functions of mr.explore there know ranks.
  if globals == usual then
    env.math.random, env.math.randomseed = new_random()
    env.math.randomseed(math.random(0), mr.dist.rank())
  end
  return env
end

-- os.exit ends the rank that calls it, as the end of its script does, and statuses[rank] is its status.
local function let_exit(env, statuses, rank)
  function env.os.exit(code)
    statuses[rank] = exit.status_of(code) or error("os.exit: expected a whole number or a boolean", 2)
    error("os.exit", 0)
  end
  exit.let_through(env, function() return statuses[rank] ~= nil end)
end

-- The results of a piece, without an error if it has called os.exit. Allocates no memory, since the collector could
-- free the piece's garbage.
local function finish(statuses, rank, did_well, ...)
  if did_well then return ... end
  if not statuses[rank] then error((...), 0) end
end

-- Ends the script with the first status that is not 0, in the order of the ranks.
local function leave_with(statuses, count)
  for rank = 0, count - 1 do
    if (statuses[rank] or 0) ~= 0 then os.exit(statuses[rank]) end
  end
end

local function load_piece(piece, env)
  local chunk, why
  if piece.text then chunk, why = load(piece.text, piece.path and "@" .. piece.path or piece.name, "t", env)
  else chunk, why = loadfile(piece.path, nil, env) end
  return chunk or error(why, 0)
end

-- The chunk that runs the pieces one after the other on `count` ranks, with the arguments of the script.
local function new_chunk(pieces, count, new_random)
  local last = pieces[#pieces]
  local function run(...)
    local globals = _ENV -- first: mr.explore looks for the globals of a chunk in its first upvalue
    local statuses = {}
    mr.dist.spawn(count, function(rank, ...)
      local env = environment(globals, new_random)
      let_exit(env, statuses, rank)
      for i = 1, #pieces - 1 do
        finish(statuses, rank, pcall(load_piece(pieces[i], env)))
        if statuses[rank] then return nil end
      end
      return finish(statuses, rank, pcall(load_piece(last, env), ...))
    end, ...)
    leave_with(statuses, count)
  end
  if last.path then
    local function with(text)
      local changed = table.move(pieces, 1, #pieces, 1, {})
      changed[#pieces] = { path = last.path, text = text }
      return new_chunk(changed, count, new_random)
    end
    fixed.runs[run] = { path = last.path, of_ranks = true, with = with }
  end
  return run
end

-- `new_random()` -> math.random and math.randomseed with a generator of their own. `pieces`: {name=, text=}, or {path=}
-- for a file, with `text` if it is known.
return function(pieces, count, new_random) return new_chunk(pieces, count, new_random) end
