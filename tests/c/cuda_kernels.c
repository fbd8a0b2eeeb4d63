/* Random kernels: see cuda_kernels.h. One function for each kind of phrase; each takes one of a list, and parts that
 * the phrase needs are written by the others. */
#include "cuda_kernels.h"

#include <string.h>

static const char prologue[] =
    "struct trio { float *first, *second; int count, spare;\n"
    "  __device__ float *get(int which) const { return which ? first : second; } };\n"
    "static __device__ __noinline__ float *pick(float *p, float *q, int which) {\n"
    "  return which ? p : q; }\n"
    "static __device__ __forceinline__ float *either(float *p, float *q, int which) {\n"
    "  if (which > 2) return p; return q; }\n"
    "static __device__ __noinline__ float *further(float *p, int by) { return p + by; }\n"
    "static __device__ __noinline__ void advance(float **p, int by) { *p += by; }\n"
    "static __device__ __noinline__ void put(float *p, float v) { if (p) *p = v; }\n"
    "static __device__ __noinline__ float sum(const float *p, const float *end) {\n"
    "  float v = 0; for (; p < end; p++) v += *p; return v; }\n"
    "static __device__ __forceinline__ float *of_halves(float *p) {\n"
    "  unsigned low = (unsigned)(size_t)p, high = (unsigned)((size_t)p >> 32);\n"
    "  return (float *)((size_t)high << 32 | low); }\n"
    "static __device__ __forceinline__ float get_or(const float *p, int at, float other) {\n"
    "  return p ? p[at] : other; }\n";

static const char parameters[] =
    "(float *a, float *b, const float *%s c, int *d, const int *ix, float *opt, trio two,\n"
    "  float *out, int n, int m, long w) {\n"
    "  int t = threadIdx.x + blockDim.x * threadIdx.y;\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;\n"
    "  float *p = a, *q = b, *loc_p = 0, v = 0, loc[8] = {0, 1, 2, 3, 4, 5, 6, 7};\n"
    "  float *tab[4] = {a, b, two.first, out}; int u = 0;\n"
    "  __shared__ float tile[256], *kept;\n"
    "  (void)y; (void)q; (void)u; (void)tab; (void)loc; (void)tile; (void)loc_p;\n";

static uint32_t pick(cuda_writer *k, uint32_t below) {
    *k->state = *k->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*k->state >> 33) % below);
}

static void put(cuda_writer *k, const char *text) {
    mr_buffer_puts(k->out, text);
}

#define ONE_OF(k, list) ((list)[pick(k, sizeof(list) / sizeof *(list))])

static void put_phrase(cuda_writer *k, const char *phrase);

/* $p pointer to write through, $r to read through, $i index, $c condition, $v value, $s statement, $k small number. */
static const char *const plain_indices[] = {"i", "i", "i", "t", "0", "m", "blockIdx.x", "u"};
static const char *const indices[] = {
    "i",
    "n - 1 - i",
    "2 * i",
    "2 * i + 1",
    "i * 4 + $k",
    "i + m",
    "i % 7",
    "i / 2",
    "ix[i]",
    "ix[t] + i",
    "(ix[$k] & 31)",
    "(d[i] & 31)",
    "(int)w",
    "y * m + i",
    "y * (int)w + i % 5",
    "(i ^ 1)",
    "(i & 15) * 4 + (i >> 4)",
    "($c ? i : m)",
    "min(i, n - 1)",
    "max(i - $k, 0)",
    "(i < n ? i : n - 1)",
    "(int)((unsigned)i * 3u % 40u)",
    "i + $k",
    "(threadIdx.x + blockIdx.y * $k)",
    "$k",
    "two.count",
    "(u & 31)",
    "(int)(((size_t)$p >> 2) & 7)",
};
static const char *const loop_indices[] = {"j",         "i + j",      "j * 3",
                                           "j * m + i", "i + j * $k", "n - j"};

static const char *const plain_pointers[] = {"a", "a", "b",         "b",          "out",
                                             "p", "q", "two.first", "two.second", "opt"};
