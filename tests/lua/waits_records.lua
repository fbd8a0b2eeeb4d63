-- Verdicts of mr.waits about record_stream: cases, and random programs against brute force. That leaves out every
-- subset of the calls, and mr.hazard.check judges the rest.

-- not replayed: it runs more commands than a replay has room for

local mr = require "millrace"
local T = require "millrace.testing"

local function find(result, line)
  for _, call in ipairs(result.record_streams) do
    if call.where:match(":(%d+)$") == tostring(line) then return call end
  end
end

local function current_line() return debug.getinfo(2, "l").currentline end

-- ---------------------------------------------------------------- cases

local function program(options)
  local line = {}
  return line, function()
    local a, b, x, y = mr.stream{name = "a"}, mr.stream{name = "b"}, nil, nil
    a:run(function() x = mr.full({256}, 1, {name = "x"}) end)
    b:wait_stream(a)
    b:run(function() y = options.unused and mr.zeros(1) or x:sum() end)
    x:record_stream(b) line.call = current_line()
    if options.again then x:record_stream(b) line.again = current_line() end
    if options.wait then a:wait_stream(b) line.wait = current_line() end
    if not options.lives then x:free() line.free = current_line() end
    a:run(function() local _ = mr.full({256}, 7) end) line.next = current_line()
    mr.synchronize()
    return y, x
  end
end

local function judged(options)
  local line, fn = program(options)
  local result = mr.waits(fn)
  return find(result, line.call), line, result
end

local function says(call, text)
  T.check(call.because:find(text, 1, true), ("%q in: %s"):format(text, call.because))
end

local verdict, line, result = judged {}
T.equal(verdict.verdict, "needed", "alone")
T.equal(verdict.kept, true, "and so it is kept")
T.equal(verdict.tensor, "`x`", "whose memory")
T.equal(verdict.stream, "`b`", "who uses it")
says(verdict, ("may free `x` while `sum` at line %d"):format(line.call - 1))
says(verdict, ("which is made at line %d"):format(line.next))
T.equal(result.total, 2, "it is no wait")
T.check(tostring(result):find("record_stream: needed (`x` for `b`)", 1, true), "and is shown: " .. tostring(result))

verdict, line, result = judged { again = true }
T.equal(verdict.verdict, "together", "named twice")
says(verdict, ("not together with line %d: "):format(line.again))
T.check(verdict.kept ~= find(result, line.again).kept, "one of both is kept")

verdict, line, result = judged { wait = true }
T.equal(verdict.verdict, "together", "with a wait that does the same")
says(verdict, ("not together with line %d: "):format(line.wait))
T.equal(verdict.kept, true, "the wait is what can go")
T.equal(result.sufficient, 1, "as the waits are judged with all calls in place: only the wait for `x` stays")

verdict = judged { unused = true }
T.equal(verdict.verdict, "redundant", "without a use")
says(verdict, "`b` does nothing with `x` before the free")

verdict = judged { lives = true }
T.equal(verdict.verdict, "redundant", "without a free")
says(verdict, "is not freed by this code")

