-- timeout: 120
-- mr.elementwise: every form of a call gives the result of a loop over the elements.
local lu = require "luaunit"
local mr = require "millrace"
local T = require "millrace.testing"

local function failure(fn, ...)
  local ok, err = pcall(fn, ...)
  lu.assertFalse(ok, "expected an error")
  lu.assertStrMatches(tostring(err), "tests/lua/elementwise%.lua:%d+: .*", 1, nil, tostring(err))
  return (tostring(err):gsub("^.-:%d+: ", "", 1))
end

local function assert_fails(expected, fn, ...)
  local message = failure(fn, ...)
  lu.assertStrContains(message, expected, false, false, message)
end

local saxpy = mr.elementwise("float a, float x, float y -> float z", "z = a * x + y", "saxpy")

-- ---------------------------------------------------------------- values

TestValues = {}

function TestValues.test_new_tensors_and_given_ones()
  local x, y = mr.arange(10, {dtype = "f32"}), mr.ones(10)
  local right = x * 3 + 1
  local z = saxpy(3, x, y)
  lu.assertTrue(mr.equal(z, right))
  lu.assertEquals(z.dtype, "f32")
  local out = mr.zeros(10)
  lu.assertTrue(rawequal(saxpy(3, x, y, {out = out}), out))
  lu.assertTrue(mr.equal(out, right))
  saxpy(3, x, y, {out = { z = out }})
  saxpy(3, x, y, {out = { out }})
  saxpy(3, x, y, {out = y}) -- in place
  lu.assertTrue(mr.equal(y, right))
end

function TestValues.test_several_outputs_and_all_types()
  local f = mr.elementwise("double d, long long l, unsigned char u, bool b, int k, float f" ..
    " -> float s, long long m, bool c, unsigned char w, double e, int r",
    "s = d + f; m = l * k; c = !b && u > 3; w = u * 2; e = d / 4; r = k % 5")
  local n = 7
  local function ramp(dtype) return mr.arange(n, {dtype = dtype}) end
  local b = ramp("i32"):eq(2)
  local s, m, c, w, e, r = f(ramp("f64"), ramp("i64"), ramp("u8"), b, ramp("i32"), ramp("f32"))
  lu.assertEquals(s:totable(), { 0, 2, 4, 6, 8, 10, 12 })
  lu.assertEquals(m:totable(), { 0, 1, 4, 9, 16, 25, 36 })
  lu.assertEquals(c:totable(), { false, false, false, false, true, true, true })
  lu.assertEquals(w:totable(), { 0, 2, 4, 6, 8, 10, 12 })
  lu.assertEquals(e:totable(), { 0, 0.25, 0.5, 0.75, 1, 1.25, 1.5 })
  lu.assertEquals(r:totable(), { 0, 1, 2, 3, 4, 0, 1 })
  -- All by value: one element.
  s, m, c, w, e, r = f(0.5, 1 << 40, 255, true, 3, 0.25)
  lu.assertEquals({ s:item(), m:item(), c:item(), w:item(), e:item(), r:item() },
    { 0.75, 3 << 40, false, 254, 0.125, 3 })
end

-- Inputs are floats, and what is assigned is rounded once: in f16, 0.1 * 3 + 1 would be 1.2998 if each step were.
function TestValues.test_halves_are_computed_in_float()
  for dtype, word in pairs { f16 = "__half", bf16 = "__nv_bfloat16" } do
    local f = mr.elementwise(("float a, %s x, %s y -> %s z, float w"):format(word, word, word),
      "z = a * x + y; w = a * x + y")
    local x, y = mr.rand(6, 50, {dtype = dtype}), mr.rand(50, {dtype = dtype})
    local z, w = f(3.7, x, y)
    lu.assertEquals({ z.dtype, w.dtype }, { dtype, "f32" })
    lu.assertTrue(mr.equal(z, w:to(dtype)))
    local wide = x:to("f64") * 3.7 + y:to("f64")
    lu.assertTrue(mr.allclose(w:to("f64"), wide, {rtol = 1e-6, atol = 0}))
    lu.assertTrue(mr.equal(f(3.7, x:t():contiguous():t(), y), z))
    local number = f(3.7, 0.1, y)
    lu.assertTrue(mr.allclose(number:to("f64"), y:to("f64") + 0.37, {rtol = 2.0 ^ -8, atol = 0}))
    assert_fails("expected a tensor of " .. dtype, f, 1, mr.zeros(50), y)
  end
  local fill = mr.elementwise("float x -> __half z", "if (x > 0) z = x")
  local z = mr.full({ 3 }, 7, {dtype = "f16"})
  fill(mr.tensor { 1.5, -1.0, 70000.0 }, {out = z})
  lu.assertEquals(z:totable(), { 1.5, 7.0, math.huge })
