-- Every elementwise row beside PyTorch's CPU operation, for each dtype, with hostile arguments
-- (data/elementwise_values.py), on the host and on the device, and from memory in each layout.
local lu = require "luaunit"
local mr = require "millrace"

local PATH = (arg and arg[0] or ""):match "^(.*)tests/" or ""
local FLOAT = { f16 = true, bf16 = true, f32 = true, f64 = true }
-- Bits of the significand, exponents of the least normal number, and the greatest number.
local DIGITS = { f16 = 11, bf16 = 8, f32 = 24, f64 = 53 }
local LEAST = { f16 = -14, bf16 = -126, f32 = -126, f64 = -1022 }
local GREATEST = { f16 = 65504.0, bf16 = 0x1.fep127, f32 = 0x1.fffffep127, f64 = math.huge }

-- The largest distance of a result from PyTorch's in f64, in units of the last place. It is half a unit for the last
-- rounding, plus the page's bound for the computation, which is in f32 for the half types.
local WIDE = { f16 = 0.502, bf16 = 0.51, f32 = 2, f64 = 4 }

-- gelu of f32 is a product of many factors.
local WIDE_GELU = { f32 = 3.6 }

local NAMED = { ["true"] = true, ["false"] = false, inf = math.huge, ["-inf"] = -math.huge, nan = 0 / 0 }
local function value(word)
  local v = NAMED[word]
  if v == nil then v = tonumber(word) end
  return v
end