static const char *const chosen_pointers[] = {
    "($c ? $p : $p)",
    "($c ? $p : $p)",
    "($p + $i)",
    "pick($p, $p, $c)",
    "either($p, $p, $i)",
    "further($p, $i)",
    "two.get($c)",
    "tab[$i & 3]",
    "tab[$k & 3]",
    "((float *)((size_t)($p) & ~(size_t)15))",
    "((float *)(((size_t)$p + 15) / 16 * 16))",
    "((float *)((char *)$p + 4 * $i))",
    "((float *)((unsigned long long)$p + 4ull * (unsigned)$k))",
    "(a + (b - a))",
    "(b + (two.first - b) + $i)",
    "($p == nullptr ? a : b)",
    "(opt ? opt : $p)",
    "($c ? tile + t : $p)",
    "($c ? loc + ($i & 7) : $p)",
    "($c ? $p + $i : $p - $k)",
    "(&$p[$i])",
    "((float *)((size_t)$p ^ ($c ? 0 : 4)))",
    "(p < q ? p : q)",
    "of_halves($p)",
    "((float *)((size_t)$p * 3 / 3))",
    "((float *)~~(size_t)$p)",
    "((float *)((size_t)$p ^ (size_t)q ^ (size_t)q))",
    "((float *)((i & 1 ? (size_t)$p : 0) | (i & 1 ? 0 : (size_t)$p)))",
    "($p + ((size_t)b >> 4 & 3))",
    "((float *)max((unsigned long long)$p, (unsigned long long)$p))",
};

static const char *const conditions[] = {
    "i < n",      "i < n",
    "i <= m",     "(t & 1)",
    "i % 3 == 1", "c[i] > 2.f",
    "d[t] > 3",   "ix[i] < 30",
    "(n > m)",    "m == 3",
    "w > 4",      "blockIdx.x == 0",
    "t == 0",     "(i < n && y < m)",
    "($c && $c)", "($c || $c)",
    "!($c)",      "v > 3.f",
    "u < 2",
};
static const char *const pointer_conditions[] = {
    "!!opt",
    "opt != nullptr",
    "!!two.second",
    "a != b",
    "p != q",
    "p == a",
    "p < q",
    "($p == $p)",
    "($p <= $p)",
    "(((size_t)$p & 15) == 0)",
    "($p - $p > 0)",
    "((size_t)$p > 1000)",
    "(p - a < n)",
    "((unsigned)(size_t)$p % 32 == 0)",
    "(opt == nullptr || i >= n)",
};

static const char *const values[] = {"1.f",
                                     "v",
                                     "c[i]",
                                     "(float)i",
                                     "c[$i] + 1.f",
                                     "$r[$i]",
                                     "($c ? $r[$i] : 0.f)",
                                     "get_or(opt, $i, v)",
                                     "(float)ix[i]",
                                     "($c ? c[i] : a[i])",
                                     "__ldg(c + i)"};

