-- New tensors: shapes, options, inference of dtypes, values.
local lu = require "luaunit"
local mr = require "millrace"
local naive = require "lua.support.naive"

TestFilled = {}

function TestFilled:test_shapes_as_arguments_and_as_a_table()
  for _, make in ipairs { mr.zeros, mr.ones, mr.empty, mr.rand, mr.randn } do
    lu.assertEquals(make(3, 4).shape, { 3, 4 })
    lu.assertEquals(make({ 3, 4 }).shape, { 3, 4 })
    lu.assertEquals(make(5).shape, { 5 })
    lu.assertEquals(make({}).shape, {})
    lu.assertEquals(make().shape, {})
    lu.assertEquals(make(3, 0, 2).numel, 0)
    lu.assertEquals(make(2, 3, { dtype = "f64" }).dtype, "f64")
    lu.assertEquals(make({ 2, 3 }, { dtype = "f64" }).shape, { 2, 3 })
    lu.assertEquals(make({ dtype = "f64" }).ndim, 0)
    lu.assertEquals(make(2.0, 3).shape, { 2, 3 })
  end
end

-- An empty table behind sizes is one of options, so that a caller can hand on its own, `options or {}`.
function TestFilled:test_an_empty_table_of_options()
  for _, make in ipairs { mr.zeros, mr.ones, mr.empty, mr.rand, mr.randn } do
    lu.assertEquals(make(3, 4, {}).shape, { 3, 4 })
    lu.assertEquals(make({ 3, 4 }, {}).shape, { 3, 4 })
    lu.assertEquals(make({}, {}).shape, {})
  end
  lu.assertEquals(mr.full({ 2 }, 7, {}):totable(), { 7, 7 })
  lu.assertEquals(mr.full(2, 7, {}):totable(), { 7, 7 })
  lu.assertEquals(mr.eye(2, {}).shape, { 2, 2 })
  lu.assertEquals(mr.arange(3, {}):totable(), { 0, 1, 2 })
  lu.assertEquals(mr.arange(1, 3, {}):totable(), { 1, 2 })
  lu.assertEquals(mr.linspace(0, 1, 2, {}):totable(), { 0, 1 })
  lu.assertEquals(mr.randint(5, {}).shape, {})
  lu.assertEquals(mr.randint(0, 5, {}).shape, {})
  lu.assertEquals(mr.randint(5, { 3 }, {}).shape, { 3 })
  lu.assertEquals(mr.randint(0, 5, 3, {}).shape, { 3 })
  lu.assertEquals(mr.randperm(3, {}).numel, 3)
  local x = mr.ones(2, 3)
  lu.assertEquals(x:sum({}):item(), 6)
  lu.assertEquals(x:sum(1, {}):totable(), { 2, 2, 2 })
  lu.assertEquals(x:flip(1, {}).shape, { 2, 3 })
  lu.assertEquals(x:to("cpu", {}).device, "cpu")
  lu.assertEquals(x:cuda({}).device, mr.device(0))
  lu.assertEquals(select("#", x:sort(1, {})), 2)
end

function TestFilled:test_values()
  lu.assertEquals(mr.zeros(2, 2):totable(), { { 0, 0 }, { 0, 0 } })
  lu.assertEquals(mr.ones(3):totable(), { 1, 1, 1 })
  lu.assertEquals(mr.ones(2, { dtype = "bool" }):totable(), { true, true })
  lu.assertEquals(mr.full({ 2 }, 7):totable(), { 7, 7 })
  lu.assertEquals(mr.full(2, 3, 0.5):totable(), { { 0.5, 0.5, 0.5 }, { 0.5, 0.5, 0.5 } })
  lu.assertEquals(mr.full({}, true):item(), true)
  lu.assertEquals(mr.full({ 2 }, 3, { dtype = "f32" }):totable(), { 3.0, 3.0 })
  lu.assertEquals(mr.eye(2, 3):totable(), { { 1, 0, 0 }, { 0, 1, 0 } })
  lu.assertEquals(mr.eye(3):totable(), { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } })
