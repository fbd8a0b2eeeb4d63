-- What claims_random.lua and claims_devices.lua do: each program under several choosers, once with the checker.
local lu = require "luaunit"
local mr = require "millrace"
local programs = require "lua.support.random_programs"

local COUNT = tonumber(os.getenv("MR_CLAIMS_PROGRAMS")) or 300
local FIRST = tonumber(os.getenv("MR_CLAIMS_FIRST")) or 1
local SHOW = os.getenv("MR_CLAIMS_SHOW")
local CHOOSERS = { "timed", "adversarial" }
for seed = 1, tonumber(os.getenv("MR_CLAIMS_SEEDS")) or 8 do CHOOSERS[#CHOOSERS + 1] = "random:" .. seed end

local tally = { claimed = 0, several = 0, by_row = {}, errors = {} }

-- -> the result of the program, with `checked` whether the verdict claims anything of other schedules, its answers
local function run(program, chooser, checked)
  mr.machine.chooser(chooser)
  local result, w, claims
  if checked then -- in a coroutine, since no report needs the variables of this file
    local reports, totals = coroutine.wrap(function()
      return mr.hazard.check(function() result, w = programs.run(program) end)
    end)()
    claims = #reports == 0 and totals.claim ~= "none"
    -- Copies of pageable memory wait here under each chooser, and the collector does not run by itself: the program
    -- keeps all conditions but those that it says it breaks.
    for row, times in pairs(w.broken) do if totals[row] >= times then claims = false end end
    for key, count in pairs(totals) do
      if math.type(count) == "integer" and count > 0 then tally.by_row[key] = (tally.by_row[key] or 0) + 1 end
    end
    for _, err in ipairs(w.errors) do
      local kind = err:match("^[%w_ ]+") .. " failed"
      tally.errors[kind] = (tally.errors[kind] or 0) + 1
    end
  else
    result, w = programs.run(program)
  end
  programs.clean()
  return result, claims, w.said
end

-- The first chooser whose result is another one, although the first run's verdict has claimed; else nil.
local function broken(program)
  local first, claims, said = run(program, CHOOSERS[1], true)
  local differs
  for i = 2, #CHOOSERS do -- a claim is about those schedules under which queries answer the same
    local result, _, answers = run(program, CHOOSERS[i])
    if result ~= first and answers == said then differs = CHOOSERS[i] break end
  end
  return differs and claims and differs, claims, differs
end

local function show()
  print(("%d programs: %d with a claim, %d with several results"):format(COUNT, tally.claimed, tally.several))
  for _, counts in ipairs { tally.by_row, tally.errors } do
    local names = {}
    for name in pairs(counts) do names[#names + 1] = name end
    table.sort(names, function(a, b) return counts[a] > counts[b] end)
    for _, name in ipairs(names) do print(("%7d %s"):format(counts[name], (name:gsub("\n", " ")))) end
  end
end

return function(name)
  local found = {}
  collectgarbage("stop")
  for seed = FIRST, FIRST + COUNT - 1 do
    local program = programs.make(seed)
    local by, claims, differs = broken(program)
    if claims then tally.claimed = tally.claimed + 1 end
    if differs then tally.several = tally.several + 1 end
    if by then
      found[#found + 1] = ("program %d, %s:\n%s"):format(seed, by,
        programs.describe(programs.smallest(program, broken)))
      if SHOW then print(found[#found]) end
    end
    collectgarbage()
  end
  mr.machine.chooser("timed")
  collectgarbage("restart")
  if SHOW then show() end
  TestClaims = {
    ["test_two_results_and_a_claim_never_meet_in_" .. name:gsub(" ", "_")] = function()
      lu.assertEquals(#found, 0, found[1])
      lu.assertTrue(tally.claimed > COUNT // 20 and tally.several > COUNT // 20, tally.claimed .. " " .. tally.several)
    end,
  }
  os.exit(lu.LuaUnit.run())
end
