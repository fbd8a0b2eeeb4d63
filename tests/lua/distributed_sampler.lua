-- DistributedSampler: each rank's part of the rows, by PyTorch's rules; the parts together; the same order on all
-- ranks, whatever they have drawn before; batches of them.
-- options: --device virtual:3
-- virtual only: three devices
-- not replayed: ranks have a clock each
local lu = require "luaunit"
local mr = require "millrace"
local Sampler = mr.data.DistributedSampler

local function indices(rows, options)
  return Sampler(rows, options):indices():totable()
end

local function refused(pattern, fn, ...)
  local ok, err = pcall(fn, ...)
  lu.assertFalse(ok, pattern)
  lu.assertStrContains(tostring(err), pattern)
end

TestSampler = {}

-- What torch.utils.data.DistributedSampler gives, counted from 1.
function TestSampler.test_in_order()
  local function part(rank, drop)
    return indices(10, { num_replicas = 4, rank = rank, shuffle = false, drop_last = drop })
  end
  lu.assertEquals({ part(0), part(1), part(2), part(3) }, { { 1, 5, 9 }, { 2, 6, 10 }, { 3, 7, 1 }, { 4, 8, 2 } })
  lu.assertEquals({ part(0, true), part(3, true) }, { { 1, 5 }, { 4, 8 } })
  lu.assertEquals(indices(2, { num_replicas = 5, rank = 4, shuffle = false }), { 1 }) -- the rows come again
  lu.assertEquals(indices(mr.zeros(3, 2), { num_replicas = 1, rank = 0, shuffle = false }), { 1, 2, 3 })
end

function TestSampler.test_the_parts_together()
  for rows = 1, 23 do
    for n = 1, 5 do
      for _, drop in ipairs { false, rows >= n or nil } do
        local count, sizes = {}, {}
        for rank = 0, n - 1 do
          local list = indices(rows, { num_replicas = n, rank = rank, seed = rows, drop_last = drop })
          sizes[#list] = true
          for _, i in ipairs(list) do count[i] = (count[i] or 0) + 1 end
        end
        local expected = drop and rows // n or (rows + n - 1) // n
        lu.assertEquals(sizes, { [expected] = true })
        local kinds, most, least = 0, 0, math.huge
        for i, times in pairs(count) do
          lu.assertTrue(i >= 1 and i <= rows)
          kinds, most, least = kinds + 1, math.max(most, times), math.min(least, times)
        end
        lu.assertEquals(kinds, drop and expected * n or rows)
        lu.assertTrue(most - least <= 1)
      end
    end
  end
end

function TestSampler.test_epochs_and_seeds()
  local s = Sampler(50, { num_replicas = 2, rank = 0 })
  local first, again = s:indices():totable(), s:indices():totable()
  s:set_epoch(1)
  local second = s:indices():totable()
  lu.assertEquals(first, again)
  lu.assertNotEquals(first, second)
  lu.assertNotEquals(first, indices(50, { num_replicas = 2, rank = 0, seed = 7 }))
  lu.assertNotEquals(first, indices(50, { num_replicas = 2, rank = 0, shuffle = false }))
end

-- Every position holds every row about equally often.
function TestSampler.test_the_shuffle_is_even()
  local count = {}
  for seed = 1, 6000 do
    local list = indices(4, { num_replicas = 1, rank = 0, seed = seed * 13 })
    local key = table.concat(list, "")
    count[key] = (count[key] or 0) + 1
  end
  local kinds = 0
  for key, times in pairs(count) do
    kinds = kinds + 1
    lu.assertTrue(times > 180 and times < 320, key .. " " .. times) -- 250 each
  end
  lu.assertEquals(kinds, 24)
end

-- The ranks of mr.dist: each row once an epoch, and batches of equal sizes.
function TestSampler.test_batches_of_ranks()
  local xs = mr.arange(18, { dtype = "f32", device = "cpu" })
  local seen
  local reports = mr.hazard.check(function()
    seen = mr.dist.spawn(3, function(rank)
      local sampler, list = Sampler(xs), {}
      for _ = 1, rank do mr.rand(3) end
      for epoch = 1, 2 do
        sampler:set_epoch(epoch)
        for x in mr.data.batches(xs, { batch_size = 4, sampler = sampler }) do
          local sum = x:sum()
          mr.dist.all_reduce(sum)
          list[#list + 1] = { sum:item(), x.numel }
        end
      end
      return list
    end)
  end)
  lu.assertEquals(#reports, 0, reports[1] and reports[1].message)
  lu.assertEquals(seen[1], seen[3])
  lu.assertEquals({ #seen[1], seen[1][1][2], seen[1][2][2] }, { 4, 4, 2 })
  lu.assertEquals({ seen[1][1][1] + seen[1][2][1], seen[1][3][1] + seen[1][4][1] }, { 153.0, 153.0 })
end

function TestSampler.test_what_is_refused()
  local xs = mr.zeros(6, { device = "cpu" })
  refused("the number of rows is x", Sampler, "x")
  refused("there is no option `size`", Sampler, xs, { size = 1 })
  refused("expected a table of options, got a number", Sampler, xs, 3)
  refused("rank is 2, but ranks are 0 to 1", Sampler, xs, { num_replicas = 2, rank = 2 })
  refused("num_replicas is 0", Sampler, xs, { num_replicas = 0 })
  refused("seed is -1", Sampler, xs, { seed = -1 })
  refused("shuffle is 1", Sampler, xs, { shuffle = 1 })
  refused("6 rows are too few for 7 ranks", Sampler, xs, { num_replicas = 7, rank = 0, drop_last = true })
  refused("0 rows are too few", Sampler, 0)
  local s = Sampler(xs)
  refused("epoch is nil", s.set_epoch, s)
  refused("made for 6 rows, and the tensors have 5", mr.data.batches, mr.zeros(5, { device = "cpu" }), { sampler = s })
  refused("shuffle=true beside a sampler", mr.data.batches, xs, { sampler = s, shuffle = true })
  refused("sampler is a number", mr.data.batches, xs, { sampler = 3 })
end

os.exit(lu.LuaUnit.run())
