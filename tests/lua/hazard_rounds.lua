-- The fixes of the reports, put into random loops over several pairs of streams, and into random blocks: one round is
-- nearly always enough, and a few always are. ROUNDS_COUNT=5000 ROUNDS_SEED=7 asks for more. It
-- prints how many rounds were needed, and how often a report came up at places that the first
-- round had not named.
-- not recorded: its reports depend on when the collector runs
-- not checked: the checker is what is tested
-- own pace: a collection at another time frees other tensors while work is pending, which are further reports
local lu = require "luaunit"
local mr = require "millrace"

local COUNT = tonumber(os.getenv("ROUNDS_COUNT")) or 150
local SEED = tonumber(os.getenv("ROUNDS_SEED")) or 1
local MOST_ROUNDS = 3

local random

local function pick(list) return list[random(#list)] end

-- A generator of our own: the same scripts with every Lua.
local function generator(seed)
  local state = seed * 2654435761 % 4294967296
  return function(n)
    state = (state * 1664525 + 1013904223) % 4294967296
    return state // 65536 % n + 1
  end
end

local function statement(streams, tensors)
  local s, x = pick(streams), pick(tensors)
  local kind = random(10)
  if kind <= 3 then return ("mr.op{name = 'w', writes = {%s}, stream = %s}"):format(x, s) end
  if kind <= 6 then return ("mr.op{name = 'r', reads = {%s}, stream = %s}"):format(x, s) end
  if kind == 7 then
    return ("mr.op{name = 'rw', reads = {%s}, writes = {%s}, stream = %s}"):format(x, pick(tensors), s)
  end
  if kind == 8 then return ("%s:wait_stream(%s)"):format(s, pick(streams)) end
  if kind == 9 then return ("e:record(%s)"):format(s) end
  return ("%s:wait_event(e)"):format(s)
end

local function script(seed)
  random = generator(seed)
  for _ = 1, 5 do random(2) end
  local lines = {
    'local mr = require "millrace"',
    "local s, x, e = {}, {}, mr.event()",
    "for i = 1, 4 do s[i], x[i] = mr.stream(), mr.zeros(4) end",
    "mr.synchronize()",
    "for i = 1, 3 do",
  }
  local streams, tensors = { "s[1]", "s[2]", "s[3]", "s[i]", "s[i + 1]" }, { "x[1]", "x[2]", "x[i]", "x[i + 1]" }
  for _ = 1, 3 + random(5) do lines[#lines + 1] = "  " .. statement(streams, tensors) end
  lines[#lines + 1] = "end"
  return lines
end

-- Scripts with blocks, functions and several statements on a line. MARK stands in front of a statement that does not
-- begin its line, where a fix "within" the line goes.
local MARK = "\1"

local function of_round(format, index) return index and random(3) == 1 and format:format(index) or nil end

local function simple(index)
  local s = of_round("s[%s %% 2 + 1]", index) or pick{ "a", "b", "s[1]", "s[2]" }
  local x = of_round("z[%s %% 2 + 1]", index) or pick{ "x", "y", "z[1]", "z[2]" }
  local kind = random(14)
  if kind <= 3 then return ("mr.op{name = 'w', writes = {%s}, stream = %s}"):format(x, s) end
  if kind <= 6 then return ("mr.op{name = 'r', reads = {%s}, stream = %s}"):format(x, s) end
  if kind == 7 then return ("%s:run(function() %s:add_(%s) end)"):format(s, x, pick{ "x", "y", "z[1]" }) end
  if kind == 8 then return ("%s:wait_stream(%s)"):format(s, pick{ "a", "b", "s[1]" }) end
  if kind == 9 then return ("e:record(%s)"):format(s) end
  if kind == 10 then return ("%s:wait_event(e)"):format(s) end
  if kind == 11 then return ("use(%s, %s)"):format(x, s) end
  if kind == 12 then return ("put(%s, %s)"):format(x, s) end
  if kind == 13 then return ("local _ = %s:sum():item()"):format(x) end
  return ("mr.with(%s, function() %s:fill_(1) end)"):format(s, x)
end

local function add_statement(lines, depth, index)
  local kind, even = random(11), index and index .. " % 2 == 0" or "true"
  local function add(format, ...) lines[#lines + 1] = format:format(...) end
  local function block(inner) for _ = 1, random(3) do add_statement(lines, depth + 1, inner) end end
  if depth >= 3 or kind <= 5 then add("%s", simple(index))
  elseif kind == 6 then
    add("for i%d = 1, %d do", depth, 1 + random(3))
    block("i" .. depth)
    add("end")
  elseif kind == 7 then
    add("if %s then", even)
    block(index)
    add("else")
    block(index)
    add("end")
  elseif kind == 8 then add("if %s then %s else %s end", even, simple(index), simple(index))
  elseif kind == 9 then add("for k = 1, 3 do %s%s end", MARK, simple("k"))
  elseif kind == 10 then add("%s %s%s", simple(index), MARK, simple(index))
  else
    add("do")
    add("local t = mr.zeros(4, {stream = %s})", pick{ "a", "b" })
    add("mr.op{name = 't', writes = {t}, stream = %s}", pick{ "a", "b", "s[1]" })
    add("end")
  end
end

local function script_of_blocks(seed)
  random = generator(seed)
  for _ = 1, 5 do random(2) end
  local lines = {
    'local mr = require "millrace"',
    "local a, b, s, e = mr.stream(), mr.stream(), {mr.stream(), mr.stream()}, mr.event()",
    "local x, y, z = mr.zeros(4), mr.zeros(4), {mr.zeros(4), mr.zeros(4)}",
    "mr.synchronize()",
    "local function use(t, q) mr.op{name = 'use', reads = {t}, stream = q} end",
    "local function put(t, q)",
    "q:run(function()",
    "t:fill_(2)",
    "end)",
    "end",
  }
  for _ = 1, 3 + random(5) do add_statement(lines, 1) end
  return lines
end

local function run(lines)
  local path = os.tmpname()
  local f = assert(io.open(path, "wb"))
  f:write((table.concat(lines, "\n"):gsub(MARK, "")))
  f:close()
  local reports = mr.hazard.check(assert(loadfile(path)))
  os.remove(path)
  mr.synchronize()
  return reports
end

-- Each line keeps the number that it had in the script as written, for the places of later rounds.
local function with_fixes(lines, origin, reports)
  local before, after, within, done = {}, {}, {}, {}
  for _, r in ipairs(reports) do
    for _, fix in ipairs(r.fixes) do
      local key = fix.place .. fix.line .. fix.text
      local list = fix.place == "after" and after or fix.place == "within" and within or before
      if not done[key] then
        done[key] = true
        list[fix.line] = list[fix.line] or {}
        table.insert(list[fix.line], fix.text)
      end
    end
  end
  local fixed, from = {}, {}
  local function put(text, number) fixed[#fixed + 1], from[#from + 1] = text, number end
  for i, line in ipairs(lines) do
    for _, text in ipairs(before[i] or {}) do put(text, 0) end
    for _, text in ipairs(within[i] or {}) do
      assert(line:find(MARK), "a line that has no two parts is to be split")
      line = line:gsub(MARK, function() return text .. " " .. MARK end)
    end
    put(line, origin[i])
    for _, text in ipairs(after[i] or {}) do put(text, 0) end
  end
  return fixed, from
end

local function places(r, origin)
  local function line(side) return side.where and origin[tonumber(side.where:match(":(%d+)$"))] or 0 end
  return r.kind .. line(r.first) .. " " .. line(r.second)
end

local function rounds_of(make, seed)
  local lines, origin, known, new = make(seed), {}, {}, 0
  for i = 1, #lines do origin[i] = i end
  local written = table.concat(lines, "\n")
  for round = 0, MOST_ROUNDS do
    local reports = run(lines)
    if #reports == 0 then return round, new > 0, written end
    for _, r in ipairs(reports) do
      local key = places(r, origin)
      if round == 0 then known[key] = true
      elseif not known[key] then new = new + 1 end
    end
    if round == MOST_ROUNDS then
      error(("seed %d: not silent after %d rounds\n%s\n%s"):format(seed, round, table.concat(lines, "\n"),
        reports[1].message))
    end
    lines, origin = with_fixes(lines, origin, reports)
  end
end

TestRounds = {}

local function check(make)
  local rounds, new, example = {}, 0, nil
  for i = 1, COUNT do
    local n, is_new, text = rounds_of(make, SEED * 100000 + i)
    rounds[n] = (rounds[n] or 0) + 1
    if is_new then
      new = new + 1
      example = example or text
    end
  end
  if os.getenv("ROUNDS_COUNT") then
    for n = 0, MOST_ROUNDS do print(n, rounds[n]) end
    print("new", new, example)
  end
  local racing = COUNT - (rounds[0] or 0)
  lu.assertTrue(racing > COUNT / 2)
  lu.assertTrue((rounds[1] or 0) >= 0.95 * racing, ("%d of %d"):format(rounds[1] or 0, racing))
end

function TestRounds.test_random_loops() check(script) end
function TestRounds.test_random_blocks() check(script_of_blocks) end

os.exit(lu.LuaUnit.run())