end

function TestFilled:test_dtypes_of_full_follow_the_value()
  lu.assertEquals(mr.full({ 1 }, 1).dtype, "i64")
  lu.assertEquals(mr.full({ 1 }, 1.0).dtype, "f32")
  lu.assertEquals(mr.full({ 1 }, false).dtype, "bool")
end

function TestFilled:test_every_dtype()
  for _, dtype in ipairs { "f32", "f64", "i32", "i64", "u8" } do
    local t = mr.full({ 3 }, 5, { dtype = dtype })
    lu.assertEquals(t.dtype, dtype)
    lu.assertEquals(t:sum():item(), 15)
  end
  lu.assertEquals(mr.zeros(1, { dtype = "float32" }).dtype, "f32")
end

function TestFilled:test_options()
  local t = mr.zeros(2, { device = "cpu", name = "host" })
  lu.assertEquals(t.device, "cpu")
  lu.assertEquals(t:name(), "host")
  lu.assertFalse(t.pinned)
  lu.assertTrue(mr.zeros(2, { pinned = true }).pinned)
  lu.assertTrue(mr.zeros(2, { pinned = true, device = "cpu" }).pinned)
  lu.assertIs(mr.zeros(2).device, mr.current_device())
  lu.assertIs(mr.zeros(2, { device = 0 }).device, mr.device(0))
  lu.assertIs(mr.zeros(2, { device = mr.device(0) }).device, mr.device(0))
  lu.assertIs(mr.zeros(2, { device = "cuda" }).device, mr.device(0))
  lu.assertIs(mr.zeros(2, { device = "cuda:0" }).device, mr.device(0))
  local s = mr.stream()
  local ones = mr.ones(4, { stream = s })
  s:synchronize()
  lu.assertEquals(ones:sum():item(), 4)
end

-- A script that reads what nothing has written is wrong, and is wrong in the same way on each run.
function TestFilled:test_empty_host_memory_is_zero()
  lu.skipIf(mr.backend ~= "virtual", "only the virtual GPU can show memory without an access")
  for _, pinned in ipairs { false, true } do
    for _, count in ipairs { 7, 1000, 1 << 20 } do
      mr.ones(count, { device = "cpu", pinned = pinned })
      collectgarbage()
      local x = mr.empty(count, { device = "cpu", pinned = pinned })
      local y = mr.empty_like(x)
      lu.assertEquals(x:peek():eq(0):all():item(), true)
      lu.assertEquals(y:peek():eq(0):all():item(), true)
      x:fill_(1) y:fill_(1)
      mr.spin { ms = 1 }
      local late = mr.ones(count):cpu { non_blocking = true }
      lu.assertEquals(late:peek():eq(0):all():item(), true)
      mr.synchronize()
    end
  end
end

function TestFilled:test_like()
  local h = mr.zeros(2, 3, { dtype = "i32", device = "cpu" })
  for _, make in ipairs { mr.zeros_like, mr.ones_like, mr.empty_like } do
    local t = make(h)
    lu.assertEquals(t.shape, { 2, 3 })
    lu.assertEquals(t.dtype, "i32")
    lu.assertEquals(t.device, "cpu")
    local d = make(h, { device = 0, dtype = "f64" })
    lu.assertEquals(d.dtype, "f64")
    lu.assertIs(d.device, mr.device(0))
  end
  lu.assertEquals(mr.full_like(h, 9):totable(), { { 9, 9, 9 }, { 9, 9, 9 } })
  lu.assertEquals(mr.ones_like(mr.zeros(4):narrow(1, 2, 2)):totable(), { 1, 1 })
  local f = mr.zeros(50)
  lu.assertEquals(mr.rand_like(f).shape, { 50 })
  lu.assertEquals(mr.randn_like(f).dtype, "f32")
  local r = mr.randint_like(h, 3)
  lu.assertEquals(r.dtype, "i32")
  lu.assertEquals(mr.randint_like(h, 4, 5):totable(), { { 4, 4, 4 }, { 4, 4, 4 } })
