-- Random numbers have the distribution that was asked for, and depend on the seed and on the number of draws before
-- them and on nothing else. Seeds are fixed, so a test gives the same answer each time; bounds are those that a good
-- generator exceeds once in about 10^6 seeds.
local lu = require "luaunit"
local mr = require "millrace"

local HOST = assert(os.getenv("MILLRACE"), "MILLRACE must hold the path of the host")
local N = 20000

local function sorted(t)
  local list = t:to("f64"):cpu():flatten():totable()
  table.sort(list)
  return list
end

-- The greatest distance between the distribution of the values and `cumulative`, times the root of their number
-- (Kolmogorov and Smirnov): above 2.7 with probability 10^-6.
local function distance(list, cumulative)
  local greatest, n = 0, #list
  for i, x in ipairs(list) do
    local p = cumulative(x)
    greatest = math.max(greatest, math.abs(p - i / n), math.abs(p - (i - 1) / n))
  end
  return greatest * math.sqrt(n)
end

-- The normal distribution function, by its series near 0 and by a continued fraction far away.
local function normal_cdf(x)
  if math.abs(x) > 6 then return x > 0 and 1 or 0 end
  local sum, term = x, x
  for k = 1, 200 do
    term = term * x * x / (2 * k + 1)
    sum = sum + term
    if math.abs(term) < 1e-17 * math.abs(sum) then break end
  end
  return 0.5 + sum * math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
end

-- How far counts are from what is expected (chi-squared), in standard deviations of that measure.
local function surprise(counts, expected)
  local chi = 0
  for i = 1, #expected do chi = chi + ((counts[i] or 0) - expected[i]) ^ 2 / expected[i] end
  local freedom = #expected - 1
  return (chi - freedom) / math.sqrt(2 * freedom)
end

local function even(count, n)
  local expected = {}
  for i = 1, count do expected[i] = n / count end
  return expected
end

-- The correlation of two lists of equal length, times the root of the length: above 5 with probability 6 * 10^-7.
local function correlation(a, b)
  local n, sa, sb, saa, sbb, sab = #a, 0, 0, 0, 0, 0
  for i = 1, n do
    sa, sb = sa + a[i], sb + b[i]
    saa, sbb, sab = saa + a[i] ^ 2, sbb + b[i] ^ 2, sab + a[i] * b[i]
  end
  return (n * sab - sa * sb) / math.sqrt((n * saa - sa * sa) * (n * sbb - sb * sb)) * math.sqrt(n)
end

TestDistributions = {}

function TestDistributions:test_uniform()
  for _, dtype in ipairs { "f32", "f64" } do
    mr.manual_seed(3)
    local list = sorted(mr.empty(N, { dtype = dtype }):uniform_(-2, 6))
    lu.assertTrue(distance(list, function(x) return (x + 2) / 8 end) < 2.7)
  end
end

function TestDistributions:test_normal()
  for _, dtype in ipairs { "f32", "f64" } do
    mr.manual_seed(4)
    local list = sorted(mr.empty(N, { dtype = dtype }):normal_(1.5, 0.25))
    lu.assertTrue(distance(list, function(x) return normal_cdf((x - 1.5) / 0.25) end) < 2.7)
  end
end

-- The tails hold what they should: a generator of few bits has no values far out.
function TestDistributions:test_tails_of_the_normal_distribution()
  mr.manual_seed(5)
  local n = 4000000
  local x = mr.randn(n):abs()
  for sigma, share in pairs { [3] = 2.699796e-3, [4] = 6.334248e-5, [4.5] = 6.795346e-6 } do
    local count = x:gt(sigma):sum():item()
    local expected = n * share
    lu.assertTrue(math.abs(count - expected) < 5 * math.sqrt(expected),
      ("beyond %g sigma: %d, expected %.1f"):format(sigma, count, expected))
  end
end

