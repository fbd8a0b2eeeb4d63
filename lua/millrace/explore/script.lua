-- millrace --explore: a whole script under every schedule. The outcome is what it prints and returns.
local unpack = table.unpack

return function(tools, explore, core)
  local misuse, is_tensor, show_value = tools.misuse, tools.is_tensor, core.show.value
  local MOST_DEPTH = core.values.MOST_DEPTH

  -- io.stdout as a table: what is written goes to `write`, all other methods are the file's.
  local function fresh_io(write)
    local stdout = setmetatable({}, { __index = function(_, name)
      local method = io.stdout[name]
      return type(method) == "function" and function(_, ...) return method(io.stdout, ...) end or method
    end, __tostring = function() return tostring(io.stdout) end, __name = "FILE*" })
    function stdout.write(self, ...)
      write(...)
      return self
    end
    local fresh = setmetatable({ stdout = stdout }, { __index = io })
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
      return value == stdout and "file" or io.type(value)
    end
    return fresh
  end

  -- Globals of its own for each run of a chunk, so that a run finds none that another one has set. What it prints is
  -- collected.
  local function fresh_globals(printed)
    local function write(...)
      for i = 1, select("#", ...) do printed[#printed + 1] = tostring((select(i, ...))) end
    end
    local globals = setmetatable({}, { __index = _G })
    globals._G = globals
    function globals.print(...)
      local texts = table.pack(...)
      for i = 1, texts.n do texts[i] = tostring(texts[i]) end
      printed[#printed + 1] = table.concat(texts, "\t") .. "\n"
    end
    if io then globals.io = fresh_io(write) end
    return globals
  end

  -- What a script learns from outside of the machine is the same in each run: each call of these functions gets the
  -- answer that the same call of the first run has got. `math.random` begins with the same seed.
  local function new_answers()
    local kept, said = {}, {}
    local function fed(name, fn)
      kept[name] = kept[name] or {}
      local next, answers = 0, kept[name]
      return function(...)
        next = next + 1
        local answer = answers[next]
        if not answer then
          answer = table.pack(fn(...))
          answers[next] = answer
        end
        said[name] = true
        return unpack(answer, 1, answer.n)
      end
    end
    local function begin(globals)
      math.randomseed(0)
      if not os then return end
      local fresh = setmetatable({}, { __index = os })
      for _, name in ipairs { "clock", "time", "date", "tmpname" } do
        if os[name] then fresh[name] = fed("os." .. name, os[name]) end
      end
      globals.os = fresh
    end
    local function names()
      local list = {}
      for name in next, said do list[#list + 1] = name end
      table.sort(list)
      return list
    end
    return begin, names
  end

  local function read_bounds(text)
    local options = {}
    for name, value in text:gmatch("(%w+):([^,]+)") do
      local number = tonumber(value)
      options[name] = math.tointeger(number) or number
    end
    return options
  end

  -- For what a script returns: what can be an outcome. A script may return functions, as a module does.
  local function comparable(value, depth)
    local kind = type(value)
    if kind == "number" or kind == "string" or kind == "boolean" or is_tensor(value) then return value end
    if kind ~= "table" or depth > MOST_DEPTH then return nil end
    local copy = {}
    for key, part in next, value do
      if comparable(key, depth) ~= nil and type(key) ~= "table" then copy[key] = comparable(part, depth + 1) end
    end
    return next(copy) ~= nil and copy or nil
  end

  local EXIT = "os.exit" -- in place of what a script returns: { [EXIT] = the status }

  local function exit_of(value)
    return type(value) == "table" and value[EXIT] or nil
  end

  -- os.exit would end the process under the first schedule. While `work` runs it ends the run of the script instead.
  -- `state.exit` is the status that the run has asked for.
  local function with_exit(state, work)
    if not os or not os.exit then return work() end
    local exit = os.exit
    function os.exit(code) -- luacheck: ignore 122
      if code == nil or code == true then code = 0 elseif code == false then code = 1 end
      state.exit = math.tointeger(code) or misuse("os.exit: expected a whole number or a boolean")
      error("os.exit", 0)
    end
    local results = table.pack(pcall(work))
    os.exit = exit -- luacheck: ignore 122
    if not results[1] then error(results[2], 0) end
    return unpack(results, 2, results.n)
  end

  -- What the chunk returns; after os.exit its status.
  local function call_chunk(state, chunk, arguments)
    state.exit = nil
    local results = table.pack(pcall(chunk, unpack(arguments, 1, arguments.n)))
    if state.exit then return { n = 1, { [EXIT] = state.exit } } end
    if not results[1] then error(results[2], 0) end
    return table.pack(unpack(results, 2, results.n))
  end

  -- What it printed, and what it returned beside that.
  local function show_script(values)
    local text = values[1]:gsub("\n$", ""):gsub("\n", "\n    ")
    if text:find("\n") then text = "\n    " .. text end
    for i = 2, values.n do
      if exit_of(values[i]) then
        text = text .. ("\n    ends with os.exit(%d)"):format(exit_of(values[i]))
      elseif values[i] ~= nil then text = text .. "\n    returns " .. show_value(values[i]) end
    end
    return text == "" and "nothing printed" or text
  end

  local function script(chunk, bounds, ...)
    local arguments, state = table.pack(...), {}
    local begin_answers, names_of_answers = new_answers()
    local r = with_exit(state, function()
      return explore(function()
        local printed = {}
        local globals = fresh_globals(printed)
        begin_answers(globals)
        tools.set_globals(chunk, globals)
        local results = call_chunk(state, chunk, arguments)
        for i = 1, results.n do results[i] = comparable(results[i], 1) end
        return table.concat(printed), unpack(results, 1, results.n)
      end, read_bounds(bounds), true)
    end)
    local fed = names_of_answers()
    if #fed > 0 then
      r.not_followed = r.not_followed or {}
      table.insert(r.not_followed, ("This holds for one answer of each call: %s said the same in each run."):format(
        table.concat(fed, ", ")))
    end
    for _, o in ipairs(r.outcomes) do o.text = o.values and show_script(o.values) end
    r.shows_hazards = "--check instead of --explore shows " .. (#r.hazards == 1 and "it" or "them")
    print(r)
    if r.interrupted then return -1 end
    local only = #r.outcomes == 1 and r.outcomes[1]
    if only and (only.error or (exit_of(only.values[2]) or 0) ~= 0) then return 0 end
    return #r.outcomes
  end

  return script
end
