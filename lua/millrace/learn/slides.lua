-- `millrace learn --slides DIR [COURSE]`: the timeline of each lesson's program as a picture (SVG), with its races.

local course_tools = require "millrace.learn.course"
local question = require "millrace.learn.question"

local slides = {}

-- The run by the device model's times, with what the checker reports of it. A program that ends with an error has the
-- timeline of what it did until then.
local function timeline_of(lesson)
  local before = mr.hazard.mode("collect")
  local ok, trace = pcall(mr.timeline, question.runner(lesson, lesson.stem))
  mr.hazard.mode(before)
  mr.hazard.clear()
  mr.reset()
  return ok and trace or question.outcomes(lesson)[1].trace
end

-- Writes DIR/01_name.svg and so on, over files of these names. Returns the exit status.
function slides.run(tools, folder, course_folder)
  local course = course_tools.open(tools, course_folder)
  if not tools.make_folders(folder) then error(("learn: the folder %s cannot be made"):format(folder), 0) end
  for _, lesson in ipairs(course) do
    local path = ("%s/%s.svg"):format(folder, lesson.stem)
    local missing = course_tools.missing(lesson)
    if missing then print(path .. " is left out: " .. missing)
    else
      timeline_of(lesson):save(path)
      print(path)
    end
  end
  return 0
end

return slides
