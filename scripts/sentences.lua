-- Finds sentences that are hard to read:
-- - longer than 30 words;
-- - beginning with "Of", "Else", "So is", "Nor does", "Neither has", "To be called", or a clause "what ... is" or
--   "that the ... is" as their subject;
-- - with a verb before its subject, as in `, and so does a stream` or `Behind it comes a copy`;
-- - with a clause like `, of which one waits` or `one of which`;
-- - with a negation of a negation, as in `nothing that is not free`;
-- - with four words such as "that", "what" and "which".
-- `make lint` runs it on the pages, the comments, and the texts that the program prints.
--
--     lua5.4 scripts/sentences.lua FILE...     .md: paragraphs, items, cells of tables; others: comments and strings
--
-- Only a full stop, a question mark or an exclamation mark ends a sentence within an item of a list, a cell of a table,
-- or a paragraph. Code between backquotes counts as one word. Fails if it finds a sentence.
local MOST = 30

local found = 0

local function offend(path, line, reason, sentence)
  found = found + 1
  print(("%s:%d: %s: %s"):format(path, line, reason, sentence))
end

-- ---------------------------------------------------------------- one text

local ABBREVIATIONS = { ["e.g."] = true, ["i.e."] = true, ["etc."] = true, ["vs."] = true, ["cf."] = true }
local VERBS = " is are was were "

local function words_in(sentence)
  local words = 0
  for token in sentence:gmatch "%S+" do
    if token:find "%w" then words = words + 1 end
  end
  return words
end

-- True for "What it holds is ...", where a noun would be shorter. A question may begin so, and so may a title without
-- these verbs ("What a call borrows").
local function has_clause_as_subject(sentence)
  local rest = sentence:match "^[%(\"'*]*What(%A.*)"
  if not rest or sentence:find "%?[%)\"'*]*$" then return false end
  for word in rest:gmatch "%a+" do
    if VERBS:find(" " .. word .. " ", 1, true) then return true end
  end
  return false
end

local NOUNS = " a all an each it its no nothing the there they "

-- `That a GPU waits is not guaranteed`: the clause is the subject. `That event is` has a noun behind the word.
local function has_that_clause_as_subject(sentence)
  local word = sentence:match "^[%(\"'*]*That (%l+)"
  return word and NOUNS:find(" " .. word .. " ", 1, true)
end

local TURNED = " is are was were does do did has have had must "

-- The subject stands behind the verb, as in "So does the end". The sentence before says what it does.
local function is_turned(sentence)
  local first, second = sentence:match "^[%(\"'*]*(%a+) (%a+)"
  return (first == "So" or first == "Nor" or first == "Neither") and TURNED:find(" " .. second .. " ", 1, true)
end

-- `A file counts, and so does a stream`: the second half has its verb first. "Neither"
-- may be a subject (`neither waits`), and `so do not` is a request.
local function has_turned_half(sentence)
  for _, word in ipairs { "so", "nor", "neither" } do
    for from, verb, after in sentence:gmatch("()%f[%a]" .. word .. " (%a+)()") do
      local before = sentence:sub(1, from - 1)
      local is_joined = before:find "%f[%a]and $" or before:find "%f[%a]but $" or
        word ~= "neither" and before:find "[,;:] $"
      if is_joined and TURNED:find(" " .. verb .. " ", 1, true) and not sentence:find("^ not%f[%A]", after) then
        return true
      end
    end
  end
  return false
end

local PLACES = " Above Around At Before Behind Below Beside Between In Inside On Under "

-- `Behind the copy comes a record`: the place first, and the subject last.
local function has_place_first(sentence)
  local first, rest = sentence:match "^[%(\"'*]*(%a+) (.*)"
  if not first or not PLACES:find(" " .. first .. " ", 1, true) then return false end
  local before, subject = rest:match "^([^,;:]-) %f[%a]stands? (%a+)"
  if not before then before, subject = rest:match "^([^,;:]-) %f[%a]lies? (%a+)" end
  if not before then before, subject = rest:match "^([^,;:]-) %f[%a]comes? (%a+)" end
  if not before or before:find "%f[%a]that%f[%A]" or before:find "%f[%a]which%f[%A]" then return false end
  return (" a an all another each its no nothing one the their those two what "):find(" " .. subject .. " ", 1, true)
end

local PARTS = " all each either few many most none one some several "

-- `, of which one waits`, `one of which`: a second sentence inside the first.
local function has_part_of_which(sentence)
  if sentence:find ", of which%f[%A]" then return true end
  for word in sentence:gmatch "(%a+) of which%f[%A]" do
    if PARTS:find(" " .. word .. " ", 1, true) then return true end
  end
  return false
