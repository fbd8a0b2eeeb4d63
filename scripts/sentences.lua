-- Finds sentences that are hard to read: longer than 30 words, or beginning with "Of". `make lint` runs it on the
-- pages.
--
--     lua5.4 scripts/sentences.lua FILE...     .md: paragraphs, items, cells of tables; others: comments of C and Lua
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

-- Comments: those of C between /* and */, and runs of lines that begin with --.
local function comments(path, lines)
  local text, first, inside
  local function flush()
    if text then judge(path, first, text) end
    text = nil
  end
  for number, line in ipairs(lines) do
    local said
    if inside then said = line:gsub("^%s*%*%f[^*/]", ""):gsub("%*/.*$", "")
    elseif line:find "/%*" then said = line:match("/%*+(.*)"):gsub("%*/.*$", "") inside = true
    else said = line:match "^%s*%-%-+ ?(.*)" end
    if inside and line:find "%*/" then inside = false end
    if not said or said:find "^%s*$" or said:find "^     " then flush()
    elseif text then text = text .. " " .. said:gsub("^%s+", "")
    else text, first = said:gsub("^%s+", ""), number end
    if not inside and line:find "%*/" then flush() end
  end
  flush()
end

for _, path in ipairs(arg) do
  local lines = {}
  for line in io.lines(path) do lines[#lines + 1] = line end
  if path:find "%.md$" then markdown(path, lines) else comments(path, lines) end
end
os.exit(found == 0)