static const char *const simple_statements[] = {
    "$p[$i] = $v;",
    "$p[$i] = $v;",
    "$p[i] = $v;",
    "if (i < n) $p[i] = $r[i];",
    "$p[$i] += $v;",
    "v += $r[$i];",
    "v += $r[$i] * c[$i];",
    "*$p = $v;",
    "p = $p;",
    "q = $p;",
    "p += $k;",
    "p++;",
    "{ float *h = p; p = q; q = h; }",
    "tab[$k & 3] = $p;",
    "tab[$i & 3] = $p;",
    "u = $i;",
    "u += ix[$i];",
    "d[$i] = (int)v & 31;",
    "d[i] = $i & 31;",
    "atomicAdd($p + $i, $v);",
    "atomicAdd(&d[$i & 31], 1);",
    "u += atomicAdd(&d[i], 1) & 31;",
    "atomicMax(d + $k, i);",
    "atomicCAS(&d[$k], i, 3);",
    "atomicExch(&$p[i], v);",
    "put($p + $i, v);",
    "put($c ? $p : nullptr, v);",
    "advance(&p, $i);",
    "advance($c ? &p : &q, $k);",
    "v += get_or($c ? $r : nullptr, i, 0.f);",
    "v += opt ? opt[$i] : 0.f;",
    "v += two.second ? two.second[i] : two.first[i];",
    "loc[$i & 7] = $v;",
    "v += loc[$i & 7];",
    "{ float *s = $p; v += sum(s, s + n % 32); }",
    "{ ptrdiff_t f = b - a; out[i] = a[i + f]; }",
    "{ long f = (long)((char *)two.first - (char *)a); v += *(float *)((char *)a + f + 4 * i); }",
    "{ float4 f = *(const float4 *)(c + 4 * i); v += f.x + f.w; }",
    "if (((size_t)$p & 15) == 0) ((float4 *)out)[i] = make_float4(v, 1, 2, 3); else out[i] = v;",
    "{ float *s = $p; if (((size_t)s & 15) == 0) { float4 f = *(float4 *)s; v += f.y; } else v += "
    "*s; }",
    "*(float2 *)(a + 2 * i) = make_float2(v, 1);",
    "switch (m & 3) { case 0: p = a; break; case 1: p = $p; break; case 2: p = $p; break; default: "
    "p = out; }",
    "switch ($i & 3) { case 0: $p[i] = v; break; case 1: v += $r[i]; break; default: q = $p; }",
    "if (p == q) p = $p; else q = $p;",
    "if (p) *p = v;",
    "((char *)$p)[$i] = 1;",
    "((double *)a)[i] = v;",
    "{ trio f = two; if ($c) f.first = $p; v += f.get($c)[i]; }",
    "{ trio f[2] = {two, {$p, $p, 1, 2}}; f[$k & 1].get($c)[i] = v; }",
    "v += ((float *)__shfl_sync(__activemask(), (unsigned long long)$p, 0))[i];",
    "{ float *f = $p; for (int g = 0; g < m; g++) { *f = v; f = f == $p ? $p : f + 1; } }",
    "{ float *f = $p, *g = f + n; while (f != g && v < 9.f) { v += *f; f++; } }",
    "{ float *f[3] = {$p, $p, $p}; for (int g = 0; g < m; g++) f[(g + i) % 3][i] = v; }",
    "{ size_t f = (size_t)$p, g = $c ? f : (size_t)$p; *(float *)(g + 4 * (size_t)t) = v; }",
    "{ int head = (int)((16 - ((size_t)a & 15)) / 4 & 3); for (int f = min(head, n) + i; f < n; f "
    "+= 64) a[f] = "
    "b[f]; }",
    "atomicAdd_block(&d[$i & 31], 1);",
    "((volatile float *)$p)[i] = v;",
};

static const char *const loops[] = {
    "for (int j = 0; j < n; j++) {",
    "for (int j = 0; j < m; j++) {",
    "for (int j = $k; j > 0; j--) {",
    "for (int j = i; j < n; j += gridDim.x * blockDim.x) {",
    "for (int j = t; j < m * 4; j += $k + 1) {",
    "for (long j_ = 0; j_ < w; j_ += 2) { int j = (int)j_;",
    "for (int j = 0; j < (ix[i] & 7); j++) {",
    "for (unsigned j_ = n & 31; j_; j_ >>= 1) { int j = (int)j_;",
    "for (int j = 0; p < a + n && j < 40; p++, j++) {",
    "int j = 0; for (float *e = $p, *f = e + n; e < f; e += $k + 1, j++) { *e = v;",
    "int j = 0; for (const float *e = $r + i, *f = e + m; e != f; e++, j++) { v += *e;",
    "int j = 0; for (float *e = a + i; e < a + n; e += 32, j++) { *e += 1;",
    "int j = 0; do { j++; if ($c && j > 3) break;",
};

/* With barriers, which all threads must reach. */
static const char *const staged[] = {
    "tile[t] = $r[$i]; __syncthreads(); v += tile[(t + 1) % blockDim.x]; __syncthreads();",
    "__syncthreads(); if (t == 0) kept = $p; __syncthreads(); kept[i] = v;",
    "__syncthreads(); if (t == 0) kept = $p; __syncthreads(); p = $c ? kept : q;",
};

