-- Independent races: each group of them is explored alone, and what they come to is combined, where that is proved.
-- virtual only: schedules are explored on the virtual GPU
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: functions that race
local mr = require "millrace"
local T = require "millrace.testing"

T.rule("explore_apart")

-- Returns `count` tensors of one element. Each is 0.0 in the order of submission and 1.0 else, because of a race of its
-- own. `more` makes the result of them.
local function races(count, more)
  return function()
    local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
    local x = {}
    for i = 1, count do x[i] = mr.zeros(1) end
    mr.synchronize()
    for i = 1, count do
      a:run(function() x[i]:fill_(1) end)
      b:run(function() x[i]:fill_(0) end)
    end
    mr.synchronize()
    if more then return more(x, a, b) end
    return table.unpack(x)
  end
end

local function texts_of(r)
  local texts = {}
  for i, o in ipairs(r.outcomes) do
    local text = o.error or ""
    for k = 1, o.values and o.values.n or 0 do
      local value = o.values[k]
      text = text .. (type(value) == "userdata" and ("%g"):format(value:sum():item()) or tostring(value)) .. " "
    end
    texts[i] = text .. "x" .. o.count
  end
  table.sort(texts)
  return table.concat(texts, ", ")
end

-- The same outcomes as the search of all races together, from as many classes. Returns the result.
local function same_as_full(fn, is_apart, why)
  local r, full = mr.explore(fn), mr.explore(fn, { full = true })
  T.equal(r.combined ~= nil, is_apart, why .. ": apart")
  T.check(r.complete and full.complete, why .. ": complete")
  T.equal(full.combined, nil, why .. ": not with `full`")
  T.equal(texts_of(r), texts_of(full), why .. ": the outcomes")
  T.check(why:find("error", 1, true) or not texts_of(r):find("%.lua:"), why .. ": no error: " .. texts_of(r))
  T.equal(r.combined and r.combined.classes or r.schedules, full.schedules, why .. ": the classes")
  return r
end

-- ---------------------------------------------------------------- all combinations

