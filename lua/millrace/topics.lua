-- Topics of help: what the pages of docs/ and the examples say about a rule ("R13"), an example ("fan_out"), or a word
-- ("overlap"). The pages are in the binary.
--
-- The module is a function of the tools that bind/module/topics.c hands to it: embedded(name), a text or nil; names(),
-- of all that is in the binary; and wrap (bind/wrap.h). It returns page(topic, width), the text to print or nil, and
-- known(), the names that have a page. It also returns same_name(name), a line about a page that has the name of
-- something else, and uses(), how often the examples have each name.

-- Pages to search for topics.
local PAGES = { "semantics", "hazards", "prompt", "stepping", "kernels", "graphs", "tensors", "autograd", "nn", "waits",
  "timelines", "explorer", "tasks", "design" }
-- Words that the pages spell in another way.
local SPELLINGS = { optimizer = "optimiser", optimizers = "optimisers" }
local MOST_PASSAGES, MOST_PLACES = 4, 8

-- ---------------------------------------------------------------- text of a page as text of a terminal

local break_words -- tools.wrap

local function plain(text)
  return (text:gsub("%*%*(.-)%*%*", "%1"):gsub("%[([^%]]+)%]%([^%)]+%)", "%1"))
end

local function length_of(text) return utf8.len(text) or #text end

