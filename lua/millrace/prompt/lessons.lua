-- `:lesson`: an exercise of `millrace learn` at the prompt. The solution is what one has typed since it was opened.
--
-- It is graded as a handed-in file is: in a process of its own, on virtual devices. The session is only read.
local require = require
local _, tools = ...

local opened -- {lesson =, course =, after = (the number of entries before it), hints = (shown so far)}

-- What `millrace learn` asks of the host; nil in a sandbox, which starts no process.
local host = tools.lessons

local USAGE = {
  "Type your solution: the last entry returns the function. Then:",
  "  :lesson        grades what you have typed",
  "  :lesson hint   a hint; there are three",
  "  :lesson text   the explanation",
  "  :lesson show   one right solution",
  "  :lesson reset  begins the exercise again",
  "  :lesson next   the next lesson; `:lesson skip` marks this one as skipped",
}

local function add_text(lines, text)
  for line in (text:gsub("%s+$", "") .. "\n"):gmatch("([^\n]*)\n") do lines[#lines + 1] = line end
end

-- The lines that are typed from now on are the solution.
local function begin()
  opened.after, opened.hints = #tools.require("session").entries, 0
end

local function open(number)
  local course = require "millrace.learn.course".open(host)
  local lesson = course[number]
  if not lesson then return nil, (":lesson: there is no lesson %d: the last one is %d"):format(number, #course) end
  opened = { lesson = lesson, course = course }
  begin()
  local lines = { ("Lesson %d of %d: %s"):format(number, #course, lesson.title), "" }
  add_text(lines, lesson.exercise.task)
  lines[#lines + 1] = ""
  add_text(lines, lesson.exercise.start)
  lines[#lines + 1] = ""
  for _, line in ipairs(USAGE) do lines[#lines + 1] = line end
  return lines
end

-- The text of an entry as what ends a solution: it returns a function. nil: it does not.
local function result_of(entry)
  if entry.text:find("^%s*return%f[%W]") then return entry.text end
  local is_function = entry.values and type(entry.values[1]) == "function" or entry.text:find("^%s*function%s*%(")
  return is_function and "return " .. entry.text or nil
end

-- The entries since the lesson was opened, as one file, and the place of each of its lines at the prompt; nil: no
-- entry returns a function.
local function solution()
  local session, parts, result = tools.require("session"), {}, nil
  for n = opened.after + 1, #session.entries do
    local entry = session.entries[n]
    if not entry.failed and not entry.stopped then
      local last = result_of(entry)
      if last then result = { name = entry.name, text = last }
      elseif load(entry.text) then parts[#parts + 1] = { name = entry.name, text = entry.text } end
    end
  end
  if not result then return nil end
  parts[#parts + 1] = result
  local texts, places = {}, {}
  for i, part in ipairs(parts) do
    texts[i] = part.text
    local line = 0
    for _ in (part.text .. "\n"):gmatch("\n") do
      line = line + 1
      places[#places + 1] = ("%s:%d"):format(part.name, line)
    end
  end
  return table.concat(texts, "\n"), places
end

-- The grader's text with the places as they are at the prompt.
local function at_prompt(message, places)
  local function place(line) return places[tonumber(line)] end
  return (message:gsub("%f[%w]solution:(%d+)", place):gsub("%f[%w]line (%d+)", place))
end

local function note(state)
  require "millrace.learn.progress".open(host, opened.course.id).note(opened.lesson, state)
end

local function grade()
  local text, places = solution()
  if not text then
    return nil, ":lesson: none of your entries returns a function: end with `return function(...) ... end`"
  end
  local lesson = opened.lesson
  local reason, message = require "millrace.learn.grader".grade(host, lesson, text, "solution")
  local lines = {}
  add_text(lines, at_prompt(message, places))
  if reason == "passed" then
    note "passed"
    lines[#lines + 1] = "To take home: " .. lesson.take_home
    lines[#lines + 1] = "Lesson done. `:lesson next` goes on."
  end
  return lines
end

local function open_next()
  if not opened.course[opened.lesson.number + 1] then return { "That was the last lesson." } end
  return open(opened.lesson.number + 1)
end

local actions = {
  next = open_next,
  skip = function()
    note "skipped"
    return open_next()
  end,
  reset = function()
    begin()
    local lines = { "Entries before this one are no part of your solution any more. The start again:", "" }
    add_text(lines, opened.lesson.exercise.start)
    return lines
  end,
  hint = function()
    opened.hints = math.min(opened.hints + 1, #opened.lesson.hints)
    return { ("Hint %d of %d: %s"):format(opened.hints, #opened.lesson.hints, opened.lesson.hints[opened.hints]) }
  end,
  text = function()
    local lines = {}
    add_text(lines, opened.lesson.explanation)
    return lines
  end,
  show = function()
    local lines = {}
    add_text(lines, opened.lesson.right[1])
    return lines
  end,
}

local function run(words)
  if not host then return nil, ":lesson is not available in a sandbox" end
  local number = math.tointeger(tonumber(words[1]))
  if number then return open(number) end
  if words[1] and not actions[words[1]] then
    return nil, (":lesson: `%s` is no number of a lesson, and not hint, next, reset, show, skip or text"):format(
      words[1])
  end
  if not opened then return nil, ":lesson: no lesson is open: `:lesson 1` opens the first" end
  if words[1] then return actions[words[1]]() end
  return grade()
end

return function(commands)
  commands.add{ name = "lesson", usage = "[n|hint|next|reset|show|skip|text]",
    text = "Opens an exercise of millrace learn; alone, grades what you have typed since then.",
    complete = function() return { "hint", "next", "reset", "show", "skip", "text" } end,
    run = run }
end
