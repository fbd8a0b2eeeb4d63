-- Texts for a screen of 80 columns.

local text = {}

local WIDTH = 78

-- The indentation of the rest of a line that is too long: none for prose, and 2 more than the line's own if that is
-- indented.
local function hanging(line)
  local indent = #line:match("^%s*")
  return (" "):rep(indent > 0 and indent + 2 or 0)
end

-- The width of a text on the screen: bold has none. Bytes that are no UTF-8 count one each.
local function columns(line)
  local shown = line:gsub("\27%[[%d;]*m", "")
  return utf8.len(shown) or #shown
end

-- The last blank at which the line can be broken, or nil.
local function last_break(line)
  local at
  for i in line:sub(1, -2):gmatch "() " do
    if columns(line:sub(1, i - 1)) > WIDTH then break end
    if i > #hanging(line) then at = i end
  end
  return at
end

local function wrap_line(line, lines)
  while columns(line) > WIDTH do
    local at = last_break(line)
    if not at then break end
    lines[#lines + 1] = line:sub(1, at - 1)
    line = hanging(line) .. line:sub(at + 1)
  end
  lines[#lines + 1] = line
end

-- Breaks lines that are too long between words.
function text.wrap(long)
  local lines = {}
  for line in (long .. "\n"):gmatch("([^\n]*)\n") do wrap_line(line, lines) end
  return (table.concat(lines, "\n"):gsub("%s+$", ""))
end

-- A program with the numbers of its lines.
function text.numbered(program)
  local lines, number = {}, 0
  for line in program:gsub("%s+$", ""):gmatch("([^\n]*)\n?") do
    number = number + 1
    lines[number] = ("%4d  %s"):format(number, line)
  end
  if lines[number] and lines[number]:find("^%s*%d+%s*$") then lines[number] = nil end
  return table.concat(lines, "\n")
end

-- The longest line, in characters.
function text.widest(long)
  local most = 0
  for line in long:gmatch("[^\n]+") do most = math.max(most, columns(line)) end
  return most
end

return text
