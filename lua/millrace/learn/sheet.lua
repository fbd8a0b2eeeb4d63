-- `millrace learn --grade FOLDER [COURSE]`: grades the files that a class has handed in, and prints a table as CSV. A
-- folder inside is a learner; files that lie in FOLDER itself have none.

local course = require "millrace.learn.course"
local grader = require "millrace.learn.grader"

local sheet = {}

-- A spreadsheet takes a cell that begins with one of these for a formula, unless an apostrophe is in front. Cells are
-- separated by a semicolon or a tab in some countries, and there one may begin in the middle of a field.
local FORMULA = "[=+@%-\t\r]"

local function quoted(field)
  if not field:find("^" .. FORMULA) and not field:find('[",;\t\r\n]') and not field:find("^%s") then return field end
  field = field:gsub("^%s*" .. FORMULA, "'%0"):gsub("([;\t]%s*)([=+@-])", "%1'%2")
  return '"' .. field:gsub('"', '""') .. '"'
end

local function row(...)
  local fields = { ... }
  for i, field in ipairs(fields) do fields[i] = quoted(field) end
  print(table.concat(fields, ","))
end

local function grade_folder(tools, lessons, folder, learner)
  local names = tools.list(folder) or {}
  table.sort(names)
  for _, name in ipairs(names) do
    local lesson = lessons[name]
    if lesson then
      local solution, why = tools.read(folder .. "/" .. name, grader.MOST_TEXT)
      local reason, message = "unreadable", ("%s %s."):format(name, why)
      if lesson.missing == nil then lesson.missing = course.missing(lesson, tools) or false end
      if solution and lesson.missing then reason, message = "unavailable", lesson.missing
      elseif solution then reason, message = grader.grade(tools, lesson, solution, name) end
      local result = reason == "passed" and "passed" or reason == "unavailable" and "not graded" or "failed"
      row(learner, lesson.stem, result, reason, (message:gsub("%s+", " ")))
    end
  end
end

-- Returns the exit status: 0, whatever the grades are.
function sheet.run(tools, folder, course_folder)
  local lessons = {}
  for _, lesson in ipairs(course.open(tools, course_folder)) do lessons[lesson.name] = lesson end
  local names = tools.list(folder)
  if not names then error(("learn: there is no folder %s"):format(folder), 0) end
  table.sort(names)
  row("learner", "lesson", "result", "reason", "message")
  grade_folder(tools, lessons, folder, "")
  for _, name in ipairs(names) do
    local inside = folder .. "/" .. name
    if not lessons[name] and tools.list(inside) then grade_folder(tools, lessons, inside, name) end
  end
  return 0
end

return sheet
