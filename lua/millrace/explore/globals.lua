-- The globals of one run of a script whose schedules are explored. Its output is collected, and no run sees values that
-- another one has set. Code that the script loads by load, dofile and require gets these globals, too.
local apart = require "millrace.explore.apart"
local watch = require "millrace.explore.watch"
local let_load = require "millrace.loading"

-- Libraries; script.lua and outside.lua make `io` and `os`.
local COPIED = { "math", "coroutine", "package" }

return function(tools)
  local new = {}

  local function copy(of)
    local fresh = {}
    for name, value in next, of do fresh[name] = value end
    return fresh
  end

  local writes_short -- whether io.write of this Lua writes 3.0 as "3"; nil: not known yet

  local function learn_numbers()
    if writes_short ~= nil then return end
    local file = assert(io.tmpfile())
    file:write(3.0)
    file:seek("set")
    writes_short = file:read("a") == "3"
    file:close()
  end

  -- A standard stream as a table: output is passed to `add`, all other methods are the file's.
  local function new_stream(file, add)
    local stream = setmetatable({}, { __index = function(_, name)
      local method = file[name]
      return type(method) == "function" and function(_, ...) return method(file, ...) end or method
    end, __tostring = function() return tostring(file) end, __name = "FILE*" })
    function stream.write(self, ...) return tools.write_values(add, writes_short, self, ...) end
    return stream
  end

  local function new_io(add)
    learn_numbers()
    local stdout, stderr = new_stream(io.stdout, add), new_stream(io.stderr, add)
    local fresh = setmetatable({ stdout = stdout, stderr = stderr }, { __index = io })
    function fresh.output(...)
      if select("#", ...) == 0 and io.output() == io.stdout then return stdout end
      if ... == stdout then return io.output(io.stdout) and stdout end
      return io.output(...)
    end
    function fresh.write(...)
      if io.output() ~= io.stdout then return io.write(...) end
      return stdout:write(...)
    end
    function fresh.type(value)
      return (value == stdout or value == stderr) and "file" or io.type(value)
    end
    return fresh
  end

  -- Every run draws the same numbers. Each rank of a whole script (`of_ranks`) has a generator of its own, as a process
  -- has; else all share one. `note(name)`: the script read a value that differs in each run.
  local function draw_from_one_seed(fresh, note, of_ranks)
    local generators = {}
    local function generator()
      local rank = of_ranks and tools.rank() or -1
      local g = generators[rank]
      if not g then
        g = {}
        g.random, g.randomseed = tools.new_random()
        g.randomseed(0, rank)
        generators[rank] = g
      end
      return g
    end
    for _, name in ipairs { "random", "randomseed" } do
      fresh[name] = function(...)
        if not of_ranks then apart.ask() end
        note("math." .. name)
        if name == "randomseed" and select("#", ...) == 0 then return generator().randomseed(0) end
        return generator()[name](...)
      end
    end
  end

  new.let_exit_through = require "millrace.exit".let_through

  -- Warnings are printed, from warn("@on") to warn("@off").
  local function new_warn(add)
    local is_on = false
    return function(...)
      local text = table.concat({ ... })
      if select("#", ...) == 1 and text:find("^@") then
        if text == "@on" then is_on = true elseif text == "@off" then is_on = false end
      elseif is_on then add("Lua warning: " .. text .. "\n") end
    end
  end

  -- ---------------------------------------------------------------- code that the script loads

  local function replace(text, what, with)
    return (text:gsub(what:gsub("%p", "%%%0"), (with:gsub("%%", "%%%%"))))
  end

  -- package.searchpath with the files of the run.
  local function new_search(open)
    return function(name, path, separator, directory)
      local part, tried = replace(name, separator or ".", directory or "/"), {}
      for template in path:gmatch("[^;]+") do
        local candidate = replace(template, "?", part)
        local file = open(candidate, "rb")
        if file then
          file:close()
          return candidate
        end
        tried[#tried + 1] = ("no file '%s'"):format(candidate)
      end
      return nil, table.concat(tried, "\n\t")
    end
  end

  -- As loadfile, with the files of the run.
  local function load_text(path, mode, env, globals, open)
    local file, message = globals.io.stdin, nil
    if path ~= nil then file, message = open(path, "rb") end
    if not file then return nil, "cannot open " .. message end
    local text = file:read("a")
    if path ~= nil then file:close() end
    text = text:gsub("^#[^\n]*", "") -- as the first line of a program that a shell starts
    return load(text, path and "@" .. path or "=stdin", mode, env)
  end

  -- `open`: io.open, as the run has it. Modules in Lua are loaded anew in each run. Those of C, and millrace's own, are
  -- the process's.
  function new.let_load(globals, open)
    if not (load and loadfile and package and package.path and globals.io) then return end
    local loaded = copy(package.loaded)
    for name, value in next, globals do
      if package.loaded[name] ~= nil and type(value) == "table" then loaded[name] = value end
    end
    loaded._G = globals
    watch.add_module_list(loaded)
    globals.package.preload = copy(package.preload)
    globals.package.searchpath = new_search(open)
    let_load(globals, {
      load = load, require = require,
      loadfile = function(path, mode, env) return load_text(path, mode, env, globals, open) end,
      find = globals.package.searchpath,
    }, loaded)
  end

  -- ---------------------------------------------------------------- one run

  -- `printed.add(text)`: what the script prints; `note(name)`, `of_ranks` as above.
  function new.globals(printed, note, of_ranks)
    local globals = copy(_G)
    globals._G = globals
    for _, name in ipairs(COPIED) do globals[name] = globals[name] and copy(globals[name]) end
    if io then globals.io = new_io(printed.add) end
    if warn then globals.warn = new_warn(printed.add) end
    draw_from_one_seed(globals.math, note, of_ranks)
    return globals
  end

  return new
end
