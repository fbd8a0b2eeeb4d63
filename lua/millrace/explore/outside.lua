-- Reads and writes of a script outside of the machine while all its schedules are explored.
--
-- Nothing outside changes. A file that the script writes, by io.open or by mr.save, is a shadow: a copy of the run's
-- own. Its bytes are a part of the outcome. Standard input is read once, and each run gets it from its beginning. A
-- program that io.popen reads from runs once. A call whose answer cannot be fed again is refused at its line, before
-- anything is done.
local apart = require "millrace.explore.apart"

local unpack = table.unpack

return function(tools)
  local misuse = tools.misuse
  -- For all runs: the answers by question, the names of the questions, and whether a run has read other times.
  local outside = { kept = {}, said = {}, reads_times = false }

  -- ---------------------------------------------------------------- standard input

  local spool, spool_has_ended = "", false

  local function read_more()
    local line = not spool_has_ended and io.stdin:read("L")
    if line then spool = spool .. line else spool_has_ended = true end
    return not spool_has_ended
  end

  local function line_end(at)
    local found = spool:find("\n", at, true)
    while not found and read_more() do found = spool:find("\n", at, true) end
    return found
  end

  local NUMERALS = { "^%s*[+-]?0[xX][%x.]+[pP]?[+-]?%d*()", "^%s*[+-]?[%d.]+[eE]?[+-]?%d*()" }

  -- Reads one thing at `at`, by a format of file:read. Returns it and the position after it; nil at the end.
  local function read_one(at, format)
    apart.ask()
    if type(format) == "string" then format = format:gsub("^%*", "") end
    if type(format) == "number" then
      while #spool - at + 1 < math.max(format, 1) and read_more() do end
      if at > #spool then return nil, at end
      return spool:sub(at, at + format - 1), at + format
    elseif format == "a" then
      while read_more() do end
      return spool:sub(at), #spool + 1
    elseif format == "n" then
      while not spool:find("%S.*\n", at) and read_more() do end
      for _, pattern in ipairs(NUMERALS) do
        local behind = spool:match(pattern, at)
        local number = behind and tonumber(spool:sub(at, behind - 1))
        if number then return number, behind end
      end
      return nil, at
    end
    local stop = line_end(at)
    if at > #spool then return nil, at end
    return spool:sub(at, (stop or #spool + 1) - (format == "l" and 1 or 0)), (stop or #spool) + 1
  end

  -- Standard input from its beginning.
  local function new_stdin()
    local at, stdin = 1, { is_open = true }
    local methods = {}
    function methods.read(_, ...)
      local formats, results = select("#", ...) > 0 and { ... } or { "l" }, {}
      outside.said["io.read"] = true
      for i, format in ipairs(formats) do
        results[i], at = read_one(at, format)
        if results[i] == nil then return unpack(results, 1, i) end
      end
      return unpack(results, 1, #formats)
    end
    function methods.lines(self, ...)
      local formats = table.pack(...)
      return function() return self:read(unpack(formats, 1, formats.n)) end
    end
    function methods.close() return true end
    function methods.setvbuf() return true end
    function methods.seek() return nil, "Illegal seek", 29 end
    local function text() return "file (stdin)" end
    return setmetatable(stdin, { __index = methods, __name = "FILE*", __tostring = text })
  end

  -- ---------------------------------------------------------------- files

  local NO_ENTRY = 2 -- the number of that error

  local shown = {} -- a file's own path = as the script has written it first

  -- The file's own path, by which it is the same file under each of its names.
  local function plain(path)
    local own = tools.absolute(path)
    shown[own] = shown[own] or path:gsub("/+", "/"):gsub("^%./", "")
    return own
  end

  local function copy(from, to)
    local source <close> = assert(io.open(from, "rb"))
    local target <close> = assert(io.open(to, "wb"))
    target:write(source:read("a"))
  end

  -- A file that cannot be read is one, too.
  local function exists(path)
    local file, _, code = io.open(path, "rb")
    if file then file:close() end
    return file ~= nil or code ~= NO_ENTRY
  end

  -- Whether the file may be written, as io.open says it: true, or nil and so on. Nothing is left behind.
  local function may_write(path)
    local is_new = not exists(path)
    local file, message, code = io.open(path, is_new and "ab" or "r+b")
    if not file then return nil, message, code end
    file:close()
    if is_new then os.remove(path) end
    return true
  end

  -- Bytes as a text of one line.
  local function quoted(bytes)
    local text = ("%q"):format(bytes):gsub("\\\n", "\\n")
    if utf8.len(text) then return text end
    return (text:gsub("[\128-\255]", function(byte) return ("\\%d"):format(byte:byte()) end))
  end

  -- Files of one run. `shadows[path]` is where its bytes are; false: the run has removed it. `hold_times[path]`: they
  -- are a timeline's, which no two schedules have in common.
  local function new_files()
    local files, shadows, hold_times, open, reserved = {}, {}, {}, {}, {}

    -- Has the ending of the file's own name, which selects the format for mr.save and tr:save.
    local function new_name(path)
      reserved[#reserved + 1] = os.tmpname()
      return reserved[#reserved] .. (path:match("[^/]*$"):match("%..*$") or "")
    end

    local function shadow_of(path, keeps)
      if not shadows[path] then
        local was_removed = shadows[path] == false
        shadows[path] = new_name(path)
        if keeps and not was_removed and exists(path) then copy(path, shadows[path]) end
      end
      return shadows[path]
    end

    local function is_there(path)
      apart.ask()
      if shadows[path] ~= nil then return shadows[path] ~= false end
      return exists(path)
    end

    local function missing(path) return nil, path .. ": No such file or directory", NO_ENTRY end

    function files.open(path, mode)
      local name = plain(path)
      apart.ask()
      mode = mode or "r"
      if not mode:find("^[rwa]%+?b?$") or name:find("^/dev/") then return io.open(path, mode) end
      local writes = mode:find("[wa+]") ~= nil
      if not writes and shadows[name] == nil then return io.open(path, mode) end
      if mode:find("^r") and not is_there(name) then return missing(path) end
      if writes and shadows[name] == nil then
        local fine, problem, number = may_write(path)
        if not fine then return fine, problem, number end
      end
      if mode:find("^w") then hold_times[name] = nil end
      local file, message, code = io.open(shadow_of(name, not mode:find("^w")), mode)
      if file then open[#open + 1] = file end
      return file, message, code
    end

    -- Where the bytes of a file are that mr.load, mr.save or tr:save asks for (bind/outside.h).
    function files.redirect(path, use)
      apart.ask()
      local name = plain(path)
      if name:find("^/dev/") then return path end
      if use == "read" then
        if not is_there(name) then misuse("load: " .. select(2, missing(path))) end
        return shadows[name] or path
      end
      if shadows[name] == nil then
        local fine, problem = may_write(path)
        if not fine then misuse("save: " .. problem) end
      end
      hold_times[name] = use == "write times" or nil
      return shadow_of(name, false)
    end

    function files.remove(path)
      local name = plain(path)
      if not is_there(name) then return missing(path) end
      if shadows[name] then os.remove(shadows[name]) end
      shadows[name] = false
      return true
    end

    function files.rename(from, to)
      local old, new = plain(from), plain(to)
      if not is_there(old) then return missing(from) end
      if old == new then return true end
      local path = new_name(new)
      assert(os.rename(shadow_of(old, true), path))
      if shadows[new] then os.remove(shadows[new]) end
      shadows[new], shadows[old] = path, false
      hold_times[new], hold_times[old] = hold_times[old], nil
      return true
    end

    -- A command sees the real files. It is refused if it names a file that the run has written, removed or renamed.
    function files.check_command(what, command)
      for name in next, shadows do
        local short = name:match("[^/]*$")
        if type(command) == "string" and command:find(short, 1, true) then
          tools.refuse(("%s: the command would not see what the script has done to `%s`: in an exploration that is a "
            .. "copy of the run's own"):format(what, shown[name]))
        end
      end
    end

    -- The text about written files, for the outcome: nil, or a line for each file with its bytes. Ends the run.
    function files.finish()
      local names, texts = {}, {}
      for _, file in ipairs(open) do
        if io.type(file) == "file" then file:close() end
      end
      for name in next, shadows do names[#names + 1] = name end
      table.sort(names, function(a, b) return shown[a] < shown[b] end)
      for i, name in ipairs(names) do
        texts[i] = "writes " .. shown[name] .. ": "
        if not shadows[name] then texts[i] = texts[i] .. "removed" end
        if shadows[name] then
          local file = io.open(shadows[name], "rb") -- nil: what was to write it has failed
          texts[i] = texts[i] .. (not file and "not written" or hold_times[name] and "a timeline, not compared" or
            quoted(file:read("a")))
          if file then file:close() end
          os.remove(shadows[name])
        end
        outside.said["files"] = true
      end
      for _, name in ipairs(reserved) do os.remove(name) end
      return #names > 0 and table.concat(texts, "\n") or nil
    end

    return files
  end

  -- ---------------------------------------------------------------- programs

  -- io.popen(command): the program runs once, and each run reads its output.
  local function read_program(command)
    apart.ask()
    local key = "io.popen\0" .. command
    if not outside.kept[key] then
      local pipe, message, code = io.popen(command, "r")
      if not pipe then return pipe, message, code end
      outside.kept[key] = { text = pipe:read("a"), ends = table.pack(pipe:close()) }
    end
    outside.said["io.popen"] = true
    local kept, file = outside.kept[key], assert(io.tmpfile())
    file:write(kept.text)
    file:seek("set")
    return setmetatable({}, { __name = "FILE*", __index = function(_, name)
      if name == "close" then
        return function()
          file:close()
          return unpack(kept.ends, 1, kept.ends.n)
        end
      end
      local method = file[name]
      return type(method) == "function" and function(_, ...) return method(file, ...) end or method
    end })
  end

  -- ---------------------------------------------------------------- times

  -- Times of the virtual GPU: in each run, the n-th call of a function returns the time of the first run that made this
  -- call.
  local function new_times()
    local counts = {}
    return function(name, ms)
      apart.ask()
      counts[name] = (counts[name] or 0) + 1
      local key = name .. "\0" .. counts[name]
      outside.said[name] = true
      outside.kept[key] = outside.kept[key] or ms
      return outside.kept[key]
    end
  end

  -- ---------------------------------------------------------------- one run

  -- Changes `io` and `os` of a run's globals. Returns a function that ends the run, and returns the text about its
  -- written files, or nil.
  function outside.begin(globals, printed)
    local handlers = { time = new_times(), times = function() outside.reads_times = true end }
    function handlers.print(text, has_times)
      printed.add(has_times and "(a timeline, not compared)\n" or text)
    end
    local function finish() tools.outside(nil) end
    tools.outside(handlers)
    if not io or not io.open or not os or not os.tmpname then return finish end
    local fresh, files, stdin = globals.io, new_files(), new_stdin()
    local input = stdin
    fresh.stdin = stdin
    fresh.open = files.open
    function fresh.popen(command, mode)
      if mode ~= nil and mode ~= "r" then
        tools.refuse("io.popen to write: the program would read it in each schedule")
      end
      files.check_command("io.popen", command)
      return read_program(command)
    end
    local execute = globals.os.execute
    function globals.os.execute(command)
      files.check_command("os.execute", command)
      return execute(command)
    end
    function fresh.input(file)
      apart.ask()
      if type(file) == "string" then
        local opened, message = files.open(file, "r")
        input = opened or misuse(message)
      elseif file ~= nil then input = file end
      return input
    end
    function fresh.read(...) return input:read(...) end
    function fresh.lines(path, ...)
      if path == nil then return input:lines(...) end
      local file, message = files.open(path, "r")
      if not file then misuse(message) end
      return file:lines(...)
    end
    local output = fresh.output
    function fresh.output(...)
      apart.ask()
      if type((...)) ~= "string" then return output(...) end
      local opened, message = files.open((...), "w")
      return output(opened or misuse(message))
    end
    local type_of = fresh.type
    function fresh.type(value)
      local meta = type(value) == "table" and getmetatable(value)
      return type_of(value) or meta and meta.__name == "FILE*" and "file" or nil
    end
    globals.os.remove, globals.os.rename = files.remove, files.rename
    handlers.file = files.redirect
    return function()
      finish()
      if io.output() ~= io.stdout then io.output(io.stdout) end -- the next run has shadows of its own
      return files.finish()
    end
  end

  return outside
end
