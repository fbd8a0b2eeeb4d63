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

local function in_page(word)
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
  local kinds = page:match("\n## Kinds\n(.-)\n## Reasons\n")
  for name in kinds:gmatch("\n### ([^\n]+)") do lu.assertTrue(known[name], name) end
end

os.exit(lu.LuaUnit.run())
