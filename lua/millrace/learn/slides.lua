-- `millrace learn --slides DIR [COURSE]`: the timeline of each lesson's program as a picture (SVG), with its races.

local course_tools = require "millrace.learn.course"
local question = require "millrace.learn.question"

local slides = {}

-- The title above the picture; a place in the picture is a line number alone.
local function title_of(lesson) return ("%d %s"):format(lesson.number, lesson.title) end

-- The run by the device model's times, until it ends or fails. Returns the trace, and the error.
local function timeline_of(lesson)
  local run, message = question.runner(lesson, title_of(lesson)), nil
  local trace = question.timeline(function()
    local ok, why = pcall(run)
    message = not ok and tostring(why) or nil
  end)
  mr.reset()
  return trace, message
end

local ESCAPES = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;" }

-- A picture has room for one row below its legend. There stands the first sentence of the error that ended the program.
local function with_error(picture, lesson, message)
  local place = title_of(lesson):gsub("%p", "%%%0") .. ":(%d+)"
  local first = (message:match("^.-%.%f[%s\0]") or message):gsub(place, "line %1")
  local height = tonumber(picture:match('<svg [^>]* height="(%d+)"'))
  local row = ('<text x="16" y="%d" class="l">error: %s</text>\n'):format(height - 14, (first:gsub("[&<>]", ESCAPES)))
  return (picture:gsub("</svg>\n$", function(ending) return row .. ending end))
end

-- The end of each file that is written here. Other files are not replaced.
local MARK = "<!-- a picture of millrace learn -->\n"
local MOST_TEXT = 100000000

-- Whether an earlier picture is at `path`. Another file there is an error.
local function is_replaced(tools, path)
  local text, why = tools.read(path, MOST_TEXT, true)
  if text and text:sub(-#MARK) == MARK then return true end
  if why == "is not there" then return false end
  error(("learn: %s %s: move it away, or choose another folder. Nothing was written"):format(path,
    why or "is no picture that millrace learn has made"), 0)
end

local function write(tools, picture)
  local trace, message = timeline_of(picture.lesson)
  trace:save(picture.path)
  local text = assert(tools.read(picture.path, MOST_TEXT, true))
  if message then text = with_error(text, picture.lesson, message) end
  if tools.replace(picture.path, text .. MARK) then
    error(("learn: %s cannot be written"):format(picture.path), 0)
  end
  print(picture.path .. (picture.is_replaced and " (replaced)" or ""))
end

-- Writes DIR/01_name.svg and so on, over earlier pictures of these names. Returns the exit status.
function slides.run(tools, folder, course_folder)
  local course = course_tools.open(tools, course_folder)
  if not tools.make_folders(folder) then error(("learn: the folder %s cannot be made"):format(folder), 0) end
  local pictures = {}
  for i, lesson in ipairs(course) do
    local path = ("%s/%s.svg"):format(folder, lesson.stem)
    pictures[i] = { path = path, lesson = lesson, is_replaced = is_replaced(tools, path) }
  end
  for _, picture in ipairs(pictures) do
    local missing = course_tools.missing(picture.lesson)
    if missing then print(picture.path .. " is left out: " .. missing)
    else write(tools, picture) end
  end
  return 0
end

return slides
