-- The globals of one run of a script whose schedules are explored. What it prints is collected, and no run finds what
-- another one has set. Code that the script loads gets them, too: by load, dofile and require.
local apart = require "millrace.explore.apart"

local unpack = table.unpack

-- Libraries; script.lua and outside.lua make `io` and `os`.
local COPIED = { "math", "coroutine", "package" }

return function(tools)
  local new = {}

  local function copy(of)
    local fresh = {}
    for name, value in next, of do fresh[name] = value end
    return fresh
  end

  -- A standard stream as a table: what is written goes to `write`, all other methods are the file's.
  local function new_stream(file, write)
    local stream = setmetatable({}, { __index = function(_, name)
      local method = file[name]
      return type(method) == "function" and function(_, ...) return method(file, ...) end or method
    end, __tostring = function() return tostring(file) end, __name = "FILE*" })
    function stream.write(self, ...)
      write(...)
      return self
    end
    return stream
  end

  local function new_io(write)
    local stdout, stderr = new_stream(io.stdout, write), new_stream(io.stderr, write)
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

  -- Every run draws the same numbers. `note(name)`: the script asked for what is another time another one.
  local function draw_from_one_seed(fresh, note)
    math.randomseed(0)
    for _, name in ipairs { "random", "randomseed" } do
      local fn = math[name]
      fresh[name] = function(...)
        apart.ask()
        note("math." .. name)
        if name == "randomseed" and select("#", ...) == 0 then return fn(0) end
        return fn(...)
      end
    end
  end

  -- A call of os.exit is an error that ends the run: nothing of the script catches it. `has_ended()`: it was called.
  local function let_exit_through(globals, has_ended)
    local function pass(...)
      if has_ended() then error("os.exit", 0) end
      return ...
    end
    function globals.pcall(...) return pass(pcall(...)) end
    function globals.xpcall(...) return pass(xpcall(...)) end
    function globals.coroutine.resume(...) return pass(coroutine.resume(...)) end
  end

  -- Warnings are printed, from warn("@on") to warn("@off").
  local function new_warn(write)
    local is_on = false
    return function(...)
      local text = table.concat({ ... })
      if select("#", ...) == 1 and text:find("^@") then
        if text == "@on" then is_on = true elseif text == "@off" then is_on = false end
      elseif is_on then write("Lua warning: " .. text .. "\n") end
    end
  end

  -- ---------------------------------------------------------------- code that the script loads

  -- `open(path)`: io.open of the run.
  local function load_with(globals, open)
    function globals.load(chunk, name, mode, ...)
      if select("#", ...) > 0 then return load(chunk, name, mode, ...) end
      return load(chunk, name, mode, globals)
    end
    function globals.loadfile(path, mode, ...)
      local file = path == nil and globals.io.stdin or open(path, "rb")
      if not file then return nil, "cannot open " .. path end
      local text = file:read("a")
      if path ~= nil then file:close() end
      text = text:gsub("^#[^\n]*", "") -- as the first line of a program that a shell starts
      return globals.load(text, path and "@" .. path or "=stdin", mode, ...)
    end
    function globals.dofile(path)
      local chunk, message = globals.loadfile(path)
      if not chunk then error(message, 0) end
      return chunk()
    end
  end

  local function find_module(name, path, open)
    local part = name:gsub("%.", "/")
    for template in path:gmatch("[^;]+") do
      local candidate = template:gsub("%?", (part:gsub("%%", "%%%%")))
      local file = open(candidate, "rb")
      if file then
        file:close()
        return candidate
      end
    end
    return nil
  end

  -- Modules in Lua are loaded anew in each run. Those of C, and millrace's own, are the process's.
  local function require_with(globals, open)
    local package_of_run = globals.package
    local loaded = copy(package.loaded)
    for name, value in next, globals do
      if package.loaded[name] ~= nil and type(value) == "table" then loaded[name] = value end
    end
    loaded._G = globals
    apart.modules(loaded)
    package_of_run.loaded, package_of_run.preload = loaded, copy(package.preload)
    local function keep(name, value)
      if value ~= nil then loaded[name] = value elseif loaded[name] == nil then loaded[name] = true end
      return loaded[name]
    end
    function globals.require(name)
      if loaded[name] ~= nil then return loaded[name] end
      local preload = package_of_run.preload[name]
      if preload then return keep(name, preload(name, ":preload:")), ":preload:" end
      local path = type(name) == "string" and find_module(name, package_of_run.path, open)
      if path then
        local chunk, message = globals.loadfile(path)
        if not chunk then
          tools.misuse(("error loading module '%s' from file '%s':\n\t%s"):format(name, path, message))
        end
        return keep(name, chunk(name, path)), path
      end
      local results = table.pack(pcall(require, name))
      if not results[1] then tools.misuse(tostring(results[2])) end
      loaded[name] = results[2]
      return unpack(results, 2, results.n)
    end
  end

  -- ---------------------------------------------------------------- one run

  -- `printed.add(text)`: what the script prints; `note(name)`, `has_ended()` as above.
  function new.globals(printed, note, has_ended)
    local function write(...)
      for i = 1, select("#", ...) do printed.add(tostring((select(i, ...)))) end
    end
    local globals = copy(_G)
    globals._G = globals
    for _, name in ipairs(COPIED) do globals[name] = globals[name] and copy(globals[name]) end
    if io then globals.io = new_io(write) end
    if warn then globals.warn = new_warn(write) end
    draw_from_one_seed(globals.math, note)
    let_exit_through(globals, has_ended)
    return globals
  end

  -- `open`: io.open, as the run has it. After outside.begin.
  function new.let_load(globals, open)
    if not (load and loadfile and package and package.path and globals.io) then return end
    load_with(globals, open)
    require_with(globals, open)
  end

  return new
end
