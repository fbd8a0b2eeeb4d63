-- Reads the timeline of a solution: whether it does the required work (the rows of `uses`), the waits of the host, and
-- the amount of work.

local words = require "millrace.words"

local performed = {}

-- An operation that takes so long stands for the work of an exercise.
performed.LONG_MS = 0.1

function performed.is_here(where, name) return where and where:find(name .. ":", 1, true) == 1 end

function performed.line_of(where) return where:match(":(%d+)$") end

local is_here, line_of = performed.is_here, performed.line_of

-- Fields of a row of `uses` that are about the row, and are not fields of a span.
local OF_THE_ROW = {}
for field in ("after captures count elsewhere kind ms name stream text"):gmatch("%a+") do OF_THE_ROW[field] = true end
local KINDS = { work = { op = true, copy = true } } -- those with several kinds of spans
local EXACT_MS = 1e-6

-- Whether a span is as a row wants it. A name is a pattern.
local function fits(wanted, span, name)
  for field, value in pairs(wanted) do
    if not OF_THE_ROW[field] and span[field] ~= value then return false end
  end
  if wanted.kind and not (KINDS[wanted.kind] or { [wanted.kind] = true })[span.kind] then return false end
  local stream = (span.stream or ""):gsub("^default stream.*", "default")
  return (wanted.elsewhere or is_here(span.where, name)) and
    (not wanted.name or (span.name or ""):find("^" .. wanted.name .. "$") ~= nil) and
    (not wanted.stream or stream == wanted.stream) and
    (not wanted.ms or (span.finish or 0) - (span.start or 0) >= wanted.ms - EXACT_MS)
end

-- How many spans are as a row wants them, after the span with the number `after`: the count, and the first.
local function count_wanted(wanted, trace, name, after)
  local count, first = 0, nil
  for i, span in ipairs(trace.spans) do
    if i > after and fits(wanted, span, name) then count, first = count + 1, first or i end
  end
  return count, first
end

local WORDS = { op = "an operation", copy = "a copy", free = "a free", ["host-function"] = "a host function" }

-- A row in the words of a task: its own text, or one made from its fields.
local function text_of(wanted)
  if wanted.text then return wanted.text end
  local text = wanted.name and ("`%s`"):format((wanted.name:gsub("%?$", ""))) or WORDS[wanted.kind] or wanted.kind
  if wanted.ms then text = words.format("%g ms of %s", wanted.ms, text) end
  if (wanted.count or 1) > 1 then text = ("%d times %s"):format(wanted.count, text) end
  if wanted.stream == "default" then return text .. " on the default stream" end
  return wanted.stream and ("%s on `%s`"):format(text, wanted.stream) or text
end

local ASKED = "The result is right, but the task asks for %s: your function has %s."
local NOT_ALLOWED = "The result is right, but line %s has %s, which the task does not allow."
local NOT_CAPTURED = "The result is right, but the task asks for work on `%s` in the graph: it is in no capture of " ..
  "your function."

-- Requirements of a solution: `streams` (each of them works) and the rows of `uses`.
local function wanted_of(exercise)
  local rows = table.pack(table.unpack(exercise.uses or {}))
  for _, stream in ipairs(exercise.streams or {}) do rows[#rows + 1] = { kind = "work", stream = stream } end
  return rows
end

-- Whether the solution does the required work. docs/teaching.md describes a row of `uses`.
function performed.judge_uses(exercise, trace, seen, name)
  local firsts, rows = {}, wanted_of(exercise)
  for i, wanted in ipairs(rows) do
    local count, first = count_wanted(wanted, trace, name, firsts[wanted.after] or 0)
    firsts[i] = first
    if wanted.captures then
      if not seen.captured[wanted.captures] then return "uses", NOT_CAPTURED:format(wanted.captures) end
    elseif wanted.count == 0 and count > 0 then
      return "uses", NOT_ALLOWED:format(line_of(trace.spans[first].where), text_of(wanted))
    elseif count < (wanted.count or 1) then
      local asked = text_of(wanted) .. (wanted.after and ", behind " .. text_of(rows[wanted.after]) or "")
      return "uses", ASKED:format(asked, count == 0 and "none" or "only " .. count)
    end
  end
  return nil
end

-- The host waits of the solution: at which line, in which call. nil: none. A task that waits asks (docs/tasks.md).
local function host_wait_of(trace, seen, name)
  for _, span in ipairs(trace.spans) do
    local is_wait = span.kind:find("synchronize", 1, true)
    local is_await = seen.tasks and span.kind:find("query", 1, true)
    if span.engine == "host" and (is_wait or is_await) and is_here(span.where, name) then
      return line_of(span.where), is_wait and span.name or "await"
    end
  end
  return nil
end

-- Where the host must not wait, it may not pass the time with a clock either: so long is allowed.
local PASSED_MS = 0.5

function performed.judge_host(exercise, trace, seen, name)
  local line, call = host_wait_of(trace, seen, name)
  if line and line == seen.waiting_print then call = "print" end
  if exercise.host_waits == false and line then
    return "host", ("In line %s the host waits (%s). It must not wait in your function: let a stream wait, not the " ..
      "host."):format(line, call)
  end
  local most = exercise.host_ms or exercise.host_waits == false and PASSED_MS
  if not most or seen.host_ms <= most then return nil end
  return "host", words.format("The host waits for %.1f ms in your function. At most %g ms are allowed.",
    seen.host_ms, most)
end

-- The milliseconds of each operation of the solution that takes long, by its name.
function performed.work_in(trace, name)
  local work = {}
  for _, span in ipairs(trace.spans) do
    local ms = span.kind == "op" and is_here(span.where, name) and span.finish - span.start or 0
    if ms >= performed.LONG_MS then work[span.name] = (work[span.name] or 0) + ms end
  end
  return work
end

return performed
