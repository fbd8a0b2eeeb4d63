-- scripts/sentences.lua finds sentences that are hard to read, in pages, comments and texts of the program. `make lint`
-- runs it on this tree.
-- not replayed: it runs a script of the developers'
local lu = require "luaunit"

TestSentences = {}

local LONG = ("word "):rep(31):sub(1, -2)
local SHORT = ("word "):rep(30):sub(1, -2)

-- The output for a file with this text; "": nothing was found.
local function said(name, text)
  local root = os.tmpname()
  os.remove(root)
  os.execute(("mkdir -p '%s/%s'"):format(root, name:match "^(.*)/" or "."))
  local path = root .. "/" .. name
  local file <close> = assert(io.open(path, "w"))
  file:write(text)
  file:flush()
  local pipe <close> = io.popen(("lua5.4 scripts/sentences.lua '%s'"):format(path))
  local output = pipe:read "a"
  os.execute(("rm -r '%s'"):format(root))
  return (output:gsub(root:gsub("%p", "%%%0") .. "/", ""))
end

local function finds(name, text, reason)
  lu.assertStrContains(said(name, text), reason)
end

local function accepts(name, text) lu.assertEquals(said(name, text), "") end

function TestSentences.test_only_a_full_stop_ends_a_sentence()
  for _, mark in ipairs { ":", ";", ",", " ...", " e.g." } do
    finds("a.md", SHORT .. mark .. " word.\n", " words: ")
  end
  for _, mark in ipairs { ".", "?", "!", ".)", "..." } do
    accepts("a.md", SHORT .. mark .. " Word.\n")
  end
end

function TestSentences.test_code_is_one_word()
  accepts("a.md", "`" .. LONG .. "` is ``" .. LONG .. "`x` ``.\n")
end

function TestSentences.test_items_cells_and_paragraphs_end_a_sentence()
  accepts("a.md", ("%s\n\n%s\n\n- %s\n- %s\n1. %s\n\n| %s | `a\\|b` |\n"):gsub("%%s", SHORT))
  finds("a.md", "- " .. SHORT .. "\n  word\n", "a.md:1: 31 words")
  finds("a.md", "\n\n| word | " .. LONG .. " |\n", "a.md:3: 31 words")
end

function TestSentences.test_comments()
  finds("a.c", "int x; /* " .. LONG .. " */\n", "a.c:1: 31 words")
  finds("a.c", "/* " .. SHORT .. "\n * word */\n", "a.c:1: 31 words")
  finds("a.cu", "// " .. SHORT .. "\n// word\n", "a.cu:1: 31 words")
  finds("a.lua", "-- " .. SHORT .. "\n-- word\n", "a.lua:1: 31 words")
  finds("a.lua", "local x = 1 -- " .. LONG .. "\n", "a.lua:1: 31 words")
  accepts("a.c", "int x; /* " .. SHORT .. " */\nint y; /* " .. SHORT .. " */\n")
  accepts("a.c", "/* " .. SHORT .. "\n *\n * " .. SHORT .. "\n *     " .. LONG .. "\n */\n")
end

function TestSentences.test_texts_of_the_program()
  finds("a.c", '\n"' .. SHORT .. '"\n    " %s word";\n', "a.c:2: 32 words")
  finds("a.lua", 'f("' .. SHORT .. '" ..\n  " word")\n', "31 words")
  finds("a.lua", "return { explanation = [[\n" .. SHORT .. "\nword]] }\n", "31 words")
  accepts("a.lua", "return { program = [[\n" .. LONG .. "]] }\n")
  accepts("tests/a.c", '"' .. LONG .. '";\n') -- a program
  accepts("a.lua", "--- mr.f(x: tensor, " .. SHORT .. ",\n---   y: tensor) -> z: tensor\n--- " .. SHORT .. "\n")
end

function TestSentences.test_beginnings()
  finds("a.md", "A. Of a tile most rows are empty.\n", 'begins with "Of"')
  finds("a.c", "/* What it waited for is reported. */\n", 'a clause "what ..." as subject')
  finds("a.c", "/* What the rows are about. */\n", 'a clause "what ..." as subject')
  accepts("a.md", "What is this? Often it is (what it was).\n")
  accepts("a.md", "What a call borrows\n")
