-- Steps of random programs (random_programs.lua): kernels in CUDA C++, and graphs.
local mr = require "millrace"

local SOURCE = [==[
extern "C" __global__ void select(float *y, const float *a, const float *b, const int *c) {
  int i = threadIdx.x; y[i] = c[i] ? a[i] : b[i];
}
extern "C" __global__ void guard(float *y, float v, int n) { int i = threadIdx.x; if (i < n) y[i] = v; }
extern "C" __global__ void maybe(float *y, const float *x) {
  int i = threadIdx.x; if (x) y[i] += x[i]; else y[i] = 1;
}
extern "C" __global__ void either(float *y, float *x, int n) {
  int i = threadIdx.x; float *p = i < n ? y : x; p[i] = 5;
}
extern "C" __global__ void add(float *y, float v) { atomicAdd(y + threadIdx.x % 4, v); }
extern "C" __global__ void exchange(float *y, float v) { atomicExch(y + threadIdx.x, v); }
extern "C" __global__ void ticket(float *y, int *n) { y[threadIdx.x] = atomicAdd(n, 1); }
extern "C" __global__ void clock(float *y) { y[threadIdx.x] = clock64() % 1000; }
extern "C" __global__ void address(float *y, const float *x) { y[threadIdx.x] = (long long)x / 512 % 1000; }
extern "C" __global__ void shift(float *y, const float *x) { int i = threadIdx.x; y[i] = x[(i + 1) % 32] + 1; }
extern "C" __global__ void turn(float *x) {
  __shared__ float s[32]; int i = threadIdx.x; s[i] = x[i]; __syncthreads(); x[i] = s[31 - i];
}
extern "C" __global__ void race(float *x) { int i = threadIdx.x; x[i] = x[31 - i] + 1; }
extern "C" __global__ void scatter(float *y, const int *c, float v) { int i = threadIdx.x; y[i / 2 * 2 + c[i]] = v; }
extern "C" __global__ void indices(int *c, int by) { int i = threadIdx.x; c[i] = (c[i] + by) % 2; }
struct S { float *p; };
extern "C" __global__ void by_struct(S s, float v) { s.p[threadIdx.x] = v; }
extern "C" __global__ void by_list(float **list, float v) { list[0][threadIdx.x] += v; }
extern "C" __global__ void by_number(float *y, long long to, float v) { *(float *)(to + 4 * threadIdx.x) = v; }
extern "C" __global__ void outside(float *y, int n) { y[n + threadIdx.x] = 1; }
extern "C" __global__ void check(const float *y, float v) { assert(y[threadIdx.x] != v); }
__device__ float counter[32];
extern "C" __global__ void count(float v) { counter[threadIdx.x] += v; }
extern "C" __global__ void counted(float *y) { y[threadIdx.x] = counter[threadIdx.x]; }
]==]

local module

-- A function that is explored must find the kernels that it uses.
local function load()
  module = module or mr.module("#include <cassert>\n" .. SOURCE)
end

local kernels = setmetatable({}, { __index = function(all, name)
  load()
  all[name] = module:get(name)
  return all[name]
end })

-- A reset takes the modules with it.
local function forget()
  module = nil
  for name in pairs(kernels) do kernels[name] = nil end
end

-- Variables of the module outlive a program.
local function clear()
  if module then module:global("counter"):zero_() end
end

local function launches(add, N)
  local function launch(w, n, name, ...) kernels[name][{1, N, 0, w.s[n.s]}](...) end
  add(2, "select", function(w, n) launch(w, n, "select", w.t[n.x], w.t[n.y], w.t[n.z % 3 + 1], w.choice) end)
  add(2, "guard", function(w, n) launch(w, n, "guard", w.t[n.x], n.v, n.v * 8 % N) end)
  add(2, "maybe", function(w, n) launch(w, n, "maybe", w.t[n.x], n.v > 2 and n.x ~= n.y and w.t[n.y] or nil) end)
  add(2, "either", function(w, n) if n.x ~= n.y then launch(w, n, "either", w.t[n.x], w.t[n.y], n.v * 4) end end)
  add(1, "shift", function(w, n) if n.x ~= n.y then launch(w, n, "shift", w.t[n.x], w.t[n.y]) end end)
  add(1, "turn", function(w, n) launch(w, n, "turn", w.t[n.x]) end)
  add(1, "race", function(w, n) launch(w, n, "race", w.t[n.x]) end)
  add(2, "scatter", function(w, n) launch(w, n, "scatter", w.t[n.x], w.choice, n.v) end)
  add(1, "indices", function(w, n) launch(w, n, "indices", w.choice, n.v) end)
  add(1, "pinned_kernel", function(w, n) launch(w, n, "guard", w.p[n.h], n.v, N) end)
  add(2, "count", function(w, n) launch(w, n, "count", n.v) end)
  add(2, "counted", function(w, n) launch(w, n, "counted", w.t[n.x]) end)
  add(1, "counter", function(w, n)
    local _ = kernels.count -- the module is there now
    w.s[n.s]:run(function() w.t[n.x]:copy_(module:global("counter")) end)
  end)
  -- The order of the threads, or of the launches, decides.
  add(2, "atomic", function(w, n) launch(w, n, "add", w.t[n.x], n.v) end)
  add(2, "exchange", function(w, n)
    w.broken.unordered_updates, w.broken.order_of_threads = 1, 1
    launch(w, n, "exchange", w.t[n.x], n.v)
  end)
  add(1, "ticket", function(w, n)
    w.broken.unordered_updates, w.broken.order_of_threads = 1, 1
    launch(w, n, "ticket", w.t[n.x], w.choice)
  end)
  add(1, "clock", function(w, n)
    w.broken.order_of_threads = 1
    launch(w, n, "clock", w.t[n.x])
  end)
  -- Addresses.
  add(1, "address", function(w, n)
    w.broken.addresses_as_numbers = 1
    w.s[n.s]:run(function() launch(w, n, "address", w.t[n.x], w.t[n.y] + 1) end)
  end)
  local function bytes(t) return string.pack("<i8", t.data_ptr) end
  add(1, "by_struct", function(w, n) launch(w, n, "by_struct", bytes(w.t[n.x]), n.v) end)
  add(1, "by_number", function(w, n) launch(w, n, "by_number", w.t[n.y], w.t[n.x].data_ptr, n.v) end)
  add(1, "by_list", function(w, n)
    w.list = mr.tensor({w.t[n.x].data_ptr}, {dtype = "i64"})
    mr.synchronize()
    launch(w, n, "by_list", w.list, n.v)
  end)
  -- Failures.
  add(1, "outside", function(w, n) launch(w, n, "outside", w.t[n.x], n.v) end)
  add(1, "check", function(w, n) launch(w, n, "check", w.t[n.x], n.v) end)
