-- Runs a hazard test: a script that is a pair. It begins with
--
--     if require "hazard_pair" () then return end
--
-- and says in comments what must be found in it as written, one line a report:
--
--     -- expect: kind=read-after-write reason=no-path tensor=x first=12 second=14
--
-- (any of the keys; lines are this file's, and in a fix "_" stands for white space), or `-- expect: clean`.
-- Then its lines `-- fix: CODE` are put into force, and it must be silent. Last, the cures that the reports
-- themselves propose are applied to the script as written, and it must become silent too; `-- cure: none` says
-- that the reports propose nothing that could be put in between two lines.

local mr = require "millrace"

local inside = false

local function fail(text, ...)
  error(arg[0] .. ": " .. text:format(...), 0)
end

local function read(path)
  local f = assert(io.open(path, "rb"))
  local text = f:read("a")
  f:close()
  return text
end

-- The checker reads the file that a script is from, so what is not as written gets a file of its own.
local function run(lines, changed)
  local path, text = changed and os.tmpname() or arg[0], table.concat(lines, "\n")
  if changed then
    local f = assert(io.open(path, "wb"))
    f:write(text)
    f:close()
  end
  local chunk = assert(load(text, "@" .. path))
  inside = true
  local ok, reports = pcall(mr.hazard.check, chunk)
  inside = false
  if changed then os.remove(path) end
  mr.synchronize()
  if not ok then error(reports, 0) end
  return reports
end

local function split(text)
  local lines = {}
  for line in (text .. "\n"):gmatch("(.-)\n") do lines[#lines + 1] = line end
  return lines
end

local function line_of(side)
  return side and side.where and side.where:match(":(%d+)$") or "collected"
end

-- "after:9,before:14"; "none" where no line can be put in
local function places(report)
  local texts = {}
  for i, fix in ipairs(report.fixes) do texts[i] = fix.place .. ":" .. fix.line end
  return #texts > 0 and table.concat(texts, ",") or "none"
end

local function matches(report, expected)
  for key, value in expected:gmatch("([%w_]+)=(%S+)") do
    local got
    if key == "first" or key == "second" then got = line_of(report[key])
    elseif key == "first_stream" then got = report.first.stream
    elseif key == "second_stream" then got = report.second.stream
    elseif key == "fix" then got = report.fix:gsub("%s", "_")
    elseif key == "place" then got = places(report)
    elseif key == "bytes" then got = report.bytes[1] .. ".." .. report.bytes[2]
    else got = tostring(report[key]) end
    if got ~= value then return false end
  end
  return true
end

local function all_messages(reports)
  local texts = {}
  for i, r in ipairs(reports) do texts[i] = r.message end
  return table.concat(texts, "\n")
end

local function check_expected(lines, reports)
  local expected = {}
  for _, line in ipairs(lines) do
    local text = line:match("^%s*%-%- expect: (.*)$")
    if text and text ~= "clean" then expected[#expected + 1] = text end
  end
  if #expected ~= #reports then
    fail("expected %d reports, got %d\n%s", #expected, #reports, all_messages(reports))
  end
  for i, text in ipairs(expected) do
    if not matches(reports[i], text) then fail("expected %s, got\n%s", text, reports[i].message) end
  end
end

local function with_fixes(lines)
  local fixed, count = {}, 0
  for i, line in ipairs(lines) do
    local indent, code = line:match("^(%s*)%-%- fix: (.*)$")
    if code then count = count + 1 end
    fixed[i] = code and indent .. code or line
  end
  return fixed, count
end

-- The cures of the reports, put where they say; the lines of one place in the order of the reports.
local function with_cures(lines, reports)
  local before, after, done = {}, {}, {}
  for _, r in ipairs(reports) do
    for _, fix in ipairs(r.fixes) do
      if fix.place == "within" then fail("a cure has to go into the middle of a line:\n%s", r.message) end
      local list = fix.place == "before" and before or after
      local key = fix.place .. fix.line .. fix.text
      if not done[key] then
        done[key] = true
        list[fix.line] = list[fix.line] or {}
        table.insert(list[fix.line], fix.text)
      end
    end
  end
  local cured = {}
  for i, line in ipairs(lines) do
    for _, text in ipairs(before[i] or {}) do cured[#cured + 1] = text end
    cured[#cured + 1] = line
    for _, text in ipairs(after[i] or {}) do cured[#cured + 1] = text end
  end
  return cured
end

local function check_cures(lines, reports)
  for _ = 1, 4 do
    if #reports == 0 then return end
    for _, r in ipairs(reports) do
      if #r.fixes == 0 then fail("no cure is proposed:\n%s", r.message) end
    end
    lines = with_cures(lines, reports)
    reports = run(lines, true)
  end
  fail("the proposed cures do not cure:\n%s\n%s", all_messages(reports), table.concat(lines, "\n"))
end

local function has(lines, text)
  for _, line in ipairs(lines) do if line:find(text, 1, true) == 1 then return true end end
  return false
end

return function()
  if inside then return false end
  local lines = split(read(arg[0]))
  local reports = run(lines)
  check_expected(lines, reports)
  local fixed, count = with_fixes(lines)
  if #reports > 0 and count == 0 then fail("it has a hazard and no line `-- fix:`") end
  if count > 0 then
    local left = run(fixed, true)
    if #left > 0 then fail("with its fix lines it is not silent:\n%s", all_messages(left)) end
  end
  if not has(lines, "-- cure: none") then check_cures(lines, reports) end
  return true
end
