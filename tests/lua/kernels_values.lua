-- timeout: 120
-- Values that compilers make with long sequences of instructions or with calls: integers of 128 bits, structures that
-- functions return, sines of huge arguments. Each is compared with a plain computation; through each compiler that this
-- machine has.
local lu = require "luaunit"
local mr = require "millrace"

-- ---------------------------------------------------------------- integers of 128 bits

-- In Lua: {lo, hi}, two integers of 64 bits.

local function less(a, b) return a[2] == b[2] and math.ult(a[1], b[1]) or math.ult(a[2], b[2]) end

local function add(a, b)
  local lo = a[1] + b[1]
  return { lo, a[2] + b[2] + (math.ult(lo, a[1]) and 1 or 0) }
end

local function negative(a) return add({ ~a[1], ~a[2] }, { 1, 0 }) end

local function bit(a, i) return (i < 64 and a[1] >> i or a[2] >> (i - 64)) & 1 end

local function multiply(a, b)
  local product = { 0, 0 }
  for i = 127, 0, -1 do
    product = add(product, product)
    if bit(b, i) == 1 then product = add(product, a) end
  end
  return product
end

-- Unsigned: quotient, remainder; one bit of the quotient after the other.
local function divide(a, b)
  local quotient, rest = { 0, 0 }, { 0, 0 }
  for i = 127, 0, -1 do
    local is_long = bit(rest, 127) == 1 -- twice the rest has more than 128 bits
    rest = add(add(rest, rest), { bit(a, i), 0 })
    quotient = add(quotient, quotient)
    if is_long or not less(rest, b) then
      rest = add(rest, negative(b))
      quotient = add(quotient, { 1, 0 })
    end
  end
  return quotient, rest
end

-- Rounds towards zero, as C does.
local function divide_signed(a, b)
  local quotient, rest = divide(a[2] < 0 and negative(a) or a, b[2] < 0 and negative(b) or b)
  if (a[2] < 0) ~= (b[2] < 0) then quotient = negative(quotient) end
  return quotient, a[2] < 0 and negative(rest) or rest
end

local MIN = math.mininteger
local HOSTILE = {
  { 0, 0 }, { 1, 0 }, { -1, -1 }, { -1, 0 }, { 0, 1 }, { 1, 1 }, { 0, MIN }, { 1, MIN }, { -1, math.maxinteger },
  { 0xffffffff, 0 }, { 1 << 32, 0 }, { MIN, 0 }, { -1, 0xffffffff }, { 0, 1 << 32 }, { 0, 0xffffffff << 32 },
  { 0, -1 }, { 0xffffffff << 32, -1 }, { -2, -1 }, { 7, 0 }, { 10, 0 }, { MIN, MIN }, { MIN - 1, math.maxinteger },
}

-- With any length: operands of equal length would only give short quotients.
local function random_operand()
  local length, x = math.random(1, 128), { math.random(0), math.random(0) }
  if length <= 64 then x = { x[1] >> (64 - length), 0 } else x[2] = x[2] >> (128 - length) end
  return math.random(4) == 1 and negative(x) or x
end

