-- Accesses beyond the operands of a launch: memory that is reached through no tensor, addresses as numbers, accesses
-- that the script declares, and the order of threads. Each program has the count that it must have, and none beside it.
-- virtual only: what leaves its tensor, and accesses that no argument tells, are seen by the interpreter
-- not checked: the checker is what is tested
local lu = require "luaunit"
local mr = require "millrace"

local NAMES = { "pointers_as_data", "strayed", "declared_accesses", "addresses_as_numbers", "order_of_threads",
  "learned" }

-- The counts that are not 0, as "pointers_as_data 2".
local function counts(f)
  mr.synchronize()
  local mode = mr.hazard.mode("collect")
  mr.hazard.clear()
  f()
  mr.synchronize()
  local _, summary = mr.hazard.summary()
  mr.hazard.clear()
  mr.hazard.mode(mode)
  local list = {}
  for _, name in ipairs(NAMES) do
    if summary[name] > 0 then list[#list + 1] = name .. " " .. summary[name] end
  end
  return table.concat(list, ", "), summary.claim
end

local function kernel(parameters, body, options)
  return mr.kernel(("__device__ int g[8]; __global__ void k(%s) { int t = threadIdx.x; %s }"):format(parameters, body),
    options)
end

local function zeros(n, dtype) return mr.zeros(n, { dtype = dtype or "i32" }) end

local function check(expected, k, ...)
  local arguments = table.pack(...)
  local said = counts(function() k[{ 1, 4 }](table.unpack(arguments, 1, arguments.n)) end)
  lu.assertEquals(said, expected)
end

TestReach = {}

function TestReach.test_a_number_added_to_no_tensor()
  local x = zeros(64)
  local at = x.data_ptr // 4
  local k = kernel("int *p, long long d", "p[d + t] += 1;")
  check("pointers_as_data 1", k, nil, at)
  local empty = mr.empty(0, { dtype = "i32" })
  check("pointers_as_data 1", k, empty, at - empty.data_ptr // 4)
  local split = kernel("int *p, long long d, long long e", "p[d * 16 + e + t] += 1;")
  check("pointers_as_data 1", split, nil, at // 16, at % 16)
  check("pointers_as_data 1", kernel("int *p, long long d", "atomicAdd(&p[d + t], 1);"), nil, at)
  lu.assertEquals(x:sum():item(), 16)
  local graph = mr.graph(function() k[{ 1, 4 }](nil, at) end)
  lu.assertEquals(counts(function() graph:launch() end), "pointers_as_data 1")
end

-- It is hidden from the checker: the verdict must not say that the two launches are ordered.
function TestReach.test_nothing_is_claimed_of_it()
  local x, a, b = zeros(64), mr.stream(), mr.stream()
  local k, at = kernel("int *p, long long d", "p[d + t] += 1;"), x.data_ptr // 4
  mr.synchronize()
  local _, claim = counts(function() for _, s in ipairs{ a, b } do k[{ 1, 4, stream = s }](nil, at) end end)
  lu.assertEquals(claim, "none")
end

-- Memory freed in stream order is there until the free is carried out.
function TestReach.test_a_free_that_comes_after()
  local x = zeros(64)
  local list = mr.tensor({ x.data_ptr }, { dtype = "i64" })
  local k = kernel("int **list", "list[0][t] = 1;")
  mr.synchronize()
  lu.assertEquals(counts(function()
    k[{ 1, 4 }](list)
    x:free()
  end), "pointers_as_data 1")
end

function TestReach.test_null_that_is_only_asked_for_is_no_pointer()
  check("", kernel("int *p, const int *bias", "p[t] = bias ? bias[t] : 0;"), zeros(4), nil)
  check("", kernel("int *p, const int *bias, const int *has", "p[t] = has[0] ? bias[t] : 0;"), zeros(4), nil, zeros(1))
  check("", kernel("int *p, long long n", "for (long long i = t; i < n; i += 4) p[i] = 1;"), zeros(64), 64)
end

function TestReach.test_a_variable_is_left()
  local m = mr.module[[
    __device__ int g[4];
    __global__ void k(long long d) { g[d + threadIdx.x] = 1; }
    __global__ void address(long long *o) { *o = (long long)g; }]]
  local o, x = zeros(1, "i64"), zeros(64)
  m:get("address")[{ 1, 1 }](o)
  local d = (x.data_ptr - o:item()) // 4
  m:get("k")[{ 1, 4 }](0)
  mr.synchronize()
  m:get("k")[{ 1, 4 }](d)
  lu.assertErrorMsgContains(" g (16 bytes", mr.synchronize)
  mr.reset()
end

function TestReach.test_packed_memory()
  mr.reset()
  collectgarbage() collectgarbage()
  mr.synchronize()
  mr.machine.settings{ packed_memory = true }
  local x, y = zeros(128), zeros(128)
  local k = kernel("int *p, int n", "p[n + t] = 7;")
  check("", k, x, 64)
  check("strayed 1", k, x, 128)
  lu.assertEquals(y:sum():item(), 28)
  collectgarbage() collectgarbage()
  mr.reset()
  mr.machine.settings{ packed_memory = false }
end

function TestReach.test_declared_accesses()
  local access = { access = { p = "r" } }
  check("", kernel("int *p, int n", "if (n) p[t] = n;", { access = { p = "rw" } }), zeros(4), 1)
  check("declared_accesses 1", kernel("int *p, int n", "if (n) p[t] = n;", access), zeros(4), 0)
  check("strayed 1, declared_accesses 1", kernel("int *p, int n", "if (n) p[t] = n;", access), zeros(4), 1)
  check("", kernel("const int *p, int *o", "o[t] = p[t];", access), zeros(4), zeros(4))
end

TestAddresses = {}

function TestAddresses.test_an_address_decides()
  local o = zeros(4, "i64")
  check("addresses_as_numbers 1", kernel("long long *o, int *p", "o[0] = (long long)p;"), o, zeros(4))
  check("addresses_as_numbers 1", kernel("long long *o, int *p", "o[0] = (int)(long long)p >> 4;"), o, zeros(4))
  check("addresses_as_numbers 1", kernel("int *o, int *p", "o[(long long)p >> 9 & 3] = 1;"), zeros(4), zeros(4))
  check("addresses_as_numbers 1", kernel("int *o, int *p", "if (o < p) o[0] = 1;"), zeros(4), zeros(4))
  check("addresses_as_numbers 1", kernel("int *o, int *p", "o[0] = ((long long)p & 511) == 0;"), zeros(4), zeros(4))
  check("addresses_as_numbers 1", kernel("long long *o", "o[0] = (long long)g;"), o)
end

-- What can be no pointer can still tell where memory lies.
function TestAddresses.test_an_address_becomes_another_number()
  local o, p = zeros(4, "f32"), zeros(4)
  for _, body in ipairs{
    "o[t] = (long long)p / 512 % 1000;", "o[t] = sqrtf((float)(unsigned)(long long)p);",
    "o[t] = __popcll((long long)p);",
    "if ((float)(long long)p > 3e9f) o[t] = 1;", "o[t] = __shfl_sync(-1, (int)(long long)p, 0);",
    "__shared__ float s[4]; s[t] = (long long)p; o[t] = s[t];", "o[t] = __ballot_sync(-1, (float)(long long)p < 1);",
    "double l[4]; l[t] = (long long)p; o[t] = l[t & 2];", "o[t] = (long long)p & 512 ? 0.5f : 2;",
  } do check("addresses_as_numbers 1", kernel("float *o, int *p", body), o, p) end
  check("addresses_as_numbers 1", kernel("int *p", "if (p[t] == 7) printf(\"%p\", p);"), p)
  check("", kernel("int *p", "if (p[t] == 7) printf(\"%d %s\", p[t], \"none\");"), p)
  local opaque = "__noinline__ __device__ void f(long long *o, long long a) { o[0] = a; }"
  local k = mr.kernel(opaque .. [[__global__ void k(long long *o, int *p, int n) {
    void (*g[2])(long long *, long long) = {f, 0}; g[n](o, (long long)p); }]], "k")
  check("pointers_as_data 1, addresses_as_numbers 1", k, zeros(4, "i64"), p, 0)
end

function TestAddresses.test_numbers_beside_addresses()
  check("", kernel("float *o, const float *p, float f", "o[(int)(p[t] * f) & 3] = sqrtf(p[t]) < 2 ? p[t] * f : 1;"),
    zeros(4, "f32"), zeros(4, "f32"), 1.5)
  check("", kernel("float *o, const float *p, int n",
    "float sum = 0; for (const float *q = p + t; q < p + n; q += 4) sum += *q; o[t] = sum;"),
    zeros(4, "f32"), zeros(8, "f32"), 8)
end

function TestAddresses.test_an_address_is_only_used()
  check("", kernel("int *o, int *p, long long n", "o[t] = p[n * t];"), zeros(4), zeros(64), 3)
  check("", kernel("int *o, int *p", "if (p) o[t] = p[t];"), zeros(4), zeros(4))
  check("", kernel("int *p, int n", "for (int *q = p, *end = p + n; q < end; q++) *q = t;"), zeros(4), 0)
  local chosen = kernel("int *o, int *p, int *q, int n", "int *a[2] = {p, q}; o[t] = a[n & 1][t];")
  check("", chosen, zeros(4), zeros(4), zeros(4), 1)
  check("", kernel("int *o, long long n", "o[t] = n > 3 ? (int)n : 0;"), zeros(4), 9)
end

TestOrder = {}

function TestOrder.test_the_order_decides()
  check("order_of_threads 1", kernel("int *o, int *n", "o[atomicAdd(n, 1)] = t;"), zeros(4), zeros(1))
  check("order_of_threads 1", kernel("float *o", "atomicAdd(o, 0.1f * t);"), zeros(1, "f32"))
  check("order_of_threads 1", kernel("int *o", "atomicExch(o, t);"), zeros(1))
  check("order_of_threads 1", kernel("int *o", "atomicAdd(o, t); atomicMax(o, 2);"), zeros(1))
  local of_block = kernel("int *o", "__shared__ int n; n = 0; __syncthreads(); o[t] = atomicAdd(&n, 1);")
  check("order_of_threads 1", of_block, zeros(4))
  check("order_of_threads 1", kernel("long long *o", "o[t] = clock64();"), zeros(4, "i64"))
  check("order_of_threads 1", kernel("int *o", "if (t % 3) o[t] = __activemask();"), zeros(4))
  check("order_of_threads 1", kernel("int *o", "atomicMax(o, -1); atomicMax((unsigned *)o, 1u);"), zeros(1))
end

-- Accesses that do not race, as no barrier has to order them, and yet one comes first.
function TestOrder.test_volatile_accesses_meet()
  for _, body in ipairs {
    "volatile int *v = o; v[0] = t;",
    "volatile int *v = o; v[0] = v[0] + 1;",
    "volatile int *v = o; int seen = v[0]; if (t == 3) v[0] = seen + 5;",
    'asm volatile("st.relaxed.gpu.u32 [%0], %1;" :: "l"(o), "r"(t));',
    'asm volatile("st.release.gpu.u32 [%0], %1;" :: "l"(o), "r"(t));',
    "*(volatile int *)g = t;",
    "atomicAdd(o, 1); o[4 + t] = *(volatile int *)o;",
    [[__shared__ volatile int flag; if (t == 0) flag = 0; __syncthreads();
      if (t == 3) flag = 5;
      o[t] = flag;]],
  } do
    check("order_of_threads 1", kernel("int *o", body), zeros(8))
  end
end

-- A barrier orders them, or they are one thread's.
function TestOrder.test_volatile_accesses_in_order()
  for _, body in ipairs {
    "volatile int *v = o; v[t] = t;",
    "volatile int *v = o; if (t == 0) v[0] = v[0] + 1;",
    "volatile int *v = o; v[t] = t; __syncthreads(); int seen = v[3 - t]; __syncthreads(); v[t] = seen;",
    [[__shared__ volatile int s[4]; s[t] = t; __syncwarp();
      int seen = s[3 - t]; __syncwarp(); s[t] = seen; o[t] = s[t];]],
    "atomicAdd(o, t); __syncthreads(); o[4 + t] = *(volatile int *)o;",
  } do
    check("", kernel("int *o", body), zeros(8))
  end
end

-- The atomic operation that happened to come later has seen the other one: another run may have them the other way.
function TestOrder.test_what_an_unused_update_has_seen()
  check("order_of_threads 1", kernel("int *o", "atomicAdd(o, 1); if (t == 3) o[1] = o[0];"), zeros(2))
  check("order_of_threads 1", kernel("int *o",
    "if (t == 0) o[1] = 5; __threadfence(); atomicAdd(o, 1); __threadfence(); if (t == 3) o[2] = o[1];"), zeros(3))
  check("", kernel("int *o", "__threadfence(); atomicAdd(o, 1); __threadfence(); o[1 + t] = t;"), zeros(8))
end

-- Where nobody looks inside, a kernel that has such accesses counts.
function TestOrder.test_volatile_accesses_that_nobody_has_seen()
  local before = mr.machine.settings().kernel_checks
  mr.machine.settings{ kernel_checks = 1 }
  check("order_of_threads 1", kernel("int *o", "*(volatile int *)(o + t) = t;"), zeros(4))
  check("order_of_threads 1", kernel("int *o", "atomicAdd(o, t); if (!t) o[1] = *(volatile int *)o;"), zeros(4))
  check("", kernel("int *o", "o[t] = *(volatile int *)(o + t);"), zeros(4))
  mr.machine.settings{ kernel_checks = before }
end

function TestOrder.test_the_order_does_not_matter()
  check("", kernel("int *o", "atomicAdd(&o[t & 1], t);"), zeros(4))
  check("", kernel("int *o", "atomicMax(o, t); atomicMax(o + 1, -t);"), zeros(4))
  check("", kernel("int *o", "atomicAdd(&g[0], t); o[t] = 1;"), zeros(4))
end

TestLearned = {}

function TestLearned.test_what_is_asked()
  local x, s = zeros(4), mr.stream()
  local from, to = mr.event{ timing = true }, mr.event{ timing = true }
  from:record() to:record() mr.synchronize()
  local k = kernel("int *p", "p[t] = 1;")
  local asked = {
    function() return x.data_ptr end, function() return tostring(x) end, function() return from:elapsed_time(to) end,
    function() return pcall(from.elapsed_time, from, mr.event{ timing = true }) end, function() return to - from end,
    mr.clock, mr.machine.time, mr.machine.queues, mr.memory.reserved, mr.memory.stats,
    function() return k:profile() end,
    function() return x:peek() end,
    function() return mr.timeline(function() s:synchronize() end) end,
    function()
      mr.trace.start()
      return mr.trace.stop()
    end,
  }
  for _, ask in ipairs(asked) do lu.assertEquals(counts(ask), "learned 1") end
  lu.assertEquals(counts(function()
    return x.shape, x.storage_id, x.storage_offset, s.name, mr.memory.allocated()
  end), "")
end

function TestLearned.test_our_own_code_asks_nothing()
  local p = mr.zeros(4, { requires_grad = true })
  local step = mr.optim.SGD({ p }, { lr = 0.1 })
  local f = mr.elementwise("float x -> float a, float b", "a = x + 1; b = x * 2")
  lu.assertEquals(counts(function()
    (p * 2):sum():backward()
    step:step()
    f(p:detach())
  end), "")
end

os.exit(lu.LuaUnit.run())
