-- Texts for the eye: columns of a given width, with or without colours, in ASCII or beyond it.
--
-- Easiest to break: widths. A text with colours is longer than it looks, so colours are added last.
local format = require "millrace.words".format
local _, tools = ...

local draw = {}

local COLOURS = { bold = "1", dim = "2" } -- both can be read on light and on dark

local LEAST_FOR_COLUMNS = 60

-- Whether the lines are too short for a timeline or for several columns.
function draw.is_narrow() return tools.width() < LEAST_FOR_COLUMNS end

-- { width =, colour =, unicode = }: the present abilities of the output.
function draw.style()
  local colour, unicode = tools.terminal()
  return { width = tools.width(), colour = colour, unicode = unicode }
end

function draw.paint(style, colour, text)
  if not style.colour or text == "" then return text end
  return ("\27[%sm%s\27[0m"):format(COLOURS[colour], text)
end

-- Columns that a text takes.
draw.width = tools.columns

-- The first of the two where characters beyond ASCII can be shown.
function draw.glyph(style, unicode, ascii) return style.unicode and unicode or ascii end

-- The text, cut to a width.
function draw.cut(style, text, width)
  if draw.width(text) <= width then return text end
  local dots = draw.glyph(style, "…", "..")
  local keep = math.max(0, width - draw.width(dots))
  local last = utf8.len(text) and utf8.offset(text, keep + 1) or keep + 1
  return text:sub(1, last - 1) .. dots
end

-- "folder/file.lua:12", cut at its front to a width: the folders go first, and the line stays.
function draw.cut_place(style, place, width)
  if draw.width(place) > width then place = place:match("[^/]*$") end
  if draw.width(place) <= width then return place end
  local dots = draw.glyph(style, "…", "..")
  local first = math.max(0, draw.width(place) - width + draw.width(dots))
  return dots .. place:sub(utf8.len(place) and utf8.offset(place, first + 1) or first + 1)
end

-- The text, cut or filled with blanks.
function draw.fit(style, text, width)
  text = draw.cut(style, text, width)
  return text .. (" "):rep(width - draw.width(text))
end

-- Lines of at most `width` columns, the second and later ones after `indent` blanks.
function draw.wrap(text, width, indent)
  local lines = {}
  text = text:gsub("%s+", " "):match("^ ?(.-) ?$")
  for line in tools.wrap(text, width, 0, indent or 0):gmatch("[^\n]*") do lines[#lines + 1] = line end
  return lines
end

-- The widths of the columns, so that all of them fit: the widest give way.
local function fitting(widths, width)
  local total = 2 * (#widths - 1)
  for _, one in ipairs(widths) do total = total + one end
  while total > width do
    local widest = 1
    for k = 2, #widths do
      if widths[k] > widths[widest] then widest = k end
    end
    if widths[widest] <= 4 then return widths end
    widths[widest] = widths[widest] - 1
    total = total - 1
  end
  return widths
end

-- Each row as a paragraph: its first cell, and below it the others with their names.
local function paragraphs(style, names, rows)
  local lines = {}
  for _, row in ipairs(rows) do
    lines[#lines + 1] = draw.paint(style, "bold", row[1] or "")
    for k = 2, #names do
      if row[k] and row[k] ~= "" then
        for i, line in ipairs(draw.wrap(names[k] .. ": " .. row[k], style.width - 2, 2)) do
          lines[#lines + 1] = i == 1 and "  " .. line or line
        end
      end
    end
  end
  return lines
end

-- Rows of cells below each other, under their names.
function draw.columns(style, names, rows)
  if draw.is_narrow() then return paragraphs(style, names, rows) end
  local widths = {}
  for k, name in ipairs(names) do widths[k] = draw.width(name) end
  for _, row in ipairs(rows) do
    for k = 1, #names do widths[k] = math.max(widths[k], draw.width(row[k] or "")) end
  end
  widths = fitting(widths, style.width)
  local lines = {}
  local function add(row, colour)
    local cells = {}
    for k = 1, #names do cells[k] = draw.fit(style, row[k] or "", widths[k]) end
    local line = table.concat(cells, "  "):gsub("%s+$", "")
    lines[#lines + 1] = colour and draw.paint(style, colour, line) or line
  end
  add(names, "dim")
  for _, row in ipairs(rows) do add(row) end
  return lines
end

-- "1.5 KiB"
function draw.bytes(count)
  if count < 1024 then return count .. " B" end
  for _, unit in ipairs{ "KiB", "MiB", "GiB", "TiB" } do
    count = count / 1024
    if count < 1024 or unit == "TiB" then return format("%.4g %s", count, unit) end
  end
end

return draw