function TestDistributions:test_bernoulli_and_dropout_rates()
  mr.manual_seed(6)
  for _, p in ipairs { 0.001, 0.25, 0.5, 0.9 } do
    local n = 1000000
    local count = mr.empty(n):bernoulli_(p):sum():item()
    lu.assertTrue(math.abs(count - n * p) < 5 * math.sqrt(n * p * (1 - p)), p .. ": " .. count)
  end
end

function TestDistributions:test_randint()
  mr.manual_seed(7)
  for _, sides in ipairs { 2, 6, 37 } do
    local counts = {}
    for _, v in ipairs(mr.randint(1, sides + 1, { N }):totable()) do counts[v] = (counts[v] or 0) + 1 end
    lu.assertTrue(math.abs(surprise(counts, even(sides, N))) < 6, sides .. " sides")
  end
end

-- Each of the orders of four is as frequent as the others.
function TestDistributions:test_randperm()
  mr.manual_seed(8)
  local counts, kinds, rounds = {}, {}, 4800
  for _ = 1, rounds do
    local text = table.concat(mr.randperm(4):totable(), "")
    if not kinds[text] then
      counts[#counts + 1] = 0
      kinds[text] = #counts
    end
    counts[kinds[text]] = counts[kinds[text]] + 1
  end
  lu.assertEquals(#counts, 24)
  lu.assertTrue(math.abs(surprise(counts, even(24, rounds))) < 6)
end

-- Neighbours, calls one after the other, and seeds have nothing in common.
function TestDistributions:test_no_correlation()
  for _, draw in ipairs { function() return mr.rand(N) end, function() return mr.randn(N) end } do
    mr.manual_seed(9)
    local first, second = draw():totable(), draw():totable()
    mr.manual_seed(10)
    local other = draw():totable()
    lu.assertTrue(math.abs(correlation(first, second)) < 5)
    lu.assertTrue(math.abs(correlation(first, other)) < 5)
    for _, lag in ipairs { 1, 2, 3, 4, 8, 32, 256 } do
      local head, tail = table.move(first, 1, N - lag, 1, {}), table.move(first, lag + 1, N, 1, {})
      lu.assertTrue(math.abs(correlation(head, tail)) < 5, "at distance " .. lag)
    end
  end
end

TestDependence = {}

-- What other operations do, on whatever stream, changes no random number.
function TestDependence:test_other_calls_change_nothing()
  mr.manual_seed(11)
  local first, second = mr.randn(1000):totable(), mr.rand(1000):totable()
  mr.manual_seed(11)
  local s = mr.stream()
  local other = mr.with(s, mr.randn, 1000)
  s:synchronize()
  lu.assertEquals(other:totable(), first)
  local _ = mr.ones(500, 500):mm(mr.ones(500, 500)):relu():sum()
  lu.assertEquals(mr.rand(1000):totable(), second)
end

-- A smaller tensor gets the beginning of what a larger one gets, and another layout the same numbers in row-major
-- order.
function TestDependence:test_shapes_and_layouts()
  mr.manual_seed(12)
  local large = mr.rand(10, 100):flatten():totable()
  mr.manual_seed(12)
  lu.assertEquals(mr.rand(777):totable(), table.move(large, 1, 777, 1, {}))
  mr.manual_seed(12)
  lu.assertEquals(mr.empty(100, 10):t():uniform_():contiguous():flatten():totable(), large)
end

-- One thread and several give the same numbers.
function TestDependence:test_threads()
  local program = "mr.manual_seed(13) io.write(('%a'):format((mr.randn(3000000) * mr.rand(3000000)):sum():item()))"
  local found = {}
  for _, threads in ipairs { 1, 2, 7 } do
    local file <close> = assert(io.popen(("MILLRACE_THREADS=%d '%s' -e \"%s\""):format(threads, HOST, program)))
    found[#found + 1] = file:read "a"
  end
  lu.assertNotEquals(found[1], "")
  lu.assertEquals(found[2], found[1])
  lu.assertEquals(found[3], found[1])
end

os.exit(lu.LuaUnit.run())
