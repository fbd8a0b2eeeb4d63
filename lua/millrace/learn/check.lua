-- `millrace learn --check FILE`: runs the tests of a lesson, which stand in its file. Right solutions must pass, and
-- wrong ones must fail for the reason that the lesson names. The mistakes that lessons share must fail so, too
-- (mistakes.lua).

local course = require "millrace.learn.course"
local grader = require "millrace.learn.grader"
local mistakes = require "millrace.learn.mistakes"
local question = require "millrace.learn.question"
local text = require "millrace.learn.text"

local check = {}

local MOST_COLUMNS = 79
local MOST_OF_TITLE = 52 -- in a list, in front of the state

local function texts_of(outcomes)
  local texts = {}
  for i, outcome in ipairs(outcomes) do texts[i] = outcome.text end
  return table.concat(texts, " | ")
end

-- Calls `say(is_good, what, detail)` for each check. These texts are shown as they are; all others are wrapped.
local function check_texts(lesson, say)
  local shown = { program = text.numbered(lesson.question.program), explanation = lesson.explanation,
                  task = lesson.exercise.task, start = lesson.exercise.start, title = lesson.title }
  for name, part in pairs(shown) do
    local widest, most = text.widest(part), name == "title" and MOST_OF_TITLE or MOST_COLUMNS
    if widest > most then say(false, name, ("a line has %d columns, of %d"):format(widest, most)) end
  end
end

local function check_question(lesson, say)
  local ok, outcomes = pcall(question.outcomes, lesson)
  if not ok then return say(false, "question", tostring(outcomes)) end
  local found, expected = texts_of(outcomes), table.concat(lesson.question.outcomes or {}, " | ")
  say(found == expected, "question", found == expected and found or
    ("it can print %s; the lesson says %s"):format(found, expected))
  local usual = lesson.question.usual
  local _, right = question.choices(lesson, outcomes)
  local choices = question.choices(lesson, outcomes)
  local is_choice = false
  for i, choice in ipairs(choices) do is_choice = is_choice or choice == usual and i ~= right end
  say(is_choice, "usual guess", is_choice and usual or ("`%s` is no wrong choice of %s"):format(tostring(usual),
    table.concat(choices, " / ")))
end

local function first_line(message) return message:match("^[^\n]*") end

-- Returns how many wrong solutions it has tried.
local function check_solutions(tools, lesson, say)
  local name = lesson.name
  local function grade(solution) return grader.grade(tools, lesson, solution, name) end
  local reason, message = grade(lesson.exercise.start)
  say(reason ~= "passed", "start file", reason .. ": " .. first_line(message))
  for i, solution in ipairs(lesson.right) do
    reason, message = grade(solution)
    say(reason == "passed", "right " .. i, reason == "passed" and first_line(message) or reason .. ": " .. message)
  end
  for i, wrong in ipairs(lesson.wrong) do
    reason, message = grade(wrong[2])
    say(reason == wrong[1], ("wrong %d"):format(i), ("%s: %s"):format(reason, reason == wrong[1] and
      first_line(message) or message .. "\n  expected: " .. wrong[1]))
  end
  local shared = mistakes.of(lesson)
  for _, mistake in ipairs(shared) do
    reason, message = grade(mistake.text)
    local is_good = mistake.reasons[reason]
    say(is_good, mistake.kind, ("%s: %s"):format(reason, is_good and first_line(message) or message))
  end
  return #lesson.wrong + #shared
end

-- Prints a line for each test, and returns 0 if all are good.
function check.run(tools, path)
  local name = path:match("[^/]*$")
  local file, why = course.read_file(tools, path)
  if not file then error("learn: " .. why, 0) end
  local lesson, message = course.read(name, file)
  if not lesson then error(message, 0) end
  local missing = course.missing(lesson, tools)
  if missing then
    print("not available: " .. missing)
    return 0
  end
  local failed, count = 0, 0
  local function say(is_good, what, detail)
    count = count + 1
    if not is_good then failed = failed + 1 end
    print(text.wrap(("%-6s %-12s %s"):format(is_good and "ok" or "FAILED", what, detail)))
  end
  check_texts(lesson, say)
  check_question(lesson, say)
  local wrong = check_solutions(tools, lesson, say)
  print(("%d right and %d wrong solutions: %d tests, %d failed"):format(#lesson.right, wrong, count, failed))
  return failed > 0 and 1 or 0
end

return check
