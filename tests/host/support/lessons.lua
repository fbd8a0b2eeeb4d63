-- Lessons of `millrace learn` for tests: reads them, runs the command, grades a solution.
local command = require "host.support.command"

local lessons = { FOLDER = "lua/millrace/lessons" }

local course = dofile("lua/millrace/learn/course.lua")

function lessons.lines_of(shell)
  local pipe <close> = io.popen(shell)
  local lines = {}
  for line in pipe:lines() do lines[#lines + 1] = line end
  return lines
end

-- Calls fn with the path of a new folder, and removes it.
function lessons.with_folder(fn)
  local folder = lessons.lines_of("mktemp -d")[1]
  local ok, message = pcall(fn, folder)
  os.execute("rm -r " .. command.quote(folder))
  assert(ok, message)
end

function lessons.run(home, ...)
  local environment = ("export HOME=%s MILLRACE_VERIFY_CLOSE=1; unset XDG_STATE_HOME\n"):format(home)
  return command.run { "learn", environment = environment, ... }
end

function lessons.read(name, text) return course.read(name, text) end

function lessons.of(name)
  return assert(course.read(name, command.read(lessons.FOLDER .. "/" .. name)))
end

-- The names of all lessons, sorted.
function lessons.names()
  return lessons.lines_of("cd " .. lessons.FOLDER .. " && ls *.lua")
end

-- The message for a solution of a lesson of the course, on one line: "...,failed,schedule,...".
function lessons.message_for(name, solution)
  local message
  lessons.with_folder(function(folder)
    command.write(folder .. "/" .. name, solution)
    message = lessons.run(folder, "--grade", folder).out:gsub("%s+", " ")
  end)
  return message
end

-- The start of a lesson with changes, as in a lesson's list of solutions.
function lessons.changed(name, ...)
  local text = lessons.of(name).exercise.start
  for i = 1, select("#", ...), 2 do
    local old, new = select(i, ...)
    local from, to = text:find(old, 1, true)
    assert(from, name .. " has no " .. old)
    text = text:sub(1, from - 1) .. new .. text:sub(to + 1)
  end
  return text
end

return lessons
