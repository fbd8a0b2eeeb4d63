-- Runs the judge in a child process under --sandbox, and reads its verdict.

local grader = {}

grader.MOST_TEXT = 100000 -- of the lesson and the solution together: they are passed as a program's argument

-- Wall time, which is for a busy machine: a loop is ended by the count of instructions. A compiler is a large program.
local MOST_SECONDS, WITH_COMPILER = 10, 30

-- Instructions of Lua for all orders. Whether a few orders come to an end is known sooner.
local INSTRUCTIONS = { all = 5000000, few = 5000000, ends = 1000000 }

local CODE = [[require(%q).judge(%q, %q, %q, %q, %q, %q)]]

grader.TOO_MANY_ORDERS = "Your program has more orders than can be tried. Use less work, or more order."

grader.TOO_MUCH_MEMORY = "Your program needs too much memory: it keeps too much, has far too many operations, or " ..
  "calls itself without end. A few small tensors are enough here."

-- The program's messages when a limit ends it: {message, reason, text for the learner}.
local ENDINGS = {
  { "instructions", "endless",
    "Your program has been stopped in a loop that has no end or far too many rounds." },
  { "(--time SECONDS", "endless", "Your program takes too long: it has been stopped." },
  { "all the time", "endless", "Your program does not come to an end: it has been stopped." },
  { "memory", "memory", grader.TOO_MUCH_MEMORY },
  { "output", "output", "Your program prints too much. Its output is not looked at." },
}

local numbers = 0

-- A line that no solution can know. The verdict stands after it.
local function mark()
  numbers = numbers + 1
  return ("verdict %d %d %d"):format(numbers, os.time(), math.random(0)) .. tostring({}):gsub("table: ", " ")
end

-- Runs the judge in one of its ways (learn.lua). Returns the reason, the text for the learner, and whether a limit has
-- ended it.
local function attempt(tools, lesson, text, name, way)
  local line = mark()
  local code = CODE:format("millrace.learn", way, lesson.text, lesson.name, text, name, line)
  if #code > grader.MOST_TEXT then return "size", "Your file is too long for an exercise." end
  local said, was_late = tools.run(code, lesson.needs == "compiler" and WITH_COMPILER or MOST_SECONDS,
    INSTRUCTIONS[way])
  local at, after = said:find("\n" .. line .. "\n", 1, true)
  if at then return said:match("^(%S+)\n(.*)\n$", after + 1) end
  for _, ending in ipairs(ENDINGS) do
    if said:find(ending[1], 1, true) then return ending[2], ending[3], true end
  end
  if was_late then return "endless", "Your program does not come to an end: it has been stopped.", true end
  return "failed", "Your program could not be graded:\n  " .. said
end

-- lesson: {name =, text =}. Returns the reason ("passed", "schedule", ...) and the text for the learner.
--
-- Where a limit has ended the judge, the program has an order that does not end, or it has too many orders. So a few
-- orders are tried first. If these end, the orders are tried again with fewer answers to each query.
function grader.grade(tools, lesson, text, name)
  local reason, message, is_cut = attempt(tools, lesson, text, name, "all")
  if not is_cut and reason ~= "orders" then return reason, message end
  if is_cut then
    local why, said, never_ends = attempt(tools, lesson, text, name, "ends")
    if never_ends then return why, said end
  end
  reason, message, is_cut = attempt(tools, lesson, text, name, "few")
  if is_cut then return "orders", grader.TOO_MANY_ORDERS end
  return reason, message
end

return grader
