-- Lessons as files: reads them, and names missing parts.

local course = {}

-- A file name such as "03_order.lua" gives the number of a lesson and its place in the course.
local NAME = "^(%d+)_[%w_]+%.lua$"

local function is_text(value) return type(value) == "string" and value ~= "" end

local REQUIRED = {
  { "title", is_text }, { "part", is_text }, { "explanation", is_text }, { "take_home", is_text },
  { "question", function(q) return type(q) == "table" and is_text(q.program) and is_text(q.ask) end },
  { "exercise", function(e)
    return type(e) == "table" and is_text(e.task) and is_text(e.start) and type(e.given) == "function" and
      type(e.answer) == "function"
  end },
  { "hints", function(hints) return type(hints) == "table" and #hints == 3 end },
  { "right", function(list) return type(list) == "table" and #list >= 2 end },
  { "wrong", function(list) return type(list) == "table" and #list >= 1 end },
}

-- ---------------------------------------------------------------- solutions as changes of the start

local function lines_of(long)
  local lines = {}
  for line in (long:gsub("\n$", "") .. "\n"):gmatch("([^\n]*)\n") do lines[#lines + 1] = line end
  return lines
end

-- A line as it is looked for: without indentation, and without the comment at its end.
local function bare(line) return (line:gsub("%s+%-%-.*$", ""):gsub("^%s+", ""):gsub("%s+$", "")) end

-- The number of the first of these lines; nil: they are not there, or not once.
local function find_lines(lines, wanted)
  local found
  for i = 1, #lines - #wanted + 1 do
    local is_here = true
    for k, line in ipairs(wanted) do is_here = is_here and bare(lines[i + k - 1]) == bare(line) end
    if is_here and found then return nil end
    found = is_here and i or found
  end
  return found
end

-- The start of an exercise with changes: list[from] has lines of it, list[from + 1] their replacement, with the
-- indentation of the first line; and so on. An empty text removes the lines. Nil and a message: one is not there.
local function changed(start, list, from)
  local lines, changes = lines_of(start), {}
  for i = from, #list, 2 do
    local wanted, new = lines_of(list[i]), list[i + 1]
    local at = find_lines(lines, wanted)
    if not at then return nil, ("`%s` is not once in the start"):format(list[i]) end
    if not new then return nil, ("nothing stands for `%s`"):format(list[i]) end
    changes[#changes + 1] = { at = at, count = #wanted, new = new == "" and {} or lines_of(new) }
  end
  table.sort(changes, function(a, b) return a.at > b.at end)
  for _, change in ipairs(changes) do -- the last first: the others stay where they are
    local indent = lines[change.at]:match("^%s*")
    for _ = 1, change.count do table.remove(lines, change.at) end
    for k, line in ipairs(change.new) do table.insert(lines, change.at + k - 1, indent .. line) end
  end
  return table.concat(lines, "\n")
end

-- Makes whole files of the solutions that are written as changes. Returns nil, or the error.
local function write_out(lesson)
  local start = lesson.exercise.start
  for i, right in ipairs(lesson.right) do
    local text, message = right, nil
    if type(right) == "table" then text, message = changed(start, right, 1) end
    if type(text) ~= "string" then return ("right %d: %s"):format(i, message or "it is no text") end
    lesson.right[i] = text
  end
  for i, wrong in ipairs(lesson.wrong) do
    local text, message = wrong[2], nil
    if #wrong > 2 then text, message = changed(start, wrong, 2) end
    if type(text) ~= "string" then return ("wrong %d: %s"):format(i, message or "it is no text") end
    lesson.wrong[i] = { wrong[1], text }
  end
  return nil
end

-- Returns the lesson, or nil and its error. `text` is Lua that returns a table.
function course.read(name, text)
  local chunk, message = load(text, "=lesson:" .. name, "t")
  if not chunk then return nil, message end
  local ok, lesson = pcall(chunk)
  if not ok then return nil, tostring(lesson) end
  if type(lesson) ~= "table" then return nil, name .. ": it has to return a table" end
  for _, field in ipairs(REQUIRED) do
    if not field[2](lesson[field[1]]) then
      return nil, ("%s: the field `%s` is missing, or not what docs/teaching.md describes"):format(name, field[1])
    end
  end
  local wrong_solution = write_out(lesson)
  if wrong_solution then return nil, name .. ": " .. wrong_solution end
  lesson.name, lesson.text = name, text
  lesson.stem = name:gsub("%.lua$", "")
  return lesson
end

local MOST_TEXT = 1000000 -- of a file

-- The text of a file, or nil and a sentence that says why not. A link is followed.
function course.read_file(tools, path)
  local text, why = tools.read(path, MOST_TEXT, true)
  if not text then return nil, ("%s %s."):format(path, why) end
  return text
end

local KERNEL = "__global__ void nothing() {}"

-- The part that this machine lacks for the lesson, or nil. With `tools`, also for its exercise: that is graded in the
-- sandbox, where not every compiler may run.
function course.missing(lesson, tools)
  if lesson.needs ~= "compiler" then return nil end
  local ok, message = pcall(mr.kernel, KERNEL)
  if ok and tools then
    message = tools.run(("print(select(2, pcall(require 'millrace'.kernel, %q)))"):format(KERNEL), 30, 1000000)
    ok, message = message:find("^kernel") ~= nil, message:gsub("^%(command line%):%d+: ", ""):gsub("%s+$", "")
  end
  return not ok and "this lesson needs a compiler of kernels: " .. tostring(message) or nil
end

-- Returns nil, or the lesson's error.
local function add(list, name, text)
  local lesson, message = course.read(name, text)
  if not lesson then return message .. "." end
  lesson.number = #list + 1
  list[#list + 1] = lesson
  return nil
end

-- A lesson of a folder that cannot be read is left out with a sentence: the others can be taught without it.
local function add_file(tools, list, folder, name)
  local text, message = course.read_file(tools, folder .. "/" .. name)
  if text then message = add(list, name, text) end
  if message then io.stderr:write(("learn: %s This lesson is left out.\n"):format(message)) end
end

-- The lessons of the binary, or of a teacher's folder: a list, in the order of the file names. `list.id` tells courses
-- apart in the progress.
function course.open(tools, folder)
  local list = { id = "millrace" }
  if not folder then
    for _, file in ipairs(tools.embedded()) do assert(not add(list, file.name, file.text), file.name) end
    return list
  end
  local names = tools.list(folder)
  if not names then error(("learn: there is no folder %s"):format(folder), 0) end
  table.sort(names)
  for _, name in ipairs(names) do
    if name:find(NAME) then add_file(tools, list, folder, name) end
  end
  if #list == 0 then
    error(("learn: no lesson in %s: the name of a lesson is like 01_name.lua"):format(folder), 0)
  end
  list.id = tools.absolute(folder)
  return list
end

return course
