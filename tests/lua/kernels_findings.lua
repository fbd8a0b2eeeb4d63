-- virtual only: what the interpreter sees inside launches while the hazard checker is on
-- One report for each race, whether or not lines tell them apart, and which bytes were read unwritten.
local lu = require "luaunit"
local mr = require "millrace"

TestFindings = {}

function TestFindings.tearDown() mr.machine.settings{ kernel_checks = 2 } end

local function found(fn)
  local reports = mr.hazard.check(function()
    fn()
    mr.synchronize()
  end)
  return reports
end

local function texts(reports)
  local list = {}
  for i, r in ipairs(reports) do list[i] = ("%s %s %d..%d"):format(r.kind, r.tensor, r.bytes[1], r.bytes[2]) end
  table.sort(list)
  return list
end

function TestFindings.test_two_races_of_a_kernel_on_one_line_are_two_reports()
  local kernel = mr.kernel([=[extern "C" __global__ void both(int *y, int *z) { __shared__ int s[64], t[64]; ]=] ..
    [=[int i = threadIdx.x; s[i] = i; t[i] = 2 * i; y[i] = s[63 - i]; z[i] = t[63 - i]; }]=])
  local y, z = mr.zeros(64, { dtype = "i32" }), mr.zeros(64, { dtype = "i32" })
  local function races()
    local list = {}
    for _, r in ipairs(found(function() kernel[{ 1, 64 }](y, z) end)) do
      if r.kind == "race-in-kernel" then list[#list + 1] = r end
    end
    return list
  end
  local list = races()
  lu.assertEquals(#list, 2)
  lu.assertStrContains(list[1].message, "of shared memory (`s`)")
  lu.assertStrContains(list[2].message, "of shared memory (`t`)")
  for _, r in ipairs(list) do
    lu.assertStrContains(r.fix, "both are on one line. In a loop, put __syncthreads() at the end of its body")
    lu.assertStrContains(r.fix, "Without a loop, or if one is there, put it between the two")
    lu.assertNotStrContains(r.fix, "atomic")
  end
  lu.assertEquals(#races(), 2)
end

-- A thread reads what another one has yet to write: that is a race, and not bytes that were forgotten.
function TestFindings.test_a_missing_barrier_is_one_report()
  local reverse = mr.kernel([=[
    extern "C" __global__ void reverse(int *y) {
      __shared__ int s[64];
      s[threadIdx.x] = threadIdx.x;
      y[threadIdx.x] = s[63 - threadIdx.x];
    }]=])
  local y = mr.zeros(64, { dtype = "i32" })
  local reports = found(function() reverse[{ 1, 64 }](y) end)
  lu.assertEquals(texts(reports), { "race-in-kernel shared memory 128..131" })
  lu.assertEquals(reports[1].fix, "__syncthreads() between the two orders them")
  lu.assertStrContains(reports[1].message, "; nothing orders the two (and 63 more pairs, all in bytes 0..255)\nfix: ")
end

-- Shared memory comes from the launch: that is the first side, as where a tensor was allocated.
function TestFindings.test_shared_memory_that_nobody_writes()
  local kernel = mr.kernel([=[
    extern "C" __global__ void f(int *y) {
      __shared__ int s[64];
      if (threadIdx.x < 32) s[threadIdx.x] = 1;
      __syncthreads();
      y[threadIdx.x] = s[threadIdx.x];
    }]=])
  local y = mr.zeros(64, { dtype = "i32" })
  local reports = found(function() kernel[{ 1, 64 }](y) end)
  lu.assertEquals(texts(reports), { "uninitialised-read shared memory 128..131" })
  local first, second = reports[1].first, reports[1].second
  lu.assertEquals({ first.op, first.access, second.op, second.access }, { "f", "alloc", "f", "read" })
  lu.assertEquals(first.seq, second.seq)
  lu.assertStrContains(first.where, "kernels_findings.lua:")
  lu.assertStrContains(reports[1].message, "f allocates shared memory")
end

-- Elements are counted as the script counts them, in the shape of the tensor that was passed.
function TestFindings.test_an_element_has_indices_of_the_tensor()
  local kernel = mr.kernel [[extern "C" __global__ void f(float *x, unsigned char *b) {
    if (b) b[1] = threadIdx.x; else x[3] = threadIdx.x; }]]
  local x, b = mr.zeros{ 4, 8 }, mr.zeros({ 2, 3 }, { dtype = "u8" })
  local function text(...)
    local arguments = table.pack(...)
    return found(function() kernel[{ 1, 64 }](table.unpack(arguments, 1, 2)) end)[1].message
  end
  lu.assertStrContains(text(x, nil), "element [1, 4] (index 3 in the kernel) of `x`")
  lu.assertStrContains(text(x[3], nil), "element [4] (index 3 in the kernel) of `x`")
  lu.assertStrContains(text(x, b), "element [1, 2] (index 1 in the kernel) of `b`")
  local bytes = mr.kernel [[extern "C" __global__ void f(float *x) { ((char *)x)[5] = threadIdx.x; }]]
  lu.assertStrContains(found(function() bytes[{ 1, 64 }](x) end)[1].message, "byte 5 of `x`")
  local y = mr.empty{ 4, 8 }
  local copy = mr.kernel [[extern "C" __global__ void f(float *y, const float *x) {
    y[threadIdx.x] = x[threadIdx.x]; }]]
  lu.assertStrContains(found(function() copy[{ 1, 32 }](x, y) end)[1].message, "on `y` (f32[32], bytes 0..127)")
end

-- The sentence names the tensor as the title does, files without the script's folder, and the cure for a whole grid.
function TestFindings.test_a_race_of_blocks_names_the_variable_and_the_cure()
  local kernel = mr.kernel([=[
    extern "C" __global__ void turn(int *values, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      values[i] = i;
      __syncthreads();
      if (values[n - 1 - i] < 0) values[i] = 0;
    }]=])
  local values <const> = mr.zeros(256, { dtype = "i32" })
  local reports = found(function() kernel[{ 4, 64 }](values, 256) end)
  lu.assertEquals(reports[1].tensor, "values")
  lu.assertStrMatches(reports[1].message, ".* %(index %d+ in the kernel%) of `values` at .*")
  lu.assertNotStrContains(reports[1].message, "a tensor (")
  lu.assertStrContains(reports[1].fix, "cooperative_groups::this_grid().sync()")
  lu.assertStrContains(reports[1].fix, "cooperative=true")
end

function TestFindings.test_atomics_of_block_scope_are_explained()
  local function two_launches(call)
    local kernel = mr.kernel(([[
      __device__ __noinline__ void update(int *y, int v) { %s(y, v); }
      extern "C" __global__ void most(int *y, int v) { update(y, v); }]]):format(call))
    local s, t, y = mr.stream(), mr.stream(), mr.zeros(1, { dtype = "i32" })
    mr.synchronize()
    return found(function()
      kernel[{ 1, 32, 0, s }](y, 1)
      kernel[{ 1, 32, 0, t }](y, 2)
    end)
  end
  local reports = two_launches("atomicMax_block")
  lu.assertEquals(#reports, 1)
  lu.assertStrContains(reports[1].message, "`most` has atomic operations of block scope (such as atomicAdd_block), " ..
    "which are atomic only inside one block: for other blocks and launches they are plain accesses.")
  lu.assertEquals(two_launches("atomicMax"), {})
end

function TestFindings.test_an_update_is_one_report()
  local kernel = mr.kernel([[
    extern "C" __global__ void count(int *total) {
      *total += 1;
    }]])
  local total = mr.zeros(1, { dtype = "i32", name = "total" })
  local reports = found(function() kernel[{ 2, 64 }](total) end)
  lu.assertEquals(#reports, 1)
  lu.assertEquals({ reports[1].kind, reports[1].tensor }, { "race-in-kernel", "total" })
end

-- One thread reads another element than the one it writes: an atomic operation would only hide the race.
function TestFindings.test_an_atomic_is_proposed_only_for_an_update_of_one_place()
  local function fixes(threads, statements)
    local kernel = mr.kernel(([=[extern "C" __global__ void sums(int *y) {
      __shared__ int s[128];
      int t = threadIdx.x;
      s[t] = 1;
      __syncthreads();
      %s
    }]=]):format(statements))
    local y, list = mr.zeros(1, { dtype = "i32" }), {}
    for i, r in ipairs(found(function() kernel[{ 1, threads }](y) end)) do list[i] = r.fix end
    lu.assertTrue(#list > 0, statements)
    return list
  end
  local reduction = "for (int d = %s; d > 0; d >>= 1) {\n if (t < d) %s;\n }\n if (t == 0) y[0] = s[0];"
  for _, update in ipairs{ "s[t] += s[t + d]", "atomicAdd(&s[t], s[t + d])" } do
    for _, most in ipairs{ "blockDim.x / 2", "32" } do -- the compiler unrolls the second loop
      for _, threads in ipairs{ 32, 64 } do
        for _, fix in ipairs(fixes(threads, reduction:format(most, update))) do
          lu.assertStrContains(fix, "__syncthreads()", false, false, update)
          lu.assertNotStrContains(fix, "atomic", false, false, update)
        end
      end
      local fix = fixes(64, reduction:format(most, update))[1]
      lu.assertStrContains(fix, "In a loop, put __syncthreads() at the end of its body")
    end
  end
  for _, fix in ipairs(fixes(64, "if (t < 32) atomicAdd(&s[0], t);\n else\n y[0] = s[0];")) do
    lu.assertNotStrContains(fix, "make the other one atomic")
  end
  lu.assertEquals(fixes(64, "if (t < 32) atomicAdd(&s[0], t);\n if (t == 40) y[0] = s[0];"),
    { "only one of the two is atomic: put __syncthreads() between them" })
  local plain = fixes(64, "for (int n = 0; n < blockDim.x; n++) {\n s[(t + n) % 8] += t;\n }\n y[0] = s[0];")
  lu.assertStrContains(table.concat(plain, "\n"), "if it updates one place (x += ...), use an atomic operation")
  local half = fixes(64, "if (t < 32) atomicAdd(&s[0], t);\n else\n s[0] += t;\n __syncthreads();\n y[0] = s[0];")
  lu.assertStrContains(table.concat(half, "\n"), "only one of the two is atomic: make the other one atomic, too")
end

-- As before Volta, when the lanes of a warp ran in step.
function TestFindings.test_lanes_that_exchange_values_in_volatile_memory()
  local function races(step)
    local kernel = mr.kernel(([=[
      extern "C" __global__ void sum(int *out, const int *x) {
        __shared__ int plain[64];
        volatile int *s = plain;
        int t = threadIdx.x;
        s[t] = x[t];
        __syncthreads();
        if (t < 32) {
          %s
        }
        if (t == 0) *out = s[0];
      }]=]):format(step), "sum")
    local out, x = mr.zeros(1, { dtype = "i32" }), mr.ones(64, { dtype = "i32" })
    local reports = found(function() kernel[{ 1, 64 }](out, x) end)
    lu.assertEquals(out:item(), 64, step)
    return reports
  end
  local unrolled, synced = "s[t] += s[t + 32];\n", "s[t] += s[t + 32]; __syncwarp();\n"
  for _, distance in ipairs{ 16, 8, 4, 2, 1 } do
    unrolled = unrolled .. ("s[t] += s[t + %d];\n"):format(distance)
    synced = synced .. ("{ int v = s[t + %d]; __syncwarp(); s[t] += v; __syncwarp(); }\n"):format(distance)
  end
  for _, racy in ipairs{
    unrolled,
    "for (int d = 32; d > 0; d >>= 1) s[t] += s[t + d];",
    "for (int d = 32; d > 0; d >>= 1) { s[t] += s[t + d]; __threadfence_block(); }",
  } do
    local reports = races(racy)
    lu.assertTrue(#reports > 0, racy)
    lu.assertEquals(reports[1].kind, "race-in-kernel")
    lu.assertStrContains(reports[1].message, "__syncwarp() between the two orders them")
  end
  for _, clean in ipairs{
    synced,
    "int v = s[t] + s[t + 32]; for (int d = 16; d > 0; d >>= 1) v += __shfl_down_sync(-1, v, d); " ..
      "if (t == 0) s[0] = v;",
    "if (t == 0) { int v = 0; for (int i = 0; i < 64; i++) v += s[i]; s[0] = v; }",
  } do
    lu.assertEquals(races(clean), {}, clean)
  end
end

-- One line is reported for all pairs of the same two lines of a kernel: its fix must order each of them. Bytes, the
-- element as Lua counts, and the index as the kernel counts are of the same place.
function TestFindings.test_the_fix_orders_all_pairs()
  local function report(threads, blocks, statements)
    local kernel = mr.kernel(([=[extern "C" __global__ void wide(float *y) {
      __shared__ float s[64];
      int i = threadIdx.x;
      %s
    }]=]):format(statements))
    local y = mr.zeros(192, { name = "y" })
    local reports = found(function() kernel[{ blocks, threads }](y) end)
    lu.assertEquals(#reports, 1, statements)
    return reports[1]
  end
  local ring = "s[i] = 1;\n y[i] = s[(i + 1) % blockDim.x];"
  lu.assertStrContains(report(32, 1, ring).fix, "__syncwarp() between the two orders them")
  lu.assertNotStrContains(report(32, 1, ring).message, "also of different")
  local loop = "for (int n = 0; n < blockDim.x / 16; n++) {\n s[i] = n;\n __syncthreads();\n y[i] = s[63 - i];\n }"
  lu.assertStrContains(report(64, 1, loop).fix, "Put another one at the end of the loop's body")
  local two_warps = report(64, 1, ring)
  lu.assertEquals(two_warps.fix, "__syncthreads() between the two orders them")
  lu.assertStrContains(two_warps.message, "more pairs, also of different warps, all in bytes 0..255)")
  local blocks = report(32, 2, "i += 32 * blockIdx.x;\n y[i + 1] = 2;\n y[100 + i] = y[i];")
  lu.assertStrContains(blocks.fix, "split the kernel in two launches")
  lu.assertStrContains(blocks.message, "more pairs, also of different blocks, all in bytes 4..255)")
  lu.assertStrContains(blocks.message, "element [2] (index 1 in the kernel) of y")
  lu.assertStrContains(blocks.message, "on `y` (bytes 4..7)")
end

local COPIES = [=[
  __device__ void copy(int *to, const int *from) {
    asm volatile("cp.async.ca.shared.global [%%0], [%%1], 4;"
                 :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");
  }
  __device__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
  #define wait(groups) asm volatile("cp.async.wait_group " #groups ";" ::: "memory")
  __device__ void wait_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }
  extern "C" __global__ void k(int *out, const int *x) {
    __shared__ int a[64], b[64];
    int t = threadIdx.x;
    %s
  }]=]

function TestFindings.test_copies_that_nobody_has_waited_for()
  local out, x = mr.zeros(64, { dtype = "i32" }), mr.arange(64, { dtype = "i32" })
  local function races(body)
    local list = {}
    for _, r in ipairs(found(function() mr.kernel(COPIES:format(body))[{ 1, 64 }](out, x) end)) do
      list[#list + 1] = r.message
    end
    return list
  end
  for _, racy in ipairs{
    "copy(&a[t], &x[t]); __syncthreads(); out[t] = a[63 - t];",
    "copy(&a[t], &x[t]); commit(); __syncthreads(); out[t] = a[63 - t];",
    "copy(&a[t], &x[t]); out[t] = a[t];", -- its own bytes
    "copy(&a[t], &x[t]); a[t] = 3; wait_all(); out[t] = a[t];",
    "copy(&a[t], &x[t]); wait(0); __syncthreads(); out[t] = a[63 - t];", -- it is in no group
    "copy(&a[t], &x[t]); commit(); copy(&b[t], &x[t]); commit(); wait(1); __syncthreads(); out[t] = b[t];",
    "copy(&a[t], &x[t]); commit(); wait(1); __syncthreads(); out[t] = a[t];",
    "if (t < 32) { copy(&a[t], &x[t]); copy(&a[t + 32], &x[t]); } else wait_all(); __syncthreads(); out[t] = a[t];",
  } do
    local list = races(racy)
    lu.assertTrue(#list > 0, racy)
    lu.assertStrContains(list[1], "must wait for it (__pipeline_wait_prior), then __syncthreads()", false, false, racy)
  end
  -- The wait makes it visible to its own thread only.
  local list = races("if (t >= 32) copy(&a[t], &x[t]); __syncthreads(); " ..
    "if (t >= 32) wait_all(); else out[t] = a[t + 32];")
  lu.assertTrue(#list > 0)
  lu.assertStrContains(list[1], "__syncthreads() between the two orders them")
  for _, clean in ipairs{
    "copy(&a[t], &x[t]); wait_all(); out[t] = a[t];",
    "copy(&a[t], &x[t]); wait_all(); __syncthreads(); out[t] = a[63 - t];",
    "copy(&a[t], &x[t]); commit(); wait(0); __syncthreads(); out[t] = a[63 - t];",
    "copy(&a[t], &x[t]); commit(); copy(&b[t], &x[t]); commit(); wait(1); __syncthreads(); out[t] = a[63 - t];",
    "copy(&a[t], &x[t]); commit(); b[t] = 4; __syncthreads(); out[t] = b[63 - t];", -- never looked at
    [[copy(&a[t], &x[t]); commit(); int sum = 0;
      for (int i = 0; i < 9; i++) {
        copy(i % 2 ? &a[t] : &b[t], &x[t]); commit();
        wait(1); __syncthreads();
        sum += (i % 2 ? b : a)[63 - t];
        __syncthreads();
      }
      out[t] = sum;]],
  } do
    lu.assertEquals(races(clean), {}, clean)
  end
end

-- A flag is one place for all lanes: who sees it when is up to the program.
function TestFindings.test_a_volatile_flag_is_no_exchange()
  local kernel = mr.kernel([=[
    extern "C" __global__ void search(int *out, const int *x) {
      __shared__ int found_at;
      volatile int *found = &found_at;
      int t = threadIdx.x;
      if (t == 0) *found = -1;
      __syncthreads();
      for (int i = t; i < 256 && *found < 0; i += blockDim.x) if (x[i] == 7) *found = i;
      __syncthreads();
      if (t == 0) *out = *found;
    }]=])
  local x, out = mr.zeros(256, { dtype = "i32" }), mr.zeros(1, { dtype = "i32" })
  x[78] = 7
  lu.assertEquals(found(function() kernel[{ 1, 64 }](out, x) end), {})
  lu.assertEquals(out:item(), 77)
end

function TestFindings.test_two_tensors_on_one_line_are_two_reports()
  local kernel = mr.kernel([=[extern "C" __global__ void shift(int *a, int *b) { ]=] ..
    [=[a[threadIdx.x] = a[threadIdx.x + 1]; b[threadIdx.x] = b[threadIdx.x + 1]; }]=])
  local reports = {}
  for _ = 1, 3 do -- new tensors: the same places again
    local a, b = mr.zeros(33, { dtype = "i32" }), mr.zeros(33, { dtype = "i32" })
    for _, r in ipairs(found(function() kernel[{ 1, 32 }](a, b) end)) do reports[#reports + 1] = r end
  end
  lu.assertEquals(#reports, 6) -- two in each check
end

local gather = mr.kernel([=[
  extern "C" __global__ void gather(float *y, const float *x, const int *at) {
    y[threadIdx.x] = x[at[threadIdx.x]];
  }]=])

-- The bytes that are read are known when the kernel runs; a model says which are unwritten.
function TestFindings.test_unwritten_bytes_of_global_memory()
  math.randomseed(7)
  for round = 1, 40 do
    local parts, written = {}, {}
    for p = 1, math.random(0, 4) do
      local first = math.random(1, 200)
      parts[p] = { first, math.random(first, math.min(200, first + 80)) }
      for i = first, parts[p][2] do written[i] = true end
    end
    local indices, missing = {}, nil
    for lane = 1, 32 do
      indices[lane] = math.random(0, 199)
      if round % 2 == 0 then -- none that is missing, if any is there
        for i = indices[lane], 199 do if written[i + 1] then indices[lane] = i break end end
      end
      if not written[indices[lane] + 1] then missing = missing or indices[lane] end
    end
    local at, y = mr.tensor(indices, { dtype = "i32" }), mr.zeros(32)
    local reports = found(function()
      local x = mr.empty(200, { name = "x" })
      for _, part in ipairs(parts) do x[{ part }]:fill_(round) end
      gather[{ 1, 32 }](y, x, at)
    end)
    if next(written) then
      local expected = missing and { ("uninitialised-read x %d..%d"):format(4 * missing, 4 * missing + 3) } or {}
      lu.assertEquals({ round, texts(reports) }, { round, expected })
    else
      lu.assertEquals({ round, #reports }, { round, 1 }) -- told at the launch: nothing at all is written
    end
  end
end

function TestFindings.test_what_the_kernel_has_written_itself_is_written()
  local kernel = mr.kernel([[
    extern "C" __global__ void own(float *x, int write) {
      int i = threadIdx.x;
      if (i < write) x[i] = 1;
      __syncthreads();
      x[i] = x[i] + 1;
    }]])
  local function launch(count)
    return texts(found(function()
      local x = mr.empty(64, { name = "x" })
      x[1] = 0
      kernel[{ 1, 64 }](x, count)
    end))
  end
  lu.assertEquals(launch(64), {})
  lu.assertEquals(launch(63), { "uninitialised-read x 252..255" })
end

function TestFindings.test_the_verdict_says_what_was_not_looked_for()
  local kernel = mr.kernel([[extern "C" __global__ void fill(int *y) { y[0] = threadIdx.x; }]])
  local y = mr.zeros(1, { dtype = "i32" })
  local mode = mr.hazard.mode()
  mr.hazard.mode("collect")
  mr.machine.settings{ kernel_checks = 1 }
  kernel[{ 1, 32 }](y)
  kernel[{ 1, 32 }](y)
  mr.synchronize()
  local text, totals = mr.hazard.summary()
  mr.hazard.clear()
  mr.hazard.mode(mode)
  lu.assertEquals(totals.not_looked_inside, 2)
  lu.assertEquals(totals.claim, "conditional")
  lu.assertStrContains(text, "no race and no access out of bounds is in 2 launches, which were not looked into")
end

TestMessages = {}

local function refused(text, ...)
  local arguments = { ... }
  local ok, err = pcall(function() return mr.kernel(table.unpack(arguments)) end)
  lu.assertFalse(ok)
  lu.assertStrContains(tostring(err), text)
  return tostring(err)
end

-- The compiler's text first, then what to change; words of both compilers.
function TestMessages.test_a_function_without_space()
  refused("write __global__ in front of a kernel, which the script launches, and __device__",
    "int twice(int x) { return 2 * x; }\n__global__ void f(int *x) { x[0] = twice(1); }")
end

function TestMessages.test_code_of_the_host()
  local err = refused("only code for the device belongs in the source", [[
    __global__ void f(int *x) { x[0] = 1; }
    int main() {
      int *x;
      cudaMalloc(&x, 4);
      f<<<1, 1>>>(x);
    }]])
  lu.assertStrContains(err, "cudaMalloc")
end

function TestMessages.test_headers_of_the_host()
  local err = refused("<vector> belongs to the host's C++ library, which kernels cannot use",
    "#include <vector>\n__global__ void f(int *x) { x[0] = 1; }")
  lu.assertStrContains(err, ":1")
  refused("printf prints from a kernel", "#include <iostream>\n__global__ void f(int *x) { x[0] = 1; }")
  refused("{path=...}; options = {\"-IFOLDER\"}", "#include \"mine.h\"\n__global__ void f(int *x) { x[0] = 1; }")
end

function TestMessages.test_instances_of_templates()
  local m = mr.module([[
    template <class T, int N> __global__ void poly(T *x) { x[0] = N; }
    extern "C" __global__ void other() {}]], { names = { "poly<double,2>" } })
  local function fails(name, text)
    local ok, err = pcall(m.get, m, name)
    lu.assertFalse(ok)
    lu.assertStrContains(err, text)
  end
  fails("poly<float,3>", "mr.module(source, {names = {\"poly<float,3>\"}})")
  fails("poly", "`poly` is a template: the module has its instance `poly<double,2>`")
  fails("othr", "did you mean `other`?")
end

-- A kernel may read what it has written itself, and no more.
local SOFTMAX = [=[
  extern "C" __global__ void softmax(float *out, const float *in, int rows, int columns, int first) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows) return;
    const float *x = in + i * columns;
    float *o = out + i * columns, sum = 0;
    for (int j = first; j < columns; j++) { o[j] = expf(x[j]); sum += o[j]; }
    for (int j = 0; j < columns; j++) o[j] /= sum;
  }]=]

function TestFindings.test_a_kernel_reads_what_it_has_written()
  local k = mr.kernel(SOFTMAX)
  local function run(first)
    return texts(found(function() k[{1, 32}](mr.empty(32, 100, {name = "out"}), mr.rand(32, 100), 32, 100, first) end))
  end
  lu.assertEquals(run(0), {})
  lu.assertEquals(run(1), { "uninitialised-read out 0..3" })
end

os.exit(lu.LuaUnit.run())