-- Adds the lines of a paragraph behind `first`; `rest` blanks stand in front of the further lines.
local function wrap(text, width, first, rest, out)
  local blanks = length_of(first)
  local lines = break_words(text:gsub("%s+", " "):match("^ ?(.-) ?$"), width, blanks, rest)
  for line in (first .. lines:sub(blanks + 1)):gmatch("[^\n]*") do out[#out + 1] = line end
end

-- The cells of "| a | b |"; a bar after a backslash is text.
local function cells_of(row)
  local cells = {}
  for cell in row:gsub("\\|", "\0"):gsub("^|", ""):gmatch("([^|]*)|") do
    cells[#cells + 1] = plain(cell:gsub("\0", "|"):match("^%s*(.-)%s*$"))
  end
  return cells
end

-- How wide each column is with its longest cell, and with its longest word.
local function natural_widths(rows)
  local widths, least = {}, {}
  for _, row in ipairs(rows) do
    for k, cell in ipairs(row) do
      widths[k] = math.max(widths[k] or 0, length_of(cell))
      for word in cell:gmatch "%S+" do least[k] = math.max(least[k] or 0, length_of(word)) end
    end
  end
  return widths, least
end

-- The widest columns give way until the table fits, but no word is broken.
local function column_widths(rows, width)
  local widths, least = natural_widths(rows)
  local total = -2
  for _, one in ipairs(widths) do total = total + one + 2 end
  while total > width do
    local widest
    for k, one in ipairs(widths) do
      if one > (least[k] or 0) and not (widest and one <= widths[widest]) then widest = k end
    end
    if not widest then break end
    widths[widest], total = widths[widest] - 1, total - 1
  end
  return widths
end

-- A row of a table: each cell wrapped within its column.
local function add_row(row, widths, out)
  local columns, height = {}, 1
  for k, cell in ipairs(row) do
    columns[k] = {}
    wrap(cell, widths[k], "", 0, columns[k])
    height = math.max(height, #columns[k])
  end
  for i = 1, height do
    local line = {}
    for k, column in ipairs(columns) do
      local text = column[i] or ""
      line[k] = text .. (" "):rep(widths[k] - length_of(text))
    end
    out[#out + 1] = (table.concat(line, "  "):gsub("%s+$", ""))
  end
end

-- Where there is no room for the columns, each row is a paragraph.
local function add_paragraphs(rows, width, out)
  for i, row in ipairs(rows) do
    wrap(row[1], width, "", 4, out)
    for k = 2, #row do
      if row[k] ~= "" then wrap(row[k], width, "    ", 4, out) end
    end
    if i < #rows then out[#out + 1] = "" end
  end
end

-- The rows of a table of Markdown, with a line below its head.
local function add_table(source, width, out)
  local rows, has_head = {}, false
  for _, line in ipairs(source) do
    if line:find("^|[%s:|-]+|%s*$") then has_head = #rows == 1 else rows[#rows + 1] = cells_of(line) end
  end
  local widths, total = column_widths(rows, width), -2
  for _, one in ipairs(widths) do total = total + one + 2 end
  if total > width then
    if has_head then table.remove(rows, 1) end
    return add_paragraphs(rows, width, out)
  end
  for i, row in ipairs(rows) do
    add_row(row, widths, out)
    if i == 1 and has_head then
      local rule = {}
      for k = 1, #row do rule[k] = ("-"):rep(widths[k]) end
      out[#out + 1] = table.concat(rule, "  ")
    end
  end
end

-- Paragraphs, items of lists and tables get the width of the terminal; programs stay as they are.
local function laid_out(text, width)
  local out, paragraph, rows, is_code = {}, nil, nil, false
  local function flush()
    if paragraph then wrap(plain(paragraph.text), width, paragraph.first, paragraph.rest, out) end
    if rows then add_table(rows, width, out) end
    paragraph, rows = nil, nil
  end
  for line in (text .. "\n"):gmatch("(.-)\n") do
    local item = line:match("^%s*%- ") or line:match("^%d+%. ")
    if line:find("^```") then
      flush()
      is_code = not is_code
    elseif not is_code and line:find("^|") then
      if not rows then flush() end
      rows = rows or {}
      rows[#rows + 1] = line
    elseif is_code or line:find("^#") or line:find("^    ") or line == "" then
      flush()
      out[#out + 1] = line:find("^#") and line:gsub("^#+%s*", "") or is_code and "    " .. line or line
    elseif item then
      flush()
      paragraph = { text = line:sub(#item + 1), first = item, rest = #item }
    elseif paragraph then
      paragraph.text = paragraph.text .. " " .. line
    else
      paragraph = { text = line, first = "", rest = 0 }
    end
  end
  flush()
  return table.concat(out, "\n"):gsub("\n+$", "") .. "\n"
end

-- ---------------------------------------------------------------- pages

-- The sections of a page: { { title =, level =, text = with its title, page = }, ... }; those of lower levels are also
-- part of the ones above them.
local function sections_of(page, text)
  local sections, open, is_code = {}, {}, false
  for line in (text .. "\n"):gmatch("(.-)\n") do
    if line:find("^```") then is_code = not is_code end
    local marks, title = line:match("^(#+)%s+(.*)$")
    if marks and not is_code then
      for level = #marks, 6 do open[level] = nil end
      open[#marks] = { title = title, level = #marks, lines = {}, page = page }
      sections[#sections + 1] = open[#marks]
    end
    for level = 1, 6 do
      if open[level] then table.insert(open[level].lines, line) end
    end
  end
  for _, section in ipairs(sections) do section.text = table.concat(section.lines, "\n") end
  return sections
end

return function(tools)
  local topics = {}
  break_words = tools.wrap

  local function first_sentence(name)
    for line in tools.embedded("examples/" .. name .. ".lua"):gmatch("%-%-%s*(.-)\n") do
      if not line:find("^%l+: ") then return line end -- "options: ..." is for the runner of tests
    end
    return ""
  end

  local function example_names()
    local names = {}
    for _, file in ipairs(tools.names()) do
      local name = file:match("^examples/(.*)%.lua$")
      if name then names[#names + 1] = name end
    end
    return names
  end

  local function examples(width)
    local names, longest, out = example_names(), 0, {}
    for _, name in ipairs(names) do longest = math.max(longest, #name) end
    out[1] = 'The examples; help("fan_out") shows the text of one.'
    for _, name in ipairs(names) do
      wrap(first_sentence(name), width, "  " .. name .. (" "):rep(longest + 2 - #name), longest + 4, out)
    end
    return table.concat(out, "\n") .. "\n"
  end

  -- The paragraph that begins with "**R13 ", and its further parts.
  local function rule(name, width)
    local text = tools.embedded("docs/semantics.md")
    local from = text:find("**" .. name .. " ", 1, true)
    if not from then return nil end
    local stop = math.min(text:find("\n%*%*R%d", from + 1) or #text, text:find("\n#", from, true) or #text)
    return laid_out(text:sub(from, stop), width)
  end

  local function all_sections()
    local sections = {}
    for _, page in ipairs(PAGES) do
      local text = tools.embedded("docs/" .. page .. ".md")
      for _, section in ipairs(text and sections_of(page, text) or {}) do sections[#sections + 1] = section end
    end
    return sections
  end

  -- The rows of a table in which the word stands.
  local function rows_with(word, paragraph)
    local rows = {}
    for row in paragraph:gmatch("[^\n]+") do
      if row:lower():find("%f[%w]" .. word) then rows[#rows + 1] = row end
    end
    return table.concat(rows, "\n")
  end

  -- The paragraphs of a text. One that ends with a colon has the table or list after it.
  local function paragraphs_of(text)
    local list = {}
    for paragraph in (text .. "\n\n"):gmatch("(.-)\n\n+") do
      local before = list[#list]
      local belongs = before and before:find(":$") and not before:find("^#") and
        (paragraph:find("^|") or paragraph:find("^%- ") or paragraph:find("^1%. "))
      if belongs then list[#list] = before .. "\n" .. paragraph else list[#list + 1] = paragraph end
    end
    return list
  end

  -- The paragraphs in which the word stands, of the sections that are in no other one.
  local function passages(word, sections, width)
    local out, others = {}, {}
    for _, section in ipairs(sections) do
      for _, paragraph in ipairs(section.level > 1 and paragraphs_of(section.text) or {}) do
        if paragraph:find("^|") then paragraph = rows_with(word, paragraph) end
        local is_text = not paragraph:find("^#") and not paragraph:find("^```") and not paragraph:find("^    ")
        if is_text and paragraph:lower():find("%f[%w]" .. word) then
          local place = ("docs/%s.md, %s"):format(section.page, section.title)
          if #out < MOST_PASSAGES and not out[paragraph] then
            out[paragraph] = true
            out[#out + 1] = place .. ":\n" .. laid_out(paragraph, width)
          elseif not out[paragraph] and not others[place] then
            others[place] = true
            others[#others + 1] = "  " .. place
          end
        end
      end
    end
    local left_out = #others - MOST_PLACES
    if left_out > 1 then
      others[MOST_PLACES + 1] = ("  and %d more sections"):format(left_out)
      others[MOST_PLACES + 2] = nil
    end
    if #others > 0 then
      out[#out + 1] = "Also in:\n" .. table.concat(others, "\n", 1, math.min(#others, MOST_PLACES + 1)) .. "\n"
    end
    return #out > 0 and table.concat(out, "\n") or nil
  end

  local function titled(sections, pattern)
    for _, section in ipairs(sections) do
      if section.title:lower():find(pattern) then return section end
    end
    return nil
  end

  -- Advice on what to write instead of a name or a word of PyTorch or CUDA; nil: it is not one. `owner`: see advice_of.
  local function foreign(topic, owner, width)
    local advice, out = tools.advice_of(owner)[topic] or tools.advice_of "word"[topic:lower()], {}
    if not advice then return nil end
    wrap(("`%s`: %s"):format(topic, advice), width, "", 2, out)
    out[#out + 1] = 'help("from_pytorch") has more names.'
    return table.concat(out, "\n") .. "\n"
  end

  -- The text about a topic; nil: there is none.
  function topics.page(topic, width)
    if topic:find("^R%d+$") then return rule(topic, width) end
    if topic == "examples" then return examples(width) end
    local example = tools.embedded("examples/" .. topic .. ".lua")
    if example then return example end
    local page = tools.embedded("docs/" .. topic:gsub("%.md$", "") .. ".md")
    if page then return laid_out(page, width) end
    -- Words are also titles; `cudaMalloc` and `init_process_group` are not.
    local known = foreign(topic, not topic:find "[%u_]" and "word" or nil, width)
    if known then return known end
    local lower = topic:lower()
    lower = SPELLINGS[lower] or lower
    local word = lower:gsub("%W", "%%%0")
    if #topic < 3 then return nil end
    local sections = all_sections()
    local section = titled(sections, "^" .. word .. "$") or titled(sections, "%f[%w]" .. word)
    return section and laid_out(section.text, width) or foreign(topic, nil, width) or passages(word, sections, width)
  end

  -- The page of that name, for a user who has asked for a function with the same name.
  function topics.same_name(name)
    return tools.embedded("docs/" .. name .. ".md") and
      ('docs/%s.md is about this, too: help("%s.md")\n'):format(name, name) or nil
  end

  -- The topics of help, besides functions.
  function topics.known()
    local names = example_names()
    names[#names + 1] = "examples"
    for rule_name in tools.embedded("docs/semantics.md"):gmatch("%*%*(R%d+) ") do names[#names + 1] = rule_name end
    for _, page in ipairs(PAGES) do
      if tools.embedded("docs/" .. page .. ".md") then names[#names + 1] = page end
    end
    return names
  end

  -- name = how often it stands in the examples: of a method without an object in front of it; "mr.zeros" likewise.
  function topics.uses()
    local counts = {}
    for _, name in ipairs(example_names()) do
      local text = tools.embedded("examples/" .. name .. ".lua")
      for _, pattern in ipairs{ "[%a_][%w_]*", "%f[%w_]mr%.[%a_][%w_%.]*" } do
        for word in text:gmatch(pattern) do counts[word] = (counts[word] or 0) + 1 end
      end
    end
    return counts
  end

  return topics
end
