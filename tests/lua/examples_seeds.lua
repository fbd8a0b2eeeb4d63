-- virtual only: choosers
-- The examples' programs under every kind of chooser. The racy ones give a wrong value under the adversarial one, and
-- the fixed ones give the right value under each of 200 seeds (1,000 in `make check-long`).
-- options: --device virtual:3
-- timeout: 120
-- not checked: it runs the racy examples
local lu = require "luaunit"
local mr = require "millrace"

local SEEDS, SIZE = os.getenv("MILLRACE_LONG") and 1000 or os.getenv("MILLRACE_SHORT") and 100 or 200, 48

if not mr.machine then
  print("choosers are the virtual GPU's")
  os.exit(77)
end

-- An example with something to try returns {fixed=, racy=}: functions of a size that return the result and the right
-- result. Another test checks the output.
local function load_examples()
  local examples, names = {}, {}
  local quiet = setmetatable({ print = function() end }, { __index = _G })
  local listing = assert(io.popen("ls scripts/examples/*.lua"))
  for path in listing:lines() do
    local source = assert(io.open(path)):read("a")
    if source:find("-- for the tests", 1, true) then
      local name = path:match("([^/]+)%.lua$")
      names[#names + 1] = name
      examples[name] = assert(loadfile(path, "t", quiet))()
    end
  end
  listing:close()
  return examples, names
end

local examples, names = load_examples()

local function right(program)
  local got, expected = program(SIZE)
  lu.assertIsNumber(expected)
  return math.abs(got - expected) <= 1e-4 * math.max(1, math.abs(expected)), got, expected
end

TestExamples = {}

function TestExamples.tearDown() mr.machine.chooser("timed") end

function TestExamples.test_all_were_found()
  local racy = 0
  for _, name in ipairs(names) do
    lu.assertIsFunction(examples[name].fixed, name)
    if examples[name].racy then racy = racy + 1 end
  end
  lu.assertTrue(#names >= 12, "examples: " .. #names)
  lu.assertTrue(racy >= 9, "racy examples: " .. racy)
end

function TestExamples.test_racy_ones_show_it_under_the_adversarial_chooser()
  mr.machine.chooser("adversarial")
  for _, name in ipairs(names) do
    local racy = examples[name].racy
    if racy then
      local ok, got = right(racy)
      lu.assertFalse(ok, ("%s: the racy program gave the right value, %s"):format(name, got))
    end
  end
end

-- The collector frees the tensors of earlier rounds at moments of its own. What it frees may not hide a race.
function TestExamples.test_racy_ones_show_it_whenever_the_collector_runs()
  mr.machine.chooser("adversarial")
  for _, name in ipairs(names) do
    for instructions = 1, examples[name].racy and 60 or 0 do
      for _ = 1, 3 do pcall(examples[name].racy, SIZE) end -- garbage of the same sizes
      local calls = 0
      debug.sethook(function()
        calls = calls + 1
        if calls == 1 then collectgarbage() end
      end, "", 3 * instructions)
      local ok, got = right(examples[name].racy)
      debug.sethook()
      lu.assertFalse(ok, ("%s, a collection after %d instructions: the racy program gave the right value, %s")
        :format(name, 3 * instructions, got))
    end
  end
end

function TestExamples.test_fixed_ones_are_right_under_the_adversarial_chooser()
  mr.machine.chooser("adversarial")
  for _, name in ipairs(names) do
    local ok, got, expected = right(examples[name].fixed)
    lu.assertTrue(ok, ("%s: got %s, right is %s"):format(name, got, expected))
  end
end

function TestExamples.test_fixed_ones_are_right_under_every_seed()
  for seed = 1, SEEDS do
    mr.machine.chooser("random:" .. seed)
    for _, name in ipairs(names) do
      local ok, got, expected = right(examples[name].fixed)
      lu.assertTrue(ok, ("%s, random:%d: got %s, right is %s"):format(name, seed, got, expected))
    end
  end
end

os.exit(lu.LuaUnit.run())
