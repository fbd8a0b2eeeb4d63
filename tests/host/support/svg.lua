-- Reads the pictures (.svg) of timelines: where texts and bars are.
local svg = {}

-- The texts: { x =, y =, class =, text = }
function svg.texts(picture)
  local list = {}
  for x, y, class, text in picture:gmatch('<text x="([%d.]+)" y="(%d+)" class="([^"]*)">(.-)</text>') do
    text = text:gsub("<title>.-</title>", "")
    list[#list + 1] = { x = tonumber(x), y = tonumber(y), class = class, text = text }
  end
  return list
end

local LETTER, BOLD = 6, 7

-- The first and the last pixel of a text.
function svg.bounds(one)
  local width = utf8.len(one.text) * (one.class == "n" and BOLD or LETTER)
  local is_centred = one.class == "n" or one.class == "s" or one.class:find("^b")
  return is_centred and one.x - width / 2 or one.x, is_centred and one.x + width / 2 or one.x + width
end

-- Two texts of which one is over the other, or nil.
function svg.overlapping(picture)
  local list = svg.texts(picture)
  for i, one in ipairs(list) do
    for k = 1, i - 1 do
      local first, last = svg.bounds(one)
      local other_first, other_last = svg.bounds(list[k])
      if math.abs(one.y - list[k].y) < 11 and first < other_last and other_first < last then
        return ("`%s` and `%s`"):format(list[k].text, one.text)
      end
    end
  end
  return nil
end

-- The rectangles whose attributes begin so: { x =, y =, width =, height = }
local function rectangles(picture, attributes)
  local list = {}
  for x, y, width, height in picture:gmatch("<rect" .. attributes ..
    ' x="(%d+)" y="(%d+)" width="(%d+)" height="(%d+)"') do
    list[#list + 1] = { x = tonumber(x), y = tonumber(y), width = tonumber(width), height = tonumber(height) }
  end
  return list
end

-- The frames of operations that race, and the bars of all streams.
function svg.frames(picture) return rectangles(picture, "") end
function svg.bars(picture)
  local bars = rectangles(picture:gsub('<rect class="lane"[^>]*>', ""):gsub('<rect [^>]*height="12"[^>]*>', ""),
    ' class="[%w-]+"')
  for i = #bars, 1, -1 do if bars[i].height ~= 26 then table.remove(bars, i) end end
  return bars
end

-- Whether the text is over the rectangle.
function svg.is_over(text, rectangle)
  local first, last = svg.bounds(text)
  return first < rectangle.x + rectangle.width and last > rectangle.x and text.y > rectangle.y and
    text.y - 8 < rectangle.y + rectangle.height
end

return svg
