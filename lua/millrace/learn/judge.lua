-- Grades one solution: runs it under every schedule, with other inputs, and looks at its hazards and waits.
--
-- It runs in a child of its own, under --sandbox. A solution gets a view of Lua and of `mr` (view.lua), so that it can
-- neither see nor change the judge. The verdict is a word for the reason, and a text for the learner: the mistake, and
-- an order that shows it, never the solution.

local grader = require "millrace.learn.grader"
local needless = require "millrace.learn.needless"
local performed = require "millrace.learn.performed"
local view = require "millrace.learn.view"
local words = require "millrace.words"

local explore, waits, timeline, clock = mr.explore, mr.waits, mr.timeline, mr.clock
local current_stream, set_stream, check_hazards = mr.current_stream, mr.set_stream, mr.hazard.check
local synchronize_device, device_count, spin = mr.synchronize, mr.device_count(), mr.spin

local is_here, line_of, LONG_MS = performed.is_here, performed.line_of, performed.LONG_MS

local judge = {}

-- At most so many schedules and seconds. The first search has many answers to queries. If it needs more schedules, the
-- program has loops of queries, or more orders than most programs of a lesson. The next search has fewer answers and
-- tries more schedules.
local FIRST_SCHEDULES, MOST_SCHEDULES, MOST_SECONDS = 500, 4000, 3

-- A query at one line says no at most so many times in a row. A loop of queries that gives up after fewer noes then
-- shows its behaviour. Two loops have as many orders as the product says, so few noes must do for them. Where the host
-- must not wait, a third question in a row is a wait.
local MANY_POLLS, FEW_POLLS, POLLS_WITHOUT_A_WAIT = 120, 3, 2

-- Limits of the search that tells whether a program ends at all.
local LIMITS_OF_AN_END = { max = 8, polls = 1 }

-- ---------------------------------------------------------------- values

local function is_tensor(value)
  return type(value) == "userdata" and pcall(function() return value.numel end)
end

local function has_tensor(value)
  if type(value) ~= "table" then return is_tensor(value) end
  for _, part in pairs(value) do if has_tensor(part) then return true end end
  return false
end

-- Values that the judge can compare: tensors become tables of numbers.
local function read(value)
  if is_tensor(value) then return value.ndim == 0 and value:item() or value:cpu():totable() end
  if type(value) ~= "table" then return value end
  local list = {}
  for key, part in pairs(value) do list[key] = read(part) end
  return list
end

local function same(a, b)
  if type(a) ~= "table" or type(b) ~= "table" then return a == b end
  for key, part in pairs(a) do if not same(part, b[key]) then return false end end
  for key in pairs(b) do if a[key] == nil then return false end end
  return true
end

local MOST_SHOWN = 8

local function show(value)
  if type(value) ~= "table" then return tostring(value) end
  local parts = {}
  for i, part in ipairs(value) do
    if i > MOST_SHOWN then
      parts[i] = "..."
      break
    end
    parts[i] = show(part)
  end
  return "{" .. table.concat(parts, ", ") .. "}"
end

-- ---------------------------------------------------------------- running

local function synchronize()
  for i = 0, device_count - 1 do synchronize_device(i) end
end

-- The numbers of the arguments that a solution may change, as a set. `changes` is one number, or a list.
local function changed_by(exercise)
  local set = {}
  local changes = exercise.changes
  for _, i in ipairs(type(changes) == "table" and changes or { changes }) do set[i] = true end
  return set
end

