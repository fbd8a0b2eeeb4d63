-- What the words of the hazard checker mean stands in the sources, for help(); docs/hazards.md says the same, word
-- for word: reasons and advice in tables, kinds of hazards as the first paragraph under their heading.
local lu = require "luaunit"
local mr = require "millrace"

local page
do
  local file = assert(io.open("docs/hazards.md"))
  page = file:read("a")
  file:close()
end

-- Rows of the verdict's own tables: what limits it (hazard/claims.h).
local function is_claim(word) return word.kind == "limit" or word.kind == "condition" end

local verdict = page:match("\n## What a run without a report proves\n(.-)\n## ")

local function in_page(word)
  if is_claim(word) then
    local heading = word.kind == "limit" and "\n| count | the line |\n" or "\n| count | the sentence |\n"
    local rows = verdict:match(heading .. "(.-)\n\n")
    return ("\n" .. rows .. "\n"):match("\n| `" .. word.name .. "` | ([^\n]*) |\n")
  end
  if word.kind == "kind" then
    local paragraph = page:match("\n### " .. word.name:gsub("%-", "%%-") .. "\n\n(.-)\n\n")
    return paragraph and paragraph:gsub("\n", " ")
  end
  return page:match("\n| `" .. word.name:gsub("%-", "%%-") .. "` | ([^\n]*) |\n")
end

TestWords = {}

function TestWords.test_the_page_says_the_same()
  local _, _, words = mr.docs()
  local seen = {}
  for _, word in ipairs(words) do
    lu.assertEquals(in_page(word), word.text)
    lu.assertNil(seen[word.name])
    seen[word.name] = word.kind
  end
  lu.assertEquals({ seen["no-path"], seen["write-after-read"], seen["redundant-wait"] }, { "reason", "kind", "advice" })
end

-- Each row of the two tables, and each heading of a kind, is a word of the sources.
function TestWords.test_the_page_has_no_other_words()
  local _, _, words = mr.docs()
  local known = {}
  for _, word in ipairs(words) do known[word.name] = true end
  local tables = page:match("\n## Reasons\n(.-)\n## Asking\n")
  for name in tables:gmatch("\n| `([%l-]+)` |") do lu.assertTrue(known[name], name) end
  local rows = 0
  local others = { claim = true, conditional = true, none = true } -- what is claimed at all
  for name in verdict:gmatch("\n| `([%l_]+)` |") do
    lu.assertNotNil(known[name] or others[name], name)
    rows = rows + 1
  end
  local claims = 3
  for _, word in ipairs(words) do if is_claim(word) then claims = claims + 1 end end
  lu.assertEquals(rows, claims)
  local kinds = page:match("\n## Kinds\n(.-)\n## Reasons\n")
  for name in kinds:gmatch("\n### ([^\n]+)") do lu.assertTrue(known[name], name) end
end

os.exit(lu.LuaUnit.run())