-- Pairs of operands whose quotients C defines.
local function pairs_of_operands()
  math.randomseed(20261122)
  local list = {}
  local function put(a, b)
    local overflows = a[1] == 0 and a[2] == MIN and b[1] == -1 and b[2] == -1
    if not overflows and (b[1] ~= 0 or b[2] ~= 0) then list[#list + 1] = { a, b } end
  end
  for _, a in ipairs(HOSTILE) do
    for _, b in ipairs(HOSTILE) do put(a, b) end
  end
  for _ = 1, 400 do put(random_operand(), random_operand()) end
  for _ = 1, 100 do -- next to a multiple of the divisor
    local b = random_operand()
    put(add(multiply(random_operand(), b), { math.random(-1, 1), 0 }), b)
  end
  return list
end

local WIDE = [[
typedef unsigned long long word;
typedef unsigned __int128 wide;
__device__ void put(word *y, wide x) { y[0] = (word)x; y[1] = (word)(x >> 64); }

extern "C" __global__ void f(word *y, const word *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  wide a = (wide)x[4 * i + 1] << 64 | x[4 * i], b = (wide)x[4 * i + 3] << 64 | x[4 * i + 2];
  BODY
}]]

-- Carries BODY out for each pair, and compares with what expected(a, b) returns.
local function check_wide(body, expected)
  local operands, x = pairs_of_operands(), {}
  for _, p in ipairs(operands) do table.move({ p[1][1], p[1][2], p[2][1], p[2][2] }, 1, 4, #x + 1, x) end
  local is_clang = mr.module("__global__ void f() {}").ptx:find("LLVM NVPTX")
  local options = not is_clang and { "--device-int128" } or nil
  local kernel = mr.kernel(WIDE:gsub("BODY", function() return body end), {name = "f", options = options})
  local n, count = #operands, #{ expected({ 1, 0 }, { 1, 0 }) }
  local y = mr.zeros(2 * count * n, {dtype = "i64"})
  kernel[{(n + 63) // 64, 64}](y, mr.tensor(x, {dtype = "i64"}), n)
  local got = y:totable()
  for i, p in ipairs(operands) do
    for k, value in ipairs{ expected(p[1], p[2]) } do
      local at = 2 * (count * (i - 1) + k)
      if got[at - 1] ~= value[1] or got[at] ~= value[2] then
        lu.fail(("result %d of %016x%016x and %016x%016x is %016x%016x, expected %016x%016x"):format(
          k, p[1][2], p[1][1], p[2][2], p[2][1], got[at], got[at - 1], value[2], value[1]))
      end
    end
  end
end

TestWide = {}

function TestWide.test_sums_and_products()
  check_wide([[put(y + 6 * i, a + b); put(y + 6 * i + 2, a - b); put(y + 6 * i + 4, a * b);]], function(a, b)
    return add(a, b), add(a, negative(b)), multiply(a, b)
  end)
end

function TestWide.test_quotients_and_remainders()
  local ok, err = pcall(check_wide, [[
    put(y + 8 * i, a / b); put(y + 8 * i + 2, a % b);
    put(y + 8 * i + 4, (__int128)a / (__int128)b); put(y + 8 * i + 6, (__int128)a % (__int128)b);]],
    function(a, b)
      local quotient, rest = divide(a, b)
      return quotient, rest, divide_signed(a, b)
    end)
  -- clang calls a function for them that no library of a GPU has.
  if not ok and tostring(err):find("__u?divti3") then return lu.skip("clang does not divide integers of 128 bits") end
  if not ok then error(err, 0) end
end

-- ---------------------------------------------------------------- structures as results

local STRUCTURES = [[
#define STRUCTURE(name, type, count)                                                     \
  struct name { type v[count]; };                                                        \
  __device__ __noinline__ name make_##name(int seed) {                                   \
    name r;                                                                              \
    for (int k = 0; k < count; k++) r.v[k] = (type)(seed * 100 + k);                     \
    return r;                                                                            \
  }                                                                                      \
  __device__ __noinline__ name add_##name(name a, name b) {                              \
    for (int k = 0; k < count; k++) a.v[k] += b.v[count - 1 - k];                        \
    return a;                                                                            \
  }
STRUCTURE(two, int, 2)        // 8 bytes
STRUCTURE(three, int, 3)      // 12
STRUCTURE(four, int, 4)       // 16
STRUCTURE(six, int, 6)        // 24
STRUCTURE(ten, int, 10)       // 40
STRUCTURE(wide_three, long long, 3)
STRUCTURE(wide_five, double, 5)
STRUCTURE(bytes, signed char, 13)

struct results { two a; three b; four c; six d; ten e; wide_three f; wide_five g; bytes h; };

#define EACH(X) X(a, two) X(b, three) X(c, four) X(d, six) X(e, ten) X(f, wide_three) X(g, wide_five) X(h, bytes)
#define MAKE(field, name) x.field = make_##name(t);
#define ADD(field, name) if ((lanes >> t & 1) || always) x.field = add_##name(make_##name(1), x.field);
#define STORE(field, name) \
  for (int k = 0; k < (int)(sizeof x.field.v / sizeof *x.field.v); k++) *y++ = (int)x.field.v[k];

extern "C" __global__ void f(int *y, unsigned lanes, bool always) {
  int t = threadIdx.x;
  y += 46 * t;
  results x;
  EACH(MAKE)
  EACH(ADD)
  EACH(STORE)
}]]

TestStructures = {}

-- Each lane has its own results, also where only some lanes call.
function TestStructures.test_each_lane_has_the_results_of_its_own_calls()
  local COUNTS = { 2, 3, 4, 6, 10, 3, 5, 13 }
  local function signed_char(x) return (x + 128) % 256 - 128 end
  local kernel = mr.kernel(STRUCTURES, "f")
  for _, lanes in ipairs{ 0, 0xffffffff, 0x55555555, 0x80000001, 0x0ff00ff0 } do
    local expected = {}
    for t = 0, 31 do
      for which, count in ipairs(COUNTS) do
        for k = 0, count - 1 do
          local x = t * 100 + k
          if lanes >> t & 1 == 1 then x = 100 + k + t * 100 + count - 1 - k end
          expected[#expected + 1] = which == #COUNTS and signed_char(x) or x
        end
      end
    end
    local y = mr.zeros(#expected, {dtype = "i32"})
    kernel[{1, 32}](y, lanes, false)
    lu.assertEquals(y:totable(), expected, ("lanes %x"):format(lanes))
  end
end

-- ---------------------------------------------------------------- huge angles

local ANGLES = {
  f64 = { 1e15, 1e22, 1e300, -1e22, -1e300, 0x1p1023, 1e5, 105615.0, 0.5, 3.0 },
  f32 = { 1e15, 1e22, -1e22, 1e30, 3e38, 0x1p127, 105615.0, 1e5, 0.5, 3.0 },
}
-- The numbers of each format that are nearest to a multiple of pi / 2 (J.-M. Muller, Elementary Functions), with their
-- sine, cosine and tangent to 17 digits (from mpmath): a reduction with too few bits of pi leaves no correct digit. The
-- C library is not exact there.
local HARDEST = {
  f64 = { 6381956970095103 * 2.0 ^ 797, 1, -4.6871659242546276e-19, -2.1334853857537038e18 },
  f32 = { 16367173 * 2.0 ^ 72, 1, -1.6147697982476212e-9, -619283318.95061387 },
}
local C_TYPES = { f64 = "double", f32 = "float" }
local BITS = { f64 = 52, f32 = 23 }

local function check_angles(dtype)
  local kernel = mr.kernel(([[
    extern "C" __global__ void f(T *y, const T *x) {
      int i = threadIdx.x;
      y[3 * i] = sin(x[i]); y[3 * i + 1] = cos(x[i]); y[3 * i + 2] = tan(x[i]);
    }]]):gsub("%f[%w]T%f[%W]", C_TYPES[dtype]), "f")
  local angles, expected = { table.unpack(ANGLES[dtype]) }, {}
  local hardest = HARDEST[dtype]
  for _, sign in ipairs{ 1, -1 } do angles[#angles + 1] = sign * hardest[1] end
  local x = mr.tensor(angles, {dtype = dtype})
  for _, angle in ipairs(x:totable()) do
    local values = { math.sin(angle), math.cos(angle), math.tan(angle) }
    if angle == hardest[1] then values = { hardest[2], hardest[3], hardest[4] } end
    if angle == -hardest[1] then values = { -hardest[2], hardest[3], -hardest[4] } end
    table.move(values, 1, 3, #expected + 1, expected)
  end
  local y = mr.zeros(#expected, {dtype = dtype})
  kernel[{1, #angles}](y, x)
  for i, value in ipairs(y:totable()) do
    local distance, allowed = math.abs(value - expected[i]), 4 * 2.0 ^ -BITS[dtype] * math.abs(expected[i])
    if distance ~= distance or distance > allowed then
      local name = ({ "sin", "cos", "tan" })[(i - 1) % 3 + 1]
      lu.fail(("%s(%.17g) is %.17g, expected %.17g"):format(name, angles[(i + 2) // 3], value, expected[i]))
    end
  end
end

TestAngles = {}

function TestAngles.test_f64() check_angles("f64") end

function TestAngles.test_f32() check_angles("f32") end

function TestAngles.test_infinity_has_no_sine()
  for dtype, ctype in pairs(C_TYPES) do
    local y = mr.zeros(3, {dtype = dtype})
    mr.kernel(([[
      extern "C" __global__ void f(T *y, T x) { y[0] = sin(x); y[1] = cos(x); y[2] = tan(x); }
    ]]):gsub("%f[%w]T%f[%W]", ctype), "f")[{1, 1}](y, math.huge)
    for _, value in ipairs(y:totable()) do lu.assertNaN(value) end
  end
end

require "lua.support.compilers" "tests/lua/kernels_values.lua"

os.exit(lu.LuaUnit.run())