end

function TestValues.test_the_position_and_the_number_of_elements()
  local f = mr.elementwise("-> int at, int count", "at = i; count = n")
  local at, count = mr.zeros(3, 4, {dtype = "i32"}), mr.zeros(3, 4, {dtype = "i32"})
  f({out = { at, count }})
  lu.assertEquals(at:view(12):totable(), { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 })
  lu.assertEquals(count:sum():item(), 144)
  f({out = { at:t(), count:t() }}) -- the position is that in the result, not in memory
  lu.assertEquals(at:t():contiguous():view(12):totable(), { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 })
end

function TestValues.test_a_statement_may_leave_outputs_alone_and_return()
  local f = mr.elementwise("float x -> float y", "if (x < 2) return; y += x; // and nothing else")
  local y = mr.ones(4)
  f(mr.arange(4, {dtype = "f32"}), {out = y})
  lu.assertEquals(y:totable(), { 1, 1, 3, 4 })
end

function TestValues.test_statements_of_several_lines_functions_and_options()
  local f = mr.elementwise("float x -> float y", [[
    float sum = 0;
    for (int k = 1; k <= TERMS; k++) sum += powf(x, k);
    y = sum]], {name = "series", options = { "-DTERMS=3" }})
  lu.assertEquals(f(mr.tensor({ 1, 2, 3 }, {dtype = "f32"})):totable(), { 3, 14, 39 })
end

function TestValues.test_empty_tensors_and_single_elements()
  lu.assertEquals(saxpy(1, mr.zeros(0), 1).shape, { 0 })
  lu.assertEquals(saxpy(1, mr.zeros(0, 3), mr.zeros(1, 3)).shape, { 0, 3 })
  local z = saxpy(2, 3, 4)
  lu.assertEquals(z.ndim, 0)
  lu.assertEquals(z:item(), 10)
  lu.assertEquals(saxpy(2, mr.ones(1, 1), mr.ones(1)).shape, { 1, 1 })
  lu.assertEquals(saxpy(2, 3, 4, {out = mr.zeros(2, 2)}):totable(), { { 10, 10 }, { 10, 10 } })
end

-- ---------------------------------------------------------------- shapes and strides, at random

TestForms = {}

