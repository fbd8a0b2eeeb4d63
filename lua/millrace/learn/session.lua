-- The dialogue of `millrace learn`: asks, shows the run, explains, and grades the learner's file whenever it is saved.
--
-- Nothing that a learner has written is ever overwritten: `:reset` renames the file first.

local course_tools = require "millrace.learn.course"
local grader = require "millrace.learn.grader"
local progress = require "millrace.learn.progress"
local question = require "millrace.learn.question"
local text = require "millrace.learn.text"

local session = {}

local COMMANDS = [[
  :next   the next lesson              :list   all lessons, and their state
  :skip   the next lesson, marked as skipped
  :quit   leave; everything is kept]]

local OF_EXERCISE = [[
  :hint   a hint; there are three      :show   a right solution
  :check  grade the file now           :reset  begin the exercise again]]

local ABOUT_NAMES = "What a name does: millrace -e 'mr.help(\"wait_event\")' in another terminal."

local function say(...) print(text.wrap(string.format(...))) end

local function rule() print(("-"):rep(78)) end

-- ---------------------------------------------------------------- the learner's file

local function exists(path)
  local file = io.open(path, "rb")
  if file then file:close() end
  return file ~= nil
end

local function exercise_folder()
  local chosen = os.getenv("MILLRACE_LESSONS")
  return chosen and chosen ~= "" and chosen or (os.getenv("HOME") or ".") .. "/millrace-lessons"
end

-- Exercises of a teacher's course have a folder of their own, by the name of the course.
local function path_of(course, lesson)
  local folder = exercise_folder()
  if course.id ~= "millrace" then folder = folder .. "/" .. course.id:match("[^/]*$") end
  return folder, folder .. "/" .. lesson.name
end

local function write_start(tools, course, lesson)
  local folder, path = path_of(course, lesson)
  if exists(path) then return path end
  if not tools.make_folders(folder) then error(("learn: the folder %s cannot be made"):format(folder), 0) end
  local message = tools.replace(path, lesson.exercise.start)
  if message then error("learn: " .. message, 0) end
  return path
end

-- Renames the file to the first free name, and writes the start again.
local function reset(s)
  local number = 1
  while exists(("%s.%d"):format(s.path, number)) do number = number + 1 end
  local kept = ("%s.%d"):format(s.path, number)
  if exists(s.path) then assert(os.rename(s.path, kept)) end
  write_start(s.tools, s.course, s.lesson)
  s.tools.watch(s.path)
  say("The file is as it was at the start. Yours is kept as %s.", kept)
end

-- ---------------------------------------------------------------- grading

local function note(s, state)
  if s.progress.note(s.lesson, state) or s.has_complained then return end
  s.has_complained = true
  say("Your progress cannot be written to the state folder. The lessons go on without it.")
end

local function grade(s)
  local solution, why = course_tools.read_file(s.tools, s.path)
  if not solution then return say("%s", why) end
  local reason, message = grader.grade(s.tools, s.lesson, solution, s.lesson.name)
  print()
  say("%s", message)
  if reason ~= "passed" then return end
  note(s, "passed")
  print()
  say("%s", s.tools.bold("To take home: ") .. s.lesson.take_home)
  print()
  say("%s", s.course[s.lesson.number + 1] and "Lesson done. :next goes on." or
    "Lesson done. It was the last one. :list shows all, :quit leaves.")
end

-- ---------------------------------------------------------------- commands

