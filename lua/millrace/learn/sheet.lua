-- `millrace learn --grade FOLDER [COURSE]`: grades the files that a class has handed in, and prints a table as CSV. A
-- folder inside is a learner; files that lie in FOLDER itself have none.

local course = require "millrace.learn.course"
local grader = require "millrace.learn.grader"

local sheet = {}

local function quoted(field)
  -- A spreadsheet takes a field that begins so for a formula.
  if field:find("^[=+@-]") then field = "'" .. field end
  if field:find('[",\r\n]') or field:find("^%s") then field = '"' .. field:gsub('"', '""') .. '"' end
  return field
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
      local ok, solution = pcall(course.read_file, folder .. "/" .. name)
      local reason, message = "unreadable", solution
      if ok then reason, message = grader.grade(tools, lesson, solution, name) end
      row(learner, lesson.stem, reason == "passed" and "passed" or "failed", reason, (message:gsub("%s+", " ")))
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
    if tools.list(folder .. "/" .. name) then grade_folder(tools, lessons, folder .. "/" .. name, name) end
  end
  return 0
end

return sheet
