-- `millrace learn`: lessons about streams. A lesson asks for the possible output of a program, shows the surprising
-- run, explains it, and sets an exercise, which is graded over every schedule.
--
-- The host calls `main` with its tools (src/host/learn.c). The process of the lessons runs the lessons' own programs; a
-- learner's solution runs only in a child under --sandbox, which calls `judge`.

local learn = {}

local USAGE = [[
usage: millrace learn                       go on where you stopped
       millrace learn NUMBER                this lesson
       millrace learn FOLDER [NUMBER]       the lessons in a folder
       millrace learn --list [FOLDER]       all lessons, and what you have done
       millrace learn --check FILE          run the tests of a lesson
       millrace learn --grade FOLDER [COURSE]
                                            grade handed-in files, as CSV
       millrace learn --slides DIR [COURSE] write the timeline of each lesson as a picture
]]

local function list(tools, folder)
  local course = require("millrace.learn.course").open(tools, folder)
  local done = require("millrace.learn.progress").open(tools, course.id)
  local part
  for _, lesson in ipairs(course) do
    if lesson.part ~= part then
      part = lesson.part
      print(tools.bold(part))
    end
    print(("%3d  %-52s %s"):format(lesson.number, lesson.title, done.state(lesson) or "-"))
  end
  return 0
end

local function begin(tools, folder, number)
  local course = require("millrace.learn.course").open(tools, folder)
  if number and not course[number] then
    error(("learn: there is no lesson %s: the last one is %d"):format(number, #course), 0)
  end
  return require("millrace.learn.session").run(tools, course, number)
end

local function wrong_usage()
  io.stderr:write(USAGE)
  return 2
end

local actions = {
  ["--list"] = function(tools, folder) return list(tools, folder) end,
  ["--check"] = function(tools, file)
    return file and require("millrace.learn.check").run(tools, file) or wrong_usage()
  end,
  ["--grade"] = function(tools, folder, course)
    return folder and require("millrace.learn.sheet").run(tools, folder, course) or wrong_usage()
  end,
  ["--slides"] = function(tools, folder, course)
    return folder and require("millrace.learn.slides").run(tools, folder, course) or wrong_usage()
  end,
  ["--help"] = function()
    io.write(USAGE)
    return 0
  end,
}

-- Returns the exit status.
function learn.main(tools, first, second, third)
  require("millrace.learn.question").remember = tools.remember
  if first == nil then return begin(tools) end
  local action = actions[first]
  if action and third == nil or first == "--grade" or first == "--slides" then return action(tools, second, third) end
  if first:sub(1, 1) == "-" or third ~= nil then return wrong_usage() end
  local number = math.tointeger(tonumber(first))
  if number then return second and wrong_usage() or begin(tools, nil, number) end
  number = math.tointeger(tonumber(second))
  if second and not number then return wrong_usage() end
  return begin(tools, first, number)
end

-- In the child: judges a solution and prints the verdict after a line that only the caller knows. `way`: "all"; "few",
-- which tries few answers to each query; "ends", which says only whether the program comes to an end.
function learn.judge(way, text, name, solution, solution_name, line)
  local judge = require "millrace.learn.judge"
  local lesson = assert(require("millrace.learn.course").read(name, text))
  local reason, message
  if way == "ends" then reason, message = judge.come_to_an_end(lesson, solution, solution_name)
  else reason, message = judge.grade(lesson, solution, solution_name, way == "few") end
  print("\n" .. line)
  print(reason)
  print(message)
end

return learn
