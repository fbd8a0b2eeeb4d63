-- millrace --explore: a whole script under every schedule. The outcome is its output, the files that it writes, and its
-- results or its error.
local fixed = require "millrace.fixed"
local new_json = require "millrace.explore.json"
local new_outside = require "millrace.explore.outside"
local new_globals = require "millrace.explore.globals"
local times = require "millrace.explore.times"
local apart = require "millrace.explore.apart"
local status_of = require "millrace.exit".status_of

local unpack = table.unpack

return function(tools, explore, core)
  local misuse, is_tensor, show_value = tools.misuse, tools.is_tensor, core.show.value
  local add_condition = core.add_condition
  local MOST_DEPTH, differs = core.values.MOST_DEPTH, core.show.differs
  local write_json, fresh = new_json(tools, core.values), new_globals(tools)

  -- The output of a script. Each rank has an output of its own, as a process has: between two texts of the script
  -- itself, all of rank 0 comes first.
  local function new_printed()
    local texts, of_ranks, printed = {}, {}, {}
    local function end_ranks()
      for rank = 0, of_ranks.last or -1 do
        table.move(of_ranks[rank] or {}, 1, #(of_ranks[rank] or {}), #texts + 1, texts)
      end
      of_ranks = {}
    end
    function printed.add(text)
      local rank = tools.rank()
      if not rank then end_ranks() end
      local list = rank and (of_ranks[rank] or {}) or texts
      list[#list + 1] = text
      if not rank then return end
      of_ranks[rank], of_ranks.last = list, math.max(of_ranks.last or 0, rank)
    end
    function printed.text()
      end_ranks()
      return table.concat(texts)
    end
    return printed
  end

  -- Answers from outside of the machine are the same in each run. Each call of these functions returns the answer of
  -- the first run that made the same call. So a command of os.execute is carried out once. `math.random` begins with
  -- the same seed.
  local FED = { "clock", "time", "date", "tmpname", "getenv", "execute" }

  local function new_answers()
    local outside = new_outside(tools)
    local kept, said = outside.kept, outside.said
    local function fed(name, fn)
      local counts = {}
      return function(...)
        local key = table.pack(name, ...)
        for i = 2, key.n do
          if type(key[i]) == "table" then return fn(...) end -- os.time of a date, which is not now
          key[i] = type(key[i]) .. tostring(key[i])
        end
        key = table.concat(key, "\0", 1, key.n)
        counts[key] = (counts[key] or 0) + 1
        key = key .. "\0" .. counts[key]
        apart.ask()
        kept[key] = kept[key] or table.pack(fn(...))
        said[name] = true
        return unpack(kept[key], 1, kept[key].n)
      end
    end
    -- The globals of a run, and a function that ends it and returns the text about written files, or nil.
    local function begin(printed, state, of_ranks)
      local globals = fresh.globals(printed, function(name) said[name] = true end, of_ranks)
      local commands = {}
      if os then
        globals.os = setmetatable({}, { __index = os })
        for _, name in ipairs(FED) do
          if os[name] then globals.os[name] = fed("os." .. name, os[name]) end
        end
        local execute = globals.os.execute
        function globals.os.execute(command)
          if command then commands[#commands + 1] = ("runs %q"):format(command) end
          return execute(command)
        end
      end
      local finish = outside.begin(globals, printed)
      fresh.let_load(globals, globals.io and globals.io.open)
      fresh.let_exit_through(globals, function() return state.exit ~= nil end)
      for _, name in ipairs { "print", "io", "os", "math", "coroutine", "warn", "pcall", "xpcall", "load", "loadfile",
                              "dofile", "require", "collectgarbage" } do apart.trust(globals[name]) end
      apart.trust(globals.package and globals.package.searchpath)
      return globals, function()
        local lines = commands
        lines[#lines + 1] = finish()
        return #lines > 0 and table.concat(lines, "\n") or nil
      end
    end
    local function names()
      local list = {}
      for name in next, said do list[#list + 1] = name end
      table.sort(list)
      return list
    end
    return begin, names, function() return outside.reads_times end
  end

  local function read_bounds(text)
    local options = {}
    for name, value in text:gmatch("(%w+):([^,]+)") do
      local number = tonumber(value)
      options[name] = math.tointeger(number) or number
    end
    return options, ("," .. text .. ","):find(",json,", 1, true) ~= nil
  end

  -- The script's results without values that cannot be an outcome. A script may return functions, as a module does.
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
      state.exit = status_of(code) or misuse("os.exit: expected a whole number or a boolean")
      error("os.exit", 0)
    end
    local results = table.pack(pcall(work))
    os.exit = exit -- luacheck: ignore 122
    if not results[1] then error(results[2], 0) end
    return unpack(results, 2, results.n)
  end

  -- The results of the chunk; after os.exit its status.
  local function call_chunk(state, chunk, arguments)
    state.exit = nil
    local results = table.pack(pcall(chunk, unpack(arguments, 1, arguments.n)))
    if state.exit then return { n = 1, { [EXIT] = state.exit } } end
    if not results[1] then error(results[2], 0) end
    return table.pack(unpack(results, 2, results.n))
  end

  -- The files that the script has written, a line a file: of long lines the beginning.
  local MOST_SHOWN = 300

  local function show_written(text)
    return (("\n" .. text):gsub("\n([^\n]*)", function(line)
      local rest = #line - MOST_SHOWN
      if rest > 0 then line = ("%s ... (%d more characters)"):format(line:sub(1, MOST_SHOWN), rest) end
      return "\n    " .. line
    end))
  end

  -- Shows its output, its files, and its end. `lines`: the lines of the output to show; nil: all.
  local function show_script(o, lines, left_out)
    if o.error and o.printed == "" and not o.written then return core.show.error(o) end
    local text, values = o.printed:gsub("\n$", ""):gsub("\n", "\n    "), o.values or { n = 0 }
    if text:find("\n") then text = "\n    " .. text end
    if lines then
      text = ("\n    %s\n    ... (%d lines that all print)"):format(table.concat(lines, "\n    "), left_out)
    end
    for i = 1, values.n do
      if exit_of(values[i]) then
        text = text .. ("\n    ends with os.exit(%d)"):format(exit_of(values[i]))
      elseif values[i] ~= nil then text = text .. "\n    returns " .. show_value(values[i]) end
    end
    if o.written then text = text .. show_written(o.written) end
    if o.error then text = text .. "\n    " .. core.show.error(o):gsub("\n", "\n    ") end
    return text == "" and core.show.NOTHING_PRINTED or text
  end

  -- Texts of outcomes: of long ones only the lines that differ.
  local function name_outcomes(r)
    local texts = {}
    for i, o in ipairs(r.outcomes) do texts[i] = o.printed:gsub("\n$", "") end
    local lines, left_out = differs.lines(texts)
    for i, o in ipairs(r.outcomes) do
      core.values.add_later(o, "text", function() return show_script(o, lines and lines[i], left_out) end)
      core.values.add_later(o, "exit", function()
        local values = o.values_with and o.values_with(function() return false end) -- without tensors
        return values and exit_of(values[1])
      end)
    end
  end

  -- Explores the script with the fixes of its hazards, and of those that are left then. Returns nil, without a claim,
  -- if a fix has no place in the script, or there is no time left.
  local MOST_ROUNDS = 4

  local function with_fixes(r, chunk, run, seconds)
    local lines, path = fixed.lines_of(chunk)
    local began, done, found, fixes = os and os.clock(), {}, r, 0
    if not lines or r.interrupted then return nil end
    for _ = 1, MOST_ROUNDS do
      local left = seconds - (os.clock() - began)
      local count = #found.hazards > 0 and left > 2 * run.first_call and fixed.apply(lines, path, found.hazards, done)
      if not count or count == 0 then break end
      local again = fixed.load(lines, path, chunk)
      local fine, next_found = pcall(run.explore, again, left)
      if not again or not fine then return nil end
      found, fixes = next_found, fixes + count
      if found.interrupted then
        r.interrupted = true
        return nil
      end
    end
    if fixes == 0 then return nil end
    found.fixes = fixes
    return found
  end

  -- The exploration of a script: several chunks in turn get the same answers.
  local function new_run(arguments, options)
    local begin_answers, names_of_answers, reads_times = new_answers()
    local run, state = { names = names_of_answers, first_call = 0, times = times.new() }, {}
    function run.explore(chunk, seconds)
      options.time = seconds
      local of_ranks = fixed.runs[chunk] and fixed.runs[chunk].of_ranks
      -- A run that the end of the time stops does not come to its own end.
      local _ <close> = setmetatable({}, { __close = function()
        if state.finish then state.finish() end
      end })
      return with_exit(state, function()
        return explore(function()
          local printed, began = new_printed(), os and os.clock() or 0
          state.exit, state.output = nil, nil
          if state.finish then state.finish() end
          local globals, finish = begin_answers(printed, state, of_ranks)
          state.finish = finish
          tools.set_globals(chunk, globals)
          local fine, results = pcall(call_chunk, state, chunk, arguments)
          local written, text = finish(), printed.text()
          state.finish = nil
          state.output = { printed = reads_times() and run.times.masked(text) or text, written = written }
          if not fine then error(results, 0) end
          for i = 1, results.n do results[i] = comparable(results[i], 1) end
          if run.first_call == 0 and os then run.first_call = os.clock() - began end
          return unpack(results, 1, results.n)
        end, options, function() return state.output or { printed = "" } end)
      end)
    end
    return run
  end

  local function note_answers(r, names)
    local asked = {}
    for _, name in ipairs(names) do
      if name == "files" then
        add_condition(r, "No file was written: what the script writes to files is compared as a part of the outcome.")
      else asked[#asked + 1] = name end
    end
    if #asked == 0 then return end
    add_condition(r, ("This holds for one answer of each call: %s said the same in each run."):format(
      table.concat(asked, ", ")))
  end

  -- The output of the runs, with its times.
  local function show_times(r, printed_times)
    for _, o in ipairs(r.outcomes) do o.printed = printed_times.shown(o.printed) end
    if printed_times.differ() then
      add_condition(r, "Printed times (a number and ms, us, ns or s) are not compared: they differ from run to run.")
    end
  end

  -- By which the process chooses its exit status.
  local function ending_of(r)
    local only = #r.outcomes == 1 and r.outcomes[1]
    if r.interrupted then return "interrupted" end
    if only and (only.error or (only.exit or 0) ~= 0) then return "failed" end
    return (#r.outcomes > 1 or #r.hazards > 0) and "found" or "one"
  end

  local function script(chunk, bounds, ...)
    local options, as_json = read_bounds(bounds)
    local run = new_run(table.pack(...), options)
    local seconds = options.time or 10
    tools.quiet(true) -- what is printed here is the result
    local _ <close> = setmetatable({}, { __close = function() tools.quiet(false) end })
    local r = run.explore(chunk, seconds)
    note_answers(r, run.names())
    show_times(r, run.times)
    name_outcomes(r)
    if not r.complete then r.warning = "A run without --explore may come to an outcome that is not listed." end
    r.shows_hazards = "--check instead of --explore shows them"
    r.with_fix = with_fixes(r, chunk, run, seconds - r.seconds)
    local ending = ending_of(r)
    if as_json then print(write_json(r)) else tools.write(tostring(r) .. "\n") end
    return ending
  end

  return script
end
