-- virtual only: what a GPU's driver takes or refuses is its own
-- A kernel that the virtual GPU does not cover is refused, and the others of its module run.
local lu = require "luaunit"
local mr = require "millrace"

local SOURCE = [[
__device__ __noinline__ unsigned transposed(unsigned x) {
  unsigned y;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
  return y;
}
__device__ int counted;
extern "C" __global__ void good(int *x) { x[threadIdx.x] = 7; if (!threadIdx.x) counted = 3; }
extern "C" __global__ void narrow(int *x) { asm volatile("redux.sync.min.f32 %0, %0, -1;" : "+f"(*(float *)x)); }
extern "C" __global__ void calls(int *x) { x[0] = transposed(x[1]); }
extern "C" __global__ void after(int *x) { x[threadIdx.x] += 1; }
]]

local function refusal(fn, ...)
  local ok, err = pcall(fn, ...)
  lu.assertFalse(ok)
  lu.assertEquals(err.code, "not-supported", tostring(err))
  return tostring(err)
end

TestCover = {}

local function module_of(source)
  local ok, m = pcall(mr.module, source)
  if not ok and m.code == "not-supported" and m.message:find("compiler", 1, true) then lu.skip(m.message) end
  return ok and m or error(m)
end

function TestCover.test_one_kernel_refuses_only_itself()
  local ptx = [[
.version 8.3
.target sm_90
.address_size 64
.func (.param .b32 r) inner(.param .b32 a) {
  .reg .b32 %x<3>;
  { .reg .b32 %y<3>; ld.param.u32 %y1, [a]; movmatrix.sync.aligned.m8n8.trans.b16 %y2, %y1; }
  $label: ret;
}
.visible .entry good(.param .u64 p) {
  .reg .b32 %x<3>; .reg .b64 %y<3>;
  $label: ld.param.u64 %y1, [p]; st.global.u32 [%y1], 7; ret;
}
.visible .entry word(.param .u64 p) { .reg .b32 %r<3>; { mapa.u32 %r1, %r2, 0; } ret; }
.visible .entry form(.param .u64 p) { .reg .f32 %f<3>; redux.sync.min.f32 %f1, %f2, -1; ret; }
.visible .entry calls(.param .u64 p) {
  .param .b32 a; .param .b32 r; call (r), inner, (a); ret;
}
.visible .entry clustered(.param .u64 p) .reqnctapercluster 2, 1, 1 { ret; }
.visible .entry after(.param .u64 p) {
  .reg .b32 %r<3>; .reg .b64 %d<3>;
  ld.param.u64 %d1, [p]; ld.global.u32 %r1, [%d1]; add.s32 %r1, %r1, 1; st.global.u32 [%d1], %r1; ret;
}]]
  local m = mr.module{ptx = ptx}
  lu.assertEquals(#m.kernels, 6)
  local x = mr.zeros(1, {dtype = "i32"})
  m:get("good")[{1, 1}](x)
  m:get("after")[{1, 1}](x)
  lu.assertEquals(x:item(), 8)
  for name, words in pairs{
    word = { "line 13 of the PTX", "`mapa`", "clusters" },
    form = { "`redux.sync.min.f32 %f1, %f2, -1` in `form` is not covered" },
    calls = { "line 6 of the PTX", "`movmatrix`", "tensor cores" },
    clustered = { "line 18 of the PTX", "`.reqnctapercluster`" },
  } do
    for round = 1, 2 do
      local message = refusal(m.get, m, name)
      for _, word in ipairs(words) do lu.assertStrContains(message, word, false, false, name .. round) end
    end
  end
end

function TestCover.test_the_error_names_the_line_of_the_source()
  local m = module_of(SOURCE)
  local x = mr.zeros(4, {dtype = "i32"})
  m:get("good")[{1, 4}](x)
  m:get("after")[{1, 4}](x)
  lu.assertEquals(x:totable(), { 8, 8, 8, 8 })
  lu.assertEquals(m:global("counted"):item(), 3)
  lu.assertStrContains(refusal(m.get, m, "narrow"), "kernels_not_covered.lua:14: ")
  lu.assertStrContains(refusal(m.get, m, "calls"), "kernels_not_covered.lua:")
  lu.assertStrContains(refusal(mr.kernel, SOURCE, "calls"), "tensor cores")
  refusal(mr.kernel, SOURCE, {name = "narrow", options = "-DX"})
end

-- Wrong text, as opposed to text that is not covered, is an error of the whole text.
function TestCover.test_wrong_ptx_is_refused_as_a_whole()
  for _, body in ipairs{ "frob %r1;", "add.u32 %r1, %nothing;", "mapa.u32 %r1, %r2, 0;" } do
    local text = ".version 8.3\n.target sm_90\n.entry a() { ret; }\n.entry k() { .reg .b32 %r<3>; " .. body .. "\n"
    local ok, err = pcall(mr.module, {ptx = text}) -- there is no brace at the end
    lu.assertFalse(ok, body)
    lu.assertStrContains(tostring(err), "of the PTX: ")
    lu.assertNotStrContains(tostring(err), "is not covered")
  end
end

-- As ptxas: "uses too much shared data".
function TestCover.test_static_shared_memory_has_a_limit()
  local function text(bytes)
    return (".version 8.3\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p) { .shared .b8 s[%d]; " ..
      ".reg .b32 %%r<3>; mov.u32 %%r1, s; ret; }"):format(bytes)
  end
  local most = mr.kernel({ptx = text(49152)}, "k")
  lu.assertEquals(most.shared_bytes, 49152)
  most[{1, 1}](nil)
  local ok, err = pcall(mr.module, {ptx = text(49153)})
  lu.assertFalse(ok)
  lu.assertStrContains(tostring(err), "kernel `k` has 49153 bytes of static shared memory; CUDA allows 49152")
  lu.assertStrContains(tostring(err), "extern __shared__")
end

function TestCover.test_dynamic_shared_memory_may_be_larger()
  local m = module_of[[
    extern __shared__ int s[];
    extern "C" __global__ void k(int *x) { s[40000] = 3; x[0] = s[40000]; }]]
  local x = mr.zeros(1, {dtype = "i32"})
  m:get("k")[{1, 1, 4 * 40001}](x)
  lu.assertEquals(x:item(), 3)
end

os.exit(lu.LuaUnit.run())
