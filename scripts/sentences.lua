-- Finds sentences that are hard to read: longer than 30 words, or beginning with "Of". `make lint` runs it on the
-- pages and on the comments.
--
--     lua5.4 scripts/sentences.lua FILE...     .md: paragraphs, items, cells of tables; .lua and others: comments
--
-- A colon or a semicolon ends a sentence, too. Code between backquotes counts as one word. Fails if it finds one.
local MOST = 30

local found = 0

local function judge(path, line, text)
  -- Code, links and a bracketed aside that is a sentence of its own do not end a sentence.
  text = text:gsub("`[^`]*`", "C"):gsub("%[([^%]]*)%]%([^)]*%)", "%1"):gsub("%*%*", "")
  for sentence in (text:gsub("([%.!?:;])([%)\"']?)%s+", "%1%2\n") .. "\n"):gmatch "([^\n]+)\n" do
    local words = select(2, sentence:gsub("%f[%w]%w[%w'%-]*", ""))
    if words > MOST or sentence:find "^Of%s" then
      found = found + 1
      print(("%s:%d: %d words: %s"):format(path, line, words, sentence))
    end
  end
end

local function markdown(path, lines)
  local text, first, fenced = nil, 0, false
  local function flush()
    if text then judge(path, first, text) end
    text = nil
  end
  for number, line in ipairs(lines) do
    local starts = line:match "^%s*[-*] (.*)" or line:match "^%s*%d+%. (.*)"
    if line:find "^%s*```" then
      flush()
      fenced = not fenced
    elseif fenced or line:find "^#" or line:find "^%s*$" or (not text and line:find "^    ") then
      flush()
    elseif line:find "^|" then
      flush()
      for cell in line:gmatch "|([^|]+)" do judge(path, number, (cell:gsub("^%s+", ""):gsub("%s+$", ""))) end
    elseif starts then
      flush()
      text, first = starts, number
    elseif text then
      text = text .. " " .. line:gsub("^%s+", "")
    else
      text, first = line, number
    end
  end
  flush()
end

-- ---------------------------------------------------------------- comments

-- A line that stands in columns, or is code, is no sentence.
local function is_laid_out(said)
  return said:find "^     " or said:find "%S   +%S" or said:find "^%s*[%-=]+%s*$"
end

-- What a line of C says: the text of its comment, and whether that goes on; nil: there is none.
local function said_in_c(line, inside)
  local text = line
  if not inside then
    text = line:match "^%s*/%*+(.*)" or line:gsub('"[^"]*"', ""):match "/%*+(.*)"
    if not text then return nil, false end
  else
    text = text:gsub("^%s*%*%f[^*/]", "")
  end
  local last = text:find("*/", 1, true)
  return last and text:sub(1, last - 1) or text, not last
end

local function said_in_lua(line)
  return line:match "^%s*%-%-+ ?(.*)", false
end

-- Comments behind code are sentences of their own; those of lines that follow each other are one text.
local function comments(path, lines)
  local said_in = path:find "%.lua$" and said_in_lua or said_in_c
  local text, first, inside
  local function flush()
    if text then judge(path, first, text) end
    text = nil
  end
  for number, line in ipairs(lines) do
    local goes_on = inside
    local said
    said, inside = said_in(line, inside)
    if not goes_on and said_in == said_in_c then flush() end
    if not said or said:find "^%s*$" or is_laid_out(said) then flush()
    elseif text then text = text .. " " .. said:gsub("^%s+", "")
    else text, first = said:gsub("^%s+", ""), number end
  end
  flush()
end

for _, path in ipairs(arg) do
  local lines = {}
  for line in io.lines(path) do lines[#lines + 1] = line end
  if path:find "%.md$" then markdown(path, lines) else comments(path, lines) end
end
os.exit(found == 0)