local function random_view(shape)
  local full, kind = {}, math.random(5)
  for d = 1, #shape do full[d] = shape[d] end
  if kind == 1 and #shape >= 2 then -- transposed
    full[1], full[2] = full[2], full[1]
    return mr.randn(full):transpose(1, 2)
  elseif kind == 2 and #shape >= 1 then -- a part of a larger tensor
    local d, more = math.random(#shape), math.random(3)
    full[d] = full[d] + more
    return mr.randn(full):narrow(d, 1 + math.random(0, more), shape[d])
  elseif kind == 3 and #shape >= 1 then -- every element of a dim is the same one
    local d = math.random(#shape)
    full[d] = 1
    return mr.randn(full):expand(shape)
  end
  return mr.randn(full)
end

-- A shape that broadcasts to `shape`.
local function narrower(shape)
  local result = {}
  for d = math.random(1, #shape + 1), #shape do result[#result + 1] = math.random(4) == 1 and 1 or shape[d] end
  return result
end

function TestForms.test_random_shapes_views_and_numbers()
  math.randomseed(11)
  mr.manual_seed(11)
  local combine = mr.elementwise("float x, float y, float z -> float sum, double product",
    "sum = x + y + z; product = (double)x * y", "combine")
  for _ = 1, 150 do
    local shape = {}
    for d = 1, math.random(0, 4) do shape[d] = math.random(5) end
    local inputs = { random_view(shape), random_view(narrower(shape)), random_view(narrower(shape)) }
    for k = 2, 3 do
      if math.random(5) == 1 then inputs[k] = math.random(9) end
    end
    for k = 3, 2, -1 do -- in any order
      local j = math.random(k)
      inputs[k], inputs[j] = inputs[j], inputs[k]
    end
    local x, y, z = table.unpack(inputs)
    local function tensor(v) return type(v) == "number" and mr.full({}, v) or v end
    local right_sum = tensor(x) + tensor(y) + tensor(z)
    local right_product = tensor(x):to("f64") * tensor(y):to("f64")
    local sum, product = combine(x, y, z)
    lu.assertTrue(mr.equal(sum, right_sum))
    lu.assertTrue(mr.equal(product, right_product:expand(sum.shape)))
    -- The same into tensors of another layout.
    local a, b = random_view(sum.shape), mr.zeros(sum.shape, {dtype = "f64"})
    local repeated = false
    for d = 1, a.ndim do repeated = repeated or (a.stride[d] == 0 and a:size(d) > 1) end
    if repeated then a = mr.zeros(sum.shape) end
    combine(x, y, z, {out = { a, b }})
    lu.assertTrue(mr.equal(a, sum))
    lu.assertTrue(mr.equal(b, product))
  end
end

function TestForms.test_eight_dims()
  local shape = { 2, 1, 2, 3, 1, 2, 2, 2 }
  local x, y = mr.randn(shape):transpose(1, 8), mr.randn(2, 3, 1, 2, 1, 2):transpose(1, 4)
  lu.assertTrue(mr.equal(saxpy(1, x, y:contiguous()), x + y))
  lu.assertTrue(mr.equal(saxpy(1, x, y), x + y))
end

-- Offsets beyond 31 bits: most of the memory is never touched.
function TestForms.test_offsets_of_more_than_31_bits()
  local copy = mr.elementwise("unsigned char x -> unsigned char y", "y = x + i", "copy")
  local ok, big = pcall(mr.empty, 3, 1 << 30, {dtype = "u8"})
  if not ok then return end
  local column = big:narrow(2, 5, 1):squeeze(2)
  lu.assertEquals(column.stride, { 1 << 30 })
  copy(mr.tensor({ 10, 20, 30 }, {dtype = "u8"}), {out = column})
  lu.assertEquals(column:totable(), { 10, 21, 32 })
  lu.assertEquals(copy(column):totable(), { 10, 22, 34 })
end

function TestForms.test_the_source_is_that_of_a_kernel()
  lu.assertStrContains(saxpy:source(), "z = a * x + y")
  local kernel = mr.kernel(saxpy:source())
  lu.assertEquals(kernel.name, "saxpy")
  lu.assertEquals(kernel:access(), { mr_z = "w", mr_a = "r", mr_x = "r", mr_y = "r" })
  local z = mr.zeros(3)
  kernel[{1, 32}](z, mr.full({ 3 }, 2.0), mr.ones(3), mr.full({ 3 }, 5.0), 3)
  lu.assertEquals(z:totable(), { 7, 7, 7 })
end

-- ---------------------------------------------------------------- streams, devices, hazards

TestPlaces = {}

function TestPlaces.test_streams()
  local s, x = mr.stream{name = "s"}, mr.ones(1000, {name = "x"})
  mr.synchronize()
  T.expect_hazard(function()
    saxpy(2, x, x, {out = x, stream = s})
    x:fill_(1)
    mr.synchronize()
  end, { kind = "write-after-write", tensor = "x" })
  x:fill_(1) -- a GPU may have written them in either order
  mr.synchronize()
  T.expect_clean(function()
    local z = saxpy(2, x, x, {stream = s}) -- the result is allocated on s, too
    mr.with(s, function() lu.assertEquals(z:sum():item(), 3000) end)
    z = mr.with(s, saxpy, 2, x, x)
    mr.with(s, function() lu.assertEquals(z:sum():item(), 3000) end)
    mr.synchronize()
  end)
end

function TestPlaces.test_two_halves_on_two_streams_are_no_hazard()
  local a, b, x = mr.stream(), mr.stream(), mr.ones(1000)
  mr.synchronize()
  T.expect_clean(function()
    saxpy(2, x[{{1, 500}}], 1, {out = x[{{1, 500}}], stream = a})
    saxpy(3, x[{{501, 1000}}], 1, {out = x[{{501, 1000}}], stream = b})
    mr.synchronize()
  end)
  lu.assertEquals(x:sum():item(), 500 * 3 + 500 * 4)
end

function TestPlaces.test_pinned_host_memory()
  local x = mr.ones(5, {pinned = true})
  saxpy(2, x, x, {out = x})
  mr.synchronize()
  lu.assertEquals(x:totable(), { 3, 3, 3, 3, 3 })
end

-- ---------------------------------------------------------------- errors

TestErrors = {}

function TestErrors.test_signatures()
  local function fails(expected, signature) assert_fails(expected, mr.elementwise, signature, "y = x") end
  fails("has no `->`", "float x")
  fails("has no output after `->`", "float x ->")
  fails("`floot y` in \"float x -> floot y\": expected a type and a name", "float x -> floot y")
  fails("expected a type and a name", "float x, -> float y")
  fails("expected a type and a name", "x -> float y")
  fails("is no name", "float 3x -> float y")
  fails("two values in", "float x -> float x")
  fails("choose another name", "float n -> float y")
  fails("choose another name", "float mr_x -> float y")
  assert_fails("argument 1: expected a signature (a string), got nil", mr.elementwise)
  assert_fails("argument 2: expected a statement (a string), got a table", mr.elementwise, "float x -> float y", {})
  assert_fails("the name must be one that C allows for a function, got \"a b\"", mr.elementwise, "float x -> float y",
    "y = x", "a b")
  assert_fails("there is no option `nam`", mr.elementwise, "float x -> float y", "y = x", {nam = "f"})
  assert_fails("expected a name or a table of options, got a number", mr.elementwise, "float x -> float y", "y = x", 3)
end

function TestErrors.test_arguments()
  local x = mr.ones(4)
  assert_fails("saxpy: expected 3 arguments (float a, float x, float y -> float z), got 2", saxpy, 1, x)
  assert_fails("got 4", saxpy, 1, x, x, 3)
  assert_fails("argument 3 (`float y`): expected a tensor of f32 or a number, got a string", saxpy, 1, x, "y")
  assert_fails("expected a tensor of f32 or a number, got a table", saxpy, 1, x, {})
  assert_fails("expected a tensor of f32, got one of f64: t:to(\"f32\") converts it", saxpy, 1, x, x:to("f64"))
  assert_fails("the shape {3} does not broadcast with {4}", saxpy, 1, x, mr.ones(3))
  assert_fails("the tensor is in host memory", saxpy, 1, x, x:cpu())
  local counts = mr.elementwise("int x, bool b, unsigned char u -> int y", "y = x + b + u", "counts")
  assert_fails("argument 1 (`int x`): expected an integer from -2147483648 to 2147483647, got 1.5", counts, 1.5,
    true, 1)
  assert_fails("got 2147483648", counts, 1 << 31, true, 1)
  assert_fails("argument 2 (`bool b`): expected an integer from 0 to 1, got 2", counts, 1, 2, 1)
  assert_fails("argument 3 (`unsigned char u`): expected an integer from 0 to 255, got -1", counts, 1, true, -1)
  local freed = mr.ones(4)
  freed:free()
  assert_fails("was freed", saxpy, 1, x, freed)
end

function TestErrors.test_outputs()
  local x, big = mr.ones(4), mr.zeros(10)
  assert_fails("saxpy: there is no option `outt`", saxpy, 1, x, x, {outt = x})
  assert_fails("expected a tensor or a list of them, got a number", saxpy, 1, x, x, {out = 3})
  assert_fails("expected a tensor of f32 for `float z`, got nil", saxpy, 1, x, x, {out = {}})
  assert_fails("expected a tensor of f32, got one of i32", saxpy, 1, x, x, {out = mr.zeros(4, {dtype = "i32"})})
  assert_fails("its shape is {10}, the result has {4}", saxpy, 1, x, x, {out = big})
  assert_fails("several of its elements are the same one in memory", saxpy, 1, x, x, {out = mr.ones(1):expand(4)})
  assert_fails("overlaps the input `float x` in part", saxpy, 1, big[{{1, 5}}], 1, {out = big[{{3, 7}}]})
  saxpy(1, big[{{1, 5}}], 1, {out = big[{{6, 10}}]})
  local both = mr.elementwise("float x -> float a, float b", "a = x; b = x", "both")
  assert_fails("the outputs `float a` and `float b` share memory", both, x, {out = { big[{{1, 4}}], big[{{1, 4}}] }})
end

function TestErrors.test_statements_that_do_not_compile()
  local made = debug.getinfo(1, "l").currentline + 1
  local f = mr.elementwise("float x -> float y", "y = undefined_name + x", "bad")
  local message = failure(f, mr.ones(3))
  lu.assertStrContains(message, "undefined_name")
  lu.assertStrContains(message,
    ("bad, made at tests/lua/elementwise.lua:%d: its statement cannot be compiled"):format(made))
  assert_fails("cannot be compiled", mr.elementwise("float x -> float y", "}"), 1)
end

-- What a compiler says of the code around the statement names no line of the script.
function TestErrors.test_places_are_those_of_the_statement()
  local f = mr.elementwise("float x, float y -> float z", "int unused;\nz = 1;\nz = w;")
  local ok, err = pcall(f, mr.ones(3), mr.ones(3))
  lu.assertFalse(ok)
  lu.assertStrContains(err, "statement:3:5")
  for place in err:gmatch("\n([^\n]-):%d+:%d+: ") do lu.assertEquals(place, "statement") end
end

function TestErrors.test_fields()
  lu.assertEquals(tostring(saxpy), "elementwise saxpy(float a, float x, float y -> float z)")
  lu.assertEquals(saxpy.name, "saxpy")
  lu.assertEquals(saxpy.signature, "float a, float x, float y -> float z")
  lu.assertEquals(saxpy.statement, "z = a * x + y")
  assert_fails("an elementwise function has no `foo`", function() return saxpy.foo end)
  assert_fails("has no fields that can be assigned", function() saxpy.name = "x" end)
  assert_fails("called on", saxpy.source, 3)
end

TestGradients = {}

function TestGradients.test_no_gradient_is_lost_silently()
  local f = mr.elementwise("float x, float y -> float z", "z = x * y", { derivative = { x = "y * g" } })
  local w = mr.ones(3):requires_grad_()
  assert_fails("argument 2 (`float y`) requires gradients", f, mr.ones(3), w)
  assert_fails("requires gradients", mr.elementwise("float x -> float z", "z = x"), w)
  assert_fails("out= cannot be recorded", f, w, 2, { out = mr.ones(3) })
  lu.assertEquals(mr.no_grad(f, 3, w):totable(), { 3, 3, 3 })
  lu.assertEquals(f(3, w:detach()):totable(), { 3, 3, 3 })
end

function TestGradients.test_derivatives_are_those_of_recorded_operations()
  local f = mr.elementwise("float x, float y, float a -> float z", "z = expf(a * x) * y",
    { derivative = { x = "g * a * z", y = "g * expf(a * x)" } })
  local x, y = mr.rand(4, 3):requires_grad_(), mr.rand(3):requires_grad_()
  local g = mr.rand(4, 3)
  f(x, y, 0.5):backward(g)
  local gx, gy = x.grad, y.grad
  x.grad, y.grad = nil, nil
  ((x * 0.5):exp() * y):backward(g)
  lu.assertTrue(mr.allclose(gx, x.grad, { rtol = 1e-5 }))
  lu.assertTrue(mr.allclose(gy, y.grad, { rtol = 1e-5 }))
  f(mr.rand(4, 3), y, 0.5):sum():backward()
  lu.assertFalse(mr.equal(gy, y.grad))
end

function TestGradients.test_what_a_derivative_can_be()
  local function make(signature, derivative)
    return pcall(mr.elementwise, signature, "z = x", { derivative = derivative })
  end
  local function says(text, ...)
    local ok, message = make(...)
    lu.assertFalse(ok)
    lu.assertStrContains(message, text)
  end
  says("expected a table", "float x -> float z", "g")
  says("for `y`", "float x -> float z", { y = "g" })
  says("is no float", "int x -> int z", { x = "g" })
  says("has 2 outputs", "float x -> float z, float w", { x = "g" })
  says("two values", "float x, float g -> float z", { x = "g" })
end

os.exit(lu.LuaUnit.run())
