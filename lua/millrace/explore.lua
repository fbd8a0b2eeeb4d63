-- mr.explore and mr.replay: what a function returns becomes bytes that can be compared, and the result of a search
-- becomes something to read.
--
-- The module is a function of the tools that src/bind/explore.c hands to it.
local mr = require "millrace"

local unpack = table.unpack
local MOST_DEPTH = 16 -- of tables in tables

return function(tools)
  local misuse, is_tensor = tools.misuse, tools.is_tensor
  local parts = {}

  -- ---------------------------------------------------------------- values as bytes

  local pack

  local function order_of_keys(a, b)
    local x, y = type(a), type(b)
    if x ~= y then return x < y end
    if x == "boolean" then return not a and b end
    return a < b
  end

  local function pack_table(value, out, tensors, depth)
    if depth > MOST_DEPTH then misuse("explore: the function returns tables in tables, " .. MOST_DEPTH .. " deep") end
    local keys = {}
    for key in next, value do
      local kind = type(key)
      if kind ~= "string" and kind ~= "number" and kind ~= "boolean" then
        misuse(("explore: the function returns a table with a %s as a key; keys may be numbers, strings and "
          .. "booleans"):format(kind))
      end
      keys[#keys + 1] = key
    end
    table.sort(keys, order_of_keys)
    out[#out + 1] = "{" .. string.pack("<I4", #keys)
    for _, key in ipairs(keys) do
      pack(key, out, tensors, depth + 1)
      pack(value[key], out, tensors, depth + 1)
    end
  end

  local function pack_tensor(value, out, tensors)
    local shape = value.shape
    out[#out + 1] = "T" .. string.pack("<s1B", value.dtype, #shape)
    for _, size in ipairs(shape) do out[#out + 1] = string.pack("<i8", size) end
    tensors[#tensors + 1] = value
  end

  function pack(value, out, tensors, depth)
    local kind = math.type(value) or type(value)
    if kind == "nil" then out[#out + 1] = "n"
    elseif kind == "boolean" then out[#out + 1] = value and "t" or "f"
    elseif kind == "integer" then out[#out + 1] = "i" .. string.pack("<i8", value)
    elseif kind == "float" then out[#out + 1] = "d" .. string.pack("<d", value)
    elseif kind == "string" then out[#out + 1] = "s" .. string.pack("<s4", value)
    elseif kind == "table" then pack_table(value, out, tensors, depth)
    elseif is_tensor(value) then pack_tensor(value, out, tensors)
    else
      misuse(("explore: the function returns %s; an outcome consists of numbers, strings, booleans, tensors, and "
        .. "tables of them"):format(tools.kind(value)))
    end
  end

  -- The text of an error, without the numbers of objects, which differ between two runs.
  local function pack_error(err)
    return "e" .. string.pack("<s4", (tostring(err):gsub("#%d+", "#")))
  end

  -- A cursor over the bytes of an outcome: the text, and behind it the bytes of the tensors.
  local function reader(raw, text_size)
    return { raw = raw, at = 1, tensors_at = text_size + 1 }
  end

  local function take(r, format)
    local value
    value, r.at = string.unpack(format, r.raw, r.at)
    return value
  end

  local function take_tensor(r)
    local dtype, shape = take(r, "<s1"), {}
    for i = 1, take(r, "<B") do shape[i] = take(r, "<i8") end
    local t = mr.empty(shape, { dtype = dtype, device = "cpu" })
    local size = t.nbytes
    tools.fill(t, r.raw:sub(r.tensors_at, r.tensors_at + size - 1))
    r.tensors_at = r.tensors_at + size
    return t
  end

  local function take_value(r)
    local tag = take(r, "<c1")
    if tag == "t" then return true end
    if tag == "f" then return false end
    if tag == "i" then return take(r, "<i8") end
    if tag == "d" then return take(r, "<d") end
    if tag == "s" then return take(r, "<s4") end
    if tag == "T" then return take_tensor(r) end
    if tag ~= "{" then return nil end
    local value = {}
    for _ = 1, take(r, "<I4") do
      local key = take_value(r)
      value[key] = take_value(r)
    end
    return value
  end

  -- ---------------------------------------------------------------- the function

  -- What the search calls: `fn`, as text and tensors. Keeps what it returned last in `last`.
  local function runner(fn, last)
    return function()
      local results = table.pack(pcall(fn))
      last.results = results
      if not results[1] then return pack_error(results[2]) end
      local out, tensors = { "v" .. string.pack("<I4", results.n - 1) }, {}
      for i = 2, results.n do pack(results[i], out, tensors, 1) end
      return table.concat(out), unpack(tensors)
    end
  end

  local function check_function(what, fn)
    if type(fn) == "function" then return end
    misuse(("%s: expected a function, got %s"):format(what, fn == nil and "nothing" or type(fn)))
  end

  -- Calls work(keeper) with what the function changes outside of itself put back afterwards, also after an error.
  local function guarded(what, work)
    local keeper <close> = tools.keep(what)
    local results = table.pack(pcall(work, keeper))
    local fine, err = pcall(tools.put_back, keeper)
    if not results[1] then error(results[2], 0) end
    if not fine then error(err, 0) end
    return unpack(results, 2, results.n)
  end

  -- ---------------------------------------------------------------- options

  local function whole(options, name, otherwise, least)
    local value = options[name]
    if value == nil then return otherwise end
    local number = math.tointeger(value)
    if not number or number < least then
      misuse(("explore: %s: expected a whole number of at least %d, got %s"):format(name, least, tostring(value)))
    end
    return number
  end

  local KNOWN = { max = true, time = true, seed = true, seeds = true, grain = true, preempt = true, polls = true,
                  unspecified = true }

  local function read_options(options)
    if options == nil then options = {} end
    if type(options) ~= "table" then misuse("explore: argument 2: expected a table of options") end
    for name in next, options do
      if not KNOWN[name] then
        misuse(("explore: no option `%s`; there are max, time, grain, preempt, polls, unspecified, seeds and seed")
          :format(tostring(name)))
      end
    end
    local time = options.time
    if time ~= nil and (type(time) ~= "number" or time ~= time or time <= 0) then
      misuse(("explore: time: expected seconds, a number above 0, got %s"):format(tostring(time)))
    end
    return whole(options, "max", 1000000, 1), (time or 0) + 0.0, whole(options, "preempt", -1, 0),
      math.min(whole(options, "grain", 1, 1), 4096), whole(options, "polls", 2, 1), options.unspecified == true,
      whole(options, "seeds", 0, 1), whole(options, "seed", 0, math.mininteger)
  end

  -- ---------------------------------------------------------------- results

  local function show_value(value)
    if type(value) == "string" then return '"' .. value:gsub("[\n\t]", { ["\n"] = "\\n", ["\t"] = "\\t" }) .. '"' end
    if type(value) == "table" then
      local texts, keys = {}, {}
      for key in next, value do keys[#keys + 1] = key end
      table.sort(keys, order_of_keys)
      for _, key in ipairs(keys) do
        local text = show_value(value[key])
        texts[#texts + 1] = math.type(key) == "integer" and text or tostring(key) .. " = " .. text
      end
      return "{" .. table.concat(texts, ", ") .. "}"
    end
    if is_tensor(value) then return (mr.format(value):gsub("%s*\n%s*", " ")) end
    return tostring(value)
  end

  local function show_outcome(o)
    if o.text then return o.text end
    if o.error then return "error: " .. o.error end
    if #o.values == 0 then return "no value" end
    local texts = {}
    for i = 1, o.values.n do texts[i] = show_value(o.values[i]) end
    return table.concat(texts, ", ")
  end

  local function plural(count, word)
    return count == 1 and "1 " .. word or count .. " " .. word .. "s"
  end

  local SHOWN = 8 -- outcomes, with their steps

  local function lines_of(text)
    local lines = {}
    for line in text:gmatch("[^\n]+") do lines[#lines + 1] = line end
    return lines
  end

  -- How many lines all outcomes begin with, and end with.
  local function common_ends(lists)
    local first, front, rear = lists[1], 0, 0
    local function all_have(from_front, i)
      for _, list in ipairs(lists) do
        local at = from_front and i or #list + 1 - i
        local same = first[from_front and i or #first + 1 - i]
        if not same or list[at] ~= same then return false end
      end
      return true
    end
    while all_have(true, front + 1) do front = front + 1 end
    while all_have(false, rear + 1) do rear = rear + 1 end
    for _, list in ipairs(lists) do -- of each something is shown
      if front + rear >= #list then rear = 0 end
      if front >= #list then front = 0 end
    end
    return front, rear
  end

  -- The steps in which an outcome differs from others; steps that repeat are one line.
  local function add_steps(out, list, front, rear)
    local i = front + 1
    if front > 0 then out[#out + 1] = ("      ... (%s that all have)"):format(plural(front, "step")) end
    while i <= #list - rear do
      local times = 1
      while i + times <= #list - rear and list[i + times] == list[i] do times = times + 1 end
      out[#out + 1] = "      " .. list[i]:gsub("%s+$", "") .. (times > 1 and "  (" .. times .. " times)" or "")
      i = i + times
    end
  end

  local function headline(r)
    local text = ("%s, %s"):format(plural(r.schedules, "schedule"), plural(#r.outcomes, "outcome"))
    if r.deterministic then return text .. ": deterministic" end
    if not r.complete then text = text .. "; not all schedules: " .. (r.incomplete or "?") end
    if r.estimate then text = text .. (" (about %.3g in all)"):format(r.estimate) end
    return text
  end

  local result_meta = {}
  result_meta.__index = result_meta
  result_meta.__name = "millrace.explored"

  function result_meta.__tostring(r)
    local out, lists = { headline(r) }, {}
    for i = 1, math.min(SHOWN, #r.outcomes) do lists[i] = lines_of(r.outcomes[i].steps) end
    local front, rear = 0, 0
    if #lists > 1 then front, rear = common_ends(lists) end
    for i, list in ipairs(lists) do
      local o = r.outcomes[i]
      out[#out + 1] = ("  outcome %d, in %s: %s"):format(i, plural(o.count, r.drawn and "sample" or "schedule"),
        show_outcome(o))
      if #r.outcomes > 1 then add_steps(out, list, front, rear) end
    end
    if #r.outcomes > SHOWN then out[#out + 1] = ("  and %d more, in outcomes"):format(#r.outcomes - SHOWN) end
    if #r.hazards > 0 then out[#out + 1] = ("  %s: see hazards"):format(plural(#r.hazards, "hazard")) end
    return table.concat(out, "\n")
  end

  local function read_outcome(o)
    local r = reader(o.raw, o.text_size)
    local tag = take(r, "<c1")
    local out = { count = o.count, schedule = o.schedule, steps = o.steps, switches = o.switches }
    if tag == "e" then
      out.error = take(r, "<s4")
      return out
    end
    local values = { n = take(r, "<I4") }
    for i = 1, values.n do values[i] = take_value(r) end
    out.value, out.values = values[1], values
    return out
  end

  -- o.trace: a timeline of its schedule, which is made when it is first asked for.
  local function with_trace(outcome, fn)
    return setmetatable(outcome, { __index = function(o, key)
      if key ~= "trace" then return nil end
      local trace = mr.timeline(function() pcall(parts.replay, o.schedule, fn) end)
      rawset(o, "trace", trace)
      return trace
    end })
  end

  -- The most common first.
  local function read_result(r, fn)
    for i, o in ipairs(r.outcomes) do
      r.outcomes[i] = with_trace(read_outcome(o), fn)
      r.outcomes[i].met = i
    end
    table.sort(r.outcomes, function(a, b)
      if a.count ~= b.count then return a.count > b.count end
      return a.met < b.met
    end)
    r.deterministic = r.complete and #r.outcomes <= 1
    return setmetatable(r, result_meta)
  end

  -- ---------------------------------------------------------------- what scripts call

  local function place_of(side)
    local file, line = ((side or {}).where or ""):match("^(.*):(%d+)$")
    return file, math.tointeger(tonumber(line))
  end

  local text_meta = { __tostring = function(self) return self.text end }

  -- A hazard that is no matter of two lines in one order or the other, such as a use of memory that was freed and given
  -- to another tensor: the search has met no two orders to compare, but it has the outcomes of the whole function.
  local function other_outcomes(w, raw)
    local lines = { "  these two lines are not a pair that runs in one order or the other, so the witness cannot "
      .. "compare two orders; the function comes to " .. plural(#raw.outcomes, "outcome") .. ":" }
    w.outcomes = {}
    for i, o in ipairs(raw.outcomes) do
      w.outcomes[i] = read_outcome(o)
      if i <= SHOWN then lines[#lines + 1] = "    " .. show_outcome(w.outcomes[i]) end
    end
    if #raw.outcomes > SHOWN then lines[#lines + 1] = ("    and %d more, in outcomes"):format(#raw.outcomes - SHOWN) end
    if not raw.complete then lines[#lines + 1] = "  not all schedules: " .. (raw.incomplete or "?") end
    w.text = table.concat(lines, "\n")
    return text_meta
  end

  -- report:witness(): two schedules that show the two orders of a hazard, and what they come to.
  local function witness(fn, report)
    local file, line = place_of(report.first)
    local other_file, other_line = place_of(report.second)
    if not line or not other_line then misuse("witness: the report names no two lines") end
    local raw = guarded("witness", function(keeper)
      return tools.explore(runner(fn, {}), keeper, nil, 20000, 0.0, -1, 1, 2, false, 0, 0, file, line,
        report.first.stream, other_file, other_line, report.second.stream)
    end)
    local first = raw.in_order and read_outcome(raw.in_order)
    local second = raw.reversed and read_outcome(raw.reversed)
    local w = { in_order = first, reversed = second, complete = raw.complete }
    w.benign = first ~= nil and second ~= nil and raw.in_order.raw == raw.reversed.raw
    local function show(text, o)
      return ("  %s: %s"):format(text, o and show_outcome(o) or "no schedule was found")
    end
    if not first and not second then return setmetatable(w, other_outcomes(w, raw)) end
    local a, b = report.first.where, report.second.where
    if a == b then a, b = a .. " on " .. report.first.stream, b .. " on " .. report.second.stream end
    w.text = table.concat({ show(a .. " before " .. b, first), show(b .. " before " .. a, second),
      w.benign and "  both orders come to the same: a benign race, as far as these two schedules show" or nil }, "\n")
    return setmetatable(w, text_meta)
  end

  local report_meta = { __tostring = function(self) return (self.message:gsub("\n+$", "")) end }

  local function hazards_of(fn)
    local fine, reports = pcall(mr.hazard.check, function() pcall(fn) end)
    if not fine then return {} end
    for _, report in ipairs(reports) do
      function report.witness(self) return witness(fn, self) end
      setmetatable(report, report_meta)
    end
    return reports
  end

  function parts.explore(fn, options)
    check_function("explore", fn)
    local most, time, preempt, grain, polls, unspecified, seeds, seed = read_options(options)
    return guarded("explore", function(keeper)
      local raw = tools.explore(runner(fn, {}), keeper, nil, most, time, preempt, grain, polls, unspecified, seeds,
        seed)
      local result = read_result(raw, fn)
      tools.put_back(keeper)
      result.hazards = raw.schedules > 0 and hazards_of(fn) or {} -- a function that never ended is not run once more
      result.drawn = seeds > 0 or nil
      return result
    end)
  end

  function parts.replay(schedule, fn)
    if type(schedule) ~= "string" then misuse("replay: argument 1: expected a schedule, a string of mr.explore") end
    check_function("replay", fn)
    local last = {}
    local keeper <close> = tools.keep("replay")
    local followed = tools.replay(runner(fn, last), keeper, nil, schedule)
    if not last.results[1] then error(last.results[2], 0) end
    if not followed then
      misuse("replay: the function does not do what the schedule says; it was made for another function, or what the "
        .. "function uses has changed")
    end
    return unpack(last.results, 2, last.results.n)
  end

  -- ---------------------------------------------------------------- delays at random

  local function stressed(fn, seed, ms)
    local results, fine, err
    do
      local _ <close> = tools.delay(seed, ms)
      results = table.pack(pcall(fn))
      fine, err = pcall(tools.drain)
    end
    if results[1] and not fine then results = { false, err, n = 2 } end
    if not results[1] then return pack_error(results[2]), 0 end
    local out, tensors = { "v" .. string.pack("<I4", results.n - 1) }, {}
    for i = 2, results.n do pack(results[i], out, tensors, 1) end
    local text = table.concat(out)
    for i, t in ipairs(tensors) do tensors[i] = tools.bytes(t:cpu()) end
    return text .. table.concat(tensors), #text
  end

  -- One run under a schedule. Returns its outcome's bytes, and why the schedule could not be followed, if so.
  local function steered(fn, schedule, keeper)
    local last = {}
    local why, text = tools.follow(runner(fn, last), keeper, nil, schedule)
    local tensors, out = {}, {}
    if text:sub(1, 1) == "v" then
      for i = 2, last.results.n do pack(last.results[i], out, tensors, 1) end
      for i, t in ipairs(tensors) do tensors[i] = tools.bytes(t:cpu()) end
    end
    return text .. table.concat(tensors), #text, why
  end

  local STRESS = { runs = true, seed = true, ms = true, schedule = true }

  local function read_stress(options)
    if options == nil then options = {} end
    if type(options) ~= "table" then misuse("stress: argument 2: expected a table of options") end
    for name in next, options do
      if not STRESS[name] then
        misuse(("stress: no option `%s`; there are runs, seed, ms and schedule"):format(tostring(name)))
      end
    end
    local runs, seed = math.tointeger(options.runs or 100), math.tointeger(options.seed or 0)
    local ms = options.ms or 1
    if not runs or runs < 1 then misuse("stress: runs: expected a whole number of at least 1") end
    if not seed then misuse("stress: seed: expected a whole number") end
    local schedule = options.schedule
    if schedule ~= nil and type(schedule) ~= "string" then
      misuse("stress: schedule: expected a schedule, a string of mr.explore")
    end
    if schedule and (options.seed or options.ms) then
      misuse("stress: schedule: no delays are drawn under a schedule; leave out seed and ms")
    end
    if type(ms) ~= "number" or not (ms > 0 and ms <= 1000) then
      misuse("stress: ms: expected 0 to 1000 milliseconds")
    end
    return runs, seed, ms, schedule
  end

  local stress_meta = { __name = "millrace.stressed" }

  function stress_meta.__tostring(r)
    local lines = { ("%s, %s"):format(plural(r.runs, "run"), plural(#r.outcomes, "outcome")) }
    if r.schedule then lines[1] = lines[1] .. (", %d in the order of the schedule"):format(r.followed) end
    if r.interrupted then lines[1] = lines[1] .. "; it was interrupted" end
    for i, o in ipairs(r.outcomes) do
      local seed = o.seed and (", first with seed %d"):format(o.seed) or ""
      lines[#lines + 1] = ("  outcome %d, in %s%s: %s"):format(i, plural(o.count, "run"), seed, show_outcome(o))
    end
    if r.unfollowed then lines[#lines + 1] = "  the schedule could not be followed: " .. r.unfollowed end
    return table.concat(lines, "\n")
  end

  function parts.stress(fn, options)
    check_function("stress", fn)
    local runs, seed, ms, schedule = read_stress(options)
    return guarded("stress", function(keeper)
      local r = setmetatable({ runs = 0, outcomes = {}, schedule = schedule, followed = schedule and 0 }, stress_meta)
      local met = {}
      local function count(raw, text_size, why)
        local o = met[raw] or read_outcome({ raw = raw, text_size = text_size, count = 0 })
        if not met[raw] then
          met[raw] = o
          o.seed = not schedule and seed + r.runs or nil
          r.outcomes[#r.outcomes + 1] = o
        end
        o.count = o.count + 1
        r.runs = r.runs + 1
        if schedule and not why then r.followed = r.followed + 1 end
        r.unfollowed = r.unfollowed or why
      end
      local done = tools.attempt(function()
        -- The first call of a kernel may block in the driver until the device is idle, so all is loaded before.
        if schedule and mr.backend ~= "virtual" then pcall(fn) pcall(tools.drain) tools.put_back(keeper) end
        for i = 0, runs - 1 do
          if schedule then count(steered(fn, schedule, keeper)) else count(stressed(fn, seed + i, ms)) end
          tools.put_back(keeper)
        end
      end)
      r.interrupted = not done or nil
      return r
    end)
  end

  -- ---------------------------------------------------------------- whole scripts

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
    if io then globals.io = setmetatable({ write = write }, { __index = io }) end
    return globals
  end

  local function read_bounds(text)
    local options = {}
    for name, value in text:gmatch("(%w+):([^,]+)") do
      local number = tonumber(value)
      options[name] = math.tointeger(number) or number
    end
    return options
  end

  -- Of what a script returns: what can be an outcome. A script may return functions, as a module does.
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

  function parts.script(chunk, bounds, ...)
    local arguments, state = table.pack(...), {}
    local r = with_exit(state, function()
      return parts.explore(function()
        local printed = {}
        tools.set_globals(chunk, fresh_globals(printed))
        local results = call_chunk(state, chunk, arguments)
        for i = 1, results.n do results[i] = comparable(results[i], 1) end
        return table.concat(printed), unpack(results, 1, results.n)
      end, read_bounds(bounds))
    end)
    for _, o in ipairs(r.outcomes) do o.text = o.values and show_script(o.values) end
    print(r)
    if r.interrupted then return -1 end
    local only = #r.outcomes == 1 and r.outcomes[1]
    if only and (only.error or (exit_of(only.values[2]) or 0) ~= 0) then return 0 end
    return #r.outcomes
  end

  return parts
end