end

-- `no file that is not open`, `nothing which does not wait`
local function denies_twice(sentence)
  sentence = sentence:lower()
  for _, no in ipairs { "no %a+", "nothing", "nobody", "none" } do
    for _, relative in ipairs { "that", "which", "who" } do
      if sentence:find("%f[%a]" .. no .. " " .. relative .. " %a+ not%f[%A]") then return true end
    end
  end
  return false
end

local RELATIVES = { that = 1, what = 1, where = 1, whether = 1, which = 1, who = 1, whom = 1, whose = 1 }

-- How many clauses a sentence may hang on nouns or verbs, as in "the line that ..."
local function relatives_in(sentence)
  local count = 0
  for word in sentence:lower():gmatch "%a+" do
    count = count + (RELATIVES[word] or 0)
  end
  return count
end

local function judge_sentence(path, line, sentence)
  local words = words_in(sentence)
  if words > MOST then offend(path, line, words .. " words", sentence) end
  if sentence:find "^[%(\"'*]*Of%s" then offend(path, line, 'begins with "Of"', sentence) end
  if sentence:find "^[%(\"'*]*Else%f[%A]" then offend(path, line, 'begins with "Else"', sentence) end
  if relatives_in(sentence) > 3 then
    offend(path, line, relatives_in(sentence) .. ' words such as "that" and "what"', sentence)
  end
  if has_that_clause_as_subject(sentence) then offend(path, line, 'a clause "that ..." as subject', sentence) end
  if sentence:find "^[%(\"'*]*To be %l+ed%f[%A]" then offend(path, line, 'begins with "To be ...ed"', sentence) end
  if has_turned_half(sentence) then offend(path, line, "a half begins with its verb", sentence) end
  if has_place_first(sentence) then offend(path, line, "the place first and the subject last", sentence) end
  if has_part_of_which(sentence) then offend(path, line, 'a clause "of which"', sentence) end
  if denies_twice(sentence) then offend(path, line, "a negation of a negation", sentence) end
  if has_clause_as_subject(sentence) then offend(path, line, 'a clause "what ..." as subject', sentence) end
  if is_turned(sentence) then offend(path, line, "begins with its verb", sentence) end
end

local function judge(path, line, text)
  text = text:gsub("``.-``", "C"):gsub("`[^`]*`", "C"):gsub("%[([^%]]*)%]%([^)]*%)", "%1")
  text = text:gsub("%*%*", ""):gsub("%s+", " ")
  local from, at = 1, 1
  while true do
    local first, last, after = text:find("[%.!?]+[%)%]\"'*]*%s+()", at)
    if not first then break end
    local word = text:sub(1, first):match "%S+$"
    -- An ellipsis within a sentence goes on with a small letter or a mark.
    local is_ellipsis = text:find("^%.%.%.", first) and text:find("^[%l%p]", after)
    if not is_ellipsis and not ABBREVIATIONS[word] then
      judge_sentence(path, line, text:sub(from, last):match "^(.-)%s*$")
      from = after
    end
    at = after
  end
  if from <= #text then judge_sentence(path, line, text:sub(from)) end
end

-- ---------------------------------------------------------------- pages

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
      for cell in line:gsub("\\|", "/"):gmatch "|([^|]+)" do judge(path, number, cell:match "^%s*(.-)%s*$") end
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

-- ---------------------------------------------------------------- comments and strings

-- A line that stands in columns, or is code, is no sentence.
local function is_laid_out(said)
  return said:find "^    " or said:find "%S   +%S" or said:find "^%s*[%-=]+%s*$"
end

-- A text of several lines, from `number` on.
local function judge_lines(path, number, said, is_test)
  local text, first
  local function flush()
    if text then judge(path, first, text) end
    text = nil
  end
  local in_usage = false
  for line in (said .. "\n"):gmatch "(.-)\n" do
    local starts = line:find "^%s*[-*] " or line:find "^%s*%d+%. "
    -- A usage line of a function, "mr.f(x: tensor) -> y: tensor", goes on in lines that are indented.
    in_usage = line:find "^%s*[%w_%.:]+%(.-%w: %l" or in_usage and line:find "^%s%s"
    if in_usage then
      flush()
    elseif is_test and line:find "^%l[%l ]*: " then -- a line for the runner, such as "timeout: 240"
      flush()
      judge(path, number, line)
    elseif line:find "^%s*$" or is_laid_out(line) then
      flush()
    elseif text and not starts then
      text = text .. " " .. line
    else
      flush()
      text, first = line:match "^%s*(.*)", number
    end
    number = number + 1
  end
  flush()
