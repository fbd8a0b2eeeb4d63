-- What the README shows works: its program prints what stands beside it, the files that it names are there.
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
    lu.assertStrContains(README, "| `" .. name .. "` |")
  end
  listing:close()
end

unchecked(TestReadme, "it is the program without its wait", "test_the_line_that_matters_matters")

os.exit(lu.LuaUnit.run())
