-- What the checker says of functions of mr.graph.auto: the same as of the function without it, although a launch orders
-- more. A program is text, so that each of its actions has a line; it runs with the function as it is, and wrapped.
-- not replayed: a replay has the launches, and its checker judges these
-- not checked: the checker is what is tested
local lu = require "luaunit"
local mr = require "millrace"

TestAutoChecker = {}

-- The messages without their fixes, and the list of fixes.
local function messages(reports)
  local out, fixes = {}, {}
  for i, r in ipairs(reports) do
    local message = r.message:gsub("#%d+", "#") -- numbers of events and streams go on
    out[i] = message:gsub("\nfix: .-\nkind=", "\nkind=")
    fixes[i] = { text = message:match("\nfix: (.-)\nkind="), lines = r.fixes }
  end
  return table.concat(out, "\n\n"), fixes
end

-- `text` gets mr, wrap, the streams s, the tensors x and an event e, and calls wrap(fn) once.
local function verdict(text, wrap)
  mr.reset() -- the checker explains with what it has logged, and here all programs have the same lines
  local s, x, e = {}, {}, mr.event{name = "e"}
  for i, name in ipairs{"a", "b", "c"} do
    s[i] = mr.stream{name = name}
    x[i] = mr.ones(64, {name = "x" .. i})
  end
  mr.synchronize()
  local reports = mr.hazard.check(function()
    assert(load(text, "=program", "t", setmetatable({mr = mr, wrap = wrap, s = s, x = x, e = e}, {__index = _G})))()
  end)
  mr.synchronize()
  return messages(reports)
end

local function launches_of(text)
  local wrapped
  local said, fixes = verdict(text, function(fn)
    wrapped = mr.graph.auto(fn)
    return wrapped
  end)
  local _, counts = mr.graph.why(wrapped)
  return said, counts.launches, fixes
end

-- The line calls the function: a fix in front of it is outside of the function.
local function calls(text, line)
  local number = 0
  for code in (text .. "\n"):gmatch("(.-)\n") do
    number = number + 1
    if number == line then return code:find("step()", 1, true) or code:find("run(step)", 1, true) end
  end
end

local function is_outside(text, fix)
  for _, line in ipairs(fix.lines) do
    if line.place ~= "before" or not calls(text, line.line) then return false end
  end
  return #fix.lines > 0
end

-- A fix may be in front of the call instead of inside the function.
local function check_same(text)
  local plain, plain_fixes = verdict(text, function(fn) return fn end)
  local auto, launches, auto_fixes = launches_of(text)
  lu.assertEquals(auto, plain, text)
  for i, fix in ipairs(auto_fixes) do
    if not is_outside(text, fix) then lu.assertEquals(fix.text, plain_fixes[i].text, text) end
  end
  return plain, launches
end

function TestAutoChecker.test_a_race_that_only_launches_remove()
  local said, launches = check_same[[
    local step = wrap(function()
      s[2]:wait_stream(s[1])
      s[2]:run(function() x[2]:add_(x[1]) end)
      s[1]:run(function() x[3]:add_(1) end)
    end)
    for i = 1, 5 do
      s[1]:run(step)
      if i == 4 then s[1]:run(function() x[1]:fill_(2) end) end
      s[1]:wait_stream(s[2])
    end]]
  lu.assertStrContains(said, "write-after-read on `x1`")
  lu.assertEquals(launches, 4)
end

function TestAutoChecker.test_an_event_of_the_function_orders_what_was_before_it()
  local said, launches = check_same[[
    local step = wrap(function()
      s[2]:wait_stream(s[1])
      s[2]:run(function() x[1]:add_(1) end)
      e:record(s[2])
      s[2]:run(function() x[2]:add_(1) end)
    end)
    for i = 1, 4 do
      s[1]:run(step)
      s[3]:wait_event(e)
      if i == 3 then s[3]:run(function() x[1]:mul_(2) end) end
      if i == 4 then s[3]:run(function() x[2]:mul_(2) end) end
      s[1]:wait_stream(s[2])
      s[1]:wait_stream(s[3])
    end]]
  lu.assertNotStrContains(said, "on `x1`")
  lu.assertStrContains(said, "on `x2`")
  lu.assertTrue(launches >= 2)
end

-- It is the same memory only with mr.graph.auto.
function TestAutoChecker.test_a_result_that_is_read_while_the_next_call_writes_it()
  local text = [[
    local step = wrap(function() return x[1]:add(1) end)
    s[1]:run(function()
      for i = 1, 5 do
        local r = step()
        if i == LAST then
          s[2]:wait_stream(s[1])
          s[2]:run(function() return r:sum() end)
        end
      end
    end)]]
  local said, launches = launches_of((text:gsub("LAST", "4")))
  lu.assertStrContains(said, "write-after-read")
  lu.assertStrContains(said, "a result of an earlier call")
  lu.assertEquals(launches, 4)
  lu.assertEquals(verdict((text:gsub("LAST", "4")), function(fn) return fn end), "")
  lu.assertEquals(launches_of((text:gsub("LAST", "5"))), "")
