-- Random SPMD programs (lua/support/random_spmd.lua): the same bytes under mr.dist.spawn with all choosers, under
-- --ranks, and in a script that has the tensors of all ranks and no streams. The checker finds nothing in them. In
-- programs that lack waits it finds what a simple judge finds, which follows each rank's host by itself.
--
-- MR_DIST_PROGRAMS sets how many (60; 1000 in `make check-long`), MR_DIST_SEED the first seed.
-- options: --device virtual:4
-- virtual only: four devices
-- not checked: half of its programs race
-- not replayed: choosers are switched in the middle
local mr = require "millrace"
local T = require "millrace.testing"
local spmd = require "lua.support.random_spmd"

T.rule("dist_random")

local HOST = assert(os.getenv("MILLRACE"), "MILLRACE must hold the path of the host")
local COUNT = tonumber(os.getenv("MR_DIST_PROGRAMS")) or (os.getenv("MILLRACE_LONG") and 1000 or 60)
local FIRST = tonumber(os.getenv("MR_DIST_SEED")) or 1
local CHOOSERS = { "timed", "random:1", "random:2", "adversarial", "manual" }

local function run_alone(p) return assert(load(p.alone, "=alone.lua"))() end

local function same(came, expected, label)
  for r, text in ipairs(expected) do
    T.check(came[r] == text, ("%s, rank %d:\n%s\nexpected\n%s"):format(label, r - 1, came[r], text))
  end
end

-- ---------------------------------------------------------------- values

for seed = FIRST, FIRST + COUNT - 1 do
  local p = spmd.make(seed)
  T.check(p.count == 0, ("seed %d: the judge finds hazards in its own program"):format(seed))
  local expected, fn = run_alone(p), assert(load(p.text, "=spmd.lua"))
  for _, chooser in ipairs(CHOOSERS) do
    mr.machine.chooser(chooser)
    same(mr.dist.spawn(p.ranks, fn), expected, ("seed %d, %s"):format(seed, chooser))
  end
  mr.machine.chooser "timed"
  local reports = mr.hazard.check(function() mr.dist.spawn(p.ranks, fn) end)
  T.check(#reports == 0, #reports > 0 and ("seed %d: %s"):format(seed, reports[1].message))
end

-- ---------------------------------------------------------------- hazards

-- The reports leave out what the fix of an earlier one orders, too: each is one of the judge's, and the first of each
-- rank's is there.
local racy, found = 0, 0
for seed = FIRST, FIRST + 3 * COUNT - 1 do
  local p = spmd.make(seed, {races = true})
  local fn, lines = assert(load(p.text, "=spmd.lua")), {}
  local reports = mr.hazard.check(function() mr.dist.spawn(p.ranks, fn) end)
  for _, report in ipairs(reports) do
    local line = report.second.where:match "^spmd%.lua:(%d+)$"
    lines[tonumber(line) or 0] = true
    for _, tensor in ipairs(report.tensors) do
      T.check(line and p.hazards[line .. " " .. tensor], ("seed %d: %s"):format(seed, report.message))
    end
  end
  for r, line in pairs(p.first) do
    T.check(lines[line], ("seed %d: no report of line %d of rank %d"):format(seed, line, r - 1))
  end
  racy = racy + (p.count > 0 and 1 or 0)
  found = found + #reports
end
T.at_least(racy, COUNT // 2, "programs with hazards")
T.at_least(found, racy, "reports")

-- ---------------------------------------------------------------- whole scripts

local function write(path, text)
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
end

-- Some programs of n ranks in one script, each a function: rank -> its lines of output.
local function run_script(n, seeds, options)
  local path, parts = os.tmpname(), { "local out = {}" }
  for _, seed in ipairs(seeds) do
    local text = spmd.make(seed, {ranks = n}).text
    parts[#parts + 1] = ("out[#out + 1] = (function()\n%s\nend)()"):format(text)
  end
  parts[#parts + 1] = "print('rank ' .. mr.dist.rank() .. '\\n' .. table.concat(out, '\\n'))"
  write(path, table.concat(parts, "\n"))
  local pipe = assert(io.popen(("%s --ranks %d %s %s 2>&1"):format(HOST, n, options, path)))
  local text, ranks, rank = pipe:read "a", {}, nil
  local _, _, status = pipe:close()
  os.remove(path)
  for line in text:gmatch "[^\n]+" do
    local number = line:match "^rank (%d+)$"
    if number then
      rank = {}
      ranks[tonumber(number)] = rank
    elseif rank then
      rank[#rank + 1] = line
    end
  end
  return ranks, status, text
end

for n = 1, 4 do
  local seeds = {}
  for seed = FIRST, FIRST + COUNT // 10 do seeds[#seeds + 1] = seed * 10 + n end
  for _, options in ipairs{ "--check", "--chooser random:3" } do
    local ranks, status, text = run_script(n, seeds, options)
    T.check(status == 0, ("%d ranks %s: %s"):format(n, options, text:sub(1, 2000)))
    for i, seed in ipairs(seeds) do
      for r, expected in ipairs(run_alone(spmd.make(seed, {ranks = n}))) do
        local came = ranks[r - 1][i]
        local label = ("seed %d, %d ranks, %s: rank %d: %s, not %s"):format(seed, n, options, r - 1, came, expected)
        T.check(came == expected, label)
      end
    end
  end
  T.check(true, n .. " ranks")
end
