-- unique of many integers: what a table finds is what counting one by one finds.
local lu = require "luaunit"
local mr = require "millrace"

-- The values in order, the number of each element's value, and how often each value occurs; counted one by one.
local function naive_unique(list)
  local counts, values, numbers, inverse, count = {}, {}, {}, {}, {}
  for _, v in ipairs(list) do
    if not counts[v] then values[#values + 1] = v end
    counts[v] = (counts[v] or 0) + 1
  end
  table.sort(values)
  for k, v in ipairs(values) do numbers[v], count[k] = k, counts[v] end
  for k, v in ipairs(list) do inverse[k] = numbers[v] end
  return values, inverse, count
end

TestUnique = {}

-- Many integers near each other are looked up instead of sorted: at both ends of their type, too, and where they are
-- just too far from each other.
function TestUnique.test_many_integers()
  local least, greatest, length = math.mininteger, math.maxinteger, 70000
  local ranges = { i64 = { { 0, 1000 }, { -5, 5 }, { least, least + 300 }, { greatest - 300, greatest }, { 7, 8 },
    { 0, length + 1 }, { -9, length * 3 } }, i32 = { { -(1 << 31), 300 - (1 << 31) }, { (1 << 31) - 300, 1 << 31 } },
    u8 = { { 0, 256 }, { 250, 256 } } }
  mr.manual_seed(4)
  for dtype, list in pairs(ranges) do
    for _, range in ipairs(list) do
      for _, device in ipairs { "cpu", mr.device(0) } do
        local what = ("%s from %d to %d on %s"):format(dtype, range[1], range[2], device)
        local host = mr.randint(range[1], range[2], { length // 2, 2 }, { dtype = dtype, device = "cpu" })
        local x = host:to(device)
        local got, inverse, counts = x:unique { return_inverse = true, return_counts = true }
        local wanted, of_each, how_often = naive_unique(host:reshape(length):totable())
        lu.assertEquals({ got.dtype, inverse.dtype, counts.dtype, inverse.shape },
          { dtype, "i64", "i64", { length // 2, 2 } }, what)
        lu.assertEquals(tostring(got.device), tostring(device), what)
        lu.assertTrue(mr.equal(got, mr.tensor(wanted, { dtype = dtype, device = device })), what)
        lu.assertTrue(mr.equal(x:unique(), got), what)
        lu.assertTrue(mr.equal(inverse:reshape(length), mr.tensor(of_each, { dtype = "i64", device = device })), what)
        lu.assertTrue(mr.equal(counts, mr.tensor(how_often, { dtype = "i64", device = device })), what)
      end
    end
  end
end

os.exit(lu.LuaUnit.run())
