-- Two schedules of one function, one above the other: a lane for the host and for each stream, a column for each step.
-- The pair that runs the other way round is marked.

local lanes = {}

local WIDTH = 79
local NEAR = 2 -- steps next to the pair that are shown if there is room, and more in the remaining room

-- The steps of an outcome: {{name =, stream =, where =}, ...}.
local function read(steps)
  local list = {}
  for line in steps:gmatch("[^\n]+") do
    local name, stream, where = line:match("^(.-)%s%s+(.-)%s%s+(%S+)$")
    if not name then name, stream, where = line:match("^(.-)%s%s+(.-)%s+(%S+)$") end
    if name then list[#list + 1] = { name = name, stream = stream, where = where } end
  end
  return list
end

local function places_of(list, side)
  local found = {}
  for i, step in ipairs(list) do
    if step.where == side.where and step.name:gsub(", a part$", "") == side.op then found[#found + 1] = i end
  end
  return found
end

-- Finds steps of both sides that run the other way round in `b`. Returns {first, second} for each list, or nil.
local function find_pair(a, b, first, second)
  local here, there = { places_of(a, first), places_of(a, second) }, { places_of(b, first), places_of(b, second) }
  for i, x in ipairs(here[1]) do
    for k, y in ipairs(here[2]) do
      local u, v = there[1][i], there[2][k]
      if u and v and x ~= y and (x < y) ~= (u < v) then return { x, y }, { u, v } end
    end
  end
  return nil
end

local function width_of(step) return #step.name + 2 end

-- The first and the last of the steps around the pair that a line has room for; nil: there is no room for those
-- between.
local function window(list, pair, room)
  local from, to = math.min(pair[1], pair[2]), math.max(pair[1], pair[2])
  local used = 0
  for i = from, to do used = used + width_of(list[i]) end
  if used > room then return nil end
  local function try(i)
    if not list[i] or used + width_of(list[i]) > room then return false end
    used = used + width_of(list[i])
    return true
  end
  for _ = 1, NEAR do
    if try(from - 1) then from = from - 1 end
    if try(to + 1) then to = to + 1 end
  end
  while try(from - 1) do from = from - 1 end
  while try(to + 1) do to = to + 1 end
  return from, to
end

-- False: there is no room.
local function draw(out, list, pair, names, label)
  local from, to = window(list, pair, WIDTH - label - 4)
  if not from then return false end
  local rows = {}
  for _, name in ipairs(names) do rows[name] = name .. (" "):rep(label - #name) end
  local column = label
  for i = from, to do
    local step, mark = list[i], (i == pair[1] or i == pair[2]) and "!" or " "
    local row = rows[step.stream]
    rows[step.stream] = row .. (" "):rep(column - #row) .. " " .. mark .. step.name
    column = column + width_of(step)
  end
  for _, name in ipairs(names) do
    if #rows[name] > label then out[#out + 1] = "    " .. rows[name]:gsub("%s+$", "") end
  end
  if from > 1 or to < #list then
    out[#out + 1] = ("    (%d steps before these, %d after)"):format(from - 1, #list - to)
  end
  return true
end

-- Streams in the order of their first step, the host in front.
local function names_of(a)
  local names, label, seen = { "host" }, 6, { host = true }
  for _, step in ipairs(a) do
    if not seen[step.stream] then names[#names + 1] = step.stream end
    seen[step.stream] = true
    label = math.max(label, #step.stream + 2)
  end
  return names, label
end

-- Text: both titles, each with the lanes of its schedule below. Nil where no pair of steps is exchanged, or where the
-- steps between the two are too many for a line. `first`, `second`: {op =, where = (as the steps name it)}.
function lanes.draw(titles, outcomes, first, second)
  local a, b = read(outcomes[1].steps), read(outcomes[2].steps)
  local in_a, in_b = find_pair(a, b, first, second)
  if not in_a then return nil end
  local names, label = names_of(a)
  local out = {}
  for i, list in ipairs { a, b } do
    out[#out + 1] = titles[i]
    if not draw(out, list, i == 1 and in_a or in_b, names, label) then return nil end
  end
  out[#out + 1] = "  !  the two that nothing orders"
  return table.concat(out, "\n")
end

return lanes