local function hint(s)
  s.hints = math.min(s.hints + 1, #s.lesson.hints)
  say("Hint %d of %d: %s", s.hints, #s.lesson.hints, s.lesson.hints[s.hints])
end

local function show_list(s)
  for _, lesson in ipairs(s.course) do
    print(("%3d  %-52s %s"):format(lesson.number, lesson.title, s.progress.state(lesson) or "-"))
  end
end

-- A command returns the session's next action: "next" or "quit"; nil: it goes on.
local commands = {
  list = show_list,
  skip = function(s)
    note(s, "skipped")
    return "next"
  end,
  next = function() return "next" end,
  quit = function() return "quit" end,
  help = function(s)
    print(COMMANDS)
    if not s.path then print("Later, in the exercise:") end
    print(OF_EXERCISE)
    print(ABOUT_NAMES)
  end,
}
commands.q = commands.quit

-- Commands that need the exercise. Before that, a hint or a solution would spoil it.
local of_exercise = {
  hint = hint,
  check = grade,
  reset = reset,
  show = function(s)
    say("One right solution. Your file is as it was.")
    print(text.numbered(s.lesson.right[1]))
  end,
}

local function obey(s, line)
  local name = line:match("^%s*:(%a+)%s*$")
  if not name then return nil, false end
  local command = commands[name]
  if of_exercise[name] then
    if s.path then return of_exercise[name](s), true end
    say(":%s is for the exercise, which comes after the explanation.", name)
    return nil, true
  end
  if not command then
    say("There is no command :%s here. These are:", name)
    command = commands.help
  end
  return command(s), true
end

local function prompt(s, word)
  io.write(s.tools.bold(word .. "> "))
  io.flush()
end

-- ---------------------------------------------------------------- the question

local function show_program(s)
  local lesson = s.lesson
  rule()
  say("%s", s.tools.bold(("Lesson %d of %d: %s"):format(lesson.number, #s.course, lesson.title)))
  print(lesson.part)
  print()
  print(text.numbered(lesson.question.program))
  print()
end

local function ask(s, choices)
  say("%s", s.lesson.question.ask)
  for i, choice in ipairs(choices) do print(("  %d  %s"):format(i, choice)) end
  while true do
    prompt(s, "your guess, 1 to " .. #choices)
    local what, line = s.tools.wait()
    if what == "end" then return nil, "quit" end
    local number = math.tointeger(tonumber(line))
    if number and choices[number] then return number end
    local next_step, was_command = obey(s, line)
    if next_step then return nil, next_step end
    if not was_command and line:find("%S") then say("Type a number, or :help.") end
  end
end

local function wait_for_enter(s)
  while true do
    prompt(s, "Enter goes on")
    local what, line = s.tools.wait()
    if what == "end" then return "quit" end
    if not line:find("%S") then return nil end
    local next_step = obey(s, line)
    if next_step then return next_step end
  end
end

-- The steps of a schedule without plain allocations, which are rarely what matters.
local function order_of(outcome)
  local lines = {}
  for line in tostring(outcome.steps):gmatch("[^\n]+") do
    if not line:find("^%s*alloc ") then lines[#lines + 1] = line end
  end
  return table.concat(lines, "\n")
end

local function sentence_of(choice)
  local only = choice:match("^always (.*)$")
  return only and "It always prints " .. only .. "." or "It prints " .. choice .. "."
end

local function first_line(message) return tostring(message):match("^[^\n]*") end

-- Shows the order and the timeline, one screen each. Returns the session's next action; nil: it goes on.
local function show_run(s, outcomes, schedules, choices, guess, right)
  local outcome = question.surprise(outcomes, choices[guess])
  print()
  say("%s %s", guess == right and "Yes." or "Look again.", sentence_of(choices[right]))
  if schedules > 1 then
    say("It can run in %d orders that differ in effect. In this one it prints %s:", schedules, outcome.text)
    print(order_of(outcome))
    local next_step = wait_for_enter(s)
    if next_step then return next_step end
  end
  if outcome.error then say("The error: %s", first_line(outcome.error)) end
  print()
  outcome.trace:print { width = 78, short = false } -- a list of short bars does not help a learner
  return wait_for_enter(s)
end

-- ---------------------------------------------------------------- a lesson

local function explain(s)
  local lesson = s.lesson
  print()
  print((lesson.explanation:gsub("%s+$", "")))
  local word = lesson.rule and lesson.rule:find(",") and "Rules" or "Rule"
  if lesson.rule then print(("\n%s %s in docs/semantics.md."):format(word, lesson.rule)) end
end

local function exercise(s)
  s.path = write_start(s.tools, s.course, s.lesson)
  s.tools.watch(s.path)
  rule()
  say("%s", s.tools.bold "Exercise")
  print((s.lesson.exercise.task:gsub("%s+$", "")))
  print()
  say("Your file: %s", s.path)
  print("Open it in an editor. It is graded whenever you save it. :help lists commands.")
  say("To pass: right in every order, no race, no needless wait. The caller waits for the device before it reads " ..
    "your result, unless the task says otherwise.")
  while true do
    prompt(s, "exercise")
    local what, line = s.tools.wait(s.path)
    if what == "end" then return "quit" end
    if what == "saved" then
      grade(s)
    else
      local next_step, was_command = obey(s, line)
      if next_step then return next_step end
      if not was_command and line:find("%S") then say("Commands begin with a colon; :help lists them.") end
    end
  end
end

-- Returns "next" or "quit".
local function teach(s)
  s.hints, s.path = 0, nil
  local missing = course_tools.missing(s.lesson, s.tools)
  if missing then
    say("%s is left out: %s", s.lesson.title, missing)
    return "next"
  end
  note(s, "begun")
  local outcomes, schedules = question.outcomes(s.lesson)
  local choices, right = question.choices(s.lesson, outcomes)
  show_program(s)
  local guess, next_step = ask(s, choices)
  if not guess then return next_step end
  next_step = show_run(s, outcomes, schedules, choices, guess, right)
  if next_step then return next_step end
  explain(s)
  next_step = wait_for_enter(s)
  return next_step or exercise(s)
end

local function first_open(course, done)
  for _, lesson in ipairs(course) do
    local state = done.state(lesson)
    if state ~= "passed" and state ~= "skipped" then return lesson.number end
  end
  return nil
end

-- Runs the lessons from this number on; without one, from the first that is open. Returns the exit status.
function session.run(tools, course, number)
  local done = progress.open(tools, course.id)
  number = number or first_open(course, done)
  if not number then
    print("You have done all lessons. `millrace learn NUMBER` opens one again.")
    return 0
  end
  local s = { tools = tools, course = course, progress = done }
  while course[number] do
    s.lesson = course[number]
    if teach(s) == "quit" then break end
    number = number + 1
  end
  if not course[number] then print("That was the last lesson.") end
  return 0
end

return session
