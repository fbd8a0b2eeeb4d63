-- Lessons as files: reads them and says what is missing in one.

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

-- Returns the lesson, or nil and what is wrong with it. `text` is Lua that returns a table.
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
  lesson.name, lesson.text = name, text
  lesson.stem = name:gsub("%.lua$", "")
  return lesson
end

local function read_file(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read("a")
end
course.read_file = read_file

-- What this machine lacks for the lesson, or nil.
function course.missing(lesson)
  if lesson.needs ~= "compiler" then return nil end
  local ok, message = pcall(mr.kernel, "__global__ void nothing() {}")
  return not ok and "this lesson needs a compiler of kernels: " .. tostring(message) or nil
end

local function add(list, name, text)
  local lesson, message = course.read(name, text)
  if not lesson then error(message, 0) end
  lesson.number = #list + 1
  list[#list + 1] = lesson
end

-- The lessons of the binary, or of a teacher's folder: a list, in the order of the file names. `list.id` tells courses
-- apart in the progress.
function course.open(tools, folder)
  local list = { id = "millrace" }
  if not folder then
    for _, file in ipairs(tools.embedded()) do add(list, file.name, file.text) end
    return list
  end
  local names = tools.list(folder)
  if not names then error(("learn: there is no folder %s"):format(folder), 0) end
  table.sort(names)
  for _, name in ipairs(names) do
    if name:find(NAME) then add(list, name, read_file(folder .. "/" .. name)) end
  end
  if #list == 0 then
    error(("learn: no lesson in %s: the name of a lesson is like 01_name.lua"):format(folder), 0)
  end
  list.id = tools.absolute(folder)
  return list
end

return course