end

-- Memory of the graph that several streams use: calls follow each other, whatever the script orders.
function TestAutoChecker.test_memory_of_calls_that_follow_each_other()
  local said, launches = check_same[[
    local step = wrap(function()
      local t = s[1]:run(function() return x[1]:add(1) end)
      s[2]:wait_stream(s[1])
      local u = s[2]:run(function() return t:mul(2) end)
      s[1]:wait_stream(s[2])
      return t, u
    end)
    for i = 1, 5 do
      s[1]:run(function()
        if i == 4 then x[1]:add_(1) end
        return step()
      end)
    end]]
  lu.assertEquals(said, "")
  lu.assertEquals(launches, 4)
end

-- ---------------------------------------------------------------- random programs

local random

local function pick(list) return list[random(#list)] end

local function operation(streams)
  local to = random(3)
  local what = pick{"add_(1)", "mul_(0.5)", "copy_(x[" .. to % 3 + 1 .. "])", "add_(x[" .. (to + 1) % 3 + 1 .. "])"}
  return ("s[%d]:run(function() x[%d]:%s end)"):format(pick(streams), to, what)
end

local function inside(lines)
  lines[#lines + 1] = "local step = wrap(function()"
  local streams = {1}
  for i = 2, 3 do
    if random(3) > 1 then
      lines[#lines + 1] = ("s[%d]:wait_stream(s[1])"):format(i)
      streams[#streams + 1] = i
    end
  end
  for _ = 1, random(6) do
    local choice = random(8)
    if choice == 1 then lines[#lines + 1] = ("e:record(s[%d])"):format(pick(streams))
    elseif choice == 2 then lines[#lines + 1] = ("s[%d]:wait_stream(s[%d])"):format(pick(streams), pick(streams))
    else lines[#lines + 1] = operation(streams) end
  end
  lines[#lines + 1] = "end)"
end

local function outside(lines)
  local choice = random(10)
  local line = operation{1, 2, 3}
  if choice <= 3 then line = ("s[%d]:wait_stream(s[%d])"):format(random(3), random(3))
  elseif choice == 4 then line = ("s[%d]:wait_event(e)"):format(random(3))
  elseif choice == 5 then line = ("s[%d]:synchronize()"):format(random(3))
  elseif choice == 6 then line = "e:synchronize()"
  elseif choice == 7 then line = "mr.synchronize()" end
  if random(2) == 1 then line = ("if i == %d then %s end"):format(random(5), line) end
  lines[#lines + 1] = line
end

local function program()
  local lines = {}
  inside(lines)
  lines[#lines + 1] = "for i = 1, 5 do"
  for _ = 1, random(4) - 1 do outside(lines) end
  lines[#lines + 1] = "s[1]:run(step)"
  for _ = 1, random(4) do outside(lines) end
  lines[#lines + 1] = "end"
  return table.concat(lines, "\n")
end

function TestAutoChecker.test_random_programs()
  local state = 20261123
  function random(n)
    state = (state * 6364136223846793005 + 1442695040888963407)
    return (state >> 33) % n + 1
  end
  local launched, racy = 0, 0
  local count = mr.backend == "virtual" and 1000 or 60 -- it resets twice for each
  for _ = 1, count do
    local said, launches = check_same(program())
    if launches > 0 then launched = launched + 1 end
    if launches > 0 and said ~= "" then racy = racy + 1 end
  end
  lu.assertTrue(launched > count // 2, launched)
  lu.assertTrue(racy > count // 5, racy)
end

function TestAutoChecker.test_why_names_the_hazard_that_stopped_the_launch()
  local x = mr.zeros(8, {name = "x"})
  local other = mr.stream{name = "other"}
  mr.synchronize()
  local f = mr.graph.auto(function() x:mul_(2) end)
  for _ = 1, 3 do f() end
  mr.synchronize()
  local before = mr.hazard.mode("error")
  other:run(function() x:add_(1) end)
  local ok = pcall(f)
  mr.hazard.mode(before)
  mr.synchronize()
  mr.hazard.clear()
  lu.assertFalse(ok)
  lu.assertStrContains((mr.graph.why(f)), "the launch raised an error")
  lu.assertStrContains((mr.graph.why(f)), "`x`")
end

os.exit(lu.LuaUnit.run())
