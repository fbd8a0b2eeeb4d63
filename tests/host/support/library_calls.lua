-- Calls functions of `string` and `table` in many ways, and writes what they return: the host must say the same as Lua.
-- Arguments: a seed, and how many rounds.
local seed, rounds = tonumber(arg[1]), tonumber(arg[2])

local state = seed
local function random(n)
  state = state * 6364136223846793005 + 1442695040888963407
  return (state >> 33) % n + 1
end

local function one_of(list) return list[random(#list)] end

local function row_of(list, most)
  local out = ""
  for _ = 1, random(most + 1) - 1 do out = out .. one_of(list) end
  return out
end

-- Addresses differ from run to run.
local function text_of(value)
  if type(value) == "table" or type(value) == "function" then return type(value) end
  return type(value) == "string" and ("%q"):format(value) or tostring(value)
end

local function show(...)
  local out = {}
  for i = 1, select("#", ...) do out[i] = text_of((select(i, ...))) end
  return table.concat(out, " ")
end

-- Lua 5.4.4 counts the argument of table.remove in another way than its manual.
local function say(...)
  print((show(...):gsub("#1 to 'table.remove' %(position", "#2 to 'table.remove' (position")))
end

-- ---------------------------------------------------------------- patterns

local ITEMS = { "a", "b", "c", ".", "%a", "%d", "%s", "%w", "%A", "%z", "[ab]", "[^a]", "[a-c]", "[%a-]", "[]]",
  "[^]a]", "[a-", "[", "]", "(", ")", "()", "%1", "%2", "%b()", "%bab", "%b", "%f[%a]", "%f[^%z]", "%f", "%", "^", "$",
  "*", "+", "-", "?", "(a*)", "(.-)", "(b?)", "%.", "%x", "%p", "\0", "[\0-b]", "%g", "%u", "%l", "%c", "a*", ".*",
  ".-",
  ".+", "[b-%d]" }
local LETTERS = { "a", "b", "c", "(", ")", "1", " ", "A", ".", "\0", "]", "-", "aab", "\n", "\255" }
local REPLACEMENTS = { "x", "%0", "%1", "%2", "%%", "<%1>", "%", "%a", "", "%9" }

local function replaced(a, b)
  if (b or a) == "a" then return "<>" end
  if a == "b" then return 7 end
  return a == " " and {}
end

for _ = 1, rounds do
  local s, p = row_of(LETTERS, 12), row_of(ITEMS, 5)
  local from = random(4) == 1 and random(18) - 9 or nil
  local count = random(5) == 1 and random(5) - 2 or nil
  say("of", s, p, from, count)
  say("find", pcall(string.find, s, p, from, random(8) == 1))
  say("match", pcall(string.match, s, p, from))
  say("gsub", pcall(string.gsub, s, p, one_of(REPLACEMENTS), count))
  say("gsub", pcall(string.gsub, s, p, replaced, count))
  say("gsub", pcall(string.gsub, s, p, { a = 1, b = "", c = false, aab = print }, count))
  say("gmatch", pcall(function()
    for a, b in string.gmatch(s, p, from) do say(a, b) end
  end))
end

say(pcall(string.find, ("a"):rep(300), ("a?"):rep(300)))
say(pcall(string.find, ("a"):rep(300), ("(a"):rep(300)))
say(pcall(string.find, ("a"):rep(100), ("()"):rep(33)))
for _, name in ipairs{ "find", "match", "gmatch", "gsub", "rep" } do
  local f = string[name]
  say(pcall(f))
  say(pcall(f, "a"))
  say(pcall(f, {}, "a"))
  say(pcall(f, "a", "a", true))
  say(pcall(f, 12345, "34", 1.5))
  say(pcall(f, 12345, 34, 1))
end
say(pcall(load("local s = ...\nreturn s:find('[a')", "=chunk"), "b"))

-- ---------------------------------------------------------------- rep

-- Nothing here depends on the seed, so the large ones are for the first.
local large = seed == 1 and { 1 << 20, (1 << 20) + 3 } or {}
for _, n in ipairs{ -1, 0, 1, 2, 3, 1000, table.unpack(large) } do
  for _, s in ipairs{ "", "a", "abc", ("q"):rep(5000) .. "z" } do
    for _, separator in ipairs{ "", "-", "123" } do
      local text = #s * n < 1 << 22 and s:rep(n, separator) or ""
      say(#text, text:sub(1, 100), text:sub(-100), text:find("[^abcqz123-]"))
      say(select(2, text:gsub("z?" .. separator, "")))
    end
  end
end
say(pcall(string.rep, "ab", math.maxinteger))
say(pcall(string.rep, "ab", 3, "x", 4))
say(pcall(load("local s = 'x' return s:rep({})", "=chunk")))

-- ---------------------------------------------------------------- tables

-- With the same elements, by metamethods that write which of them were asked for.
local function with_log(list)
  return setmetatable({}, {
    __index = function(_, i)
      say("read", i)
      return list[i]
    end,
    __newindex = function(_, i, value)
      say("write", i, value)
      list[i] = value
    end,
    __len = function() return #list end,
  })
end

local function both(name, list, ...)
  if type(list) ~= "table" then return say(name, pcall(table[name], list, ...)) end
  local copy = table.pack(table.unpack(list))
  copy.n = nil
  say(name, pcall(table[name], copy, ...))
  say(table.unpack(copy))
  say(pcall(table[name], with_log(list), ...))
end

local STRANGE = { "x", 1.5, math.maxinteger, math.mininteger, "3", 2.0 }
local function position() return random(3) == 1 and one_of(STRANGE) or random(9) - 2 end

local function is_near(value) return math.abs(math.tointeger(value) or 0) < 100 end

for _ = 1, rounds // 10 do
  local list = {}
  for i = 1, random(6) - 1 do list[i] = random(9) == 1 and {} or random(2) == 1 and i or "s" .. i end
  local a, b, c = position(), position(), position()
  both("insert", list, 9)
  both("insert", list, a, 9)
  both("insert", list)
  both("insert", list, 1, 2, 3)
  both("remove", list)
  both("remove", list, a)
  both("concat", list)
  both("concat", list, a)
  if is_near(a) and is_near(b) and is_near(c) then
    both("move", list, a, b, c)
    both("concat", list, ",", a, b)
    local target = { "p", "q" }
    say(pcall(table.move, list, a, b, c, target))
    say(table.unpack(target))
  end
end
both("insert", 7, 1)
both("remove", "x")
both("concat")
both("concat", {}, {})
both("concat", {}, ",", math.maxinteger, math.maxinteger)
both("concat", { 1 }, ",", math.maxinteger, 1)
both("move", {}, math.mininteger, 5, 1)
both("move", {}, 1, math.maxinteger, 2)
both("move", {}, 1)
both("move", 1, 1, 1, 1)
both("move", {}, 1, 2, 3, 4)
both("move", setmetatable({}, { __index = {} }), 1, 1, 1, setmetatable({}, { __newindex = {} }))
for _, name in ipairs{ "insert", "remove", "concat", "move" } do
  for _, method in ipairs{ "__index", "__newindex", "__len" } do
    debug.setmetatable(1, { [method] = function() return 0 end })
    say(pcall(table[name], 1, 2))
    debug.setmetatable(1, { __index = function() end, __newindex = function() end, __len = function() return 3 end,
      [method] = false })
    say(pcall(table[name], 1, 2))
  end
end
debug.setmetatable(1, nil)
say(pcall(load("local t = ...\nreturn table.concat(t)", "=chunk"), { {} }))
say(pcall(load("return table.insert({}, 5, 1)", "=chunk")))
