-- Runs a hazard test: a script that is a pair. It begins with
--
--     if require "hazard_pair" () then return end
--
-- and has one comment for each report that must be found in it as written:
--
--     -- expect: kind=read-after-write reason=no-path tensor=x first=12 second=14
--
-- (any of the keys; lines are this file's, and in a fix "_" stands for white space), or `-- expect: clean`.
-- Without any such line the test fails.
-- Then the code of its `-- fix: CODE` lines is added, and there must be no report. Last, the fixes that the reports
-- propose are applied to the script as written, and there must be no report either. `-- proposed fix: none` says
-- that the reports propose nothing that can be inserted between two lines.
--
-- A table of such scripts, which differ in a few words, calls `require "hazard_pair".check_all(cases)` instead. There,
-- `-- waits: needed` says of the script with its proposed fixes that mr.waits finds each wait needed and knows nothing
-- that is cheaper; `-- waits: cheaper` that it does.

local mr = require "millrace"

local inside = false
local name = arg[0] -- of the script that is checked, for messages

local function fail(text, ...)
  error(name .. ": " .. text:format(...), 0)
end

local function read(path)
  local f = assert(io.open(path, "rb"))
  local text = f:read("a")
  f:close()
  return text
end

-- The checker reads the file that a script is from, so what is not as written in `file` gets one of its own.
local function run(lines, file)
  local path, text = file or os.tmpname(), table.concat(lines, "\n")
  if not file then
    local f = assert(io.open(path, "wb"))
    f:write(text)
    f:close()
  end
  local chunk = assert(file and load(text, "@" .. path) or loadfile(path))
  inside = true
  local ok, reports = pcall(mr.hazard.check, chunk)
  inside = false
  if not file then os.remove(path) end
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
    elseif key == "all" then got = table.concat(report.tensors, ",")
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
  local expected, says_so = {}, false
  for _, line in ipairs(lines) do
    local text = line:match("^%s*%-%- expect: (.*)$")
    says_so = says_so or text ~= nil
    if text and text ~= "clean" then expected[#expected + 1] = text end
  end
  if not says_so then fail("no line begins with `-- expect:`") end
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

-- Inserts the fixes of the reports at their places; several lines at one place come in the order of the reports.
local function with_proposed(lines, reports)
  local before, after, done = {}, {}, {}
  for _, r in ipairs(reports) do
    for _, fix in ipairs(r.fixes) do
      if fix.place == "within" then fail("a fix must be inserted in the middle of a line:\n%s", r.message) end
      local list = fix.place == "before" and before or after
      local key = fix.place .. fix.line .. fix.text
      if not done[key] then
        done[key] = true
        list[fix.line] = list[fix.line] or {}
        table.insert(list[fix.line], fix.text)
      end
    end
  end
  local fixed = {}
  for i, line in ipairs(lines) do
    for _, text in ipairs(before[i] or {}) do fixed[#fixed + 1] = text end
    fixed[#fixed + 1] = line
    for _, text in ipairs(after[i] or {}) do fixed[#fixed + 1] = text end
  end
  return fixed
end

-- Returns the lines with the proposed fixes.
local function check_proposed(lines, reports)
  for _ = 1, 4 do
    if #reports == 0 then return lines end
    for _, r in ipairs(reports) do
      if #r.fixes == 0 then fail("no fix is proposed:\n%s", r.message) end
    end
    lines = with_proposed(lines, reports)
    reports = run(lines)
  end
  fail("with the proposed fixes there is still a report:\n%s\n%s", all_messages(reports), table.concat(lines, "\n"))
end

local function has(lines, text)
  for _, line in ipairs(lines) do if line:find(text, 1, true) == 1 then return true end end
  return false
end

local function check_waits(lines, expected)
  local chunk = assert(load(table.concat(lines, "\n"), "=" .. name))
  inside = true
  local ok, result = pcall(mr.waits, chunk)
  inside = false
  if not ok then error(result, 0) end
  local cheaper = false
  for _, w in ipairs(result.waits) do
    if w.kind ~= "synchronize" then
      if w.verdict ~= "needed" then fail("a wait is %s:\n%s", w.verdict, tostring(result)) end
      cheaper = cheaper or w.instead ~= nil
    end
  end
  if cheaper ~= (expected == "cheaper") then fail("waits: expected %s, got\n%s", expected, tostring(result)) end
end

-- `file` nil: the lines are in no file.
local function check(lines, file)
  local reports = run(lines, file)
  check_expected(lines, reports)
  local fixed, count = with_fixes(lines)
  if #reports > 0 and count == 0 then fail("it has a hazard but no line `-- fix:`") end
  if count > 0 then
    local left = run(fixed)
    if #left > 0 then fail("with its fix lines there is still a report:\n%s", all_messages(left)) end
  end
  if has(lines, "-- proposed fix: none") then return end
  local proposed, waits = check_proposed(lines, reports), table.concat(lines, "\n"):match("%-%- waits: (%a+)")
  if waits then check_waits(proposed, waits) end
end

local pair = {}

-- cases: a list of {name, text of the script}. Each counts as a test.
function pair.check_all(cases)
  local failed = 0
  for _, case in ipairs(cases) do
    name = case[1]
    local ok, problem = pcall(check, split(case[2]))
    if not ok then
      failed = failed + 1
      print("FAILED " .. problem)
    end
  end
  print(("%d passed, %d failed"):format(#cases - failed, failed))
  os.exit(failed == 0)
end

return setmetatable(pair, { __call = function()
  if inside then return false end
  check(split(read(arg[0])), arg[0])
  print("1 passed, 0 failed")
  return true
end })
