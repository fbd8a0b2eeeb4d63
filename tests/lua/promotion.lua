-- The dtypes of results are PyTorch's, as its torch.result_type gives them. A tensor without
-- dimensions counts only if its category (bool, integer, float) is higher than that of all
-- tensors with dimensions. A plain number counts only if its category is higher than that of all
-- tensors.
local lu = require "luaunit"
local mr = require "millrace"
local torch = dofile("tests/data/promotion/expected.lua") -- by PyTorch

local DTYPES = torch.dtypes
local CATEGORY = { bool = 0, u8 = 1, i32 = 1, i64 = 1, f32 = 2, f64 = 2, f16 = 2, bf16 = 2 }
local WITH_DIMENSIONS, WITHOUT_DIMENSIONS = torch.with_dimensions, torch.without_dimensions
local NUMBERS, BESIDE_NUMBERS = { true, 1, 1.5 }, torch.beside_numbers

local function words(text)
  local list = {}
  for word in text:gmatch("%S+") do list[#list + 1] = word end
  return list
end

local function wide(dtype, device) return mr.ones(2, { dtype = dtype, device = device }) end
local function bare(dtype, device) return mr.ones({}, { dtype = dtype, device = device }) end

-- Calls check(first, second, expected dtype, text) for all pairs of both places.
local function for_all_pairs(check)
  for _, device in ipairs { "cpu", 0 } do
    for _, a in ipairs(DTYPES) do
      for i, b in ipairs(DTYPES) do
        local text = a .. ", " .. b .. " on " .. device
        check(wide(a, device), wide(b, device), words(WITH_DIMENSIONS[a])[i], "both with dimensions: " .. text)
        check(bare(a, device), bare(b, device), words(WITH_DIMENSIONS[a])[i], "both without: " .. text)
        check(wide(a, device), bare(b, device), words(WITHOUT_DIMENSIONS[a])[i], "second without: " .. text)
        check(bare(b, device), wide(a, device), words(WITHOUT_DIMENSIONS[a])[i], "first without: " .. text)
      end
      for i, number in ipairs(NUMBERS) do
        local text, expected = a .. ", " .. tostring(number) .. " on " .. device, words(BESIDE_NUMBERS[a])[i]
        check(wide(a, device), number, expected, text)
        check(number, wide(a, device), expected, "number first: " .. text)
        check(bare(a, device), number, expected, "without dimensions: " .. text)
      end
    end
  end
end

local function or_f32(dtype) return CATEGORY[dtype] == 2 and dtype or "f32" end

TestPromotion = {}

function TestPromotion:test_of_operations_that_keep_the_type()
  for_all_pairs(function(x, y, expected, text)
    for _, name in ipairs { "add", "mul", "maximum", "minimum" } do
      lu.assertEquals(mr[name](x, y).dtype, expected, name .. ": " .. text)
    end
    if expected ~= "bool" then
      for _, name in ipairs { "sub", "pow", "remainder" } do
        lu.assertEquals(mr[name](x, y).dtype, expected, name .. ": " .. text)
      end
    end
  end)
end

function TestPromotion:test_of_division_and_comparison()
  for_all_pairs(function(x, y, expected, text)
    lu.assertEquals(mr.div(x, y).dtype, or_f32(expected), "div: " .. text)
    for _, name in ipairs { "eq", "ne", "lt", "le", "gt", "ge" } do
      lu.assertEquals(mr[name](x, y).dtype, "bool", name .. ": " .. text)
    end
  end)
end

function TestPromotion:test_of_three_inputs()
  for_all_pairs(function(x, y, expected, text)
    local tensor = type(x) == "userdata" and x or y
    local condition = mr.ones(2, { dtype = "bool", device = tensor.device })
    lu.assertEquals(mr.where(condition, x, y).dtype, expected, "where: " .. text)
    lu.assertEquals(mr.lerp(x, y, 1).dtype, or_f32(expected), "lerp: " .. text)
    if type(x) == "userdata" and expected ~= "bool" then
      lu.assertEquals(mr.clamp(x, y).dtype, expected, "clamp, least: " .. text)
      lu.assertEquals(mr.clamp(x, nil, y).dtype, expected, "clamp, greatest: " .. text)
      lu.assertEquals(mr.clamp(x, y, y).dtype, expected, "clamp: " .. text)
    end
  end)
  local condition = mr.tensor { true, false }
  for _, c in ipairs { { true, false, "bool" }, { 1, 2, "i64" }, { true, 2, "i64" }, { 1, 0.5, "f32" } } do
    lu.assertEquals(mr.where(condition, c[1], c[2]).dtype, c[3])
  end
  local u = mr.ones(2, { dtype = "u8", device = "cpu" })
  lu.assertEquals(u:clamp(bare("i32", "cpu"), 7).dtype, "u8")
  lu.assertEquals(u:clamp(wide("i32", "cpu"), bare("f64", "cpu")).dtype, "f64")
end

-- In place, a result of a higher category cannot be kept, any other can.
function TestPromotion:test_in_place()
  for_all_pairs(function(x, y, expected, text)
    if type(x) ~= "userdata" or (x.ndim == 0 and type(y) == "userdata" and y.ndim > 0) then return end
    local own = x.dtype
    local ok, problem = pcall(x.add_, x, y)
    lu.assertEquals(ok, CATEGORY[expected] <= CATEGORY[own], "add_: " .. text)
    lu.assertEquals(x.dtype, own, text)
    if not ok then lu.assertStrContains(tostring(problem), expected) end
  end)
end

-- The computed values, and not only their type's name.
function TestPromotion:test_values_are_those_of_the_result_type()
  for _, device in ipairs { "cpu", 0 } do
    local function of(values, dtype) return mr.tensor(values, { dtype = dtype, device = device }) end
    local tenth = 0.1
    local single = of({ tenth }, "f32"):to("f64"):item()
    lu.assertEquals((of({ 0, 0 }, "f32") + of(tenth, "f64")):to("f64")[1]:item(), single)
    lu.assertEquals(of({ tenth, 0 }, "f32"):eq(of(tenth, "f64")):totable(), { true, false })
    lu.assertEquals((of({ 1, 2 }, "u8") + of(300, "i32")):totable(), { (1 + 300) % 256, (2 + 300) % 256 })
    lu.assertEquals((of({ 1, 2 }, "u8") + 300):totable(), { (1 + 300) % 256, (2 + 300) % 256 })
    lu.assertEquals((of({ 1, 2 }, "u8") + of({ 300, 300 }, "i32")):totable(), { 301, 302 })
    lu.assertEquals((of({ 1, 2 }, "i32") + of(0.5, "f64")):totable(), { 1.5, 2.5 })
    lu.assertEquals(of({ true, false }, "bool"):add(true):totable(), { true, true })
    lu.assertEquals(of({ true, false }, "bool"):add_(true):totable(), { true, true })
    lu.assertEquals(of({ true, false }, "bool"):add(1):totable(), { 2, 1 })
    lu.assertEquals(of({ true, false }, "bool"):mul(false):totable(), { false, false })
    lu.assertEquals(of({ 44, 200 }, "u8"):eq(300):totable(), { false, false })
    lu.assertEquals(of({ 44, 200 }, "u8"):lt(300):totable(), { true, true })
    lu.assertEquals((2.0 ^ of({ 1, 3 }, "i32")):totable(), { 2.0, 8.0 })
    -- Halves are computed in f32 and rounded once: a number beside them is not rounded before.
    local half_of_tenth = of(tenth, "f16"):item()
    lu.assertTrue(half_of_tenth ~= tenth and half_of_tenth ~= single)
    lu.assertEquals((of({ 1000 }, "f16") * tenth):totable(), { of(1000 * single, "f16"):item() })
    lu.assertEquals(of({ tenth, 0 }, "f16"):eq(tenth):totable(), { true, false })
    lu.assertEquals(of({ tenth, 0 }, "bf16"):lt(tenth):totable(), { false, true })
    lu.assertEquals(of({ 65504, 1 / 0 }, "f16"):eq(100000):totable(), { false, false })
    lu.assertEquals((of({ 60000 }, "f16") + of({ 60000 }, "f16")):totable(), { 1 / 0 })
    lu.assertEquals((of({ 60000 }, "f16") + of({ 60000 }, "bf16")):totable(), { 60000 + 59904.0 })
  end
end

-- A result that is one of the inputs must not be another number than the one that was written.
function TestPromotion:test_a_number_that_the_type_does_not_hold_is_not_chosen()
  local u = mr.tensor({ 1, 250 }, { dtype = "u8" })
  local condition = mr.tensor { true, false }
  for name, call in pairs {
    clamp = function() return u:clamp(0, 300) end,
    ["clamp "] = function() return u:clamp(-1, 3) end,
    minimum = function() return u:clamp(nil, 300) end,
    maximum = function() return mr.maximum(u, -1) end,
    where = function() return mr.where(condition, u, 256) end,
    clamp_ = function() return u:clamp_(0, 256) end,
  } do
    local ok, problem = pcall(call)
    lu.assertFalse(ok, name)
    lu.assertStrContains(problem, "which cannot represent")
    lu.assertStrContains(problem, 'x:to("i32")')
  end
  lu.assertEquals(u:clamp(2, 255):totable(), { 2, 250 })
end

-- PyTorch has no mean, norm, var and std of integers; here they are f32. Its any and all of u8 are u8, for
-- compatibility with its own past; here they are bool, as of all other types.
function TestPromotion:test_of_reductions()
  local expected = {
    sum = { "i64", "i64", "i64", "i64", "f32", "f64", "f16", "bf16" },
    max = DTYPES, min = DTYPES,
    any = { "bool", "bool", "bool", "bool", "bool", "bool", "bool", "bool" },
    argmax = { "i64", "i64", "i64", "i64", "i64", "i64", "i64", "i64" },
    mean = { "f32", "f32", "f32", "f32", "f32", "f64", "f16", "bf16" },
  }
  expected.prod, expected.all, expected.argmin = expected.sum, expected.any, expected.argmax
  expected.norm, expected.var, expected.std = expected.mean, expected.mean, expected.mean
  for _, device in ipairs { "cpu", 0 } do
    for name, dtypes in pairs(expected) do
      for i, dtype in ipairs(DTYPES) do
        lu.assertEquals(mr[name](wide(dtype, device)).dtype, dtypes[i], name .. " of " .. dtype)
        lu.assertEquals(mr[name](wide(dtype, device), 1).dtype, dtypes[i], name .. " along a dim of " .. dtype)
      end
    end
  end
end

function TestPromotion:test_of_what_is_joined_and_added_to_a_product()
  for i, dtype in ipairs(DTYPES) do
    lu.assertEquals(mr.cat({ wide("i32"), wide(dtype) }).dtype, words(WITH_DIMENSIONS.i32)[i])
    lu.assertEquals(mr.stack({ bare("i32"), bare(dtype) }).dtype, words(WITH_DIMENSIONS.i32)[i])
  end
  local a = mr.ones(2, 2)
  lu.assertEquals(bare("f64"):addmm(a, a).dtype, "f32")
  lu.assertErrorMsgContains("but the product is f32", function() return wide("f64"):addmm(a, a) end)
end

os.exit(lu.LuaUnit.run())