end

TestSequences = {}

function TestSequences:test_arange()
  lu.assertEquals(mr.arange(4):totable(), { 0, 1, 2, 3 })
  lu.assertEquals(mr.arange(4).dtype, "i64")
  lu.assertEquals(mr.arange(1, 4):totable(), { 1, 2, 3 })
  lu.assertEquals(mr.arange(5, 0, -2):totable(), { 5, 3, 1 })
  lu.assertEquals(mr.arange(0, 1, 0.25):totable(), { 0, 0.25, 0.5, 0.75 })
  lu.assertEquals(mr.arange(0, 1, 0.25).dtype, "f32")
  lu.assertEquals(mr.arange(0):totable(), {})
  lu.assertEquals(mr.arange(3, { dtype = "f64" }).dtype, "f64")
  lu.assertEquals(mr.arange(math.maxinteger - 1, math.maxinteger):totable(), { math.maxinteger - 1 })
  lu.assertEquals(mr.arange(math.mininteger, math.mininteger + 2):totable(), { math.mininteger, math.mininteger + 1 })
end

function TestSequences:test_linspace()
  naive.assert_same(mr.linspace(0, 1, 5), naive.array({ 5 }, { 0, 0.25, 0.5, 0.75, 1 }), 1e-7)
  lu.assertEquals(mr.linspace(2, 8, 1):totable(), { 2 })
  lu.assertEquals(mr.linspace(2, 8, 0).numel, 0)
end

TestRandom = {}

function TestRandom:test_the_same_seed_gives_the_same_numbers()
  local function draw()
    mr.manual_seed(7)
    return { mr.rand(5):totable(), mr.randn(5):totable(), mr.randint(0, 10, { 5 }):totable(),
      mr.randperm(5):totable() }
  end
  lu.assertEquals(draw(), draw())
  local a = mr.rand(5):totable()
  lu.assertNotEquals(a, mr.rand(5):totable())
end

function TestRandom:test_ranges()
  mr.manual_seed(1)
  local t = mr.rand(1000)
  lu.assertTrue(t:min():item() >= 0 and t:max():item() < 1)
  lu.assertAlmostEquals(t:mean():item(), 0.5, 0.05)
  local n = mr.randn(4000)
  lu.assertAlmostEquals(n:mean():item(), 0, 0.1)
  local i = mr.randint(-3, 4, { 1000 })
  lu.assertEquals(i.dtype, "i64")
  lu.assertEquals(i:min():item(), -3)
  lu.assertEquals(i:max():item(), 3)
  lu.assertEquals(mr.randint(0, 2, 3, 4).shape, { 3, 4 })
  lu.assertEquals(mr.randint(2, { 3 }).shape, { 3 })
end

function TestRandom:test_randperm_gives_indices()
  local p = mr.randperm(20):totable()
  table.sort(p)
  for i = 1, 20 do lu.assertEquals(p[i], i) end
  lu.assertEquals(mr.randperm(0).numel, 0)
end

TestLiteral = {}

function TestLiteral:test_dtype_follows_the_values()
  lu.assertEquals(mr.tensor({ 1, 2 }).dtype, "i64")
  lu.assertEquals(mr.tensor({ 1, 2.5 }).dtype, "f32")
  lu.assertEquals(mr.tensor({ 1.0 }).dtype, "f32")
  lu.assertEquals(mr.tensor({ true, false }).dtype, "bool")
  lu.assertEquals(mr.tensor({}).dtype, "f32")
  lu.assertEquals(mr.tensor({ 1, 2 }, { dtype = "f64" }).dtype, "f64")
  lu.assertEquals(mr.tensor(3).dtype, "i64")
  lu.assertEquals(mr.tensor(true).dtype, "bool")