local function streams_among(values)
  local streams = {}
  for i = 1, values.n do
    local is_stream = type(values[i]) == "userdata" and pcall(function() return values[i].priority + 0 end)
    if is_stream then streams[#streams + 1] = values[i] end
  end
  return streams
end

-- Gives each of the streams, and the current one, so many milliseconds of work.
local function keep_busy(streams, ms)
  spin { ms = ms }
  for _, stream in ipairs(streams) do spin { ms = ms, stream = stream } end
end

-- A function for mr.explore and its sisters: makes inputs, calls the solution, and reads its results and the inputs'
-- final values. `delay`: the streams are busy for so many milliseconds when the solution begins.
local function program(exercise, solve, variant, seen, delay)
  local may_change = changed_by(exercise)
  return function()
    local inputs = table.pack(exercise.given(variant))
    synchronize()
    seen.streams = streams_among(inputs)
    if delay then keep_busy(seen.streams, delay) end
    local stream, before = current_stream(), clock()
    local returned = table.pack(solve(table.unpack(inputs, 1, inputs.n)))
    local result = returned[1]
    seen.values, seen.host_ms = returned.n, clock() - before
    set_stream(stream) -- the caller's: a solution may have left another one
    if exercise.join ~= false then synchronize() end
    local value = read(result)
    synchronize()
    local kept = {}
    for i = 1, inputs.n do
      if is_tensor(inputs[i]) and not may_change[i] then kept[i] = read(inputs[i]) end
    end
    return { value = value, kept = kept, is_tensor = exercise.numbers and has_tensor(result) }
  end
end

local function untouched(exercise, variant)
  return program(exercise, function() end, variant, {})().kept
end

-- ---------------------------------------------------------------- texts

-- Lines, where one that stands there several times in a row is written once: a loop of questions has many.
local function folded(lines)
  local shown, times = {}, {}
  for _, line in ipairs(lines) do
    if line ~= shown[#shown] then shown[#shown + 1] = line end
    times[#shown] = (times[#shown] or 0) + 1
  end
  for i, count in ipairs(times) do
    if count > 1 then shown[i] = ("%s  (%d times)"):format(shown[i], count) end
  end
  return table.concat(shown, "\n")
end

-- The steps of a schedule that stand in the solution, without allocations: those are rarely what matters.
local function steps_of(outcome, name)
  local lines = {}
  for line in tostring(outcome.steps):gmatch("[^\n]+") do
    if line:find(" " .. name .. ":", 1, true) and not line:find("^%s*alloc ") then
      lines[#lines + 1] = "  " .. line:gsub("^%s+", "")
    end
  end
  return folded(lines)
end

-- The place of the grader's program (grader.lua) in reports: it reads a result like the caller of a solution.
local CALLER = "%(command line%):%d+"

-- A report without its proposal: the two accesses, and why nothing orders them.
local function accesses_of(report)
  local lines = {}
  for line in report.message:gmatch("[^\n]+") do
    if line:find("^fix:") or line:find("^kind=") then break end
    line = line:gsub(" at " .. CALLER, ", where the caller reads your result")
    if not line:find("^hazard:") then lines[#lines + 1] = line:find("^ ") and line or "  " .. line end
  end
  return ("Nothing orders these two uses of `%s`:\n%s"):format(report.tensor or "memory", table.concat(lines, "\n"))
end

-- Parts of an error that would be the answer of a lesson, or that are not for a learner.
local PROPOSALS = { " Let stream `[^`]*` wait for stream `[^`]*` before the end: wait_stream%.",
  ", made at lesson:[^ )]*:%d+", ": every call fails until mr%.reset%(%)" }

-- A look at memory that is not an access has no place in an order. Returns nil for another error.
local function peek_in(text)
  local call, line = text:match("the function calls (%S+%(%)), which is not an access.*:(%d+)%)$")
  return call and ("In line %s your function calls %s, which has no place in an order. Read values with t:item() or " ..
    "t:cpu()."):format(line, call)
end

-- Where a kernel of the solution stands in its text: how many lines are above it. Nil: it is made otherwise.
local function lines_above(kernel, text)
  local at = text:find(kernel, 1, true)
  return at and select(2, text:sub(1, at - 1):gsub("\n", ""))
end

-- A message whose lines of a kernel are those of the file. `seen.kernels` are the texts of the kernels.
local function with_lines_of_file(message, seen, text, name)
  local wanted = message:match("kernel `([%w_]+)`")
  local kernel
  for _, one in ipairs(seen.kernels) do
    if #seen.kernels == 1 or wanted and one:find("%f[%w_]" .. wanted .. "%f[^%w_]") then kernel = kernel or one end
  end
  local above = kernel and lines_above(kernel, text)
  if not above then return message end
  return (message:gsub("<kernel text>:(%d+)", function(line) return ("%s:%d"):format(name, line + above) end))
end

local UNREPEATABLE = "Called twice with the same values, your function does two different things. It may not " ..
  "depend on a clock, on a random number or on a variable that it changes."

local function failure(text, order)
  text = tostring(text):gsub("\nstack traceback.*$", "")
  if text:find("not enough memory", 1, true) then return "memory", grader.TOO_MUCH_MEMORY end
  if text:find("out of memory", 1, true) then
    return "memory", "Your program needs too much memory. Tensors as large as its inputs are enough:\n  " .. text
  end
  local peek = peek_in(text)
  if peek then return "error", peek end
  if text:find("not repeatable", 1, true) then
    return "unrepeatable", UNREPEATABLE
  end
  if text:find("too long to be recorded", 1, true) then
    return "endless", "Your program does not come to an end: it submits more and more work."
  end
  for _, proposal in ipairs(PROPOSALS) do text = text:gsub(proposal, "") end
  return "error", "Your program ends with an error:\n  " .. text .. (order or "")
end

-- ---------------------------------------------------------------- the checks

local function no_result(seen)
  if seen.printed then
    return "prints", "Your function prints, and returns nothing. Its output is not looked at: return the result."
  end
  return "nothing", "Your function returns nothing. It has to return the result."
end

local function solution_of(text, name, seen)
  local chunk, message = load(text, "=" .. name, "t", view.environment(seen))
  if not chunk then return nil, "syntax", "Lua cannot read your file:\n  " .. message end
  local ok, solve = pcall(chunk)
  if seen.caught then return nil, "catches" end
  if not ok then return nil, failure(solve) end
  if type(solve) ~= "function" then
    if seen.printed then return nil, no_result(seen) end
    return nil, "nothing", "Your file returns no function. It has to end as it did at the start: `return function`."
  end
  return solve
end

local function orders_of(result)
  return result.combined and result.combined.classes or result.schedules
end

-- The solution's own names of its arguments, if they are at the same place as in the start file.
local function arguments_in(text)
  local names = {}
  local list = ("\n" .. text):match("\nreturn function%s*%(([%w_%s,]*)%)") or ""
  for name in list:gmatch("[%w_]+") do names[#names + 1] = name end
  return names
end

local function seen_of(text) return { barriers = {}, kernels = {}, captured = {}, arguments = arguments_in(text) } end

local function argument(seen, i)
  return seen.arguments[i] and ("argument `%s`"):format(seen.arguments[i]) or "argument " .. i
end

local NO_NUMBERS = "The task asks for numbers, and your result has a tensor. t:item() returns the number in a tensor."

local NO_NUMBER = "The result is a tensor, and the task asks for the number in it: t:item() returns it."
local NO_TENSOR = "The result is a number, and the task asks for the tensor."
local NO_TABLE = "The result is %s, and the task asks for a table of %d values."

local MANY_VALUES = "Your function returns %d values, and only the first of them is the result. Return one value: " ..
  "a table, if the task asks for several."

-- The error of a result that is wrong in each order.
local function mistake_in(got, expected, seen)
  if seen.values > 1 then return MANY_VALUES:format(seen.values) end
  if type(expected) == "number" and same(got, { expected }) then return NO_NUMBER end
  if type(got) == "number" and same({ got }, expected) then return NO_TENSOR end
  if type(got) ~= "table" and type(expected) == "table" and #expected > 1 then
    return NO_TABLE:format(show(got), #expected)
  end
  return ("The result is %s. That is not what the task asks for."):format(show(got))
end

local function count_of(outcome, result)
  local orders = orders_of(result)
  return orders == 1 and "in its only order" or words.format("in %d of %.0f orders", outcome.count, orders)
end

-- The first race of the solution, or nil. A free by Lua's collector is not a race of the solution. The explorer lets it
-- free all garbage as soon as the host waits, which is after the function has returned.
local function race_in(result)
  for _, report in ipairs(result.hazards) do
    if report.kind ~= "use-after-free" or (report.second or {}).where then return report end
  end
  return nil
end

-- Every order of one variant. Returns nil if all is well, else the reason and the text.
local function judge_orders(lesson, result, variant, seen, name)
  local exercise = lesson.exercise
  local expected, kept = exercise.answer(variant), untouched(exercise, variant)
  local wrong, right
  for _, outcome in ipairs(result.outcomes) do
    local order = ("\nIt happens %s. One of them:\n%s"):format(count_of(outcome, result), steps_of(outcome, name))
    if outcome.error then return failure(outcome.error, result.schedules > 1 and order or "") end
    local value = outcome.value
    if value.value == nil then return no_result(seen) end
    for i, before in pairs(kept) do
      if not same(value.kept[i], before) then
        return "input", ("Your function changes its %s. It was %s, and is %s afterwards."):format(
          argument(seen, i), show(before), show(value.kept[i]))
      end
    end
    if value.is_tensor then return "wrong", NO_NUMBERS end
    if same(value.value, expected) then right = outcome else wrong = wrong or outcome end
  end
  if not wrong then return nil end
  local got = wrong.value.value
  local first_race = race_in(result)
  local race = first_race and "\n" .. accesses_of(first_race) or ""
  if not right then return "wrong", mistake_in(got, expected, seen) .. race end
  local text = ("The result is wrong %s: it is %s there. One such order:\n%s"):format(count_of(wrong, result),
    show(got), steps_of(wrong, name))
  return "schedule", text .. race
end

-- The result was right in the calls before. A call that is judged for its speed or its waits counts only if the result
-- is right there, too.
local function still_right(exercise, run, seen)
  local expected = exercise.answer(1)
  return function()
    local value = run()
    seen.differs = seen.differs or not same(value.value, expected)
    return value
  end
end

-- Names actions of the solution that have no effect, where its result is wrong: a line for each, or an empty text.
local function remarks_on(run, name)
  local ok, trace = pcall(timeline, run)
  if not ok then return "" end
  local text, launched, said = "", false, {}
  local function say(format, span)
    local line = format:format(line_of(span.where))
    if not said[line] then text = text .. "\n" .. line end
    said[line] = true
  end
  for _, span in ipairs(trace.spans) do
    local is_launch = span.kind == "record" and span.name == "launch"
    local recorded = span.kind == "wait" and trace.spans[span.record]
    if is_here(span.where, name) then
      if is_launch and launched then
        say("The graph that line %s launches is empty: no stream that your function used joined the capture (R39).",
          span)
      elseif recorded and recorded.stream == span.stream then
        say("In line %s a stream waits for itself. That does nothing.", span)
      end
    end
    launched = is_launch
  end
  return text
end

-- The work of the start that the solution leaves out: without it no two streams can be busy at once. nil: none.
local function missing_work(exercise, trace, name)
  local seen = seen_of(exercise.start)
  local start = solution_of(exercise.start, name, seen)
  local ok, at_start = pcall(timeline, program(exercise, start, 1, seen))
  local done, names = performed.work_in(trace, name), {}
  local wanted = ok and performed.work_in(at_start, name) or {}
  for operation in pairs(wanted) do names[#names + 1] = operation end
  table.sort(names)
  for _, operation in ipairs(names) do
    local ms = done[operation] or 0
    if ms < wanted[operation] - LONG_MS then
      return words.format("the start has %.1f ms of `%s`, and your function has %s: keep that work.",
        wanted[operation], operation, ms == 0 and "none" or words.format("%.1f ms", ms))
    end
  end
  return nil
end

local function judge_overlap(exercise, trace, name)
  local overlap = exercise.overlap
  local is_there, got = pcall(trace.overlap, trace, overlap[1], overlap[2])
  got = is_there and got or 0
  if got >= overlap[3] then return nil end
  local form = overlap[3] < 0.1 and "%.3f ms" or "%.1f ms"
  local cause = missing_work(exercise, trace, name) or "one stream is idle while the other works."
  return "serial", words.format("The result is right, but %s `%s` and `%s` work at the same time for " .. form ..
    ". At least " .. form .. " are possible.", cause, overlap[1], overlap[2], got, overlap[3])
end

local function judge_speed(exercise, run, seen, name)
  local trace = timeline(still_right(exercise, run, seen))
  if seen.differs then return "unrepeatable", UNREPEATABLE end
  local reason, message = performed.judge_uses(exercise, trace, seen, name)
  if not reason then reason, message = performed.judge_host(exercise, trace, seen, name) end
  if reason then return reason, message end
  if exercise.overlap then return judge_overlap(exercise, trace, name) end
  return nil
end

-- mr.waits leaves a member of a barrier out as a whole. Here each member stays for the others, but does not wait
-- itself.
local function judge_barriers(run, seen)
  for where, members in pairs(seen.barriers) do
    for member = 1, members do
      seen.left_out = { where = where, member = member }
      local reports, name = check_hazards(run), seen.left_out.name
      seen.left_out = nil
      if not reports[1] then
        return "wait", ("The result is right, but in line %s a wait is without need: `%s` waits in the barrier for " ..
          "nothing that it uses. Let a single stream wait."):format(where:match(":(%d+):") or "?", name or member)
      end
    end
  end
  return nil
end

-- So long the streams are busy when it is asked whether a wait after a loop of questions is needed.
local BUSY_MS = 2

-- The places of the waits that are needed where a loop of questions gives up, as a set.
local function needed_behind_a_loop(exercise, solve, seen)
  local places = {}
  if not seen.asks_in_a_loop then return places end
  for _, wait in ipairs(waits(program(exercise, solve, 1, seen, BUSY_MS)).waits) do
    if wait.kept then places[wait.where] = true end
  end
  return places
end

local function judge_waits(exercise, solve, seen, name)
  local run = program(exercise, solve, 1, seen)
  local result = waits(still_right(exercise, run, seen))
  if seen.differs then return "unrepeatable", UNREPEATABLE end
  local is_needed = needed_behind_a_loop(exercise, solve, seen)
  for _, wait in ipairs(result.waits) do
    if not wait.kept and not is_needed[wait.where] and is_here(wait.where, name) then
      return "wait", ("The result is right, but line %s waits without need (%s): %s"):format(
        line_of(wait.where), wait.kind, needless.because_of(wait, result.waits, name, exercise))
    end
  end
  local reason, message = needless.judge_record_streams(result, name)
  if reason then return reason, message end
  return judge_barriers(run, seen)
end

local CAUGHT = "Your program catches errors (pcall). A caught error is still an error: do not catch it, and fix its " ..
  "cause."

local BY_CONSTANT = "The result is right for the first inputs, and wrong for others. Compute it from the " ..
  "arguments.\n"

-- A loop that asks until it is told yes has endlessly many orders; the explorer says how many answers it has tried.
local function praise_of(result)
  if not result.complete then return "Right in each order that was tried: " .. result.incomplete .. "." end
  if result.schedules == 1 then return "Right: only one order with an effect is left, and its result is right." end
  return words.format("Right in each of %.0f orders.", orders_of(result))
end

-- A result like mr.explore's, from one run with the device model's times. For exercises that read a clock: a time is
-- meaningful only there.
local function run_once(run)
  local outcome = { count = 1, steps = "" }
  local hazards = check_hazards(function()
    local ok, value = pcall(run)
    outcome[ok and "value" or "error"] = value
  end)
  return { schedules = 1, complete = true, outcomes = { outcome }, hazards = hazards }
end

-- The line of a query that was answered no as often as it may be: it stands in a loop. nil: there is none.
local function loop_of_questions(result, name)
  local where = not result.complete and result.incomplete:match("^the query at (.-:%d+) was answered no")
  return where and is_here(where, name) and line_of(where)
end

-- So long the streams are busy for a loop of questions: about 100,000 are answered no.
local PATIENCE_MS = 50

-- The error of a loop of questions that goes on without a yes. Nil: nothing, it asks on.
local function giving_up(exercise, solve, seen, line)
  local outcome = run_once(program(exercise, solve, 1, seen, PATIENCE_MS)).outcomes[1]
  if not outcome.value or same(outcome.value.value, exercise.answer(1)) then return nil end
  return ("The loop of queries in line %s gives up: after %d ms of other work it ends without a yes, and then the " ..
    "result is %s."):format(line, PATIENCE_MS, show(outcome.value.value))
end

-- How the orders are tried. `few`: a query says no a few times only.
local function limits_of(exercise, few)
  local polls = exercise.host_waits == false and POLLS_WITHOUT_A_WAIT or few and FEW_POLLS or MANY_POLLS
  return { max = few and MOST_SCHEDULES or FIRST_SCHEDULES, time = MOST_SECONDS, polls = polls }
end

-- Judges the orders of one variant. Returns nil if all is well, else the reason and the text.
local function judge_variant(lesson, result, variant, seen, name)
  local reason, message = judge_orders(lesson, result, variant, seen, name)
  if reason then return reason, message end
  local race = race_in(result)
  if race then return "hazard", "The result is right here, but by luck.\n" .. accesses_of(race) end
  local line = lesson.exercise.host_waits == false and loop_of_questions(result, name)
  if line then
    return "host", ("In line %s the host polls until the answer is yes (query), so it waits. It must not wait in " ..
      "your function: let a stream wait, not the host."):format(line)
  end
  -- A search that was cut off names choices that it has not tried. One that bounds the answers to queries does not.
  local is_cut = not result.complete and (result.untried or not result.incomplete:find("^the query "))
  if is_cut then return "orders", grader.TOO_MANY_ORDERS end
  return nil
end

-- All orders, with all inputs. Returns nil and the praise if all is well, else the reason and the text.
local function judge_results(lesson, solve, name, seen, few)
  local praise
  local limits = limits_of(lesson.exercise, few)
  for variant = 1, lesson.exercise.variants or 2 do
    local run = program(lesson.exercise, solve, variant, seen)
    local ok, result = pcall(lesson.exercise.once and run_once or explore, run, limits)
    if not ok then return failure(result) end
    local reason, message = judge_variant(lesson, result, variant, seen, name)
    if reason == "wrong" or reason == "schedule" then message = message .. remarks_on(run, name) end
    if variant > 1 and reason == "wrong" then return "constant", BY_CONSTANT .. message end
    if reason then return reason, message end
    local line = variant == 1 and loop_of_questions(result, name)
    seen.asks_in_a_loop = seen.asks_in_a_loop or line
    message = line and giving_up(lesson.exercise, solve, seen, line)
    if message then return "schedule", message end
    praise = praise or praise_of(result)
  end
  return nil, praise
end

local function judge_all(lesson, text, name, seen, few)
  local exercise = lesson.exercise
  local solve, reason, message = solution_of(text, name, seen)
  if not solve then return reason, message end
  local found, text_or_praise = judge_results(lesson, solve, name, seen, few)
  if found then return found, text_or_praise end
  local run = program(exercise, solve, 1, seen)
  reason, message = judge_speed(exercise, run, seen, name)
  if not reason and exercise.minimal ~= false then reason, message = judge_waits(exercise, solve, seen, name) end
  if reason then return reason, message end
  return "passed", text_or_praise
end

-- Returns the reason, "passed" if there is nothing to mend, and the text for the learner. `few`: a query says no a few
-- times only, so that a program with several loops of questions has few orders.
function judge.grade(lesson, text, name, few)
  local seen = seen_of(text)
  local reason, message = judge_all(lesson, text, name, seen, few)
  if seen.caught then return "catches", CAUGHT end
  return reason, with_lines_of_file(message, seen, text, name)
end

-- Returns "ends" where each of a few orders comes to an end. Where one does not, the limits of the process end it.
function judge.come_to_an_end(lesson, text, name)
  local seen = seen_of(text)
  local solve = solution_of(text, name, seen)
  local run = solve and program(lesson.exercise, solve, 1, seen)
  if run then pcall(lesson.exercise.once and run_once or explore, run, LIMITS_OF_AN_END) end
  return "ends", ""
end

return judge