local r = same_as_full(races(3), true, "three races")
T.equal(r.schedules, 6, "two schedules of each")
T.equal(r.combined.outcomes, 8, "2 * 2 * 2")
T.equal(#r.combined.groups, 3, "groups")
for i, group in ipairs(r.combined.groups) do
  T.equal(("%d %d %d"):format(group.races, group.schedules, group.outcomes), "1 2 2", "group " .. i)
end
for _, o in ipairs(r.outcomes) do
  local values = table.pack(mr.replay(o.schedule, races(3)))
  local turned = 0
  for i = 1, 3 do
    T.equal(values[i]:item(), o.values[i]:item(), "each combination can be replayed")
    turned = turned + values[i]:item()
  end
  T.equal(o.difference[1] and tonumber(o.difference[1]:match("%((%d) times%)") or 1) or 0, turned,
    "and says what is not as submitted: " .. table.concat(o.difference, "; "))
end
T.check(tostring(r):find("6 schedules, 8 outcomes\n  3 races in 3 independent groups: 2 * 2 * 2 = 8 outcomes from 6 "
  .. "schedules\n", 1, true), "it is said: " .. tostring(r))

r = same_as_full(function()
  local s = {}
  for i = 1, 3 do s[i] = mr.stream() end
  local x, y = mr.zeros(1), mr.zeros(1)
  mr.synchronize()
  for i = 1, 3 do s[i]:run(function() x:fill_(i) end) end
  for i = 1, 2 do s[i]:run(function() y:fill_(5) end) end
  mr.synchronize()
  return x, y
end, true, "a race of three, and one that changes nothing")
T.check(tostring(r):find("  4 races in 2 independent groups: 3 * 1 = 3 outcomes from 8 schedules\n", 1, true),
  tostring(r))
T.equal(r.outcomes[1].count, 4, "of the twelve classes")

-- ---------------------------------------------------------------- too many to be listed

r = mr.explore(races(20))
T.check(r.complete and not r.deterministic, "twenty races: complete")
T.equal(r.schedules, 40, "twenty races: schedules")
T.equal(r.combined.outcomes, 1 << 20, "twenty races: outcomes")
T.equal(#r.outcomes, 21, "twenty races: as submitted, and each of them alone")
for _, o in ipairs(r.outcomes) do
  local turned = 0
  for i = 1, 20 do turned = turned + o.values[i]:item() end
  T.equal(turned, #o.difference, "at most one is not as submitted")
  T.equal(o.count, 1, "its classes")
end
T.check(tostring(r):find("40 schedules, 1048576 outcomes\n  20 races in 20 independent groups: 2^20 = 1048576 outcomes "
  .. "from 40 schedules\n", 1, true), "in words: " .. tostring(r))
T.check(tostring(r):find("\n  in each of these at most one group is not as submitted; 13 more of them in field "
  .. "`outcomes`, and all others combine them\n", 1, true), "and what is listed: " .. tostring(r))

r = mr.explore(races(70))
T.equal(r.combined.outcomes, 2.0 ^ 70, "more than an integer has room for")
T.check(tostring(r):find("2^70 = 1.18e+21 outcomes from 140 schedules", 1, true), tostring(r))

-- ---------------------------------------------------------------- races that meet

r = same_as_full(races(2, function(x) return x[1] * x[2] end), false, "a product")
T.equal(#r.outcomes, 2, "a product is 1 only if both are")
same_as_full(races(3, function(x) return x[1] * x[2], x[3] end), true, "a product, and a race beside it")
same_as_full(races(3, function(x)
  local y = x[1] * 2
  local z = y + x[2]
  return z:relu(), x[3]
end), true, "a sum of what was made of one")
same_as_full(races(2, function(x) return mr.cat { x[1], x[2] } end), true, "two copies into one tensor")
same_as_full(function()
  local a, b = mr.stream(), mr.stream()
  local x = mr.zeros(4)
  mr.synchronize()
  for i = 1, 4 do
    a:run(function() x[i]:fill_(1) end)
    b:run(function() x[i]:fill_(2) end)
  end
  mr.synchronize()
  return x
end, true, "four elements of one tensor")

-- Two pairs: if the later one of each goes first, the others cannot.
same_as_full(function()
  local s = {}
  for i = 1, 2 do s[i] = mr.stream() end
  local x, y = mr.zeros(1), mr.zeros(1)
  mr.synchronize()
  s[1]:run(function() x:fill_(1) y:fill_(1) end)
  s[2]:run(function() y:fill_(2) x:fill_(2) end)
  mr.synchronize()
  return x, y
end, false, "a cycle")

-- A kernel that writes only if the flag says so: what was there may remain.
local write_if = mr.kernel [[extern "C" __global__ void write_if(float *x, const float *flag) {
  if (flag[0] > 0) x[0] = 7;
}]]
same_as_full(races(3, function(x)
  write_if[{ 1, 1 }](x[1], x[2])
  return x[1], x[3]
end), true, "a write that may not happen")

-- Its reads through pointers in memory are not known.
local follow = mr.kernel [[extern "C" __global__ void follow(float *out, float *const *at) {
  out[0] = at[0][0] * at[1][0];
}]]
r = same_as_full(races(2, function(x)
  local at, out = mr.tensor({ x[1].data_ptr, x[2].data_ptr }, { dtype = "i64" }), mr.zeros(1)
  follow[{ 1, 1 }](out, at)
  return out
end), false, "pointers as data")
T.equal(#r.outcomes, 2, "a product is 1 only if both are")

-- ---------------------------------------------------------------- what the host sees

same_as_full(races(2, function(x) return x[1]:item(), x[2]:item() end), false, "values that are read")
r = same_as_full(races(2, function(x) return x[1]:item() == 1 and x[2]:item() == 1 end), false, "both are read")
T.equal(#r.outcomes, 2, "true only if both are turned")
same_as_full(races(3, function(x) return (x[1] * x[2]):item(), x[3] end), false, "a product is read")
same_as_full(races(2, function(x)
  local other = mr.ones(1):item()
  return other, x[1], x[2]
end), true, "what no race has touched is read")

-- Both orders of a race of its own leave 3.0 in it, so the host reads the same in all schedules.
local function read_sum(x, a, b)
  local sum = mr.zeros(1)
  mr.synchronize()
  a:run(function() sum:add_(1) end)
  b:run(function() sum:add_(2) end)
  mr.synchronize()
  return sum:item(), x[1], x[2]
end
r = same_as_full(races(2, read_sum), true, "both orders leave what is read")
T.equal(#r.combined.groups, 3, "the race that is read is a group")
T.equal(r.schedules, 6, "of two schedules, like the others")
T.equal(r.runs, 2, "no schedule calls the function again")
T.check(r.complete and #r.outcomes == 4, "only the other races make outcomes")
same_as_full(races(2, function(x, a, b)
  return x[2]:item(), read_sum(x, a, b)
end), false, "of two reads, one depends on its race")
same_as_full(races(2, function(x, a, b)
  local y = mr.zeros(1)
  y:add_(x[1])
  y:add_(x[2])
  y:mul_(0)
  return y:item(), read_sum(x, a, b)
end), true, "a value that is made of two races, and does not depend on them, is read")
local stop_if = mr.kernel [[extern "C" __global__ void stop_if(const float *flag) {
  if (flag[0] > 0) __trap();
}]]
same_as_full(races(2, function(x)
  stop_if[{ 1, 1 }](x[1])
  mr.synchronize()
  return x[2]
end), false, "an error in some schedules")
same_as_full(races(2, function(x, a)
  local asked = a:query()
  return asked, x[1], x[2]
end), false, "a query")
same_as_full(races(2, function(x, a)
  a:host_func(function() end)
  mr.synchronize()
  return x[1], x[2]
end), false, "a host function")
same_as_full(races(2, function(x, a)
  local y = mr.ones(64)
  a:run(function() y:free() end)
  local z = mr.empty(64)
  return x[1], x[2], z
end), false, "memory that is used again")

same_as_full(races(2, function(x)
  local y = mr.ones(64)
  y:free()
  return x[1], x[2], mr.ones(64)
end), true, "memory that is written as a whole first")

-- ---------------------------------------------------------------- options, and checks of tests

for name, options in pairs { preempt = { preempt = 8 }, grain = { grain = 2 }, seeds = { seeds = 9 },
                             unspecified = { unspecified = true } } do
  T.equal(mr.explore(races(2), options).combined, nil, "with " .. name .. " all are searched together")
end

local function both(fn)
  return function()
    local x = table.pack(fn())
    return { x[1], x[2] }
  end
end
local values = mr.explore(both(races(2)))
T.equal(values.combined.outcomes, 4, "tensors in a table")
local function sums(x) return table.unpack(x) end
T.expect_outcomes(races(2, function(x) return x[1]:item() + 2 * x[2]:item() end), { 0.0, 1.0, 2.0, 3.0 })
local fine, err = pcall(T.expect_outcomes, races(20, sums), { 0.0 })
T.check(not fine and err:find("expected 1 outcome, there are", 1, true)
  and err:find("and combinations of these: 1048576 outcomes in all", 1, true), "not all are listed: " .. tostring(err))
T.check(not pcall(T.expect_deterministic, races(20)), "nor is it deterministic")

-- ---------------------------------------------------------------- operations that a group does without

-- Each race reads from a launch, and beside it is one that no race needs.
local put = mr.kernel [[extern "C" __global__ void put(float *x, float v) { x[threadIdx.x] = v; }]]
same_as_full(function()
  local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
  local out, fed, other = {}, {}, {}
  for i = 1, 3 do out[i], fed[i], other[i] = mr.zeros(4), mr.zeros(4), mr.zeros(4) end
  mr.synchronize()
  for i = 1, 3 do
    a:run(function()
      put[{1, 4}](fed[i], i)
      put[{1, 4}](other[i], -i)
      out[i]:add_(fed[i])
    end)
    b:run(function() out[i]:mul_(3) end)
  end
  mr.synchronize()
  for i = 1, 3 do out[3 + i] = other[i] end
  return table.unpack(out)
end, true, "launches that races read from, and others")

-- ---------------------------------------------------------------- where the time is over

local function count_turned(o)
  local turned = 0
  for i = 1, o.values.n do turned = turned + o.values[i] end
  return turned
end

r = mr.explore(races(14, function(x)
  local out = {}
  for i = 1, 14 do out[i] = x[i]:item() end
  if out[1] == 1 then mr.ones(1) end -- the function may do something else then
  return table.unpack(out)
end), { time = 1 })
if not r.complete then
  local alone = 0
  for _, o in ipairs(r.outcomes) do alone = alone + (count_turned(o) == 1 and 1 or 0) end
  T.equal(r.alone and r.alone.groups or 0, 14, "groups")
  T.equal(r.alone.races, 14, "races")
  T.check(r.alone.tried > 0 and alone >= r.alone.tried, ("%d tried alone, %d outcomes"):format(r.alone.tried, alone))
  T.check(tostring(r):find("14 races in 14 independent groups: ", 1, true), "it is said: " .. tostring(r))
  T.check(tostring(r):find("where it returns the tensors instead", 1, true), "and what helps: " .. tostring(r))
end