end

function TestSentences.test_verbs_before_their_subjects()
  for _, beginning in ipairs { "So does", "So is", "Nor is", "Neither has" } do
    local sentence = "A file counts. " .. beginning .. " a stream.\n"
    finds("a.md", sentence, "a.md:1: begins with its verb: " .. beginning)
    finds("a.md", "| a | " .. sentence:sub(1, -2) .. " |\n", "begins with its verb")
    finds("a.c", "/* " .. sentence .. " */\n", "begins with its verb")
    finds("a.lua", "-- " .. sentence, "begins with its verb")
    finds("a.lua", ("local x = %q\n"):format(sentence:sub(1, -2)), "begins with its verb") -- a message
    finds("tests/a.lua", "-- " .. sentence, "begins with its verb")
  end
  accepts("a.md", "So a stream counts. Neither call waits. Nor\n")
end

-- In all files, and also in texts of the program.
local function finds_everywhere(sentence, reason)
  finds("a.md", "A word. " .. sentence .. "\n", "a.md:1: " .. reason)
  finds("a.c", "/* " .. sentence .. " */\n", "a.c:1: " .. reason)
  finds("a.c", '"' .. sentence .. '";\n', "a.c:1: " .. reason)
  finds("tests/a.lua", "-- " .. sentence .. "\n", "tests/a.lua:1: " .. reason)
end

function TestSentences.test_verbs_before_their_subjects_in_a_second_half()
  for _, joint in ipairs { "and so does", "but so has", "; so are", ", nor is", "and nor has", "and neither do" } do
    finds_everywhere("A file counts" .. (joint:find "^%a" and ", " or "") .. joint .. " a stream.",
      "a half begins with its verb")
  end
  for _, sentence in ipairs { "It is slow, so do not use it.", "Two files: neither is open.",
                              "It counts, so streams do.", "It waits, and also if so." } do
    accepts("tests/a.lua", "-- " .. sentence .. "\n")
  end
end

function TestSentences.test_places_before_verbs()
  for _, verb in ipairs { "comes", "stands", "lies", "come" } do
    finds_everywhere("Behind the two streams " .. verb .. " a record.", "the place first and the subject last")
  end
  for _, sentence in ipairs { "Behind it, a record comes.", "A record comes behind it.",
                              "Behind what comes there is a wait.",
                              "In a file that comes a bit late, rows are lost.", "At the end it stands alone." } do
    accepts("a.md", sentence .. "\n")
  end
end

function TestSentences.test_clauses_of_which()
  finds_everywhere("Two streams, of which one waits.", 'a clause "of which"')
  for _, part in ipairs { "each", "none", "some", "all" } do
    finds_everywhere("Two streams, " .. part .. " of which wait.", 'a clause "of which"')
  end
  accepts("a.md", "It says which line of which file it was.\n")
end

function TestSentences.test_negations_of_negations()
  for _, sentence in ipairs { "Nothing that is not free is used.", "No file which does not exist is read.",
                              "Here is none that has not run.", "Nobody who was not asked waits." } do
    finds_everywhere(sentence, "a negation of a negation")
  end
  accepts("a.md", "Nothing is not free. A file that is not open is read.\n")
end

function TestSentences.test_at_most_three_clauses_hang_on_words()
  local three = "It is the file that says which line it is, and what was read"
  accepts("a.md", three .. ".\n")
  finds_everywhere(three .. " where.", '4 words such as "that" and "what"')
end

function TestSentences.test_clauses_as_subjects()
  for _, subject in ipairs { "a GPU waits", "it waits", "the order is kept" } do
    finds_everywhere("That " .. subject .. " is not guaranteed.", 'a clause "that ..." as subject')
  end
  finds_everywhere("To be called before the end.", 'begins with "To be ...ed"')
  accepts("a.md", "That event is kept. That is all. To be sure, it waits. To begin, call it.\n")
end

function TestSentences.test_else_at_the_beginning()
  finds_everywhere("Else it is empty.", 'begins with "Else"')
  accepts("a.md", "Elsewhere it is empty, or else full.\n")
end

os.exit(lu.LuaUnit.run())
