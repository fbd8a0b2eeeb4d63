-- Wrong solutions that are the same in every lesson. They are made of the lesson's first right one, for its tests.

local mistakes = {}

-- A value as Lua that makes it: numbers, texts and tables of them.
local function literal(value)
  if type(value) ~= "table" then return ("%q"):format(value) end
  local parts = {}
  for i, part in ipairs(value) do parts[i] = literal(part) end
  return "{" .. table.concat(parts, ", ") .. "}"
end

local function is_tensor(value)
  return type(value) == "userdata" and pcall(function() return value.numel end)
end

-- The number of the first tensor that a solution must leave as it is, or nil.
local function argument_to_keep(exercise)
  local may_change = {}
  local changes = exercise.changes
  for _, i in ipairs(type(changes) == "table" and changes or { changes }) do may_change[i] = true end
  local given = table.pack(exercise.given(1))
  for i = 1, given.n do if is_tensor(given[i]) and not may_change[i] then return i end end
  return nil
end

local function equal(a, b) return literal(a) == literal(b) end

local function ends_in_text(part)
  return part:gsub("%[(=*)%[.-%]%1%]", ""):find("%[=*%[") ~= nil
end

-- A `synchronize` after each line where Lua allows one.
local function synchronized(right)
  local lines = {}
  for line in (right .. "\n"):gmatch("([^\n]*)\n") do lines[#lines + 1] = line end
  for i = #lines - 1, 1, -1 do
    table.insert(lines, i + 1, "mr.synchronize()")
    local is_lua = load(table.concat(lines, "\n")) and not ends_in_text(table.concat(lines, "\n", 1, i))
    if not is_lua then table.remove(lines, i + 1) end
  end
  return (table.concat(lines, "\n"):gsub("\n$", ""))
end

local function set(...)
  local reasons = {}
  for _, reason in ipairs { ... } do reasons[reason] = true end
  return reasons
end

-- Returns a list of {kind =, reasons = (a set of those that the grader may give), text =}.
function mistakes.of(lesson)
  local exercise, right = lesson.exercise, lesson.right[1]
  local answer = exercise.answer(1)
  local list = {}
  local function add(kind, reasons, text) list[#list + 1] = { kind = kind, reasons = reasons, text = text } end
  local function around(body)
    return ("local solve = (function()\n%s\nend)()\nreturn function(...)\n%s\nend"):format(right, body)
  end

  add("prints", set "prints", ("return function() print(%q) end"):format(literal(answer)))
  add("looks", set "error", "return function() return lesson.exercise.answer(1) end")
  add("catches", set "catches", around "local _, result = pcall(solve, ...) return result")
  add("endless", set "endless", around "local result = solve(...) while true do end return result")
  add("memory", set "memory", around "local hoard = mr.zeros(1000000000) return solve(...)")
  add("syntax", set "syntax", (right:gsub("end%s*$", "")))
  if not equal(answer, exercise.answer(2)) then
    add("constant", set "constant", ("return function() return %s end"):format(literal(answer)))
  end
  local kept = argument_to_keep(exercise)
  if kept then
    add("input", set "input", around(([[
      local result = solve(...)
      for i = 0, mr.device_count() - 1 do mr.synchronize(i) end
      local kept = select(%d, ...)
      kept:fill_(99)
      return result]]):format(kept)))
  end
  if exercise.minimal ~= false then
    add("a wait more", set "wait", around "mr.event():record():wait() return solve(...)")
    local serial = synchronized(right)
    if serial == right then serial = around "mr.synchronize() return solve(...)" end
    add("serial", set(lesson.serial or "wait", "host", "serial"), serial)
  end
  return list
end

return mistakes