local function read_cases()
  local file <close> = assert(io.open(PATH .. "tests/lua/data/elementwise_values.txt"))
  local inputs, cases = {}, {}
  for line in file:lines() do
    local head, tail = line:match "^(.-) : (.*)$"
    local words, values = {}, {}
    for word in head:gmatch "%S+" do words[#words + 1] = word end
    for word in tail:gmatch "%S+" do values[#values + 1] = value(word) end
    if words[1] == "input" then
      inputs[words[2]] = inputs[words[2]] or {}
      inputs[words[2]][words[3]] = values
    else
      cases[#cases + 1] = { row = words[1], dtype = words[2], result = words[3], way = words[4],
        arguments = table.move(words, 5, #words, 1, {}), values = values }
    end
  end
  return inputs, cases
end

local INPUTS, CASES = read_cases()

local function unit_in_the_last_place(dtype, x)
  local magnitude = math.abs(x)
  local exponent = magnitude > 0 and math.floor(math.log(magnitude, 2)) or LEAST[dtype]
  if 2.0 ^ exponent > magnitude then exponent = exponent - 1 end
  return 2.0 ^ (math.max(exponent, LEAST[dtype]) - DIGITS[dtype] + 1)
end

local function is_nan(x) return x ~= x end

-- Whether `got`, a value of the dtype, is what `expected` should become in it.
local function agrees(case, got, expected)
  if not FLOAT[case.result] then return got == expected end
  if is_nan(expected) or is_nan(got) then return is_nan(expected) and is_nan(got) end
  if case.way == "exact" then
    return got == expected and (got ~= 0 or 1 / got == 1 / expected or case.row == "relu" or case.row == "maximum"
      or case.row == "minimum" or case.row == "sign")
  end
  if got == expected then return true end
  local unit = unit_in_the_last_place(case.result, expected)
  if math.abs(got) == math.huge then
    return got * expected > 0 and math.abs(expected) >= GREATEST[case.result] - 2 * unit
  end
  if math.abs(expected) == math.huge then return got == expected end
  local wide = case.row == "gelu" and WIDE_GELU[case.result] or WIDE[case.result]
  return math.abs(got - expected) <= wide * unit
end

-- ------------------------------------------------------------------ layouts

-- A list as a 1-D tensor that lies in memory in some way; all have the same elements.
local LAYOUTS = {
  dense = function(list, options) return mr.tensor(list, options) end,
  every_second = function(list, options)
    local wide = {}
    for i, v in ipairs(list) do wide[2 * i - 1], wide[2 * i] = v, list[1] end
    return mr.tensor(wide, options):view(#list, 2):select(2, 1)
  end,
  inside = function(list, options)
    local longer = { list[1] }
    for i, v in ipairs(list) do longer[i + 1] = v end
    return mr.tensor(longer, options):narrow(1, 2, #list)
  end,
}

-- The arguments as tensors: dim k of the broadcast shape belongs to the k-th list.
local function arguments_of(case, layout, device)
  local lists, given, dim = 0, {}, 0
  for _, a in ipairs(case.arguments) do if not value(a) then lists = lists + 1 end end
  for i, a in ipairs(case.arguments) do
    local number = value(a)
    if number then
      given[i] = number == math.floor(number) and math.tointeger(number) or number
    else
      dim = dim + 1
      local t = LAYOUTS[layout](INPUTS[case.dtype][a], { dtype = case.dtype, device = device })
      if lists > 1 then t = dim == 1 and t:unsqueeze(2) or t:unsqueeze(1) end
      given[i] = t
    end
  end
  return given
end

local function describe(case, layout, device, position, got, expected)
  return ("%s(%s) of %s, %s on %s, result %d: got %s, expected %s"):format(case.row,
    table.concat(case.arguments, ", "), case.dtype, layout, device, position, tostring(got), tostring(expected))
end

local function flat(t)
  return t:to("f64" == t.dtype and "f64" or t.dtype):cpu():flatten():totable()
end

local function check_values(case, t, layout, device)
  lu.assertEquals(t.dtype, case.result, case.row .. " of " .. case.dtype)
  local got = flat(t)
  lu.assertEquals(#got, #case.values)
  for i, expected in ipairs(case.values) do
    if not agrees(case, got[i], expected) then error(describe(case, layout, device, i, got[i], expected), 0) end
  end
end

local function call(case, given)
  local method = given[1][case.row]
  if not method then error("there is no row " .. case.row, 0) end
  return method(table.unpack(given))
end

TestElementwiseValues = {}

for layout in pairs(LAYOUTS) do
  for _, device in ipairs { "cpu", 0 } do
    TestElementwiseValues["test_" .. layout .. "_on_" .. device] = function()
      local wrong = {}
      for _, case in ipairs(CASES) do
        local ok, message = pcall(function()
          check_values(case, call(case, arguments_of(case, layout, device)), layout, device)
        end)
        if not ok then wrong[#wrong + 1] = tostring(message) end
      end
      if #wrong > 0 then
        lu.fail(#wrong .. " of " .. #CASES .. " cases differ:\n" .. table.concat(wrong, "\n", 1, math.min(#wrong, 40)))
      end
    end
  end
end

-- The whole file in small and in transposed forms: one element, none, and columns first.
function TestElementwiseValues.test_other_shapes()
  for _, case in ipairs(CASES) do
    local given = arguments_of(case, "dense", 0)
    local whole = call(case, given)
    if #case.arguments == 2 and not value(case.arguments[2]) then
      local swapped = call(case, { given[1]:t(), given[2]:t() })
      lu.assertTrue(mr.allclose(swapped:t():to("f64"), whole:to("f64"), { rtol = 0, atol = 0, equal_nan = true }),
        case.row .. " of transposed " .. case.dtype)
    end
    local none, one = {}, {}
    for i, a in ipairs(given) do
      none[i] = type(a) == "userdata" and a:narrow(a:size(1) > 1 and 1 or a.ndim, 1, 0) or a
      one[i] = type(a) == "userdata" and a:flatten():narrow(1, 1, 1):reshape({}) or a
    end
    if #given == 1 or type(given[2]) ~= "userdata" then lu.assertEquals(call(case, none).numel, 0) end
    local single = call(case, one)
    lu.assertEquals(single.ndim, 0)
    local got, expected = single:item(), case.values[1]
    if not agrees(case, got, expected) then error(describe(case, "one element", 0, 1, got, expected), 0) end
  end
end

os.exit(lu.LuaUnit.run())