result = mr.waits(function()
  local a, b = mr.stream(), mr.stream()
  for _ = 1, 3 do
    local x
    a:run(function() x = mr.full({64}, 1) end)
    b:wait_stream(a)
    b:run(function() x:sum():free() end)
    x:record_stream(b)
    x:free()
  end
end)
T.equal(#result.record_streams, 1, "rounds of one line are one call")
T.equal(result.record_streams[1].rounds, 3, "of so many rounds")
T.equal(result.record_streams[1].verdict, "needed", "in a loop")
T.equal(#mr.waits(function() end).record_streams, 0, "none")

-- ---------------------------------------------------------------- against brute force

local STREAMS, TENSORS = { "a", "b", "d" }, { "x", "y" }
local function pick(list) return list[math.random(#list)] end

-- Lines of a program; those in `calls` can be left out, and so can those in `waits`.
local function random_program()
  local lines, calls, waits = {}, {}, {}
  for _ = 1, 8 do
    local kind, s, t = math.random(10), pick(STREAMS), pick(TENSORS)
    if kind <= 4 then lines[#lines + 1] = ("mr.op{stream = %s, reads = {%s}}"):format(s, t)
    elseif kind <= 6 then
      lines[#lines + 1] = ("%s:wait_stream(%s)"):format(s, pick(STREAMS))
      waits[#waits + 1] = #lines
    else
      lines[#lines + 1] = ("%s:record_stream(%s)"):format(t, s)
      calls[#calls + 1] = #lines
    end
  end
  for _, t in ipairs(TENSORS) do lines[#lines + 1] = t .. ":free{stream = " .. pick(STREAMS) .. "}" end
  return lines, calls, waits
end

local FRAME = [[
local mr = require "millrace"
return function(a, b, d, x, y)
  %s
end]]

local function compiled(lines, gone)
  local kept = {}
  for i, text in ipairs(lines) do kept[i] = gone[i] and "" or text end
  local make = assert(load(FRAME:format(table.concat(kept, "\n  ")), "=program"))()
  return function()
    local x, y = mr.zeros(64), mr.zeros(64)
    mr.synchronize()
    make(mr.stream{name = "a"}, mr.stream{name = "b"}, mr.stream{name = "d"}, x, y)
  end
end

local function is_clean(lines, gone) return #mr.hazard.check(compiled(lines, gone)) == 0 end

local FIRST_LINE = 3 -- of the lines in FRAME

local function set_of(list, without)
  local set = {}
  for _, i in ipairs(list) do if i ~= without then set[i] = true end end
  return set
end

-- Whether the call matters in some combination: there are others with which it cannot go, and they can go without it.
local function matters(lines, candidates, one)
  local others = {}
  for _, i in ipairs(candidates) do if i ~= one then others[#others + 1] = i end end
  for subset = 0, (1 << #others) - 1 do
    local gone = {}
    for k, i in ipairs(others) do if subset >> (k - 1) & 1 == 1 then gone[i] = true end end
    if is_clean(lines, gone) then
      gone[one] = true
      if not is_clean(lines, gone) then return true end
    end
  end
  return false
end

math.randomseed(3)
local met = { needed = 0, together = 0, redundant = 0 }
for number = 1, 250 do
  local lines, calls, waits = random_program()
  if is_clean(lines, {}) then
    local r = mr.waits(compiled(lines, {}))
    local gone = {}
    local function at(list, i)
      for _, one in ipairs(list) do if one.where == ("program:%d"):format(i + FIRST_LINE - 1) then return one end end
    end
    for _, i in ipairs(waits) do
      local wait = at(r.waits, i) -- none if a stream waits for itself
      if wait and not wait.kept then gone[i] = true end
    end
    for _, i in ipairs(calls) do
      local one = at(r.record_streams, i)
      local text = ("program %d, line %d:\n%s\n%s"):format(number, i + FIRST_LINE - 1, table.concat(lines, "\n"), r)
      T.check(one, "a verdict: " .. text)
      T.equal(one.verdict == "needed", not is_clean(lines, set_of { i }), "needed: " .. text)
      if one.verdict == "redundant" then T.check(not matters(lines, calls, i), "redundant: " .. text) end
      if not one.kept then gone[i] = true end
      met[one.verdict] = met[one.verdict] + 1
    end
    T.check(is_clean(lines, gone), "what is kept is enough: program " .. number)
    for _, i in ipairs(calls) do
      local one = at(r.record_streams, i)
      if one.kept then
        gone[i] = true
        T.check(not is_clean(lines, gone), "and none of the kept calls can go: program " .. number)
        gone[i] = nil
      end
    end
  end
end
T.check(met.needed > 20 and met.together > 20 and met.redundant > 20, ("all verdicts were met: %d %d %d"):format(
  met.needed, met.together, met.redundant))
