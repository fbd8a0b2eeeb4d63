-- mr.explore and mr.replay. The function's results become bytes that can be compared (explore/values.lua), and the
-- result of a search becomes text (explore/show.lua). mr.stress is in explore/stress.lua, and whole scripts are in
-- explore/script.lua.
--
-- The module is a function of the tools that src/bind/explore/explore.c hands to it.
local mr = require "millrace"
local plural = require "millrace.words".plural
local unexplored = require "millrace.unexplored"
local new_values = require "millrace.explore.values"
local new_show = require "millrace.explore.show"
local new_options = require "millrace.explore.options"
local new_stress = require "millrace.explore.stress"
local new_script = require "millrace.explore.script"
local repeatable = require "millrace.explore.repeatable"
local apart = require "millrace.explore.apart"
local lanes = require "millrace.explore.lanes"

local unpack = table.unpack

return function(tools)
  local misuse = tools.misuse
  local values, options = new_values(tools), new_options(tools)
  local show = new_show(tools, values)
  local read_outcome, show_outcome, SHOWN = values.read_outcome, show.outcome, show.SHOWN
  local parts = {}

  -- ---------------------------------------------------------------- the function

  -- Returns the results of pcall(fn). A capture that is left open would reach the next run, and is an error of this
  -- one.
  local function call(fn)
    local results = table.pack(pcall(fn))
    local left_open = tools.end_captures()
    return left_open and results[1] and table.pack(false, left_open) or results
  end

  -- An address, which another process has otherwise, or a time that explore/times.lua has masked.
  local function differs_by_nature(text)
    return text:find "0x%x%x%x%x" or text:find "# ?[%a\xC2]"
  end

  -- Whether the call returned memory that nothing has written.
  local function returns_unwritten(results)
    local packed, _, tensors = pcall(values.pack_results, results)
    for _, t in ipairs(packed and tensors or {}) do
      if tools.is_unwritten(t) then return true end
    end
    return false
  end

  -- The function for the search: `fn`, as text and tensors. Keeps the last results in `last`. An error of work that the
  -- function has not waited for is the outcome, too. Calls are made by `checked`, if there is one. It returns true if
  -- the call used no source of difference, such as a clock. `output()`: what the last call of a script has printed and
  -- written.
  local function runner(fn, last, checked, output)
    return function()
      local left
      local function work()
        last.before, last.output_before = last.results, last.output
        last.results = call(fn)
        last.output = output and output()
        local told
        left, told = tools.drained()
        local err = last.results[2]
        local passed_on = not last.results[1] and type(err) == "table" and tools.is_loss(err.code)
        last.caught = last.caught or told and not passed_on
        last.unwritten = last.unwritten or checked and last.results[1] and returns_unwritten(last.results)
      end
      local seems_repeatable = (checked or pcall)(work)
      local text, tensors = values.pack_results(left and { false, left } or last.results, false, last.output)
      if checked and seems_repeatable and not differs_by_nature(text) then tools.seems_repeatable() end
      return text, unpack(tensors)
    end
  end

  local function check_function(what, fn)
    if type(fn) == "function" then return end
    misuse(("%s: expected a function, got %s"):format(what, fn == nil and "nothing" or type(fn)))
  end

  -- Calls work(keeper), and then restores the state outside the function that was changed, also after an error.
  local function guarded(what, work)
    local keeper <close> = tools.keep(what)
    local results = table.pack(pcall(work, keeper))
    local fine, err = pcall(tools.put_back, keeper)
    if not results[1] then error(results[2], 0) end
    if not fine then error(err, 0) end
    return unpack(results, 2, results.n)
  end

  -- ---------------------------------------------------------------- results

  -- o.trace: a timeline of its schedule, which is made when it is first asked for. `race`: of the function's
  -- commands the numbers of two, and the report of their race, which is marked in it, and no other.
  local function with_trace(outcome, fn, race)
    values.add_later(outcome, "trace", function(o)
      local first_number
      local function run(...)
        first_number = tools.next_number()
        return fn(...)
      end
      local trace = guarded("trace", function(keeper)
        return (mr.timeline(function()
          pcall(tools.replay, runner(run, {}), keeper, nil, o.schedule)
          tools.put_back(keeper) -- a timeline of a lost device cannot be made
        end))
      end)
      local report = race and race.report
      if report and first_number then
        tools.keep_race(trace, first_number + race[1] - 1, first_number + race[2] - 1, report.kind, report.message,
          report.fix)
      end
      return trace
    end)
    return outcome
  end

  local function list_of_lines(text)
    local list = {}
    for line in text:gmatch("[^\n]+") do list[#list + 1] = line end
    return list
  end

  -- The most common first.
  local function read_result(r, fn, race)
    for i, o in ipairs(r.outcomes) do
      r.outcomes[i] = with_trace(read_outcome(o), fn, race)
      r.outcomes[i].met = i
    end
    table.sort(r.outcomes, function(a, b)
      if a.count ~= b.count then return a.count > b.count end
      return a.met < b.met
    end)
    for i = 1, math.min(#r.outcomes, SHOWN) do values.make(r.outcomes[i]) end
    r.deterministic = r.complete and #r.outcomes <= 1
    if r.untried_lines then
      r.untried = list_of_lines(r.untried_lines)
      r.untried.count, r.untried_lines, r.untried_count = r.untried_count, nil, nil
    end
    if r.unended then
      r.unended.difference, r.unended.difference_lines = list_of_lines(r.unended.difference_lines), nil
      if r.unended.where == "" then r.unended.where = nil end
    end
    return setmetatable(r, show.result_meta)
  end

  -- r:save("t.html"): a page with the timelines of the outcomes. It shows one at a time.
  function show.result_meta.save(r, path)
    local list = {}
    for i = 1, math.min(#r.outcomes, SHOWN) do
      local o = r.outcomes[i]
      list[2 * i - 1] = ("outcome %d: %s"):format(i, show_outcome(o))
      list[2 * i] = o.trace
    end
    if #list == 0 then misuse("save: the result has no outcome") end
    tools.save_outcomes(path, unpack(list))
  end

  -- ---------------------------------------------------------------- what scripts call

  local function place_of(side)
    local file, line = ((side or {}).where or ""):match("^(.*):(%d+)$")
    return file, math.tointeger(tonumber(line))
  end

  local function shown(side)
    local file, line = place_of(side)
    return line and tools.shown(file, line) or tostring(side.where)
  end

  local text_meta = { __tostring = function(self) return self.text end }

  -- A hazard that is not about two lines in one order or the other, such as a use of memory that was freed and given
  -- to another tensor. The search has met no two orders to compare, but it has the outcomes of the whole function.
  local function other_outcomes(w, raw, kind)
    local reason = kind == "uninitialised-read"
      and "the memory that is read was not written in any order, so the witness cannot compare two orders"
      or "these two lines are not a pair that runs in one order or the other, so the witness cannot compare two orders"
    local lines = { ("  %s; the function comes to %s:"):format(reason, plural(#raw.outcomes, "outcome")) }
    w.outcomes = {}
    for i, o in ipairs(raw.outcomes) do
      w.outcomes[i] = read_outcome(o)
      if i <= SHOWN then lines[#lines + 1] = "    " .. show_outcome(w.outcomes[i]) end
    end
    if #raw.outcomes > SHOWN then
      lines[#lines + 1] = ("    and %d more (field `outcomes`)"):format(#raw.outcomes - SHOWN)
    end
    if not raw.complete then lines[#lines + 1] = "  not all schedules: " .. (raw.incomplete or "?") end
    w.text = table.concat(lines, "\n")
    return text_meta
  end

  -- For two operations at one line.
  local function told_apart(side)
    return ("`%s` on %s at %s"):format(side.op, side.stream == "host" and "the host" or side.stream, shown(side))
  end

  local function told(text, o)
    return ("  %s: %s"):format(text, o and show_outcome(o) or "no schedule was found")
  end

  local function benign(w)
    return w.benign and "  both orders have the same result: a benign race, as far as these two schedules show"
      .. (w.may_mix and "; their parts may mix" or "")
      .. (w.reads_fresh and "; memory that nothing has written reads as zero here" or "") or nil
  end

  -- A free changes nothing by itself. Only the next user of the memory counts.
  local function tell_reuse(w, report)
    local use = ("`%s` at %s "):format(report.first.op, shown(report.first))
    local again = (" the memory that is freed at %s is used again"):format(shown(report.second))
    w.text = table.concat({ w.in_order and told(use .. "before" .. again, w.in_order),
      w.reversed and told(use .. "after" .. again, w.reversed)
        or "  the function itself does not use the memory again before that; the rest of a program may",
      benign(w) }, "\n")
    return text_meta
  end

  -- The two schedules as lanes, in which the pair is marked. Timelines are made when they are first asked for.
  local witness_meta = { __tostring = text_meta.__tostring, __index = {} }

  local function add_pictures(w, fn, report, numbers, titles)
    local race = { numbers[1], numbers[2], report = report }
    for _, o in ipairs { w.in_order, w.reversed } do with_trace(o, fn, race) end
    w.titles = titles
    local text = lanes.draw(titles, { w.in_order, w.reversed },
      { op = report.first.op, where = shown(report.first) }, { op = report.second.op, where = shown(report.second) })
    w.text = text and text .. (w.benign and "\n" .. benign(w) or "") or w.text
    return w
  end

  function witness_meta.__index.save(w, path)
    tools.save_outcomes(path, (w.titles[1]:gsub("^%s+", "")), w.in_order.trace, (w.titles[2]:gsub("^%s+", "")),
      w.reversed.trace)
  end

  -- report:witness(): two schedules with the two orders of a hazard, and their outcomes.
  local function witness(fn, report, numbers)
    local file, line = place_of(report.first)
    local other_file, other_line = place_of(report.second)
    if not line or not other_line then file, other_file = nil, nil end -- as of a free by the collector: no pair
    local raw = guarded("witness", function(keeper)
      return tools.explore(runner(fn, {}), keeper, nil, 20000, 10.0, -1, 1, 2, false, 0, 0, 1024, true, 1, file, line,
        report.first.stream, numbers[1], other_file, other_line, report.second.stream, numbers[2])
    end)
    local first = raw.in_order and read_outcome(raw.in_order)
    local second = raw.reversed and read_outcome(raw.reversed)
    local w = { in_order = first, reversed = second, complete = raw.complete, may_mix = raw.may_mix or nil,
      reads_fresh = raw.reads_fresh or nil }
    w.benign = first ~= nil and second ~= nil and raw.in_order.raw == raw.reversed.raw
    if not first and not second then return setmetatable(w, other_outcomes(w, raw, report.kind)) end
    if report.kind == "use-after-free" then return setmetatable(w, tell_reuse(w, report)) end
    local a, b = shown(report.first), shown(report.second)
    if a == b then a, b = told_apart(report.first), told_apart(report.second) end
    local titles = { told(a .. " before " .. b, first), told(b .. " before " .. a, second) }
    w.text = table.concat({ titles[1], titles[2], benign(w) }, "\n")
    if not first or not second then return setmetatable(w, text_meta) end
    return setmetatable(add_pictures(w, fn, report, numbers, titles), witness_meta)
  end

  local report_meta = { __tostring = function(self) return (self.message:gsub("\n+$", "")) end }

  local MOST_CHECKED = 256 -- calls, where one of them has hazards

  local WORSE = { ["every-legal-schedule"] = 0, conditional = 1, none = 2 }

  -- Conditions of a later call count, too. The larger number of the same condition is reported.
  local function add_claims(totals, later)
    local left, new = totals.unexplored, later.unexplored
    if WORSE[new.claim] > WORSE[left.claim] then left.claim = new.claim end
    local at = {}
    for i, key in ipairs(left.keys) do at[key] = i end
    for i, key in ipairs(new.keys) do
      if not at[key] or later[key] > totals[key] then
        local place = at[key] or #left + 1
        left[place], left.keys[place], totals[key] = new[i], key, later[key]
      end
    end
  end

  -- Adds reports of places that no earlier call has reported. A later call may submit other commands than the first
  -- one.
  local function add_reports(found, reports, totals)
    local is_first = #found.reports == 0
    for _, report in ipairs(reports) do
      local key = ("%s %s %s"):format(report.kind, report.first.where, report.second.where)
      if not found.known[key] then
        local first = found.first_number
        found.reports[#found.reports + 1] = report
        found.numbers[report] = { report.first.seq - first + 1, report.second.seq - first + 1 }
        if not is_first then found.hazards = found.hazards + (report.count or 1) end
      end
    end
    if is_first then found.hazards = totals.hazards end
    for _, report in ipairs(found.reports) do
      found.known[("%s %s %s"):format(report.kind, report.first.where, report.second.where)] = true
    end
  end

  -- Makes calls of the search, and keeps what the checker says of them: after another answer of a query the function
  -- may submit new commands. Also keeps the numbers of the commands of a report, counted from the function's first one:
  -- by these a search finds the accesses of a report again. Every call is watched (explore/repeatable.lua), and the
  -- first source of difference is kept, too.
  local function checker(found, fn, is_script)
    local watched
    found.reports, found.numbers, found.known, found.calls, found.hazards = {}, {}, {}, 0, 0
    local function watched_call(work)
      if found.seen or not watched then return work() end
      watched:ask()
      local results = table.pack(pcall(work))
      found.seen = watched:seen()
      if not results[1] then error(results[2], 0) end
      return unpack(results, 2, results.n)
    end
    local function checked_call(work)
      local has_run = false
      local fine, reports, totals = watched_call(function()
        return tools.uncollected(tools.check, function()
          found.first_number, has_run = tools.next_number(), true
          work()
        end)
      end)
      if not has_run then watched_call(work) end
      return has_run, fine and reports, totals
    end
    local function keep(reports, totals)
      add_reports(found, reports, totals)
      if found.totals then add_claims(found.totals, totals) end
      found.totals = found.totals or totals
    end
    return function(work)
      found.calls = found.calls + 1
      if #found.reports > 0 then
        if found.calls > MOST_CHECKED then
          pcall(watched_call, work)
          return false
        end
        local fine, has_run, reports, totals = pcall(checked_call, work)
        if fine and has_run and reports then keep(reports, totals) end
        return false
      end
      local is_first = found.calls == 1
      watched = watched or is_first and repeatable.watch(tools, fn, is_script)
      tools.watch_ranks(is_first and apart.begin(tools) or nil)
      local has_run, reports, totals = checked_call(work)
      tools.watch_ranks(nil)
      if is_first and has_run and apart.finish() then tools.ranks_are_apart() end
      if has_run and reports then keep(reports, totals) end
      return has_run and watched and not watched:is_lost() and not found.seen
    end
  end

  local function hazards_of(fn, found, race)
    for _, report in ipairs(found.reports) do
      local numbers = found.numbers[report]
      function report.witness(self) return witness(fn, self, numbers) end
      if not race.report then race[1], race[2], race.report = numbers[1], numbers[2], report end
      setmetatable(report, report_meta)
    end
    return found.reports, found.totals
  end

  -- One more condition of the result, a sentence.
  local function add_condition(result, text)
    result.not_followed = result.not_followed or {}
    table.insert(result.not_followed, text)
    if result.claim == "every-legal-schedule" then result.claim = "conditional" end
  end

  local AGAIN = "This holds if the function does the same when it is called again: %s."

  local function reads_unwritten(reports)
    for _, report in ipairs(reports) do
      if report.kind == "uninitialised-read" then return true end
    end
    return false
  end

  -- A launch runs in only one order of its threads. `not_followed.races_inside`: only that is against the verdict.
  local function add_inner_races(result)
    local count = 0
    for _, report in ipairs(result.hazards) do
      if report.kind == "race-in-kernel" then count = count + 1 end
    end
    if count == 0 then return end
    add_condition(result, ("not explored: the orders of threads in %s inside launches"):format(plural(count, "race")))
    result.not_followed.races_inside = result.deterministic or nil
    result.claim, result.deterministic = "none", false
  end

  -- Each operation was carried out as a whole, or in so many parts. A GPU mixes those that race as it likes. That
  -- cannot change an outcome without a value. `not_followed.parts`: another condition than of the function.
  local function add_parts(result, grain, is_script)
    if result.deterministic and show.is_nothing(result.outcomes[1]) then return end
    add_condition(result, grain > 1
      and ("This holds if operations that race mix no more than %d parts each."):format(grain)
      or ("This holds if operations that race are carried out as wholes. A GPU may mix their elements (%s mixes "
        .. "n parts of each)."):format(is_script and "--explore=grain:n" or "grain = n"))
    result.not_followed.parts = true
  end

  -- Memory that is freed while it is in use: the tensor that gets it next decides the outcome. Which tensor that is
  -- depends on the memory that Lua's collector has freed by then, and it may do so earlier or later in another run.
  -- `not_followed.collector`: as `parts`.
  local COLLECTOR = "This holds if Lua's collector frees tensors when it does so here: that decides which tensor gets "
    .. "the memory that is still in use."

  local function frees_in_use(reports)
    for _, report in ipairs(reports) do
      if report.kind == "use-after-free" then return true end
    end
    return false
  end

  -- Ranks meet at the call of a collective. On GPUs its kernels may run beside those of another communicator.
  local function meets_in_other_orders(result)
    for _, o in ipairs(result.outcomes) do
      if o.error and o.error:find("deadlock of the ranks (R64)", 1, true) then return true end
    end
    return false
  end

  -- In place of a clause of the checker, which has seen one order: the search has tried both orders of such a pair.
  local TRIED = { unordered_updates = "This holds if the atomic updates of %s do not mix: each launch was carried out "
    .. "as a whole." }

  -- Adds the list of what was not followed, and the claim that remains. Leaves out the conditions about ranks if every
  -- order of their hosts was tried. Also leaves out those about behaviour that CUDA does not specify, if both ways were
  -- tried: for copies to pageable memory. (A copy from it reads it at once in both ways.) `seen`: an action, such as
  -- reading a clock, because of which another call could differ, or nil.
  local function add_conditions(result, totals, raw, seen, unwritten)
    local left = totals and totals.unexplored or {}
    local followed = { ranks = raw.all_turns, unspecified = raw.unspecified and not raw.stages }
    local in_use = frees_in_use(result.hazards)
    followed.collected = in_use -- told more exactly here
    result.claim = "every-legal-schedule"
    for i, line in ipairs(left) do
      local key = left.keys[i]
      if TRIED[key] then line = TRIED[key]:format(plural(totals[key], "pair") .. " of launches") end
      if not followed[key] then add_condition(result, line) end
      if key == "host_functions" then result.not_followed.shared = true end
    end
    if unwritten or raw.reads_fresh or reads_unwritten(result.hazards) then
      add_condition(result, "This holds if memory that nothing has written reads as in this run.")
      result.not_followed.unwritten = true
    end
    if in_use then
      add_condition(result, COLLECTOR)
      result.not_followed.collector = true
    end
    if raw.caught then
      add_condition(result, "the function catches a failure of the device; nothing is claimed about what comes after")
      result.claim, result.deterministic = "none", false
    end
    if left.claim == "none" then result.claim, result.deterministic = "none", false end
    if raw.prints then
      add_condition(result, "This holds for all but what kernels print: printf is not compared.")
      result.not_followed.prints = true
    end
    if meets_in_other_orders(result) then
      add_condition(result, "This holds if no GPU has room for collectives of two communicators at a time (R64): with "
        .. "room they may get through.")
    end
    if raw.may_mix then add_parts(result, raw.grain, raw.is_script) end
    add_inner_races(result)
    if not result.complete then result.claim = "none" end
    if raw.called_once then
      add_condition(result, AGAIN:format("there was time for one call"))
      result.not_followed.called_once = true
    elseif seen then add_condition(result, AGAIN:format("it " .. seen)) end
  end

  local function note_tasks(result)
    local reason = unexplored.reason()
    if not reason then return end
    result.complete, result.deterministic = false, false
    result.incomplete = result.incomplete or reason
  end

  -- The results of a call, and before them what it has printed and written, a line each; nil: they cannot be shown.
  local function lines_of(results, output)
    local lines = {}
    for line in (output and output.printed .. "\n" .. (output.written or "") or ""):gmatch("[^\n]+") do
      lines[#lines + 1] = line
    end
    for i = 2, results and results.n or 0 do
      local fine, text = pcall(show.value, results[i])
      if not fine then return nil end
      for line in (type(results[i]) == "string" and results[i] or text):gmatch("[^\n]+") do
        lines[#lines + 1] = line
      end
    end
    return lines
  end

  -- The error of a function that returned two values under one schedule, with the first line in which they differ.
  local function with_values(err, last)
    local text = tostring(err)
    local before, now = lines_of(last.before, last.output_before), lines_of(last.results, last.output)
    if not text:find("it returns another value", 1, true) or not before or not now then return err end
    for i = 1, math.max(#before, #now) do
      if before[i] ~= now[i] then
        return ("%s: first `%.80s`, then `%.80s`"):format(text, before[i] or "nothing", now[i] or "nothing")
      end
    end
    return err
  end

  -- The same with a call that may be the reason.
  local function with_suspect(err, suspect)
    local is_known = suspect and tostring(err):find("is not repeatable", 1, true)
    return is_known and ("%s. %s"):format(tostring(err), suspect) or err
  end

  -- `output`: of a script (runner); the caller prints the result.
  function parts.explore(fn, given, output)
    local is_script = output ~= nil
    check_function("explore", fn)
    if mr.hazard.mode() == "error" then
      misuse("explore: not with hazard mode \"error\" (--check=error), in which no schedule goes on after a hazard; "
        .. "use \"warn\" or \"collect\", or leave it out: the result has the hazards, too")
    end
    local o = options.read(given)
    return guarded("explore", function(keeper)
      local found = {}
      unexplored.clear()
      local last = {}
      local run = runner(fn, last, checker(found, fn, is_script), output)
      local fine, raw = pcall(tools.explore, run, keeper, nil, o.max, o.time, o.preempt, o.grain, o.polls,
        o.unspecified, o.seeds, o.seed, o.memory, o.full, o.workers)
      local suspect = tools.suspect() or found.seen and "The function " .. found.seen
      if not fine then error(with_suspect(with_values(raw, last), suspect), 0) end
      local race = {} -- of the first hazard: marked in the timelines of outcomes
      local result = read_result(raw, fn, race)
      tools.put_back(keeper)
      local totals
      result.hazards, totals = hazards_of(fn, found, race)
      result.hazard_count = math.max(found.hazards, #result.hazards)
      note_tasks(result)
      raw.unspecified, raw.grain, raw.is_script = o.unspecified, o.grain, is_script
      raw.prints, raw.caught = tools.may_print(keeper), last.caught
      add_conditions(result, totals, raw, found.seen, last.unwritten)
      result.called_once, result.all_turns, result.unspecified, result.stages = nil, nil, nil, nil
      result.reads_fresh = nil
      result.may_mix, result.grain, result.is_script, result.prints, result.caught = nil, nil, nil, nil, nil
      result.drawn = o.seeds > 0 or nil
      if raw.ends and not is_script then
        io.stderr:write("explore: asked to end; found by then:\n", tostring(result), "\n")
        tools.end_again()
      end
      result.ends = nil
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
      misuse("replay: the function does not follow the schedule; it was made for another function, or what the "
        .. "function uses has changed")
    end
    return unpack(last.results, 2, last.results.n)
  end

  local core = { values = values, show = show, options = options, runner = runner, call = call, guarded = guarded,
                 check_function = check_function, add_condition = add_condition }
  parts.stress = new_stress(tools, core)
  parts.script = new_script(tools, parts.explore, core)
  return parts
end