static void put_index(cuda_writer *k) {
    if (k->loops && pick(k, 3) == 0) put_phrase(k, ONE_OF(k, loop_indices));
    else if (k->depth > 3 || pick(k, 3) == 0) put(k, ONE_OF(k, plain_indices));
    else put_phrase(k, ONE_OF(k, indices));
}

static void put_condition(cuda_writer *k) {
    if (k->depth > 4) put(k, "i < n");
    else if (pick(k, 3) == 0) put_phrase(k, ONE_OF(k, pointer_conditions));
    else put_phrase(k, ONE_OF(k, conditions));
}

static void put_pointer(cuda_writer *k) {
    if (k->depth > 3 || pick(k, 2)) put(k, ONE_OF(k, plain_pointers));
    else put_phrase(k, ONE_OF(k, chosen_pointers));
}

static void put_part(cuda_writer *k, char kind) {
    switch (kind) {
    case 'i': put_index(k); break;
    case 'c': put_condition(k); break;
    case 'p': put_pointer(k); break;
    case 'r': pick(k, 3) ? put_pointer(k) : put(k, "c"); break;
    case 'v': put_phrase(k, k->depth > 3 ? "v" : ONE_OF(k, values)); break;
    default: mr_buffer_printf(k->out, "%u", pick(k, 9)); break;
    }
}

static void put_phrase(cuda_writer *k, const char *phrase) {
    k->depth++;
    for (const char *at = phrase; *at; at++) {
        if (*at == '$') put_part(k, *++at);
        else mr_buffer_add(k->out, at, 1);
    }
    k->depth--;
}

static void put_statements(cuda_writer *k, int nesting, int count);

static void put_statement(cuda_writer *k, int nesting) {
    uint32_t kind = nesting > 2 ? 9 : pick(k, 12);
    put(k, "  ");
    if (kind == 0) {
        put_phrase(k, "if ($c) {\n");
        put_statements(k, nesting + 1, 1 + (int)pick(k, 2));
        put(k, "  }");
        if (pick(k, 2)) {
            put(k, " else {\n");
            put_statements(k, nesting + 1, 1 + (int)pick(k, 2));
            put(k, "  }");
        }
    } else if (kind == 1 && k->loops < 2) {
        const char *loop = ONE_OF(k, loops);
        put(k, "{ ");
        put_phrase(k, loop);
        put(k, "\n");
        k->loops++;
        put_statements(k, nesting + 1, 1 + (int)pick(k, 2));
        k->loops--;
        put(k, strncmp(loop, "int j = 0; do", 13) ? "  } }" : "  } while (j < m); }");
    } else if (kind == 2 && !k->loops) {
        k->has_returned = true;
        put_phrase(k, "if ($c) return;");
    } else if (kind == 3 && nesting == 0 && !k->has_returned) {
        put_phrase(k, ONE_OF(k, staged));
    } else {
        put_phrase(k, ONE_OF(k, simple_statements));
    }
    put(k, "\n");
}

static void put_statements(cuda_writer *k, int nesting, int count) {
    while (count-- > 0) put_statement(k, nesting);
}

void cuda_put_prologue(mr_buffer *out) {
    mr_buffer_puts(out, prologue);
}

void cuda_put_kernel(mr_buffer *out, const char *name, uint64_t *state) {
    cuda_writer k = {.out = out, .state = state};
    mr_buffer_printf(out, "extern \"C\" __global__ void %s", name);
    for (const char *at = parameters; *at; at++) {
        if (*at == '%') mr_buffer_puts(out, pick(&k, 2) ? "__restrict__" : ""), at++;
        else mr_buffer_add(out, at, 1);
    }
    put_statements(&k, 0, 2 + (int)pick(&k, 5));
    mr_buffer_puts(out, pick(&k, 3) ? "  if (i < n) out[i] = v + u;\n}\n"
                                    : "  if (v + u != 0.f) *p = v;\n}\n");
}
