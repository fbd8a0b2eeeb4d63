-- A script with the fixes that the reports of hazards propose, as text in memory. A fix is added at the beginning of
-- its line, so that no line gets another number.

local fixed = {}

-- By chunk, of one that runs the text of a file by itself: {path=, of_ranks= whether each rank runs all of it, with=
-- function(text) -> such a chunk of this text}.
fixed.runs = setmetatable({}, { __mode = "k" })

local function read(path)
  local f = io.open(path, "rb")
  if not f then return nil end
  local text = f:read("a")
  f:close()
  return text
end

local function split(text)
  local lines = {}
  for line in (text:gsub("\n$", "") .. "\n"):gmatch("(.-)\n") do lines[#lines + 1] = line end
  return lines
end

-- The lines of the file that the chunk is from, and its path; nil: it is from no file that can be read.
function fixed.lines_of(chunk)
  local runs = fixed.runs[chunk]
  local path = io and debug and (runs and runs.path or debug.getinfo(chunk, "S").source:match("^@(.*)$"))
  local text = path and read(path)
  if not text or text:sub(1, 1) == "\27" then return nil end
  return split((text:gsub("^#[^\n]*", ""))), path
end

-- A wait of the host has a comment. More of the line's text follows here.
local function without_comment(text) return text:match("^(mr%.synchronize%(%d*%)) %-%- ") or text end

local function is_file(name, path)
  return name == path or path:sub(-#name - 1) == "/" .. name
end

-- Puts the fixes of the reports into the lines, each once: `done` has those that stand there already. Returns how many
-- were added; nil: a report has no fix with a place in this file.
function fixed.apply(lines, path, reports, done)
  local count = 0
  for _, report in ipairs(reports) do
    if #report.fixes == 0 then return nil end
    local front = {} -- of one place several lines, which keep their order
    for _, fix in ipairs(report.fixes) do
      local at = fix.place == "before" and fix.line or fix.place == "after" and fix.line + 1
      if not at or not is_file(fix.file, path) or at > #lines + 1 then return nil end
      local key = at .. ":" .. fix.text
      if not done[key] then
        done[key], count = true, count + 1
        front[at] = (front[at] or "") .. without_comment(fix.text) .. "; "
      end
    end
    for at, text in pairs(front) do lines[at] = text .. (lines[at] or "") end
  end
  return count
end

-- `chunk`: that of the file as it is.
function fixed.load(lines, path, chunk)
  local text, runs = table.concat(lines, "\n"), fixed.runs[chunk]
  if runs then return runs.with(text) end
  return load(text, "@" .. path, "t")
end

return fixed