end

function TestLiteral:test_values_come_back()
  local values = { { { 1, 2 }, { 3, 4 } }, { { 5, 6 }, { 7, 8 } }, { { 9, 10 }, { 11, 12 } } }
  for _, device in ipairs { "cpu", 0 } do
    local t = mr.tensor(values, { device = device })
    lu.assertEquals(t.shape, { 3, 2, 2 })
    lu.assertEquals(t:totable(), values)
  end
  lu.assertEquals(mr.tensor({ true, false }):totable(), { true, false })
  lu.assertEquals(mr.tensor({ 0.5, -1.25 }, { pinned = true }):totable(), { 0.5, -1.25 })
  lu.assertEquals(mr.tensor(2.5):item(), 2.5)
  lu.assertEquals(mr.tensor({ { {} }, { {} } }).shape, { 2, 1, 0 })
  lu.assertEquals(mr.tensor({ {}, {} }).shape, { 2, 0 })
  lu.assertEquals(mr.tensor({ math.maxinteger, math.mininteger }):totable(), { math.maxinteger, math.mininteger })
end

function TestLiteral:test_random_tables()
  local r = naive.random(42)
  for _ = 1, 50 do
    local a = naive.generate(r.shape(r.integer(0, 4), 5), r.quarter)
    naive.assert_same(mr.tensor(naive.nested(a), { dtype = "f32" }), a)
  end
end

function TestLiteral:test_what_is_wrong_is_said_with_its_place()
  local raises = naive.assert_raises
  raises("[2] is nil", mr.tensor, { 1, nil, 3 })
  raises("element [2] has a hole: [1] is nil", mr.tensor, { { 1, 2 }, { nil, 2 } })
  raises("element [2] has 3 values where those before it have 2", mr.tensor, { { 1, 2 }, { 1, 2, 3 } })
  raises("element [2] is a number, but its neighbours are tables", mr.tensor, { { 1 }, 2 })
  raises("element [2] is a table, but its neighbours are values", mr.tensor, { 1, { 2 } })
  raises("element [1][2] is a string", mr.tensor, { { 1, "2" } })
  raises("element [2] is a boolean among numbers", mr.tensor, { 1, true })
  raises("element [2] is a function, expected a number", mr.tensor, { 1, print })
  raises("element [2] is a number among booleans", mr.tensor, { true, 1 })
  raises("key `dtype`", mr.tensor, { 1, 2, dtype = "f32" })
  raises("expected a table, a number or a boolean, got a string", mr.tensor, "1")
  raises("expected a table, a number or a boolean, got nil", mr.tensor, nil)
  raises("clone()", mr.tensor, mr.zeros(1))
  raises("element [2] has 0 values where those before it have 1", mr.tensor, { { { 1 } }, {} })
  raises("element [2][1] has 1 values where those before it have 0", mr.tensor, { { {} }, { { {} } } })
  raises("more than 8 deep", mr.tensor, { { { { { { { { { 1 } } } } } } } } })
  local cyclic = {}
  cyclic[1] = cyclic
  raises("inside itself", mr.tensor, cyclic)
  local wide = {}
  for i = 1, 1000 do wide[i] = 1 end
  for _ = 1, 5 do
    local outer = {}
    for i = 1, 1000 do outer[i] = wide end
    wide = outer
  end
  raises("have more than", mr.tensor, wide)
end

function TestLiteral:test_a_finalizer_that_changes_the_tables_is_noticed()
  for _ = 1, 20 do
    local rows = {}
    for i = 1, 50 do rows[i] = { 1, 2, 3 } end
    setmetatable({}, { __gc = function() for i = 1, 50 do rows[i] = i % 2 == 0 and { 1 } or 5 end end })
    pcall(mr.tensor, rows)
    collectgarbage()
  end
end

os.exit(lu.LuaUnit.run())
