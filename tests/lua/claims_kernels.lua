-- Random kernels against two conditions of a claim: "in whatever order its threads run" and "wherever memory lies".
-- Each kernel is launched four times: its threads in both orders, its tensors at two places. Where the values differ,
-- the verdict must have the condition. The order is turned round by the kernel: thread t does what thread 63 - t did.
--
-- MR_CLAIMS_KERNELS sets how many (160), MR_CLAIMS_FIRST the first seed; with MR_CLAIMS_SHOW each mistake is printed at
-- once, and what the kernels were like at the end.
-- timeout: 300
-- virtual only: the places of tensors and the order of threads are those of the virtual GPU
-- not checked: the checker is what is tested
local lu = require "luaunit"
local mr = require "millrace"

local COUNT = tonumber(os.getenv("MR_CLAIMS_KERNELS")) or 160
local FIRST = tonumber(os.getenv("MR_CLAIMS_FIRST")) or 1
local SHOW = os.getenv("MR_CLAIMS_SHOW")
local BATCH = 40 -- kernels of one module

local function pick(list) return list[math.random(#list)] end

-- Expressions. With depth 0 only leaves.
local integer, real, wide
local is_alone = false -- in a branch that not all threads take: no barrier, no exchange with other lanes

local ATOMICS = { "atomicAdd", "atomicMin", "atomicMax", "atomicAnd", "atomicOr", "atomicXor", "atomicExch",
  "atomicSub" }

local function index() return pick { "t", "t & 3", "(t * 3) & 63", tostring(math.random(0, 63)), "t ^ 1" } end

function wide(depth)
  local p = pick { "x", "y", "z", "l" }
  return pick {
    function() return ("(long long)%s"):format(p) end,
    function() return ("(long long)%s"):format(p) end,
    function() return ("(long long)(%s + t)"):format(p) end,
    function() return "clock64()" end,
    function() return ("(long long)(%s)"):format(integer(depth - 1)) end,
    function() return ("(%s - %s)"):format(wide(depth - 1), wide(depth - 1)) end,
    function() return ("(%s >> %d)"):format(wide(depth - 1), math.random(0, 12)) end,
    function() return ("(%s & %d)"):format(wide(depth - 1), 1 << math.random(4, 14)) end,
  }()
end

function integer(depth)
  if depth <= 0 then return pick { "t", "n", "z[t]", tostring(math.random(-9, 9)) } end
  return pick {
    function() return integer(0) end,
    function()
      return ("(%s %s %s)"):format(integer(depth - 1), pick { "+", "-", "*", "&", "^" }, integer(depth - 1))
    end,
    function() return ("(int)(%s)"):format(real(depth - 1)) end,
    function() return math.random(3) == 1 and ("(int)(%s)"):format(wide(depth - 1)) or integer(depth - 1) end,
    function() return math.random(3) == 1 and ("__popcll(%s)"):format(wide(depth - 1)) or integer(depth - 1) end,
    function() return math.random(3) == 1 and ("__float_as_int(%s)"):format(real(depth - 1)) or integer(depth - 1) end,
    function() return ("(%s %s %s)"):format(real(depth - 1), pick { "<", ">=", "==" }, real(depth - 1)) end,
    function() return is_alone and "t" or ("__shfl_sync(-1, %s, turned ? 26 : 5)"):format(integer(0)) end,
    function()
      local condition, was = integer(depth - 1), is_alone
      is_alone = true
      local text = ("(%s ? %s : %s)"):format(condition, integer(depth - 1), integer(0))
      is_alone = was
      return text
    end,
    function()
      if math.random(2) == 1 then return integer(depth - 1) end
      return ("%s(&a[%s], %s)"):format(pick(ATOMICS), index(), integer(0))
    end,
  }()
end

function real(depth)
  if depth <= 0 then return pick { "x[t]", "y[t]", "0.1f", "1.5f", "(n * 0.3f)" } end
  return pick {
    function() return real(0) end,
    function() return ("(%s %s %s)"):format(real(depth - 1), pick { "+", "-", "*" }, real(depth - 1)) end,
    function() return ("(float)(%s)"):format(integer(depth - 1)) end,
    function() return math.random(3) == 1 and ("(float)%s"):format(wide(depth - 1)) or real(depth - 1) end,
    function() return ("sqrtf(fabsf(%s))"):format(real(depth - 1)) end,
    function() return ("fminf(%s, %s)"):format(real(depth - 1), real(depth - 1)) end,
    function() return ("s[t ^ %d]"):format(math.random(0, 63)) end,
  }()
end

local function statement(depth)
  return pick {
    function() return ("y[t] = %s;"):format(real(depth)) end,
    function() return ("y[t] += %s;"):format(real(depth)) end,
    function() return ("z[t] = %s;"):format(integer(depth)) end,
    function() return ("l[t] = %s;"):format(math.random(4) == 1 and wide(depth) or integer(depth)) end,
    function() return ("%s(&a[%s], %s);"):format(pick(ATOMICS), index(), integer(depth - 1)) end,
    function() return ("atomicAdd(&b[%s], %s);"):format(index(), real(depth - 1)) end,
    function()
      local condition, was = integer(depth - 1), is_alone
      is_alone = true
      local text = ("if (%s) { %s }"):format(condition, statement(depth - 1))
      is_alone = was
      return text
    end,
    function()
      if is_alone then return "y[t] = 1;" end
      return ("__syncthreads(); s[t] = %s; __syncthreads();"):format(real(depth - 1))
    end,
    function()
      return ("{ long long k[2] = {0, 0}; k[n & 1] = %s; y[t] += (float)(k[0] & 1023); }"):format(
        math.random(3) == 1 and wide(depth - 1) or integer(depth - 1))
    end,
  }()
end

local function source(seed)
  math.randomseed(seed)
  local body = {}
  for i = 1, math.random(3) do body[i] = "  " .. statement(math.random(3)) end
  return ([[
extern "C" __global__ void k%d(float *y, int *z, long long *l, int *a, float *b, const float *x, int n, int turned) {
  __shared__ float s[64];
  int t = turned ? 63 - threadIdx.x : threadIdx.x;
  s[t] = x[t]; __syncthreads();
%s
}
]]):format(seed, table.concat(body, "\n"))
end

-- Tensors at two places; `values` are what each launch begins with.
local values, places = {}, { {}, {} }
local DTYPES = { "f32", "i32", "i64", "i32", "f32", "f32" }
for i, dtype in ipairs(DTYPES) do values[i] = mr.arange(64, {dtype = dtype}) end
values[6]:mul_(0.37)
for _, place in ipairs(places) do
  for i, t in ipairs(values) do place[i] = t:clone() end
  place.gap = mr.empty(12345, {dtype = "u8"})
end

-- The values after a launch, and what the checker says.
local function launch(kernel, turned, place)
  local y, z, l, a, b, x = table.unpack(places[place])
  for i, t in ipairs(values) do places[place][i]:copy_(t) end
  mr.synchronize()
  local reports, totals = mr.hazard.check(function() kernel[{ 1, 64 }](y, z, l, a, b, x, 3, turned) end)
  local was = {}
  for i = 1, 5 do was[i] = table.concat(places[place][i]:totable(), " ") end
  return table.concat(was, "\n"), #reports == 0 and totals.claim ~= "none" and totals
end

local function judge(kernel)
  local first, totals = launch(kernel, 0, 1)
  if not totals then return nil, "not claimed" end
  local by_order, by_place = first ~= launch(kernel, 1, 1), first ~= launch(kernel, 0, 2)
  local wrong = by_order and totals.order_of_threads == 0 and "order_of_threads" or
    by_place and totals.addresses_as_numbers == 0 and "addresses_as_numbers"
  return wrong, (by_order and "order " or "") .. (by_place and "place " or "") ..
    (totals.order_of_threads > 0 and "(order) " or "") .. (totals.addresses_as_numbers > 0 and "(place)" or "")
end

TestKernels = {}

function TestKernels.test_what_differs_is_a_condition()
  local found, tally = {}, {}
  for first = FIRST, FIRST + COUNT - 1, BATCH do
    local texts = {}
    for seed = first, math.min(first + BATCH, FIRST + COUNT) - 1 do texts[#texts + 1] = source(seed) end
    local module = mr.module(table.concat(texts))
    for i = 1, #texts do
      local name = "k" .. first + i - 1
      local wrong, kind = coroutine.wrap(judge)(module:get(name)) -- no report needs the variables of this file
      tally[kind] = (tally[kind] or 0) + 1
      if wrong then
        found[#found + 1] = wrong .. ": " .. texts[i]
        if SHOW then print(found[#found]) end
      end
    end
  end
  if SHOW then for kind, count in pairs(tally) do print(count, kind) end end
  lu.assertEquals(#found, 0, found[1])
end

os.exit(lu.LuaUnit.run())