end

-- Fields of Lua tables whose long string is prose; other long strings are programs.
local PROSE = " explanation task ask take_home usual PAGE text "

-- The comments and strings of a source, in order: {kind=, from=, to=, text=}, from and to as positions. `marks` is
-- {comment_line, comment_block or nil}.
local function pieces_of(source, is_lua)
  local pieces, at = {}, 1
  local function add(kind, from, to, text) pieces[#pieces + 1] = { kind = kind, from = from, to = to, text = text } end
  while true do
    local from = source:find(is_lua and "[-\"'%[]" or "[/\"']", at)
    if not from then return pieces end
    local to
    local mark = source:sub(from, from + 1)
    local quote = mark:sub(1, 1)
    local equals = is_lua and source:match("^%-?%-?%[(=*)%[", from)
    if equals then
      local open = source:find("[", from, true) + #equals + 2
      local close = "]" .. equals .. "]"
      local last = source:find(close, open, true) or #source
      to = last + #close - 1
      add(quote == "-" and "comment" or "long", from, to, source:sub(open, last - 1))
    elseif mark == (is_lua and "--" or "//") then
      to = (source:find("\n", from, true) or #source + 1) - 1
      add("line", from, to, source:sub(from, to):match(is_lua and "^%-+ ?(.*)" or "^/+ ?(.*)"))
    elseif mark == "/*" and not is_lua then
      to = (source:find("*/", from + 2, true) or #source) + 1
      add("comment", from, to, (source:sub(from, to):match "^/%*+(.-)%**/$" or ""):gsub("\n%s*%*%f[^*/] ?", "\n"))
    elseif quote == '"' or quote == "'" then
      to = from + 1
      while to <= #source and source:sub(to, to) ~= quote do
        to = to + (source:sub(to, to) == "\\" and 2 or 1)
      end
      if quote == '"' then add("string", from, to, source:sub(from + 1, to - 1)) end
    else
      to = from
    end
    at = to + 1
  end
end

-- Whether the text between two pieces lets them be one: strings that follow each other or are concatenated; lines of
-- comment.
local function belongs_to(piece, last, source, is_lua)
  if not last or piece.kind ~= last.kind then return false end
  local between = source:sub(last.to + 1, piece.from - 1)
  if piece.kind == "line" then return last.is_alone and between:find "^\n[ \t]*$" end
  if piece.kind ~= "string" then return false end
  return between:find(is_lua and "^%s*%.%.%s*$" or "^%s*P?R?I?%w*%s*$")
end

local function source_code(path, source)
  local is_lua, is_test = path:find "%.lua$", path:find "tests/" or path:find "bench/"
  local text, kind, first, last
  local number, counted, line_from = 1, 1, 1
  local function flush()
    if text then judge_lines(path, first, text, is_test) end
    text = nil
  end
  for _, piece in ipairs(pieces_of(source, is_lua)) do
    for after in source:sub(counted, piece.from - 1):gmatch "\n()" do
      number, line_from = number + 1, counted + after - 1
    end
    counted = piece.from
    local before = source:sub(line_from, piece.from - 1)
    piece.is_alone = before:find "^%s*$"
    local said = piece.text
    if piece.kind == "string" then
      said = said:gsub("\\n", "\n"):gsub('\\"', "'"):gsub("\\.", ""):gsub("%%[-+ #%d.*lz]*%a", "N")
    end
    if piece.kind == "string" and is_test then
      said = "" -- strings of tests and benches are programs
    elseif piece.kind == "long" then
      local field = before:match "([%w_]+) = $"
      if is_test or not field or not PROSE:find(" " .. field .. " ", 1, true) then said = "" end
    end
    if belongs_to(piece, last, source, is_lua) then
      text = text .. (kind == "line" and "\n" or "") .. said
    else
      flush()
      text, kind, first = said, piece.kind, number
    end
    last = piece
  end
  flush()
end

-- ---------------------------------------------------------------- the files

for _, path in ipairs(arg) do
  local file <close> = assert(io.open(path))
  local source = file:read "a"
  if path:find "%.md$" then
    local lines = {}
    for line in source:gmatch "([^\n]*)\n?" do lines[#lines + 1] = line end
    markdown(path, lines)
  else
    source_code(path, source)
  end
end
os.exit(found == 0)
