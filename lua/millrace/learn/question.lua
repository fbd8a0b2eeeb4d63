-- The question of a lesson: the possible output of its program. The explorer finds the answer, from which the choices
-- are made.

local question = {}

local NOTHING = "nothing"

-- question.remember(name, text) tells reports the text of a chunk. It is nil where no program is shown (learn.lua).

-- A function that runs the program and returns its output, in one line. `name`: the file name in its places.
local function runner(lesson, name)
  if question.remember then question.remember(name, lesson.question.program) end
  return function()
    local printed = {}
    local globals = setmetatable({}, { __index = _G })
    function globals.print(...)
      local texts = table.pack(...)
      for i = 1, texts.n do texts[i] = tostring(texts[i]) end
      printed[#printed + 1] = table.concat(texts, " ")
    end
    assert(load(lesson.question.program, "=" .. name, "t", globals))()
    return #printed > 0 and table.concat(printed, ", ") or NOTHING
  end
end

question.runner = runner

-- The timeline of one run with the device model's times and the checker's reports, and the result of `run`.
function question.timeline(run)
  local before = mr.hazard.mode("collect")
  local result = table.pack(pcall(mr.timeline, run))
  mr.hazard.mode(before)
  mr.hazard.clear()
  return assert(result[1] and result[2], result[2]), result[3]
end

local function text_of(outcome)
  return outcome.error and "an error" or outcome.value
end

-- Returns the possible outputs of the program: a list of {text =, trace =, steps =, count =}, sorted by text. `once` is
-- for programs that read the clock, which have one run.
function question.outcomes(lesson)
  local run = runner(lesson, "program")
  if lesson.question.once then
    local trace, text = question.timeline(run)
    return { { text = text, trace = trace, count = 1 } }, 1
  end
  local result = mr.explore(run)
  -- A race that only the virtual GPU orders, such as one with an allocation, leaves each order that can be shown.
  local is_shown = result.complete or result.incomplete:find("which CUDA does not guarantee", 1, true)
  assert(is_shown, "the program of a question has too many orders")
  local list = {}
  for _, outcome in ipairs(result.outcomes) do
    list[#list + 1] = { text = text_of(outcome), trace = outcome.trace, steps = outcome.steps, count = outcome.count,
                        error = outcome.error }
  end
  table.sort(list, function(a, b) return a.text < b.text end)
  return list, result.combined and result.combined.classes or result.schedules
end

local function all_of(texts)
  if #texts == 1 then return "always " .. texts[1] end
  return table.concat(texts, ", ", 1, #texts - 1) .. " or " .. texts[#texts]
end

-- The position of "all of them" among so many choices: elsewhere from lesson to lesson, since it is often the right
-- one.
local function place_of_all(lesson, count)
  local number = math.tointeger(tonumber(lesson.name:match("^%d+"))) or 0
  return (number + 1) % count + 1
end

-- Returns the choices, a list of texts, and the number of the right one. Each printed or expected text is a choice
-- alone; some are also a choice together.
function question.choices(lesson, outcomes)
  local possible, every, is_possible = {}, {}, {}
  for i, outcome in ipairs(outcomes) do
    possible[i], every[i] = outcome.text, outcome.text
    is_possible[outcome.text] = true
  end
  for _, text in ipairs(lesson.question.others or {}) do
    if not is_possible[text] then every[#every + 1] = text end
  end
  table.sort(every)
  local choices = {}
  for i, text in ipairs(every) do choices[i] = all_of { text } end
  if #every > 1 then table.insert(choices, place_of_all(lesson, #every + 1), all_of(every)) end
  local right
  for i, choice in ipairs(choices) do if choice == all_of(possible) then right = i end end
  if not right then
    right = place_of_all(lesson, #choices + 1)
    table.insert(choices, right, all_of(possible))
  end
  return choices, right
end

-- The outcome to show after `choice`: one that the choice leaves out, or else the rarest.
function question.surprise(outcomes, choice)
  local rarest = outcomes[1]
  for _, outcome in ipairs(outcomes) do
    if choice == "always " .. outcome.text then
      for _, other in ipairs(outcomes) do if other ~= outcome then return other end end
    end
    if outcome.count < rarest.count then rarest = outcome end
  end
  return rarest
end

return question
