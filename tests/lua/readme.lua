-- The README is right: its program prints what stands beside it, and the files that it names are there. Its table of
-- folders is that of src, and every page can be found from it.
local lu = require "luaunit"
local unchecked = require "lua.support.unchecked"

local function read(path)
  local file = assert(io.open(path))
  local text = file:read("a")
  file:close()
  return text
end

local README = read("README.md")

TestReadme = {}

function TestReadme.test_the_ten_lines_print_what_they_say()
  local program = assert(README:match("```lua\n(.-)```"))
  local expected, printed = {}, {}
  for text in program:gmatch("%-%->%s*([^\n]*)") do expected[#expected + 1] = text end
  lu.assertTrue(#expected > 0)
  local env = setmetatable({ print = function(x) printed[#printed + 1] = tostring(x) end }, { __index = _G })
  assert(load(program, "=README", "t", env))()
  lu.assertEquals(printed, expected)
end

function TestReadme.test_the_line_that_matters_matters()
  local program = README:match("```lua\n(.-)```")
  local lines = select(2, program:gsub("\n", "\n"))
  lu.assertEquals(lines, 10)
  local without, found = program:gsub("consumer:wait_event%(done%)", "")
  lu.assertEquals(found, 1)
  local printed
  local env = setmetatable({ print = function(x) printed = tostring(x) end }, { __index = _G })
  assert(load(without, "=README", "t", env))()
  lu.assertEquals(printed, "0.0")
end

function TestReadme.test_the_files_that_it_names_are_there()
  for path in README:gmatch("%./(scripts/[%w_/%.]+)") do assert(io.open(path)):close() end
  for path in README:gmatch("%]%(([%w_/%.]+)%)") do assert(io.open(path)):close() end
end

function TestReadme.test_every_example_is_in_the_table()
  local listing = assert(io.popen("ls scripts/examples/*.lua"))
  for path in listing:lines() do
    local name = path:match("([^/]+)%.lua$")
    lu.assertStrContains(read("docs/examples.md"), "| `" .. name .. "` |")
  end
  listing:close()
end

-- One row for each folder of src, and each row a folder; docs/design.md names the same folders, each with its floor.
function TestReadme.test_the_table_of_folders_is_that_of_src()
  local there, design = {}, read("docs/design.md")
  local listing = assert(io.popen("ls -d src/*/"))
  for folder in listing:lines() do
    there[folder] = true
    lu.assertStrContains(README, "| `" .. folder .. "` |")
    lu.assertStrMatches(design, ".*\n    %d " .. folder .. " .*")
  end
  listing:close()
  for folder in README:gmatch("\n| `(src/[^`]*)` |") do lu.assertTrue(there[folder], folder) end
  for folder in design:gmatch("\n    %d (src/%a+/)") do lu.assertTrue(there[folder], folder) end
end

-- The script that checks includes allows none of a folder that is not on a lower floor.
function TestReadme.test_folders_include_lower_floors_only()
  local floor, count = {}, 0
  for number, folder in read("docs/design.md"):gmatch("\n    (%d) src/(%a+)/") do floor[folder] = tonumber(number) end
  local lists = read("scripts/layers.lua"):match("^(.-\n})\n\n%-%- Types only")
  for room, list in pairs(load(lists .. "\nreturn may_include")()) do
    for _, below in ipairs(list) do
      local folder, lower = room:match("^%a+"), below:match("^%a+")
      count = count + 1
      lu.assertTrue(folder == lower or floor[lower] < floor[folder], room .. " may include " .. below)
    end
  end
  lu.assertTrue(count > 100)
end

-- Each page can be found from the README, at once or over another page.
function TestReadme.test_every_page_is_linked()
  local reached, todo = {}, { "README.md" }
  for _, page in ipairs(todo) do -- grows
    local folder = page:match("^(.*/)") or ""
    for target in read(page):gmatch("%]%(([%w_/%.]+%.md)") do
      local path = target:match("^%.%./(.*)") or folder .. target
      if not reached[path] then reached[path], todo[#todo + 1] = true, path end
    end
  end
  local listing = assert(io.popen("ls docs/*.md"))
  for page in listing:lines() do lu.assertTrue(reached[page], page) end
  listing:close()
end

-- Each file that docs/design.md names is there.
function TestReadme.test_the_files_of_the_design_are_there()
  local there = {}
  local listing = assert(io.popen("find src lua tests scripts docs -type f"))
  for path in listing:lines() do there[path], there[path:match("[^/]+$")] = true, true end
  listing:close()
  there["lua.h"] = true
  for name in read("docs/design.md"):gmatch("[%w_/]+%.[chlm][uda]*%f[%W]") do
    lu.assertTrue(there[name] or there[name:match("[^/]+$")] or false, name)
  end
end

function TestReadme.test_lengths()
  local function lines(path) return select(2, read(path):gsub("\n", "")) end
  lu.assertTrue(lines("README.md") <= 200)
  lu.assertTrue(lines("docs/design.md") <= 300)
end

unchecked(TestReadme, "it is the program without its wait", "test_the_line_that_matters_matters")

os.exit(lu.LuaUnit.run())
