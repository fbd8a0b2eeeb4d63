-- The fixes of the reports, put into random loops over several pairs of streams: one round is
-- nearly always enough, and a few always are. ROUNDS_COUNT=5000 ROUNDS_SEED=7 asks for more. It
-- prints how many rounds were needed, and how often a report came up at places that the first
-- round had not named.
-- not recorded: its reports depend on when the collector runs
-- not checked: the checker is what is tested
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

local function run(lines)
  local path = os.tmpname()
  local f = assert(io.open(path, "wb"))
  f:write(table.concat(lines, "\n"))
  f:close()
  local reports = mr.hazard.check(assert(loadfile(path)))
  os.remove(path)
  mr.synchronize()
  return reports
end

-- Each line keeps the number that it had in the script as written, for the places of later rounds.
local function with_fixes(lines, origin, reports)
  local before, after, done = {}, {}, {}
  for _, r in ipairs(reports) do
    for _, fix in ipairs(r.fixes) do
      local key = fix.place .. fix.line .. fix.text
      local list = fix.place == "after" and after or before
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
    put(line, origin[i])
    for _, text in ipairs(after[i] or {}) do put(text, 0) end
  end
  return fixed, from
end

local function places(r, origin)
  local function line(side) return origin[tonumber(side.where:match(":(%d+)$"))] end
  return r.kind .. line(r.first) .. " " .. line(r.second)
end

local function rounds_of(seed)
  local lines, origin, known, new = script(seed), {}, {}, 0
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

function TestRounds.test_random_loops()
  local rounds, new, example = {}, 0, nil
  for i = 1, COUNT do
    local n, is_new, text = rounds_of(SEED * 100000 + i)
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

os.exit(lu.LuaUnit.run())