end

local function graphs(add, N)
  local function graph(w, f) return mr.graph(f, {stream = w.own[1]}) end
  add(2, "graph", function(w, n)
    local b = w.own[2]
    local g = graph(w, function()
      w.t[n.x]:add_(n.v)
      b:wait_stream(mr.current_stream())
      b:run(function() w.t[n.y]:mul_(2) end)
      mr.current_stream():wait_stream(b)
    end)
    g:launch(w.s[n.s])
    if n.v > 3 then g:launch(w.s[n.z]) end
  end)
  add(2, "graph_keeps", function(w, n)
    w.graphs[n.h] = w.graphs[n.h] or graph(w, function() w.t[n.x]:add_(w.t[n.y]) w.t[n.z]:mul_(2) end)
    w.graphs[n.h]:launch(w.s[n.s])
  end)
  add(1, "graph_changes", function(w, n)
    local g = w.graphs[n.h]
    if not g then return end
    if n.v == 1 then g:enable(1, false)
    elseif n.v == 2 then g:set(2, function() w.t[n.y]:mul_(3) end)
    elseif n.v == 3 then g:update(function() w.t[n.y]:add_(w.t[n.x]) w.t[n.z]:mul_(5) end, {stream = w.own[1]})
    else w.graphs[n.h] = g:instantiate() end
  end)
  add(1, "graph_of_all", function(w, n)
    local p, q, v = w.p[n.h], w.p[3 - n.h], n.v
    local g = graph(w, function()
      w.t[n.x]:uniform_()
      p:copy_(w.t[n.x], {non_blocking = true})
      mr.current_stream():host_func(function() p:add_(v) end)
      kernels.guard[{1, N}](w.t[n.y], v, v)
      w.t[n.z]:copy_(q, {non_blocking = true})
    end)
    g:launch(w.s[n.s])
    g:launch(w.s[v % 2 == 0 and n.s or n.z])
  end)
  add(1, "graph_allocates", function(w, n)
    local g, sum = graph(w, function() return w.t[n.x] + n.v end)
    g:launch(w.s[n.s])
    if n.v > 2 then w.s[n.z]:wait_stream(w.s[n.s]) end
    w.s[n.z]:run(function() w.t[n.y]:copy_(sum) end)
    if n.v % 2 == 0 then g:launch(w.s[n.s]) end
    w.garbage = true
  end)
  add(1, "graph_pool", function(w, n)
    local pool = mr.graph.pool()
    local function captured(f) return mr.graph(f, {stream = w.own[1], pool = pool}) end
    local first = captured(function() w.t[n.y]:copy_(w.t[n.x] + 1) end)
    local second = captured(function() w.t[n.x]:copy_(w.t[n.y] * 2) end)
    first:launch(w.s[n.s])
    second:launch(w.s[n.v > 2 and n.s or n.z])
    w.garbage = true
  end)
  add(1, "graph_events", function(w, n)
    local e = w.e[n.e]
    local g = graph(w, function()
      mr.current_stream():wait_event(e, {external = true})
      w.t[n.x]:add_(n.v)
      w.e[3 - n.e]:record(mr.current_stream(), {external = true})
    end)
    g:launch(w.s[n.s])
  end)
  add(1, "graph_by_itself", function(w, n)
    local s = w.s[n.s]
    local f = mr.graph.auto(function()
      w.t[n.x]:mul_(2)
      w.s[n.z]:wait_stream(s)
      w.s[n.z]:run(function() w.t[n.y]:add_(w.t[n.x]) end)
    end)
    s:run(function() for _ = 1, 3 do f() end end)
  end)
end

local function steps(add, N)
  launches(add, N)
  graphs(add, N)
end

return { steps = steps, load = load, forget = forget, clear = clear }
